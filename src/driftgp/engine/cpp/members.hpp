// Forecasts without a model: the twins of Persistence and LastKMean.
//
// The next value is the mean of the last k values or, where columns are given, what these inputs say, one per output.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class LastValues : public Node {
    static constexpr int64_t MOST = 1 << 24;  // values
    static constexpr double FIRST = 10.0, FARTHEST = 1e300, LARGEST = 1e150;  // as in naive.py
    int k = 1;
    double forgetting = 1.0;
    std::vector<double> noise;    // one for all outputs, or one each
    std::vector<double> columns;  // none, or one for each output
    size_t values = 0, cursor = 0, count = 0, variance = 0, errors = 0;

    double expected(const double *state, const double *x, int p) const {
        if (!columns.empty()) return x[int(columns[p])];
        double sum = 0.0;
        for (int i = 0; i < k; i++) sum += state[values + size_t(i) * P + p];  // zeros before the first value
        return sum / double(std::max<int64_t>(whole(state, count), 1));
    }

    // Square of an error; once there are some, one error makes the variance at most a hundred times as large.
    static double square(double error, double variance, double errors) {
        error = limited(error, LARGEST);
        return errors <= FIRST ? error * error : std::min(error * error, 99.0 * errors * std::max(variance, least()));
    }
    static double least() { return std::sqrt(std::numeric_limits<double>::min()); }

  public:
    LastValues(const driftgp::Part &part, int inputs, int outputs) : Node(inputs, outputs) {
        driftgp::Settings settings(part);
        double most = std::numeric_limits<double>::max();
        k = int(settings.whole("k", 1, MOST / P));
        forgetting = settings.number("forgetting", 0.0, 1.0);
        noise = settings.numbers("noise", size_t(P), 0.0, most);
        columns = settings.numbers("column", size_t(P), 0.0, double(D - 1));
        settings.end(0);
        if (noise.size() != 1 && noise.size() != size_t(P))
            throw std::invalid_argument("noise must be one number, or one for each of the outputs");
        if (!columns.empty() && columns.size() != size_t(P))
            throw std::invalid_argument("column must name one input for each of the outputs");
        for (double column : columns)
            if (column != std::floor(column)) throw std::invalid_argument("column must be a whole number");
        values = floats("values", size_t(k) * P), cursor = wholes("cursor", 1, {0.0, k - 1.0});
        count = wholes("count", 1, {0.0, double(k)}), variance = floats("variance", P);
        errors = floats("errors", 1, {1.0, FINITE.high});
    }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (int p = 0; p < P; p++) state[variance + p] = noise[noise.size() == 1 ? 0 : p];
        state[errors] = 1.0;
        for (int64_t i = 0; i < rows; i++) learn(state, X + i * D, y + i * P, 1.0, nullptr, memory);
    }
    // All of the variance is noise, since there is no latent function.
    void forecast(const double *state, const double *x, double *made, Memory &) const override {
        for (int p = 0; p < P; p++) {
            made[p] = expected(state, x, p);
            made[P + p] = made[2 * P + p] = std::max(state[variance + p], least());
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &) const override {
        bool observed = all_finite(y, P);
        // the first value has no forecast to be compared with
        bool counts = observed && (whole(state, count) > 0 || !columns.empty());
        double &weight = state[errors];
        weight = std::max(std::pow(forgetting, elapsed) * weight, 1.0) + double(counts);
        if (!observed) return;
        Whole &next = whole(state, cursor), &there = whole(state, count);
        for (int p = 0; p < P && counts; p++) {
            double error = y[p] - (known ? known[p] : expected(state, x, p)), &v = state[variance + p];
            v += (square(error, v, weight) - v) / weight;
        }
        for (int p = 0; p < P; p++) state[values + size_t(next) * P + p] = limited(y[p], FARTHEST);
        next = next + 1 == k ? 0 : next + 1;
        there = std::min<int64_t>(there + 1, k);
    }
    bool rescales() const override { return columns.empty(); }
    void rescale(double *state, const Units &units, Memory &) const override {
        if (!rescales()) throw std::invalid_argument("Persistence by column cannot change its units");
        int64_t there = whole(state, count);
        for (int p = 0; p < P; p++) {
            for (int64_t i = 0; i < there; i++) units.target(state[values + size_t(i) * P + p], p);
            state[variance + p] /= units.y_scale[p] * units.y_scale[p];
        }
    }
    void check(const double *state) const override {
        int64_t there = whole(state, count);
        refuse_unless(there == k || whole(state, cursor) == there, "count", "the cursor until all places are filled");
    }
};

}  // namespace DRIFTGP_LEVEL
