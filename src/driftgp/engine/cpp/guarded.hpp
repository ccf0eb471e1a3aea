// Targets no farther out than a model has reason to follow them: the twin of wrappers/guarded.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class Guarded : public Transparent {
    static constexpr int64_t FIRST = 30;  // as in guarded.py
    static constexpr double FARTHEST = 1e8;
    const double reach;
    size_t seen = 0, beyond = 0, guarded = 0;

    static double read_reach(const driftgp::Part &part) {
        driftgp::Settings settings(part);
        double reach = settings.number("reach", 1.0, FARTHEST);
        settings.end(1);
        return reach;
    }
    // The target of output p as the held node is to see it. A lone one beyond the limit is brought there; one that goes
    // beyond it on the same side twice running is taken for real.
    double near(double *state, int p, double y, const double *known) const {
        double mean = known[p], std = std::sqrt(known[P + p]);
        bool here = std::isfinite(y) && std::isfinite(mean) && std::isfinite(std) && whole(state, seen) >= FIRST;
        int64_t side = 0;
        if (here && std::fabs(y - mean) > reach * std) side = y > mean ? 1 : -1;
        bool lone = side != 0 && side != whole(state, beyond + p);
        whole(state, guarded + p) += lone;
        if (std::isfinite(y)) whole(state, beyond + p) = side;
        if (!here) return y;
        double limit = lone ? reach : FARTHEST;
        return std::min(std::max(y, mean - limit * std), mean + limit * std);
    }

  public:
    Guarded(const driftgp::Part &part, int inputs, int outputs)
        : Transparent(part, inputs, outputs), reach(read_reach(part)) {}

    void declare(Layout &state) override {
        size_t start = state.size;
        seen = state.wholes("seen") - start, beyond = state.wholes("beyond", P) - start;
        guarded = state.wholes("guarded", P) - start;
        declare_held(state, start);
    }
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        held->declare_forecast(forecast);
        told = forecast.size - start;
    }
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (int64_t i = 0; i < rows; i++) whole(state, seen) += all_finite(y + i * P, P);
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        held->forecast(state + inner, x, made, memory);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *said = heard(state, x, known, memory);
        double *near_y = memory.take(P);
        for (int p = 0; p < P; p++) near_y[p] = near(state, p, y[p], said);
        held->learn(state + inner, x, near_y, elapsed, said, memory);
        whole(state, seen) += all_finite(y, P);
    }
    void check(const double *state) const override {
        refuse_unless_counts(state, seen, 1, "seen");
        refuse_unless_counts(state, guarded, P, "guarded");
        for (int p = 0; p < P; p++)
            refuse_unless(whole(state, beyond + p) >= -1 && whole(state, beyond + p) <= 1, "beyond", "-1, 0 or 1");
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
