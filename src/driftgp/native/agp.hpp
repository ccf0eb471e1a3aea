// A step of the Adaptive Sparse Gaussian Process on the arrays of driftgp.agp.AGPState, in place.
//
// The mathematics and the letters are those of bound.py, inducing.py and agp.py, which remain the reference; this file
// differs in what a compiler of array programs cannot know. Points in use come first, so only their rows are computed.
// Φ and S are symmetric, N triangular. Kux of the last refresh serves the next gradient, but for the newest row and column.
// The gradient's M×T matrices are never whole: a block of samples at a time stays in the cache.

#pragma once

#include "kernel.hpp"

namespace DRIFTGP_LEVEL {

enum Rule { LEAVE_ONE_OUT, BY_CHOLESKY, BY_DIAGONAL };

struct Plan {
    int D, P, M, T, learn_every, rule;
    bool natural, prior, outliers, published;
    const int64_t *terms;  // kind and whether it has an entry an input, for each term
    int term_count;
};

struct Settings {
    double forgetting, rate, warmup_rate, threshold, jitter, absolute_jitter, prior, outliers, natural;
};

constexpr int MOST_LEAVES = 64;

struct State {
    double *X, *y, *w;
    int32_t *cursor;
    double *U;
    bool *used;
    double *parameters[MOST_LEAVES];  // those of each term, in order
    double *noise, *Kux, *n, *yy, *b, *Phi, *kappa, *inverse_L, *C, *alpha;
    int32_t *repairs, *samples, *skipped, *repaired;
};

class AGP {
    static constexpr int BLOCK = 256;    // samples at a time
    static constexpr int REPAIRS = 17;   // as in bound.py
    static constexpr double WIDEST = 60.0;  // as in learning.py
    static constexpr double ADAM_MEAN = 0.9, ADAM_SQUARE = 0.999, ADAM_EPSILON = 1e-8;

    const Plan &plan;
    const Settings &settings;
    const double *start;  // where the prior has its centre: kernel parameters and noise
    State &state;
    Memory &memory;
    Kernel kernel;
    const int D, P, M, T, ld, ldT;
    int m = 0;           // points in use
    int slots;           // M, or one more while a newcomer competes with the others
    // Memory of a step. Matrices are M×M, rows ld apart.
    double *theta;                        // kernel parameters
    double *k, *Ut, *Xt;                  // M; inputs of points and samples by columns
    double *N, *Phi, *S, *one, *two, *R;  // one and two for whatever needs them
    double *b;                            // bᵀ, P×M
    double *K;                            // Kux, M×T, rows ldT apart
    bool opened;                          // whether K is there

  public:
    // `starts`: parameters of the kernel and the noise to which the prior draws, those of model i among others'.
    AGP(const Plan &plan, const Settings &settings, const double *starts, int64_t i, State &state, Memory &memory)
        : plan(plan), settings(settings), state(state), memory(memory), D(plan.D), P(plan.P), M(plan.M),
          T(plan.T), ld(padded(plan.M + 1)), ldT(padded(plan.T)) {
        kernel.D = D, kernel.ld = std::min(BLOCK, padded(std::max(T, M + 1))) + W;
        for (int s = 0; s < plan.term_count; s++) kernel.add(Kind(plan.terms[2 * s]), plan.terms[2 * s + 1] != 0);
        start = starts + i * (kernel.parameters + P);
    }

    // Mean and variance of new targets at the rows of X, N×P each.
    void forecast(int rows, const double *X, double *mean, double *variance) {
        begin();
        look_at_points();
        for (int i = 0; i < rows; i++) {
            kernel.row(X + size_t(i) * D, false, k);
            double *to = variance + size_t(i) * P;
            at(kernel.diagonal(X + size_t(i) * D), mean + size_t(i) * P, to);
            for (int p = 0; p < P; p++) to[p] += state.noise[p];
        }
    }

    // Algorithms 1 and 2: see AGP.learn.
    void learn(const double *x_given, const double *y_given, double elapsed) {
        begin();
        double *x = memory.zeros(D), *y = memory.zeros(P);
        bool observed = true;
        for (int d = 0; d < D; d++) observed &= bool(std::isfinite(x_given[d]));
        for (int p = 0; p < P; p++) observed &= bool(std::isfinite(y_given[p]));
        if (observed) std::copy_n(x_given, D, x), std::copy_n(y_given, P, y);
        make_room();
        observe(x, y, std::pow(settings.forgetting, elapsed), observed);
        bool due = observed && plan.learn_every > 0 && *state.samples % plan.learn_every == 0;
        if (due) adapt(x);
        else if (plan.learn_every == 1) inside(m, N, Phi, S, one, two, ld), *state.repairs = 0, wait();
        else follow(x, observed);
        put_back();
    }

    // Learn the hyperparameters from the window by Adam (AGP._warm_up), then all that follows from them.
    void warm_up(int iterations) {
        begin();
        make_room();
        open();
        int count = kernel.parameters + P, taken = 0;
        double *mean = memory.zeros(count), *square = memory.zeros(count), *gradient = memory.zeros(count + D);
        take_points(true);
        Memory::Mark mark = memory.mark();
        for (int k = 0; k < iterations; k++, memory.back_to(mark)) {
            take_points(true);
            sums(true);
            clear(gradient, count);
            if (!slope(gradient, false)) continue;
            double mean_so_far = 1.0 - std::pow(ADAM_MEAN, ++taken), square_so_far = 1.0 - std::pow(ADAM_SQUARE, taken);
            for (int i = 0; i < count; i++) {
                double g = gradient[i];
                mean[i] = ADAM_MEAN * mean[i] + (1.0 - ADAM_MEAN) * g;
                square[i] = ADAM_SQUARE * square[i] + (1.0 - ADAM_SQUARE) * g * g;
                double size = std::sqrt(square[i] / square_so_far) + ADAM_EPSILON;
                move(i, settings.warmup_rate * mean[i] / mean_so_far / size);
            }
        }
        move_parameters(true);
        refresh();
        put_back();
    }

  private:
    // ---- between the state's arrays and padded ones ------------------------------------------------------------------

    void begin() {
        memory.reset();
        theta = memory.zeros(kernel.parameters);
        move_parameters(false);
        for (m = 0; m < M && state.used[m];) m++;
        slots = M;
        k = memory.zeros(ld), Ut = memory.zeros(size_t(D) * ld), Xt = nullptr, opened = false;
    }
    // Kernel parameters from the state, or back into it.
    void move_parameters(bool back) {
        for (int s = 0, leaf = 0; s < kernel.count; s++) {
            const Term &term = kernel.terms[s];
            auto move = [&](double *ours, int n) {
                double *theirs = state.parameters[leaf++];
                if (back) std::copy_n(ours, n, theirs);
                else std::copy_n(theirs, n, ours);
            };
            if (term.stationary()) move(theta + term.lengths, term.each ? D : 1);
            move(theta + term.variance, term.kind == LINEAR && term.each ? D : 1);
        }
    }

    void make_room() {
        size_t square = size_t(ld) * ld;
        N = memory.zeros(square), Phi = memory.zeros(square), S = memory.take(square);
        one = memory.take(square), two = memory.take(square), R = memory.take(square);
        b = memory.zeros(size_t(P) * ld);
        for (int i = 0; i < m; i++) {
            std::copy_n(state.inverse_L + size_t(i) * M, m, N + size_t(i) * ld);
            std::copy_n(state.Phi + size_t(i) * M, m, Phi + size_t(i) * ld);
            for (int p = 0; p < P; p++) b[size_t(p) * ld + i] = state.b[size_t(i) * P + p];
        }
    }
    void put_back() {
        for (int i = 0; i < M; i++) {
            state.used[i] = i < m;
            put_row(N, i, state.inverse_L, 1.0);
            put_row(Phi, i, state.Phi, 0.0);
            for (int p = 0; p < P; p++) state.b[size_t(i) * P + p] = i < m ? b[size_t(p) * ld + i] : 0.0;
        }
        if (!opened) return;
        if (K != state.Kux)
            for (int i = 0; i < m; i++) std::copy_n(K + size_t(i) * ldT, T, state.Kux + size_t(i) * T);
        clear(state.Kux + size_t(m) * T, size_t(M - m) * T);
    }
    // Row i of an M×M matrix; a free slot has `diagonal` there and zeros beside it.
    void put_row(const double *A, int i, double *to, double diagonal) {
        double *row = to + size_t(i) * M;
        int filled = i < m ? m : 0;
        std::copy_n(A + size_t(i) * ld, filled, row);
        std::fill(row + filled, row + M, 0.0);
        if (i >= m) row[i] = diagonal;
    }
    // Kux with whole vectors for rows: the state's own where they are whole already.
    void open() {
        if (opened) return;
        opened = true;
        if (ldT == T) {
            K = state.Kux;
            return;
        }
        K = memory.take(size_t(M) * ldT);
        for (int i = 0; i < M; i++) {
            std::copy_n(state.Kux + size_t(i) * T, T, K + size_t(i) * ldT);
            clear(K + size_t(i) * ldT + T, ldT - T);
        }
    }
    // The kernel between points and new inputs.
    void look_at_points() {
        transpose(m, D, state.U, D, Ut, ld);
        kernel.look(memory, theta, {m, ld, state.U, Ut}, {});
    }
    // The kernel among points and, if asked for, between them and the window.
    void take_points(bool with_samples) {
        bool again = Xt != nullptr;
        if (with_samples && !Xt) {
            Xt = memory.take(size_t(D) * ldT);
            for (int d = 0; d < D; d++) clear(Xt + size_t(d) * ldT + T, ldT - T);
            transpose(T, D, state.X, D, Xt, ldT);
        }
        transpose(m, D, state.U, D, Ut, ld);
        Points samples = with_samples ? Points{T, ldT, state.X, Xt} : Points{};
        kernel.prepare(memory, theta, {m, ld, state.U, Ut}, samples, again);
    }

    // ---- what the algorithms share -----------------------------------------------------------------------------------

    // Mean and latent variance from k = k(U, x) (bound.predict).
    void at(double kss, double *mean, double *variance) {
        double prior = kss;
        for (int i = 0; i < m; i++) {
            double a = plain_dot(state.inverse_L + size_t(i) * M, k, i + 1);
            prior -= a * a;
        }
        for (int p = 0; p < P; p++) {
            double total = 0.0, explained = 0.0;
            for (int i = 0; i < m; i++) {
                total += k[i] * state.alpha[size_t(i) * P + p];
                double c = plain_dot(state.C + (size_t(p) * M + i) * M, k, i + 1);
                explained += c * c;
            }
            mean[p] = total, variance[p] = std::max(prior + explained, 0.0);
        }
    }
    // Of rows without padding.
    static double plain_dot(const double *a, const double *b, int n) {
        Vec s{};
        int i = 0;
        for (; i + W <= n; i += W) s += load(a + i) * load(b + i);
        double total = sum(s);
        for (; i < n; i++) total += a[i] * b[i];
        return total;
    }

    double trust(const double *x, const double *y) {
        if (!plan.outliers) return 1.0;
        double z2 = 0.0, mean[MOST_LEAVES], variance[MOST_LEAVES];
        at(kernel.diagonal(x), mean, variance);
        for (int p = 0; p < P; p++) {
            double error = y[p] - mean[p];
            z2 += error * error / (variance[p] + state.noise[p]) / P;
        }
        return std::min(1.0, (settings.outliers + 1.0) / (settings.outliers + z2));
    }

    // Time passes; if there is a sample, it comes (eq. data_add) and the oldest one goes (eq. data_remove).
    void observe(const double *x, const double *y, double decay, bool observed) {
        for (int t = 0; t < T; t++) state.w[t] *= decay;
        for (int i = 0; i < m; i++) scale(decay, Phi + size_t(i) * ld, 0, m);
        scale(decay, b, 0, P * ld);
        *state.n *= decay, *state.kappa *= decay;
        for (int p = 0; p < P; p++) state.yy[p] *= decay;
        if (!observed) return;
        look_at_points();
        int slot = *state.cursor;
        double *x_old = state.X + size_t(slot) * D, *y_old = state.y + size_t(slot) * P, &w_old = state.w[slot];
        double *k_old = memory.zeros(ld);
        kernel.row(x_old, false, k_old);
        absorb(k_old, kernel.diagonal(x_old), y_old, -w_old);
        kernel.row(x, false, k);
        double weight = trust(x, y);
        absorb(k, kernel.diagonal(x), y, weight);
        std::copy_n(x, D, x_old), std::copy_n(y, P, y_old);
        w_old = weight;
        for (int i = 0; i < m; i++) state.Kux[size_t(i) * T + slot] = k[i];
        *state.cursor = (slot + 1) % T;
        *state.samples += 1;
    }
    void absorb(double *k, double kxx, const double *y, double w) {
        for (int i = m; i < ld; i++) k[i] = 0.0;
        for (int i = 0; i < m; i++) axpy(w * k[i], k, Phi + size_t(i) * ld, 0, m);
        for (int p = 0; p < P; p++) {
            axpy(w * y[p], k, b + size_t(p) * ld, 0, m);
            state.yy[p] += w * y[p] * y[p];
        }
        *state.n += w, *state.kappa += w * kxx;
    }

    // R from A, repaired where it has none; how often that took.
    int factorise_surely(int m, const double *A, double *R) {
        double trace = slots - m, rounding = 2.220446049250313e-16;  // free slots have ones on the diagonal
        for (int i = 0; i < m; i++) trace += A[size_t(i) * ld + i];
        std::memcpy(R, A, sizeof(double) * m * ld);
        int repairs = 0;
        for (double growing = 1.0; !factorise(m, R, ld) && repairs < REPAIRS; repairs++, growing *= 10.0) {
            std::memcpy(R, A, sizeof(double) * m * ld);
            for (int i = 0; i < m; i++) R[size_t(i) * ld + i] += rounding * trace * growing;
        }
        return repairs;
    }
    // Kuu with its jitter (inducing.gram).
    void fill_Kuu(double *Kuu) {
        double total = 0.0, *scratch = memory.take(size_t(m) * kernel.ld);
        for (int j0 = 0; j0 < m; j0 += BLOCK) kernel.gram(false, j0, std::min(BLOCK, m - j0), Kuu + j0, ld, scratch);
        for (int i = 0; i < m; i++) total += kernel.diagonal(state.U + size_t(i) * D);
        double jitter = settings.jitter * total / std::max(m, 1) + settings.absolute_jitter;
        for (int i = 0; i < m; i++) {
            Kuu[size_t(i) * ld + i] = kernel.diagonal(state.U + size_t(i) * D) + jitter;
            for (int j = m; j < ld; j++) Kuu[size_t(i) * ld + j] = 0.0;
        }
    }
    int inverse_root(double *N) {
        double *Kuu = two;
        fill_Kuu(Kuu);
        int repairs = factorise_surely(m, Kuu, R);
        invert(m, R, N, ld);
        return repairs;
    }

    // I + β S
    void fill_B(double beta, double *B) {
        for (int i = 0; i < m; i++) {
            for (int j = i / W * W; j < ld; j += W) store(B + size_t(i) * ld + j, beta * load(S + size_t(i) * ld + j));
            B[size_t(i) * ld + i] += 1.0;
        }
    }
    // The posterior from N, S and b (bound.posterior): C = L_B⁻¹ N and α = β Cᵀ C b.
    void wait() {
        int repairs = 0;
        double *C = memory.take(size_t(ld) * ld), *c = memory.zeros(ld), *alpha = memory.zeros(ld);
        for (int p = 0; p < P; p++) {
            double beta = 1.0 / state.noise[p];
            fill_B(beta, one);
            repairs += factorise_surely(m, one, R);
            invert(m, R, two, ld);
            product<false>(m, m, m, two, ld, N, ld, C, ld, FROM_COLUMN, TO_ROW);
            clear(alpha, ld);
            for (int i = 0; i < m; i++) {
                c[i] = dot(C + size_t(i) * ld, b + size_t(p) * ld, m);
                axpy(beta * c[i], C + size_t(i) * ld, alpha, 0, m);
            }
            for (int i = 0; i < M; i++) {
                put_row(C, i, state.C + size_t(p) * M * M, 1.0);
                state.alpha[size_t(i) * P + p] = i < m ? alpha[i] : 0.0;
            }
        }
        *state.repairs += repairs, *state.repaired += *state.repairs;
    }

    // ---- which points stay -------------------------------------------------------------------------------------------

    // From N, Φ and S of the present points; overwrites `one`.
    void relevance(double *relevances) {
        if (plan.rule == BY_DIAGONAL)
            for (int i = 0; i < m; i++) relevances[i] = Phi[size_t(i) * ld + i] / kernel.diagonal(state.U + size_t(i) * D);
        if (plan.rule == BY_CHOLESKY)
            for (int i = 0; i < m; i++) relevances[i] = S[size_t(i) * ld + i];
        if (plan.rule != LEAVE_ONE_OUT) return;
        product<false>(m, m, m, S, ld, N, ld, one, ld, FROM_COLUMN);  // diag(Kuu⁻¹ Φ Kuu⁻¹) = diag(Nᵀ S N)
        double *inverse = memory.zeros(ld);
        clear(relevances, ld);
        for (int i = 0; i < m; i++)
            for (int j = 0; j <= i; j += W) {
                Vec n = load(N + size_t(i) * ld + j);
                store(relevances + j, load(relevances + j) + n * load(one + size_t(i) * ld + j));
                store(inverse + j, load(inverse + j) + n * n);
            }
        for (int i = 0; i < m; i++) relevances[i] /= inverse[i];
    }
    // inducing.survivors, or survivors_published; returns how many stay.
    int survivors(const double *relevances, int most, bool published, int *kept) {
        double largest = -INFINITY, least = INFINITY;
        for (int i = 0; i < m; i++) largest = std::max(largest, relevances[i]);
        int count = 0, weakest = -1;
        for (int i = 0; i < m; i++) {
            if (relevances[i] < settings.threshold * largest) continue;
            if (relevances[i] < least || weakest < 0) least = relevances[i], weakest = count;
            kept[count++] = i;
        }
        if (published ? count == m && m >= most : count > most) {
            std::copy(kept + weakest + 1, kept + count, kept + weakest);
            count--;
        }
        return count;
    }
    // Close the gaps that removed points leave in U, Φ and b, and in Kux.
    void keep(const int *kept, int count) {
        for (int i = 0; i < count; i++) {
            if (kept[i] == i) continue;
            std::copy_n(state.U + size_t(kept[i]) * D, D, state.U + size_t(i) * D);
            std::copy_n(Phi + size_t(kept[i]) * ld, ld, Phi + size_t(i) * ld);
            if (kept[i] < M) std::copy_n(K + size_t(kept[i]) * ldT, ldT, K + size_t(i) * ldT);
        }
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++) Phi[size_t(i) * ld + j] = Phi[size_t(i) * ld + kept[j]];
        for (int i = 0; i < m; i++)
            for (int j = i < count ? count : 0; j < ld; j++) Phi[size_t(i) * ld + j] = 0.0;
        for (int p = 0; p < P; p++) {
            double *row = b + size_t(p) * ld;
            for (int i = 0; i < count; i++) row[i] = row[kept[i]];
            for (int i = count; i < ld; i++) row[i] = 0.0;
        }
        m = count;
    }
    // x becomes the last point: its row of Kux, and so of Φ and b (eq. update_B_inducing).
    void admit(const double *x, double *row) {
        int q = m++;
        std::copy_n(x, D, state.U + size_t(q) * D);
        take_points(true);
        kernel.row(x, true, row);
        double *weighted = memory.zeros(ldT);
        for (int t = 0; t < T; t++) weighted[t] = row[t] * state.w[t];
        double *phi = Phi + size_t(q) * ld;
        clear(phi, ld);
        for (int i = 0; i < q; i++) Phi[size_t(i) * ld + q] = phi[i] = dot(K + size_t(i) * ldT, weighted, T);
        phi[q] = dot(row, weighted, T);
        for (int p = 0; p < P; p++) {
            double total = 0.0;
            for (int t = 0; t < T; t++) total += weighted[t] * state.y[size_t(t) * P + p];
            b[size_t(p) * ld + q] = total;
        }
    }

    // ---- Algorithm 1: fast-AGP ---------------------------------------------------------------------------------------

    void follow(const double *x, bool observed) {
        if (observed && *state.cursor == 0) sum_again();
        inside(m, N, Phi, S, one, two, ld);
        *state.repairs = 0;
        if (observed) {
            double trace = 0.0, *relevances = memory.zeros(ld);
            int *kept = reinterpret_cast<int *>(memory.zeros(ld));
            for (int i = 0; i < m; i++) trace += S[size_t(i) * ld + i];
            bool wanted = needed(*state.kappa - trace);
            relevance(relevances);
            if (wanted || survivors(relevances, M, plan.published, kept) != m) {
                exchange(x, wanted);
                inside(m, N, Phi, S, one, two, ld);
            }
        }
        wait();
    }
    bool needed(double unexplained) const {
        double noise = 0.0;
        for (int p = 0; p < P; p++) noise += state.noise[p] / P;
        return plan.published ? unexplained / noise > *state.kappa / *state.n : unexplained > *state.kappa / T;
    }
    // Admit x or not, then drop what has become useless; the newcomer competes with the others.
    void exchange(const double *x, bool wanted) {
        open();
        slots = M + 1;
        double *row = memory.zeros(ldT), *relevances = memory.zeros(ld), *U = state.U;
        int *kept = reinterpret_cast<int *>(memory.zeros(ld));
        double *wide = memory.zeros(size_t(M + 1) * D);
        std::copy_n(U, size_t(m) * D, wide);
        state.U = wide;
        if (wanted) admit(x, row);
        else take_points(false);
        int newcomer = wanted ? m - 1 : -1;
        inverse_root(N);
        inside(m, N, Phi, S, one, two, ld);
        relevance(relevances);
        int count = survivors(relevances, M, plan.published, kept);
        // the newcomer's row is not in Kux yet, where there may be no place for it
        bool stays = count > 0 && kept[count - 1] == newcomer;
        if (stays) kept[count - 1] = M;
        move_last(newcomer, stays);
        keep(kept, count);
        if (stays) std::copy_n(row, ldT, K + size_t(m - 1) * ldT);
        std::copy_n(wide, size_t(m) * D, U);
        state.U = U, slots = M;
        take_points(false);
        *state.repaired += inverse_root(N);
    }
    // Let the newcomer be point M for `keep`.
    void move_last(int newcomer, bool stays) {
        if (!stays || newcomer == M) return;
        std::copy_n(state.U + size_t(newcomer) * D, D, state.U + size_t(M) * D);
        std::copy_n(Phi + size_t(newcomer) * ld, ld, Phi + size_t(M) * ld);
        for (int i = 0; i <= M; i++) Phi[size_t(i) * ld + M] = Phi[size_t(i) * ld + newcomer];
        for (int p = 0; p < P; p++) b[size_t(p) * ld + M] = b[size_t(p) * ld + newcomer];
    }
    // Sums that are forever added to and subtracted from drift: once a turn of the window they start anew.
    void sum_again() {
        open();
        take_points(true);
        sums(false);
    }

    // κ = Σ w k(x, x)
    double total_variance(double n) const {
        if (kernel.level()) return n * kernel.diagonal(state.X);
        double kappa = 0.0;
        for (int t = 0; t < T; t++) kappa += state.w[t] * kernel.diagonal(state.X + size_t(t) * D);
        return kappa;
    }
    // Kux, if it is to be `filled`, and the five statistics of the window (bound.statistics).
    void sums(bool filled) {
        int rows = m + P, block = kernel.ld;
        double *part = memory.take(size_t(rows) * block), *scratch = memory.take(size_t(rows) * block);
        int ldG = padded(rows);
        double *root = memory.zeros(ldT), *G = memory.zeros(size_t(rows) * ldG);
        double n = 0.0;
        for (int t = 0; t < T; t++) root[t] = std::sqrt(state.w[t]), n += state.w[t];
        for (int t0 = 0; t0 < T; t0 += BLOCK) {
            int count = padded(std::min(BLOCK, T - t0));
            if (filled) kernel.gram(true, t0, count, K + t0, ldT, scratch);
            for (int i = 0; i < m; i++)
                for (int t = 0; t < count; t += W)
                    store(part + size_t(i) * block + t, load(K + size_t(i) * ldT + t0 + t) * load(root + t0 + t));
            for (int p = 0; p < P; p++)
                for (int t = 0; t < count; t++)
                    part[size_t(m + p) * block + t] = t0 + t < T ? root[t0 + t] * state.y[size_t(t0 + t) * P + p] : 0.0;
            dots(rows, rows, part, part, block, G, ldG, count, true);
        }
        for (int i = 0; i < m; i++)
            for (int j = i; j < m; j++) Phi[size_t(i) * ld + j] = Phi[size_t(j) * ld + i] = G[size_t(i) * ldG + j];
        for (int p = 0; p < P; p++) {
            for (int i = 0; i < m; i++) b[size_t(p) * ld + i] = G[size_t(i) * ldG + m + p];
            state.yy[p] = G[size_t(m + p) * ldG + m + p];
        }
        *state.n = n, *state.kappa = total_variance(n);
    }

    // ---- Algorithm 2: AGP --------------------------------------------------------------------------------------------

    void adapt(const double *x) {
        open();
        // Algorithm 2, remove useless inducing points and limit set size to M − 1
        double *relevances = memory.zeros(ld);
        int *kept = reinterpret_cast<int *>(memory.zeros(ld));
        if (plan.rule != BY_DIAGONAL) inside(m, N, Phi, S, one, two, ld);
        relevance(relevances);
        keep(kept, survivors(relevances, M - 1, false, kept));
        // Algorithm 2, add a new inducing point
        admit(x, K + size_t(m) * ldT);
        renew();
        // Algorithm 2, update model parameters
        double floor = settings.jitter * *state.kappa / *state.n;
        climb();
        for (int p = 0; p < P; p++) state.noise[p] = std::max(state.noise[p], floor);
        // Algorithm 2, update predictive distribution with new parameters
        refresh();
    }
    // Kux, statistics and posterior at the present parameters (AGP._from_scratch).
    void refresh() {
        take_points(true);
        sums(true);
        *state.repairs = inverse_root(N);
        inside(m, N, Phi, S, one, two, ld);
        wait();
    }

    // All statistics but Φ from the window (bound.renewed): a wild target that has left it leaves nothing behind.
    void renew() {
        double n = 0.0, *weighted = memory.zeros(ldT);
        for (int t = 0; t < T; t++) n += state.w[t];
        *state.n = n, *state.kappa = total_variance(n);
        for (int p = 0; p < P; p++) {
            double yy = 0.0;
            for (int t = 0; t < T; t++) {
                double y = state.y[size_t(t) * P + p];
                weighted[t] = state.w[t] * y, yy += weighted[t] * y;
            }
            state.yy[p] = yy;
            for (int i = 0; i < m; i++) b[size_t(p) * ld + i] = dot(K + size_t(i) * ldT, weighted, T);
        }
    }

    double &parameter(int i) { return i < kernel.parameters ? theta[i] : state.noise[i - kernel.parameters]; }
    // ∂/∂ log of F and the prior in all parameters, and ∂F in the newest point if it moves; false if not finite.
    bool slope(double *gradient, bool moving) {
        int count = kernel.parameters + P;
        bool finite = differentiate(gradient, gradient + count, moving ? 1.0 : 0.0);
        for (int i = 0; i < count; i++) {
            double log = std::log(parameter(i));
            if (plan.prior) gradient[i] -= (log - std::log(start[i])) / (settings.prior * settings.prior);
            if (std::fabs(log) > WIDEST) gradient[i] = 0.0;
        }
        for (int i = 0; i < count + (moving ? D : 0); i++) finite &= bool(std::isfinite(gradient[i]));
        *state.skipped += !finite;
        return finite;
    }
    void move(int i, double step) {
        parameter(i) = std::exp(std::min(std::max(std::log(parameter(i)) + step, -WIDEST), WIDEST));
    }

    // One step uphill in the logarithms of the parameters and in the newest point.
    void climb() {
        int count = kernel.parameters + P;
        bool moving = !plan.natural;
        double *gradient = memory.zeros(count + D);
        if (!slope(gradient, moving)) return;
        double information = 0.5 * *state.n + (plan.prior ? 1.0 / (settings.prior * settings.prior) : 0.0);
        auto step = [&](double g) {  // Adam's first, or a natural one
            return plan.natural ? std::min(std::max(settings.natural * g / information, -settings.rate), settings.rate)
                                : settings.rate * g / (std::fabs(g) + ADAM_EPSILON);
        };
        for (int i = 0; i < count; i++) move(i, step(gradient[i]));
        for (int d = 0; d < D && moving; d++) state.U[size_t(m - 1) * D + d] += step(gradient[count + d]);
        move_parameters(true);
    }

    // ∂F in the logarithms of kernel parameters and noise, and in the newest point (bound.bound's rule).
    bool differentiate(double *gradient, double *point, double move) {
        size_t square = size_t(ld) * ld;
        double *Kuu = memory.take(square), *white_Phi = memory.zeros(square), *white_uu = memory.zeros(square);
        double *inverse_B = memory.take(square), *white_b = memory.zeros(ld), *a = memory.zeros(ld);
        int inner = m + P, ld_d = padded(M + P);
        double *dPhi = memory.zeros(size_t(m) * ld_d);  // and ½ ∂F/∂b beside it
        fill_Kuu(Kuu);
        std::memcpy(R, Kuu, sizeof(double) * m * ld);
        if (!factorise(m, R, ld)) return false;
        invert(m, R, N, ld);
        inside(m, N, Phi, S, one, two, ld);
        double betas = 0.0;
        for (int p = 0; p < P; p++) {
            double beta = 1.0 / state.noise[p], trace = 0.0;
            betas += beta;
            fill_B(beta, one);
            if (!factorise(m, one, ld)) return false;
            invert(m, one, two, ld);
            product<true>(m, m, m, two, ld, two, ld, inverse_B, ld, FROM_LATER, LAST, SET, true);
            mirror(inverse_B, m, ld);
            for (int i = 0; i < m; i++) white_b[i] = dot(N + size_t(i) * ld, b + size_t(p) * ld, i + 1);
            for (int i = 0; i < m; i++) a[i] = dot(inverse_B + size_t(i) * ld, white_b, m);
            for (int i = 0; i < m; i++) {
                double *left = inverse_B + size_t(i) * ld;
                for (int j = 0; j < m; j += W) store(left + j, -load(left + j));
                left[i] += 1.0;
                for (int j = m; j < ld; j++) left[j] = 0.0;
                trace += dot(left, S + size_t(i) * ld, m);
                double f = beta * beta * a[i];
                for (int j = 0; j < m; j += W) {
                    size_t at = size_t(i) * ld + j;
                    Vec common = 0.5 * (load(left + j) - f * load(a + j));
                    store(white_Phi + at, load(white_Phi + at) + beta * common);
                    store(white_uu + at, load(white_uu + at) + common - 0.5 * beta * load(S + at));
                }
            }
            double quadratic = dot(a, white_b, m) + dot(a, a, m);
            gradient[kernel.parameters + p] =
                -0.5 * beta * (*state.n / beta - state.yy[p] - *state.kappa + trace + beta * quadratic);
            for (int j = 0; j < m; j++) {  // ½ ∂F/∂b = ½ β² Nᵀ a
                double total = 0.0;
                for (int i = j; i < m; i++) total += N[size_t(i) * ld + j] * a[i];
                dPhi[size_t(j) * ld_d + m + p] = 0.5 * beta * beta * total;
            }
        }
        double *dense = inverse_B, *dKuu = one;
        outside(m, N, white_Phi, dense, two, ld);
        for (int i = 0; i < m; i++) std::copy_n(dense + size_t(i) * ld, m, dPhi + size_t(i) * ld_d);
        outside(m, N, white_uu, dKuu, two, ld);
        through_Kuu(dKuu, Kuu, gradient, point, 2.0 * move);
        through_Kux(dPhi, ld_d, inner, gradient, point, move);
        double *weights = memory.zeros(ldT);
        for (int t = 0; t < T; t++) weights[t] = -0.5 * betas * state.w[t];
        kernel.pull_diagonal(true, weights, gradient);
        return true;
    }
    void through_Kuu(const double *dKuu, const double *Kuu, double *gradient, double *point, double move) {
        int block = kernel.ld;
        double trace = 0.0, *weights = memory.zeros(ld), *scratch = memory.take(size_t(m) * block);
        double *A = memory.take(size_t(m) * block), *K = memory.take(size_t(m) * block);
        for (int i = 0; i < m; i++) trace += dKuu[size_t(i) * ld + i];
        for (int i = 0; i < m; i++) weights[i] = settings.jitter * trace / m;
        for (int j0 = 0; j0 < m; j0 += BLOCK) {
            int count = std::min(BLOCK, m - j0);
            for (int i = 0; i < m; i++) {
                std::copy_n(dKuu + size_t(i) * ld + j0, count, A + size_t(i) * block);
                std::copy_n(Kuu + size_t(i) * ld + j0, count, K + size_t(i) * block);
                for (int j = count; j < padded(count); j++) A[size_t(i) * block + j] = K[size_t(i) * block + j] = 0.0;
                if (i >= j0 && i < j0 + count) K[size_t(i) * block + i - j0] = kernel.diagonal(state.U + size_t(i) * D);
            }
            kernel.pull(false, j0, count, A, K, scratch, gradient, point, move);
        }
        kernel.pull_diagonal(false, weights, gradient);
    }
    // ∂F/∂Kux = W (2 (∂F/∂Φ) Kux + (∂F/∂b) yᵀ), never kept for more than a block
    void through_Kux(const double *dPhi, int ld_d, int inner, double *gradient, double *point, double move) {
        int block = kernel.ld;
        double *part = memory.take(size_t(inner) * block), *A = memory.take(size_t(m) * block);
        double *scratch = memory.take(size_t(m) * block), *twice = memory.zeros(ldT);
        for (int t = 0; t < T; t++) twice[t] = 2.0 * state.w[t];
        for (int t0 = 0; t0 < T; t0 += BLOCK) {
            int count = padded(std::min(BLOCK, T - t0));
            for (int i = 0; i < m; i++) std::copy_n(K + size_t(i) * ldT + t0, count, part + size_t(i) * block);
            for (int p = 0; p < P; p++)
                for (int t = 0; t < count; t++)
                    part[size_t(m + p) * block + t] = t0 + t < T ? state.y[size_t(t0 + t) * P + p] : 0.0;
            product<false>(m, count, inner, dPhi, ld_d, part, block, A, block);
            for (int i = 0; i < m; i++)
                for (int t = 0; t < count; t += W) {
                    double *to = A + size_t(i) * block + t;
                    store(to, load(to) * load(twice + t0 + t));
                }
            kernel.pull(true, t0, count, A, part, scratch, gradient, point, move);
        }
    }
};

}  // namespace DRIFTGP_LEVEL
