// The Adaptive Sparse Gaussian Process as a node: settings, fields of its record, and the contract.
//
// The mathematics and the letters are those of bound.py, inducing.py and agp.py, which remain the reference. A step is
// the work of a `Work` (work.hpp), which lives for one call.

#pragma once

#include "work.hpp"

namespace DRIFTGP_LEVEL {

class AGP final : public Node {
  public:
    int T;                   // samples in the window, 0 without a window
    bool own_window = true;  // false, set before `declare`, where a bank holds the window

    AGP(const driftgp::Part &part, int D_, int P_) : Node(D_, P_), rules(part, D_, P_) { T = rules.T; }

    void declare(Layout &state) override {
        size_t start = state.size, M = rules.M, H = rules.formula.parameters, A = rules.averages();
        auto floats = [&](const char *name, size_t count = 1, Range range = ANYTHING) {
            return state.floats(name, count, range) - start;
        };
        auto wholes = [&](const char *name, Range range = COUNTER) { return state.wholes(name, 1, range) - start; };
        if (own_window) at.window = declare_window(state, "window", T, D, P) - start;
        at.w = floats("w", T, {0.0, 1.0}), at.U = floats("U", M * D), at.points = wholes("points", {0.0, double(M)});
        at.theta = floats("theta", H, POSITIVE), at.noise = floats("noise", P, POSITIVE), at.Kux = floats("Kux", M * T);
        at.n = floats("n"), at.yy = floats("yy", P), at.b = floats("b", M * P), at.Phi = floats("Phi", M * M);
        at.kappa = floats("kappa");
        at.inverse_L = floats("inverse_L", M * M), at.C = floats("C", P * M * M), at.alpha = floats("alpha", M * P);
        at.adam_mean = floats("adam_mean", A), at.adam_square = floats("adam_square", A);
        at.adam_steps = wholes("adam_steps"), at.samples = wholes("samples"), at.skipped = wholes("skipped");
        at.repaired = wholes("repaired");
    }

    // ---- the contract, with a window of its own ---------------------------------------------------------------------

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        start_on(state, state + at.window, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        View view = look(const_cast<double *>(state), nullptr);  // nothing is written
        Work(rules, view, T, memory).forecast(x, made);
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *window = state + at.window, *room = memory.take(D + P);
        learn_on(state, window, push(window, T, D, P, x, y, room), x, y, elapsed, known, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        rescale_on(state, state + at.window, units, true, memory);
    }
    bool rescales() const override { return T > 0; }
    void complete(double *state, Memory &memory) const override { complete_on(state, state + at.window, memory); }

    // ---- the same, with a window that lies anywhere -----------------------------------------------------------------

    // Fills the window too.
    void start_on(double *state, double *window, const double *X, const double *y, int64_t rows, Memory &memory) const {
        Lease lease(memory);
        if (rows > rules.MOST) throw std::invalid_argument("there are too many rows to start from");
        View view = look(state, window);
        if (T == 0) {  // the batch is kept while it is learned from; after that the statistics carry the past
            if (rows == 0 && !rules.given)
                throw std::invalid_argument(
                    "X must not be empty when window is None and no inducing_inputs are given: "
                    "there would never be an inducing point");
            view.X = memory.zeros(rows * D), view.y = memory.zeros(rows * P), view.w = memory.zeros(rows);
            view.Kux = memory.zeros(size_t(rules.M) * rows);
        }
        try {
            Work(rules, view, T == 0 ? int(rows) : T, memory).start(X, y, int(rows));
        } catch (const NoFactor &) {
            throw std::invalid_argument(
                "X must hold inputs that the kernel has finite covariances for, and y targets "
                "whose squares are finite: the covariance of the inducing points has no factor");
        }
    }
    // The window holds the sample already; `leaving` is what was in its place.
    void learn_on(double *state, double *window, const Leaving &leaving, const double *x, const double *y,
                  double elapsed, const double *known, Memory &memory) const {
        Lease lease(memory);
        View view = look(state, window);
        Before before(rules, view, memory);
        try {
            Work(rules, view, T, memory).learn(leaving, x, y, elapsed, known);
        } catch (const NoFactor &) {  // numbers beyond all bounds: the sample is left out, and what was known stays
            before.restore(rules, view);
            if (leaving.observed && T > 0) {
                if (own_window) put_back(window, T, D, P, leaving);
                else view.w[leaving.slot] = 0.0;  // the present sample does not belong to this model
            }
            *view.skipped += 1;
            try {
                Work(rules, view, T, memory).complete();
            } catch (const NoFactor &) {  // a state that was like this before
            }
        }
    }
    // `window_too`: the samples as well; those that weigh nothing are no samples and become zeros.
    void rescale_on(double *state, double *window, const Units &units, bool window_too, Memory &memory) const {
        if (T == 0)
            throw std::invalid_argument(
                "window must be a number for AGP to change its units: the statistics alone cannot");
        View view = look(state, window);
        for (int64_t i = 0; i < *view.points; i++) units.inputs(view.U + i * D, D);
        if (window_too) rescale_window(window, T, D, P, units, [&](int t) { return weighs(state, t); });
        complete_on(state, window, memory);
    }
    // Whether slot t of the window holds a sample of this model.
    bool weighs(const double *state, int t) const { return state[at.w + t] > 0.0; }
    void complete_on(double *state, double *window, Memory &memory) const {
        Lease lease(memory);
        try {
            Work(rules, look(state, window), T, memory).complete();
        } catch (const NoFactor &) {
            throw std::invalid_argument("a state of AGP must hold finite samples: its inducing points have no factor");
        }
    }

  private:
    Rules rules;
    struct {
        size_t window = 0, w, U, points, theta, noise, Kux, n, yy, b, Phi, kappa, inverse_L, C, alpha, adam_mean,
               adam_square, adam_steps, samples, skipped, repaired;
    } at;

    View look(double *state, double *window) const {
        auto whole_at = [&](size_t place) { return &whole(state, place); };
        View v{};
        if (window) v.X = window, v.y = window + size_t(T) * D, v.cursor = &whole(window, size_t(T) * (D + P));
        v.w = state + at.w, v.U = state + at.U, v.points = whole_at(at.points);
        v.theta = state + at.theta, v.noise = state + at.noise, v.Kux = state + at.Kux;
        v.n = state + at.n, v.yy = state + at.yy, v.b = state + at.b, v.Phi = state + at.Phi,
        v.kappa = state + at.kappa;
        v.inverse_L = state + at.inverse_L, v.C = state + at.C, v.alpha = state + at.alpha;
        v.adam_mean = state + at.adam_mean, v.adam_square = state + at.adam_square;
        v.adam_steps = whole_at(at.adam_steps), v.samples = whole_at(at.samples), v.skipped = whole_at(at.skipped);
        v.repaired = whole_at(at.repaired);
        return v;
    }
};

}  // namespace DRIFTGP_LEVEL
