// Sparse regression on many points that stay where they are: the twin of members/anchored.py.

#pragma once

#include <numeric>

#include "descent.hpp"
#include "evidence.hpp"
#include "heads.hpp"
#include "remembered.hpp"

namespace DRIFTGP_LEVEL {

class Anchored : public Node {
    enum Stage { NOTHING, FACTOR, SUMS, SOLVE, SLOPE, FINISH, PLACE, REPLAY, HEADS };
    // as in anchored.py
    static constexpr int SUMS_ROWS = 100, SLOPE_ROWS = 100, REPLAY_ROWS = 64;
    static constexpr int64_t FIRST_POINTS = 26, LATER_POINTS = 11, FEWEST = 32, LONGEST = 4000, APART = 100, SINCE = 50;
    static constexpr double ERROR_RATE = 0.02, TAKEOVER = 0.7,
                            LEAST_NOISE = -23.025850929940457;  // the last: log 1e-10
    static constexpr int64_t MOST_POINTS = 1 << 12, MOST_ROWS = 1 << 24;

    int M = 1, F = 1, K = 2;
    int64_t ring = 2, sample = 2, refresh_every = 1;
    Heads heads;
    Descent fit;
    size_t X = 0, y = 0, rows = 0, fresh = 0, due = 0, refresh = 0, theta = 0, Z = 0, N = 0, points = 0, squares = 0,
           stage = 0, at = 0, first = 0, span = 0, next_Z = 0, next_N = 0, next_points = 0, sums = 0, moments = 0,
           totals = 0;
    int ldF = 0;
    Remembered last;    // of a forecast: φ, and C φ of each head, by x
    Remembered scales;  // hyperparameters, by their logarithms

    // ---- rows and regressions

    size_t slot(int64_t row) const { return size_t(row % ring); }
    const double *x_of(const double *state, int64_t row) const { return state + X + slot(row) * D; }
    const double *y_of(const double *state, int64_t row) const { return state + y + slot(row) * P; }
    void keep(double *state, const double *x, const double *target) const {
        size_t to = slot(whole(state, rows));
        std::copy_n(x, D, state + X + to * D), std::copy_n(target, P, state + y + to * P);
        whole(state, rows)++, whole(state, fresh)++;
    }
    // Those of the last row of this call, if they are the same: an exponential for each would be much of a row's work.
    Hyperparameters hyperparameters(const double *state, Memory &memory) const {
        if (const double *known = scales.find(state, 0, state + theta, memory)) return Hyperparameters(D, known);
        Hyperparameters p(state + theta, D, memory);
        p.put(scales.keep(state, 0, state + theta, memory));
        return p;
    }
    void find_features(const double *state, const double *x, double *phi, Memory &memory) const {
        Lease lease(memory);
        Hyperparameters p = hyperparameters(state, memory);
        FixedPoints(p, state + Z, M, int(whole(state, points))).features(x, state + N, phi, F, memory);
    }
    void recur(double *state, const double *x, const double *target, double *wrong, Memory &memory) const {
        Lease lease(memory);
        const double *phi, *products = nullptr;
        if (const double *known = last.find(state, whole(state, rows), x, memory)) {
            phi = known, products = known + F;
        } else {
            double *own = memory.zeros(F);
            find_features(state, x, own, memory);
            phi = own;
        }
        heads.learn(state, phi, target, std::exp(state[theta + K - 1]), whole(state, rows), wrong, products, memory);
        last.forget(memory);
    }
    // Regressions that know nothing but the last few rows.
    void learn_again(double *state, Memory &memory) const {
        Lease lease(memory);
        double q = std::exp(state[theta + K - 1]), *wrong = memory.take(size_t(heads.count()) * P);
        heads.start(state, q, q);
        state[squares] = state[squares + 1] = q;
        int64_t there = whole(state, rows);
        for (int64_t row = std::max<int64_t>(there - std::min(ring, FEWEST), 0); row < there; row++)
            recur(state, x_of(state, row), y_of(state, row), wrong, memory);
    }
    // The shortest memory is the longest one's from here on.
    void take_over(double *state) const {
        heads.copy(state, heads.count() - 1, 0);
        state[squares] = state[squares + 1];
        whole(state, fresh) = SINCE;
        whole(state, due) = whole(state, rows) + 4 * SINCE;
    }

    void rescale_features(double *state, const Units &units, Memory &memory) const {
        double *u = memory.take(D), *ones = memory.take(D), size = 0.0;
        for (int d = 0; d < D; d++) {
            for (int64_t j = 0; j < whole(state, points); j++) {
                double &z = state[Z + size_t(d) * M + j];
                z = in_other_units(z, units.x_centre[d], units.x_scale[d]);
            }
            u[d] = std::sqrt(std::exp(state[theta + D + 1 + d])) * units.x_centre[d];
            ones[d] = 1.0;
            state[theta + d] -= std::log(units.x_scale[d]);
            state[theta + D + 1 + d] += 2.0 * std::log(units.x_scale[d]);
        }
        heads.rescale(state, u, ones, D, std::exp(state[theta + K - 1]), units, memory);
        for (int p = 0; p < P; p++) size += units.y_scale[p] / P;
        state[squares] /= size * size, state[squares + 1] /= size * size;
    }

    // ---- work in pieces

    int64_t sampled(const double *state) const { return std::min(sample, whole(state, span)); }
    int64_t stride(const double *state) const {
        int64_t all = whole(state, span);
        int64_t found = std::max<int64_t>(int64_t(std::nearbyint(0.6180339887498949 * double(all))), 1);
        while (std::gcd(found, all) > 1) found++;
        return found;
    }
    int64_t sampled_row(const double *state, int64_t i, int64_t apart) const {
        return whole(state, first) + i * apart % whole(state, span);
    }
    void begin_fit(double *state) const {
        int64_t there = whole(state, rows), lately = whole(state, fresh);
        whole(state, span) = std::min({lately, there, std::max<int64_t>(ring - ring / 4, 1)});
        whole(state, first) = there - whole(state, span);
        whole(state, due) = there + std::min(std::max(lately / 2, FEWEST), LONGEST);
        take_points(state);
        fit.begin(state, state + theta, whole(state, points) == 0 ? FIRST_POINTS : LATER_POINTS);
        whole(state, stage) = FACTOR, whole(state, at) = 0;
    }
    void take_points(double *state) const {
        int64_t count = whole(state, next_points) = std::min<int64_t>(M, sampled(state)), apart = stride(state);
        std::fill_n(state + next_Z, size_t(D) * M, 0.0);
        for (int64_t j = 0; j < count; j++) {
            const double *x = x_of(state, sampled_row(state, j, apart));
            for (int d = 0; d < D; d++) state[next_Z + size_t(d) * M + j] = x[d];
        }
    }
    void place(double *state) const {
        Whole &now = whole(state, stage);
        if (now >= FACTOR && now <= FINISH) {  // after a fit the points are there
            state[fit.theta + K - 1] = std::max(state[fit.theta + K - 1], LEAST_NOISE);
        } else {
            whole(state, span) = std::min({int64_t(whole(state, fresh)), int64_t(whole(state, rows)), ring});
            whole(state, first) = whole(state, rows) - whole(state, span);
            take_points(state);
            std::copy_n(state + theta, K, state + fit.theta);
        }
        now = PLACE;
        whole(state, refresh) = whole(state, rows) + refresh_every;
    }
    void work(double *state, Memory &memory) const {
        bool fitting = whole(state, stage) >= FACTOR && whole(state, stage) <= FINISH;
        // rows of the fit are being overwritten: what it has found must do
        if (fitting && whole(state, first) < whole(state, rows) - ring) return place(state);
        Lease lease(memory);
        switch (whole(state, stage)) {
            case FACTOR: return find_factor(state, memory);
            case SUMS: return add_sums(state, memory);
            case SOLVE: return solve(state, memory);
            case SLOPE: return add_slope(state, memory);
            case FINISH: return finish(state, memory);
            case PLACE: return replay_from(state, memory);
            case REPLAY: return replay(state, memory);
            case HEADS: return solve_head(state, memory);
            default: return;
        }
    }
    void tell(double *state, double value, const double *gradient) const {
        if (fit.tell(state, value, gradient)) whole(state, stage) = FACTOR;
        else place(state);
    }
    void give_up(double *state) const { tell(state, std::numeric_limits<double>::infinity(), state + fit.theta); }
    int next_count(const double *state) const { return int(whole(state, next_points)); }

    void find_factor(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.trial, D, memory);
        if (!FixedPoints(p, state + next_Z, M, next_count(state)).factor(state + next_N, memory)) return give_up(state);
        clear_sums(state);
        std::fill_n(state + totals, size_t(5 + D), 0.0);
        whole(state, stage) = SUMS, whole(state, at) = 0;
    }
    // Calls add(i, j, n, more) for each piece of the upper triangle of ΦᵀΦ, F×F, as soon as it is there: row i, columns
    // j … j + n − 1.
    template <class Add>
    static void squares_by_pieces(int count, int F, const double *Phi, int ld, Memory &memory, Add add) {
        Lease lease(memory);
        constexpr int WIDE = 3 * W;
        double *piece = memory.take(size_t(F) * WIDE);
        for (int first = 0; first < F; first += WIDE) {
            int wide = std::min(WIDE, F - first), high = first + wide;
            product<true>(high, wide, count, Phi, ld, Phi + first, ld, piece, WIDE);
            for (int i = 0; i < high; i++) {
                int j = std::max(i, first);
                add(i, j, high - j, piece + size_t(i) * WIDE + j - first);
            }
        }
    }
    // b = Φᵀ y for output o.
    static void with_targets(int count, const double *Phi, int ld, const double *const *ys, int o, double *b) {
        clear(b, ld);
        for (int i = 0; i < count; i++) axpy(ys[i][o], Phi + size_t(i) * ld, b, 0, ld);
    }
    void clear_sums(double *state) const {
        std::fill_n(state + sums, size_t(std::max(heads.count(), 2)) * packed_size(F), 0.0);
        std::fill_n(state + moments, size_t(heads.count()) * F * P, 0.0);
    }
    // Rows of the fit from `at` on, and where their targets are.
    int next_rows(const double *state, int most, const double **xs, const double **ys) const {
        int64_t begin = whole(state, at), apart = stride(state);
        int count = int(std::min<int64_t>(most, sampled(state) - begin));
        for (int i = 0; i < count; i++) {
            int64_t row = sampled_row(state, begin + i, apart);
            xs[i] = x_of(state, row), ys[i] = y_of(state, row);
        }
        return count;
    }
    void add_sums(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.trial, D, memory);
        FixedPoints z(p, state + next_Z, M, next_count(state));
        int own = 1 + D + z.m, ld = padded(own);
        const double *xs[SUMS_ROWS], *ys[SUMS_ROWS];
        int count = next_rows(state, SUMS_ROWS, xs, ys);
        double *Nt = z.turned(state + next_N, memory);
        double *Kx = memory.take(size_t(count) * z.ld), *near = memory.take(size_t(count) * z.ld);
        double *Phi = memory.take(size_t(count) * ld), *b = memory.take(ld);
        z.features(xs, count, Nt, Kx, near, Phi, own, ld);
        double *S = state + sums;
        squares_by_pieces(count, own, Phi, ld, memory, [&](int i, int j, int n, const double *more) {
            mix(1.0, S + packed_row(own, i) + j - i, 1.0, more, n);
        });
        double square = 0.0, inside = 0.0;
        for (int i = 0; i < count; i++)
            inside += loose_dot(Phi + size_t(i) * ld + 1 + D, Phi + size_t(i) * ld + 1 + D, z.m);
        for (int o = 0; o < P; o++) {
            with_targets(count, Phi, ld, ys, o, b);
            for (int j = 0; j < own; j++) state[moments + size_t(j) * P + o] += b[j];
            for (int i = 0; i < count; i++) square += ys[i][o] * ys[i][o];
        }
        state[totals] += square, state[totals + 1] += count * p.variance - inside;
        whole(state, at) += count;
        if (whole(state, at) == sampled(state)) whole(state, stage) = SOLVE;
    }
    void solve(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.trial, D, memory);
        int own = 1 + D + next_count(state), ld = padded(own);
        double *A = memory.zeros(size_t(own) * ld), q = p.noise, n = double(sampled(state));
        unpack(state + sums, own, ld, A);
        for (int i = 0; i < own; i++) {
            scale(1.0 / q, A + size_t(i) * ld, i, own);
            A[size_t(i) * ld + i] += 1.0;
        }
        double log_determinant = inverse_of(own, A, ld, memory);
        if (std::isnan(log_determinant)) return give_up(state);
        double *c = memory.zeros(size_t(own) * P), explained = 0.0, weights = 0.0, trace = 0.0;
        double squared = state[totals] / q, rest = P * state[totals + 1] / (2.0 * q);
        times_columns(own, A, ld, state + moments, 1.0 / q, c, memory);
        for (int i = 0; i < own; i++) {
            trace += A[size_t(i) * ld + i];
            for (int o = 0; o < P; o++) {
                explained += c[i * P + o] * state[moments + size_t(i) * P + o] / q;
                weights += c[i * P + o] * c[i * P + o];
            }
        }
        double evidence = P * (n * std::log(2.0 * 3.14159265358979323846 * q) + log_determinant) + squared - explained;
        state[totals + 2] = 0.5 * evidence + rest;
        state[totals + 3] = 0.5 * (P * (n - own + trace) - squared + explained + weights) - rest;
        double whole_value = state[totals + 2] + prior_value(state, nullptr, memory);
        if (fit.refuses(state, whole_value)) return tell(state, whole_value, state + fit.gradient);
        reach(state, A, own, ld, c, memory);
        std::copy_n(c, size_t(own) * P, state + moments);
        whole(state, stage) = SLOPE, whole(state, at) = 0;
    }
    // f A B for a matrix A, rows×rows, and B and the result with P columns.
    void times_columns(int rows, const double *A, int ld, const double *B, double f, double *to, Memory &memory) const {
        Lease lease(memory);
        double *column = memory.take(rows);
        for (int o = 0; o < P; o++) {
            for (int j = 0; j < rows; j++) column[j] = f * B[size_t(j) * P + o];
            for (int i = 0; i < rows; i++) to[size_t(i) * P + o] = loose_dot(A + size_t(i) * ld, column, rows);
        }
    }
    // What the bound asks of 1, √v x and k(Z, x) rather than of φ(x) (evidence.reach): A⁻¹ goes to the sums, c is
    // changed.
    void reach(double *state, double *A, int own, int ld, double *c, Memory &memory) const {
        int first = 1 + D, m = own - first, ldm = padded(m);
        size_t square = size_t(m) * ldm;
        double *N = memory.zeros(square), *left = memory.zeros(square), *E = memory.zeros(square),
               *one = memory.zeros(square);
        const double *triangle = state + next_N;
        for (int i = 0; i < m; i++) std::copy_n(triangle + FixedPoints::lower_row(i), i + 1, N + size_t(i) * ldm);
        for (int i = 0; i < m; i++) {
            double *row = left + size_t(i) * ldm;
            const double *of = A + size_t(first + i) * ld + first;
            for (int j = 0; j < m; j++) row[j] = -of[j];
            row[i] += 1.0;
        }
        outside(m, N, left, E, one, ldm);
        double *beside = memory.zeros(size_t(first) * ldm), *turned = memory.zeros(size_t(first) * ldm);
        for (int i = 0; i < first; i++) std::copy_n(A + size_t(i) * ld + first, m, beside + size_t(i) * ldm);
        product<false>(first, m, m, beside, ldm, N, ldm, turned, ldm, FROM_COLUMN);
        double *to = state + sums + packed_size(F);
        for (int i = 0; i < own; i++) {
            double *row = to + packed_row(own, i);
            if (i >= first) {
                std::copy_n(E + size_t(i - first) * ldm + (i - first), own - i, row);
                continue;
            }
            std::copy_n(A + size_t(i) * ld + i, first - i, row);
            std::copy_n(turned + size_t(i) * ldm, m, row + first - i);
        }
        for (int o = 0; o < P; o++) {
            double *of = memory.zeros(ldm);
            for (int i = 0; i < m; i++) axpy(c[size_t(first + i) * P + o], N + size_t(i) * ldm, of, 0, i + 1);
            for (int j = 0; j < m; j++) c[size_t(first + j) * P + o] = of[j];
        }
    }
    void add_slope(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.trial, D, memory);
        FixedPoints z(p, state + next_Z, M, next_count(state));
        int m = z.m, first = 1 + D, own = first + m;
        const double *xs[SLOPE_ROWS], *ys[SLOPE_ROWS], *C = state + sums + packed_size(F), *c = state + moments;
        int count = next_rows(state, SLOPE_ROWS, xs, ys);
        double *K = memory.take(size_t(count) * z.ld), *by_K = memory.take(size_t(count) * z.ld);
        double *E = memory.zeros(size_t(m) * z.ld), *beside = memory.zeros(size_t(first) * z.ld);
        for (int i = 0; i < first; i++) std::copy_n(C + packed_row(own, i) + first - i, m, beside + size_t(i) * z.ld);
        for (int i = 0; i < m; i++) std::copy_n(C + packed_row(own, first + i), m - i, E + size_t(i) * z.ld + i);
        mirror(E, m, z.ld);
        for (int i = 0; i < count; i++) p.covariance(xs[i], z.Z, z.apart, m, K + size_t(i) * z.ld);
        product<false>(count, m, m, K, z.ld, E, z.ld, by_K, z.ld);
        double *level = memory.zeros(size_t(count) * padded(first)), *by = state + totals + 4;
        for (int i = 0; i < count; i++) {
            double *row = level + size_t(i) * padded(first);
            row[0] = 1.0;
            for (int d = 0; d < D; d++) row[1 + d] = p.linear[d] * xs[i][d];
        }
        product<false>(count, m, first, level, padded(first), beside, z.ld, by_K, z.ld, FIRST, LAST, SUBTRACT);
        if (P > 1)
            for (int i = 0; i < count; i++) scale(P, by_K + size_t(i) * z.ld, 0, z.ld);
        double *weights = memory.zeros(z.ld), *slopes = memory.zeros(first);
        for (int o = 0; o < P; o++) {
            for (int l = 0; l < first; l++) slopes[l] = c[size_t(l) * P + o];
            for (int j = 0; j < m; j++) weights[j] = c[size_t(first + j) * P + o];
            for (int i = 0; i < count; i++) {
                double wrong = ys[i][o] - loose_dot(level + size_t(i) * padded(first), slopes, first);
                wrong -= loose_dot(K + size_t(i) * z.ld, weights, m);
                axpy(wrong, weights, by_K + size_t(i) * z.ld, 0, z.ld);
            }
        }
        for (int i = 0; i < count; i++) {
            double *row = by_K + size_t(i) * z.ld, *k = K + size_t(i) * z.ld, inverse = 1.0 / p.noise;
            for (int j = 0; j < z.ld; j += W) store(row + j, load(row + j) * (inverse * load(k + j)));
        }
        by[D] += z.add_by_lengthscale(by_K, xs, count, by, memory);
        whole(state, at) += count;
        if (whole(state, at) == sampled(state)) whole(state, stage) = FINISH;
    }
    void finish(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.trial, D, memory);
        FixedPoints z(p, state + next_Z, M, next_count(state));
        int m = z.m, first = 1 + D, own = first + m;
        const double *S = state + sums, *C = state + sums + packed_size(F), *c = state + moments;
        double *Ns = z.spread(state + next_N, memory), *inner = memory.zeros(size_t(m) * z.ld);
        double *Wz = memory.zeros(size_t(m) * z.ld), *one = memory.zeros(size_t(m) * z.ld), *by = memory.zeros(K);
        for (int i = 0; i < m; i++) std::copy_n(S + packed_row(own, first + i), m - i, inner + size_t(i) * z.ld + i);
        mirror(inner, m, z.ld);
        outside(m, Ns, inner, Wz, one, z.ld);
        z.gram(one, memory);
        double *slopes_of = memory.zeros(size_t(m) * z.ld);
        for (int o = 0; o < P; o++) {
            double *column = memory.zeros(z.ld);
            for (int j = 0; j < m; j++) column[j] = c[size_t(first + j) * P + o];
            for (int i = 0; i < m; i++) axpy(column[i], column, slopes_of + size_t(i) * z.ld, i, m);
        }
        for (int i = 0; i < m; i++) {
            double *weight = Wz + size_t(i) * z.ld, *slope = slopes_of + size_t(i) * z.ld;
            mix(1.0, slope + i, -P, C + packed_row(own, first + i), m - i);
            mix(1.0, slope + i, P / p.noise, weight + i, m - i);
            for (int j = i / W * W; j < m; j += W)
                store(weight + j, -0.5 * load(slope + j) * load(one + size_t(i) * z.ld + j));
        }
        mirror(Wz, m, z.ld);
        const double *slopes = state + totals + 4;
        for (int d = 0; d < D; d++) by[d] = slopes[d];
        double all = z.add_between(Wz, by, memory);
        by[D] = slopes[D] + all - P * double(sampled(state)) * p.variance / (2.0 * p.noise);
        for (int d = 0; d < D; d++) {
            double squares = 0.0;
            for (int o = 0; o < P; o++) squares += c[size_t(1 + d) * P + o] * c[size_t(1 + d) * P + o];
            by[D + 1 + d] = 0.5 * (squares - P * (1.0 - C[packed_row(own, 1 + d)]));
        }
        by[K - 1] = -state[totals + 3];
        for (int i = 0; i < K; i++) by[i] = -by[i];
        double value = state[totals + 2] + prior_value(state, by, memory);
        tell(state, value, by);
    }
    // −log of the prior at the trial, to whose gradient it adds its own.
    double prior_value(const double *state, double *by, Memory &memory) const {
        Lease lease(memory);
        double *mean = memory.take(K), *std = memory.take(K), value = 0.0;
        prior_of(D, mean, std);
        for (int i = 0; i < K; i++) {
            double away = (state[fit.trial + i] - mean[i]) / std[i];
            value += 0.5 * away * away;
            if (by) by[i] += away / std[i];
        }
        return value;
    }
    void replay_from(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.theta, D, memory);
        if (!FixedPoints(p, state + next_Z, M, next_count(state)).factor(state + next_N, memory)) {
            whole(state, stage) = NOTHING;  // the old features stay
            return;
        }
        clear_sums(state);
        whole(state, stage) = REPLAY, whole(state, at) = std::max<int64_t>(whole(state, rows) - ring, 0);
    }
    void replay(double *state, Memory &memory) const {
        Hyperparameters p(state + fit.theta, D, memory);
        FixedPoints z(p, state + next_Z, M, next_count(state));
        int64_t there = whole(state, rows), begin = std::max<int64_t>(whole(state, at), there - ring);
        int64_t change = there - whole(state, fresh);  // a piece is of before it, or of after it
        int count = int(std::min<int64_t>(REPLAY_ROWS, (begin < change ? change : there) - begin));
        const double *xs[REPLAY_ROWS], *ys[REPLAY_ROWS];
        for (int i = 0; i < count; i++) xs[i] = x_of(state, begin + i), ys[i] = y_of(state, begin + i);
        double *Nt = z.turned(state + next_N, memory);
        double *Kx = memory.take(size_t(count) * z.ld), *near = memory.take(size_t(count) * z.ld);
        double *Phi = memory.take(size_t(count) * ldF), *b = memory.take(ldF);
        z.features(xs, count, Nt, Kx, near, Phi, F, ldF);
        int H = heads.count();
        double *past = memory.take(H), *mean = memory.take(H);  // of the weights of these rows
        for (int h = 0; h < H; h++) {
            double rate = h == 0 && begin < change ? heads.rates.back() : heads.rates[h];
            past[h] = 1.0, mean[h] = 0.0;
            for (int i = 0; i < count; i++) mean[h] += past[h] / count, past[h] *= rate;
        }
        squares_by_pieces(count, F, Phi, ldF, memory, [&](int i, int j, int n, const double *more) {
            double *row = state + sums + packed_row(F, i) + j - i;
            for (int h = 0; h < H; h++) mix(past[h], row + h * packed_size(F), mean[h], more, n);
        });
        for (int o = 0; o < P; o++) {
            with_targets(count, Phi, ldF, ys, o, b);
            for (int h = 0; h < H; h++)
                for (int j = 0; j < F; j++) {
                    double &moment = state[moments + (size_t(h) * F + j) * P + o];
                    moment = past[h] * moment + mean[h] * b[j];
                }
        }
        whole(state, at) = begin + count;
        if (begin + count == there) whole(state, stage) = HEADS, whole(state, span) = 0;
    }
    void solve_head(double *state, Memory &memory) const {
        int h = int(whole(state, span));
        double *A = memory.zeros(size_t(F) * ldF), q = std::exp(state[fit.theta + K - 1]);
        double *part = state + sums + h * packed_size(F), *b = state + moments + size_t(h) * F * P;
        unpack(part, F, ldF, A);
        for (int i = 0; i < F; i++) A[size_t(i) * ldF + i] += q;
        double *w = memory.zeros(size_t(F) * P);
        bool found = !std::isnan(inverse_of(F, A, ldF, memory));
        if (found) times_columns(F, A, ldF, b, 1.0, w, memory);
        for (size_t i = 0; i < size_t(F) * P; i++) found &= std::fabs(w[i]) <= LARGEST_WEIGHT;
        if (!found) {
            whole(state, stage) = NOTHING;  // the old features stay
            return;
        }
        pack(A, F, ldF, part);
        std::copy_n(w, size_t(F) * P, b);
        if (++whole(state, span) == heads.count()) change(state, memory);
    }
    // The new features come into use, and learn the rows that came meanwhile.
    void change(double *state, Memory &memory) const {
        std::copy_n(state + fit.theta, K, state + theta);
        std::copy_n(state + next_Z, size_t(D) * M, state + Z), std::copy_n(state + next_N, packed_size(M), state + N);
        whole(state, points) = whole(state, next_points);
        for (int h = 0; h < heads.count(); h++)
            heads.put(state, h, state + sums + h * packed_size(F), state + moments + size_t(h) * F * P);
        size_t count = size_t(heads.count()) * P;
        double *noise = memory.take(count), *wrong = memory.take(count), errors = heads.noise_errors(state);
        std::copy_n(heads.noises(state), count, noise);
        for (int64_t row = whole(state, at); row < whole(state, rows); row++)
            recur(state, x_of(state, row), y_of(state, row), wrong, memory);
        heads.put_noise(state, noise, errors);  // these rows were counted
        clear_sums(state);  // zeros need no room in a checkpoint
        std::fill_n(state + totals, size_t(5 + D), 0.0), std::fill_n(state + next_N, packed_size(M), 0.0);
        whole(state, stage) = NOTHING;
    }

  public:
    Anchored(const driftgp::Part &part, int inputs, int outputs) : heads(false, true, WAITING) {
        D = inputs, P = outputs;
        driftgp::Settings settings(part);
        M = int(settings.whole("points", 1, MOST_POINTS)), ring = settings.whole("ring", 2, MOST_ROWS);
        sample = settings.whole("sample", 2, MOST_ROWS), refresh_every = settings.whole("refresh", 1, MOST_ROWS);
        heads.read(settings);
        settings.end(0);
        F = 1 + D + M, K = 2 * D + 2, ldF = padded(F);
        told_floats("others", size_t(voices() - 1) * 3 * P);
    }

    void declare(Layout &state) override {
        size_t start = state.size, H = heads.rates.size();
        X = state.floats("X", size_t(ring) * D) - start, y = state.floats("y", size_t(ring) * P) - start;
        rows = state.wholes("rows", 1, {0.0, 1e18}) - start, fresh = state.wholes("fresh") - start;
        due = state.wholes("due") - start, refresh = state.wholes("refresh") - start;
        theta = state.floats("theta", K) - start, Z = state.floats("Z", size_t(D) * M) - start;
        N = state.floats("N", packed_size(M)) - start, points = state.wholes("points", 1, {0.0, double(M)}) - start;
        state.part("heads", [&] { heads.declare(state, start, F, P); });
        squares = state.floats("squares", 2) - start;
        stage = state.wholes("stage", 1, {NOTHING, HEADS}) - start, at = state.wholes("at") - start;
        first = state.wholes("first") - start, span = state.wholes("span") - start;
        state.part("fit", [&] { fit.declare(state, start, K); });
        next_Z = state.floats("next_Z", size_t(D) * M) - start, next_N = state.floats("next_N", packed_size(M)) - start;
        next_points = state.wholes("next_points", 1, {0.0, double(M)}) - start;
        sums = state.floats("sums", std::max<size_t>(H, 2) * packed_size(F)) - start;
        moments = state.floats("moments", H * F * P) - start, totals = state.floats("totals", 5 + D) - start;
        last.declare(state, D, (1 + H) * F), scales.declare(state, K, Hyperparameters::numbers(D));
    }
    int voices() const override { return heads.count(); }

    void start(double *state, const double *inputs, const double *targets, int64_t count,
               Memory &memory) const override {
        {
            Lease lease(memory);
            prior_of(D, state + theta, memory.take(K));
        }
        learn_again(state, memory);
        whole(state, due) = FEWEST, whole(state, refresh) = refresh_every;
        for (int64_t i = 0; i < count; i++)
            if (is_sample(inputs + i * D, D, targets + i * P, P)) keep(state, inputs + i * D, targets + i * P);
        if (whole(state, rows) < FEWEST) return learn_again(state, memory);
        begin_fit(state);
        while (whole(state, stage) != NOTHING) work(state, memory);
        heads.set_noise(state, std::exp(state[theta + K - 1]));
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *phi = last.keep(state, whole(state, rows), x, memory);
        find_features(state, x, phi, memory);
        double q = std::exp(state[theta + K - 1]);
        for (int h = 0; h < heads.count(); h++) {
            double *product = phi + size_t(1 + h) * F;
            heads.times(state, h, phi, product);
            heads.forecast(state, h, phi, product, q, made + voice(h));
        }
    }
    void learn(double *state, const double *x, const double *target, double, const double *,
               Memory &memory) const override {
        if (!is_sample(x, D, target, P)) return;
        Lease lease(memory);
        double *wrong = memory.take(size_t(heads.count()) * P);
        recur(state, x, target, wrong, memory);
        const double *ends[2] = {wrong, wrong + size_t(heads.count() - 1) * P};
        for (int end = 0; end < 2; end++) {
            double square = 0.0;
            for (int p = 0; p < P; p++) square += ends[end][p] * ends[end][p] / P;
            state[squares + end] += ERROR_RATE * (square - state[squares + end]);
        }
        keep(state, x, target);
        if (whole(state, fresh) >= APART + SINCE && state[squares + 1] < TAKEOVER * state[squares]) take_over(state);
        if (whole(state, stage) != NOTHING) work(state, memory);
        else if (whole(state, rows) >= whole(state, due)) begin_fit(state);
        else if (whole(state, rows) >= whole(state, refresh)) place(state);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        Lease lease(memory);
        last.forget(memory);
        for (int64_t i = 0; i < std::min<int64_t>(ring, whole(state, rows)); i++) {
            units.inputs(state + X + size_t(i) * D, D), units.targets(state + y + size_t(i) * P, P);
        }
        if (whole(state, points) == 0) learn_again(state, memory);
        else rescale_features(state, units, memory);
        Whole &now = whole(state, stage);
        if (now >= FACTOR && now <= FINISH) whole(state, due) = whole(state, rows);
        else if (now != NOTHING) whole(state, refresh) = whole(state, rows);
        now = NOTHING;
    }
    void check(const double *state) const override {
        int64_t there = whole(state, rows), now = whole(state, stage), next = whole(state, at),
                begin = whole(state, first);
        int64_t wide = whole(state, span), lately = whole(state, fresh), count = whole(state, next_points);
        refuse_unless(lately <= there, "fresh", "at most rows");
        bool fitting = now >= FACTOR && now <= FINISH;
        if (fitting) {
            refuse_unless(wide > 0 && wide <= there && begin <= there - wide && begin >= there - ring, "first",
                          "a row that is kept");
            refuse_unless(count <= wide && next <= std::min(sample, wide), "at", "a row of the fit");
        }
        if (now == REPLAY || now == HEADS) refuse_unless(next <= there, "at", "a row of the stream");
        if (now == HEADS)
            refuse_unless(wide < heads.count() && there - next <= heads.count(), "span", "the number of a head");
        heads.check(state), fit.check(state, fitting);
    }
};

}  // namespace DRIFTGP_LEVEL
