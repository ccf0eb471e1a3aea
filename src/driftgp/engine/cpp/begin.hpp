// A first state from a warm-up batch: the window, the first inducing points, hyperparameters learned by Adam.

#pragma once

#include "work.hpp"

namespace DRIFTGP_LEVEL {

inline void Work::start(const double *X, const double *y, int rows) {
    std::copy(rules.formula.start.begin(), rules.formula.start.end(), state.theta);
    std::copy(rules.noise.begin(), rules.noise.end(), state.noise);
    fill(X, y, rows);
    int filled = std::min(rows, T);
    m = 0;
    if (rules.given) {
        m = int(rules.inputs.size() / D);
        std::copy(rules.inputs.begin(), rules.inputs.end(), state.U);
    } else if (rules.recent) {
        place_recent(filled);
    } else {
        place_greedily(filled);
    }
    *state.points = m;
    make_room();
    open();
    if (rows > 0) warm_up();
    *state.repaired += refresh();
    put_back();
}

// The last T rows of a batch; those without a target are the first to go, and weigh nothing (WindowState.fill).
inline void Work::fill(const double *X, const double *y, int rows) {
    int kept = std::min(rows, T), slot = kept - rows;
    for (bool seen : {false, true})
        for (int i = 0; i < rows; i++) {
            const double *x_row = X + size_t(i) * D, *y_row = y + size_t(i) * P;
            if (is_sample(x_row, D, y_row, P) != seen || slot++ < 0) continue;
            int t = slot - 1;
            for (int d = 0; d < D; d++) state.X[size_t(t) * D + d] = std::isfinite(x_row[d]) ? x_row[d] : 0.0;
            for (int p = 0; p < P; p++) state.y[size_t(t) * P + p] = seen ? y_row[p] : 0.0;
            state.w[t] = seen ? std::pow(rules.forgetting, double(rows - 1 - i)) : 0.0;
        }
    *state.cursor = kept % std::max(T, 1);
}

// Every second one of the last 2M samples, oldest first.
inline void Work::place_recent(int filled) {
    for (int i = M; i > 0; i--) {
        int t = filled - 2 * i;
        if (t >= 0 && state.w[t] > 0.0) std::copy_n(state.X + size_t(t) * D, D, state.U + size_t(m++) * D);
    }
}

// One after another the sample that the chosen ones explain least (pivoted Cholesky).
inline void Work::place_greedily(int filled) {
    if (filled == 0) return;
    Lease lease(memory);
    turn_samples();
    kernel.look(state.theta, {0, ld, state.U, Ut}, {T, ldT, state.X, Xt});
    double *left = memory.zeros(ldT), *rows = memory.zeros(size_t(M) * ldT);
    for (int t = 0; t < filled; t++) left[t] = state.w[t] > 0.0 ? kernel.diagonal(state.X + size_t(t) * D) : 0.0;
    while (m < M) {
        int best = int(std::max_element(left, left + filled) - left);
        if (!(left[best] > 0.0)) break;
        const double *x = state.X + size_t(best) * D;
        double *row = rows + size_t(m) * ldT;
        kernel.row(x, true, row);
        for (int i = 0; i < m; i++) axpy(-rows[size_t(i) * ldT + best], rows + size_t(i) * ldT, row, 0, T);
        scale(1.0 / std::sqrt(left[best]), row, 0, T);
        for (int t = 0; t < filled; t++) {
            const double *other = state.X + size_t(t) * D;
            left[t] = std::max(left[t] - row[t] * row[t], 0.0);
            if (std::equal(x, x + D, other)) left[t] = 0.0;  // nor is a copy of it, for the rounding that is left
        }
        std::copy_n(x, D, state.U + size_t(m++) * D);
    }
    Xt = nullptr;  // the lease ends
}

// Adam on hyperparameters and, if so set, all the inducing inputs.
inline void Work::warm_up() {
    int count = rules.parameters(), H = rules.formula.parameters, from = rules.learn_inducing ? 0 : m;
    Adam own(count, memory), carried(state.adam_mean, state.adam_square, 0), inputs(m * D, memory);
    Adam &adam = rules.step == CARRIED ? carried : own;
    double *gradient = memory.zeros(size_t(count) + size_t(m) * D);
    take_points(true);
    for (int64_t iteration = 0; iteration < rules.warmup_iterations; iteration++) {
        Lease lease(memory);
        if (iteration > 0) take_points(true);
        sums(true);
        if (!slope(gradient, from)) {  // and so would all the others be, from the same place
            *state.skipped += rules.warmup_iterations - iteration;
            break;
        }
        adam.step(gradient, count, rules.warmup_rate);
        for (int i = 0; i < count; i++) {
            double &parameter = i < H ? state.theta[i] : state.noise[i - H];
            parameter = std::exp(std::min(std::max(std::log(parameter) + gradient[i], -WIDEST), WIDEST));
        }
        if (!rules.learn_inducing) continue;
        inputs.step(gradient + count, m * D, rules.warmup_rate);
        for (int i = 0; i < m * D; i++) state.U[i] += gradient[count + i];
    }
    if (rules.step == CARRIED) *state.adam_steps = carried.steps;
}

}  // namespace DRIFTGP_LEVEL
