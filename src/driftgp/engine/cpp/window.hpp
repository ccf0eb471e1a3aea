// The last T samples, and what leaves them: window.py on records.
//
// A record of a window: X (T×D), y (T×P), cursor, the slot that the next sample takes.

#pragma once

#include "node.hpp"

namespace DRIFTGP_LEVEL {

// What was in the slot of the newest sample before it came; `observed` is false where only time passes.
struct Leaving {
    bool observed;
    int64_t slot;
    const double *x, *y;
};

// Returns where it begins.
static inline size_t declare_window(Layout &state, const std::string &name, size_t T, size_t D, size_t P) {
    return state.part(name, [&] {
        state.floats("X", T * D), state.floats("y", T * P);
        state.wholes("cursor", 1, {0.0, double(std::max<size_t>(T, 1) - 1)});
    });
}

// Whether all the numbers of a sample are there.
static inline bool is_sample(const double *x, int D, const double *y, int P) {
    return all_finite(x, size_t(D)) && all_finite(y, size_t(P));
}

// Puts a sample in the place of the oldest; where a number is missing, nothing changes. `room`: D + P numbers for what
// was there before. Without a window (T = 0) there is nothing to put it into.
static inline Leaving push(double *window, int T, int D, int P, const double *x, const double *y, double *room) {
    if (!is_sample(x, D, y, P)) return {false, 0, nullptr, nullptr};
    if (T == 0) return {true, 0, nullptr, nullptr};
    Whole &cursor = whole(window, size_t(T) * (D + P));
    int64_t slot = cursor;
    double *x_slot = window + size_t(slot) * D, *y_slot = window + size_t(T) * D + size_t(slot) * P;
    std::copy_n(x_slot, D, room), std::copy_n(y_slot, P, room + D);
    std::copy_n(x, D, x_slot), std::copy_n(y, P, y_slot);
    cursor = slot + 1 == T ? 0 : slot + 1;
    return {true, slot, room, room + D};
}

// Undoes `push`.
static inline void put_back(double *window, int T, int D, int P, const Leaving &leaving) {
    std::copy_n(leaving.x, D, window + size_t(leaving.slot) * D);
    std::copy_n(leaving.y, P, window + size_t(T) * D + size_t(leaving.slot) * P);
    whole(window, size_t(T) * (D + P)) = leaving.slot;
}

// Samples in other units; slots t that are not here(t) become zeros.
template <class Here>
static inline void rescale_window(double *window, int T, int D, int P, const Units &units, Here here) {
    double *X = window, *y = window + size_t(T) * D;
    for (int t = 0; t < T; t++) {
        bool sample = here(t);
        units.inputs(X + size_t(t) * D, D, sample), units.targets(y + size_t(t) * P, P, sample);
    }
}

}  // namespace DRIFTGP_LEVEL
