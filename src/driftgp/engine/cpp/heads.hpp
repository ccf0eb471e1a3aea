// Recursive least squares at several rates of forgetting: the twin of members/heads.py.

#pragma once

#include "holding.hpp"
#include "triangle.hpp"

namespace DRIFTGP_LEVEL {

constexpr double LARGEST_WEIGHT = 1e150;  // as in heads.py
constexpr int WAITING = 8;
constexpr double LEAST_VARIANCE = 1.4916681462400413e-154;  // the root of the smallest normal number

class Heads {
    static constexpr double NOISE_MEMORY = 100.0, GROWTH = 1e4;  // as in heads.py
    const bool leak;  // changes are then carried out at once, B = 1
    bool unit;
    const int block;  // changes that are carried out together, B
    int F = 0, P = 0;
    size_t C = 0, g = 0, gain = 0, keep = 0, waiting = 0, trace = 0, w = 0, noise = 0, errors = 0;

    double *triangle(double *state, int h) const { return state + C + size_t(h) * packed_size(F); }
    const double *triangle(const double *state, int h) const { return state + C + size_t(h) * packed_size(F); }
    size_t change(int h, int64_t j) const { return g + (size_t(h) * block + size_t(j)) * F; }

    // Carries out what waits for a head.
    void settle(double *state, int h, Memory &memory) const {
        int count = int(whole(state, waiting));
        if (count > 0)
            Triangle(F).lose(triangle(state, h), state + change(h, 0), state + gain + size_t(h) * block, count,
                             1.0 / state[keep + h], memory);
        nothing_waits(state, h);
    }
    // For a C that is new.
    void nothing_waits(double *state, int h) const {
        std::fill_n(state + change(h, 0), size_t(block) * F, 0.0);
        std::fill_n(state + gain + size_t(h) * block, block, 0.0);
        state[keep + h] = 1.0, state[trace + h] = Triangle(F).trace(triangle(state, h));
    }
    // Feature i is seen once more with the target 0, with weight v: w changes, and C is to lose γ c cᵀ for its column
    // c = C e_i. Gives γ and c.
    double see_nothing(double *state, int h, int i, double v, double *column) const {
        Triangle(F).column(triangle(state, h), i, column);
        double share = v / (1.0 + v * column[i]), *weights = state + w + size_t(h) * F * P;
        state[trace + h] -= share * loose_dot(column, column, F);
        for (int p = 0; p < P; p++) {
            double before = weights[size_t(i) * P + p];
            for (int j = 0; j < F; j++) weights[size_t(j) * P + p] -= share * column[j] * before;
        }
        return share;
    }
    void reset(double *state, int h, double q) const {
        double *t = triangle(state, h);
        std::fill_n(t, packed_size(F), 0.0);
        for (int i = 0; i < F; i++) t[packed_row(F, i)] = 1.0 / q;
        nothing_waits(state, h);
    }

  public:
    std::vector<double> rates;

    Heads(bool leak, bool unit, int block) : leak(leak), unit(unit), block(block) {}
    // Whether a weight has the variance 1 where nothing is known, for who learns of it from the settings.
    void unit_weights(bool yes) { unit = yes; }
    void read(driftgp::Settings &settings) {
        rates = settings.numbers("forgetting", 64, 0.5, 1.0);
        if (rates.empty()) throw std::invalid_argument("forgetting must have a rate");
    }
    int count() const { return int(rates.size()); }

    void declare(Layout &state, size_t start, int features, int outputs) {
        F = features, P = outputs;
        size_t H = rates.size();
        C = state.floats("C", H * packed_size(F)) - start, g = state.floats("g", H * block * F) - start;
        gain = state.floats("gain", H * block, {0.0, 2.0}) - start, keep = state.floats("keep", H) - start;
        waiting = state.wholes("waiting", 1, {0.0, block - 1.0}) - start, trace = state.floats("trace", H) - start;
        w = state.floats("w", H * F * P) - start, noise = state.floats("noise", H * P) - start;
        errors = state.floats("errors", 1, {1.0, NOISE_MEMORY}) - start;
    }
    void start(double *state, double q, double variance) const {
        whole(state, waiting) = 0;
        for (int h = 0; h < count(); h++) reset(state, h, q);
        std::fill_n(state + w, rates.size() * F * P, 0.0);
        set_noise(state, variance);
        state[errors] = 1.0;
    }
    void set_noise(double *state, double variance) const { std::fill_n(state + noise, rates.size() * P, variance); }
    double noise_errors(const double *state) const { return state[errors]; }
    const double *noises(const double *state) const { return state + noise; }
    void put_noise(double *state, const double *values, double count) const {
        std::copy_n(values, rates.size() * P, state + noise);
        state[errors] = count;
    }
    // Gives a head another C, a triangle, and w.
    void put(double *state, int h, const double *other, const double *weights) const {
        std::copy_n(other, packed_size(F), triangle(state, h));
        std::copy_n(weights, size_t(F) * P, state + w + size_t(h) * F * P);
        nothing_waits(state, h);
    }
    void copy(double *state, int from, int to) const {
        std::copy_n(triangle(state, from), packed_size(F), triangle(state, to));
        std::copy_n(state + change(from, 0), size_t(block) * F, state + change(to, 0));
        std::copy_n(state + gain + size_t(from) * block, block, state + gain + size_t(to) * block);
        state[keep + to] = state[keep + from], state[trace + to] = state[trace + from];
        std::copy_n(state + w + size_t(from) * F * P, size_t(F) * P, state + w + size_t(to) * F * P);
        std::copy_n(state + noise + size_t(from) * P, P, state + noise + size_t(to) * P);
    }

    // C φ of a head, with what waits.
    void times(const double *state, int h, const double *phi, double *product) const {
        Triangle(F).times(triangle(state, h), phi, product);
        for (int64_t k = 0; k < whole(state, waiting); k++) {
            const double *one = state + change(h, k);
            double share = state[gain + size_t(h) * block + size_t(k)] * loose_dot(one, phi, F);
            for (int i = 0; i < F; i++) product[i] -= share * one[i];
        }
        double inverse = 1.0 / state[keep + h];
        for (int i = 0; i < F; i++) product[i] *= inverse;
    }
    // Mean, variance and noise of head h at features φ, P each, with C φ. It counts as knowing no less than at the
    // start.
    void forecast(const double *state, int h, const double *phi, const double *product, double q, double *made) const {
        double s = std::max(loose_dot(phi, product, F), 0.0), length = loose_dot(phi, phi, F);
        const double *weights = state + w + size_t(h) * F * P;
        for (int p = 0; p < P; p++) {
            double mean = 0.0, variance = state[noise + size_t(h) * P + p];
            if (P == 1) mean = loose_dot(weights, phi, F);
            else
                for (int i = 0; i < F; i++) mean += weights[size_t(i) * P + p] * phi[i];
            double most = length / (unit ? std::max(q, variance) : q);
            made[p] = mean, made[P + p] = std::max(variance * (1.0 + std::min(s, most)), LEAST_VARIANCE);
            made[2 * P + p] = std::max(variance, LEAST_VARIANCE);
        }
    }
    // Learns one sample, the `turn`-th, and gives the errors y − wᵀφ, H×P. `products`: C φ of each head, if they are
    // known.
    void learn(double *state, const double *phi, const double *y, double q, int64_t turn, double *wrong,
               const double *products, Memory &memory) const {
        Lease lease(memory);
        state[errors] = std::min(state[errors] + 1.0, NOISE_MEMORY);
        Whole &last = whole(state, waiting);
        double *changes = memory.take(2 * F);  // c and C φ
        for (int h = 0; h < count(); h++) {
            double rate = rates[h], *product = leak ? changes + F : state + change(h, last), gains[2] = {0.0, 0.0};
            if (products) std::copy_n(products + size_t(h) * F, F, product);
            else times(state, h, phi, product);
            if (leak) {
                gains[0] = see_nothing(state, h, int(turn % F), F * (1.0 - rate) * q, changes);
                double along = gains[0] * loose_dot(changes, phi, F);
                for (int i = 0; i < F; i++) product[i] -= along * changes[i];
            }
            double s = loose_dot(phi, product, F);
            if (!(std::isfinite(s) && s >= 0.0)) {  // rounding has left no covariance: begin again
                reset(state, h, q);
                gains[0] = 0.0;
                for (int i = 0; i < F; i++) product[i] = phi[i] / q;
                s = loose_dot(phi, product, F);
            }
            double kept = state[trace + h] <= rate * GROWTH * F / q ? rate : 1.0, share = 1.0 / (kept + s);
            double *weights = state + w + size_t(h) * F * P;
            for (int p = 0; p < P; p++) {
                double e = y[p];
                if (P == 1) e -= loose_dot(weights, phi, F);
                else
                    for (int i = 0; i < F; i++) e -= weights[size_t(i) * P + p] * phi[i];
                e = std::clamp(e, -LARGEST_WEIGHT, LARGEST_WEIGHT);  // its square has to be finite
                for (int i = 0; i < F; i++) weights[size_t(i) * P + p] += share * product[i] * e;
                double &variance = state[noise + size_t(h) * P + p];
                variance += (e * e / (1.0 + s) - variance) / state[errors];
                wrong[size_t(h) * P + p] = e;
            }
            if (leak) {
                gains[1] = share;
                Triangle(F).lose(triangle(state, h), changes, gains, 2, 1.0 / kept, memory);
                nothing_waits(state, h);
                continue;
            }
            state[gain + size_t(h) * block + size_t(last)] = share * state[keep + h];
            state[keep + h] *= kept;
            state[trace + h] = (state[trace + h] - share * loose_dot(product, product, F)) / kept;
        }
        if (leak || ++last < block) return;
        for (int h = 0; h < count(); h++) settle(state, h, memory);
        last = 0;
    }
    // Features (φ_i − u_i φ_0)/a_i for i = 1 … changed, and targets in other units: see heads.py.
    void rescale(double *state, const double *u, const double *a, int changed, double q, const Units &units,
                 Memory &memory) const {
        Lease lease(memory);
        double *column = memory.take(F);
        for (int h = 0; h < count(); h++) {
            settle(state, h, memory);
            double *t = triangle(state, h), *weights = state + w + size_t(h) * F * P;
            auto at = [&](int i, int j) -> double & { return t[packed_row(F, std::min(i, j)) + std::abs(i - j)]; };
            // row 0 of E C, then that of E C Eᵀ, whose other rows are C's but for column 0
            for (int j = 0; j < F; j++) {
                column[j] = at(0, j);
                for (int i = 0; i < changed; i++) column[j] += u[i] * at(1 + i, j);
            }
            for (int i = 0; i < changed; i++) column[0] += u[i] * column[1 + i];
            for (int j = 0; j < F; j++) at(0, j) = column[j];
            for (int i = 0; i < F; i++)
                for (int j = i; j < F; j++) {
                    if (i >= 1 && i <= changed) at(i, j) *= a[i - 1];
                    if (j >= 1 && j <= changed) at(i, j) *= a[j - 1];
                }
            nothing_waits(state, h);
            if (!(state[trace + h] <= GROWTH * F / q)) reset(state, h, q);
            for (int p = 0; p < P; p++) {
                double scale = units.y_scale[p];
                for (int i = 0; i < changed; i++) {
                    double &weight = weights[size_t(1 + i) * P + p];
                    weights[p] += u[i] * weight, weight *= a[i];
                }
                for (int i = 0; i < F; i++) weights[size_t(i) * P + p] /= scale;
                weights[p] -= units.y_centre[p] / scale;
                state[noise + size_t(h) * P + p] /= scale * scale;
            }
        }
    }
    void check(const double *state) const {
        double least = std::pow(0.5, double(whole(state, waiting)));
        for (int h = 0; h < count(); h++)
            refuse_unless(state[keep + h] >= least && state[keep + h] <= 1.0, "keep",
                          "in [0.5, 1] for each change that waits");
    }
};

}  // namespace DRIFTGP_LEVEL
