// How far a forecast may go: the twin of plausible.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

// The range of each target of late, in a record of its own.
class Span {
    static constexpr double MEMORY = 4000.0, OUTERMOST = 1e80, SHORTEST = 1e-76, SHARE = 1e-3, LEAST = 1e-12;  // as in plausible.py
    static constexpr int64_t FIRST = 10;
    int P = 0;
    size_t low = 0, high = 0, count = 0;

  public:
    // Where the mean of a plausible forecast lies, and how large its variance is at most.
    struct Limits {
        double low, high, variance;

        // Brings a voice within the limits; whether it was beyond them. What is no number was.
        bool apply(double &mean, double &spread, double &noise) const {
            if (mean >= low && mean <= high && spread <= variance) return false;
            mean = mean < low ? low : mean > high ? high : mean;
            spread = spread > variance ? variance : spread, noise = noise > variance ? variance : noise;
            return true;
        }
    };

    void declare(Layout &state, size_t start, int outputs) {
        P = outputs;
        state.part("span", [&] {
            low = state.floats("low", P) - start, high = state.floats("high", P) - start;
            count = state.wholes("count", P) - start;
        });
    }
    // One more target of output p.
    void widen(double *state, int p, double y) const {
        if (!std::isfinite(y)) return;
        y = std::min(std::max(y, -OUTERMOST), OUTERMOST);
        double &from = state[low + p], &to = state[high + p];
        if (whole(state, count + p)++ == 0) from = to = y;
        from = std::min(y, from + (y - from) / MEMORY), to = std::max(y, to - (to - y) / MEMORY);
    }
    // One more target, of which a node sees something else: it widens the range by no more than itself would.
    void widen_within(double *state, int p, double seen, double y) const {
        if (whole(state, count + p) > 0 && std::isfinite(y))
            seen = seen < std::min(state[low + p], y) ? std::min(state[low + p], y)
                   : seen > std::max(state[high + p], y) ? std::max(state[high + p], y) : seen;
        widen(state, p, seen);
    }
    // The middle of the range, and how far from it a plausible mean is at most; whether that is known.
    bool around(const double *state, int p, double &middle, double &reach) const {
        double length = state[high + p] - state[low + p];
        middle = 0.5 * (state[low + p] + state[high + p]);
        reach = 1.5 * (length > SHORTEST ? length : std::max(SHARE * std::fabs(middle), LEAST));
        return whole(state, count + p) >= FIRST;
    }
    Limits limits(const double *state, int p) const {
        double from = state[low + p], to = state[high + p], length = to - from;
        if (whole(state, count + p) < FIRST || !(length > SHORTEST)) return {-INFINITE, INFINITE, INFINITE};
        return {from - length, to + length, length * length};
    }
    void rescale(double *state, const Units &units) const {
        for (int p = 0; p < P; p++)
            for (size_t end : {low, high}) {
                double &at = state[end + p];
                at = whole(state, count + p) > 0 ? in_other_units(at, units.y_centre[p], units.y_scale[p]) : 0.0;
            }
    }
    void check(const double *state) const {
        refuse_unless_counts(state, count, P, "count");
        for (int p = 0; p < P; p++)
            refuse_unless(state[low + p] <= state[high + p] && std::fabs(state[low + p]) <= OUTERMOST &&
                              std::fabs(state[high + p]) <= OUTERMOST,
                          "low", "finite, and at most high");
    }
};

}  // namespace DRIFTGP_LEVEL
