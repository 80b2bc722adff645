/* Long vectors, each element read and written once per pass: stream [LENGTH [ITERATIONS]] */
#include "kernels.h"

int main(int argc, char **argv) {
    long length = argument(argc, argv, 1, 4000000), iterations = argument(argc, argv, 2, 20);
    double *a = array(length), *b = array(length), *c = array(length);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < length; i++) {
        a[i] = 0.0;
        b[i] = 2.0;
        c[i] = 1.0;
    }
    double start = omp_get_wtime();
#pragma omp parallel
    {
        announce("mem");
        for (long n = 0; n < iterations; n++) {
#pragma omp for schedule(static)
            for (long i = 0; i < length; i++)
                a[i] += b[i] + 3.0 * c[i];
        }
    }
    double seconds = omp_get_wtime() - start;
    result(3.0 * (double)length * (double)iterations, seconds, a[length / 2]);
    return 0;
}
