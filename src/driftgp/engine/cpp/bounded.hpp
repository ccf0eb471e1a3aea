// Predictions within the bounds of the targets; a node may see roots of the targets in their place: the twin of
// wrappers/bounded.py, predictions/restricted.py and predictions/rooted.py.

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

// log(e^a + e^b)
static inline double log_add(double a, double b) {
    double top = std::fmax(a, b);
    return std::isfinite(top) ? top + std::log1p(std::exp(std::fmin(a, b) - top)) : top;
}
// log(Φ(β) − Φ(α)) for α ≤ β, from the tail in which they are.
static inline double log_between(double alpha, double beta) {
    bool upper = alpha > 0.0;
    double first = normal_log_cdf(upper ? -beta : alpha), last = normal_log_cdf(upper ? -alpha : beta);
    return first < last ? last + std::log(-std::expm1(first - last)) : -INFINITE;
}

// t = √(y − base + c) − √c, below the base the line with its slope there; where c is 0, t = y (rooted.py).
struct Root {
    double base, offset;

    bool rooted() const { return offset > 0.0; }
    double of(double y) const {
        if (!rooted() || y == INFINITE) return y;
        double d = y - base;
        return d / (std::sqrt(offset + (d < 0.0 ? 0.0 : d)) + std::sqrt(offset));
    }
    double back(double t) const { return rooted() ? base + t * (2.0 * std::sqrt(offset) + (t < 0.0 ? 0.0 : t)) : t; }
    double log_slope(double y) const {
        return rooted() ? -0.5 * std::log(4.0 * (offset + (y - base < 0.0 ? 0.0 : y - base))) : 0.0;
    }
    // What has the mean root, by how much the mean lies above it, and the variance, for roots that are N(m, v).
    struct Moments {
        double middle, above, variance;
    };
    Moments moments(double m, double v) const {
        if (!rooted()) return {m, 0.0, v};
        double s = std::sqrt(v), a = m / s, below = normal_cdf(a), density = normal_pdf(a);
        double over = density - std::fabs(a) * normal_cdf(-std::fabs(a));
        double slope = std::sqrt(offset) + std::max(m, 0.0) + s * over;
        return {back(m), std::max(v * (below + a * over), 0.0),
                v * (4.0 * slope * slope + v * (2.0 * below * below + density * density / 1.5))};
    }
};

class Bounded : public Holding {
    // As in predictions/restricted.py, and in wrappers/bounded.py.
    static constexpr double FARTHEST = 8.0, OUTSIDE = 10.0, NARROW = 0.3, LEAST = 1e-12;
    static constexpr double MEMORY = 0.9995, LARGEST = 3.0, DOUBT = 5.0, FARTHEST_ERROR = 6.0, PACE = 0.05;
    static constexpr double NEGATIVE = 0.1, LATE = 0.995, PROMISED = 1e-9;
    std::vector<double> lows, highs, slacks, leaks;  // one for each output; infinite where there is no bound
    std::vector<double> offsets;                     // c of the roots, 0 for targets as they are
    std::vector<double> lags, lags_of;               // inputs that are earlier targets, and their outputs
    bool roots = false;                              // whether any output has one
    size_t outside = wholes("outside", P), low = floats("low", P, FINITE), high = floats("high", P, FINITE);
    size_t slack = floats("slack", P, NOT_NEGATIVE), offset = floats("offset", P, NOT_NEGATIVE),
           learned = wholes("learned", P);
    size_t level = floats("level", P, FINITE), size = floats("size", P, NOT_NEGATIVE),
           deficit = floats("deficit", P, NOT_NEGATIVE);
    size_t excess = floats("excess", P, FINITE), curved = floats("curved", P, NOT_NEGATIVE);
    size_t lag_base = floats("lag_base", D, FINITE), lag_offset = floats("lag_offset", D, NOT_NEGATIVE);
    size_t told_low = told_floats("low", P), told_high = told_floats("high", P), told_slack = told_floats("slack", P);
    size_t told_base = told_floats("base", P), told_offset = told_floats("offset", P),
           told_gain = told_floats("gain", P);

    std::vector<double> read(driftgp::Settings &settings, const char *name, double least, double most) const {
        std::vector<double> values = settings.numbers(name, size_t(P), least, most);
        if (values.size() != 1 && values.size() != size_t(P))
            throw std::invalid_argument(std::string(name) + " must have one number, or one for each of the outputs");
        double first = values[0];
        values.resize(size_t(P), first);
        return values;
    }
    // Bounds of output p in the present units, infinite where there is none.
    double low_now(const double *state, int p) const { return std::isfinite(lows[p]) ? state[low + p] : -INFINITE; }
    double high_now(const double *state, int p) const { return std::isfinite(highs[p]) ? state[high + p] : INFINITE; }
    void count(double *state, const double *y) const {
        for (int p = 0; p < P; p++) whole(state, outside + p) += y[p] < low_now(state, p) || y[p] > high_now(state, p);
    }

    // ---- roots

    Root root(const double *state, int p) const {
        return {state[offset + p] > 0.0 ? state[low + p] : 0.0, state[offset + p]};
    }
    Root told_root(const double *made, int p) const { return {made[told_base + p], made[told_offset + p]}; }
    double gain(const double *state, int p) const {
        return clip((state[excess + p] + 0.5 * DOUBT) / (state[curved + p] + DOUBT), 0.0, LARGEST);
    }
    // Inputs and targets as the held node sees them.
    const double *seen_inputs(const double *state, const double *X, int64_t rows, Memory &memory) const {
        if (lags.empty()) return X;
        double *seen = memory.take(size_t(rows) * D);
        for (int64_t i = 0; i < rows; i++)
            for (int d = 0; d < D; d++)
                seen[i * D + d] = Root{state[lag_base + d], state[lag_offset + d]}.of(X[i * D + d]);
        return seen;
    }
    const double *seen_targets(const double *state, const double *y, int64_t rows, Memory &memory) const {
        if (!roots) return y;
        double *seen = memory.take(size_t(rows) * P);
        for (int64_t i = 0; i < rows; i++)
            for (int p = 0; p < P; p++) seen[i * P + p] = root(state, p).of(y[i * P + p]);
        return seen;
    }
    // Counts how far a target lies above what has the mean root, and how far it should.
    void follow_gain(double *state, const double *y, const double *said) const {
        for (int p = 0; p < P; p++) {
            Root of = root(state, p);
            Root::Moments now = of.moments(said[p], said[P + p]);
            double std = std::sqrt(now.variance);
            if (!of.rooted() || !std::isfinite(y[p]) || !std::isfinite(now.middle) || !(std > 0.0) ||
                !std::isfinite(std))
                continue;
            double error = clip((y[p] - now.middle) / std, -FARTHEST_ERROR, FARTHEST_ERROR);
            state[excess + p] = MEMORY * state[excess + p] + error;
            state[curved + p] = MEMORY * state[curved + p] + now.above / std;
        }
    }
    // Follows the level and the size of the targets whose roots are learned.
    void note_size(double *state, const double *y) const {
        for (int p = 0; p < P; p++) {
            if (!std::isfinite(y[p]) || !(state[offset + p] > 0.0)) continue;
            bool first = whole(state, learned + p)++ == 0;
            double above = y[p] - state[low + p], late = first ? 1.0 : 1.0 - LATE;
            state[level + p] += (first ? 1.0 : PACE) * (y[p] - state[level + p]);
            state[size + p] += late * (std::fabs(above) - state[size + p]);
            state[deficit + p] += late * (std::max(-above, 0.0) - state[deficit + p]);
        }
    }
    // Gives up the roots of outputs whose targets have gone well below the bound; returns whether there are any.
    bool drop_roots(double *state) const {
        bool any = false;
        for (int p = 0; p < P; p++) {
            if (!(state[offset + p] > 0.0 && state[deficit + p] > NEGATIVE * state[size + p])) continue;
            any = true, state[offset + p] = 0.0;
            for (size_t i = 0; i < lags.size(); i++)
                if (int(lags_of[i]) == p) state[lag_base + size_t(lags[i])] = state[lag_offset + size_t(lags[i])] = 0.0;
        }
        return any;
    }

    // ---- the held law, carried back from the roots

    double held_to_normal(const double *made, int p, double y) const {
        return held->to_normal(made + forecast_inner, p, told_root(made, p).of(y));
    }
    double held_from_normal(const double *made, int p, double z) const {
        return told_root(made, p).back(held->from_normal(made + forecast_inner, p, z));
    }

    // ---- the interval of a forecast, in normal scores of the held law

    struct Interval {
        double low, high, slack, leak;
        double alpha = -INFINITE, beta = INFINITE, log_D = 0.0, log_kept = 0.0, log_leak = 0.0;
        bool lost = false, counts = false;  // the held law has no mass inside; a bound changes the law
    };
    Interval interval(const double *made, int p) const {
        Interval of{made[told_low + p], made[told_high + p], made[told_slack + p], leaks[p]};
        if (std::isfinite(of.low)) of.alpha = held_to_normal(made, p, of.low - of.slack);
        if (std::isfinite(of.high)) of.beta = held_to_normal(made, p, of.high + of.slack);
        if (!(of.alpha > -FARTHEST || of.beta < FARTHEST)) return of;
        of.log_D = log_between(of.alpha, of.beta);
        of.lost = of.log_D == -INFINITE, of.counts = !of.lost;
        of.log_kept = std::log1p(-of.leak), of.log_leak = std::log(of.leak);
        return of;
    }
    // What lies in the slack is brought to the bound.
    static double reported(const Interval &of, double value) {
        bool near = of.leak <= PROMISED || (value >= of.low - of.slack && value <= of.high + of.slack);
        return near ? clip(value, of.low, of.high) : value;
    }
    static double nearer(double below, double above) {
        return below < above ? lower_score(below) : -lower_score(above);
    }
    // Mean and variance of the standard normal law between two ends that are close together.
    static void narrow_moments(double a, double b, double &mean, double &variance) {
        static constexpr double NODE[4] = {0.18343464249564978, 0.525532409916329, 0.7966664774136267,
                                           0.9602898564975362};
        static constexpr double WEIGHT[4] = {0.36268378337836166, 0.3137066458778869, 0.22238103445337443,
                                             0.10122853629037706};
        double centre = 0.5 * (a + b), at[8], share[8], total = 0.0;
        mean = variance = 0.0;
        for (int i = 0; i < 8; i++) {
            at[i] = 0.5 * (b - a) * (i < 4 ? -NODE[3 - i] : NODE[i - 4]);
            share[i] = WEIGHT[i < 4 ? 3 - i : i - 4] * std::exp(-at[i] * (centre + 0.5 * at[i]));
            total += share[i], mean += share[i] * at[i];
        }
        mean /= total;
        for (int i = 0; i < 8; i++) variance += share[i] / total * (at[i] - mean) * (at[i] - mean);
        mean += centre;
    }
    // Mean of N(m, s²) restricted to [low − slack, high + slack], and its variance as a share of s².
    static void restrict_moments(double m, double s, double low, double high, double slack, double &mean,
                                 double &share) {
        double alpha = (low - slack - m) / s, beta = (high + slack - m) / s;
        mean = clip(m, low, high), share = 1.0;
        if (!(alpha > -FARTHEST || beta < FARTHEST)) return;
        double moved = std::max(alpha - OUTSIDE, 0.0) + std::min(beta + OUTSIDE, 0.0);
        double a = clip(alpha - moved, -40.0, 40.0), b = clip(beta - moved, -40.0, 40.0);  // φ is 0 at ±40
        double first, second;
        if (b - a < NARROW) narrow_moments(a, b, first, second);
        else {
            double log_D = log_between(a, b);
            double at_a = std::exp(normal_log_pdf(a) - log_D), at_b = std::exp(normal_log_pdf(b) - log_D);
            first = at_a - at_b, second = 1.0 + a * at_a - b * at_b - first * first;
        }
        mean = clip(m + s * (first + moved), low, high), share = clip(second, LEAST, 1.0);
    }

  public:
    Bounded(const driftgp::Part &part, int inputs, int outputs) : Holding(part, inputs, outputs) {
        driftgp::Settings settings(part);
        lows = read(settings, "low", -INFINITE, INFINITE), highs = read(settings, "high", -INFINITE, INFINITE);
        slacks = read(settings, "slack", 0.0, std::numeric_limits<double>::max());
        leaks = read(settings, "leak", 0.0, 1.0 - 1e-9);
        offsets = read(settings, "root", 0.0, std::numeric_limits<double>::max());
        lags = settings.numbers("lags", size_t(D), 0.0, D - 1.0);
        lags_of = settings.numbers("lags", size_t(D), 0.0, P - 1.0);
        settings.end(1);
        if (lags.size() != lags_of.size()) throw std::invalid_argument("lags must be pairs of an input and an output");
        for (int p = 0; p < P; p++) {
            if (!(lows[p] < highs[p])) throw std::invalid_argument("low must be below high");
            if (offsets[p] > 0.0 && !std::isfinite(lows[p]))
                throw std::invalid_argument("root must be 0 where there is no low bound");
            roots |= offsets[p] > 0.0;
        }
    }

    bool normal() const override { return false; }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (int p = 0; p < P; p++) {
            state[low + p] = std::isfinite(lows[p]) ? lows[p] : 0.0;
            state[high + p] = std::isfinite(highs[p]) ? highs[p] : 0.0;
            state[slack + p] = slacks[p], state[offset + p] = offsets[p];
        }
        for (size_t i = 0; i < lags.size(); i++) {
            size_t x = size_t(lags[i]), p = size_t(lags_of[i]);
            state[lag_base + x] = state[low + p], state[lag_offset + x] = state[offset + p];
        }
        for (int64_t i = 0; i < rows; i++) count(state, y + i * P), note_size(state, y + i * P);
        drop_roots(state);
        Lease lease(memory);
        const double *seen = seen_inputs(state, X, rows, memory), *targets = seen_targets(state, y, rows, memory);
        held->start(state + inner, seen, targets, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *said = made + forecast_inner;
        held->forecast(state + inner, seen_inputs(state, x, 1, memory), said, memory);
        for (int p = 0; p < P; p++) {
            bool wrong = leaks[p] > 0.0 && whole(state, outside + p) > 0;  // a guess that a target has refuted
            double lower = wrong ? -INFINITE : low_now(state, p), upper = wrong ? INFINITE : high_now(state, p);
            double variance = said[P + p], beyond = state[slack + p], weight = gain(state, p), share;
            Root of = root(state, p);
            if (of.rooted()) {
                restrict_moments(said[p], std::sqrt(variance), of.of(lower - beyond), of.of(upper + beyond), 0.0,
                                 made[p], share);
                Root::Moments now = of.moments(made[p], share * variance);
                made[p] = clip(now.middle + weight * now.above, lower, upper), share = now.variance / variance;
            } else restrict_moments(said[p], std::sqrt(variance), lower, upper, beyond, made[p], share);
            made[P + p] = share * variance, made[2 * P + p] = share * said[2 * P + p];
            made[told_low + p] = lower, made[told_high + p] = upper, made[told_slack + p] = beyond;
            made[told_base + p] = of.base, made[told_offset + p] = of.offset, made[told_gain + p] = weight;
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *said = known ? known + forecast_inner : nullptr;
        if (roots) {
            if (known && !std::equal(known + told_offset, known + told_offset + P, state + offset)) known = nullptr;
            said = heard(state, seen_inputs(state, x, 1, memory), known, memory);
            follow_gain(state, y, said), note_size(state, y);
            if (drop_roots(state)) {
                said = nullptr;
                std::fill_n(state + inner, held_size, 0.0);
                held->start(state + inner, nullptr, nullptr, 0, memory);
            }
        }
        const double *seen = seen_inputs(state, x, 1, memory), *targets = seen_targets(state, y, 1, memory);
        held->learn(state + inner, seen, targets, elapsed, said, memory);
        count(state, y);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        Lease lease(memory);
        double *x_centre = memory.take(D), *x_scale = memory.take(D), *y_centre = memory.take(P),
               *y_scale = memory.take(P);
        for (int p = 0; p < P; p++) {
            double centre = units.y_centre[p], scale = units.y_scale[p];
            bool rooted = state[offset + p] > 0.0;
            y_centre[p] = rooted ? 0.0 : centre, y_scale[p] = rooted ? std::sqrt(scale) : scale;
            if (std::isfinite(lows[p])) units.target(state[low + p], p);
            if (std::isfinite(highs[p])) units.target(state[high + p], p);
            if (whole(state, learned + p) > 0) units.target(state[level + p], p);
            for (size_t sizes : {slack, offset, size, deficit}) state[sizes + p] /= scale;
        }
        for (int d = 0; d < D; d++) {
            double centre = units.x_centre[d], scale = units.x_scale[d];
            bool lagged = state[lag_offset + d] > 0.0;
            x_centre[d] = lagged ? 0.0 : centre, x_scale[d] = lagged ? std::sqrt(scale) : scale;
            if (lagged) units.input(state[lag_base + d], d);
            state[lag_offset + d] /= scale;
        }
        Holding::rescale(state, Units{x_centre, x_scale, y_centre, y_scale}, memory);
    }
    // Moves roots by as much as a target at the present level would move.
    void move_level(double *state, const double *step) const override {
        std::vector<double> moved(step, step + P);
        for (int p = 0; p < P; p++) {
            Root of = root(state, p);
            if (of.rooted()) moved[p] = of.of(state[level + p] + step[p]) - of.of(state[level + p]);
            if (whole(state, learned + p) > 0) state[level + p] += step[p];
        }
        Holding::move_level(state, moved.data());
    }
    // ---- the law: G = (1 − ε) (F − a)/D + ε F inside (predictions/restricted.py)

    double to_normal(const double *made, int p, double y) const override {
        Interval of = interval(made, p);
        double z = held_to_normal(made, p, y);
        if (!of.counts) return z;
        double within = clip(z, of.alpha, of.beta);
        double below = log_add(of.log_kept + log_between(of.alpha, within) - of.log_D, of.log_leak + normal_log_cdf(z));
        double above = log_add(of.log_kept + log_between(within, of.beta) - of.log_D, of.log_leak + normal_log_cdf(-z));
        double score = nearer(below, above);
        if (of.leak > 0.0) return score;
        return clip(score, std::isfinite(of.alpha) ? -FARTHEST : -INFINITE,
                    std::isfinite(of.beta) ? FARTHEST : INFINITE);
    }
    double from_normal(const double *made, int p, double z) const override {
        Interval of = interval(made, p);
        if (of.lost) return clip(held_from_normal(made, p, z), of.low, of.high);
        if (!of.counts) return reported(of, held_from_normal(made, p, z));
        double log_p = normal_log_cdf(z), log_q = normal_log_cdf(-z);
        double log_a = normal_log_cdf(of.alpha), log_c = normal_log_cdf(-of.beta);  // c = 1 − b
        bool guessed = of.leak > PROMISED;
        if (guessed && log_p < of.log_leak + log_a) return held_from_normal(made, p, score_of(log_p - of.log_leak));
        if (guessed && log_q < of.log_leak + log_c) return held_from_normal(made, p, -score_of(log_q - of.log_leak));
        double all = log_add(of.log_kept, of.log_leak + of.log_D);
        double below = log_add(log_p + of.log_D, of.log_kept + log_a) - all;
        double above = log_add(log_q + of.log_D, of.log_kept + log_c) - all;
        return clip(held_from_normal(made, p, nearer(below, above)), of.low, of.high);
    }
    double log_prob(const double *made, int p, double y) const override {
        Interval of = interval(made, p);
        Root root = told_root(made, p);
        double density = held->log_prob(made + forecast_inner, p, root.of(y)) + root.log_slope(y);
        if (!of.counts) return density;
        bool inside = y >= of.low - of.slack && y <= of.high + of.slack;
        return density + (inside ? log_add(of.log_kept - of.log_D, of.log_leak) : of.log_leak);
    }

  private:
    // The z with log Φ(z) = log_p, for any p, from the nearer tail.
    static double score_of(double log_p) {
        return log_p < -0.6 ? lower_score(log_p) : -lower_score(std::log(-std::expm1(std::fmin(log_p, 0.0))));
    }
};

}  // namespace DRIFTGP_LEVEL
