/* driftgp: the whole interface of the compiled engine.
 *
 * A model is made from a description: a flat list of numbers, node by node,
 *
 *     kind, count of settings, settings…, count of children, children…
 *
 * where kinds and settings are those of driftgp/engine/description.py. A description that the library does not know is
 * refused here. A state is one record of `driftgp_state_bytes` bytes, a forecast one of `driftgp_forecast_bytes`:
 * fields of eight bytes, listed by `driftgp_fields`. Records belong to the caller; the library keeps nothing between
 * two calls but the model. Functions return 0, or a code whose reason `driftgp_reason` gives (of this thread's last
 * failure); those that return a size return 0 where the model is NULL. NULL where something must be, and sizes below 0,
 * are refused. Arrays are row-major doubles; a target that is NaN means that time passes and nothing is learned.
 */

#ifndef DRIFTGP_H
#define DRIFTGP_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define DRIFTGP_API __declspec(dllexport)
#else
#define DRIFTGP_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with anything that Python and C++ have to agree on. */
#define DRIFTGP_INTERFACE 11

enum { DRIFTGP_OK = 0, DRIFTGP_UNKNOWN = 1, DRIFTGP_INVALID = 2, DRIFTGP_NO_MEMORY = 3 };
enum { DRIFTGP_STATE = 0, DRIFTGP_FORECAST = 1 };
/* Builds for one kind of processor each; BEST is the one that suits this processor. */
enum { DRIFTGP_BEST = 0, DRIFTGP_PLAIN = 1, DRIFTGP_X86_V3 = 2, DRIFTGP_X86_V4 = 3 };

typedef struct driftgp_model driftgp_model;

typedef struct {
    char path[256];  /* names from the outermost record inwards, joined by dots */
    int64_t kind;    /* 0: double, 1: int64 */
    int64_t offset;  /* in bytes */
    int64_t count;   /* of numbers */
} driftgp_field;

/* Rows for some states of a stack. The states at `slots` have rows, in this order; those of slots[i] end at ends[i].
 * Each row is predicted before it is learned from, or, where `next` is given, learned from and then `next` predicted.
 */
typedef struct {
    void *states;            /* the stack's first record */
    const int64_t *slots;    /* which records have rows */
    const int64_t *ends;     /* where the rows of each of them end */
    int64_t count;           /* of slots */
    const double *x;         /* rows×D */
    const double *y;         /* rows×P, or NULL where nothing is learned */
    const double *elapsed;   /* rows, or NULL where nothing is learned */
    const double *next;      /* rows×D, or NULL */
    void *forecasts; /* rows records, or NULL where no prediction is wanted; with `known_at` more may follow */
    const void *known; /* one forecast of the first row, if it is known already, or NULL */
    const int64_t *known_at; /* rows, or NULL: which of `forecasts` was issued for each row, one of an earlier row or
                                one after all rows, or −1; where it is given, `known` is not read */
    int64_t room; /* with `known_at`: how many records `forecasts` has */
    int64_t first; /* row to begin with */
    double seconds; /* stop after the row during which this time has passed; 0: never */
    int64_t done; /* set: the row to go on with, or the number of rows if all are done */
} driftgp_rows;

/* Rows of one forecaster (driftgp/forecasting/core.py), whose arrays are these, in the order of forecast.hpp. */
typedef struct {
    const int64_t *sizes;
    double *const *arrays;
    int64_t *const *wholes;
    const double *values; /* rows */
    const int64_t *slots; /* rows×S */
    const double *years; /* rows */
    const double *known; /* rows×X */
    const double *past; /* rows×P */
    int64_t rows;
    int64_t first; /* row to begin with; set: the row that is left to the caller, or `rows` */
} driftgp_series;

DRIFTGP_API int32_t driftgp_interface(void);
DRIFTGP_API const char *driftgp_reason(void);
/* The level that would be used, or −1 where there is no such build. */
DRIFTGP_API int32_t driftgp_level(int32_t wanted);

DRIFTGP_API int32_t driftgp_make(const double *description, size_t count, int64_t inputs, int64_t outputs,
                                 int32_t level, driftgp_model **made);
DRIFTGP_API void driftgp_free(driftgp_model *model);
DRIFTGP_API size_t driftgp_state_bytes(const driftgp_model *model);
DRIFTGP_API size_t driftgp_forecast_bytes(const driftgp_model *model);
/* How many fields there are; the first `room` of them are written to `fields`. */
DRIFTGP_API size_t driftgp_fields(const driftgp_model *model, int32_t record, driftgp_field *fields, size_t room);

/* Fill a record, all zeros so far, from a warm-up batch of `rows` rows, which may be 0. */
DRIFTGP_API int32_t driftgp_start(const driftgp_model *model, void *state, const double *x, const double *y,
                                  int64_t rows);
DRIFTGP_API int32_t driftgp_run(const driftgp_model *model, driftgp_rows *rows);
/* Several of them at once, each in a thread of its own, on states of which none is in two of them. It returns when none
 * of the threads is at work any more, so that no caller can give memory back too early. */
DRIFTGP_API int32_t driftgp_run_all(const driftgp_model *model, driftgp_rows *rows, int64_t count);
/* Compute the fields that follow from the others (Model.complete). */
DRIFTGP_API int32_t driftgp_complete(const driftgp_model *model, void *state);
/* Values whose normal scores are z[q] for q in [0 … count), or z[q·rows + i] if `own` is not 0, which gives each row
 * scores of its own: values[(q·rows + i)·P + p]. */
DRIFTGP_API int32_t driftgp_from_normal(const driftgp_model *model, const void *forecasts, int64_t rows,
                                        const double *z, int64_t count, int32_t own, double *values);

/* Take rows of a forecaster in, until one may be wild. */
DRIFTGP_API int32_t driftgp_follow(driftgp_series *series, int32_t level);
/* How many sizes, whole arrays, arrays and constants a forecaster has, by `kind` 0 … 3: for a comparison. */
DRIFTGP_API int64_t driftgp_follow_sizes(int32_t kind);

#ifdef __cplusplus
}
#endif
#endif
