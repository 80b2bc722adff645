/* Starts so many short processes a second, evenly, for so many seconds, and says how many it started:
 *
 *   processes RATE SECONDS [PROGRAM]
 *
 * Each is /bin/true, or PROGRAM, as a program of its own: loaded, linked, run and waited for. A shell's loop does not
 * come to a thousand of them beside other work. */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int count, char **args) {
    if (count < 3) {
        fprintf(stderr, "usage: %s RATE SECONDS [PROGRAM]\n", args[0]);
        return 2;
    }
    double rate = atof(args[1]), seconds = atof(args[2]), start = now(), passed;
    char *program = count > 3 ? args[3] : "/bin/true";
    char *arguments[] = {program, NULL};
    long started = 0;
    while ((passed = now() - start) < seconds) {
        for (long due = passed * rate; started < due && now() - start < seconds; started++) {
            pid_t child;
            errno = posix_spawn(&child, program, NULL, NULL, arguments, environ);
            if (errno) {
                perror(program);
                return 1;
            }
            waitpid(child, NULL, 0);
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    printf("%ld processes in %.1f s: %.0f a second\n", started, passed, started / passed);
    return 0;
}
