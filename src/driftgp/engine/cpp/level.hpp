// What one build for one kind of processor offers; entry.cpp chooses among the builds.

#pragma once

#include <cstddef>
#include <cstdint>

#include "driftgp.h"
#include "parts.hpp"

// A model with all its parts. Nothing in it changes, so that several threads may use it on different states at once.
// What cannot be done is thrown: std::invalid_argument, driftgp::Unknown, std::bad_alloc.
struct driftgp_model {
    virtual ~driftgp_model() = default;
    virtual size_t state_size() const = 0;  // in numbers
    virtual size_t forecast_size() const = 0;
    virtual size_t fields(bool of_forecast, driftgp_field *fields, size_t room) const = 0;
    virtual void start(double *state, const double *x, const double *y, int64_t rows) const = 0;
    virtual void run(driftgp_rows &rows) const = 0;
    virtual void complete(double *state) const = 0;
    virtual void from_normal(const double *forecasts, int64_t rows, const double *z, int64_t count, bool own,
                             double *values) const = 0;
};

namespace driftgp {

typedef driftgp_model *(*Make)(const Part &part, int inputs, int outputs);

}  // namespace driftgp
