/* A program that scales as Amdahl's law with contention says, whatever the machine can do: it spins for
 * 0.2 s on one thread, then on all n threads for 1.6/n + 0.02 n seconds. On simulated hardware each
 * spinning thread takes a known power.
 *
 * scaling      n OpenMP threads, each at the rates of the preset "asm"
 * scaling N    one thread that takes the power of N, 5.6898 W each: on one CPU whose time is exact */
#define _POSIX_C_SOURCE 200809L
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void become(const char *rates) {
    FILE *file = fopen("/proc/simhw", "w");
    if (file) {
        fprintf(file, "%s\n", rates);
        fclose(file);
    }
}

static void spin_until(double end) {
    while (now() < end) {
    }
}

static double parallel_seconds(int threads) {
    return 1.6 / threads + 0.02 * threads;
}

static void as_many(int threads) {
    char rates[80];
    snprintf(rates, sizeof rates, "name=as%d clk=0 inst=0 rs=%.1f l2=0 llc=0", threads, 1.8e9 * threads);
    become(rates);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        int threads = atoi(argv[1]);
        as_many(1);
        spin_until(now() + 0.2);
        as_many(threads);
        spin_until(now() + parallel_seconds(threads));
        return 0;
    }
    become("asm");
    spin_until(now() + 0.2);
    double start = now();
#pragma omp parallel
    {
        become("asm");
        spin_until(start + parallel_seconds(omp_get_num_threads()));
    }
    return 0;
}
