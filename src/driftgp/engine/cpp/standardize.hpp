// Inputs and targets in units of their own spread: the twin of wrappers/standardize.py.

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

class Standardize : public Moved {
    static constexpr double ROUNDING = 32.0, FARTHEST = 10.0;  // as in standardize.py
    static constexpr double SMALLEST = 1e-40;
    double forgetting = 0.0;  // 0: the units of the warm-up batch, for good
    const int columns = D + P;  // inputs first and targets after them
    size_t centre = floats("centre", columns, FINITE), scale = floats("scale", columns, POSITIVE);
    size_t weight = floats("weight", columns, NOT_NEGATIVE), mean = floats("mean", columns, FINITE);
    size_t variance = floats("variance", columns, NOT_NEGATIVE), renewals = wholes("renewals");

    bool adapts() const { return forgetting > 0.0; }

    // ---- moments: see standardize.py

    double column(const double *x, const double *y, int c) const { return bounded_value(c < D ? x[c] : y[c - D]); }

    // Weighted moments of a batch, column by column, over the values that are there in rows with all their targets.
    void measure(double *state, const double *X, const double *y, int64_t rows) const {
        double keep = adapts() ? forgetting : 1.0;
        for (int c = 0; c < columns; c++) {
            auto over = [&](auto visit) {  // from the last row, whose weight is 1
                int64_t age = 0;
                for (int64_t i = rows - 1; i >= 0; i--) {
                    double z = column(X + i * D, y + i * P, c);
                    if (std::isfinite(z) && all_finite(y + i * P, P)) visit(std::pow(keep, double(age++)), z);
                }
            };
            double sum = 0.0, first = 0.0, second = 0.0;
            over([&](double w, double) { sum += w; });
            double whole_weight = sum > 0.0 ? sum : 1.0;
            over([&](double w, double z) { first += w / whole_weight * z; });
            over([&](double w, double z) { second += w / whole_weight * (z - first) * (z - first); });
            state[weight + c] = sum, state[mean + c] = first, state[variance + c] = second;
        }
    }
    void count(double *state, int c, double z) const {
        count_value(forgetting, state[scale + c], z, state[weight + c], state[mean + c], state[variance + c]);
    }
    // Scale for want of a better one: the size of the values.
    double size(const double *state, int c) const {
        return state[mean + c] == 0.0 ? 1.0 : std::max(std::fabs(state[mean + c]), SMALLEST);
    }
    // Standard deviation of a column that varies.
    double spread(const double *state, int c, double otherwise) const {
        double std = std::sqrt(state[variance + c]);
        return std > ROUNDING * EPSILON * std::fabs(state[mean + c]) ? std::max(std, SMALLEST) : otherwise;
    }

    // ---- units

    double in_units(const double *state, int c, double z) const {
        return in_other_units(bounded_value(z), state[centre + c], state[scale + c]);
    }

    // Inputs to predict for, as the held node sees them; whether they are those that it would learn from.
    bool seen(const double *state, const double *x, double *z) const {
        bool same = true, as_they_are = !adapts() || held->follows_inputs(state + inner);
        for (int d = 0; d < D; d++) {
            z[d] = in_units(state, d, x[d]);
            if (as_they_are || !(std::fabs(z[d]) > FARTHEST)) continue;
            z[d] = std::copysign(FARTHEST, z[d]), same = false;
        }
        return same;
    }
    // Whether a forecast was made in the present units of the targets.
    bool made_in(const double *state, const double *made) const {
        return std::equal(made + told_scale, made + told_scale + P, state + scale + D) &&
               std::equal(made + told_shift, made + told_shift + P, state + centre + D);
    }
    // Counts a sample with all its targets; whether the units had to change.
    bool follow(double *state, const double *x, const double *y, Memory &memory) const {
        Lease lease(memory);
        double *scales = memory.take(columns);
        bool renew = false;
        for (int c = 0; c < columns; c++) {
            double z = column(x, y, c), before = state[scale + c];
            bool first = state[weight + c] == 0.0;
            if (std::isfinite(z)) count(state, c, z);
            scales[c] = spread(state, c, first ? size(state, c) : before);
            double ratio = scales[c] / before;
            renew |= ratio > 2.0 || ratio < 0.5 || std::fabs(state[mean + c] - state[centre + c]) > before;
            renew |= first && state[weight + c] > 0.0;
        }
        if (!renew) return false;
        // new units, which to the held node are units of the present ones
        double *shift = memory.take(columns), *factor = memory.take(columns);
        for (int c = 0; c < columns; c++) {
            shift[c] = (state[mean + c] - state[centre + c]) / state[scale + c];
            factor[c] = scales[c] / state[scale + c];
            state[centre + c] = state[mean + c], state[scale + c] = scales[c];
        }
        held->rescale(state + inner, Units{shift, factor, shift + D, factor + D}, memory);
        whole(state, renewals)++;
        return true;
    }

  public:
    Standardize(const driftgp::Part &part, int inputs, int outputs) : Moved(part, inputs, outputs) {
        driftgp::Settings settings(part);
        forgetting = settings.number("adapt", 0.0, 1.0);
        settings.end(1);
        if (adapts() && !held->rescales())
            throw std::invalid_argument(
                "adapt must be False for a model that cannot change the units of what it has learned");
    }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        if (rows == 0 && !adapts())
            throw std::invalid_argument(
                "X must hold a warm-up batch to take the units from; without one, give adapt a number");
        Lease lease(memory);
        measure(state, X, y, rows);
        for (int c = 0; c < columns; c++)
            state[centre + c] = state[mean + c], state[scale + c] = spread(state, c, size(state, c));
        double *Z = memory.take(size_t(rows) * D), *targets = memory.take(size_t(rows) * P);
        for (int64_t i = 0; i < rows; i++) {
            for (int d = 0; d < D; d++) Z[i * D + d] = in_units(state, d, X[i * D + d]);
            for (int p = 0; p < P; p++) targets[i * P + p] = in_units(state, D + p, y[i * P + p]);
        }
        const double *from = state + centre, *size = state + scale;
        held->expect_units(state + inner, Units{from, size, from + D, size + D});
        held->start(state + inner, Z, targets, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *z = memory.take(D), *said = made + forecast_inner;
        seen(state, x, z);
        held->forecast(state + inner, z, said, memory);
        for (int p = 0; p < P; p++) tell(made, p, state[scale + D + p], state[centre + D + p]);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *z = memory.take(D), *targets = memory.take(P);
        // a forecast in other units, renewed now or since it was issued, or at another input, is not the held node's
        const double *said = known && made_in(state, known) && seen(state, x, z) ? known + forecast_inner : nullptr;
        if (adapts() && all_finite(y, P) && follow(state, x, y, memory)) said = nullptr;
        for (int d = 0; d < D; d++) z[d] = in_units(state, d, x[d]);
        for (int p = 0; p < P; p++) targets[p] = in_units(state, D + p, y[p]);
        held->learn(state + inner, z, targets, elapsed, said, memory);
    }
    bool rescales() const override { return true; }
    // Only what is in the user's units changes: the held node sees what it saw before.
    void rescale(double *state, const Units &units, Memory &) const override {
        for (int c = 0; c < columns; c++) {
            double shift = c < D ? units.x_centre[c] : units.y_centre[c - D];
            double factor = c < D ? units.x_scale[c] : units.y_scale[c - D];
            state[centre + c] = (state[centre + c] - shift) / factor, state[scale + c] /= factor;
            state[mean + c] = (state[mean + c] - shift) / factor, state[variance + c] /= factor * factor;
        }
    }
    // Another centre of the targets: in these units the held node has seen what it saw before.
    void move_level(double *state, const double *step) const override {
        for (int p = 0; p < P; p++) state[centre + D + p] += step[p], state[mean + D + p] += step[p];
    }
};

}  // namespace DRIFTGP_LEVEL
