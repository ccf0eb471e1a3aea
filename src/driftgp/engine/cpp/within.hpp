// Limits for inputs far outside their earlier range: the twin of wrappers/within.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class Within : public Transparent {
    static constexpr int64_t FIRST = 10, RECORD = 50, SPREAD = 500, DOUBT = 200;  // as in within.py
    static constexpr double SHARE = 0.01, MOST_SQUARE = 1e120;
    const double margin;
    size_t low = floats("low", D, FINITE), high = floats("high", D, FINITE), last = floats("last", D, FINITE);
    size_t count = wholes("count", D), limited = wholes("limited", D), follow = wholes("follow", 1, {-1, 1});
    size_t judged = wholes("judged"), hits = wholes("hits", 1, {-DOUBT, COUNTER.high});
    size_t mean = floats("mean", P, FINITE), variance = floats("variance", P, NOT_NEGATIVE);

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
        double more = margin * (to - from);
        return clip(x, from - more, to + more);
    }
    const double *near(const double *state, const double *x, Memory &memory) const {
        if (follows_inputs(state)) return x;
        return at_limit(state, x, memory);
    }
    const double *at_limit(const double *state, const double *x, Memory &memory) const {
        double *limited_x = memory.take(D);
        for (int d = 0; d < D; d++) limited_x[d] = limit(state, d, x[d]);
        return limited_x;
    }
    // Whether the targets are no farther from a forecast that followed its inputs than from one at the limit.
    bool confirmed(const double *state, const double *said, const double *limited_x, const double *y,
                   Memory &memory) const {
        Lease lease(memory);
        const double *at_limit = heard(state, limited_x, nullptr, memory);
        for (int p = 0; p < P; p++)
            if (std::isfinite(y[p]) && !(std::fabs(y[p] - said[p]) <= std::fabs(y[p] - at_limit[p]))) return false;
        return true;
    }
    // Counts the hits, and the spread of the targets, if they are all there.
    void note(double *state, const double *y, const double *said) const {
        if (!all_finite(y, P) || !all_finite(said, P)) return;
        int64_t count = ++whole(state, judged);
        double gain = 1.0 / double(std::min(count, SPREAD));
        bool hit = true;
        for (int p = 0; p < P; p++) {
            double now = bounded_value(y[p]), step = now - state[mean + p], off = now - bounded_value(said[p]);
            double &v = state[variance + p];
            state[mean + p] += gain * step, v = (1.0 - gain) * (v + gain * step * step);
            hit &= off * off < SHARE * SHARE * v;
        }
        whole(state, hits) = hit ? whole(state, hits) + 1 : std::min<int64_t>(whole(state, hits), 0);
    }
    // The range with one more sample that has a target. An input that goes as far twice running is taken for real.
    void extend(double *state, const double *x) const {
        bool open = follows_inputs(state);
        for (int d = 0; d < D; d++) {
            double now = x[d], &from = state[low + d], &to = state[high + d], &before = state[last + d];
            if (!std::isfinite(now)) continue;
            double limited_x = open ? now : limit(state, d, now);
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
        const double *limited_x = at_limit(state, x, memory),
                     *said = heard(state, near(state, x, memory), known, memory);
        bool beyond = false;
        for (int d = 0; d < D; d++) beyond |= std::isfinite(x[d]) && limited_x[d] != x[d];
        bool vain = beyond && follows_inputs(state) && !confirmed(state, said, limited_x, y, memory), far = false;
        if (vain) whole(state, follow) = -1, said = nullptr;
        const double *seen = follows_inputs(state) ? x : limited_x, *learned = y;
        for (int d = 0; d < D; d++) far |= std::abs(x[d] - seen[d]) > state[high + d] - state[low + d];
        if (vain || far) {  // a wrong input says nothing of its target
            double *nothing = memory.take(P);
            std::fill_n(nothing, P, NAN);
            learned = nothing;
        }
        held->learn(state + inner, seen, learned, elapsed, said, memory);
        if (any_finite(y, P)) {
            for (int d = 0; d < D; d++) whole(state, limited + d) += std::isfinite(x[d]) && seen[d] != x[d];
            extend(state, x);
        }
        if (said) note(state, y, said);
        if (whole(state, follow) < 0) whole(state, follow) = 0, whole(state, hits) = -DOUBT;
    }
    // Whether inputs are seen as they are.
    bool follows_inputs(const double *state) const override {
        return whole(state, follow) == 1 || (whole(state, follow) == 0 && whole(state, hits) >= RECORD);
    }
    int follow_inputs(double *state, int how) const override {
        int before = int(whole(state, follow));
        whole(state, follow) = how;
        return before;
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int d = 0; d < D; d++)
            for (size_t place : {low, high, last}) units.input(state[place + d], d, whole(state, count + d) > 0);
        for (int p = 0; p < P; p++) {
            double square = units.y_scale[p] * units.y_scale[p];
            units.target(state[mean + p], p, whole(state, judged) > 0);
            state[variance + p] = std::min(state[variance + p] / square, MOST_SQUARE);
        }
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        refuse_unless(whole(state, hits) <= whole(state, judged), "hits", "at most the field judged");
        for (int d = 0; d < D; d++) refuse_unless(state[low + d] <= state[high + d], "low", "at most the field high");
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
