// One build for one kind of processor: DRIFTGP_LEVEL is its name, DRIFTGP_LANES the doubles in one of its vectors.

#include "level.hpp"

#include "agp.hpp"

namespace DRIFTGP_LEVEL {

using driftgp::Batch;

static Plan read(const Batch &batch) {
    const int64_t *p = batch.plan;
    Plan plan{int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4]), int(p[5]), p[6] != 0, p[7] != 0, p[8] != 0, p[9] != 0,
              p + 11,    int(batch.plan_size - 11) / 2};
    return plan;
}

// The state of model i: all of it, or what a forecast needs.
static State view(const Plan &plan, const Batch &batch, int64_t i, bool all) {
    size_t D = plan.D, P = plan.P, M = plan.M, T = plan.T, at = 0;
    auto doubles = [&](size_t size) { return static_cast<double *>(batch.state[at++]) + i * size; };
    auto whole = [&] { return static_cast<int32_t *>(batch.state[at++]) + i; };
    State s{};
    if (all) s.X = doubles(T * D), s.y = doubles(T * P), s.w = doubles(T), s.cursor = whole();
    s.U = doubles(M * D), s.used = static_cast<bool *>(batch.state[at++]) + i * M;
    int leaf = 0;
    for (int k = 0; k < plan.term_count; k++) {
        size_t each = plan.terms[2 * k + 1] ? D : 1;
        if (plan.terms[2 * k] <= MATERN52) s.parameters[leaf++] = doubles(each), each = 1;
        s.parameters[leaf++] = doubles(each);
    }
    s.noise = doubles(P);
    if (all) {
        s.Kux = doubles(M * T);
        s.n = doubles(1), s.yy = doubles(P), s.b = doubles(M * P), s.Phi = doubles(M * M), s.kappa = doubles(1);
    }
    s.inverse_L = doubles(M * M), s.C = doubles(P * M * M), s.alpha = doubles(M * P);
    if (all) s.repairs = whole(), s.samples = whole(), s.skipped = whole(), s.repaired = whole();
    return s;
}

static Memory &memory() {
    static thread_local Memory memory;
    return memory;
}

// Row after row of each model: predict, if there is room for an answer, then learn.
static void follow(const Batch &batch) {
    Plan plan = read(batch);
    const Settings *settings = reinterpret_cast<const Settings *>(batch.settings);
    for (int64_t i = 0; i < batch.models; i++) {
        State state = view(plan, batch, i, true);
        AGP model(plan, settings[i], batch.start, i, state, memory());
        for (int64_t row = i * batch.rows; row < (i + 1) * batch.rows; row++) {
            const double *x = batch.x + row * plan.D;
            if (batch.mean) {
                model.forecast(1, x, batch.mean + row * plan.P, batch.variance + row * plan.P);
                std::copy_n(state.noise, plan.P, batch.noise + row * plan.P);
            }
            model.learn(x, batch.y + row * plan.P, batch.elapsed[row]);
        }
    }
}

static void forecast(const Batch &batch) {
    Plan plan = read(batch);
    const Settings unused{};
    for (int64_t i = 0; i < batch.models; i++) {
        State state = view(plan, batch, i, false);
        int64_t first = i * batch.rows;
        AGP(plan, unused, nullptr, 0, state, memory())
            .forecast(int(batch.rows), batch.x + first * plan.D, batch.mean + first * plan.P, batch.variance + first * plan.P);
    }
}

extern const driftgp::Level level;
const driftgp::Level level{follow, forecast};

}  // namespace DRIFTGP_LEVEL
