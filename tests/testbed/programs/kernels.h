/* What the three OpenMP kernels share: arguments, time, and in a simulated machine the announcement
 * of what a thread does. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* A simulated machine has a file that each thread tells its kind of work to. */
static void announce(const char *preset) {
    FILE *file = fopen("/proc/simhw", "w");
    if (file) {
        fprintf(file, "%s\n", preset);
        fclose(file);
    }
}

static long argument(int argc, char **argv, int index, long otherwise) {
    return argc > index ? strtol(argv[index], NULL, 10) : otherwise;
}

static double *array(long length) {
    double *values = malloc(sizeof(double) * (size_t)length);
    if (!values) {
        fprintf(stderr, "not enough memory for %ld numbers\n", length);
        exit(1);
    }
    return values;
}

static void result(double work, double seconds, double check) {
    printf("threads: %d check: %.6g\nrate: %.3f Mop/s time: %.6f s\n", omp_get_max_threads(), check,
           work / seconds * 1e-6, seconds);
}
