// One build for one kind of processor: DRIFTGP_LEVEL is its name, DRIFTGP_LANES the doubles in one of its vectors.

#include "level.hpp"

#include <memory>
#include <mutex>

#include "agp.hpp"

namespace DRIFTGP_LEVEL {

using driftgp::Batch;

static Plan read(const Batch &batch) {
    const int64_t *p = batch.plan;
    Plan plan{int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4]), int(p[5]), p[6] != 0, p[7] != 0, p[8] != 0, p[9] != 0,
              p + driftgp::TERMS, int(batch.plan_size - driftgp::TERMS) / 2};
    return plan;
}

// The state of model i: all of it, or what a forecast needs.
static State view(const Plan &plan, const Batch &batch, int64_t i, bool all) {
    size_t D = plan.D, P = plan.P, M = plan.M, T = plan.T, at = 0;
    auto place = [&](size_t size) { return i * (batch.strides ? batch.strides[at] : size); };
    auto doubles = [&](size_t size) {
        size_t offset = place(size);
        return static_cast<double *>(batch.state[at++]) + offset;
    };
    auto whole = [&] {
        size_t offset = place(1);
        return static_cast<int32_t *>(batch.state[at++]) + offset;
    };
    auto flags = [&](size_t size) {
        size_t offset = place(size);
        return static_cast<bool *>(batch.state[at++]) + offset;
    };
    State s{};
    if (all) s.X = doubles(T * D), s.y = doubles(T * P), s.w = doubles(T), s.cursor = whole();
    s.U = doubles(M * D), s.used = flags(M);
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

// Memory for the time of a call. It goes from call to call, not from thread to thread: threads may live for one call only,
// and the system takes longer to give memory out than a step takes.
class Lease {
    static std::mutex &lock() {
        static std::mutex mutex;
        return mutex;
    }
    static std::vector<std::unique_ptr<Memory>> &idle() {
        static std::vector<std::unique_ptr<Memory>> memories;
        return memories;
    }

  public:
    std::unique_ptr<Memory> memory;
    Lease() {
        std::lock_guard<std::mutex> guard(lock());
        if (!idle().empty()) memory = std::move(idle().back()), idle().pop_back();
        if (!memory) memory = std::make_unique<Memory>();
    }
    ~Lease() {
        std::lock_guard<std::mutex> guard(lock());
        idle().push_back(std::move(memory));
    }
};

// Calls visit(plan, model, its state, its first row, the row after its last) for every model that has rows.
template <class Visit>
static void each(const Batch &batch, bool all, Visit visit) {
    Plan plan = read(batch);
    Lease lease;
    for (int64_t i = 0; i < batch.models; i++) {
        bool stacked = batch.slots != nullptr;
        int64_t own = stacked ? 0 : i, begin = stacked ? (i > 0 ? batch.ends[i - 1] : 0) : i * batch.rows;
        State state = view(plan, batch, stacked ? batch.slots[i] : i, all || stacked);
        const Settings unused{}, *settings = reinterpret_cast<const Settings *>(batch.settings);
        AGP model(plan, settings ? settings[own] : unused, batch.start, own, state, *lease.memory);
        visit(plan, model, state, begin, stacked ? batch.ends[i] : begin + batch.rows);
    }
}

static void predict(const Batch &batch, const Plan &plan, AGP &model, const State &state, int64_t row, int64_t rows) {
    int64_t first = row * plan.P;
    model.forecast(int(rows), batch.x + row * plan.D, batch.mean + first, batch.variance + first);
    for (int64_t i = 0; i < rows && batch.noise; i++) std::copy_n(state.noise, plan.P, batch.noise + first + i * plan.P);
}

// Row after row of each model: predict, if there is room for an answer, then learn.
static void follow(const Batch &batch) {
    each(batch, true, [&](const Plan &plan, AGP &model, State &state, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
            if (batch.mean) predict(batch, plan, model, state, row, 1);
            model.learn(batch.x + row * plan.D, batch.y + row * plan.P, batch.elapsed[row]);
        }
    });
}

static void forecast(const Batch &batch) {
    each(batch, false, [&](const Plan &plan, AGP &model, State &state, int64_t begin, int64_t end) {
        predict(batch, plan, model, state, begin, end - begin);
    });
}

// As many iterations as the batch has rows.
static void warm_up(const Batch &batch) {
    each(batch, true, [&](const Plan &, AGP &model, State &, int64_t, int64_t) { model.warm_up(int(batch.rows)); });
}

extern const driftgp::Level level;
const driftgp::Level level{follow, forecast, warm_up};

}  // namespace DRIFTGP_LEVEL
