// Covariance functions: sums of the terms below, their Gram matrices block by block, and their derivatives.
//
//   stationary   v s(r²), r² = Σ_d (x_d − z_d)²/ℓ_d²       linear   Σ_d v_d x_d z_d       constant   v
//
// Parameters are positive and every derivative is one in their logarithms. With g = −2 v s'(r²), a stationary term has
// ∂k/∂log v = k, ∂k/∂log ℓ_d = g (x_d − z_d)²/ℓ_d² and ∂k/∂z_d = g (x_d − z_d)/ℓ_d².

#pragma once

#include <vector>

#include "products.hpp"

namespace DRIFTGP_LEVEL {

enum Kind { SQUARED_EXPONENTIAL, MATERN12, MATERN32, MATERN52, LINEAR, CONSTANT };

// Memory that is given out piece by piece and taken back all at once; it grows to what a step needs and stays.
class Memory {
    std::vector<std::vector<double>> blocks;
    size_t block = 0, used = 0;

  public:
    void reset() { block = used = 0; }
    double *take(size_t n) {
        n = (n + W - 1) / W * W + W;
        while (block < blocks.size() && used + n > blocks[block].size()) block++, used = 0;
        if (block == blocks.size()) blocks.emplace_back(std::max<size_t>(n + 8, 1 << 15));
        if (used == 0) {  // begin where a whole vector does
            uintptr_t address = reinterpret_cast<uintptr_t>(blocks[block].data());
            used = (64 - address % 64) % 64 / 8;
            if (used + n > blocks[block].size()) blocks[block].resize(n + 16), used = 0;
        }
        double *p = blocks[block].data() + used;
        used += n;
        return p;
    }
    struct Mark {
        size_t block, used;
    };
    Mark mark() const { return {block, used}; }
    void back_to(Mark mark) { block = mark.block, used = mark.used; }  // what was taken since is free again
    double *zeros(size_t n) {
        double *p = take(n);
        clear(p, n);
        return p;
    }
};

// Points as a kernel's formula needs them: by rows, and by inputs (D×ld) so that a vector holds several points.
struct Points {
    int n, ld;
    const double *rows;     // n×D
    double *turned;         // D×ld
};

// The same measured from a common origin, with their squared lengths, and in units of the lengthscales if a term has one
// an input: else distances are scaled, which is cheaper and leaves this as it is when the lengthscale moves.
struct Scaled {
    double *rows, *turned, *squares;
};

struct Term {
    Kind kind;
    bool each;     // whether the parameter before the variance, or for a linear term the variance, has an entry an input
    int lengths;   // where the lengthscales are among the parameters
    int variance;  // where the variance is
    bool stationary() const { return kind <= MATERN52; }
};

constexpr int MOST_TERMS = 16;

class Kernel {
    static constexpr int DIRECT = 3;  // up to so many inputs distances are summed from differences, which is exact

  public:
    int D, ld;  // inputs; distance between the rows of a block
    Term terms[MOST_TERMS];
    Scaled of_points[MOST_TERMS], of_samples[MOST_TERMS];
    int count = 0;              // of terms
    double *inverse = nullptr;  // of each parameter
    const double *theta = nullptr;
    Points points{}, samples{};
    int parameters = 0;

    void add(Kind kind, bool each) {
        int length = parameters, variance = parameters;
        if (kind <= MATERN52) variance = length + (each ? D : 1);
        parameters = variance + (kind == LINEAR && each ? D : 1);
        terms[count++] = {kind, each, length, variance};
    }

    // Take inducing points and samples at these parameters: everything below is about these.
    void look(Memory &memory, const double *theta_, Points points_, Points samples_) {
        theta = theta_, points = points_, samples = samples_;
        inverse = memory.take(parameters);
        for (int i = 0; i < parameters; i++) inverse[i] = 1.0 / theta[i];
    }
    // The same, for Gram matrices too. `again`: the samples are those of the last time.
    void prepare(Memory &memory, const double *theta_, Points points_, Points samples_, bool again) {
        look(memory, theta_, points_, samples_);
        const double *origin = samples.n > 0 ? samples.rows : points.rows;
        for (int s = 0; s < count; s++) {
            const Term &term = terms[s];
            if (term.stationary() && samples.n > 0 && !(again && !term.each))
                of_samples[s] = scaled(memory, term, samples, origin, false);
            if (term.stationary()) of_points[s] = scaled(memory, term, points, origin, true);
            else if (term.kind == LINEAR) of_points[s] = weighted(memory, term);
        }
    }

    // Whether the variance is the same everywhere.
    bool level() const {
        for (int s = 0; s < count; s++)
            if (terms[s].kind == LINEAR) return false;
        return true;
    }
    double diagonal(const double *x) const {
        double k = 0.0;
        for (int s = 0; s < count; s++) {
            const Term &term = terms[s];
            const double *v = theta + term.variance;
            if (term.kind != LINEAR) k += *v;
            else
                for (int d = 0; d < D; d++) k += v[term.each ? d : 0] * x[d] * x[d];
        }
        return k;
    }

    // Covariance of x with each of the points, or of the samples.
    void row(const double *x, bool with_samples, double *k) const {
        const Points &z = with_samples ? samples : points;
        clear(k, z.ld);
        for (int s = 0; s < count; s++) {
            const Term &term = terms[s];
            const double *v = theta + term.variance;
            for (int j = 0; j < z.ld; j += W) {
                Vec total{};
                for (int d = 0; d < D && term.kind != CONSTANT; d++) {
                    Vec zd = load(z.turned + size_t(d) * z.ld + j);
                    if (term.kind == LINEAR) total += v[term.each ? d : 0] * x[d] * zd;
                    else {
                        Vec r = (x[d] - zd) * over(term, d);
                        total += r * r;
                    }
                }
                if (term.kind == CONSTANT) total = all(*v);
                else if (term.stationary()) total = shape(term.kind, *v, total).k;
                store(k + j, load(k + j) + total);
            }
        }
    }

    // Gram matrix of the points with n samples from t0 on, or with the points themselves: K[i][t], rows ld_K apart.
    void gram(bool with_samples, int t0, int n, double *K, int ld_K, double *one) const {
        for (int s = 0; s < count; s++) {
            const Term &term = terms[s];
            double *to = s == 0 ? K : one;
            int ld_to = s == 0 ? ld_K : ld;
            term_gram(s, with_samples, t0, n, to, ld_to);
            if (term.stationary()) {
                double v = theta[term.variance];
                for (int i = 0; i < points.n; i++) {
                    double *row = to + size_t(i) * ld_to;
                    for (int t = 0; t < n; t += W) store(row + t, shape(term.kind, v, load(row + t)).k);
                }
            }
            if (s > 0)
                for (int i = 0; i < points.n; i++)
                    for (int t = 0; t < n; t += W) {
                        double *k = K + size_t(i) * ld_K + t;
                        store(k, load(k) + load(one + size_t(i) * ld + t));
                    }
        }
    }

    // Adds to the gradient what A = ∂F/∂K of such a block gives, K included. Both are overwritten. `move`: how often the
    // last point stands for its row: its own derivative is added to `point`, so many times.
    void pull(bool with_samples, int t0, int n, double *A, double *K, double *one, double *gradient, double *point,
              double move) const {
        // What the other terms leave of K is the one that has an exponential, which need not be computed again.
        int exponentials = 0;
        for (int s = 0; s < count; s++) exponentials += terms[s].stationary();
        for (int last = 0; last < 2; last++)
            for (int s = 0; s < count; s++) {
                if (terms[s].stationary() != (last == 1)) continue;
                bool known = exponentials == 1 && terms[s].kind == SQUARED_EXPONENTIAL;
                if (terms[s].stationary()) pull_stationary(s, known, with_samples, t0, n, A, K, one, gradient, point, move);
                else pull_other(s, with_samples, t0, n, A, K, one, gradient, point, move);
            }
    }

    // The same for the diagonal: Σ_i a_i k(x_i, x_i).
    void pull_diagonal(bool of_samples_, const double *a, double *gradient) const {
        const Points &x = of_samples_ ? samples : points;
        double total = 0.0;
        for (int i = 0; i < x.n; i++) total += a[i];
        for (int s = 0; s < count; s++) {
            const Term &term = terms[s];
            const double *v = theta + term.variance;
            double *g = gradient + term.variance;
            if (term.kind != LINEAR) *g += *v * total;
            else
                for (int d = 0; d < D; d++) {
                    double squares = 0.0;
                    for (int i = 0; i < x.n; i++) {
                        double xd = x.turned[size_t(d) * x.ld + i];
                        squares += a[i] * xd * xd;
                    }
                    g[term.each ? d : 0] += v[term.each ? d : 0] * squares;
                }
        }
    }

  private:
    struct Shape {
        Vec k, g;
    };
    double over(const Term &term, int d) const { return inverse[term.lengths + (term.each ? d : 0)]; }  // 1/ℓ_d
    double unit(const Term &term, int d) const { return term.each ? over(term, d) : 1.0; }               // of `Scaled`
    double rest(const Term &term) const { return term.each ? 1.0 : over(term, 0); }                      // of a distance

    static inline Shape shape(Kind kind, double v, Vec r2) {
        if (kind == SQUARED_EXPONENTIAL) {
            Vec k = v * exponential(-0.5 * r2);
            return {k, k};
        }
        Vec s = square_root((kind == MATERN12 ? 1.0 : kind == MATERN32 ? 3.0 : 5.0) * r2);
        Vec e = v * exponential(-s);
        if (kind == MATERN12) return {e, s > 0.0 ? e / s : Vec{}};
        if (kind == MATERN32) return {(1.0 + s) * e, 3.0 * e};
        return {(1.0 + s + s * s / 3.0) * e, (5.0 / 3.0) * (1.0 + s) * e};
    }

    Scaled scaled(Memory &memory, const Term &term, Points p, const double *origin, bool by_rows) const {
        Scaled s{by_rows ? memory.take(size_t(p.n) * D) : nullptr, memory.take(size_t(D) * p.ld), memory.take(p.ld)};
        for (int i = 0; i < p.ld; i += W) {
            Vec squares{};
            for (int d = 0; d < D; d++) {
                Vec x = unit(term, d) * (load(p.turned + size_t(d) * p.ld + i) - origin[d]);
                store(s.turned + size_t(d) * p.ld + i, x);
                squares += x * x;
            }
            store(s.squares + i, squares);
        }
        for (int i = 0; i < p.n && by_rows; i++)
            for (int d = 0; d < D; d++)
                s.rows[size_t(i) * D + d] = unit(term, d) * (p.rows[size_t(i) * D + d] - origin[d]);
        return s;
    }

    // Points times a linear term's variances.
    Scaled weighted(Memory &memory, const Term &term) const {
        Scaled s{memory.take(size_t(points.n) * D), nullptr, nullptr};
        const double *v = theta + term.variance;
        for (int i = 0; i < points.n; i++)
            for (int d = 0; d < D; d++) s.rows[size_t(i) * D + d] = v[term.each ? d : 0] * points.rows[size_t(i) * D + d];
        return s;
    }

    // A linear or constant term's share of K, or the squared distances of a stationary one.
    void term_gram(int s, bool with_samples, int t0, int n, double *to, int ld_to) const {
        const Term &term = terms[s];
        const Points &z = with_samples ? samples : points;
        const double *v = theta + term.variance;
        if (term.kind == CONSTANT) {
            for (int i = 0; i < points.n; i++)
                for (int t = 0; t < n; t += W) store(to + size_t(i) * ld_to + t, all(*v));
        } else if (term.kind == LINEAR) {
            product<false>(points.n, n, D, of_points[s].rows, D, z.turned + t0, z.ld, to, ld_to);
        } else {
            distances(s, with_samples, t0, n, to, ld_to);
        }
    }

    void distances(int s, bool with_samples, int t0, int n, double *to, int ld_to) const {
        const Scaled &u = of_points[s], &x = with_samples ? of_samples[s] : of_points[s];
        int ld_x = with_samples ? samples.ld : points.ld;
        double f = rest(terms[s]) * rest(terms[s]);
        if (D > DIRECT) product<false>(points.n, n, D, u.rows, D, x.turned + t0, ld_x, to, ld_to);
        for (int i = 0; i < points.n; i++) {
            double *row = to + size_t(i) * ld_to;
            for (int t = 0; t < n; t += W) {
                Vec r2{};
                if (D > DIRECT) r2 = not_negative(u.squares[i] + load(x.squares + t0 + t) - 2.0 * load(row + t));
                else
                    for (int d = 0; d < D; d++) {
                        Vec r = load(x.turned + size_t(d) * ld_x + t0 + t) - u.rows[size_t(i) * D + d];
                        r2 += r * r;
                    }
                store(row + t, f * r2);
            }
        }
    }

    void pull_other(int s, bool with_samples, int t0, int n, double *A, double *K, double *one, double *gradient,
                    double *point, double move) const {
        const Term &term = terms[s];
        const Points &z = with_samples ? samples : points;
        const double *v = theta + term.variance;
        term_gram(s, with_samples, t0, n, one, ld);
        Vec total{};
        for (int i = 0; i < points.n; i++)
            for (int t = 0; t < n; t += W) {
                size_t at = size_t(i) * ld + t;
                Vec k = load(one + at);
                total += load(A + at) * k;
                store(K + at, load(K + at) - k);
            }
        if (term.kind == CONSTANT || !term.each) gradient[term.variance] += sum(total);
        if (term.kind == CONSTANT) return;
        const double *last = A + size_t(points.n - 1) * ld;
        for (int d = 0; d < D; d++) {
            const double *zd = z.turned + size_t(d) * z.ld + t0;
            if (term.each)
                for (int i = 0; i < points.n; i++)
                    gradient[term.variance + d] += v[d] * points.rows[size_t(i) * D + d] * dot(A + size_t(i) * ld, zd, n);
            if (move != 0.0) point[d] += move * v[term.each ? d : 0] * dot(last, zd, n);
        }
    }

    void pull_stationary(int s, bool known, bool with_samples, int t0, int n, double *A, double *K, double *one,
                         double *gradient, double *point, double move) const {
        const Term &term = terms[s];
        const Scaled &u = of_points[s], &x = with_samples ? of_samples[s] : of_points[s];
        int ld_x = with_samples ? samples.ld : points.ld;
        double v = theta[term.variance];
        Vec by_variance{}, by_length{};
        distances(s, with_samples, t0, n, one, ld);
        for (int i = 0; i < points.n; i++)
            for (int t = 0; t < n; t += W) {
                size_t at = size_t(i) * ld + t;
                Vec r2 = load(one + at), k = load(K + at), a = load(A + at);
                Shape value = known ? Shape{k, k} : shape(term.kind, v, r2);
                Vec ag = a * value.g;
                by_variance += a * value.k, by_length += ag * r2;
                store(one + at, ag);
            }
        gradient[term.variance] += sum(by_variance);
        if (!term.each) gradient[term.lengths] += sum(by_length);
        int q = points.n - 1;
        for (int d = 0; d < D; d++) {
            const double *xd = x.turned + size_t(d) * ld_x + t0;
            if (move != 0.0) {
                Vec total{};
                for (int t = 0; t < n; t += W) total += load(one + size_t(q) * ld + t) * (load(xd + t) - u.rows[size_t(q) * D + d]);
                point[d] += move * sum(total) * over(term, d) * rest(term);
            }
            if (!term.each) continue;
            Vec total{};
            for (int i = 0; i < points.n; i++)
                for (int t = 0; t < n; t += W) {
                    Vec r = load(xd + t) - u.rows[size_t(i) * D + d];
                    total += load(one + size_t(i) * ld + t) * r * r;
                }
            gradient[term.lengths + d] += sum(total);
        }
    }
};

}  // namespace DRIFTGP_LEVEL
