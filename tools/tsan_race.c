/* The first test of tools/tsan.sh: two parallel regions that divide their work by threads, as the
 * kernels do. With an argument all threads also increment one counter without synchronization, a
 * race that must be found. */
#include <omp.h>
#include <stdio.h>

enum { N = 100000 };

static int squares[N], count;

static void fill(int racy)
{
#pragma omp parallel
    {
        int t = omp_get_thread_num(), of = omp_get_num_threads();
        for (int i = t * (N / of); i < (t + 1) * (N / of); i++) squares[i] = i % 100 * (i % 100);
        if (racy) count++;
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    (void)argv;
    for (int round = 0; round < 20; round++) {
        fill(argc > 1);
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < N; i++) sum += squares[N - 1 - i]; /* what another thread wrote */
    }
    printf("%ld\n", sum + count);
    return 0;
}
