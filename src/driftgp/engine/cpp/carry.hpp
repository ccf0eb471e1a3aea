// Gaps in the inputs, for which the last value that was seen stands in: the twin of wrappers/carry.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class CarryForward : public Transparent {
    size_t last = 0, origin = 0, seen = 0, filled = 0;

    // An input as the held model sees it. What comes first after a gap is what would have been there.
    double carried(const double *state, double x, int d) const {
        bool begins = whole(state, seen + d) == 0 && whole(state, filled + d) > 0;
        if (std::isnan(x) || begins) return state[last + d];
        constexpr double largest = std::numeric_limits<double>::max();
        return std::clamp(x - state[origin + d], -largest, largest);
    }
    // Fills the gaps of a sample.
    void fill(double *state, const double *x, double *complete_x) const {
        for (int d = 0; d < D; d++) {
            double z = complete_x[d] = carried(state, x[d], d);
            state[last + d] = z;
            if (std::isnan(x[d])) {
                whole(state, filled + d)++;
                continue;
            }
            if (whole(state, seen + d) == 0) state[origin + d] = x[d] - z;
            whole(state, seen + d) = 1;
        }
    }

  public:
    CarryForward(const driftgp::Part &part, int inputs, int outputs) : Transparent(part, inputs, outputs) {
        driftgp::Settings(part).end(1);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        last = state.floats("last", D) - start, origin = state.floats("origin", D) - start;
        seen = state.wholes("seen", D) - start;
        filled = state.wholes("filled", D) - start;
        declare_held(state, start);
    }
    bool fills_gaps() const override { return true; }

    // Gaps of the batch are filled from above.
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        Lease lease(memory);
        double *complete_X = memory.take(size_t(rows) * D);
        for (int64_t i = 0; i < rows; i++) fill(state, X + i * D, complete_X + i * D);
        held->start(state + inner, complete_X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D);
        for (int d = 0; d < D; d++) complete_x[d] = carried(state, x[d], d);
        held->forecast(state + inner, complete_x, made, memory);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D);
        fill(state, x, complete_x);
        held->learn(state + inner, complete_x, y, elapsed, known, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int d = 0; d < D; d++) {
            state[last + d] = in_other_units(state[last + d], units.x_centre[d], units.x_scale[d]);
            state[origin + d] = in_other_units(state[origin + d], 0.0, units.x_scale[d]);
        }
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        for (int d = 0; d < D; d++) {
            int64_t there = whole(state, seen + d);
            refuse_unless(there == 0 || there == 1, "seen", "0 or 1");
        }
        refuse_unless_counts(state, filled, D, "filled");
        refuse_unless(all_finite(state + last, D), "last", "finite");
        refuse_unless(all_finite(state + origin, D), "origin", "finite");
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
