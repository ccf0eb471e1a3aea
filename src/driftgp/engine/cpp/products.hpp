// Small dense linear algebra for one core: vectors of the processor's width, matrix products, triangular factors.
//
// Matrices are row-major with rows padded to whole vectors; what lies in the padding is finite and never read as a
// result. A Cholesky factor is kept as R = Lᵀ (rows begin at the diagonal), its inverse as N = L⁻¹, zero above it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#ifndef DRIFTGP_LANES
#define DRIFTGP_LANES 4
#endif
#ifndef DRIFTGP_LEVEL
#define DRIFTGP_LEVEL plain
#endif

namespace DRIFTGP_LEVEL {

constexpr int W = DRIFTGP_LANES;
typedef double Vec __attribute__((vector_size(8 * W), aligned(8), may_alias));
typedef int64_t VecInt __attribute__((vector_size(8 * W), aligned(8), may_alias));

static inline Vec load(const double *p) { return *reinterpret_cast<const Vec *>(p); }
static inline void store(double *p, Vec v) { *reinterpret_cast<Vec *>(p) = v; }
static inline Vec all(double v) { return v - Vec{}; }
static inline Vec not_negative(Vec a) { return a < 0.0 ? Vec{} : a; }  // NaN stays NaN
static inline int padded(int n) { return (n + W - 1) / W * W; }
static inline double sum(Vec v) {
    double lanes[W];
    store(lanes, v);
    for (int half = W / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}
// Lanes of a and b, those of b counted after those of a.
static inline Vec pick(Vec a, Vec b, VecInt which) {
#ifdef __clang__
    Vec c;
    for (int l = 0; l < W; l++) c[l] = which[l] < W ? a[which[l]] : b[which[l] - W];
    return c;
#else
    return __builtin_shuffle(a, b, which);
#endif
}

static inline VecInt lane_numbers() {
    VecInt lanes;
    for (int l = 0; l < W; l++) lanes[l] = l;
    return lanes;
}
// v from lane `first` on, and the lanes of `before` in front of it.
static inline Vec from_lane(Vec v, int first, Vec before = Vec{}) {
    return lane_numbers() < int64_t(first) ? before : v;
}
// Sums over the lanes of W vectors: lane l is that of r[l], which are overwritten.
template <int HALF = W / 2>
static inline Vec sums(Vec *r) {
    VecInt above, below;
    for (int l = 0; l < W; l++) above[l] = l & HALF ? W + l - HALF : l, below[l] = l & HALF ? W + l : l + HALF;
    for (int i = 0; i < HALF; i++) r[i] = pick(r[i], r[i + HALF], above) + pick(r[i], r[i + HALF], below);
    if constexpr (HALF > 1) return sums<HALF / 2>(r);
    return r[0];
}
static inline Vec square_root(Vec v) {
    for (int i = 0; i < W; i++) v[i] = __builtin_sqrt(v[i]);
    return v;
}

// exp(x) for x ≤ 0, to an ulp or two: x = n log 2 + r, a polynomial for e^r, n added to the exponent.
static inline Vec exponential(Vec x) {
    x = x < -700.0 ? all(-700.0) : x;
    const Vec shift = all(6755399441055744.0);  // 1.5·2⁵²: adding it rounds to a whole number
    Vec n = x * 1.4426950408889634 + shift;
    VecInt bits = (VecInt)n << 52;
    n -= shift;
    Vec r = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
    Vec r2 = r * r, r4 = r2 * r2;
    Vec low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    low += r4 * ((1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040)));
    Vec high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    high += r4 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
    Vec value = low + r4 * r4 * high;
    return (Vec)((VecInt)value + bits);
}

// log(1 + u) for u ≥ 0, to an ulp or two: 1 + u = 2ᵉ (1 + f), log(1 + f) = 2 artanh(f/(2 + f)); NaN stays NaN.
static inline Vec log_one_plus(Vec u) {
    Vec w = 1.0 + u;
    Vec lost = u < 1.0 ? u - (w - 1.0) : 1.0 - (w - u);  // by rounding 1 + u
    VecInt bits = (VecInt)w;
    const double large = 4503599627370496.0;  // 2⁵²: its last bits count whole numbers
    Vec e = (Vec)((bits >> 52) | INT64_C(0x4330000000000000)) - (large + 1023.0);
    Vec mantissa = (Vec)((bits & INT64_C(0x000fffffffffffff)) | INT64_C(0x3ff0000000000000));
    e = mantissa > 1.4142135623730951 ? e + 1.0 : e;
    mantissa = mantissa > 1.4142135623730951 ? 0.5 * mantissa : mantissa;
    Vec f = mantissa - 1.0, z = f / (2.0 + f), z2 = z * z, z4 = z2 * z2;
    Vec low = (1.0 / 3 + z2 * (1.0 / 5)) + z4 * (1.0 / 7 + z2 * (1.0 / 9));
    Vec high =
        (1.0 / 11 + z2 * (1.0 / 13)) + z4 * (1.0 / 15 + z2 * (1.0 / 17)) + z4 * z4 * (1.0 / 19 + z2 * (1.0 / 21));
    Vec series = 2.0 * z * (1.0 + z2 * (low + z4 * z4 * high));
    Vec value = e * 0.6931471805599453 + (series + (u < 1e300 ? lost / w : Vec{}));
    return u == u ? value : u;
}

// sin πx and cos πx, both with the sign (−1)ⁿ for the whole number n next to x: their squares and products are right.
struct SineCosine {
    Vec sine, cosine;
};
static inline SineCosine sine_cosine(Vec x) {
    const Vec shift = all(6755399441055744.0);
    x = (x > 1e15) | (x < -1e15) ? x - x : x;  // all these are whole numbers, but NaN and ∞
    Vec t = 3.141592653589793 * (x - ((x + shift) - shift)), t2 = t * t;
    auto series = [t2](std::initializer_list<double> coefficients) {
        Vec value{};
        for (double coefficient : coefficients) value = value * t2 + coefficient;
        return value;
    };
    Vec sine = series({1.9572941063391263e-20, -8.22063524662433e-18, 2.8114572543455206e-15, -7.647163731819816e-13,
                       1.6059043836821613e-10, -2.505210838544172e-08, 2.7557319223985893e-06, -1.984126984126984e-04,
                       8.333333333333333e-03, -0.16666666666666666, 1.0});
    Vec cosine = series({-8.896791392450574e-22, 4.110317623312165e-19, -1.5619206968586225e-16, 4.779477332387385e-14,
                         -1.1470745597729725e-11, 2.08767569878681e-09, -2.755731922398589e-07, 2.48015873015873e-05,
                         -1.388888888888889e-03, 4.1666666666666664e-02, -0.5, 1.0});
    return {t * sine, cosine};
}

// ---- vectors: n is rounded up to whole ones -------------------------------------------------------------------------

static inline double dot(const double *a, const double *b, int n) {
    Vec s[4] = {Vec{}, Vec{}, Vec{}, Vec{}};  // one alone would wait for each sum before the next
    int i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int v = 0; v < 4; v++) s[v] += load(a + i + v * W) * load(b + i + v * W);
    for (; i < n; i += W) s[0] += load(a + i) * load(b + i);
    return sum((s[0] + s[1]) + (s[2] + s[3]));
}
// Of rows without padding; b = nullptr stands for ones.
static inline double loose_dot(const double *a, const double *b, int n) {
    Vec s[4] = {Vec{}, Vec{}, Vec{}, Vec{}};
    int i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int v = 0; v < 4; v++) s[v] += b ? load(a + i + v * W) * load(b + i + v * W) : load(a + i + v * W);
    for (; i + W <= n; i += W) s[0] += b ? load(a + i) * load(b + i) : load(a + i);
    if (i < n && n >= W) {
        Vec rest = from_lane(load(a + n - W), W - (n - i));
        s[1] += b ? rest * load(b + n - W) : rest;
        i = n;
    }
    double rest = sum((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < n; i++) rest += b ? a[i] * b[i] : a[i];
    return rest;
}
// y += f x
static inline void axpy(double f, const double *x, double *y, int from, int to) {
    for (int i = from / W * W; i < to; i += W) store(y + i, load(y + i) + f * load(x + i));
}
static inline void scale(double f, double *x, int from, int to) {
    for (int i = from / W * W; i < to; i += W) store(x + i, f * load(x + i));
}
// y = a y + b x, of rows without padding
static inline void mix(double a, double *y, double b, const double *x, int n) {
    int i = 0;
    for (; i + W <= n; i += W) store(y + i, a * load(y + i) + b * load(x + i));
    for (; i < n; i++) y[i] = a * y[i] + b * x[i];
}
static inline void clear(double *x, size_t n) { std::memset(x, 0, n * sizeof(double)); }

// ---- products -------------------------------------------------------------------------------------------------------

enum Mode { SET, ADD, SUBTRACT };

// Rows of a tile: as many as leave room in the registers for a row of vectors, 32 of them where vectors have 8 lanes.
constexpr int TALL = W == 8 ? 8 : 4;

// C (rows × 3 vectors at most) becomes, gains or loses Σ_k A(i, k) B[k], where A(i, k) is A[i][k], or A[k][i] if
// turned.
template <int ROWS, int VECTORS, bool TURNED>
static inline void tile(const double *A, int lda, const double *B, int ldb, double *C, int ldc, int k0, int k1,
                        Mode mode) {
    Vec c[ROWS][VECTORS];  // cleared one by one, or the compiler would clear memory instead of registers
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < VECTORS; j++) c[i][j] = Vec{};
    for (int k = k0; k < k1; k++) {
        Vec b[VECTORS];
        for (int j = 0; j < VECTORS; j++) b[j] = load(B + size_t(k) * ldb + W * j);
        for (int i = 0; i < ROWS; i++) {
            double a = TURNED ? A[size_t(k) * lda + i] : A[size_t(i) * lda + k];
            for (int j = 0; j < VECTORS; j++) c[i][j] += a * b[j];
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < VECTORS; j++) {
            double *to = C + size_t(i) * ldc + W * j;
            store(to, mode == SET ? c[i][j] : mode == ADD ? load(to) + c[i][j] : load(to) - c[i][j]);
        }
}

// At most TALL rows: eight at once, or four, and then the others.
template <int VECTORS, bool TURNED>
static inline void tiles(int rows, const double *A, int lda, const double *B, int ldb, double *C, int ldc, int k0,
                         int k1, Mode mode) {
    if (rows == TALL) return tile<TALL, VECTORS, TURNED>(A, lda, B, ldb, C, ldc, k0, k1, mode);
    if (rows >= 4) {
        tile<4, VECTORS, TURNED>(A, lda, B, ldb, C, ldc, k0, k1, mode);
        A += TURNED ? 4 : 4 * size_t(lda), C += 4 * size_t(ldc), rows -= 4;
    }
    switch (rows) {
        case 3: return tile<3, VECTORS, TURNED>(A, lda, B, ldb, C, ldc, k0, k1, mode);
        case 2: return tile<2, VECTORS, TURNED>(A, lda, B, ldb, C, ldc, k0, k1, mode);
        case 1: return tile<1, VECTORS, TURNED>(A, lda, B, ldb, C, ldc, k0, k1, mode);
        default: return;
    }
}

// Where the terms of a sum over k begin and end in row i and column j, if A or B is a triangle.
enum From { FIRST, FROM_ROW, FROM_COLUMN, FROM_LATER };
enum To { LAST, TO_ROW, TO_COLUMN };

// C = A B (or +=, or −=) for A of rows×inner and B of inner×columns; `half`: only what reaches the upper triangle of C.
template <bool TURNED>
static void product(int rows, int columns, int inner, const double *A, int lda, const double *B, int ldb, double *C,
                    int ldc, From from = FIRST, To to = LAST, Mode mode = SET, bool half = false) {
    int width = padded(columns);
    for (int j = 0; j < width; j += 3 * W) {
        int wide = std::min(3 * W, width - j);
        for (int i = 0; i < rows && !(half && i >= j + wide); i += TALL) {
            int high = std::min(TALL, rows - i);
            int k0 = from == FROM_ROW ? i : from == FROM_COLUMN ? j : from == FROM_LATER ? std::max(i, j) : 0;
            int k1 = std::min(inner, to == TO_ROW ? i + high : to == TO_COLUMN ? j + wide : inner);
            const double *a = TURNED ? A + i : A + size_t(i) * lda;
            double *c = C + size_t(i) * ldc + j;
            if (wide == 3 * W) tiles<3, TURNED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, mode);
            else if (wide == 2 * W) tiles<2, TURNED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, mode);
            else tiles<1, TURNED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, mode);
        }
    }
}

template <int ROWS, int COLUMNS>
static inline void dots_tile(const double *A, const double *B, int ld, double *C, int ldc, int n) {
    Vec c[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) c[i][j] = Vec{};
    for (int t = 0; t < n; t += W) {
        Vec b[COLUMNS];
        for (int j = 0; j < COLUMNS; j++) b[j] = load(B + size_t(j) * ld + t);
        for (int i = 0; i < ROWS; i++) {
            Vec a = load(A + size_t(i) * ld + t);
            for (int j = 0; j < COLUMNS; j++) c[i][j] += a * b[j];
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) C[size_t(i) * ldc + j] += sum(c[i][j]);
}

template <int ROWS>
static inline void dots_row(int columns, const double *A, const double *B, int ld, double *C, int ldc, int n) {
    switch (columns) {
        case 4: return dots_tile<ROWS, 4>(A, B, ld, C, ldc, n);
        case 3: return dots_tile<ROWS, 3>(A, B, ld, C, ldc, n);
        case 2: return dots_tile<ROWS, 2>(A, B, ld, C, ldc, n);
        default: return dots_tile<ROWS, 1>(A, B, ld, C, ldc, n);
    }
}

// C += A Bᵀ for rows of n entries, which lie `ld` apart in both; `half`: only what reaches the upper triangle of C.
static void dots(int rows, int columns, const double *A, const double *B, int ld, double *C, int ldc, int n,
                 bool half = false) {
    for (int i = 0; i < rows; i += 4)
        for (int j = half ? i : 0; j < columns; j += 4) {
            const double *a = A + size_t(i) * ld, *b = B + size_t(j) * ld;
            double *c = C + size_t(i) * ldc + j;
            int wide = std::min(4, columns - j);
            switch (std::min(4, rows - i)) {
                case 4: dots_row<4>(wide, a, b, ld, c, ldc, n); break;
                case 3: dots_row<3>(wide, a, b, ld, c, ldc, n); break;
                case 2: dots_row<2>(wide, a, b, ld, c, ldc, n); break;
                default: dots_row<1>(wide, a, b, ld, c, ldc, n);
            }
        }
}

// A square of W×W in registers: quarters change places, then quarters of quarters.
template <int HALF>
static inline void exchange_quarters(Vec *r) {
    VecInt above, below;
    for (int l = 0; l < W; l++) above[l] = l & HALF ? W + l - HALF : l, below[l] = l & HALF ? W + l : l + HALF;
    for (int i = 0; i < W; i++)
        if (!(i & HALF)) {
            Vec a = r[i], b = r[i + HALF];
            r[i] = pick(a, b, above), r[i + HALF] = pick(a, b, below);
        }
    if constexpr (HALF > 1) exchange_quarters<HALF / 2>(r);
}

// B (columns × rows) = Aᵀ.
static inline void transpose(int rows, int columns, const double *A, int lda, double *B, int ldb) {
    int i = 0;
    for (; i + W <= rows; i += W) {
        int j = 0;
        for (; j + W <= columns; j += W) {
            Vec r[W];
            for (int k = 0; k < W; k++) r[k] = load(A + size_t(i + k) * lda + j);
            exchange_quarters<W / 2>(r);
            for (int k = 0; k < W; k++) store(B + size_t(j + k) * ldb + i, r[k]);
        }
        for (; j < columns; j++)
            for (int k = 0; k < W; k++) B[size_t(j) * ldb + i + k] = A[size_t(i + k) * lda + j];
    }
    for (; i < rows; i++)
        for (int j = 0; j < columns; j++) B[size_t(j) * ldb + i] = A[size_t(i) * lda + j];
}

// The upper triangle into the lower, square by square.
static inline void mirror(double *A, int m, int ld) {
    int i = 0;
    for (; i + W <= m; i += W) {
        for (int j = 0; j < i; j += W) {
            Vec r[W];
            for (int k = 0; k < W; k++) r[k] = load(A + size_t(j + k) * ld + i);
            exchange_quarters<W / 2>(r);
            for (int k = 0; k < W; k++) store(A + size_t(i + k) * ld + j, r[k]);
        }
        for (int k = 1; k < W; k++)
            for (int l = 0; l < k; l++) A[size_t(i + k) * ld + i + l] = A[size_t(i + l) * ld + i + k];
    }
    for (; i < m; i++)
        for (int j = 0; j < i; j++) A[size_t(i) * ld + j] = A[size_t(j) * ld + i];
}

// ---- factors --------------------------------------------------------------------------------------------------------

constexpr int PANEL = 24;  // rows of a factor found one by one; what they owe to the rows above is one product

// R with RᵀR = A, over the upper triangle of A; false if the factorisation fails.
static bool factorise(int m, double *A, int ld) {
    for (int i0 = 0; i0 < m; i0 += PANEL) {
        int i1 = std::min(m, i0 + PANEL);
        double *panel = A + size_t(i0) * ld + i0;
        product<true>(i1 - i0, m - i0, i0, A + i0, ld, A + i0, ld, panel, ld, FIRST, LAST, SUBTRACT);
        for (int j = i0; j < i1; j++) {
            double *row = A + size_t(j) * ld;
            if (!(row[j] > 0.0) || !std::isfinite(row[j])) return false;
            scale(1.0 / std::sqrt(row[j]), row, j, m);
            for (int i = j + 1; i < i1; i++) axpy(-row[i], row, A + size_t(i) * ld, i, m);
        }
    }
    return true;
}

// N = R⁻ᵀ = L⁻¹.
static void invert(int m, const double *R, double *N, int ld) {
    clear(N, size_t(m) * ld);
    for (int i0 = 0; i0 < m; i0 += PANEL) {
        int i1 = std::min(m, i0 + PANEL);
        product<true>(i1 - i0, i0, i0, R + i0, ld, N, ld, N + size_t(i0) * ld, ld, FROM_COLUMN, LAST, SUBTRACT);
        for (int i = i0; i < i1; i++) {
            double *row = N + size_t(i) * ld;
            for (int k = i0; k < i; k++) axpy(-R[size_t(k) * ld + i], N + size_t(k) * ld, row, 0, k + 1);
            double f = 1.0 / R[size_t(i) * ld + i];
            scale(f, row, 0, i + 1);
            row[i] = f;
        }
    }
}

// a with RᵀR a = b, in the place of b.
static inline void solve(int m, const double *__restrict R, int ld, double *__restrict b) {
    for (int i = 0; i < m; i++) {
        double f = b[i] /= R[size_t(i) * ld + i];
        for (int j = i + 1; j < m; j++) b[j] -= f * R[size_t(i) * ld + j];
    }
    for (int i = m - 1; i >= 0; i--) {
        double rest = b[i];
        for (int j = i + 1; j < m; j++) rest -= R[size_t(i) * ld + j] * b[j];
        b[i] = rest / R[size_t(i) * ld + i];
    }
}

// D = Nᵀ A N for a symmetric A, all of it; `one` is memory for a matrix.
static void outside(int m, const double *N, const double *A, double *D, double *one, int ld) {
    product<false>(m, m, m, A, ld, N, ld, one, ld, FROM_COLUMN);
    product<true>(m, m, m, N, ld, one, ld, D, ld, FROM_ROW, LAST, SET, true);
    mirror(D, m, ld);
}

// S = N A Nᵀ for a symmetric A, all of it; `one` and `two` are memory for a matrix each.
static void inside(int m, const double *N, const double *A, double *S, double *one, double *two, int ld) {
    transpose(m, m, N, ld, one, ld);
    for (int i = 0; i < m; i++) clear(one + size_t(i) * ld + m, ld - m);
    product<false>(m, m, m, A, ld, one, ld, two, ld, FIRST, TO_COLUMN);
    product<false>(m, m, m, N, ld, two, ld, S, ld, FIRST, TO_ROW, SET, true);
    mirror(S, m, ld);
}

}  // namespace DRIFTGP_LEVEL
