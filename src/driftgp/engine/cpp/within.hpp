// Limits for inputs far outside their earlier range: the twin of wrappers/within.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class Within : public Transparent {
    static constexpr int64_t FIRST = 10;  // as in within.py
    const double margin;
    size_t low = 0, high = 0, last = 0, count = 0, limited = 0;

    static double read_margin(const driftgp::Part &part) {
        driftgp::Settings settings(part);
        double margin = settings.number("margin", 0.0, std::numeric_limits<double>::max());
        settings.end(1);
        return margin;
    }
    // Input d within the limits; NaN stays NaN.
    double limit(const double *state, int d, double x) const {
        double from = state[low + d], to = state[high + d];
        if (whole(state, count + d) < FIRST || !(to > from)) return x;
        double more = margin * (to - from), least = from - more, most = to + more;
        return x < least ? least : x > most ? most : x;
    }
    const double *near(const double *state, const double *x, Memory &memory) const {
        double *limited_x = memory.take(D);
        for (int d = 0; d < D; d++) limited_x[d] = limit(state, d, x[d]);
        return limited_x;
    }
    // The range with one more sample that has a target. An input that goes as far twice running is taken for real.
    void extend(double *state, const double *x) const {
        for (int d = 0; d < D; d++) {
            double now = x[d], &from = state[low + d], &to = state[high + d], &before = state[last + d];
            if (!std::isfinite(now)) continue;
            double limited_x = limit(state, d, now);
            if (whole(state, count + d) == 0) from = to = now;
            else {
                from = std::min(from, std::min(limited_x, std::max(now, before)));
                to = std::max(to, std::max(limited_x, std::min(now, before)));
            }
            before = now;
            whole(state, count + d)++;
        }
    }

  public:
    Within(const driftgp::Part &part, int inputs, int outputs)
        : Transparent(part, inputs, outputs), margin(read_margin(part)) {}

    void declare(Layout &state) override {
        size_t start = state.size;
        low = state.floats("low", D) - start, high = state.floats("high", D) - start;
        last = state.floats("last", D) - start, count = state.wholes("count", D) - start;
        limited = state.wholes("limited", D) - start;
        declare_held(state, start);
    }
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (int64_t i = 0; i < rows; i++)
            if (any_finite(y + i * P, P)) extend(state, X + i * D);
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        held->forecast(state + inner, near(state, x, memory), made, memory);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *limited_x = near(state, x, memory);
        held->learn(state + inner, limited_x, y, elapsed, known, memory);
        if (!any_finite(y, P)) return;
        for (int d = 0; d < D; d++) whole(state, limited + d) += std::isfinite(x[d]) && limited_x[d] != x[d];
        extend(state, x);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int d = 0; d < D; d++)
            for (size_t place : {low, high, last}) {
                double &at = state[place + d];
                at = whole(state, count + d) > 0 ? in_other_units(at, units.x_centre[d], units.x_scale[d]) : 0.0;
            }
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        refuse_unless_counts(state, count, D, "count");
        refuse_unless_counts(state, limited, D, "limited");
        for (int d = 0; d < D; d++)
            refuse_unless(state[low + d] <= state[high + d] && all_finite(state + low + d, 1) &&
                              all_finite(state + high + d, 1) && all_finite(state + last + d, 1),
                          "low", "a finite number that is not above the field high");
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
