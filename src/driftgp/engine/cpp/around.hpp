// A node around a forecast from elsewhere, which is one of the inputs: the twin of wrappers/around.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class Around : public Transparent {
    static constexpr Range REACH{-FARTHEST_OUT, FARTHEST_OUT};
    int column = 0;
    double reach = FARTHEST_OUT;
    size_t offset = floats("offset", 1, REACH), slope = floats("slope", 1, REACH);

    double base(const double *state, const double *x) const {
        return limited(state[offset] + state[slope] * x[column], reach);
    }
    // Moves the mean of every voice.
    void move(double *made, double step) const {
        for (int k = 0; k < held->voices(); k++) made[voice(k)] += step;
    }
    // b = o + s x with x = u + a x' and b = c + k b' is b' = (o + s u − c)/k + (s a/k) x'.
    void change(double *state, const Units &units) const {
        double s = state[slope] == 0.0 ? 1.0 : state[slope], k = units.y_scale[0];
        state[offset] = limited((state[offset] + s * units.x_centre[column] - units.y_centre[0]) / k, FARTHEST_OUT);
        state[slope] = limited(s * units.x_scale[column] / k, FARTHEST_OUT);
    }
    // Units of y − b: the centre of both is the same.
    Units of_the_rest(const Units &units) const {
        static constexpr double nothing = 0.0;
        return Units{units.x_centre, units.x_scale, &nothing, units.y_scale};
    }

  public:
    Around(const driftgp::Part &part, int inputs, int outputs) : Transparent(part, inputs, outputs) {
        driftgp::Settings settings(part);
        column = int(settings.whole("column", 0, inputs - 1));
        reach = settings.number("reach", 0.0, FARTHEST_OUT);
        settings.end(1);
        if (outputs != 1) throw std::invalid_argument("column holds the forecast of one target");
        if (!held->normal()) throw std::invalid_argument("the held model must predict a normal distribution");
    }

    void expect_units(double *state, const Units &units) const override {
        change(state, units);
        held->expect_units(state + inner, of_the_rest(units));
    }
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        Lease lease(memory);
        if (state[slope] == 0.0) state[slope] = 1.0;
        double *rest = memory.take(size_t(rows));
        for (int64_t i = 0; i < rows; i++) rest[i] = y[i] - base(state, X + i * D);
        held->start(state + inner, X, rest, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        held->forecast(state + inner, x, made, memory);
        move(made, base(state, x));
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double b = base(state, x), rest = y[0] - b, *own = nullptr;
        if (known) {
            own = memory.take(told);
            std::copy_n(known, told, own);
            move(own, -b);
        }
        held->learn(state + inner, x, &rest, elapsed, own, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        change(state, units);
        held->rescale(state + inner, of_the_rest(units), memory);
    }
    bool fills_gaps() const override { return false; }
};

}  // namespace DRIFTGP_LEVEL
