// One input that counts as missing where it is not credible: the twin of wrappers/credible.py.

#pragma once

#include "plausible.hpp"

namespace DRIFTGP_LEVEL {

class Credible : public Transparent {
    static constexpr int64_t LASTING = 3;  // as in credible.py
    int column = 0;
    Span span{own, 1};
    size_t doubts = wholes("doubts");

    bool far(const double *state, double value) const {
        Span::Limits limits = span.limits(state, 0);
        return value < limits.low || value > limits.high;
    }
    void believe(const double *state, const double *x, double *seen) const {
        std::copy_n(x, D, seen);
        if (whole(state, doubts) + 1 < LASTING && far(state, x[column]))
            seen[column] = std::numeric_limits<double>::quiet_NaN();
    }
    void count(double *state, double value) const {
        if (!std::isfinite(value)) return;
        Whole &running = whole(state, doubts);
        running = far(state, value) ? running + 1 : 0;
        if (running == 0 || running >= LASTING) span.widen(state, 0, value);
    }

  public:
    Credible(const driftgp::Part &part, int inputs, int outputs) : Transparent(part, inputs, outputs) {
        driftgp::Settings settings(part);
        column = int(settings.whole("column", 0, inputs - 1));
        settings.end(1);
        if (!held->fills_gaps()) throw std::invalid_argument("the held model must take inputs that are NaN");
    }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        Lease lease(memory);
        double *seen = memory.take(size_t(rows) * D);
        for (int64_t i = 0; i < rows; i++) {
            believe(state, X + i * D, seen + i * D);
            count(state, X[i * D + column]);
        }
        held->start(state + inner, seen, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *seen = memory.take(D);
        believe(state, x, seen);
        held->forecast(state + inner, seen, made, memory);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *seen = memory.take(D);
        believe(state, x, seen);
        held->learn(state + inner, seen, y, elapsed, known, memory);
        count(state, x[column]);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        span.rescale(state, Units{units.x_centre, units.x_scale, units.x_centre + column, units.x_scale + column});
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        span.check(state);
        Holding::check(state);
    }
};

}  // namespace DRIFTGP_LEVEL
