// What one build for one kind of processor offers; entry.cpp chooses among the builds.

#pragma once

#include <cstddef>
#include <cstdint>

namespace driftgp {

// One model or several, and rows for each. Arrays lie behind each other: rows first, then models.
struct Batch {
    const int64_t *plan;
    size_t plan_size;
    int64_t models, rows;             // rows of each model
    const double *settings, *start;   // start: parameters to which a prior draws
    const double *x, *y, *elapsed;    // of each row
    void **state;                     // arrays in the order of AGPState, or those of a forecast
    double *mean, *variance, *noise;  // of each row, or nothing if no prediction is asked for
    // For a stack of models with the same settings, or nothing: how many entries further the array of the next model
    // begins, which models have rows (so many of them as `models` says), and where the rows of each of these end.
    const int64_t *strides;
    const int32_t *slots, *ends;
};

// Where a plan names a build, and where its terms begin.
constexpr size_t LEVEL = 10, TERMS = 11;

typedef void (*Run)(const Batch &);

struct Level {
    Run follow, forecast, warm_up;
};

}  // namespace driftgp
