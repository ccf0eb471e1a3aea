// A node whose forecasts are scored before it learns: the twin of wrappers/watched.py and monitor.py.

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

// Residuals and their running means.
class Monitor {
    static constexpr double WORST = 20.0;    // as in monitor.py
    static constexpr double FARTHEST = 1e6;  // standard deviations that a residual counts as at most
    int lags = 1, P = 1;
    double forgetting = 1.0;
    size_t scored = 0, residual = 0, before = 0, weight = 0, mean = 0, square = 0, products = 0, score = 0;

  public:
    void read(driftgp::Settings &settings, int outputs) {
        P = outputs, lags = int(settings.whole("lags", 1, (1 << 24) / P));
        forgetting = settings.number("forgetting", 0.0, 1.0);
    }
    void declare(Layout &state, size_t start) {
        scored = state.wholes("scored") - start, residual = state.floats("residual", P) - start;
        before = state.floats("before", size_t(lags) * P) - start, weight = state.floats("weight") - start;
        mean = state.floats("mean", P) - start, square = state.floats("square", P) - start;
        products = state.floats("products", size_t(lags) * P) - start, score = state.floats("score") - start;
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
        whole(state, scored)++;
    }
    void check(const double *state) const { refuse_unless_counts(state, scored, 1, "monitor.scored"); }
};

class Watched : public Transparent {
    Monitor monitor;

  public:
    Watched(const driftgp::Part &part, int inputs, int outputs) : Transparent(part, inputs, outputs) {
        driftgp::Settings settings(part);
        monitor.read(settings, P);
        settings.end(1);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        state.part("monitor", [&] { monitor.declare(state, start); });
        declare_held(state, start);
    }
    // The warm-up batch is not scored.
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        held->forecast(state + inner, x, made, memory);
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
};

}  // namespace DRIFTGP_LEVEL
