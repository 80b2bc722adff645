/* Jacobi sweeps of a plane divided among ranks, which exchange their edges. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { WIDTH = 512, ROWS = 128 };
static double a[ROWS + 2][WIDTH], b[ROWS + 2][WIDTH];
__attribute__((noinline)) static double sweep(double from[][WIDTH], double to[][WIDTH]) {
    double change = 0;
    for (int y = 1; y <= ROWS; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            to[y][x] = 0.25 * (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]);
            change += (to[y][x] - from[y][x]) * (to[y][x] - from[y][x]);
        }
    return change;
}
static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
int main(int argc, char **argv) {
    int rank, size, going = 1;
    double limit = argc > 1 ? atof(argv[1]) : 0.5, change = 0, total = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int x = 0; x < WIDTH; x++) a[0][x] = b[0][x] = rank + 1;
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    while (going) {
        for (int i = 0; i < 20; i++) {
            change = sweep(a, b) + sweep(b, a);
        }
        MPI_Sendrecv(a[1], WIDTH, MPI_DOUBLE, up, 0, a[ROWS + 1], WIDTH, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(a[ROWS], WIDTH, MPI_DOUBLE, down, 1, a[0], WIDTH, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        going = seconds(CLOCK_PROCESS_CPUTIME_ID) < limit;
        MPI_Allreduce(MPI_IN_PLACE, &going, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Reduce(&change, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, change %g\n", size, total);
    MPI_Finalize();
    return argc > 2 && rank == atoi(argv[2]) ? 7 : 0;
}
