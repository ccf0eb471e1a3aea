// The most multiplications with an addition that one core does: independent sums in registers.

#include <cstdio>
#include <cstdlib>
#include <ctime>

#ifdef __AVX512F__
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef double Vec __attribute__((vector_size(8 * LANES)));

int main() {
    constexpr int SUMS = 20, TURNS = 2000000;
    Vec sums[SUMS], factor = 1.0000001 - Vec{}, term = 1e-9 - Vec{};
    for (int i = 0; i < SUMS; i++) sums[i] = i - Vec{};
    std::clock_t begin = std::clock();
    for (int turn = 0; turn < TURNS; turn++)
#pragma GCC unroll 20
        for (int i = 0; i < SUMS; i++) sums[i] = sums[i] * factor + term;
    double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC, all = 0.0;
    for (int i = 0; i < SUMS; i++) all += sums[i][0];
    std::printf("%.17g %.17g\n", double(SUMS) * LANES * TURNS / seconds / 1e6, all);  // per microsecond
}
