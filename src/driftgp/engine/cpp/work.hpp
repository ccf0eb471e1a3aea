// One call of an Adaptive Sparse Gaussian Process, on the fields of a record, in place.
//
// The mathematics and the letters are those of bound.py, inducing.py and agp.py; this differs in what arrays of a fixed
// shape cannot say. Points in use come first, so only their rows are computed. Φ and S are symmetric, N triangular. Kux
// of the last refresh serves the next gradient, but for the newest row and column. The gradient's M×T matrices are
// never whole: a block of samples at a time stays in the cache.
//
// Here: settings, fields, and what the algorithms share. fast.hpp has Algorithm 1, adapt.hpp Algorithm 2 and the
// gradient, begin.hpp the warm-up.

#pragma once

#include "kernel.hpp"
#include "node.hpp"
#include "window.hpp"

namespace DRIFTGP_LEVEL {

enum Rule { LEAVE_ONE_OUT, BY_CHOLESKY, BY_DIAGONAL };
enum StepKind { FRESH, CARRIED, SCALED };

// A matrix has no factor even with a larger diagonal: its numbers have grown beyond all bounds.
struct NoFactor {};

// Settings, in the order of description.py.
struct Rules {
    static constexpr int64_t MOST = int64_t(1) << 24;  // of anything that is counted
    int D, P, M, T;
    double forgetting;
    Rule rule;
    int64_t learn_every, iterations;
    StepKind step;
    double rate, threshold, jitter, absolute_jitter, prior, outliers;  // prior and outliers: 0 for none
    int64_t warmup_iterations;
    double warmup_rate;
    bool learn_inducing, recent, published;
    std::vector<double> noise;  // to begin with
    bool given;  // whether the first inducing inputs are
    std::vector<double> inputs;  // D each
    Formula formula;

    Rules(const driftgp::Part &part, int D, int P) : D(D), P(P), formula(kernel_of(part), D) {
        const double huge = std::numeric_limits<double>::max();
        driftgp::Settings settings(part);
        M = int(settings.whole("inducing", 1, 1 << 14)), T = int(settings.whole("window", 0, MOST));
        forgetting = settings.number("forgetting", 0.0, 1.0);
        rule = Rule(settings.whole("relevance", 0, 2));
        learn_every = settings.whole("learn_every", 0, int64_t(1) << 52);
        iterations = settings.whole("iterations", 1, 10000);
        step = StepKind(settings.whole("step", 0, 2)), rate = settings.positive("rate");
        threshold = settings.number("threshold", 0.0, 1.0), jitter = settings.number("jitter", 0.0, 1.0);
        absolute_jitter = settings.number("absolute_jitter", 0.0, huge);
        prior = settings.number("prior", 0.0, huge), outliers = settings.number("outliers", 0.0, huge);
        warmup_iterations = settings.whole("warmup_iterations", 0, 1000000);
        warmup_rate = settings.positive("warmup_rate");
        learn_inducing = settings.flag("learn_inducing");
        recent = settings.flag("placement"), published = settings.flag("admission");
        noise = settings.numbers("noise", size_t(MOST), 1e-300, 1e300);
        int64_t columns = settings.whole("columns of inducing_inputs", 0, MOST);
        given = columns > 0;
        inputs = settings.numbers("inducing_inputs", size_t(M) * D, -huge, huge);
        settings.end(1);
        auto refuse = [](const std::string &what) { throw std::invalid_argument(what); };
        if (noise.size() == 1) noise.assign(P, double(noise[0]));  // a copy: assign may free it before it reads it
        if (noise.size() != size_t(P))
            refuse("noise must be one number or one for each of the " + std::to_string(P) + " outputs");
        if ((given && columns != D) || (!given && !inputs.empty()) || inputs.size() % D != 0)
            refuse("inducing_inputs must have " + std::to_string(D) + " columns, as many as there are inputs");
        if (T == 0 && learn_every > 0)
            refuse("window must be a number when there are gradient steps, which need samples");
        if (T > 0 && M > T) refuse("inducing must be at most window");
    }
    int parameters() const { return formula.parameters + P; }  // of the kernel, and noise
    size_t averages() const { return step == CARRIED ? parameters() : 0; }

  private:
    static const driftgp::Part &kernel_of(const driftgp::Part &part) {
        if (part.children.size() != 1) throw std::invalid_argument("an AGP must hold one kernel");
        return part.children[0];
    }
};

// The fields of a state (AGPState).
struct View {
    double *X, *y;
    Whole *cursor;
    double *w, *U;
    Whole *points;
    double *theta, *noise, *Kux, *n, *yy, *b, *Phi, *kappa, *inverse_L, *C, *alpha, *adam_mean, *adam_square;
    Whole *adam_steps, *samples, *skipped, *repaired;
};

// What cannot be computed again, in case a step has to be undone: all that a step changes before it is sure of the
// rest.
class Before {
    double *numbers;
    int64_t wholes[4];

    // Calls visit(field, count) for each array.
    template <class Visit>
    static void each(const Rules &r, const View &v, Visit visit) {
        visit(v.w, r.T), visit(v.U, r.M * r.D), visit(v.theta, r.formula.parameters), visit(v.noise, r.P);
        visit(v.yy, r.P), visit(v.n, 1), visit(v.kappa, 1);
        visit(v.adam_mean, int(r.averages())), visit(v.adam_square, int(r.averages()));
    }

  public:
    Before(const Rules &r, const View &v, Memory &memory) : wholes{*v.adam_steps, *v.samples, *v.skipped, *v.repaired} {
        double *to = numbers = memory.take(size_t(r.T) + size_t(r.M) * r.D + 4 * r.parameters() + 2);
        each(r, v, [&](const double *field, int count) { to = std::copy_n(field, count, to); });
    }
    void restore(const Rules &r, const View &v) const {
        const double *from = numbers;
        each(r, v, [&](double *field, int count) { std::copy_n(from, count, field), from += count; });
        *v.adam_steps = wholes[0], *v.samples = wholes[1], *v.skipped = wholes[2], *v.repaired = wholes[3];
    }
};

// Running averages of Adam.
struct Adam {
    static constexpr double MEAN = 0.9, SQUARE = 0.999, EPSILON = 1e-8;
    double *mean, *square;
    int64_t steps;
    Adam(int count, Memory &memory) : mean(memory.zeros(count)), square(memory.zeros(count)), steps(0) {}
    Adam(double *mean, double *square, int64_t steps) : mean(mean), square(square), steps(steps) {}
    // The gradient becomes the step uphill.
    void step(double *gradient, int count, double rate) {
        steps++;
        double mean_so_far = 1.0 - std::pow(MEAN, double(steps)), square_so_far = 1.0 - std::pow(SQUARE, double(steps));
        for (int i = 0; i < count; i++) {
            double g = gradient[i];
            mean[i] = MEAN * mean[i] + (1.0 - MEAN) * g;
            square[i] = SQUARE * square[i] + (1.0 - SQUARE) * g * g;
            gradient[i] = rate * mean[i] / mean_so_far / (std::sqrt(square[i] / square_so_far) + EPSILON);
        }
    }
};

class Work {
    static constexpr int BLOCK = 256;  // samples at a time
    static constexpr int REPAIRS = 17;  // as in bound.py
    static constexpr double WIDEST = 60.0;  // as in learning.py

    const Rules &rules;
    View state;
    Memory &memory;
    const int D, P, M, T, ld, ldT;  // T: samples in the window, or in a batch to start from
    Kernel kernel;
    int m;  // points in use
    bool prepared = false;  // whether the kernel has seen the samples
    int most;  // points in use at any time of this call, as far as the state has room for them
    // Memory of a step. Matrices are M×M, rows ld apart.
    double *k, *Ut, *Xt = nullptr;  // M; inputs of points and samples by columns
    double *N, *Phi, *S, *one, *two, *R;  // one and two for temporary use
    double *b;  // bᵀ, P×M
    double *K;  // Kux, M×T: the state's own or, once it is opened, with rows padded
    int ldK;  // distance between its rows, T or ldT

  public:
    Work(const Rules &rules, const View &view, int T, Memory &memory)
        : rules(rules), state(view), memory(memory), D(rules.D), P(rules.P), M(rules.M), T(T), ld(padded(rules.M + 1)),
          ldT(padded(T)), kernel(rules.formula, std::min(BLOCK, padded(std::max(T, rules.M + 1))) + W, memory),
          m(int(*view.points)), most(m), K(view.Kux), ldK(T) {
        k = memory.zeros(ld), Ut = memory.zeros(size_t(D) * ld);
    }

    // Mean, variance and noise of new targets at x.
    void forecast(const double *x, double *made) {
        look_at_points();
        kernel.row(x, false, k);
        at(kernel.diagonal(x), made, made + P);
        for (int p = 0; p < P; p++) made[P + p] += state.noise[p], made[2 * P + p] = state.noise[p];
    }

    // Algorithms 1 and 2: see AGP.learn_on.
    void learn(const Leaving &leaving, const double *x, const double *y, double elapsed, const double *known) {
        make_room();
        observe(leaving, x, y, std::pow(rules.forgetting, elapsed), known);
        if (leaving.observed && rules.learn_every > 0 && *state.samples % rules.learn_every == 0) {
            adapt(x);
        } else if (leaving.observed && rules.learn_every != 1 && T > 0) {
            follow(x);
        } else {
            inside(m, N, Phi, S, one, two, ld);
            *state.repaired += settle();
        }
        put_back();
    }

    // Window, points and hyperparameters from a batch, then all that follows from them (begin.hpp).
    void start(const double *X, const double *y, int rows);

    // Kux, the statistics and the posterior from the rest; without a window the statistics are part of the rest.
    void complete() {
        make_room();
        if (T > 0) {
            open();
            refresh();
        } else {
            take_points(false);
            inverse_root(N);
            inside(m, N, Phi, S, one, two, ld);
            settle();
        }
        put_back();
    }

  private:
    // ---- Algorithm 1 (fast.hpp)
    void follow(const double *x);
    bool needed(double unexplained) const;
    bool exchange(const double *x, bool wanted, double *relevances, double *inverse, int *kept);
    void exchange_anew(const double *x, bool wanted, double *relevances, double *inverse, int *kept);
    void close_ranks(const double *x, const double *row, const int *kept, int count, int before);
    bool border(const double *x);
    void add_to_S();
    void add_relevance(double *relevances, double *inverse, double kxx);
    void rotate_out(int r, int size);
    // ---- Algorithm 2 (adapt.hpp)
    void adapt(const double *x);
    void renew();
    void climb();
    bool slope(double *gradient, int from);
    bool differentiate(double *gradient, double *points, int from);
    void through_Kuu(const double *dKuu, const double *Kuu, double *gradient, const Moves &moves);
    void through_Kux(const double *dPhi, int ld_d, int inner, double *gradient, const Moves &moves);
    // ---- a first set (begin.hpp)
    void fill(const double *X, const double *y, int rows);
    void place_recent(int filled);
    void place_greedily(int filled);
    void warm_up();

    // ---- between the state's arrays and padded ones
    // ------------------------------------------------------------------

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
        *state.points = m;
        clear(state.U + size_t(m) * D, size_t(M - m) * D);
        for (int i = 0; i < M; i++) {
            put_row(N, i, state.inverse_L);
            put_row(Phi, i, state.Phi);
            for (int p = 0; p < P; p++) state.b[size_t(i) * P + p] = i < m ? b[size_t(p) * ld + i] : 0.0;
        }
        if (K != state.Kux)
            for (int i = 0; i < m; i++) std::copy_n(K + size_t(i) * ldK, T, state.Kux + size_t(i) * T);
        if (m < most) clear(state.Kux + size_t(m) * T, size_t(most - m) * T);
    }
    // Row i of an M×M matrix, zeros where there is no point.
    void put_row(const double *A, int i, double *to) {
        double *row = to + size_t(i) * M;
        int filled = i < m ? m : 0;
        std::copy_n(A + size_t(i) * ld, filled, row);
        std::fill(row + filled, row + M, 0.0);
    }
    // Kux with whole vectors for rows: the state's own where they are whole already.
    void open() {
        if (ldK == ldT) return;
        K = memory.take(size_t(M) * ldT), ldK = ldT;
        for (int i = 0; i < M; i++) {
            std::copy_n(state.Kux + size_t(i) * T, T, K + size_t(i) * ldT);
            clear(K + size_t(i) * ldT + T, ldT - T);
        }
    }
    // The kernel between points and new inputs, or between samples and new inputs.
    void look_at_points() {
        transpose(m, D, state.U, D, Ut, ld);
        kernel.look(state.theta, {m, ld, state.U, Ut}, {});
    }
    void look_at_samples() {
        turn_samples();
        kernel.look(state.theta, kernel.points, {T, ldT, state.X, Xt});
    }
    // The kernel among points and, if asked for, between them and the window.
    void take_points(bool with_samples) {
        if (with_samples) turn_samples();
        transpose(m, D, state.U, D, Ut, ld);
        Points samples = with_samples ? Points{T, ldT, state.X, Xt} : Points{};
        kernel.prepare(state.theta, {m, ld, state.U, Ut}, samples, prepared);
        prepared |= with_samples;
    }
    void turn_samples() {
        if (Xt) return;
        Xt = memory.take(size_t(D) * ldT);
        for (int d = 0; d < D; d++) clear(Xt + size_t(d) * ldT + T, ldT - T);
        transpose(T, D, state.X, D, Xt, ldT);
    }

    // ---- what the algorithms share
    // -----------------------------------------------------------------------------------

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
            double latent = prior + explained;
            mean[p] = total, variance[p] = latent < 0.0 ? 0.0 : latent;
        }
    }
    // Of rows without padding; those over samples are long enough for several sums at a time.
    template <bool LONG = false>
    static double plain_dot(const double *a, const double *b, int n) {
        constexpr int SUMS = LONG ? 4 : 1;
        Vec s[SUMS];
        for (int j = 0; j < SUMS; j++) s[j] = Vec{};
        int i = 0;
        for (; i + SUMS * W <= n; i += SUMS * W)
            for (int j = 0; j < SUMS; j++) s[j] += load(a + i + j * W) * load(b + i + j * W);
        for (; i + W <= n; i += W) s[0] += load(a + i) * load(b + i);
        for (int j = 1; j < SUMS; j++) s[0] += s[j];
        double total = sum(s[0]);
        for (; i < n; i++) total += a[i] * b[i];
        return total;
    }

    // Weight that a sample enters with, from its forecast, where it is known, or from k.
    double trust(const double *x, const double *y, const double *known) {
        if (rules.outliers == 0.0) return 1.0;
        if (!known) {
            double *made = memory.take(2 * P);
            at(kernel.diagonal(x), made, made + P);
            for (int p = 0; p < P; p++) made[P + p] += state.noise[p];
            known = made;
        }
        double z2 = 0.0;
        for (int p = 0; p < P; p++) {
            double error = y[p] - known[p];
            z2 += error * error / known[P + p] / P;
        }
        return std::min(1.0, (rules.outliers + 1.0) / (rules.outliers + z2));
    }

    // Time passes; if there is a sample, it comes (eq. data_add) and the oldest one goes (eq. data_remove).
    void observe(const Leaving &leaving, const double *x, const double *y, double decay, const double *known) {
        for (int t = 0; t < T; t++) state.w[t] *= decay;
        for (int i = 0; i < m; i++) scale(decay, Phi + size_t(i) * ld, 0, m);
        scale(decay, b, 0, P * ld);
        *state.n *= decay, *state.kappa *= decay;
        for (int p = 0; p < P; p++) state.yy[p] *= decay;
        if (!leaving.observed) return;
        look_at_points();
        if (T > 0 && state.w[leaving.slot] != 0.0) {
            double *k_old = memory.zeros(ld);
            kernel.row(leaving.x, false, k_old);
            absorb(k_old, kernel.diagonal(leaving.x), leaving.y, -state.w[leaving.slot]);
        }
        double kxx = kernel.diagonal(x), size = kxx;
        for (int p = 0; p < P; p++) size += y[p] * y[p];
        if (!std::isfinite(size)) throw NoFactor{};  // no statistic could hold it
        kernel.row(x, false, k);
        double weight = trust(x, y, known);
        absorb(k, kxx, y, weight);
        if (T > 0) {
            state.w[leaving.slot] = weight;
            for (int i = 0; i < m; i++) state.Kux[size_t(i) * T + leaving.slot] = k[i];
        }
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

    // R from A, with a larger diagonal if A has no factor; returns how often the diagonal was raised.
    int factorise_surely(int m, const double *A, double *R) {
        double trace = 0.0;
        for (int i = 0; i < m; i++) trace += A[size_t(i) * ld + i];
        std::memcpy(R, A, sizeof(double) * m * ld);
        if (factorise(m, R, ld)) return 0;
        double added =
            2.220446049250313e-16 * (trace == 0.0 ? 1.0 : trace);  // its rounding error, and tenfold each time
        for (int repairs = 1; repairs <= REPAIRS; repairs++, added *= 10.0) {
            std::memcpy(R, A, sizeof(double) * m * ld);
            for (int i = 0; i < m; i++) R[size_t(i) * ld + i] += added;
            if (factorise(m, R, ld)) return repairs;
        }
        throw NoFactor{};
    }
    // Kuu with its jitter (inducing.gram).
    void fill_Kuu(double *Kuu) {
        Lease lease(memory);
        double total = 0.0, *scratch = memory.take(size_t(m) * kernel.ld);
        for (int j0 = 0; j0 < m; j0 += BLOCK) kernel.gram(false, j0, std::min(BLOCK, m - j0), Kuu + j0, ld, scratch);
        for (int i = 0; i < m; i++) total += kernel.diagonal(state.U + size_t(i) * D);
        double jitter = rules.jitter * total / std::max(m, 1) + rules.absolute_jitter;
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
    // The posterior from N, S and b (bound.posterior): C = L_B⁻¹ N and α = β Cᵀ C b. Returns the repairs it took.
    int settle() {
        Lease lease(memory);
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
                put_row(C, i, state.C + size_t(p) * M * M);
                state.alpha[size_t(i) * P + p] = i < m ? alpha[i] : 0.0;
            }
        }
        return repairs;
    }
    // Kux, statistics and posterior at the present parameters (AGP._refresh). Returns the repairs it took.
    int refresh() {
        take_points(true);
        sums(true);
        int repairs = inverse_root(N);
        inside(m, N, Phi, S, one, two, ld);
        return repairs + settle();
    }

    // κ = Σ w k(x, x)
    double total_variance(double n) const {
        if (kernel.level()) return n * kernel.diagonal(state.X);
        Lease lease(memory);
        double *variances = memory.take(ldT);
        kernel.diagonals(true, variances);
        return plain_dot<true>(state.w, variances, T);
    }
    // Kux, if it is to be `filled`, and the five statistics of the window (bound.statistics).
    void sums(bool filled) {
        Lease lease(memory);
        int rows = m + P, block = kernel.ld;
        double *part = memory.take(size_t(rows) * block), *scratch = memory.take(size_t(rows) * block);
        int ldG = padded(rows);
        double *root = memory.zeros(ldT), *G = memory.zeros(size_t(rows) * ldG);
        double n = 0.0;
        for (int t = 0; t < T; t++) root[t] = std::sqrt(state.w[t]), n += state.w[t];
        for (int t0 = 0; t0 < T; t0 += BLOCK) {
            int count = padded(std::min(BLOCK, T - t0));
            if (filled) kernel.gram(true, t0, count, K + t0, ldK, scratch);
            for (int i = 0; i < m; i++)
                for (int t = 0; t < count; t += W)
                    store(part + size_t(i) * block + t, load(K + size_t(i) * ldK + t0 + t) * load(root + t0 + t));
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

    // ---- which points stay
    // -------------------------------------------------------------------------------------------

    // From N, Φ and S of the present points, with diag(Kuu⁻¹) if the rule needs it; overwrites `one`.
    void relevance(double *relevances, double *inverse) {
        if (rules.rule == BY_DIAGONAL)
            for (int i = 0; i < m; i++)
                relevances[i] = Phi[size_t(i) * ld + i] / kernel.diagonal(state.U + size_t(i) * D);
        if (rules.rule == BY_CHOLESKY)
            for (int i = 0; i < m; i++) relevances[i] = S[size_t(i) * ld + i];
        if (rules.rule != LEAVE_ONE_OUT) return;
        product<false>(m, m, m, S, ld, N, ld, one, ld, FROM_COLUMN);  // diag(Kuu⁻¹ Φ Kuu⁻¹) = diag(Nᵀ S N)
        clear(relevances, ld), clear(inverse, ld);
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
        double largest = 0.0, least = INFINITY;
        for (int i = 0; i < m; i++) largest = std::max(largest, relevances[i]);
        int count = 0, weakest = 0;
        for (int i = 0; i < m; i++) {
            if (!(relevances[i] >= rules.threshold * largest)) continue;
            if (relevances[i] < least) least = relevances[i], weakest = count;
            kept[count++] = i;
        }
        if (published ? count == m && m >= most : count > most) {
            std::copy(kept + weakest + 1, kept + count, kept + weakest);
            count--;
        }
        return count;
    }
    // Close the gaps that removed points leave in Φ and b and, as far as there are rows, in U and Kux.
    void keep(const int *kept, int count, int rows) {
        for (int i = 0; i < count; i++) {
            if (kept[i] == i) continue;
            std::copy_n(Phi + size_t(kept[i]) * ld, ld, Phi + size_t(i) * ld);
            if (kept[i] >= rows) continue;
            std::copy_n(state.U + size_t(kept[i]) * D, D, state.U + size_t(i) * D);
            std::copy_n(K + size_t(kept[i]) * ldK, ldK, K + size_t(i) * ldK);
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
    // A new point's row of Kux, and so of Φ and b (eq. update_B_inducing); the kernel has looked at the samples.
    void admit(const double *x, double *row) {
        Lease lease(memory);
        int q = m++;
        most = std::max(most, std::min(m, M));
        double *all = memory.take(ldT), *weighted = memory.zeros(ldT);
        kernel.row(x, true, all);
        std::copy_n(all, T, row);
        for (int t = 0; t < T; t++) weighted[t] = row[t] * state.w[t];
        double *phi = Phi + size_t(q) * ld;
        clear(phi, ld);
        for (int i = 0; i < q; i++)
            Phi[size_t(i) * ld + q] = phi[i] = plain_dot<true>(K + size_t(i) * ldK, weighted, T);
        phi[q] = plain_dot<true>(row, weighted, T);
        for (int p = 0; p < P; p++) {
            double total = 0.0;
            for (int t = 0; t < T; t++) total += weighted[t] * state.y[size_t(t) * P + p];
            b[size_t(p) * ld + q] = total;
        }
    }
};

}  // namespace DRIFTGP_LEVEL

#include "adapt.hpp"
#include "begin.hpp"
#include "fast.hpp"
