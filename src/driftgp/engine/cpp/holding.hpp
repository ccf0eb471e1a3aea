// The common part of wrappers: a node that holds a node, whose record is the last part of the wrapper's record.

#pragma once

#include "window.hpp"

namespace DRIFTGP_LEVEL {

static inline bool any_finite(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (std::isfinite(values[i])) return true;
    return false;
}

// Refuses a state from outside for a field of this name.
static inline void refuse_unless(bool fine, const char *field, const char *expected) {
    if (!fine) throw std::invalid_argument(std::string("field ") + field + " of a state must be " + expected);
}

// Running weight, mean and variance of a column with one more value (standardize.py): the distance of the value from
// the mean is limited so that the scale at most doubles.
static inline void count_value(double forgetting, double scale, double z, double &n, double &m, double &v) {
    constexpr double FIRST = 10.0;  // as in standardize.py
    n = forgetting * n + 1.0;
    double gain = 1.0 / n, step = z - m;
    // the variance gains (1 − gain) · gain · step², which is to stay below (2² − 1) · scale²
    if (n > FIRST) step = limited(step, std::sqrt(3.0 * n) * scale);
    m += gain * step, v = (1.0 - gain) * (v + gain * step * step);
}
constexpr double LARGEST_VALUE = 1e40;  // as in contract/protocol.py
static inline double bounded_value(double z) { return limited(z, LARGEST_VALUE); }

// What it does not say itself, the held node says.
class Holding : public Node {
  protected:
    std::unique_ptr<Node> held;
    size_t inner = 0, held_size = 0;      // where the held node's state begins, and how many numbers it has
    size_t forecast_inner = 0, told = 0;  // the same of its forecast

    Holding(const driftgp::Part &part, int inputs, int outputs) : Node(inputs, outputs) {
        if (part.children.size() != 1)
            throw std::invalid_argument("part " + std::to_string(part.kind) + " must hold one model; got " +
                                        std::to_string(part.children.size()));
        held = make_node(part.children[0], D, P);
    }
    // The held node's forecast: the known one, or else a new one in memory.
    const double *heard(const double *state, const double *x, const double *known, Memory &memory) const {
        if (known) return known + forecast_inner;
        double *made = memory.take(told);
        held->forecast(state + inner, x, made, memory);
        return made;
    }
    // A forecast of the wrapper's own: the known one, or else a new one in memory.
    const double *issued(const double *state, const double *x, const double *known, Memory &memory) const {
        if (known) return known;
        double *made = memory.take(forecast_inner + told);
        forecast(state, x, made, memory);
        return made;
    }
    // Whether outputs of this sample may be judged: not where an input is missing that nobody fills in.
    bool inputs_there(const double *x) const { return fills_gaps() || all_finite(x, D); }

  public:
    // The wrapper's own fields, and after them those of the held node.
    void declare(Layout &state) override {
        Node::declare(state);
        size_t start = state.part("inner", [&] { held->declare(state); });
        inner = own.size, held_size = state.size - start;
    }
    void declare_forecast(Layout &forecast) override {
        Node::declare_forecast(forecast);
        size_t start = forecast.part("inner", [&] { held->declare_forecast(forecast); });
        forecast_inner = size_t(3) * P + told_own.size, told = forecast.size - start;
    }
    void expect_units(double *state, const Units &units) const override { held->expect_units(state + inner, units); }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        held->rescale(state + inner, units, memory);
    }
    void move_level(double *state, const double *step) const override { held->move_level(state + inner, step); }
    int follow_inputs(double *state, int how) const override { return held->follow_inputs(state + inner, how); }
    bool follows_inputs(const double *state) const override { return held->follows_inputs(state + inner); }
    void complete(double *state, Memory &memory) const override { held->complete(state + inner, memory); }
    void check(const double *state) const override { held->check(state + inner); }
    bool fills_gaps() const override { return held->fills_gaps(); }
    bool normal() const override { return held->normal(); }
    bool rescales() const override { return held->rescales(); }
};

// A wrapper whose law is the held node's, scaled and moved: y = scale · (the held one's) + shift.
class Moved : public Holding {
  protected:
    using Holding::Holding;
    size_t told_scale = told_floats("scale", P), told_shift = told_floats("shift", P);

    // Output p of a forecast, of which the held node's part is there.
    void tell(double *made, int p, double scale, double shift) const {
        const double *said = made + forecast_inner;
        made[p] = scale * said[p] + shift;
        made[P + p] = scale * scale * said[P + p], made[2 * P + p] = scale * scale * said[2 * P + p];
        made[told_scale + p] = scale, made[told_shift + p] = shift;
    }

  public:
    double to_normal(const double *made, int p, double y) const override {
        if (normal()) return Node::to_normal(made, p, y);
        return held->to_normal(made + forecast_inner, p, (y - made[told_shift + p]) / made[told_scale + p]);
    }
    double from_normal(const double *made, int p, double z) const override {
        if (normal()) return Node::from_normal(made, p, z);
        return made[told_scale + p] * held->from_normal(made + forecast_inner, p, z) + made[told_shift + p];
    }
    double log_prob(const double *made, int p, double y) const override {
        if (normal()) return Node::log_prob(made, p, y);
        double scale = made[told_scale + p];
        return held->log_prob(made + forecast_inner, p, (y - made[told_shift + p]) / scale) - std::log(scale);
    }
};

// A wrapper that changes the inputs only: forecasts are the held node's own.
class Transparent : public Holding {
  protected:
    using Holding::Holding;

  public:
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        held->declare_forecast(forecast);
        told = forecast.size - start;
    }
    int voices() const override { return held->voices(); }
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        held->forecast(state + inner, x, made, memory);
    }
    double to_normal(const double *made, int p, double y) const override { return held->to_normal(made, p, y); }
    double from_normal(const double *made, int p, double z) const override { return held->from_normal(made, p, z); }
    double log_prob(const double *made, int p, double y) const override { return held->log_prob(made, p, y); }
};

}  // namespace DRIFTGP_LEVEL
