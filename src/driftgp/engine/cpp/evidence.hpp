// Features of a sparse regression on fixed points, and the bound of some rows: the twin of members/evidence.py.
//
// Matrices are row-major with rows padded to whole vectors, as in products.hpp; points are columns of Z (D×M).

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

constexpr double POINT_JITTER = 1e-6;  // as in evidence.py

// Hyperparameters as they enter the kernel.
struct Hyperparameters {
    int D;
    double variance, noise;
    const double *inverse_square, *linear;  // 1/ℓ² and √v, D each

    static int numbers(int D) { return 2 * D + 2; }
    // As `put` has left them.
    Hyperparameters(int D, const double *numbers)
        : D(D), variance(numbers[2 * D]), noise(numbers[2 * D + 1]), inverse_square(numbers), linear(numbers + D) {}
    void put(double *numbers) const {
        std::copy_n(inverse_square, D, numbers), std::copy_n(linear, D, numbers + D);
        numbers[2 * D] = variance, numbers[2 * D + 1] = noise;
    }
    Hyperparameters(const double *theta, int D, Memory &memory) : D(D) {
        double *squares = memory.take(D), *roots = memory.take(D);
        for (int d = 0; d < D; d++) {
            squares[d] = std::exp(-2.0 * theta[d]);
            roots[d] = std::sqrt(std::exp(theta[D + 1 + d]));
        }
        inverse_square = squares, linear = roots;
        variance = std::exp(theta[D]), noise = std::exp(theta[2 * D + 1]);
    }
    // Several vectors of points at a time: one alone would wait for each sum before the next.
    template <int VECTORS>
    void near(const double *x, const double *Z, int apart, double *row) const {
        Vec r2[VECTORS];
        for (int v = 0; v < VECTORS; v++) r2[v] = Vec{};
        for (int d = 0; d < D; d++)
            for (int v = 0; v < VECTORS; v++) {
                Vec away = x[d] - load(Z + size_t(d) * apart + v * W);
                r2[v] += inverse_square[d] * (away * away);
            }
        for (int v = 0; v < VECTORS; v++) store(row + v * W, variance * exponential(-0.5 * r2[v]));
    }
    // k(x, Z) for m points, whose coordinates lie `apart` from each other; the rest of `row`, up to whole vectors, is
    // 0.
    void covariance(const double *x, const double *Z, int apart, int m, double *row) const {
        int j = 0;
        for (; j + 4 * W <= m; j += 4 * W) near<4>(x, Z + j, apart, row + j);
        switch ((m - j) / W) {
            case 3: near<3>(x, Z + j, apart, row + j); break;
            case 2: near<2>(x, Z + j, apart, row + j); break;
            case 1: near<1>(x, Z + j, apart, row + j); break;
            default: break;
        }
        for (j += (m - j) / W * W; j < m; j++) {
            double r2 = 0.0;
            for (int d = 0; d < D; d++) {
                double away = x[d] - Z[size_t(d) * apart + j];
                r2 += inverse_square[d] * (away * away);
            }
            row[j] = variance * std::exp(-0.5 * r2);
        }
        for (; j < padded(m); j++) row[j] = 0.0;
    }
};

static inline void prior_of(int D, double *mean, double *std) {
    for (int d = 0; d < D; d++) {
        mean[d] = 0.5 * std::log(double(D)) + 0.5, std[d] = 1.5;
        mean[D + 1 + d] = std::log(0.1 / D), std[D + 1 + d] = 2.0;
    }
    mean[D] = 0.0, std[D] = 2.0, mean[2 * D + 1] = std::log(0.1), std[2 * D + 1] = 2.0;
}

// m fixed points with their factor.
class FixedPoints {
    double *x_of(const double *Z, int apart, int j, double *x) const {
        for (int d = 0; d < p.D; d++) x[d] = Z[size_t(d) * apart + j];
        return x;
    }

    // W rows of L⁻¹ k at a time, which share what they load of k. A row ends at the diagonal.
    static void whiten(int i, const double *N, const double *k, double *near) {
        const double *row[W];
        Vec own[W], last = load(k + i);
        for (int r = 0; r < W; r++) row[r] = N + lower_row(i + r), own[r] = Vec{};
        for (int j = 0; j < i; j += W) {
            Vec at = load(k + j);
            for (int r = 0; r < W; r++) own[r] += load(row[r] + j) * at;
        }
        for (int r = 0; r < W; r++) own[r] += from_lane(Vec{}, r + 1, load(row[r] + i)) * last;
        store(near + i, sums(own));
    }

  public:
    const Hyperparameters &p;
    const double *Z;  // D×apart
    const int apart, m, ld;
    FixedPoints(const Hyperparameters &p, const double *Z, int apart, int m)
        : p(p), Z(Z), apart(apart), m(m), ld(padded(m)) {}

    // The upper triangle of k(Z, Z), jitter included.
    void gram(double *K, Memory &memory) const {
        Lease lease(memory);
        double *x = memory.take(p.D);
        for (int i = 0; i < m; i++) {
            int begin = i / W * W;
            p.covariance(x_of(Z, apart, i, x), Z + begin, apart, m - begin, K + size_t(i) * ld + begin);
            K[size_t(i) * ld + i] = p.variance * (1.0 + POINT_JITTER);
        }
    }
    // L⁻¹ of k(Z, Z), row after row up to the diagonal; false if the factorisation fails.
    bool factor(double *N, Memory &memory) const {
        Lease lease(memory);
        double *K = memory.zeros(size_t(m) * ld), *inverse = memory.take(size_t(m) * ld);
        gram(K, memory);
        if (!factorise(m, K, ld)) return false;
        invert(m, K, inverse, ld);
        for (int i = 0; i < m; i++) std::copy_n(inverse + size_t(i) * ld, i + 1, N + lower_row(i));
        std::fill(N + lower_row(m), N + lower_row(apart), 0.0);
        return true;
    }
    static size_t lower_row(int i) { return size_t(i) * (size_t(i) + 1) / 2; }
    // N as it lies in a record, with rows of whole vectors.
    double *spread(const double *N, Memory &memory) const {
        double *own = memory.zeros(size_t(m) * ld);
        for (int i = 0; i < m; i++) std::copy_n(N + lower_row(i), i + 1, own + size_t(i) * ld);
        return own;
    }
    double *turned(const double *N, Memory &memory) const {
        double *Nt = memory.zeros(size_t(m) * ld);
        for (int i = 0; i < m; i += W) {
            double *square = Nt + i;
            int high = std::min(W, m - i), j = 0;
            for (; high == W && j + W <= i + 1; j += W) {
                Vec r[W];
                for (int k = 0; k < W; k++) r[k] = load(N + lower_row(i + k) + j);
                exchange_quarters<W / 2>(r);
                for (int k = 0; k < W; k++) store(square + size_t(j + k) * ld, r[k]);
            }
            for (int k = 0; k < high; k++)
                for (int l = j; l <= i + k; l++) square[size_t(l) * ld + k] = N[lower_row(i + k) + l];
        }
        return Nt;
    }
    // Φ at one x: 1, √v x, L⁻¹ k(Z, x), and zeros up to F.
    void features(const double *x, const double *N, double *phi, int F, Memory &memory) const {
        Lease lease(memory);
        double *k = memory.zeros(ld);
        p.covariance(x, Z, apart, m, k);
        phi[0] = 1.0;
        for (int d = 0; d < p.D; d++) phi[1 + d] = p.linear[d] * x[d];
        double *near = phi + 1 + p.D;
        int i = 0;
        for (; i + W <= m; i += W) whiten(i, N, k, near);
        for (; i < m; i++) near[i] = loose_dot(N + lower_row(i), k, i + 1);
        std::fill(near + m, phi + F, 0.0);
    }
    // The same at several rows; K (rows×M) stays for the caller. `Nt` is Lᵀ⁻¹.
    void features(const double *const *rows, int count, const double *Nt, double *K, double *near, double *Phi, int F,
                  int ldF) const {
        for (int i = 0; i < count; i++) p.covariance(rows[i], Z, apart, m, K + size_t(i) * ld);
        product<false>(count, m, m, K, ld, Nt, ld, near, ld, FIRST, TO_COLUMN);
        for (int i = 0; i < count; i++) {
            double *phi = Phi + size_t(i) * ldF;
            std::fill_n(phi, ldF, 0.0);
            phi[0] = 1.0;
            for (int d = 0; d < p.D; d++) phi[1 + d] = p.linear[d] * rows[i][d];
            std::copy_n(near + size_t(i) * ld, std::min(m, F - 1 - p.D), phi + 1 + p.D);
        }
    }
    // Adds Σ_ij W_ij (x_id − z_jd)²/ℓ_d² for each input d, for some rows x_i, and returns Σ_ij W_ij. Rows of W are
    // padded.
    double add_by_lengthscale(const double *weights, const double *const *rows, int count, double *by,
                              Memory &memory) const {
        Lease lease(memory);
        int D = p.D, ldD = padded(D);
        double *X = memory.zeros(size_t(count) * ldD), *crossed = memory.zeros(size_t(D) * ld),
               *columns = memory.zeros(ld);
        double all = 0.0;
        for (int i = 0; i < count; i++) {
            const double *row = weights + size_t(i) * ld;
            std::copy_n(rows[i], D, X + size_t(i) * ldD);
            axpy(1.0, row, columns, 0, ld);
            double total = loose_dot(row, nullptr, m);
            all += total;
            for (int d = 0; d < D; d++) by[d] += total * rows[i][d] * rows[i][d] * p.inverse_square[d];
        }
        product<true>(D, m, count, X, ldD, weights, ld, crossed, ld);  // Xᵀ W
        for (int d = 0; d < D; d++) {
            const double *z = Z + size_t(d) * apart, *cross = crossed + size_t(d) * ld;
            double s = 0.0;
            for (int j = 0; j < m; j++) s += z[j] * (columns[j] * z[j] - 2.0 * cross[j]);
            by[d] += s * p.inverse_square[d];
        }
        return all;
    }
    // The same for all pairs of points.
    double add_between(const double *weights, double *by, Memory &memory) const {
        Lease lease(memory);
        double *turned = memory.take(size_t(m) * p.D);
        const double **rows = reinterpret_cast<const double **>(memory.take(m));
        for (int i = 0; i < m; i++) rows[i] = x_of(Z, apart, i, turned + size_t(i) * p.D);
        return add_by_lengthscale(weights, rows, m, by, memory);
    }
};

// A⁻¹ over A, all of it, for a matrix whose upper triangle is there; the logarithm of its determinant, or NaN.
static double inverse_of(int F, double *A, int ld, Memory &memory) {
    Lease lease(memory);
    if (!factorise(F, A, ld)) return std::numeric_limits<double>::quiet_NaN();
    double log_determinant = 0.0, *N = memory.take(size_t(F) * ld);
    for (int i = 0; i < F; i++) log_determinant += 2.0 * std::log(A[size_t(i) * ld + i]);
    invert(F, A, N, ld);
    product<true>(F, F, F, N, ld, N, ld, A, ld, FROM_LATER, LAST, SET, true);
    mirror(A, F, ld);
    return log_determinant;
}

}  // namespace DRIFTGP_LEVEL
