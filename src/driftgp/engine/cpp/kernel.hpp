// Covariance functions: their Gram matrices block by block, and their derivatives.
//
// A kernel is a sum of terms. A term is one of the formulas below or the product of two sums, so that every tree of
// sums and products is one of these, and a plain sum of formulas is as quick as if there were no products.
//
//   stationary   v s(r²), r² = Σ_d (x_d − z_d)²/ℓ_d²       linear     Σ_d v_d x_d z_d
//   periodic     v exp(−2 Σ_d sin²(π (x_d − z_d)/p_d)/ℓ_d²)   constant   v
//
// Parameters are positive and every derivative is one in their logarithms. With g = −2 v s'(r²), a stationary term has
// ∂k/∂log v = k, ∂k/∂log ℓ_d = g (x_d − z_d)²/ℓ_d² and ∂k/∂z_d = g (x_d − z_d)/ℓ_d².

#pragma once

#include <new>
#include <vector>

#include "memory.hpp"
#include "parts.hpp"

namespace DRIFTGP_LEVEL {

using driftgp::PartKind;

struct Term {
    PartKind kind;
    bool each = false;          // whether there is a lengthscale, or for a linear term a variance, per input
    bool each_period = false;   // the same for the period
    int periods = 0, lengths = 0, variance = 0, mixture = 0;  // where they are among the parameters
    int place = 0;              // among all the terms of the tree
    int first = 0, second = 0;  // which sums a product multiplies
    bool stationary() const { return kind <= driftgp::RATIONAL_QUADRATIC; }
};

// The structure of a kernel, without its parameters.
class Formula {
  public:
    int D = 0, parameters = 0, places = 0;
    bool level = true;                     // whether the variance is the same everywhere
    std::vector<double> start;             // parameters to begin with
    std::vector<std::vector<Term>> sums;   // the first is the kernel

    Formula(const driftgp::Part &part, int D) : D(D) { add_sum(part); }

  private:
    int add_sum(const driftgp::Part &part) {
        int index = int(sums.size());
        sums.emplace_back();
        std::vector<Term> terms;
        collect(part, terms);
        sums[index] = terms;
        return index;
    }
    void collect(const driftgp::Part &part, std::vector<Term> &terms) {
        driftgp::Settings settings(part);
        Term term{PartKind(part.kind)};
        if (part.kind == driftgp::SUM || part.kind == driftgp::PRODUCT) {
            settings.end(2);
            if (part.kind == driftgp::SUM) return collect(part.children[0], terms), collect(part.children[1], terms);
            term.first = add_sum(part.children[0]), term.second = add_sum(part.children[1]);
        } else {
            if (part.kind < driftgp::SE || part.kind > driftgp::CONSTANT)
                throw driftgp::Unknown("there is no kernel of kind " + std::to_string(part.kind));
            if (part.kind == driftgp::PERIODIC) term.periods = parameter(settings, "period", &term.each_period);
            if (part.kind <= driftgp::PERIODIC) term.lengths = parameter(settings, "lengthscale", &term.each);
            bool linear = part.kind == driftgp::LINEAR;
            term.variance = parameter(settings, "variance", linear ? &term.each : nullptr), level &= !linear;
            if (part.kind == driftgp::RATIONAL_QUADRATIC) term.mixture = parameter(settings, "mixture", nullptr);
            settings.end(0);
        }
        term.place = places++;
        terms.push_back(term);
    }
    // One number, or where there may be more, one per input.
    int parameter(driftgp::Settings &settings, const char *name, bool *each) {
        std::vector<double> values = settings.numbers(name, 1 << 16, 1e-300, 1e300);
        if (values.size() != 1 && !(each && values.size() == size_t(D)))
            throw std::invalid_argument(std::string(name) + " of a kernel has " + std::to_string(values.size()) +
                                        " entries for " + std::to_string(D) + " inputs");
        if (each) *each = values.size() > 1;
        int at = parameters;
        start.insert(start.end(), values.begin(), values.end());
        parameters += int(values.size());
        return at;
    }
};

// Points as a kernel's formula needs them: by rows, and by inputs (D×ld) so that a vector holds several points.
struct Points {
    int n, ld;
    const double *rows;     // n×D
    double *turned;         // D×ld
};

// The same points measured from a common origin, with their squared lengths. With one lengthscale per input they are in
// units of the lengthscales. With a single lengthscale distances are scaled instead, which is cheaper.
struct Scaled {
    double *rows, *turned, *squares;
};

// Where derivatives in the points go: those of the points from `from` on, D numbers each, `times` over.
struct Moves {
    int from;
    double *gradient;
    double times;
};

class Kernel {
    // up to this number of inputs, distances are summed from differences, which is exact
    static constexpr int DIRECT = 3;
    static constexpr double DOMINATES = 100.0;  // a difference of terms loses this many roundings at most
    static constexpr double PI = 3.14159265358979323846;

    const Formula &formula;
    Memory &memory;
    Scaled *of_points, *of_samples;  // of every term
    double *inverse;                 // of each parameter

  public:
    const int D, ld;  // inputs; distance between the rows of a block
    const double *theta = nullptr;
    Points points{}, samples{};

    Kernel(const Formula &formula, int ld, Memory &memory) : formula(formula), memory(memory), D(formula.D), ld(ld) {
        of_points = room(), of_samples = room(), inverse = memory.take(formula.parameters);
    }

    // Take inducing points and samples at these parameters: everything below is about these.
    void look(const double *theta_, Points points_, Points samples_) {
        theta = theta_, points = points_, samples = samples_;
        for (int i = 0; i < formula.parameters; i++) inverse[i] = 1.0 / theta[i];
    }
    // The same, for Gram matrices too. `again`: the samples are those of the last time.
    void prepare(const double *theta_, Points points_, Points samples_, bool again) {
        look(theta_, points_, samples_);
        const double *origin = samples.n > 0 ? samples.rows : points.rows;
        for (const std::vector<Term> &sum : formula.sums)
            for (const Term &term : sum) {
                if (term.stationary() && samples.n > 0 && !(again && !term.each))
                    of_samples[term.place] = scaled(term, samples, origin, false);
                if (term.stationary()) of_points[term.place] = scaled(term, points, origin, true);
                else if (term.kind == driftgp::LINEAR) of_points[term.place] = weighted(term);
            }
    }

    bool level() const { return formula.level; }
    double diagonal(const double *x, int sum = 0) const {
        double k = 0.0;
        for (const Term &term : formula.sums[sum]) {
            const double *v = theta + term.variance;
            if (term.kind == driftgp::PRODUCT) k += diagonal(x, term.first) * diagonal(x, term.second);
            else if (term.kind != driftgp::LINEAR) k += *v;
            else
                for (int d = 0; d < D; d++) k += v[term.each ? d : 0] * x[d] * x[d];
        }
        return k;
    }

    // k(x, x) of each of the points, or of the samples, up to whole vectors.
    void diagonals(bool with_samples, double *k, int sum = 0) const {
        const Points &x = with_samples ? samples : points;
        clear(k, x.ld);
        for (const Term &term : formula.sums[sum]) {
            const double *v = theta + term.variance;
            if (term.kind == driftgp::PRODUCT) {
                Lease lease(memory);
                double *first = memory.take(x.ld), *second = memory.take(x.ld);
                diagonals(with_samples, first, term.first), diagonals(with_samples, second, term.second);
                for (int i = 0; i < x.ld; i += W) store(k + i, load(k + i) + load(first + i) * load(second + i));
            } else if (term.kind != driftgp::LINEAR) {
                for (int i = 0; i < x.ld; i += W) store(k + i, load(k + i) + *v);
            } else {
                for (int d = 0; d < D; d++) {
                    const double *column = x.turned + size_t(d) * x.ld;
                    double own = v[term.each ? d : 0];
                    for (int i = 0; i < x.ld; i += W)
                        store(k + i, load(k + i) + own * load(column + i) * load(column + i));
                }
            }
        }
    }
    // Covariance of x with each of the points, or of the samples.
    void row(const double *x, bool with_samples, double *k, int sum = 0) const {
        const Points &z = with_samples ? samples : points;
        clear(k, z.ld);
        for (const Term &term : formula.sums[sum]) {
            if (term.kind == driftgp::PRODUCT) {
                Lease lease(memory);
                double *first = memory.take(z.ld), *second = memory.take(z.ld);
                row(x, with_samples, first, term.first), row(x, with_samples, second, term.second);
                for (int j = 0; j < z.ld; j += W) store(k + j, load(k + j) + load(first + j) * load(second + j));
                continue;
            }
            for (int j = 0; j < z.ld; j += W) store(k + j, load(k + j) + one_row(term, x, z, j));
        }
    }

    // Gram matrix of the points with n samples from t0 on, or with the points themselves: K[i][t], rows ld_K apart.
    void gram(bool with_samples, int t0, int n, double *K, int ld_K, double *one, int sum = 0) const {
        bool first = true;
        for (const Term &term : formula.sums[sum]) {
            double *to = first ? K : one;
            int ld_to = first ? ld_K : ld;
            term_gram(term, with_samples, t0, n, to, ld_to);
            if (term.stationary()) {
                double v = theta[term.variance], a = theta[term.mixture];
                for (int i = 0; i < points.n; i++) {
                    double *row = to + size_t(i) * ld_to;
                    for (int t = 0; t < n; t += W) store(row + t, shape(term.kind, v, a, load(row + t)).k);
                }
            }
            if (!first)
                for (int i = 0; i < points.n; i++)
                    for (int t = 0; t < n; t += W) {
                        double *k = K + size_t(i) * ld_K + t;
                        store(k, load(k) + load(one + size_t(i) * ld + t));
                    }
            first = false;
        }
    }

    // Adds to the gradient what A = ∂F/∂K of such a block gives. K, the block itself, and `one` are overwritten.
    void pull(bool with_samples, int t0, int n, const double *A, double *K, double *one, double *gradient,
              const Moves &moves, int sum = 0) const {
        // K less the other terms is the term with an exponential, which need not be computed again. The exception: if
        // the remainder is so small that its digits are rounding of the other terms.
        int exponentials = 0;
        double largest = 0.0;
        for (const Term &term : formula.sums[sum])
            if (term.stationary()) exponentials++;
            else largest = std::max(largest, pull_other(term, with_samples, t0, n, A, K, one, gradient, moves));
        for (const Term &term : formula.sums[sum]) {
            if (!term.stationary()) continue;
            bool known = exponentials == 1 && term.kind == driftgp::SE && largest < DOMINATES * theta[term.variance];
            pull_stationary(term, known, with_samples, t0, n, A, K, one, gradient, moves);
        }
    }

    // The same for the diagonal: Σ_i a_i k(x_i, x_i); a is 0 from n on, up to whole vectors.
    void pull_diagonal(bool with_samples, const double *a, double *gradient, int sum = 0) const {
        const Points &x = with_samples ? samples : points;
        double total = 0.0;
        for (int i = 0; i < x.n; i++) total += a[i];
        for (const Term &term : formula.sums[sum]) {
            const double *v = theta + term.variance;
            double *g = gradient + term.variance;
            if (term.kind == driftgp::PRODUCT) {
                Lease lease(memory);
                double *first = memory.take(x.ld), *second = memory.take(x.ld);
                diagonals(with_samples, first, term.second), diagonals(with_samples, second, term.first);
                for (int i = 0; i < x.ld; i += W) {
                    store(first + i, load(a + i) * load(first + i));
                    store(second + i, load(a + i) * load(second + i));
                }
                pull_diagonal(with_samples, first, gradient, term.first);
                pull_diagonal(with_samples, second, gradient, term.second);
            } else if (term.kind != driftgp::LINEAR) {
                *g += *v * total;
            } else {
                for (int d = 0; d < D; d++) {
                    const double *column = x.turned + size_t(d) * x.ld;
                    Vec squares{};
                    for (int i = 0; i < x.ld; i += W) squares += load(a + i) * load(column + i) * load(column + i);
                    g[term.each ? d : 0] += v[term.each ? d : 0] * DRIFTGP_LEVEL::sum(squares);
                }
            }
        }
    }

  private:
    struct Shape {
        Vec k, g;
    };
    Scaled *room() const {
        double *numbers = memory.take(formula.places * ((sizeof(Scaled) + 7) / 8));
        Scaled *all = reinterpret_cast<Scaled *>(numbers);
        for (int i = 0; i < formula.places; i++) new (all + i) Scaled{};
        return all;
    }
    double over(const Term &term, int d) const { return inverse[term.lengths + (term.each ? d : 0)]; }  // 1/ℓ_d
    double unit(const Term &term, int d) const { return term.each ? over(term, d) : 1.0; }  // of `Scaled`
    double rest(const Term &term) const { return term.each ? 1.0 : over(term, 0); }  // of a distance
    double turns(const Term &term, int d) const { return inverse[term.periods + (term.each_period ? d : 0)]; }  // 1/p_d

    static inline Shape shape(PartKind kind, double v, double a, Vec r2) {
        if (kind == driftgp::SE) {
            Vec k = v * exponential(-0.5 * r2);
            return {k, k};
        }
        if (kind == driftgp::RATIONAL_QUADRATIC) {
            Vec u = r2 * (0.5 / a), k = v * exponential(-a * log_one_plus(u));
            return {k, k / (1.0 + u)};
        }
        Vec s = square_root((kind == driftgp::MATERN12 ? 1.0 : kind == driftgp::MATERN32 ? 3.0 : 5.0) * r2);
        Vec e = v * exponential(-s);
        if (kind == driftgp::MATERN12) return {e, s > 0.0 ? e / s : Vec{}};
        if (kind == driftgp::MATERN32) return {(1.0 + s) * e, 3.0 * e};
        return {(1.0 + s + s * s / 3.0) * e, (5.0 / 3.0) * (1.0 + s) * e};
    }

    // Covariance of x with the points j, j + 1, …
    Vec one_row(const Term &term, const double *x, const Points &z, int j) const {
        const double *v = theta + term.variance;
        Vec total{};
        if (term.kind == driftgp::CONSTANT) return all(*v);
        for (int d = 0; d < D; d++) {
            Vec zd = load(z.turned + size_t(d) * z.ld + j);
            if (term.kind == driftgp::LINEAR) {
                total += v[term.each ? d : 0] * x[d] * zd;
            } else if (term.kind == driftgp::PERIODIC) {
                Vec s = sine_cosine((x[d] - zd) * turns(term, d)).sine * over(term, d);
                total += s * s;
            } else {
                Vec r = (x[d] - zd) * over(term, d);
                total += r * r;
            }
        }
        if (term.kind == driftgp::LINEAR) return total;
        if (term.kind == driftgp::PERIODIC) return *v * exponential(-2.0 * total);
        return shape(term.kind, *v, theta[term.mixture], total).k;
    }

    Scaled scaled(const Term &term, Points p, const double *origin, bool by_rows) const {
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
    Scaled weighted(const Term &term) const {
        Scaled s{memory.take(size_t(points.n) * D), nullptr, nullptr};
        const double *v = theta + term.variance;
        for (int i = 0; i < points.n; i++)
            for (int d = 0; d < D; d++)
                s.rows[size_t(i) * D + d] = v[term.each ? d : 0] * points.rows[size_t(i) * D + d];
        return s;
    }

    double *block() const { return memory.take(size_t(points.n) * ld); }

    // A term's share of K, or the squared distances of a stationary one.
    void term_gram(const Term &term, bool with_samples, int t0, int n, double *to, int ld_to) const {
        const Points &z = with_samples ? samples : points;
        const double *v = theta + term.variance;
        if (term.kind == driftgp::CONSTANT) {
            for (int i = 0; i < points.n; i++)
                for (int t = 0; t < n; t += W) store(to + size_t(i) * ld_to + t, all(*v));
        } else if (term.kind == driftgp::LINEAR) {
            product<false>(points.n, n, D, of_points[term.place].rows, D, z.turned + t0, z.ld, to, ld_to);
        } else if (term.kind == driftgp::PERIODIC) {
            for (int i = 0; i < points.n; i++)
                for (int t = 0; t < n; t += W)
                    store(to + size_t(i) * ld_to + t, one_row(term, points.rows + size_t(i) * D, z, t0 + t));
        } else if (term.kind == driftgp::PRODUCT) {
            Lease lease(memory);
            double *second = block(), *one = block();
            gram(with_samples, t0, n, to, ld_to, one, term.first);
            gram(with_samples, t0, n, second, ld, one, term.second);
            for (int i = 0; i < points.n; i++)
                for (int t = 0; t < n; t += W) {
                    double *k = to + size_t(i) * ld_to + t;
                    store(k, load(k) * load(second + size_t(i) * ld + t));
                }
        } else {
            distances(term, with_samples, t0, n, to, ld_to);
        }
    }

    void distances(const Term &term, bool with_samples, int t0, int n, double *to, int ld_to) const {
        const Scaled &u = of_points[term.place], &x = with_samples ? of_samples[term.place] : u;
        int ld_x = with_samples ? samples.ld : points.ld;
        double f = rest(term) * rest(term);
        // near its kink a Matérn ½ amplifies rounding: there a distance within rounding counts as 0
        double rounding = term.kind == driftgp::MATERN12 ? 16.0 * std::numeric_limits<double>::epsilon() : 0.0;
        if (D > DIRECT) product<false>(points.n, n, D, u.rows, D, x.turned + t0, ld_x, to, ld_to);
        for (int i = 0; i < points.n; i++) {
            double *row = to + size_t(i) * ld_to;
            for (int t = 0; t < n; t += W) {
                Vec r2{};
                if (D > DIRECT) {
                    Vec squares = u.squares[i] + load(x.squares + t0 + t);
                    r2 = not_negative(squares - 2.0 * load(row + t));
                    if (rounding > 0.0) r2 = r2 < rounding * squares ? Vec{} : r2;
                } else
                    for (int d = 0; d < D; d++) {
                        Vec r = load(x.turned + size_t(d) * ld_x + t0 + t) - u.rows[size_t(i) * D + d];
                        r2 += r * r;
                    }
                store(row + t, f * r2);
            }
        }
    }

    // A term that is not stationary: its derivatives, and K without it. Returns its largest value.
    double pull_other(const Term &term, bool with_samples, int t0, int n, const double *A, double *K, double *one,
                      double *gradient, const Moves &moves) const {
        if (term.kind == driftgp::PRODUCT) pull_product(term, with_samples, t0, n, A, one, gradient, moves);
        else term_gram(term, with_samples, t0, n, one, ld);
        Vec total{}, largest{};
        for (int i = 0; i < points.n; i++)
            for (int t = 0; t < n; t += W) {
                size_t at = size_t(i) * ld + t;
                Vec k = load(one + at), size = k < 0.0 ? -k : k;
                largest = size > largest ? size : largest;
                total += load(A + at) * k;
                store(K + at, load(K + at) - k);
            }
        if (term.kind == driftgp::LINEAR) pull_linear(term, with_samples, t0, n, A, sum(total), gradient, moves);
        else if (term.kind != driftgp::PRODUCT) gradient[term.variance] += sum(total);
        if (term.kind == driftgp::PERIODIC) pull_periodic(term, with_samples, t0, n, A, one, gradient, moves);
        double most = 0.0;
        for (int l = 0; l < W; l++) most = std::max(most, double(largest[l]));
        return most;
    }

    void pull_linear(const Term &term, bool with_samples, int t0, int n, const double *A, double total,
                     double *gradient, const Moves &moves) const {
        const Points &z = with_samples ? samples : points;
        const double *v = theta + term.variance;
        if (!term.each) gradient[term.variance] += total;
        for (int d = 0; d < D; d++) {
            const double *zd = z.turned + size_t(d) * z.ld + t0;
            double vd = v[term.each ? d : 0];
            for (int i = term.each ? 0 : moves.from; i < points.n; i++) {
                double by_row = vd * dot(A + size_t(i) * ld, zd, n);
                if (term.each) gradient[term.variance + d] += points.rows[size_t(i) * D + d] * by_row;
                if (i >= moves.from) moves.gradient[size_t(i - moves.from) * D + d] += moves.times * by_row;
            }
        }
    }

    // ∂k/∂log p = 4 k sin cos angle/ℓ², ∂k/∂log ℓ = 4 k sin²/ℓ² and
    // ∂k/∂u = −4 k sin cos π/(p ℓ²), with the angle π (u − z)/p
    void pull_periodic(const Term &term, bool with_samples, int t0, int n, const double *A, const double *k,
                       double *gradient, const Moves &moves) const {
        const Points &z = with_samples ? samples : points;
        for (int d = 0; d < D; d++) {
            const double *zd = z.turned + size_t(d) * z.ld + t0;
            double f = 4.0 * over(term, d) * over(term, d), by_period = 0.0, by_length = 0.0;
            for (int i = 0; i < points.n; i++) {
                Vec period{}, length{}, move{};
                for (int t = 0; t < n; t += W) {
                    size_t at = size_t(i) * ld + t;
                    Vec x = (points.rows[size_t(i) * D + d] - load(zd + t)) * turns(term, d);
                    SineCosine angle = sine_cosine(x);
                    Vec ak = load(A + at) * load(k + at) * angle.sine;
                    period += ak * angle.cosine * x, length += ak * angle.sine, move += ak * angle.cosine;
                }
                by_period += PI * sum(period), by_length += sum(length);
                if (i >= moves.from)
                    moves.gradient[size_t(i - moves.from) * D + d] -= moves.times * f * PI * turns(term, d) * sum(move);
            }
            gradient[term.periods + (term.each_period ? d : 0)] += f * by_period;
            gradient[term.lengths + (term.each ? d : 0)] += f * by_length;
        }
    }

    // Each factor by itself, with A times the other one; `one` becomes the product.
    void pull_product(const Term &term, bool with_samples, int t0, int n, const double *A, double *one,
                      double *gradient, const Moves &moves) const {
        Lease lease(memory);
        double *first = block(), *second = block(), *by_first = block(), *by_second = block(), *scratch = block();
        gram(with_samples, t0, n, first, ld, scratch, term.first);
        gram(with_samples, t0, n, second, ld, scratch, term.second);
        for (int i = 0; i < points.n; i++)
            for (int t = 0; t < n; t += W) {
                size_t at = size_t(i) * ld + t;
                Vec a = load(A + at), k1 = load(first + at), k2 = load(second + at);
                store(by_first + at, a * k2), store(by_second + at, a * k1), store(one + at, k1 * k2);
            }
        pull(with_samples, t0, n, by_first, first, scratch, gradient, moves, term.first);
        pull(with_samples, t0, n, by_second, second, scratch, gradient, moves, term.second);
    }

    void pull_stationary(const Term &term, bool known, bool with_samples, int t0, int n, const double *A, double *K,
                         double *one, double *gradient, const Moves &moves) const {
        const Scaled &u = of_points[term.place], &x = with_samples ? of_samples[term.place] : u;
        int ld_x = with_samples ? samples.ld : points.ld;
        double v = theta[term.variance], a = theta[term.mixture];
        bool mixed = term.kind == driftgp::RATIONAL_QUADRATIC;
        Vec by_variance{}, by_length{}, by_mixture{};
        distances(term, with_samples, t0, n, one, ld);
        for (int i = 0; i < points.n; i++)
            for (int t = 0; t < n; t += W) {
                size_t at = size_t(i) * ld + t;
                Vec r2 = load(one + at), k = load(K + at), slope = load(A + at);
                Shape value = known ? Shape{k, k} : shape(term.kind, v, a, r2);
                if (mixed) {  // ∂k/∂log a = a k (u/(1 + u) − log(1 + u)) with u = r²/2a
                    Vec half = r2 * (0.5 / a);
                    by_mixture += slope * value.k * (half / (1.0 + half) - log_one_plus(half));
                }
                Vec ag = slope * value.g;
                by_variance += slope * value.k, by_length += ag * r2;
                store(one + at, ag);
            }
        gradient[term.variance] += sum(by_variance);
        if (mixed) gradient[term.mixture] += a * sum(by_mixture);
        if (!term.each) gradient[term.lengths] += sum(by_length);
        for (int d = 0; d < D; d++) {
            const double *xd = x.turned + size_t(d) * ld_x + t0;
            for (int i = moves.from; i < points.n; i++) {
                Vec total{};
                for (int t = 0; t < n; t += W)
                    total += load(one + size_t(i) * ld + t) * (load(xd + t) - u.rows[size_t(i) * D + d]);
                moves.gradient[size_t(i - moves.from) * D + d] += moves.times * sum(total) * over(term, d) * rest(term);
            }
            if (!term.each) continue;
            Vec total{}, more[4] = {Vec{}, Vec{}, Vec{}, Vec{}};  // one alone would wait for each sum before the next
            for (int i = 0; i < points.n; i++) {
                const double *row = one + size_t(i) * ld;
                double here = u.rows[size_t(i) * D + d];
                int t = 0;
                for (; t + 4 * W <= n; t += 4 * W)
                    for (int l = 0; l < 4; l++) {
                        Vec r = load(xd + t + l * W) - here;
                        more[l] += load(row + t + l * W) * (r * r);
                    }
                for (; t < n; t += W) {
                    Vec r = load(xd + t) - here;
                    total += load(row + t) * (r * r);
                }
            }
            gradient[term.lengths + d] += sum((total + more[0]) + (more[1] + more[2]) + more[3]);
        }
    }
};

}  // namespace DRIFTGP_LEVEL
