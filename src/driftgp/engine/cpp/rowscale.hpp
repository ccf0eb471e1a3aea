// How wide a law should be in this row: the twin of wrappers/rowscale.py.

#pragma once

#include "heads.hpp"

namespace DRIFTGP_LEVEL {

class RowScale {
    // as in rowscale.py
    static constexpr int LAW = 9, DEGREES = 3;
    static constexpr double WIDTH = 1.75, FORGETTING = 0.9995, RIDGE = 50.0, FIRST = 10.0, NEAREST = 0.1, BOUND = 2.3;
    static constexpr double USUAL = 1.25, FARTHEST = 4.0, CAP = 9.0, MEMORY = 0.998, SUREST = 10.0, LEAST = 0.05;
    static constexpr double GAINS[2] = {0.2, 0.02}, SHARPNESS[2] = {1.5, 3.0};
    static constexpr double LONGEST = 1e-6, FARTHEST_OUT = 100.0;
    static constexpr double ROUNDING = 32.0 * 2.220446049250313e-16;
    const int D, P, values;  // values: inputs, share missing, and mean, log size and log scale of each law
    int F = LAW, places[DEGREES] = {};  // features, and those of each degree
    size_t weight = 0, mean = 0, variance = 0, psi = 0, covariance = 0, recent = 0, log_odds = 0;

    static double held_in(double z) { return limited(z, WIDTH); }
    static double polynomial(double z, int degree) {
        double t = held_in(z) / WIDTH;
        return WIDTH * (degree == 0 ? t : degree == 1 ? 2.0 * t * t - 1.0 : t * (4.0 * t * t - 3.0));
    }
    // Standard deviation of a value that varies; infinite for others.
    double spread(const double *state, int c) const {
        double std = std::sqrt(state[variance + c]);
        return std > ROUNDING * std::fabs(state[mean + c]) ? std : INFINITE;
    }
    // NaN without one.
    static double value(double z) { return std::isfinite(z) ? bounded_value(z) : std::nan(""); }
    void find_values(const double *state, const double *x, const double *means, const double *variances,
                     double *z) const {
        int missing = 0;
        for (int d = 0; d < D; d++) z[d] = value(x[d]), missing += !std::isfinite(x[d]);
        z[D] = double(missing) / D;
        double *laws = z + D + 1;
        for (int p = 0; p < P; p++) {
            double of_means = std::sqrt(state[variance + D + 1 + p]);
            laws[p] = value(means[p]);
            laws[P + p] = of_means > 0.0 ? value(std::log(std::fabs(means[p]) + NEAREST * of_means)) : std::nan("");
            laws[2 * P + p] = variances ? value(0.5 * std::log(variances[p])) : std::nan("");
        }
    }
    // The values in their units; 0 for one that is missing, or has no units yet.
    void in_units(const double *state, const double *values_now, double *z) const {
        for (int c = 0; c < values; c++) {
            double std = spread(state, c);
            bool known = state[weight + c] >= FIRST && std < INFINITE && std::isfinite(values_now[c]);
            z[c] = known ? (values_now[c] - state[mean + c]) / std : 0.0;
        }
    }
    // Features of the inputs, the same for all outputs.
    void find_input_features(const double *z, double *phi) const {
        double *next = phi + LAW;
        if (D > places[0]) {
            std::fill_n(next, places[0], 0.0);
            for (int d = 0; d < D; d++) next[d % places[0]] += z[d];
            for (int i = 0; i < places[0]; i++) next[i] /= std::sqrt(double((D - i - 1) / places[0] + 1));
        } else std::copy_n(z, D, next);
        const double *shared = next;
        for (int degree = DEGREES - 1; degree >= 0; degree--) {  // the first degree is where they are: it comes last
            double *to = next;
            for (int before = 0; before < degree; before++) to += places[before];
            for (int i = 0; i < places[degree]; i++) to[i] = polynomial(shared[i], degree);
        }
    }
    void find_law_features(const double *z, const double *late, int p, double *phi) const {
        const double *laws = z + D + 1;
        phi[0] = 1.0;
        for (int degree = 0; degree < DEGREES; degree++) phi[1 + degree] = polynomial(laws[p], degree);
        phi[4] = held_in(laws[P + p]), phi[5] = held_in(laws[2 * P + p]);
        for (int i = 0; i < 2; i++) phi[6 + i] = held_in(SHARPNESS[i] * std::log(USUAL * late[i * P + p] + LEAST));
        phi[8] = held_in(z[D]);
    }
    double combined(const double *state, int p, const double *phi) const {
        const double *weights = state + psi + size_t(p) * F;
        Vec sums{};
        int i = 0;
        for (; i + W <= F; i += W) sums += load(weights + i) * load(phi + i);
        double total = sum(sums);
        for (; i < F; i++) total += weights[i] * phi[i];
        return total;
    }
    void count(double *state, const double *now, const bool *observed) const {
        bool any = false;
        for (int p = 0; p < P; p++) any |= observed[p];
        for (int c = 0; c < values; c++) {
            bool counts = c <= D ? any : observed[(c - D - 1) % P];
            if (counts && std::isfinite(now[c]))
                count_value(FORGETTING, spread(state, c), now[c], state[weight + c], state[mean + c],
                            state[variance + c]);
        }
    }
    // k = C φ for an upper triangle C, row after row.
    void multiply(const double *row, const double *phi, double *k) const {
        std::fill_n(k, F, 0.0);
        for (int i = 0; i < F; row += F - i, i++) {
            double f = phi[i], own = row[0] * f;
            Vec sums{};
            int j = 1, n = F - i;
            for (; j + W <= n; j += W) {
                Vec c = load(row + j);
                sums += c * load(phi + i + j);
                store(k + i + j, load(k + i + j) + f * c);
            }
            for (; j < n; j++) own += row[j] * phi[i + j], k[i + j] += f * row[j];
            k[i] += own + sum(sums);
        }
    }
    // Follows one sample with ψ of one output; without φ only time passes. `k` and `back` have room for F numbers.
    void regress(double *state, int p, const double *phi, double step, double keep, double *k, double *back) const {
        double *C = state + covariance + size_t(p) * packed_size(F), *weights = state + psi + size_t(p) * F;
        double total = keep, s = 0.0;
        if (phi) {
            multiply(C, phi, k);
            for (int i = 0; i < F; i++) s += phi[i] * k[i];
            total += std::max(s, 0.0);
            for (int i = 0; i < F; i++) weights[i] = limited(weights[i] + k[i] * (step / total), FARTHEST_OUT);
        } else std::fill_n(k, F, 0.0);
        double inverse = 1.0 / keep, share = 1.0 / total;
        for (int i = 0; i < F; i++) {
            double widened = (C[packed_row(F, i)] - k[i] * k[i] * share) * inverse;
            back[i] = widened > 1.0 / RIDGE ? std::sqrt(1.0 / RIDGE / widened) : 1.0;
        }
        double *row = C;
        for (int i = 0; i < F; row += F - i, i++) {
            double f = back[i] * inverse, taken = k[i] * share;
            int j = 0, n = F - i;
            for (; j + W <= n; j += W)
                store(row + j, (load(row + j) - taken * load(k + i + j)) * (f * load(back + i + j)));
            for (; j < n; j++) row[j] = (row[j] - taken * k[i + j]) * (f * back[i + j]);
        }
    }

  public:
    RowScale(Layout &of, int features, int D, int P) : D(D), P(P), values(D + 1 + 3 * P) {
        int room = features - LAW, first = std::min(D, room);
        for (int degree = 0; degree < DEGREES; degree++) {
            places[degree] = std::min(std::max(room - degree * first, 0), first);
            F += places[degree];
        }
        const double most = LARGEST_VALUE * LARGEST_VALUE;
        of.part("scale", [&] {
            weight = of.floats("weight", values, {0.0, most}), mean = of.floats("mean", values, {-most, most});
            variance = of.floats("variance", values, {0.0, most});
            psi = of.floats("psi", size_t(P) * F, {-FARTHEST_OUT, FARTHEST_OUT});
            covariance = of.floats("covariance", P * packed_size(F), {-1.001 / RIDGE, 1.001 / RIDGE});
            recent = of.floats("recent", 2 * P, {0.0, FARTHEST});
            log_odds = of.floats("log_odds", P, {-SUREST, SUREST});
        });
    }
    const double *late(const double *state) const { return state + recent; }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const {
        Lease lease(memory);
        for (int p = 0; p < P; p++)
            for (int i = 0; i < F; i++) state[covariance + p * packed_size(F) + packed_row(F, i)] = 1.0 / RIDGE;
        std::fill_n(state + recent, 2 * P, 1.0 / USUAL);
        double *now = memory.take(values);
        bool *observed = memory.flags(P);
        for (int64_t i = 0; i < rows; i++) {
            find_values(state, X + i * D, y + i * P, nullptr, now);
            for (int p = 0; p < P; p++) observed[p] = std::isfinite(y[i * P + p]);
            count(state, now, observed);
        }
    }
    // log g of each output for a forecast that begins with mean and variance.
    void log_factor(const double *state, const double *x, const double *said, double *log_g, Memory &memory) const {
        Lease lease(memory);
        double *now = memory.take(values), *z = memory.take(values), *phi = memory.take(F);
        find_values(state, x, said, said + P, now);
        in_units(state, now, z);
        find_input_features(z, phi);
        for (int p = 0; p < P; p++) {
            find_law_features(z, state + recent, p, phi);
            log_g[p] = limited(combined(state, p, phi), BOUND) / (1.0 + std::exp(-state[log_odds + p]));
        }
    }
    // One sample: see rowscale.py. u is NaN where there is no target.
    void learn(double *state, const double *x, const double *said, const double *late_then, const double *u,
               const double *log_g, double elapsed, Memory &memory) const {
        Lease lease(memory);
        double *now = memory.take(values), *z = memory.take(values), *phi = memory.take(F);
        double *k = memory.take(F), *back = memory.take(F);
        bool *observed = memory.flags(P);
        double keep = std::max(std::pow(FORGETTING, elapsed), LONGEST), kept_odds = std::pow(MEMORY, elapsed);
        find_values(state, x, said, said + P, now);
        in_units(state, now, z);
        find_input_features(z, phi);
        for (int p = 0; p < P; p++) {
            observed[p] = !std::isnan(u[p]);
            double &odds = state[log_odds + p];
            odds *= kept_odds;
            if (!observed[p]) {
                regress(state, p, nullptr, 0.0, keep, k, back);
                continue;
            }
            find_law_features(z, late_then, p, phi);
            double raw = combined(state, p, phi), whole_g = limited(raw, BOUND);
            double score = u[p] * std::exp(log_g[p] - whole_g), without = u[p] * std::exp(log_g[p]);
            double pull = std::min(USUAL * score, FARTHEST) - 1.0;
            bool outwards = std::fabs(raw) > BOUND && pull * raw > 0.0;
            regress(state, p, phi, outwards ? 0.0 : pull, keep, k, back);
            odds += -whole_g - 0.5 * (std::min(score * score, CAP) - std::min(without * without, CAP));
            odds = limited(odds, SUREST);
            for (int i = 0; i < 2; i++) {
                double &average = state[recent + i * P + p];
                average += GAINS[i] * (std::min(u[p], FARTHEST) - average);
            }
        }
        count(state, now, observed);
    }
    void rescale(double *state, const Units &units) const {
        for (int c = 0; c < values; c++) {
            int p = c > D ? (c - D - 1) % P : 0;
            double centre = 0.0, scale = 1.0;
            if (c < D) centre = units.x_centre[c], scale = units.x_scale[c];
            else if (c > D + P) centre = std::log(units.y_scale[p]);
            else if (c > D) centre = units.y_centre[p], scale = units.y_scale[p];
            state[mean + c] =
                state[weight + c] > 0.0 ? limited((state[mean + c] - centre) / scale, LARGEST_VALUE) : 0.0;
            state[variance + c] = std::min(state[variance + c] / (scale * scale), LARGEST_VALUE);
        }
    }
    void move_level(double *state, const double *step) const {
        for (int p = 0; p < P; p++)
            if (state[weight + D + 1 + p] > 0.0) state[mean + D + 1 + p] += step[p];
    }
};

}  // namespace DRIFTGP_LEVEL
