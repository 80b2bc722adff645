/* A star-shaped stencil of radius 2 on a square grid: stencil [SIDE [ITERATIONS]] */
#include "kernels.h"

int main(int argc, char **argv) {
    long side = argument(argc, argv, 1, 1000), iterations = argument(argc, argv, 2, 20);
    double *in = array(side * side), *out = array(side * side);
    for (long i = 0; i < side * side; i++) {
        in[i] = (double)(i % 7);
        out[i] = 0.0;
    }
    double start = omp_get_wtime();
#pragma omp parallel
    {
        announce("l3");
        for (long n = 0; n < iterations; n++) {
#pragma omp for schedule(static)
            for (long y = 2; y < side - 2; y++)
                for (long x = 2; x < side - 2; x++) {
                    long at = y * side + x;
                    out[at] += 0.25 * (in[at - 1] + in[at + 1] + in[at - side] + in[at + side]) +
                               0.125 * (in[at - 2] + in[at + 2] + in[at - 2 * side] + in[at + 2 * side]);
                }
        }
    }
    double seconds = omp_get_wtime() - start;
    result(10.0 * (double)(side - 4) * (double)(side - 4) * (double)iterations, seconds, out[side * 5 + 5]);
    return 0;
}
