/* A matrix added to the transpose of another, in tiles: transpose [SIDE [ITERATIONS]] */
#include "kernels.h"

int main(int argc, char **argv) {
    long side = argument(argc, argv, 1, 1024), iterations = argument(argc, argv, 2, 20);
    const long tile = 32;
    double *in = array(side * side), *out = array(side * side);
    for (long i = 0; i < side * side; i++) {
        in[i] = (double)(i % 11);
        out[i] = 0.0;
    }
    double start = omp_get_wtime();
#pragma omp parallel
    {
        announce("mem");
        for (long n = 0; n < iterations; n++) {
#pragma omp for schedule(static)
            for (long row = 0; row < side; row += tile)
                for (long column = 0; column < side; column += tile)
                    for (long y = row; y < row + tile && y < side; y++)
                        for (long x = column; x < column + tile && x < side; x++)
                            out[y * side + x] += in[x * side + y];
        }
    }
    double seconds = omp_get_wtime() - start;
    result((double)side * (double)side * (double)iterations, seconds, out[side + 3]);
    return 0;
}
