// How far a forecast may go: the twin of plausible.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

// The recent range of each target, in its own record.
class Span {
    static constexpr double MEMORY = 4000.0, OUTERMOST = 1e80, SHORTEST = 1e-76, SHARE = 1e-3, LEAST = 1e-12,
                            SHORT = 8.0;  // as in plausible.py
    static constexpr double ABSURD = 100.0, NONSENSE = 1e6, NO_ONES = 1e16, LEVEL = 0.01, SURE_SHARE = 0.1;
    static constexpr int64_t FIRST = 10, ROUGHLY = 3;
    static constexpr Range TARGET{-OUTERMOST, OUTERMOST};
    const int P;
    size_t low = 0, high = 0, count = 0;

  public:
    // Where the mean of a plausible forecast lies, and how large its variance is at most.
    struct Limits {
        double low, high, variance;

        enum Verdict { WITHIN, WILD, SURE };
        // Brings a voice within the limits; whether it was beyond them, as what is no number was, and was sure of it.
        Verdict apply(double &mean, double &spread, double &noise) const {
            if (mean >= low && mean <= high && spread <= variance) return WITHIN;
            double near = mean < low ? low : mean > high ? high : mean, off = mean - near;
            bool sure = std::isfinite(mean) && spread <= SURE_SHARE * SURE_SHARE * variance;
            if (sure) spread += off * off;
            mean = near;
            spread = spread > variance ? variance : spread, noise = noise > variance ? variance : noise;
            return sure ? SURE : WILD;
        }
    };

    Span(Layout &of, int P) : P(P) {
        of.part("span", [&] {
            low = of.floats("low", P, TARGET), high = of.floats("high", P, TARGET), count = of.wholes("count", P);
        });
    }
    // One more target of output p.
    void widen(double *state, int p, double y) const {
        if (!std::isfinite(y)) return;
        y = limited(y, OUTERMOST);
        double &from = state[low + p], &to = state[high + p];
        if (whole(state, count + p)++ == 0) from = to = y;
        from = std::min(y, from + (y - from) / MEMORY), to = std::max(y, to - (to - y) / MEMORY);
    }
    // One more target, which a node sees in another form. It widens the range at most up to the target itself.
    void widen_within(double *state, int p, double seen, double y) const {
        if (whole(state, count + p) > 0 && std::isfinite(y))
            seen = seen < std::min(state[low + p], y)    ? std::min(state[low + p], y)
                   : seen > std::max(state[high + p], y) ? std::max(state[high + p], y)
                                                         : seen;
        widen(state, p, seen);
    }
    // The middle of the range, and how far from it a plausible mean is at most; whether that is known.
    bool around(const double *state, int p, double &middle, double &reach) const {
        double length = state[high + p] - state[low + p];
        middle = 0.5 * (state[low + p] + state[high + p]);
        bool varied = length > SHORTEST;
        int64_t n = whole(state, count + p);
        double wider = std::max(1.0, SHORT / double(std::max<int64_t>(n, 1)));
        reach = (0.5 + wider) * (varied ? length : std::max(SHARE * std::fabs(middle), LEAST));
        return n >= (varied ? ROUGHLY : FIRST);
    }
    // How many targets running have to be so far out to be believed.
    static double confirming(double distance) {
        return std::max(2.0, std::ceil(std::log10(std::max(distance, 1.0)) / 3.0));
    }
    static double least_spread(int64_t count) {
        double n = double(std::max<int64_t>(count, 1));
        return std::max(LEVEL, 1.0 / (n * n));
    }
    // Makes NaN of every target that is not to be believed, of `rows` that lie `stride` numbers apart.
    void leave_out_absurd(double *y, int64_t rows, int stride, Memory &memory) const {
        Lease lease(memory);
        double *in_order = memory.take(size_t(rows)), *off = memory.take(size_t(rows));
        int64_t n = 0;
        for (int64_t i = 0; i < rows; i++)
            if (std::isfinite(y[i * stride])) in_order[n++] = limited(y[i * stride], OUTERMOST);
        if (n < 2) return;
        std::sort(in_order, in_order + n);
        double below = in_order[(n - 1) / 2], above = in_order[n / 2];
        double middle = std::fabs(above) < std::fabs(below) ? above : below;
        for (int64_t i = 0; i < n; i++) off[i] = std::fabs(in_order[i] - middle);
        std::sort(off, off + n);
        double scale = std::max(off[3 * (n - 1) / 4], least_spread(n - 1) * std::fabs(middle));
        if (scale == 0.0) scale = NO_ONES / ABSURD;
        auto distance = [&](int64_t i) { return limited(y[i * stride], OUTERMOST) - middle; };
        auto side = [&](int64_t i) {
            double by = distance(i);
            return std::fabs(by) > ABSURD * scale ? (by > 0.0 ? 1 : -1) : 0;
        };
        for (int64_t i = 0; i < rows;) {  // one run of targets on a side after another; what is missing ends none
            if (!std::isfinite(y[i * stride]) || side(i) == 0) {
                i++;
                continue;
            }
            int64_t end = i, length = 0;
            for (; end < rows && (!std::isfinite(y[end * stride]) || side(end) == side(i)); end++)
                length += std::isfinite(y[end * stride]);
            int64_t begin = i;
            for (i = end; begin < end; begin++)
                if (double(length) < confirming(std::fabs(distance(begin)) / scale)) y[begin * stride] = NAN;
        }
    }
    // How far out a target of output p lies, in lengths of the range, and on which side; 0 where that is not absurd.
    double far(const double *state, int p, double y, bool first, int &side) const {
        double from = state[low + p], to = state[high + p];
        y = limited(y, OUTERMOST);
        double scale =
            std::max(to - from, least_spread(whole(state, count + p)) * std::max(std::fabs(from), std::fabs(to)));
        double off = std::max(std::max(from - y, y - to), 0.0);
        side = y > to ? 1 : -1;
        if (whole(state, count + p) == 0) return 0.0;
        double most = first ? ABSURD : NONSENSE;
        if (!(scale > 0.0)) scale = NO_ONES / most;
        return off / scale > most ? off / scale : 0.0;
    }
    // How large the standard deviation of a next target is at least, after the first ones.
    double least_std(const double *state, int p) const {
        static constexpr double OF_RANGE[] = {0.0, 6.48, 5.61, 1.50, 0.882, 0.667, 0.559, 0.494, 0.450, 0.418};
        int64_t n = whole(state, count + p);
        if (n == 0) return INFINITE;
        if (n > 9) return 0.0;
        return OF_RANGE[n] * (n == 1 ? std::fabs(state[low + p]) : state[high + p] - state[low + p]);
    }
    void clear(double *state) const {
        for (int p = 0; p < P; p++) state[low + p] = state[high + p] = 0.0, whole(state, count + p) = 0;
    }
    Limits limits(const double *state, int p) const {
        double from = state[low + p], to = state[high + p], length = to - from;
        if (whole(state, count + p) < FIRST || !(length > SHORTEST)) return {-INFINITE, INFINITE, INFINITE};
        return {from - length, to + length, length * length};
    }
    void rescale(double *state, const Units &units) const {
        for (int p = 0; p < P; p++)
            for (size_t end : {low, high}) units.target(state[end + p], p, whole(state, count + p) > 0);
    }
    void check(const double *state) const {
        for (int p = 0; p < P; p++) refuse_unless(state[low + p] <= state[high + p], "low", "at most high");
    }
};

}  // namespace DRIFTGP_LEVEL
