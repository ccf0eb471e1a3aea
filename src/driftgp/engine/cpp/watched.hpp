// A node whose forecasts are scored before it learns: the twin of wrappers/watched.py and monitor.py.

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

// Residuals, their running means, and Page and Hinkley's test for a fall of the log score.
class Monitor {
    static constexpr int64_t USUAL = 30;                   // as in monitor.py
    static constexpr double WORST = 20.0, LEAST_SPREAD = 0.5;
    static constexpr double FARTHEST = 1e6;  // standard deviations that a residual counts as at most
    int lags = 1, P = 1;
    double forgetting = 1.0, slack = 0.0, threshold = 0.0;
    size_t scored = 0, residual = 0, before = 0, weight = 0, mean = 0, square = 0, products = 0, score = 0, usual = 0,
           variance = 0, since = 0, shortfall = 0, alarmed = 0;

    // One step of the test.
    void test(double *state, double now) const {
        double most = threshold / 4.0, fall = 0.0, &mean_score = state[usual], &spread = state[variance];
        Whole &samples = whole(state, since);
        if (samples > 0) fall = mean_score - now;
        double standardised = fall / std::max(std::sqrt(spread), LEAST_SPREAD);
        standardised = std::min(std::max(standardised, -most), most);
        double n = double(samples + 1), &sum = state[shortfall];
        sum = samples + 1 > USUAL ? std::max(sum + standardised - slack, 0.0) : 0.0;
        if (samples > 0) spread = (1.0 - 1.0 / n) * (spread + fall * fall / n), mean_score -= fall / n;
        else spread = 0.0, mean_score = now;
        samples++;
        if (!(sum > threshold)) return;
        samples = 0, sum = 0.0;
        whole(state, alarms)++, whole(state, alarmed) = whole(state, scored) + 1;
    }

  public:
    size_t alarms = 0;

    void read(driftgp::Settings &settings, int outputs) {
        double most = std::numeric_limits<double>::max();
        P = outputs, lags = int(settings.whole("lags", 1, (1 << 24) / P));
        forgetting = settings.number("forgetting", 0.0, 1.0);
        slack = settings.number("slack", 0.0, most), threshold = settings.positive("threshold");
    }
    void declare(Layout &state, size_t start) {
        scored = state.wholes("scored") - start, residual = state.floats("residual", P) - start;
        before = state.floats("before", size_t(lags) * P) - start, weight = state.floats("weight") - start;
        mean = state.floats("mean", P) - start, square = state.floats("square", P) - start;
        products = state.floats("products", size_t(lags) * P) - start, score = state.floats("score") - start;
        usual = state.floats("usual") - start, variance = state.floats("variance") - start;
        since = state.wholes("since") - start, shortfall = state.floats("shortfall") - start;
        alarms = state.wholes("alarms") - start, alarmed = state.wholes("alarmed") - start;
    }
    // Score the forecast of a node; where a target is missing there is nothing to score.
    void update(double *state, const Node &node, const double *made, const double *y) const {
        double now = 0.0;
        for (int p = 0; p < P; p++) {
            if (!std::isfinite(y[p])) return;
            now += std::max(node.log_prob(made, p, y[p]), node.log_prob(made, p, made[p]) - WORST) / P;
        }
        if (!std::isfinite(now)) return;
        double n = state[weight] = forgetting * state[weight] + 1.0;
        std::copy_backward(state + before, state + before + size_t(lags - 1) * P, state + before + size_t(lags) * P);
        std::copy_n(state + residual, P, state + before);
        for (int p = 0; p < P; p++) {
            double e = std::min(std::max((y[p] - made[p]) / std::sqrt(made[P + p]), -FARTHEST), FARTHEST);
            state[residual + p] = e;
            state[mean + p] += (e - state[mean + p]) / n;
            state[square + p] += (e * e - state[square + p]) / n;
            for (int lag = 0; lag < lags; lag++) {
                size_t at = size_t(lag) * P + p;
                state[products + at] += (e * state[before + at] - state[products + at]) / n;
            }
        }
        state[score] += (now - state[score]) / n;
        test(state, now);
        whole(state, scored)++;
    }
    void check(const double *state) const {
        refuse_unless_counts(state, scored, 1, "monitor.scored");
        refuse_unless_counts(state, since, 1, "monitor.since");
        refuse_unless_counts(state, alarms, 1, "monitor.alarms");
        refuse_unless_counts(state, alarmed, 1, "monitor.alarmed");
        refuse_unless(whole(state, alarmed) <= whole(state, scored) && whole(state, since) <= whole(state, scored),
                      "monitor.scored", "no less than since and alarmed");
    }
};

class Watched : public Holding {
    Monitor monitor;
    size_t alarms = 0;  // in a forecast

  public:
    Watched(const driftgp::Part &part, int inputs, int outputs) : Holding(part, inputs, outputs) {
        driftgp::Settings settings(part);
        monitor.read(settings, P);
        settings.end(1);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        state.part("monitor", [&] { monitor.declare(state, start); });
        declare_held(state, start);
    }
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        for (const char *name : {"mean", "variance", "noise"}) forecast.floats(name, P);
        alarms = forecast.wholes("alarms") - start;
        declare_held_forecast(forecast, start);
    }

    // The warm-up batch is not scored.
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        held->forecast(state + inner, x, made + forecast_inner, memory);
        std::copy_n(made + forecast_inner, 3 * P, made);
        whole(made, alarms) = whole(state, monitor.alarms);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *said = heard(state, x, known, memory);
        monitor.update(state, *held, said, y);
        held->learn(state + inner, x, y, elapsed, said, memory);
    }
    void check(const double *state) const override {
        monitor.check(state);
        Holding::check(state);
    }

    // ---- the law is the held node's

    double to_normal(const double *made, int p, double y) const override {
        return held->to_normal(made + forecast_inner, p, y);
    }
    double from_normal(const double *made, int p, double z) const override {
        return held->from_normal(made + forecast_inner, p, z);
    }
    double log_prob(const double *made, int p, double y) const override {
        return held->log_prob(made + forecast_inner, p, y);
    }
};

}  // namespace DRIFTGP_LEVEL
