// The arithmetic of a step that no implementation can do without, by hand: what the benchmark measures driftgp against.
//
// Reads a problem from standard input and writes what it computed and how long it took to standard output, both as
// doubles (benchmarks/limit.py is the other side). Squared exponential kernel, one lengthscale, one output, a full window.
//
//   agp    whole steps of Algorithm 2: predict, window, relevance, exchange of a point, gradient, Adam, refresh
//   bare   of these only: one Gram matrix, Φ, two factorisations, the gradient's products
//   fast   whole steps of Algorithm 1 while no inducing point comes or goes: predict, statistics, relevance, posterior
//
// The formulas are those of src/driftgp/gp/bound.py. What a compiler of array programs cannot know is used: triangles,
// symmetry, that Kux and Φ of the last refresh differ from those of the next gradient in one row and one column only,
// and that the distances of the Gram matrix serve its derivative. Matrix products come in two kinds, chosen when the
// program is called: loops written for one core's registers and caches, and calls of a BLAS that is opened by name.
//
// Matrices are row-major with rows padded to a multiple of 4. Kxu is T×M, so that a sample is a row of it.
// A Cholesky factor is kept as its transpose, R = Lᵀ, and V = L⁻ᵀ: rows of a triangle that begin at the diagonal.

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

typedef double Four __attribute__((vector_size(32), aligned(8)));
typedef int64_t FourInt __attribute__((vector_size(32), aligned(8)));

static inline Four load(const double *p) { return *reinterpret_cast<const Four *>(p); }
static inline void store(double *p, Four v) { *reinterpret_cast<Four *>(p) = v; }
static inline Four all(double v) { return Four{v, v, v, v}; }
static inline double sum(Four v) { return (v[0] + v[1]) + (v[2] + v[3]); }
static inline int padded(int n) { return (n + 3) / 4 * 4; }

// exp(x) for x ≤ 0, to an ulp or two: x = n log 2 + r, a polynomial for e^r, n added to the exponent.
static inline Four exponential(Four x) {
    x = x < -700.0 ? all(-700.0) : x;
    const Four shift = all(6755399441055744.0);  // 1.5·2⁵²: adding it rounds to a whole number
    Four n = x * 1.4426950408889634 + shift;
    FourInt bits = (FourInt)n << 52;  // of the same 32 bytes
    n -= shift;
    Four r = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
    Four r2 = r * r, r4 = r2 * r2;
    Four low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    low += r4 * ((1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040)));
    Four high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    high += r4 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
    Four value = low + r4 * r4 * high;
    return (Four)((FourInt)value + bits);
}

// Memory for a matrix, zeroed and aligned.
struct Array {
    std::vector<double> memory;
    double *p = nullptr;
    explicit Array(size_t n = 0) : memory(n + 8) {
        p = memory.data();
        while (reinterpret_cast<uintptr_t>(p) % 32) p++;
    }
    Array(const Array &) = delete;
    operator double *() { return p; }
};

// ---- matrix products by hand ----------------------------------------------------------------------------------------

// C[rows×4·vectors] = (or +=) Σ_k A B[k], where A is A[row][k], or A[k][row] if transposed.
template <int ROWS, int VECTORS, bool TRANSPOSED>
static inline void tile(const double *A, int lda, const double *B, int ldb, double *C, int ldc, int k0, int k1, bool add) {
    Four c[ROWS][VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < VECTORS; j++) c[i][j] = add ? load(C + i * ldc + 4 * j) : all(0.0);
    for (int k = k0; k < k1; k++) {
        Four b[VECTORS];
        for (int j = 0; j < VECTORS; j++) b[j] = load(B + size_t(k) * ldb + 4 * j);
        for (int i = 0; i < ROWS; i++) {
            Four a = all(TRANSPOSED ? A[size_t(k) * lda + i] : A[i * lda + k]);
            for (int j = 0; j < VECTORS; j++) c[i][j] += a * b[j];
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < VECTORS; j++) store(C + i * ldc + 4 * j, c[i][j]);
}

template <int VECTORS, bool TRANSPOSED>
static inline void tiles(int rows, const double *A, int lda, const double *B, int ldb, double *C, int ldc, int k0, int k1,
                         bool add) {
    switch (rows) {
        case 4: return tile<4, VECTORS, TRANSPOSED>(A, lda, B, ldb, C, ldc, k0, k1, add);
        case 3: return tile<3, VECTORS, TRANSPOSED>(A, lda, B, ldb, C, ldc, k0, k1, add);
        case 2: return tile<2, VECTORS, TRANSPOSED>(A, lda, B, ldb, C, ldc, k0, k1, add);
        default: return tile<1, VECTORS, TRANSPOSED>(A, lda, B, ldb, C, ldc, k0, k1, add);
    }
}

// Which k a tile needs, from the triangles that A and B are.
enum Range { ALL, UP_TO_COLUMN, UP_TO_ROW, FROM_ROW, FROM_LATER };

// C = (or +=) A B for A of rows×inner and B of inner×columns; `half`: only tiles that reach the upper triangle of C.
template <bool TRANSPOSED>
static void product(int rows, int columns, int inner, const double *A, int lda, const double *B, int ldb, double *C,
                    int ldc, Range range = ALL, bool half = false, bool add = false) {
    int width = padded(columns);
    for (int j = 0; j < width; j += 12) {
        int wide = std::min(12, width - j);
        for (int i = 0; i < rows && !(half && i >= j + wide); i += 4) {
            int high = std::min(4, rows - i);
            int k0 = range == FROM_ROW ? i : range == FROM_LATER ? std::max(i, j) : 0;
            int k1 = range == UP_TO_COLUMN ? j + wide : range == UP_TO_ROW ? i + high : inner;
            k1 = std::min(inner, k1);
            const double *a = TRANSPOSED ? A + i : A + size_t(i) * lda;
            double *c = C + size_t(i) * ldc + j;
            if (wide == 12) tiles<3, TRANSPOSED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, add);
            else if (wide == 8) tiles<2, TRANSPOSED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, add);
            else tiles<1, TRANSPOSED>(high, a, lda, B + j, ldb, c, ldc, k0, k1, add);
        }
    }
}

static inline double dot(const double *a, const double *b, int n) {
    Four s = all(0.0), t = all(0.0);
    int i = 0;
    for (; i + 8 <= n; i += 8) s += load(a + i) * load(b + i), t += load(a + i + 4) * load(b + i + 4);
    double rest = sum(s + t);
    for (; i < n; i++) rest += a[i] * b[i];
    return rest;
}

// y += f x from index `from` to `to`
static inline void axpy(double f, const double *x, double *y, int from, int to) {
    int i = from;
    for (; i + 4 <= to; i += 4) store(y + i, load(y + i) + f * load(x + i));
    for (; i < to; i++) y[i] += f * x[i];
}

static void mirror(double *A, int m, int ld) {  // the upper triangle into the lower
    for (int i = 1; i < m; i++)
        for (int j = 0; j < i; j++) A[size_t(i) * ld + j] = A[size_t(j) * ld + i];
}

static void transpose(const double *A, double *B, int m, int ld) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) B[size_t(j) * ld + i] = A[size_t(i) * ld + j];
}

constexpr int BLOCK = 128;  // samples worked on at a time: a block of Kxu stays in the second cache

struct Loops {
    Array one, two;
    explicit Loops(int M) : one(size_t(padded(M)) * padded(M)), two(size_t(padded(M)) * padded(M)) {}
    static constexpr int block = BLOCK;

    // C (n×m) = X (n×D) Uᵀ, with Ut = Uᵀ (D×m)
    void gram(int n, int m, int D, const double *X, const double *, const double *Ut, double *C, int ld) {
        product<false>(n, m, D, X, D, Ut, ld, C, ld);
    }
    // Phi += Kᵀ K, upper triangle, for K (n×m)
    void add_square(int n, int m, const double *K, double *Phi, int ld) {
        product<true>(m, m, n, K, ld, K, ld, Phi, ld, ALL, true, true);
    }
    // G (n×m) = K (n×m) S
    void times(int n, int m, const double *K, const double *S, double *G, int ld) {
        product<false>(n, m, m, K, ld, S, ld, G, ld);
    }
    // R with RᵀR = A, in place; false if there is none
    bool factor(int m, double *A, int ld) {
        for (int j = 0; j < m; j++) {
            double *row = A + size_t(j) * ld;
            if (!(row[j] > 0.0)) return false;
            double f = 1.0 / std::sqrt(row[j]);
            for (int i = j; i < m; i++) row[i] *= f;
            for (int i = j + 1; i < m; i++) axpy(-row[i], row, A + size_t(i) * ld, i, m);
        }
        return true;
    }
    // V = R⁻¹; below the diagonal zeros
    void invert(int m, const double *R, double *V, int ld) {
        for (int i = m - 1; i >= 0; i--) {
            double *row = V + size_t(i) * ld;
            const double *r = R + size_t(i) * ld;
            double f = 1.0 / r[i];
            for (int j = 0; j < ld; j++) row[j] = 0.0;
            for (int k = i + 1; k < m; k++) axpy(-f * r[k], V + size_t(k) * ld, row, k, m);
            row[i] = f;
        }
    }
    // S = Vᵀ Phi V, all of it
    void inside(int m, const double *V, const double *Phi, double *S, int ld) {
        product<false>(m, m, m, Phi, ld, V, ld, one, ld, UP_TO_COLUMN);
        product<true>(m, m, m, V, ld, one, ld, S, ld, UP_TO_ROW, true);
        mirror(S, m, ld);
    }
    // Q = V S
    void left(int m, const double *V, const double *S, double *Q, int ld) {
        product<false>(m, m, m, V, ld, S, ld, Q, ld, FROM_ROW);
    }
    // D = V A Vᵀ, all of it, for a symmetric A
    void outside(int m, const double *V, const double *A, double *D, int ld) {
        transpose(V, two, m, ld);
        product<false>(m, m, m, V, ld, A, ld, one, ld, FROM_ROW);
        product<false>(m, m, m, one, ld, two, ld, D, ld, FROM_LATER, true);
        mirror(D, m, ld);
    }
    // A = V Vᵀ, all of it
    void square(int m, const double *V, double *A, int ld) {
        transpose(V, two, m, ld);
        product<true>(m, m, m, two, ld, two, ld, A, ld, FROM_LATER, true);
        mirror(A, m, ld);
    }
};

// ---- matrix products by a BLAS: row-major is column-major of the transpose, so R is L there --------------------------

struct Blas {
    typedef const char *Letter;
    typedef const int *Int;
    typedef const double *In;
    typedef double *Out;
    void (*gemm)(Letter, Letter, Int, Int, Int, In, In, Int, In, Int, In, Out, Int);
    void (*syrk)(Letter, Letter, Int, Int, In, In, Int, In, Out, Int);
    void (*symm)(Letter, Letter, Int, Int, In, In, Int, In, Int, In, Out, Int);
    void (*trmm)(Letter, Letter, Letter, Letter, Int, Int, In, In, Int, Out, Int);
    void (*potrf)(Letter, Int, Out, Int, int *);
    void (*trtri)(Letter, Letter, Int, Out, Int, int *);
    void (*lauum)(Letter, Int, Out, Int, int *);
    double zero = 0.0, one = 1.0;
    static constexpr int block = 1 << 30;

    template <typename F>
    static void find(void *library, const std::string &prefix, const char *name, F &f) {
        f = reinterpret_cast<F>(dlsym(library, (prefix + name).c_str()));
        if (!f) std::fprintf(stderr, "no %s in the BLAS\n", name), std::exit(2);
    }
    Blas(const char *path, const std::string &prefix) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
        find(library, prefix, "dgemm_", gemm), find(library, prefix, "dsyrk_", syrk);
        find(library, prefix, "dsymm_", symm), find(library, prefix, "dtrmm_", trmm);
        find(library, prefix, "dpotrf_", potrf), find(library, prefix, "dtrtri_", trtri);
        find(library, prefix, "dlauum_", lauum);
    }
    void gram(int n, int m, int D, const double *X, const double *U, const double *, double *C, int ld) {
        gemm("T", "N", &m, &n, &D, &one, U, &D, X, &D, &zero, C, &ld);
    }
    void add_square(int n, int m, const double *K, double *Phi, int ld) {
        syrk("L", "N", &m, &n, &one, K, &ld, &one, Phi, &ld);
    }
    void times(int n, int m, const double *K, const double *S, double *G, int ld) {
        symm("L", "L", &m, &n, &one, S, &ld, K, &ld, &zero, G, &ld);
    }
    bool factor(int m, double *A, int ld) {
        int info;
        potrf("L", &m, A, &ld, &info);
        return info == 0;
    }
    void invert(int m, const double *R, double *V, int ld) {
        int info;
        for (int i = 0; i < m; i++)
            for (int j = 0; j < ld; j++) V[size_t(i) * ld + j] = j < i || j >= m ? 0.0 : R[size_t(i) * ld + j];
        trtri("L", "N", &m, V, &ld, &info);
    }
    void inside(int m, const double *V, const double *Phi, double *S, int ld) {
        std::memcpy(S, Phi, sizeof(double) * m * ld);
        trmm("L", "L", "N", "N", &m, &m, &one, V, &ld, S, &ld);
        trmm("R", "L", "T", "N", &m, &m, &one, V, &ld, S, &ld);
    }
    void left(int m, const double *V, const double *S, double *Q, int ld) {
        std::memcpy(Q, S, sizeof(double) * m * ld);
        trmm("R", "L", "N", "N", &m, &m, &one, V, &ld, Q, &ld);
    }
    void outside(int m, const double *V, const double *A, double *D, int ld) {
        std::memcpy(D, A, sizeof(double) * m * ld);
        trmm("L", "L", "T", "N", &m, &m, &one, V, &ld, D, &ld);
        trmm("R", "L", "N", "N", &m, &m, &one, V, &ld, D, &ld);
    }
    void square(int m, const double *V, double *A, int ld) {
        int info;
        std::memcpy(A, V, sizeof(double) * m * ld);
        lauum("L", &m, A, &ld, &info);
        mirror(A, m, ld);
    }
};

// ---- the model -------------------------------------------------------------------------------------------------------

struct Problem {
    int M, T, D, N, m;  // most inducing points, window, inputs, samples that arrive, inducing points at first
    double decay, rate, threshold, jitter, lengthscale, variance, noise;
    std::vector<double> X, y, w, U, X_new, y_new;
};

template <class Products>
struct Model {
    Products &by;
    int M, T, D, ld, m, cursor = 0;
    double decay, rate, threshold, jitter, lengthscale, variance, noise;
    Array X, y, w, xx, U, Ut;             // xx: squared lengths
    Array Kxu, R2, part, G;               // T×M: the Gram matrix and its distances; a block of √w Kxu; dΦ Kxu
    Array Kuu, R2uu, Phi, b;              // M×M, M
    Array R, V, S, RB, VB, Binverse, Q, dPhi, dKuu, white;
    Array k, r2, a, a_old, c, alpha, white_b, relevance, inverse_diagonal, db, ab, centre;
    double n = 0, yy = 0, kappa = 0;
    // gradient: in log lengthscale, log variance, log noise and the newest point
    double d_lengthscale = 0, d_variance = 0, d_noise = 0;
    Array d_point;

    Model(const Problem &p, Products &by)
        : by(by), M(p.M), T(p.T), D(p.D), ld(padded(p.M)), m(p.m), decay(p.decay), rate(p.rate), threshold(p.threshold),
          jitter(p.jitter), lengthscale(p.lengthscale), variance(p.variance), noise(p.noise), X(size_t(T) * D), y(T), w(T),
          xx(T),
          U(size_t(M) * D), Ut(size_t(D) * ld), Kxu(size_t(T) * ld), R2(size_t(T) * ld), part(size_t(T) * ld),
          G(size_t(T) * ld),
          Kuu(size_t(ld) * ld), R2uu(size_t(ld) * ld), Phi(size_t(ld) * ld), b(ld), R(size_t(ld) * ld), V(size_t(ld) * ld),
          S(size_t(ld) * ld), RB(size_t(ld) * ld), VB(size_t(ld) * ld), Binverse(size_t(ld) * ld), Q(size_t(ld) * ld),
          dPhi(size_t(ld) * ld), dKuu(size_t(ld) * ld), white(size_t(ld) * ld), k(ld), r2(ld), a(ld), a_old(ld), c(ld),
          alpha(ld),
          white_b(ld), relevance(ld), inverse_diagonal(ld), db(ld), ab(ld), centre(D), d_point(D) {
        std::copy(p.X.begin(), p.X.end(), X.p), std::copy(p.y.begin(), p.y.end(), y.p);
        std::copy(p.w.begin(), p.w.end(), w.p), std::copy(p.U.begin(), p.U.end(), U.p);
        for (int t = 0; t < T; t++) xx[t] = dot(X + size_t(t) * D, X + size_t(t) * D, D);
        refresh();
    }

    // k(U, x) and its scaled distances
    void row(const double *x, double *k, double *r2) {
        double f = 1.0 / (lengthscale * lengthscale);
        for (int i = 0; i < ld; i++) r2[i] = 0.0;
        for (int d = 0; d < D; d++)
            for (int i = 0; i < ld; i += 4) {
                Four difference = x[d] - load(Ut + size_t(d) * ld + i);
                store(r2 + i, load(r2 + i) + difference * difference);
            }
        for (int i = 0; i < ld; i += 4) {
            Four r = f * load(r2 + i);
            store(r2 + i, r), store(k + i, variance * exponential(-0.5 * r));
        }
        for (int i = m; i < ld; i++) k[i] = r2[i] = 0.0;
    }

    void predict(const double *x, double *mean, double *var) {
        row(x, k, r2);
        *mean = dot(k, alpha, m);
        project(k, a);  // L⁻¹ k
        for (int i = 0; i < m; i++) c[i] = a[i];
        solve(RB, c);  // L_B⁻¹ L⁻¹ k
        *var = std::max(variance - dot(a, a, m) + dot(c, c, m), 0.0) + noise;
    }
    // Vᵀ v
    void project(const double *v, double *out) {
        for (int i = 0; i < ld; i++) out[i] = 0.0;
        for (int j = 0; j < m; j++) axpy(v[j], V + size_t(j) * ld, out, j, m);
    }
    // V v
    void raise(const double *v, double *out) {
        for (int i = 0; i < m; i++) out[i] = dot(V + size_t(i) * ld + i, v + i, m - i);
    }
    // L⁻¹ v for L = Rᵀ, and L⁻ᵀ v
    void solve(const double *R, double *v) {
        for (int j = 0; j < m; j++) {
            v[j] /= R[size_t(j) * ld + j];
            axpy(-v[j], R + size_t(j) * ld, v, j + 1, m);
        }
    }
    void solve_back(const double *R, double *v) {
        for (int j = m - 1; j >= 0; j--) {
            const double *r = R + size_t(j) * ld;
            v[j] = (v[j] - dot(r + j + 1, v + j + 1, m - j - 1)) / r[j];
        }
    }

    // Time passes, the oldest sample goes, the new one comes; k is that of predict.
    void observe(const double *x, double target) {
        for (int t = 0; t < T; t++) w[t] *= decay;
        double *old = Kxu + size_t(cursor) * ld, gone = w[cursor];
        project(old, a_old);
        for (int i = 0; i < m; i++) {
            double *phi = Phi + size_t(i) * ld, *s = S + size_t(i) * ld;
            Four ki = all(k[i]), oi = all(gone * old[i]), ai = all(a[i]), bi = all(gone * a_old[i]);
            for (int j = 0; j < ld; j += 4) {
                store(phi + j, decay * load(phi + j) + ki * load(k + j) - oi * load(old + j));
                store(s + j, decay * load(s + j) + ai * load(a + j) - bi * load(a_old + j));
            }
            b[i] = decay * b[i] + k[i] * target - gone * old[i] * y[cursor];
        }
        n = decay * n + 1.0 - gone;
        yy = decay * yy + target * target - gone * y[cursor] * y[cursor];
        kappa = variance * n;
        for (int i = 0; i < ld; i++) old[i] = k[i], R2[size_t(cursor) * ld + i] = r2[i];
        for (int d = 0; d < D; d++) X[size_t(cursor) * D + d] = x[d];
        y[cursor] = target, w[cursor] = 1.0, xx[cursor] = dot(x, x, D);
        cursor = (cursor + 1) % T;
    }

    // Σ w (Kuu⁻¹ k)² / diag Kuu⁻¹ = diag(V S Vᵀ) / diag(V Vᵀ)
    void find_relevance() {
        by.left(m, V, S, Q, ld);
        for (int i = 0; i < m; i++) {
            const double *v = V + size_t(i) * ld + i;
            relevance[i] = dot(Q + size_t(i) * ld + i, v, m - i) / dot(v, v, m - i);
        }
    }

    // Points below the threshold go, and the weakest until one slot is free.
    void prune() {
        double largest = *std::max_element(relevance.p, relevance.p + m);
        for (int i = m - 1; i >= 0; i--)
            if (relevance[i] < threshold * largest) remove(i);
        if (m == M) remove(int(std::min_element(relevance.p, relevance.p + m) - relevance.p));
    }
    // The last point takes the place of point i.
    void remove(int i) {
        m--;
        relevance[i] = relevance[m];
        for (int d = 0; d < D; d++) {
            U[size_t(i) * D + d] = U[size_t(m) * D + d];
            Ut[size_t(d) * ld + i] = Ut[size_t(d) * ld + m];
        }
        for (int t = 0; t < T; t++) {
            double *kt = Kxu + size_t(t) * ld, *rt = R2 + size_t(t) * ld;
            kt[i] = kt[m], rt[i] = rt[m], kt[m] = rt[m] = 0.0;
        }
        for (double *A : {Kuu.p, R2uu.p, Phi.p}) {
            for (int j = 0; j <= m; j++) A[size_t(i) * ld + j] = A[size_t(m) * ld + j];
            for (int j = 0; j <= m; j++) A[size_t(j) * ld + i] = A[size_t(j) * ld + m];
            for (int j = 0; j <= m; j++) A[size_t(m) * ld + j] = A[size_t(j) * ld + m] = 0.0;
        }
        b[i] = b[m], b[m] = 0.0;
    }

    // x becomes the last point: a row of Kuu, of Φ and of b, a column of Kxu.
    void admit(const double *x) {
        double f = 1.0 / (lengthscale * lengthscale);
        int q = m++;
        for (int d = 0; d < D; d++) U[size_t(q) * D + d] = Ut[size_t(d) * ld + q] = x[d];
        row(x, k, r2);  // k(U, x), x itself among them
        for (int i = 0; i < m; i++) {
            Kuu[size_t(i) * ld + q] = Kuu[size_t(q) * ld + i] = k[i];
            R2uu[size_t(i) * ld + q] = R2uu[size_t(q) * ld + i] = r2[i];
        }
        Kuu[size_t(q) * ld + q] = variance * (1.0 + jitter);
        double *phi = Phi + size_t(q) * ld, xy = 0.0;
        for (int i = 0; i < ld; i++) phi[i] = 0.0;
        for (int t0 = 0; t0 < T; t0 += 4) {
            double distance[4] = {0, 0, 0, 0}, value[4];
            int count = std::min(4, T - t0);
            for (int s = 0; s < count; s++) {
                const double *xt = X + size_t(t0 + s) * D;
                double total = 0.0;
                for (int d = 0; d < D; d++) total += (xt[d] - x[d]) * (xt[d] - x[d]);
                distance[s] = f * total;
            }
            store(value, variance * exponential(-0.5 * load(distance)));
            for (int s = 0; s < count; s++) {
                int t = t0 + s;
                double *kt = Kxu + size_t(t) * ld;
                kt[q] = value[s], R2[size_t(t) * ld + q] = distance[s];
                xy += w[t] * value[s] * y[t];
                axpy(w[t] * value[s], kt, phi, 0, ld);
            }
        }
        for (int i = 0; i < m; i++) Phi[size_t(i) * ld + q] = phi[i];
        b[q] = xy;
    }

    // L, V, S, L_B of Kuu and Φ
    bool factorise() {
        std::memcpy(R, Kuu, sizeof(double) * m * ld);
        if (!by.factor(m, R, ld)) return false;
        by.invert(m, R, V, ld);
        by.inside(m, V, Phi, S, ld);
        project(b, white_b);
        return factorise_B();
    }
    bool factorise_B() {
        double beta = 1.0 / noise;
        for (int i = 0; i < m; i++) {
            for (int j = i / 4 * 4; j < ld; j += 4) store(RB + size_t(i) * ld + j, beta * load(S + size_t(i) * ld + j));
            RB[size_t(i) * ld + i] += 1.0;
        }
        return by.factor(m, RB, ld);
    }

    // ∂F, from the factors of the present points
    void differentiate() {
        double beta = 1.0 / noise, trace = 0.0;
        by.invert(m, RB, VB, ld);
        by.square(m, VB, Binverse, ld);
        for (int i = 0; i < m; i++) ab[i] = dot(Binverse + size_t(i) * ld, white_b, m);
        for (int i = 0; i < m; i++) {
            const double *s = S + size_t(i) * ld;
            double *left = Binverse + size_t(i) * ld, *phi = white + size_t(i) * ld, *uu = Q + size_t(i) * ld;
            for (int j = 0; j < m; j++) left[j] = -left[j];
            left[i] += 1.0;
            trace += dot(left, s, m);
            double f = beta * beta * ab[i];
            for (int j = 0; j < ld; j += 4) {
                Four l = load(left + j), aa = f * load(ab + j);
                store(phi + j, 0.5 * beta * (l - aa)), store(uu + j, 0.5 * (l - aa - beta * load(s + j)));
            }
        }
        by.outside(m, V, white, dPhi, ld);
        by.outside(m, V, Q, dKuu, ld);
        raise(ab, db);
        for (int i = 0; i < m; i++) db[i] *= beta * beta;
        double quadratic = dot(ab, white_b, m) + dot(ab, ab, m);
        d_noise = -0.5 * beta * (n / beta - yy - kappa + trace + beta * quadratic);
        through_Kuu();
        through_Kxu();
        d_variance -= 0.5 * beta * kappa;
    }
    void through_Kuu() {
        Four length = all(0.0), scale = all(0.0);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < ld; j += 4) {  // beyond m, Kuu is zero
                Four dk = load(dKuu + size_t(i) * ld + j) * load(Kuu + size_t(i) * ld + j);
                scale += dk, length += dk * load(R2uu + size_t(i) * ld + j);
            }
        d_variance = sum(scale), d_lengthscale = sum(length);
        int q = m - 1;
        for (int d = 0; d < D; d++) {
            const double *u = Ut + size_t(d) * ld, *g = dKuu + size_t(q) * ld, *kq = Kuu + size_t(q) * ld;
            double total = 0.0;
            for (int j = 0; j < q; j++) total += g[j] * kq[j] * (u[j] - u[q]);
            d_point[d] = 2.0 * total;
        }
    }
    // ∂F/∂Kxu = W (2 Kxu ∂F/∂Φ + y ∂F/∂bᵀ), never kept for more than a block
    void through_Kxu() {
        Four length = all(0.0), scale = all(0.0);
        int q = m - 1;
        for (int t0 = 0; t0 < T; t0 += by.block) {
            int count = std::min(by.block, T - t0);
            by.times(count, m, Kxu + size_t(t0) * ld, dPhi, G, ld);
            for (int s = 0; s < count; s++) {
                int t = t0 + s;
                const double *g = G + size_t(s) * ld, *kt = Kxu + size_t(t) * ld, *rt = R2 + size_t(t) * ld;
                Four wt = all(2.0 * w[t]), wy = all(w[t] * y[t]);
                for (int j = 0; j < ld; j += 4) {  // beyond m, Kxu is zero
                    Four dk = (wt * load(g + j) + wy * load(db + j)) * load(kt + j);
                    scale += dk, length += dk * load(rt + j);
                }
                double dk = (2.0 * w[t] * g[q] + w[t] * y[t] * db[q]) * kt[q];
                for (int d = 0; d < D; d++) d_point[d] += dk * (X[size_t(t) * D + d] - U[size_t(q) * D + d]);
            }
        }
        d_variance += sum(scale), d_lengthscale += sum(length);
        for (int d = 0; d < D; d++) d_point[d] /= lengthscale * lengthscale;
    }

    // The first step of Adam, in the logarithms and in the newest point
    double step(double gradient) const { return rate * gradient / (std::fabs(gradient) + 1e-8); }
    void climb() {
        double floor = jitter * variance;
        lengthscale *= std::exp(step(d_lengthscale)), variance *= std::exp(step(d_variance));
        noise = std::max(noise * std::exp(step(d_noise)), floor);
        for (int d = 0; d < D; d++) U[size_t(m - 1) * D + d] += step(d_point[d]);
    }

    // Gram matrices and statistics at the present parameters, then the posterior
    void refresh() {
        fill_gram();
        factorise();
        posterior();
    }
    void posterior() {
        double beta = 1.0 / noise;
        for (int i = 0; i < m; i++) c[i] = beta * white_b[i];
        solve(RB, c), solve_back(RB, c);
        raise(c, alpha);
    }
    void fill_gram() {
        double f = 1.0 / (lengthscale * lengthscale);
        double uu[4096];
        for (int i = 0; i < m; i++) {
            uu[i] = dot(U + size_t(i) * D, U + size_t(i) * D, D);
            for (int d = 0; d < D; d++) Ut[size_t(d) * ld + i] = U[size_t(i) * D + d];
        }
        for (int i = m; i < ld; i++) uu[i] = 0.0;
        for (int i = 0; i < m; i++) std::memset(Phi + size_t(i) * ld, 0, sizeof(double) * ld);
        for (int i = 0; i < ld; i++) b[i] = 0.0;
        n = yy = 0.0;
        for (int t0 = 0; t0 < T; t0 += by.block) {
            int count = std::min(by.block, T - t0);
            double *r = R2 + size_t(t0) * ld;
            by.gram(count, m, D, X + size_t(t0) * D, U, Ut, r, ld);
            for (int s = 0; s < count; s++) {
                int t = t0 + s;
                double *rt = r + size_t(s) * ld, *kt = Kxu + size_t(t) * ld, *pt = part + size_t(s) * ld;
                Four root = all(std::sqrt(w[t])), wy = all(w[t] * y[t]), length = all(xx[t]);
                for (int j = 0; j < ld; j += 4) {
                    Four distance = f * (length + load(uu + j) - 2.0 * load(rt + j));
                    distance = distance > 0.0 ? distance : all(0.0);
                    store(rt + j, distance), store(kt + j, variance * exponential(-0.5 * distance));
                }
                for (int j = m; j < ld; j++) kt[j] = rt[j] = 0.0;
                for (int j = 0; j < ld; j += 4) {
                    Four value = load(kt + j);
                    store(pt + j, root * value), store(b + j, load(b + j) + wy * value);
                }
                n += w[t], yy += w[t] * y[t] * y[t];
            }
            by.add_square(count, m, part, Phi, ld);
        }
        mirror(Phi, m, ld);
        kappa = variance * n;
        product<false>(m, m, D, U, D, Ut, ld, R2uu, ld);
        for (int i = 0; i < m; i++) {
            double *r = R2uu + size_t(i) * ld, *kk = Kuu + size_t(i) * ld;
            for (int j = 0; j < ld; j += 4) {
                Four distance = f * (uu[i] + load(uu + j) - 2.0 * load(r + j));
                distance = distance > 0.0 ? distance : all(0.0);
                store(r + j, distance), store(kk + j, variance * exponential(-0.5 * distance));
            }
            r[i] = 0.0, kk[i] = variance * (1.0 + jitter);
            for (int j = m; j < ld; j++) r[j] = kk[j] = 0.0;
        }
    }

    // ---- the three kinds of step

    void agp(const double *x, double target, double *mean, double *var) {
        predict(x, mean, var);
        observe(x, target);
        find_relevance(), prune();
        admit(x);
        if (factorise()) differentiate(), climb();
        fill_gram();
        factorise(), posterior();
    }
    void bare() {
        fill_gram();
        factorise();
        differentiate();
    }

    // Algorithm 1 while the points stay: S and the relevances follow each sample, and only L_B is factorised anew.
    void fast(const double *x, double target, double *mean, double *var) {
        double beta = 1.0 / noise;
        row(x, k, r2);
        project(k, a);
        for (int i = 0; i < m; i++) c[i] = a[i];
        solve(RB, c);
        *mean = dot(c, alpha, m);  // alpha is L_B⁻¹ β L⁻¹ b here
        *var = std::max(variance - dot(a, a, m) + dot(c, c, m), 0.0) + noise;

        double *old = Kxu + size_t(cursor) * ld, gone = weight_at_the_end, leaving = y[cursor];
        project(old, a_old);
        raise(a, db), raise(a_old, ab);  // Kuu⁻¹ k of both
        double trace = 0.0, largest = 0.0, weakest = HUGE_VAL;
        for (int i = 0; i < m; i++) {
            double *s = S + size_t(i) * ld;
            Four ai = all(a[i]), bi = all(gone * a_old[i]);
            for (int j = i / 4 * 4; j < ld; j += 4)
                store(s + j, decay * load(s + j) + ai * load(a + j) - bi * load(a_old + j));
            white_b[i] = decay * white_b[i] + a[i] * target - gone * a_old[i] * leaving;
            relevance[i] = decay * relevance[i] + db[i] * db[i] - gone * ab[i] * ab[i];
            double share = relevance[i] / inverse_diagonal[i];
            trace += s[i], largest = std::max(largest, share), weakest = std::min(weakest, share);
        }
        n = decay * n + 1.0 - gone;
        yy = decay * yy + target * target - gone * leaving * leaving;
        kappa = variance * n;
        exchanges += kappa - trace > kappa / T || weakest < threshold * largest;
        for (int i = 0; i < ld; i++) old[i] = k[i];
        for (int d = 0; d < D; d++) X[size_t(cursor) * D + d] = x[d];
        y[cursor] = target;
        cursor = (cursor + 1) % T;

        factorise_B();
        for (int i = 0; i < m; i++) alpha[i] = beta * white_b[i];
        solve(RB, alpha);
    }
    double weight_at_the_end = 0, exchanges = 0;
    void begin_fast() {
        by.left(m, V, S, Q, ld);
        for (int i = 0; i < m; i++) {
            const double *v = V + size_t(i) * ld + i;
            relevance[i] = dot(Q + size_t(i) * ld + i, v, m - i), inverse_diagonal[i] = dot(v, v, m - i);
        }
        weight_at_the_end = w[cursor] * decay;
        for (int i = 0; i < m; i++) alpha[i] = white_b[i] / noise;
        solve(RB, alpha);
    }
};

// ---- reading, running, writing ---------------------------------------------------------------------------------------

// CPU time of this process, which other processes change little
static double now() { return double(std::clock()) / CLOCKS_PER_SEC; }

static std::vector<double> take(std::FILE *file, size_t n) {
    std::vector<double> values(n);
    if (std::fread(values.data(), sizeof(double), n, file) != n) {
        std::fprintf(stderr, "the problem is too short\n");
        std::exit(2);
    }
    return values;
}

template <class Products>
static void run(const Problem &p, const std::string &mode, int repeats, Products &by) {
    std::vector<double> out, seconds;
    for (int r = 0; r < repeats; r++) {
        Model<Products> model(p, by);
        std::vector<double> mean(p.N), var(p.N);
        if (mode == "fast") model.begin_fast();
        double start = now();
        for (int i = 0; i < p.N; i++) {
            const double *x = &p.X_new[size_t(i) * p.D];
            if (mode == "agp") model.agp(x, p.y_new[i], &mean[i], &var[i]);
            else if (mode == "fast") model.fast(x, p.y_new[i], &mean[i], &var[i]);
            else model.bare();
        }
        seconds.push_back((now() - start) / p.N);
        if (r + 1 < repeats) continue;
        out = {model.d_lengthscale, model.d_variance, model.d_noise,   model.lengthscale,
               model.variance,      model.noise,      double(model.m), model.exchanges};
        out.insert(out.end(), model.d_point.p, model.d_point.p + p.D);
        out.insert(out.end(), mean.begin(), mean.end()), out.insert(out.end(), var.begin(), var.end());
    }
    std::fwrite(seconds.data(), sizeof(double), seconds.size(), stdout);
    std::fwrite(out.data(), sizeof(double), out.size(), stdout);
}

int main(int count, char **arguments) {
    if (count != 3 && count != 5) {
        std::fprintf(stderr, "limit agp|bare|fast REPEATS [BLAS PREFIX] < problem > answer\n");
        return 2;
    }
    std::string mode = arguments[1];
    int repeats = std::atoi(arguments[2]);
    std::vector<double> head = take(stdin, 12);
    Problem p;
    p.M = int(head[0]), p.T = int(head[1]), p.D = int(head[2]), p.N = int(head[3]), p.m = int(head[4]);
    p.decay = head[5], p.rate = head[6], p.threshold = head[7], p.jitter = head[8];
    p.lengthscale = head[9], p.variance = head[10], p.noise = head[11];
    p.X = take(stdin, size_t(p.T) * p.D), p.y = take(stdin, p.T), p.w = take(stdin, p.T);
    p.U = take(stdin, size_t(p.M) * p.D);
    p.X_new = take(stdin, size_t(p.N) * p.D), p.y_new = take(stdin, p.N);
    if (count == 5) {
        Blas by(arguments[3], arguments[4]);
        run(p, mode, repeats, by);
    } else {
        Loops by(p.M);
        run(p, mode, repeats, by);
    }
    return 0;
}
