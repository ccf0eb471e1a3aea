// What the library offers: three XLA calls, two of them as plain functions too, and the choice of the build that fits.
//
// XLA's calls, in place where XLA lets them; a `vmap` in Python puts a leading axis before every array: several models.
//
//   follow     (settings, start, X, y, elapsed, state…) → (mean, variance, noise if asked for, state…)
//   warm_up    (settings, start, state…) → (state…)
//   forecast   (X, arrays of the state that it reads…) → (mean, variance)

#include <cstring>
#include <initializer_list>

#include "level.hpp"
#include "xla/ffi/api/ffi.h"

namespace plain {
extern const driftgp::Level level;
}
#ifdef DRIFTGP_X86_V3
namespace x86_v3 {
extern const driftgp::Level level;
}
#endif
#ifdef DRIFTGP_X86_V4
namespace x86_v4 {
extern const driftgp::Level level;
}
#endif

namespace {

namespace ffi = xla::ffi;
using driftgp::Batch;

const driftgp::Level &best() {
#ifdef DRIFTGP_X86_V4
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
        return x86_v4::level;
#endif
#ifdef DRIFTGP_X86_V3
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return x86_v3::level;
#endif
    return plain::level;
}

// The build that a plan names (LEVELS in __init__.py), for tests, or the best one for this processor.
const driftgp::Level &level(const int64_t *plan) {
    static const driftgp::Level &chosen = best();
    if (plan[driftgp::LEVEL] == 1) return plain::level;
#ifdef DRIFTGP_X86_V3
    if (plan[driftgp::LEVEL] == 2) return x86_v3::level;
#endif
#ifdef DRIFTGP_X86_V4
    if (plan[driftgp::LEVEL] == 3) return x86_v4::level;
#endif
    return chosen;
}

constexpr int64_t SETTINGS = 9;

double *room(const ffi::AnyBuffer &buffer) { return static_cast<double *>(buffer.untyped_data()); }

constexpr size_t MOST = 128;

bool doubles(std::initializer_list<ffi::AnyBuffer> buffers) {
    for (const ffi::AnyBuffer &buffer : buffers)
        if (buffer.element_type() != ffi::F64) return false;
    return true;
}
const char *const WRONG = "arrays must be those of a state in double precision: see driftgp.native.suits";

// The arrays of a state as given, where results from `made` on may change them; false if some are missing.
bool changed(ffi::RemainingArgs given, ffi::RemainingRets results, size_t made, void **state) {
    if (given.size() > MOST || given.size() != results.size() - made) return false;
    for (size_t i = 0; i < given.size(); i++) {
        ffi::AnyBuffer from = *given.get<ffi::AnyBuffer>(i), to = **results.get<ffi::AnyBuffer>(made + i);
        if (to.untyped_data() != from.untyped_data()) std::memcpy(to.untyped_data(), from.untyped_data(), from.size_bytes());
        state[i] = to.untyped_data();
    }
    return true;
}
int64_t models(const ffi::AnyBuffer &settings) { return int64_t(settings.element_count()) / SETTINGS; }

ffi::Error follow(ffi::Span<const int64_t> plan, int64_t rows, bool predict, ffi::AnyBuffer settings, ffi::AnyBuffer start,
                  ffi::AnyBuffer X, ffi::AnyBuffer y, ffi::AnyBuffer elapsed, ffi::RemainingArgs given,
                  ffi::RemainingRets made) {
    constexpr size_t ANSWERS = 3;
    double *answers[ANSWERS] = {};
    void *state[MOST];
    size_t first = predict ? ANSWERS : 0;
    if (!doubles({settings, start, X, y, elapsed}) || !changed(given, made, first, state))
        return ffi::Error::InvalidArgument(WRONG);
    for (size_t i = 0; i < first; i++) answers[i] = room(**made.get<ffi::AnyBuffer>(i));
    level(plan.begin()).follow({plan.begin(), plan.size(), models(settings), rows, room(settings), room(start), room(X),
                                room(y), room(elapsed), state, answers[0], answers[1], answers[2], nullptr, nullptr,
                                nullptr});
    return ffi::Error::Success();
}

ffi::Error warm_up(ffi::Span<const int64_t> plan, int64_t iterations, ffi::AnyBuffer settings, ffi::AnyBuffer start,
                   ffi::RemainingArgs given, ffi::RemainingRets made) {
    void *state[MOST];
    if (!doubles({settings, start}) || !changed(given, made, 0, state)) return ffi::Error::InvalidArgument(WRONG);
    level(plan.begin()).warm_up({plan.begin(), plan.size(), models(settings), iterations, room(settings), room(start),
                                 nullptr, nullptr, nullptr, state, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
    return ffi::Error::Success();
}

ffi::Error forecast(ffi::Span<const int64_t> plan, int64_t rows, ffi::AnyBuffer X, ffi::RemainingArgs given,
                    ffi::Result<ffi::AnyBuffer> mean, ffi::Result<ffi::AnyBuffer> variance) {
    void *state[MOST];
    if (!doubles({X}) || given.size() > MOST || rows < 1) return ffi::Error::InvalidArgument(WRONG);
    for (size_t i = 0; i < given.size(); i++) state[i] = given.get<ffi::AnyBuffer>(i)->untyped_data();
    int64_t models = int64_t(X.element_count()) / (rows * plan[0]);
    level(plan.begin()).forecast({plan.begin(), plan.size(), models, rows, nullptr, nullptr, room(X), nullptr, nullptr,
                                  state, room(*mean), room(*variance), nullptr, nullptr, nullptr, nullptr});
    return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(driftgp_follow, follow,
                              ffi::Ffi::Bind()
                                  .Attr<ffi::Span<const int64_t>>("plan")
                                  .Attr<int64_t>("rows")
                                  .Attr<bool>("predict")
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(driftgp_warm_up, warm_up,
                              ffi::Ffi::Bind()
                                  .Attr<ffi::Span<const int64_t>>("plan")
                                  .Attr<int64_t>("rows")
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(driftgp_forecast, forecast,
                              ffi::Ffi::Bind()
                                  .Attr<ffi::Span<const int64_t>>("plan")
                                  .Attr<int64_t>("rows")
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

// Changes with what Python and C++ have to agree on: the plan, the order of arrays, `Batch`.
extern "C" const int32_t driftgp_interface = 3;
extern "C" void driftgp_follow_directly(const Batch *batch) { level(batch->plan).follow(*batch); }
extern "C" void driftgp_forecast_directly(const Batch *batch) { level(batch->plan).forecast(*batch); }
