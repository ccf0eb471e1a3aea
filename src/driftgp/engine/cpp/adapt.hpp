// Algorithm 2, AGP: a gradient step on the bound, and the gradient.

#pragma once

#include "work.hpp"

namespace DRIFTGP_LEVEL {

inline void Work::adapt(const double *x) {
    open();
    // Algorithm 2, remove useless inducing points and limit set size to M − 1
    double *relevances = memory.zeros(ld), *inverse = memory.zeros(ld);
    int *kept = memory.wholes(ld);
    if (rules.rule != BY_DIAGONAL) inside(m, N, Phi, S, one, two, ld);
    relevance(relevances, inverse);
    keep(kept, survivors(relevances, M - 1, false, kept), m);
    // Algorithm 2, add a new inducing point
    look_at_samples();
    admit(x, K + size_t(m) * ldK);
    std::copy_n(x, D, state.U + size_t(m - 1) * D);
    take_points(true);
    renew();
    // Algorithm 2, update model parameters; the jitter is noise already, and the noise has no meaning below it
    double least = rules.jitter * *state.kappa / *state.n;
    climb();
    for (int p = 0; p < P && std::isfinite(least); p++) state.noise[p] = std::max(state.noise[p], least);
    // Algorithm 2, update predictive distribution with new parameters
    *state.repaired += refresh();
}

// All statistics but Φ from the window: a wild target that has left it leaves nothing behind.
inline void Work::renew() {
    double n = 0.0, *weighted = memory.zeros(ldT);
    for (int t = 0; t < T; t++) n += state.w[t];
    *state.n = n, *state.kappa = total_variance(n);
    for (int p = 0; p < P; p++) {
        double yy = 0.0;
        for (int t = 0; t < T; t++) {
            double y = state.y[size_t(t) * P + p];
            weighted[t] = state.w[t] * y, yy += weighted[t] * y;
        }
        state.yy[p] = yy;
        for (int i = 0; i < m; i++) b[size_t(p) * ld + i] = dot(K + size_t(i) * ldK, weighted, T);
    }
}

// Steps uphill in the logarithms of the parameters and, if they are fresh, in the newest point.
inline void Work::climb() {
    int count = rules.parameters(), H = rules.formula.parameters;
    bool moving = rules.step == FRESH;
    double *gradient = memory.zeros(count + D), *last = state.U + size_t(m - 1) * D;
    Adam carried(state.adam_mean, state.adam_square, *state.adam_steps), fresh(count, memory), newest(D, memory);
    Adam &adam = rules.step == CARRIED ? carried : fresh;
    double information = 0.5 * *state.n + (rules.prior > 0.0 ? 1.0 / (rules.prior * rules.prior) : 0.0);
    for (int64_t iteration = 0; iteration < rules.iterations; iteration++) {
        Lease lease(memory);
        if (iteration > 0) take_points(true), sums(true);
        if (!slope(gradient, moving ? m - 1 : m)) {  // and so would all the others be, from the same place
            *state.skipped += rules.iterations - iteration;
            break;
        }
        if (rules.step == SCALED) {
            for (int i = 0; i < count; i++)
                gradient[i] = std::min(std::max(gradient[i] / information, -rules.rate), rules.rate);
        } else {
            adam.step(gradient, count, rules.rate);
        }
        if (moving) {
            newest.step(gradient + count, D, rules.rate);
            for (int d = 0; d < D; d++) last[d] += gradient[count + d];
        }
        for (int i = 0; i < count; i++) {
            double &parameter = i < H ? state.theta[i] : state.noise[i - H];
            parameter = std::exp(std::min(std::max(std::log(parameter) + gradient[i], -WIDEST), WIDEST));
        }
    }
    if (rules.step == CARRIED) *state.adam_steps = carried.steps;
}

// ∂/∂log of F and the prior in all parameters, and ∂F in the points from `from` on; false if not finite.
inline bool Work::slope(double *gradient, int from) {
    int count = rules.parameters(), H = rules.formula.parameters, all = count + (m - from) * D;
    clear(gradient, all);
    bool finite = differentiate(gradient, gradient + count, from);
    for (int i = 0; i < count && rules.prior > 0.0; i++) {
        double here = i < H ? state.theta[i] / rules.formula.start[i] : state.noise[i - H] / rules.noise[i - H];
        gradient[i] -= std::log(here) / (rules.prior * rules.prior);
    }
    for (int i = 0; i < all; i++) finite &= bool(std::isfinite(gradient[i]));
    return finite;
}

// ∂F in the logarithms of kernel parameters and noise, and in points (bound.gradient, objective.Slope).
inline bool Work::differentiate(double *gradient, double *points, int from) {
    size_t square = size_t(ld) * ld;
    double *Kuu = memory.take(square), *white_Phi = memory.zeros(square), *white_uu = memory.zeros(square);
    double *inverse_B = memory.take(square), *white_b = memory.zeros(ld), *a = memory.zeros(ld);
    int inner = m + P, ld_d = padded(M + P);
    double *dPhi = memory.zeros(size_t(m) * ld_d);  // and ½ ∂F/∂b beside it
    fill_Kuu(Kuu);
    std::memcpy(R, Kuu, sizeof(double) * m * ld);
    if (!factorise(m, R, ld)) return false;
    invert(m, R, N, ld);
    inside(m, N, Phi, S, one, two, ld);
    double betas = 0.0;
    for (int p = 0; p < P; p++) {
        double beta = 1.0 / state.noise[p], trace = 0.0;
        betas += beta;
        fill_B(beta, one);
        if (!factorise(m, one, ld)) return false;
        invert(m, one, two, ld);
        product<true>(m, m, m, two, ld, two, ld, inverse_B, ld, FROM_LATER, LAST, SET, true);
        mirror(inverse_B, m, ld);
        for (int i = 0; i < m; i++) white_b[i] = dot(N + size_t(i) * ld, b + size_t(p) * ld, i + 1);
        for (int i = 0; i < m; i++) a[i] = dot(inverse_B + size_t(i) * ld, white_b, m);
        for (int i = 0; i < m; i++) {
            double *left = inverse_B + size_t(i) * ld;
            for (int j = 0; j < m; j += W) store(left + j, -load(left + j));
            left[i] += 1.0;
            for (int j = m; j < ld; j++) left[j] = 0.0;
            trace += dot(left, S + size_t(i) * ld, m);
            double f = beta * beta * a[i];
            for (int j = 0; j < m; j += W) {
                size_t at = size_t(i) * ld + j;
                Vec common = 0.5 * (load(left + j) - f * load(a + j));
                store(white_Phi + at, load(white_Phi + at) + beta * common);
                store(white_uu + at, load(white_uu + at) + common - 0.5 * beta * load(S + at));
            }
        }
        double quadratic = dot(a, white_b, m) + dot(a, a, m);
        gradient[rules.formula.parameters + p] =
            -0.5 * beta * (*state.n / beta - state.yy[p] - *state.kappa + trace + beta * quadratic);
        for (int j = 0; j < m; j++) {  // ½ ∂F/∂b = ½ β² Nᵀ a
            double total = 0.0;
            for (int i = j; i < m; i++) total += N[size_t(i) * ld + j] * a[i];
            dPhi[size_t(j) * ld_d + m + p] = 0.5 * beta * beta * total;
        }
    }
    double *dense = inverse_B, *dKuu = one;
    outside(m, N, white_Phi, dense, two, ld);
    for (int i = 0; i < m; i++) std::copy_n(dense + size_t(i) * ld, m, dPhi + size_t(i) * ld_d);
    outside(m, N, white_uu, dKuu, two, ld);
    through_Kuu(dKuu, Kuu, gradient, {from, points, 2.0});  // a point has a row and a column in it
    through_Kux(dPhi, ld_d, inner, gradient, {from, points, 1.0});
    double *weights = memory.zeros(ldT);
    for (int t = 0; t < T; t++) weights[t] = -0.5 * betas * state.w[t];
    kernel.pull_diagonal(true, weights, gradient);
    return true;
}

inline void Work::through_Kuu(const double *dKuu, const double *Kuu, double *gradient, const Moves &moves) {
    int block = kernel.ld;
    double trace = 0.0, *weights = memory.zeros(ld), *scratch = memory.take(size_t(m) * block);
    double *A = memory.take(size_t(m) * block), *K = memory.take(size_t(m) * block);
    for (int i = 0; i < m; i++) trace += dKuu[size_t(i) * ld + i];
    for (int i = 0; i < m; i++) weights[i] = rules.jitter * trace / m;
    for (int j0 = 0; j0 < m; j0 += BLOCK) {
        int count = std::min(BLOCK, m - j0);
        for (int i = 0; i < m; i++) {
            std::copy_n(dKuu + size_t(i) * ld + j0, count, A + size_t(i) * block);
            std::copy_n(Kuu + size_t(i) * ld + j0, count, K + size_t(i) * block);
            for (int j = count; j < padded(count); j++) A[size_t(i) * block + j] = K[size_t(i) * block + j] = 0.0;
            if (i >= j0 && i < j0 + count) K[size_t(i) * block + i - j0] = kernel.diagonal(state.U + size_t(i) * D);
        }
        kernel.pull(false, j0, count, A, K, scratch, gradient, moves);
    }
    kernel.pull_diagonal(false, weights, gradient);
}

// ∂F/∂Kux = W (2 (∂F/∂Φ) Kux + (∂F/∂b) yᵀ), never kept for more than a block
inline void Work::through_Kux(const double *dPhi, int ld_d, int inner, double *gradient, const Moves &moves) {
    int block = kernel.ld;
    double *part = memory.take(size_t(inner) * block), *A = memory.take(size_t(m) * block);
    double *scratch = memory.take(size_t(m) * block), *twice = memory.zeros(ldT);
    for (int t = 0; t < T; t++) twice[t] = 2.0 * state.w[t];
    for (int t0 = 0; t0 < T; t0 += BLOCK) {
        int count = padded(std::min(BLOCK, T - t0));
        for (int i = 0; i < m; i++) std::copy_n(K + size_t(i) * ldK + t0, count, part + size_t(i) * block);
        for (int p = 0; p < P; p++)
            for (int t = 0; t < count; t++)
                part[size_t(m + p) * block + t] = t0 + t < T ? state.y[size_t(t0 + t) * P + p] : 0.0;
        product<false>(m, count, inner, dPhi, ld_d, part, block, A, block);
        for (int i = 0; i < m; i++)
            for (int t = 0; t < count; t += W) {
                double *to = A + size_t(i) * block + t;
                store(to, load(to) * load(twice + t0 + t));
            }
        kernel.pull(true, t0, count, A, part, scratch, gradient, moves);
    }
}

}  // namespace DRIFTGP_LEVEL
