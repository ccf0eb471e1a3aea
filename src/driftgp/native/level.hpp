// What one build for one kind of processor offers; entry.cpp chooses among the builds.

#pragma once

#include <cstddef>
#include <cstdint>

namespace driftgp {

// Arrays of one model, or of several that lie behind each other. Where they are: see entry.cpp.
struct Batch {
    const int64_t *plan;
    size_t plan_size;
    int64_t models, rows;                          // rows of each model
    const double *settings, *start;                // start: parameters to which a prior draws
    const double *x, *y, *elapsed;                 // rows
    void **state;                                  // arrays in the order of AGPState
    double *mean, *variance, *noise;               // rows, or nothing if no prediction is asked for
};

typedef void (*Run)(const Batch &);

struct Level {
    Run follow, forecast;
};

}  // namespace driftgp
