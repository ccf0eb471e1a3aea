// Linear regression on the inputs and the last known targets: the twin of members/lagged.py.

#pragma once

#include "heads.hpp"
#include "remembered.hpp"

namespace DRIFTGP_LEVEL {

class Lagged : public Node {
    static constexpr int64_t MOST = 1 << 12;  // lags
    int lags = 0, F = 1;
    double ridge = 1.0;
    Heads heads;
    size_t last = 0, known = 0, rows = 0;
    Remembered products;  // of a forecast: C φ of each head, by φ

    size_t told_last() const { return size_t(voices()) * 3 * P; }  // in a forecast
    void find_features(const double *x, const double *targets, double *phi) const {
        phi[0] = 1.0;
        std::copy_n(x, D, phi + 1), std::copy_n(targets, size_t(lags) * P, phi + 1 + D);
    }

  public:
    Lagged(const driftgp::Part &part, int inputs, int outputs) : heads(true, false, 1) {
        D = inputs, P = outputs;
        driftgp::Settings settings(part);
        lags = int(settings.whole("lags", 0, MOST)), ridge = settings.positive("ridge");
        heads.read(settings), heads.unit_weights(ridge < 1.0);
        settings.end(0);
        F = 1 + D + lags * P;
        told_floats("others", size_t(voices() - 1) * 3 * P), told_floats("last", size_t(lags) * P);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        last = state.floats("last", size_t(lags) * P) - start,
        known = state.wholes("known", 1, {0.0, double(lags)}) - start;
        rows = state.wholes("rows") - start;
        state.part("heads", [&] { heads.declare(state, start, F, P); });
        products.declare(state, F, heads.rates.size() * F);
    }
    int voices() const override { return heads.count(); }

    void start(double *state, const double *X, const double *y, int64_t count, Memory &memory) const override {
        heads.start(state, ridge, std::min(ridge, 1.0));
        for (int64_t i = 0; i < count; i++) learn(state, X + i * D, y + i * P, 1.0, nullptr, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *phi = memory.take(F);
        find_features(x, state + last, phi);
        double *product = products.keep(state, whole(state, rows), phi, memory);
        for (int h = 0; h < heads.count(); h++, product += F) {
            heads.times(state, h, phi, product);
            heads.forecast(state, h, phi, product, ridge, made + voice(h));
        }
        std::copy_n(state + last, size_t(lags) * P, made + told_last());
    }
    void learn(double *state, const double *x, const double *y, double, const double *said,
               Memory &memory) const override {
        Lease lease(memory);
        if (is_sample(x, D, y, P)) {
            double *phi = memory.take(F), *wrong = memory.take(size_t(heads.count()) * P);
            find_features(x, said ? said + told_last() : state + last, phi);
            const double *found = products.find(state, whole(state, rows), phi, memory);
            heads.learn(state, phi, y, ridge, whole(state, rows), wrong, found, memory);
            whole(state, rows)++;
        }
        if (lags == 0 || !all_finite(y, P)) return;
        std::copy_backward(state + last, state + last + size_t(lags - 1) * P, state + last + size_t(lags) * P);
        std::copy_n(y, P, state + last);
        whole(state, known) = std::min<int64_t>(whole(state, known) + 1, lags);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        Lease lease(memory);
        int changed = F - 1;
        products.forget(memory);
        double *u = memory.take(changed), *a = memory.take(changed);
        std::copy_n(units.x_centre, D, u), std::copy_n(units.x_scale, D, a);
        for (int i = 0; i < lags; i++)
            for (int p = 0; p < P; p++) {
                u[D + i * P + p] = units.y_centre[p], a[D + i * P + p] = units.y_scale[p];
                units.target(state[last + size_t(i) * P + p], p, i < whole(state, known));
            }
        if (whole(state, rows) > 0) heads.rescale(state, u, a, changed, ridge, units, memory);
    }
    void check(const double *state) const override { heads.check(state); }
};

}  // namespace DRIFTGP_LEVEL
