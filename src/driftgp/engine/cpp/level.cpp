// One build for one kind of processor: DRIFTGP_LEVEL is its name, DRIFTGP_LANES the doubles in one of its vectors.

#include "level.hpp"

#include <chrono>
#include <cstring>

#include "anchored.hpp"
#include "around.hpp"
#include "bank.hpp"
#include "bounded.hpp"
#include "calibrated.hpp"
#include "credible.hpp"
#include "forecast.hpp"
#include "gaps.hpp"
#include "guarded.hpp"
#include "lagged.hpp"
#include "members.hpp"
#include "standardize.hpp"
#include "watched.hpp"
#include "within.hpp"

namespace DRIFTGP_LEVEL {

// Every node has a constructor (const driftgp::Part &part, int D, int P) that checks its settings (driftgp::Settings)
// and makes its children by `make_node`.
std::unique_ptr<Node> make_node(const driftgp::Part &part, int D, int P) {
    switch (part.kind) {
        case driftgp::ADAPTIVE_GP: return std::make_unique<AGP>(part, D, P);
        case driftgp::STANDARDIZE: return std::make_unique<Standardize>(part, D, P);
        case driftgp::WITHIN: return std::make_unique<Within>(part, D, P);
        case driftgp::GAPS: return std::make_unique<Gaps>(part, D, P);
        case driftgp::CALIBRATED: return std::make_unique<Calibrated>(part, D, P);
        case driftgp::WATCHED: return std::make_unique<Watched>(part, D, P);
        case driftgp::BANK: return std::make_unique<Bank>(part, D, P);
        case driftgp::GUARDED: return std::make_unique<Guarded>(part, D, P);
        case driftgp::AROUND: return std::make_unique<Around>(part, D, P);
        case driftgp::CREDIBLE: return std::make_unique<Credible>(part, D, P);
        case driftgp::BOUNDED: return std::make_unique<Bounded>(part, D, P);
        case driftgp::ANCHORED: return std::make_unique<Anchored>(part, D, P);
        case driftgp::LAGGED: return std::make_unique<Lagged>(part, D, P);
        case driftgp::LAST_VALUES: return std::make_unique<LastValues>(part, D, P);
        default: throw driftgp::Unknown("there is no model of kind " + std::to_string(part.kind));
    }
}

// Memory of this thread's calls. It goes from call to call: the system takes longer to give it out than a step takes.
static Memory &fresh_memory(size_t count, bool enough = false) {
    static thread_local Memory memory;
    memory.reset(count, enough);
    return memory;
}

namespace {

// When to stop. The clock takes as long to read as a small part of a row, so it is read about once a millisecond.
class Deadline {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    static constexpr double OFTEN = 1e-3;
    static constexpr int64_t MOST = 64;  // rows without a look at it
    bool ever;
    Clock::time_point end, last;
    int64_t rows = 1, left = 1;

  public:
    explicit Deadline(double seconds) : ever(seconds > 0.0) {
        if (!ever) return;
        last = Clock::now();
        end = last + std::chrono::duration_cast<Clock::duration>(Seconds(std::min(seconds, 1e6)));
    }
    // To be asked after every row.
    bool passed() {
        if (!ever || --left > 0) return false;
        Clock::time_point now = Clock::now();
        double each = Seconds(now - last).count() / double(rows);
        last = now, left = rows = int64_t(std::min(std::max(OFTEN / std::max(each, 1e-9), 1.0), double(MOST)));
        return now >= end;
    }
};

class Model final : public driftgp_model {
    static constexpr size_t FACTOR = 4, LEAST = 1 << 16, MOST = 1 << 26;
    std::unique_ptr<Node> root;
    Layout state, told;  // of a state, and of a forecast

    // Memory that is enough for any step, so that none runs out of it half done: a few times what a state has.
    size_t room() const { return std::min(FACTOR * (state.size + told.size) + state.kept + LEAST, MOST); }

  public:
    Model(const driftgp::Part &part, int inputs, int outputs) : root(make_node(part, inputs, outputs)) {
        root->declare(state);
        root->declare_forecast(told);
        for (const Layout *layout : {&state, &told})
            for (const Layout::Field &field : layout->fields)
                if (field.path.size() >= sizeof(driftgp_field::path))
                    throw std::invalid_argument("the model is nested too deeply to name its fields");
    }

    size_t state_size() const override { return state.size; }
    size_t forecast_size() const override { return told.size; }
    size_t fields(bool of_forecast, driftgp_field *fields, size_t room) const override {
        const std::vector<Layout::Field> &all = (of_forecast ? told : state).fields;
        for (size_t i = 0; i < std::min(room, all.size()); i++) {
            std::memset(fields[i].path, 0, sizeof(fields[i].path));
            std::copy(all[i].path.begin(), all[i].path.end(), fields[i].path);
            fields[i].kind = all[i].whole;
            fields[i].offset = int64_t(all[i].at * sizeof(double)), fields[i].count = int64_t(all[i].count);
        }
        return all.size();
    }

    void start(double *record, const double *x, const double *y, int64_t rows) const override {
        if (rows < 0 || (rows > 0 && (!x || !y)))
            throw std::invalid_argument("a warm-up batch must have rows of x and y");
        root->start(record, x, y, rows, fresh_memory(room()));
    }
    void complete(double *record) const override {
        check(record);
        root->complete(record, fresh_memory(room()));
    }
    void from_normal(const double *forecasts, int64_t rows, const double *z, int64_t count, bool own,
                     double *values) const override {
        int P = root->P;
        for (int64_t q = 0; q < count; q++)
            for (int64_t i = 0; i < rows; i++) {
                size_t place = size_t(q) * rows + i;
                double score = z[own ? place : size_t(q)];
                for (int p = 0; p < P; p++)
                    values[place * P + p] = root->from_normal(forecasts + size_t(i) * told.size, p, score);
            }
    }

    void run(driftgp_rows &rows) const override {
        check(rows);
        Deadline deadline(rows.seconds);
        Memory &memory = fresh_memory(room(), true);
        memory.kept = memory.zeros(state.kept);
        const double *known = static_cast<const double *>(rows.known);
        int64_t row = rows.done = rows.first;
        for (int64_t i = 0; i < rows.count; i++, known = nullptr) {
            if (rows.ends[i] <= row) continue;
            double *record = static_cast<double *>(rows.states) + size_t(rows.slots[i]) * state.size;
            check(record);
            for (; row < rows.ends[i]; rows.done = ++row) {
                if (row > rows.first && deadline.passed()) return;
                Lease lease(memory);
                if (rows.known_at) known = rows.known_at[row] < 0 ? nullptr : place(rows, rows.known_at[row]);
                if (rows.next) known = learn_then_predict(rows, record, row, rows.ends[i], known, memory);
                else predict_then_learn(rows, record, row, known, memory), known = nullptr;
            }
        }
    }

  private:
    void check(const double *record) const { state.check(record), root->check(record); }
    static void check(const driftgp_rows &rows) {
        if (rows.count > 0 && (!rows.slots || !rows.ends)) throw std::invalid_argument("rows must have slots and ends");
        int64_t last = 0;
        bool sorted = rows.count >= 0 && rows.first >= 0;
        for (int64_t i = 0; i < rows.count; i++) {
            sorted &= rows.slots[i] >= 0 && rows.ends[i] >= last;
            last = rows.ends[i];
        }
        if (!sorted) throw std::invalid_argument("slots must not be negative, and ends must not fall");
        if (last > rows.first && (!rows.states || !rows.x)) throw std::invalid_argument("rows must have states and x");
        if (!rows.y != !rows.elapsed || (rows.next && !rows.y))
            throw std::invalid_argument(
                "rows to learn from must have both y and elapsed, and next only belongs to these");
        if (!rows.known_at) return;
        if (!rows.forecasts || rows.room < last) throw std::invalid_argument("known_at needs forecasts");
        for (int64_t row = rows.first; row < last; row++)
            if (rows.known_at[row] >= rows.room) throw std::invalid_argument("known_at must lie among the forecasts");
    }
    // Where the forecast of a row goes, or nullptr.
    double *place(const driftgp_rows &rows, int64_t row) const {
        return rows.forecasts ? static_cast<double *>(rows.forecasts) + size_t(row) * told.size : nullptr;
    }
    void learn(const driftgp_rows &rows, double *record, int64_t row, const double *known, Memory &memory) const {
        if (!rows.y) return;
        root->learn(record, rows.x + size_t(row) * root->D, rows.y + size_t(row) * root->P, rows.elapsed[row], known,
                    memory);
    }
    void predict_then_learn(const driftgp_rows &rows, double *record, int64_t row, const double *known,
                            Memory &memory) const {
        double *made = place(rows, row);
        if (made && known) std::copy_n(known, told.size, made);
        else if (made) root->forecast(record, rows.x + size_t(row) * root->D, made, memory);
        learn(rows, record, row, made ? made : known, memory);
    }
    // Returns the forecast of the row after this one, if it is the one that was asked for.
    const double *learn_then_predict(const driftgp_rows &rows, double *record, int64_t row, int64_t end,
                                     const double *known, Memory &memory) const {
        size_t D = root->D;
        const double *next = rows.next + size_t(row) * D;
        learn(rows, record, row, known, memory);
        double *made = place(rows, row);
        if (!made) return nullptr;
        root->forecast(record, next, made, memory);
        bool asked = row + 1 < end && std::memcmp(next, rows.x + size_t(row + 1) * D, D * sizeof(double)) == 0;
        return asked ? made : nullptr;
    }
};

}  // namespace

driftgp_model *make(const driftgp::Part &part, int inputs, int outputs);
driftgp_model *make(const driftgp::Part &part, int inputs, int outputs) { return new Model(part, inputs, outputs); }

void follow(driftgp_series &series) { forecast::take(series); }

}  // namespace DRIFTGP_LEVEL
