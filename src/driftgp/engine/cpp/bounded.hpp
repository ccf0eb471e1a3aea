// Predictions that stay within the bounds of the targets: the twin of wrappers/bounded.py and predictions/bounded.py.

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
static inline double clip(double value, double low, double high) { return std::min(std::max(value, low), high); }

class Bounded : public Holding {
    static constexpr double FARTHEST = 8.0, OUTSIDE = 10.0, NARROW = 0.3, LEAST = 1e-12;  // as in bounded.py
    std::vector<double> lows, highs, slacks, leaks;  // one for each output; infinite where there is no bound
    size_t outside = 0, low = 0, high = 0, slack = 0;
    size_t told_low = 0, told_high = 0, told_slack = 0;  // in a forecast

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
        for (int p = 0; p < P; p++)
            whole(state, outside + p) +=
                y[p] < low_now(state, p) - state[slack + p] || y[p] > high_now(state, p) + state[slack + p];
    }

    // ---- the interval of a forecast, in normal scores of the held law

    struct Interval {
        double low, high, slack, leak;
        double alpha, beta, log_D, log_kept, log_leak;
        bool lost, counts;  // the held law has no mass inside; a bound changes the law
    };
    Interval interval(const double *made, int p) const {
        Interval of{made[told_low + p], made[told_high + p], made[told_slack + p], leaks[p], -INFINITE, INFINITE,
                    0.0, 0.0, 0.0, false, false};
        if (std::isfinite(of.low)) of.alpha = held->to_normal(made + forecast_inner, p, of.low - of.slack);
        if (std::isfinite(of.high)) of.beta = held->to_normal(made + forecast_inner, p, of.high + of.slack);
        if (!(of.alpha > -FARTHEST || of.beta < FARTHEST)) return of;
        of.log_D = log_between(of.alpha, of.beta);
        of.lost = of.log_D == -INFINITE, of.counts = !of.lost;
        of.log_kept = std::log1p(-of.leak), of.log_leak = std::log(of.leak);
        return of;
    }
    // What lies in the slack is brought to the bound.
    static double reported(const Interval &of, double value) {
        bool near = value >= of.low - of.slack && value <= of.high + of.slack;
        return near ? clip(value, of.low, of.high) : value;
    }
    static double nearer(double below, double above) {
        return below < above ? lower_score(below) : -lower_score(above);
    }
    // Mean and variance of the standard normal law between two ends that are close together.
    static void narrow_moments(double a, double b, double &mean, double &variance) {
        static constexpr double NODE[4] = {0.18343464249564978, 0.525532409916329, 0.7966664774136267, 0.9602898564975362};
        static constexpr double WEIGHT[4] = {0.36268378337836166, 0.3137066458778869, 0.22238103445337443, 0.10122853629037706};
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
        settings.end(1);
        for (int p = 0; p < P; p++)
            if (!(lows[p] < highs[p])) throw std::invalid_argument("low must be below high");
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        outside = state.wholes("outside", P) - start, low = state.floats("low", P) - start;
        high = state.floats("high", P) - start, slack = state.floats("slack", P) - start;
        declare_held(state, start);
    }
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        for (const char *name : {"mean", "variance", "noise"}) forecast.floats(name, P);
        told_low = forecast.floats("low", P) - start, told_high = forecast.floats("high", P) - start;
        told_slack = forecast.floats("slack", P) - start;
        declare_held_forecast(forecast, start);
    }
    bool normal() const override { return false; }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (int p = 0; p < P; p++) {
            state[low + p] = std::isfinite(lows[p]) ? lows[p] : 0.0;
            state[high + p] = std::isfinite(highs[p]) ? highs[p] : 0.0;
            state[slack + p] = slacks[p];
        }
        for (int64_t i = 0; i < rows; i++) count(state, y + i * P);
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        double *said = made + forecast_inner;
        held->forecast(state + inner, x, said, memory);
        for (int p = 0; p < P; p++) {
            bool wrong = leaks[p] > 0.0 && whole(state, outside + p) > 0;  // a guess that a target has refuted
            double lower = wrong ? -INFINITE : low_now(state, p), upper = wrong ? INFINITE : high_now(state, p), share;
            restrict_moments(said[p], std::sqrt(said[P + p]), lower, upper, state[slack + p], made[p], share);
            made[P + p] = share * said[P + p], made[2 * P + p] = share * said[2 * P + p];
            made[told_low + p] = lower, made[told_high + p] = upper, made[told_slack + p] = state[slack + p];
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        held->learn(state + inner, x, y, elapsed, known ? known + forecast_inner : nullptr, memory);
        count(state, y);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int p = 0; p < P; p++) {
            double centre = units.y_centre[p], scale = units.y_scale[p];
            if (std::isfinite(lows[p])) state[low + p] = (state[low + p] - centre) / scale;
            if (std::isfinite(highs[p])) state[high + p] = (state[high + p] - centre) / scale;
            state[slack + p] /= scale;
        }
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        refuse_unless_counts(state, outside, P, "outside");
        refuse_unless(all_finite(state + low, P), "low", "finite");
        refuse_unless(all_finite(state + high, P), "high", "finite");
        for (int p = 0; p < P; p++)
            refuse_unless(std::isfinite(state[slack + p]) && state[slack + p] >= 0.0, "slack", "finite, and 0 or more");
        Holding::check(state);
    }

    // ---- the law: G = (1 − ε) (F − a)/D + ε F inside (predictions/bounded.py)

    double to_normal(const double *made, int p, double y) const override {
        Interval of = interval(made, p);
        double z = held->to_normal(made + forecast_inner, p, y);
        if (!of.counts) return z;
        double within = clip(z, of.alpha, of.beta);
        double below = log_add(of.log_kept + log_between(of.alpha, within) - of.log_D, of.log_leak + normal_log_cdf(z));
        double above = log_add(of.log_kept + log_between(within, of.beta) - of.log_D, of.log_leak + normal_log_cdf(-z));
        double score = nearer(below, above);
        if (of.leak > 0.0) return score;
        return clip(score, std::isfinite(of.alpha) ? -FARTHEST : -INFINITE, std::isfinite(of.beta) ? FARTHEST : INFINITE);
    }
    double from_normal(const double *made, int p, double z) const override {
        const double *said = made + forecast_inner;
        Interval of = interval(made, p);
        if (of.lost) return clip(held->from_normal(said, p, z), of.low, of.high);
        if (!of.counts) return reported(of, held->from_normal(said, p, z));
        double log_p = normal_log_cdf(z), log_q = normal_log_cdf(-z);
        double log_a = normal_log_cdf(of.alpha), log_c = normal_log_cdf(-of.beta);  // c = 1 − b
        if (log_p < of.log_leak + log_a) return held->from_normal(said, p, score_of(log_p - of.log_leak));
        if (log_q < of.log_leak + log_c) return held->from_normal(said, p, -score_of(log_q - of.log_leak));
        double all = log_add(of.log_kept, of.log_leak + of.log_D);
        double below = log_add(log_p + of.log_D, of.log_kept + log_a) - all;
        double above = log_add(log_q + of.log_D, of.log_kept + log_c) - all;
        return clip(held->from_normal(said, p, nearer(below, above)), of.low, of.high);
    }
    double log_prob(const double *made, int p, double y) const override {
        Interval of = interval(made, p);
        double density = held->log_prob(made + forecast_inner, p, y);
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
