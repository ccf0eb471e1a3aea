// A node whose forecasts are scored before it learns: the twin of wrappers/watched.py and monitor.py.

#pragma once

#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

// Residuals and their running means.
class Monitor {
    static constexpr double WORST = 20.0;    // as in monitor.py
    static constexpr double FARTHEST = 1e6;  // standard deviations that a residual counts as at most
    const int P, lags;
    const double forgetting;
    size_t scored = 0, residual = 0, before = 0, weight = 0, mean = 0, square = 0, products = 0, score = 0;

  public:
    Monitor(driftgp::Settings settings, Layout &of, int P)
        : P(P), lags(int(settings.whole("lags", 1, (1 << 24) / P))),
          forgetting(settings.number("forgetting", 0.0, 1.0)) {
        settings.end(1);
        of.part("monitor", [&] {
            scored = of.wholes("scored"), residual = of.floats("residual", P);
            before = of.floats("before", size_t(lags) * P), weight = of.floats("weight");
            mean = of.floats("mean", P), square = of.floats("square", P);
            products = of.floats("products", size_t(lags) * P), score = of.floats("score");
        });
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
};

class Watched : public Transparent {
    Monitor monitor;

  public:
    Watched(const driftgp::Part &part, int inputs, int outputs)
        : Transparent(part, inputs, outputs), monitor(driftgp::Settings(part), own, P) {}

    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *said = heard(state, x, known, memory);
        monitor.update(state, *held, said, y);
        held->learn(state + inner, x, y, elapsed, said, memory);
    }
};

}  // namespace DRIFTGP_LEVEL
