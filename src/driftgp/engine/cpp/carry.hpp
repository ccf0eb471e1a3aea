// Gaps in the inputs, for which the last value that was seen stands in: the twin of wrappers/carry.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class CarryForward : public Transparent {
    size_t last = 0, seen = 0, filled = 0;

    // Fills the gaps of a sample; false if something had to be made up, so that nothing is to be learned from it.
    bool fill(double *state, const double *x, double *complete_x) const {
        bool all_seen = true;
        for (int d = 0; d < D; d++) {
            bool missing = std::isnan(x[d]);
            if (missing) whole(state, filled + d)++;
            else state[last + d] = x[d], whole(state, seen + d) = 1;
            complete_x[d] = state[last + d];
            all_seen &= whole(state, seen + d) != 0;
        }
        return all_seen;
    }
    static void forget(double *y, size_t count) { std::fill_n(y, count, std::numeric_limits<double>::quiet_NaN()); }

  public:
    CarryForward(const driftgp::Part &part, int inputs, int outputs) : Transparent(part, inputs, outputs) {
        driftgp::Settings(part).end(1);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        last = state.floats("last", D) - start, seen = state.wholes("seen", D) - start;
        filled = state.wholes("filled", D) - start;
        declare_held(state, start);
    }
    bool fills_gaps() const override { return true; }

    // Gaps of the batch are filled from above.
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        Lease lease(memory);
        double *complete_X = memory.take(size_t(rows) * D), *targets = memory.take(size_t(rows) * P);
        std::copy_n(y, size_t(rows) * P, targets);
        for (int64_t i = 0; i < rows; i++)
            if (!fill(state, X + i * D, complete_X + i * D)) forget(targets + i * P, P);
        held->start(state + inner, complete_X, targets, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D);
        for (int d = 0; d < D; d++) complete_x[d] = std::isnan(x[d]) ? state[last + d] : x[d];
        held->forecast(state + inner, complete_x, made, memory);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D), *nothing = memory.take(P);
        forget(nothing, P);
        bool all_seen = fill(state, x, complete_x);
        held->learn(state + inner, complete_x, all_seen ? y : nothing, elapsed, known, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int d = 0; d < D; d++)
            state[last + d] =
                whole(state, seen + d) ? in_other_units(state[last + d], units.x_centre[d], units.x_scale[d]) : 0.0;
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        for (int d = 0; d < D; d++) {
            int64_t there = whole(state, seen + d);
            refuse_unless(there == 0 || there == 1, "seen", "0 or 1");
        }
        refuse_unless_counts(state, filled, D, "filled");
        refuse_unless(all_finite(state + last, D), "last", "finite");
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
