// The functions of driftgp.h: the choice of the build that fits the processor, and reasons instead of exceptions.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "forecast_parts.hpp"
#include "level.hpp"
#include "processor.hpp"
#include "threads.hpp"
#ifdef DRIFTGP_OWN_NEW
#include "allocation.hpp"
#endif

#define DRIFTGP_MAKE(name)                                                   \
    namespace name {                                                         \
    driftgp_model *make(const driftgp::Part &part, int inputs, int outputs); \
    void follow(driftgp_series &series);                                     \
    }
DRIFTGP_MAKE(plain)
#ifdef DRIFTGP_HAS_X86_V3
DRIFTGP_MAKE(x86_v3)
#endif
#ifdef DRIFTGP_HAS_X86_V4
DRIFTGP_MAKE(x86_v4)
#endif

namespace {

constexpr int64_t MOST = 1 << 16;  // inputs and outputs: their products with other sizes are counted in int

thread_local char reason[512] = "";
const driftgp::Processor processor = driftgp::this_processor();

// The function that makes models of a level, or nothing where it was not built or this processor does not have it.
driftgp::Make level(int32_t wanted) {
    if (wanted == DRIFTGP_PLAIN) return plain::make;
#ifdef DRIFTGP_HAS_X86_V3
    if (wanted == DRIFTGP_X86_V3 && processor.x86_v3) return x86_v3::make;
#endif
#ifdef DRIFTGP_HAS_X86_V4
    if (wanted == DRIFTGP_X86_V4 && processor.x86_v4) return x86_v4::make;
#endif
    return nullptr;
}

int32_t chosen(int32_t wanted) {
    if (wanted != DRIFTGP_BEST) return level(wanted) ? wanted : -1;
    for (int32_t best : {DRIFTGP_X86_V4, DRIFTGP_X86_V3})
        if (level(best)) return best;
    return DRIFTGP_PLAIN;
}

int32_t failed(int32_t code, const char *why) {
    std::snprintf(reason, sizeof(reason), "%s", why);
    return code;
}

// Does something; what it throws becomes a code and a reason.
template <class Work>
int32_t safely(Work work) {
    try {
        work();
        return DRIFTGP_OK;
    } catch (const driftgp::Unknown &error) {
        return failed(DRIFTGP_UNKNOWN, error.what());
    } catch (const std::bad_alloc &) {
        return failed(DRIFTGP_NO_MEMORY, "there is not enough memory");
    } catch (const std::exception &error) {
        return failed(DRIFTGP_INVALID, error.what());
    } catch (...) {
        return failed(DRIFTGP_INVALID, "something unforeseen went wrong");
    }
}

void refuse_without(bool all_there) {
    if (!all_there) throw std::invalid_argument("a model or an array is missing");
}
void refuse_below_0(int64_t size) {
    if (size < 0) throw std::invalid_argument("sizes must not be below 0; got " + std::to_string(size));
}
template <class Array>
bool all_there(Array *const *arrays, int64_t count) {
    return arrays && std::all_of(arrays, arrays + count, [](const Array *array) { return array != nullptr; });
}
// A level for which there is a build.
int32_t available(int32_t wanted) {
    if (chosen(wanted) < 0)
        throw std::invalid_argument("there is no build of level " + std::to_string(wanted) + " for this processor");
    return chosen(wanted);
}

// Rows of some states, and what was thrown on the way.
struct Share : driftgp::Task {
    const driftgp_model *model;
    driftgp_rows *rows;
    std::exception_ptr thrown;

    Share() { work = run; }
    static void run(driftgp::Task &task) {
        Share &share = static_cast<Share &>(task);
        try {
            share.model->run(*share.rows);
        } catch (...) {
            share.thrown = std::current_exception();
        }
    }
    void rethrow() const {
        if (thrown) std::rethrow_exception(thrown);
    }
};

}  // namespace

int32_t driftgp_interface(void) { return DRIFTGP_INTERFACE; }
const char *driftgp_reason(void) { return reason; }
int32_t driftgp_level(int32_t wanted) { return chosen(wanted); }

int32_t driftgp_make(const double *description, size_t count, int64_t inputs, int64_t outputs, int32_t wanted,
                     driftgp_model **made) {
    return safely([&] {
        refuse_without(description && made);
        *made = nullptr;
        driftgp::Make make = level(available(wanted));
        if (inputs < 1 || inputs > MOST || outputs < 1 || outputs > MOST)
            throw std::invalid_argument("inputs and outputs must lie between 1 and " + std::to_string(MOST));
        *made = make(driftgp::Reader(description, count).all(), int(inputs), int(outputs));
    });
}
void driftgp_free(driftgp_model *model) { delete model; }

size_t driftgp_state_bytes(const driftgp_model *model) { return model ? model->state_size() * sizeof(double) : 0; }
size_t driftgp_forecast_bytes(const driftgp_model *model) {
    return model ? model->forecast_size() * sizeof(double) : 0;
}
size_t driftgp_fields(const driftgp_model *model, int32_t record, driftgp_field *fields, size_t room) {
    return model ? model->fields(record == DRIFTGP_FORECAST, fields, fields ? room : 0) : 0;
}

int32_t driftgp_start(const driftgp_model *model, void *state, const double *x, const double *y, int64_t rows) {
    return safely([&] {
        refuse_without(model && state);
        model->start(static_cast<double *>(state), x, y, rows);
    });
}
int32_t driftgp_run(const driftgp_model *model, driftgp_rows *rows) {
    return safely([&] {
        refuse_without(model && rows);
        model->run(*rows);
    });
}
int32_t driftgp_run_all(const driftgp_model *model, driftgp_rows *rows, int64_t count) {
    return safely([&] {
        refuse_without(model && (rows || count == 0));
        refuse_below_0(count);
        if (count > MOST)
            throw std::invalid_argument("there must be at most " + std::to_string(MOST) + " shares of rows");
        if (count == 1) return model->run(*rows);
        std::vector<Share> shares(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; i++) shares[i].model = model, shares[i].rows = rows + i;
        std::vector<driftgp::Task *> tasks;
        for (Share &share : shares) tasks.push_back(&share);
        if (count) driftgp::Threads::here().run(tasks.data(), int(count));
        for (const Share &share : shares) share.rethrow();
    });
}
int32_t driftgp_complete(const driftgp_model *model, void *state) {
    return safely([&] {
        refuse_without(model && state);
        model->complete(static_cast<double *>(state));
    });
}
int32_t driftgp_follow(driftgp_series *series, int32_t wanted) {
    return safely([&] {
        refuse_without(series && series->sizes && all_there(series->arrays, forecast::ARRAYS_) &&
                       all_there(series->wholes, forecast::WHOLES_));
        refuse_below_0(*std::min_element(series->sizes, series->sizes + forecast::SIZES_));
        refuse_below_0(std::min(series->rows, series->first));
        refuse_without(series->first >= series->rows ||
                       (series->values && series->slots && series->years && series->known && series->past));
        switch (available(wanted)) {
#ifdef DRIFTGP_HAS_X86_V3
            case DRIFTGP_X86_V3: return x86_v3::follow(*series);
#endif
#ifdef DRIFTGP_HAS_X86_V4
            case DRIFTGP_X86_V4: return x86_v4::follow(*series);
#endif
            default: return plain::follow(*series);
        }
    });
}
int64_t driftgp_follow_sizes(int32_t kind) {
    const int64_t sizes[] = {forecast::SIZES_, forecast::WHOLES_, forecast::ARRAYS_, forecast::CONSTANTS_};
    return kind >= 0 && kind < 4 ? sizes[kind] : -1;
}
int32_t driftgp_from_normal(const driftgp_model *model, const void *forecasts, int64_t rows, const double *z,
                            int64_t count, int32_t own, double *values) {
    return safely([&] {
        refuse_below_0(std::min(rows, count));
        refuse_without(model && (rows == 0 || count == 0 || (forecasts && z && values)));
        model->from_normal(static_cast<const double *>(forecasts), rows, z, count, own != 0, values);
    });
}
