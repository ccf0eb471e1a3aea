// What the library offers: two XLA calls, the same two as plain functions, and the choice of the build that fits.
//
// XLA's calls take (settings, start, x, y, elapsed, state…) → state…, in place where XLA lets them, and
// (X, state…) → (mean, variance). A `vmap` in Python puts a leading axis before every array: several models.

#include <cstring>

#include "level.hpp"
#include "xla/ffi/api/ffi.h"

namespace plain {
extern const driftgp::Level level;
}
#ifdef DRIFTGP_X86
namespace x86_v3 {
extern const driftgp::Level level;
}
namespace x86_v4 {
extern const driftgp::Level level;
}
#endif

namespace {

namespace ffi = xla::ffi;
using driftgp::Batch;

const driftgp::Level &best() {
#ifdef DRIFTGP_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
        return x86_v4::level;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return x86_v3::level;
#endif
    return plain::level;
}

// The build that a plan names (LEVELS in __init__.py), for tests, or the best one for this processor.
constexpr size_t LEVEL = 10;
const driftgp::Level &level(const int64_t *plan) {
    static const driftgp::Level &chosen = best();
    if (plan[LEVEL] == 1) return plain::level;
#ifdef DRIFTGP_X86
    if (plan[LEVEL] == 2) return x86_v3::level;
    if (plan[LEVEL] == 3) return x86_v4::level;
#endif
    return chosen;
}

constexpr int64_t SETTINGS = 8;

double *room(const ffi::AnyBuffer &buffer) { return static_cast<double *>(buffer.untyped_data()); }

constexpr size_t GIVEN = 5, ANSWERS = 3, MOST = 128;

ffi::Error follow(ffi::Span<const int64_t> plan, int64_t rows, bool predict, ffi::RemainingArgs given,
                  ffi::RemainingRets made) {
    double *inputs[GIVEN], *answers[ANSWERS] = {};
    void *state[MOST];
    size_t first = predict ? ANSWERS : 0;
    if (given.size() > MOST || made.size() + GIVEN != given.size() + first) return ffi::Error::InvalidArgument("arrays missing");
    for (size_t i = 0; i < GIVEN; i++) inputs[i] = room(*given.get<ffi::AnyBuffer>(i));
    for (size_t i = 0; i < first; i++) answers[i] = room(**made.get<ffi::AnyBuffer>(i));
    for (size_t i = first; i < made.size(); i++) {
        ffi::AnyBuffer from = *given.get<ffi::AnyBuffer>(GIVEN + i - first), to = **made.get<ffi::AnyBuffer>(i);
        if (to.untyped_data() != from.untyped_data()) std::memcpy(to.untyped_data(), from.untyped_data(), from.size_bytes());
        state[i - first] = to.untyped_data();
    }
    int64_t models = int64_t(given.get<ffi::AnyBuffer>(0)->element_count()) / SETTINGS;
    level(plan.begin()).follow({plan.begin(), plan.size(), models, rows, inputs[0], inputs[1], inputs[2], inputs[3],
                    inputs[4], state, answers[0], answers[1], answers[2]});
    return ffi::Error::Success();
}

ffi::Error forecast(ffi::Span<const int64_t> plan, int64_t rows, ffi::RemainingArgs given,
                    ffi::Result<ffi::AnyBuffer> mean, ffi::Result<ffi::AnyBuffer> variance) {
    void *state[MOST];
    if (given.size() > MOST) return ffi::Error::InvalidArgument("too many arrays");
    for (size_t i = 1; i < given.size(); i++) state[i - 1] = given.get<ffi::AnyBuffer>(i)->untyped_data();
    ffi::AnyBuffer X = *given.get<ffi::AnyBuffer>(0);
    int64_t models = int64_t(X.element_count()) / (rows * plan[0]);
    level(plan.begin()).forecast({plan.begin(), plan.size(), models, rows, nullptr, nullptr, room(X), nullptr, nullptr, state,
                      room(*mean), room(*variance), nullptr});
    return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(driftgp_follow, follow,
                              ffi::Ffi::Bind()
                                  .Attr<ffi::Span<const int64_t>>("plan")
                                  .Attr<int64_t>("rows")
                                  .Attr<bool>("predict")
                                  .RemainingArgs()
                                  .RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(driftgp_forecast, forecast,
                              ffi::Ffi::Bind()
                                  .Attr<ffi::Span<const int64_t>>("plan")
                                  .Attr<int64_t>("rows")
                                  .RemainingArgs()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

// Changes with what Python and C++ have to agree on: the plan, the order of arrays, `Batch`.
extern "C" const int32_t driftgp_interface = 1;
extern "C" void driftgp_follow_directly(const Batch *batch) { level(batch->plan).follow(*batch); }
extern "C" void driftgp_forecast_directly(const Batch *batch) { level(batch->plan).forecast(*batch); }
