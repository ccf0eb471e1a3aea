/* Predict and learn from C, on states that Python made, and warm up states that Python goes on with.
 *
 *     online start model.bin rows.bin state.bin                  warm up one state on all the rows
 *     online run   model.bin rows.bin state.bin forecasts.bin    predict each row, then learn from it
 *
 * The files hold numbers of eight bytes and nothing else (files.py writes and reads them):
 *
 *     model.bin      whole numbers D, P and count, then the model's description: `count` doubles
 *     rows.bin       for each row x (D), y (P) and the time since the row before
 *     state.bin      one record after another, as they lie in memory; each has an equal share of the rows
 *     forecasts.bin  for each row the mean (P), the variance (P), and a 95 % interval's ends (P each)
 *
 * Compile it against the header and the library of an installed driftgp: see the Makefile beside this file.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driftgp.h"

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(int32_t code) {
    if (code != DRIFTGP_OK) stop("driftgp", driftgp_reason());
}

static void *memory(size_t bytes) {
    void *made = calloc(bytes ? bytes : 1, 1);
    if (!made) stop("memory", "there is not enough");
    return made;
}

/* A whole file, as numbers of eight bytes; *count is set to how many there are. */
static void *read_numbers(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) stop(path, "cannot be read");
    long bytes = ftell(file);
    if (bytes < 0 || bytes % 8) stop(path, "does not hold numbers of eight bytes");
    void *numbers = memory((size_t)bytes);
    rewind(file);
    *count = (size_t)bytes / 8;
    if (fread(numbers, 8, *count, file) != *count) stop(path, "cannot be read");
    fclose(file);
    return numbers;
}

static void write_numbers(const char *path, const void *numbers, size_t count) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(numbers, 8, count, file) != count || fclose(file)) stop(path, "cannot be written");
}

/* Columns `from` to `to` of a table, as a table of its own. */
static double *columns(const double *table, size_t rows, size_t width, size_t from, size_t to) {
    double *made = memory(rows * (to - from) * sizeof(double));
    for (size_t i = 0; i < rows; i++)
        memcpy(made + i * (to - from), table + i * width + from, (to - from) * sizeof(double));
    return made;
}

typedef struct {
    size_t D, P, count;
    double *x, *y, *elapsed;
} table;

static driftgp_model *read_model(const char *path, table *rows) {
    size_t numbers;
    driftgp_model *model;
    int64_t *header = read_numbers(path, &numbers);
    if (numbers < 3 || numbers != 3 + (size_t)header[2]) stop(path, "is not a description");
    rows->D = (size_t)header[0], rows->P = (size_t)header[1];
    /* BEST is the build that suits this processor */
    check(driftgp_make((const double *)(header + 3), (size_t)header[2], header[0], header[1], DRIFTGP_BEST, &model));
    free(header);
    return model;
}

static void read_rows(const char *path, table *rows) {
    size_t numbers, D = rows->D, P = rows->P, width = D + P + 1;
    double *all = read_numbers(path, &numbers);
    if (numbers % width) stop(path, "does not hold whole rows");
    rows->count = numbers / width;
    rows->x = columns(all, rows->count, width, 0, D);
    rows->y = columns(all, rows->count, width, D, D + P);
    rows->elapsed = columns(all, rows->count, width, D + P, width);
    free(all);
}

static void warm_up(const driftgp_model *model, const table *rows, const char *state_path) {
    size_t bytes = driftgp_state_bytes(model);
    void *state = memory(bytes); /* all zeros */
    check(driftgp_start(model, state, rows->x, rows->y, (int64_t)rows->count));
    write_numbers(state_path, state, bytes / 8);
    free(state);
}

/* Mean, variance and the ends of a 95 % interval of each row. */
static void write_forecasts(const driftgp_model *model, const table *rows, const char *forecasts, const char *path) {
    size_t N = rows->count, P = rows->P, bytes = driftgp_forecast_bytes(model);
    const double scores[2] = {-1.959963984540054, 1.959963984540054};
    double *limits = memory(2 * N * P * sizeof(double)), *all = memory(4 * N * P * sizeof(double));
    check(driftgp_from_normal(model, forecasts, (int64_t)N, scores, 2, 0, limits));
    for (size_t i = 0; i < N; i++) {
        double *out = all + 4 * i * P;
        memcpy(out, forecasts + i * bytes, 2 * P * sizeof(double)); /* mean and variance: a forecast begins with them */
        memcpy(out + 2 * P, limits + i * P, P * sizeof(double));
        memcpy(out + 3 * P, limits + (N + i) * P, P * sizeof(double));
    }
    write_numbers(path, all, 4 * N * P);
    free(limits), free(all);
}

static void run(const driftgp_model *model, const table *rows, const char *state_path, const char *forecasts_path) {
    size_t numbers, bytes = driftgp_state_bytes(model);
    void *states = read_numbers(state_path, &numbers);
    size_t S = 8 * numbers / bytes;
    if (S == 0 || S * bytes != 8 * numbers) stop(state_path, "does not hold states of this model");
    if (rows->count % S) stop(state_path, "the states do not have equal shares of the rows");
    int64_t *slots = memory(S * sizeof(int64_t)), *ends = memory(S * sizeof(int64_t));
    for (size_t s = 0; s < S; s++) slots[s] = (int64_t)s, ends[s] = (int64_t)((s + 1) * (rows->count / S));

    /* each row is predicted before it is learned from; the states are changed where they lie */
    char *forecasts = memory(rows->count * driftgp_forecast_bytes(model));
    driftgp_rows work = {0};
    work.states = states, work.slots = slots, work.ends = ends, work.count = (int64_t)S;
    work.x = rows->x, work.y = rows->y, work.elapsed = rows->elapsed, work.forecasts = forecasts;
    check(driftgp_run(model, &work));

    write_numbers(state_path, states, numbers);
    write_forecasts(model, rows, forecasts, forecasts_path);
    free(states), free(slots), free(ends), free(forecasts);
}

int main(int count, char **words) {
    int starts = count == 5 && strcmp(words[1], "start") == 0, runs = count == 6 && strcmp(words[1], "run") == 0;
    if (!starts && !runs)
        stop("usage", "online start model.bin rows.bin state.bin | online run model.bin rows.bin state.bin forecasts.bin");
    if (driftgp_interface() != DRIFTGP_INTERFACE) stop("driftgp", "the library is of another version than the header");
    table rows = {0};
    driftgp_model *model = read_model(words[2], &rows);
    read_rows(words[3], &rows);
    if (starts) warm_up(model, &rows, words[4]);
    else run(model, &rows, words[4], words[5]);
    free(rows.x), free(rows.y), free(rows.elapsed);
    driftgp_free(model);
    return 0;
}
