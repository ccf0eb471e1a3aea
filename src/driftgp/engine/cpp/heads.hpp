// Recursive least squares at several rates of forgetting: the twin of members/heads.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

constexpr double LARGEST_WEIGHT = 1e150;  // as in heads.py
constexpr double LEAST_VARIANCE = 1.4916681462400413e-154;  // the root of the smallest normal number

// Numbers in the upper triangle of an F×F matrix, and where its row i begins.
static inline size_t packed_size(size_t F) { return F * (F + 1) / 2; }
static inline size_t packed_row(size_t F, size_t i) { return i * (2 * F - i + 1) / 2; }

// Between an upper triangle, row after row, and a matrix whose rows lie `ld` apart.
static inline void pack(const double *A, int F, int ld, double *triangle) {
    for (int i = 0; i < F; i++) std::copy_n(A + size_t(i) * ld + i, F - i, triangle + packed_row(F, i));
}
static inline void unpack(const double *triangle, int F, int ld, double *A) {
    for (int i = 0; i < F; i++) std::copy_n(triangle + packed_row(F, i), F - i, A + size_t(i) * ld + i);
}

class Heads {
    static constexpr double NOISE_MEMORY = 100.0, GROWTH = 1e4;  // as in heads.py
    const bool leak, unit;
    int F = 0, P = 0;
    size_t C = 0, g = 0, gain = 0, keep = 0, w = 0, noise = 0, errors = 0;

    double *triangle(double *state, int h) const { return state + C + size_t(h) * packed_size(F); }
    const double *triangle(const double *state, int h) const { return state + C + size_t(h) * packed_size(F); }

    // Carries the last change of C out and finds g = C φ, in one pass; returns the trace. `product` has room for F numbers.
    double settle(double *state, int h, const double *phi, double *product) const {
        const double *last = state + g + size_t(h) * F;
        double factor = state[gain + h], inverse = 1.0 / state[keep + h], trace = 0.0;
        double *row = triangle(state, h);
        std::fill_n(product, F, 0.0);
        for (int i = 0; i < F; row += F - i, i++) {
            double taken = factor * last[i], f = phi ? phi[i] : 0.0;
            row[0] = (row[0] - taken * last[i]) * inverse;
            trace += row[0];
            double own = row[0] * f;
            Vec sums{};
            int j = 1, n = F - i;
            for (; j + W <= n; j += W) {
                Vec c = (load(row + j) - taken * load(last + i + j)) * inverse;
                store(row + j, c);
                if (!phi) continue;
                sums += c * load(phi + i + j);
                store(product + i + j, load(product + i + j) + f * c);
            }
            for (; j < n; j++) {
                double c = row[j] = (row[j] - taken * last[i + j]) * inverse;
                if (!phi) continue;
                own += c * phi[i + j], product[i + j] += f * c;
            }
            product[i] += own + sum(sums);
        }
        std::fill_n(state + g + size_t(h) * F, F, 0.0);
        state[gain + h] = 0.0, state[keep + h] = 1.0;
        return trace;
    }
    // Sees feature i once more with the target 0.
    void see_nothing(double *state, int h, int i, double weight, Memory &memory) const {
        Lease lease(memory);
        double *column = memory.take(F), *t = triangle(state, h), *weights = state + w + size_t(h) * F * P;
        for (int j = 0; j < F; j++) column[j] = t[j < i ? packed_row(F, j) + (i - j) : packed_row(F, i) + (j - i)];
        double share = weight / (1.0 + weight * column[i]);
        double *before = memory.take(P);
        std::copy_n(weights + size_t(i) * P, P, before);
        for (int j = 0; j < F; j++) {
            for (int p = 0; p < P; p++) weights[size_t(j) * P + p] -= share * column[j] * before[p];
            double *row = t + packed_row(F, j);
            for (int k = j; k < F; k++) row[k - j] -= share * column[j] * column[k];
        }
    }
    void reset(double *state, int h, double q) const {
        double *t = triangle(state, h);
        std::fill_n(t, packed_size(F), 0.0);
        for (int i = 0; i < F; i++) t[packed_row(F, i)] = 1.0 / q;
    }

  public:
    std::vector<double> rates;

    Heads(bool leak, bool unit) : leak(leak), unit(unit) {}
    void read(driftgp::Settings &settings) {
        rates = settings.numbers("forgetting", 64, 0.5, 1.0);
        if (rates.empty()) throw std::invalid_argument("forgetting must have a rate");
    }
    int count() const { return int(rates.size()); }

    void declare(Layout &state, size_t start, int features, int outputs) {
        F = features, P = outputs;
        size_t H = rates.size();
        C = state.floats("C", H * packed_size(F)) - start, g = state.floats("g", H * F) - start;
        gain = state.floats("gain", H) - start, keep = state.floats("keep", H) - start;
        w = state.floats("w", H * F * P) - start, noise = state.floats("noise", H * P) - start;
        errors = state.floats("errors") - start;
    }
    void start(double *state, double q, double variance) const {
        for (int h = 0; h < count(); h++) reset(state, h, q), state[gain + h] = 0.0, state[keep + h] = 1.0;
        std::fill_n(state + g, rates.size() * F, 0.0), std::fill_n(state + w, rates.size() * F * P, 0.0);
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
        std::fill_n(state + g + size_t(h) * F, F, 0.0);
        state[gain + h] = 0.0, state[keep + h] = 1.0;
    }
    void copy(double *state, int from, int to) const {
        std::copy_n(triangle(state, from), packed_size(F), triangle(state, to));
        std::copy_n(state + g + size_t(from) * F, F, state + g + size_t(to) * F);
        state[gain + to] = state[gain + from], state[keep + to] = state[keep + from];
        std::copy_n(state + w + size_t(from) * F * P, size_t(F) * P, state + w + size_t(to) * F * P);
        std::copy_n(state + noise + size_t(from) * P, P, state + noise + size_t(to) * P);
    }

    // Mean, variance and noise of head h at features φ, P each. It counts as knowing no less than at the start.
    void forecast(const double *state, int h, const double *phi, double q, double *made) const {
        const double *row = triangle(state, h), *last = state + g + size_t(h) * F;
        double s = 0.0, along = 0.0, length = 0.0;
        for (int i = 0; i < F; row += F - i, i++) {
            Vec sums{};
            int j = 1, n = F - i;
            for (; j + W <= n; j += W) sums += load(row + j) * load(phi + i + j);
            double rest = sum(sums);
            for (; j < n; j++) rest += row[j] * phi[i + j];
            s += phi[i] * (row[0] * phi[i] + 2.0 * rest);
            along += last[i] * phi[i], length += phi[i] * phi[i];
        }
        s = std::max((s - state[gain + h] * along * along) / state[keep + h], 0.0);
        const double *weights = state + w + size_t(h) * F * P;
        for (int p = 0; p < P; p++) {
            double mean = 0.0, variance = state[noise + size_t(h) * P + p];
            for (int i = 0; i < F; i++) mean += weights[size_t(i) * P + p] * phi[i];
            double most = length / (unit ? std::max(q, variance) : q);
            made[p] = mean, made[P + p] = std::max(variance * (1.0 + std::min(s, most)), LEAST_VARIANCE);
            made[2 * P + p] = std::max(variance, LEAST_VARIANCE);
        }
    }
    // Learns one sample, the `turn`-th, and gives the errors y − wᵀφ, H×P.
    void learn(double *state, const double *phi, const double *y, double q, int64_t turn, double *wrong,
               Memory &memory) const {
        Lease lease(memory);
        double *product = memory.take(F);
        state[errors] = std::min(state[errors] + 1.0, NOISE_MEMORY);
        for (int h = 0; h < count(); h++) {
            double rate = rates[h];
            if (leak) {
                settle(state, h, nullptr, product);
                see_nothing(state, h, int(turn % F), F * (1.0 - rate) * q, memory);
            }
            double trace = settle(state, h, phi, product), s = 0.0;
            for (int i = 0; i < F; i++) s += phi[i] * product[i];
            if (!(std::isfinite(s) && s >= 0.0)) {  // rounding has left no covariance: begin again
                reset(state, h, q);
                trace = settle(state, h, phi, product), s = 0.0;
                for (int i = 0; i < F; i++) s += phi[i] * product[i];
            }
            double kept = trace <= rate * GROWTH * F / q ? rate : 1.0, share = 1.0 / (kept + s);
            double *weights = state + w + size_t(h) * F * P;
            for (int p = 0; p < P; p++) {
                double e = y[p];
                for (int i = 0; i < F; i++) e -= weights[size_t(i) * P + p] * phi[i];
                for (int i = 0; i < F; i++) weights[size_t(i) * P + p] += share * product[i] * e;
                double &variance = state[noise + size_t(h) * P + p];
                variance += (e * e / (1.0 + s) - variance) / state[errors];
                wrong[size_t(h) * P + p] = e;
            }
            std::copy_n(product, F, state + g + size_t(h) * F);
            state[gain + h] = share, state[keep + h] = kept;
        }
    }
    // Features (φ_i − u_i φ_0)/a_i for i = 1 … changed, and targets in other units: see heads.py.
    void rescale(double *state, const double *u, const double *a, int changed, double q, const Units &units,
                 Memory &memory) const {
        Lease lease(memory);
        double *column = memory.take(F);
        for (int h = 0; h < count(); h++) {
            settle(state, h, nullptr, column);
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
            double trace = 0.0;
            for (int i = 0; i < F; i++) trace += at(i, i);
            if (!(trace <= GROWTH * F / q)) reset(state, h, q);
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
        for (int h = 0; h < count(); h++) {
            refuse_unless(state[gain + h] >= 0.0 && state[gain + h] <= 2.0, "gain", "in [0, 2]");
            refuse_unless(state[keep + h] >= 0.5 && state[keep + h] <= 1.0, "keep", "in [0.5, 1]");
        }
        refuse_unless(state[errors] >= 1.0 && state[errors] <= NOISE_MEMORY, "errors", "in [1, 100]");
    }
};

}  // namespace DRIFTGP_LEVEL
