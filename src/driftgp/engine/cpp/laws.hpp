// Distributions of one target: the standard normal one, mixtures of normal ones, and lines that stretch normal scores.
//
// The twins are driftgp/predictions/normal.py (and scipy.special), mixture.py and recalibrated.py.

#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "products.hpp"

namespace DRIFTGP_LEVEL {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double EPSILON = std::numeric_limits<double>::epsilon();

// ---- the standard normal distribution ------------------------------------------------------------------------------

constexpr double ROOT_HALF = 0.70710678118654752440;
constexpr double LOG_ROOT_TWO_PI = 0.91893853320467274178;
constexpr double INVERSE_ROOT_TWO_PI = 0.39894228040143267794;

static inline double normal_log_pdf(double z) { return -0.5 * z * z - LOG_ROOT_TWO_PI; }
static inline double normal_pdf(double z) { return INVERSE_ROOT_TWO_PI * std::exp(-0.5 * z * z); }
static inline double normal_cdf(double z) { return 0.5 * std::erfc(-ROOT_HALF * z); }

// log Φ(z), to a few units in the last place however far out z is.
static inline double normal_log_cdf(double z) {
    if (z > 0.0) return std::log1p(-normal_cdf(-z));
    if (z > -30.0) return std::log(normal_cdf(z));
    // φ(z)/|z| · (1 − 1/z² + 3/z⁴ − 15/z⁶ + …), whose terms fall by 27 and more here
    double ratio = -1.0 / (z * z), term = 1.0, series = 1.0;
    for (int k = 1; k < 12; k++) term *= (2 * k - 1) * ratio, series += term;
    return normal_log_pdf(z) - std::log(-z) + std::log(series);
}

// Φ⁻¹(p) for p in (0, ½] to 4.5e-4 (Hastings 1955; 26.2.23 in Abramowitz and Stegun).
static inline double rough_quantile(double p) {
    double t = std::sqrt(-2.0 * std::log(p));
    return (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
}

// Φ⁻¹(p): two steps of Halley's method, each of which cubes the error.
static inline double normal_quantile(double p) {
    if (p > 0.5) return -normal_quantile(1.0 - p);
    if (!(p > 0.0)) return p == 0.0 ? -INFINITE : std::numeric_limits<double>::quiet_NaN();
    double z = rough_quantile(p);
    for (int k = 0; k < 2; k++) {
        double excess = (normal_cdf(z) - p) / normal_pdf(z);
        z -= excess / (1.0 + 0.5 * z * excess);
    }
    return z;
}

// The z ≤ 0 with log Φ(z) = log_p, also where p is no number any more.
static inline double lower_score(double log_p) {
    if (!(log_p < -600.0)) return normal_quantile(std::fmin(std::exp(log_p), 0.5));
    if (log_p == -INFINITE) return log_p;
    double z = -std::sqrt(-2.0 * (log_p + LOG_ROOT_TWO_PI + 0.5 * std::log(-2.0 * log_p)));
    for (int k = 0; k < 4; k++) {
        double log_cdf = normal_log_cdf(z);
        z -= (log_cdf - log_p) * std::exp(log_cdf - normal_log_pdf(z));
    }
    return z;
}

// ---- a mixture of normal distributions -----------------------------------------------------------------------------

// K of them with weights that sum to 1, for one output of a bank's forecast. Member k has its mean at means[at[k]], and
// its variance a fixed number of places after it.
class Mixture {
    static constexpr int MOST_TURNS = 400;
    static constexpr double FARTHEST = 35.0;   // beyond this score a tail is computed by its logarithm
    static constexpr double SMALLEST = 1e-290;  // and below this share
    const size_t K;
    const double *const weights, *const means;
    const size_t *const at;
    const size_t to_variance;

    double mean(size_t k) const { return means[at[k]]; }
    double variance(size_t k) const { return means[at[k] + to_variance]; }

    // The share of the mixture below y (sign = 1) or above it (−1), and its derivatives in sign · y.
    struct Tail {
        double share, density, slope;
    };
    Tail tail(double y, double sign) const {
        Tail sum{0.0, 0.0, 0.0};
        for (size_t k = 0; k < K; k++) {
            double inverse = 1.0 / std::sqrt(variance(k)), z = sign * (y - mean(k)) * inverse;
            double density = weights[k] * normal_pdf(z) * inverse;
            sum.share += weights[k] * normal_cdf(z), sum.density += density, sum.slope -= density * z * inverse;
        }
        return sum;
    }
    double share(double y, double sign) const {
        double sum = 0.0;
        for (size_t k = 0; k < K; k++) sum += weights[k] * normal_cdf(sign * (y - mean(k)) / std::sqrt(variance(k)));
        return sum;
    }
    // log Σ_k w_k exp(value(k)); a member without a weight is not to hide the others
    template <class Value>
    double log_sum(Value value) const {
        double top = -INFINITE, sum = 0.0;
        for (size_t k = 0; k < K; k++) top = weights[k] > 0.0 ? std::fmax(top, value(k)) : top;
        if (!std::isfinite(top)) top = 0.0;
        for (size_t k = 0; k < K; k++) sum += weights[k] > 0.0 ? weights[k] * std::exp(value(k) - top) : 0.0;
        return std::log(sum) + top;
    }
    double far_score(double y, double sign) const {
        return lower_score(
            log_sum([&](size_t k) { return normal_log_cdf(sign * (y - mean(k)) / std::sqrt(variance(k))); }));
    }

  public:
    Mixture(size_t K, const double *weights, const double *means, const size_t *at, size_t to_variance)
        : K(K), weights(weights), means(means), at(at), to_variance(to_variance) {}

    // log Σ w_k N(y | m_k, s_k²)
    double log_prob(double y) const {
        return log_sum([&](size_t k) {
            double e = y - mean(k);
            return -0.5 * (e * e / variance(k) + std::log(variance(k))) - LOG_ROOT_TWO_PI;
        });
    }

    // From the nearer tail, which keeps its digits however far out y is.
    double to_normal(double y) const {
        double below = share(y, 1.0), sign = below > 0.5 ? -1.0 : 1.0;
        double nearer = below > 0.5 ? share(y, -1.0) : below;
        return sign * (nearer < SMALLEST ? far_score(y, sign) : normal_quantile(nearer));
    }

    // Root of the normal score, which lies between the members' own values of that score.
    double from_normal(double target) const {
        if (!std::isfinite(target)) return target;
        double low = INFINITE, high = -INFINITE, narrowest = INFINITE, middle = 0.0, square = 0.0;
        for (size_t k = 0; k < K; k++) {
            double s = std::sqrt(variance(k)), value = mean(k) + s * target;
            low = std::fmin(low, value), high = std::fmax(high, value), narrowest = std::fmin(narrowest, s);
            middle += weights[k] * mean(k);
        }
        if (!(high - low > tolerance(low, high, narrowest))) return 0.5 * (low + high);
        if (std::fabs(target) > FARTHEST) return far_root(target, low, high, narrowest);
        for (size_t k = 0; k < K; k++) square += weights[k] * (variance(k) + (mean(k) - middle) * (mean(k) - middle));
        double matched = middle + std::sqrt(square) * target;  // that of the normal distribution with these moments
        return root(target, low, high, std::fmin(std::fmax(matched, low), high), narrowest);
    }

  private:
    // Rounding of the numbers in a bracket: next to 0, where a wide member counts for nothing, that of the narrowest.
    static double tolerance(double low, double high, double narrowest) {
        double size = (low > 0.0) == (high > 0.0) ? std::fmin(std::fabs(low), std::fabs(high)) : 0.0;
        return 8.0 * EPSILON * (size + narrowest);
    }
    // Halley's method on the normal score, which is nearly straight; halving where it leaves the bracket.
    //
    // With T the tail beyond y and S = Φ⁻¹(T), S' = T'/φ(S) and S'' = T''/φ(S) + S S'². Near the goal z, with p = Φ(z)
    // and u = (T − p)/φ(z), no inverse is needed: S − z = u + z u²/2 + (1 + 2z²) u³/6 + …
    double root(double target, double low, double high, double y, double narrowest) const {
        double sign = target > 0.0 ? -1.0 : 1.0, goal = sign * target;  // goal ≤ 0
        double p = normal_cdf(goal), density = normal_pdf(goal);
        for (int turn = 1; turn < MOST_TURNS; turn++) {
            Tail now = tail(y, sign);
            double excess = now.share - p;
            if (excess == 0.0) return y;
            (excess * sign < 0.0 ? low : high) = y;
            if (!(high - low > tolerance(low, high, narrowest))) break;
            double u = excess / density, past;
            bool near = std::fabs(u) * (1.0 - goal) < 0.1;
            if (near) past = u * (1.0 + u * (0.5 * goal + u * (1.0 + 2.0 * goal * goal) / 6.0));
            else past = (now.share > 0.5 ? -rough_quantile(1.0 - now.share) : rough_quantile(now.share)) - goal;
            double score = goal + past, phi = normal_pdf(score);
            double first = now.density / phi, second = now.slope / phi + score * first * first;
            double bend = 0.5 * past * second / (first * first);
            double step = -past / first / (std::fabs(bend) < 0.5 ? 1.0 - bend : 1.0);
            // so near, the next step would be below the rounding
            if (near && std::fabs(step) <= 1e-5 * narrowest) return y + sign * step;
            double next = y + sign * step;
            y = next > low && next < high && turn % 8 != 0 ? next : 0.5 * (low + high);
        }
        return 0.5 * (low + high);
    }

    // Newton's method by logarithms: slower, and good for any score.
    double far_root(double target, double low, double high, double narrowest) const {
        double sign = target > 0.0 ? -1.0 : 1.0, y = 0.5 * (low + high);
        for (int turn = 1; turn < MOST_TURNS && high - low > tolerance(low, high, narrowest); turn++) {
            double score = sign * far_score(y, sign);
            if (score <= target) low = y;
            if (score >= target) high = y;
            double step = (target - score) * std::exp(normal_log_pdf(score) - log_prob(y));
            // a little past the root, so that the next turn closes the bracket from the other side
            double next = y + step + std::copysign(0.25 * tolerance(low, high, narrowest), step);
            y = next > low && next < high && turn % 8 != 0 ? next : 0.5 * (low + high);
        }
        return 0.5 * (low + high);
    }
};

// A mixture whose tails are no longer than its standard deviation gives reason to (predictions/limited.py).
class LimitedMixture {
    static constexpr double FROM = 2.5, SLOPE = 2.0;
    const Mixture held;
    const double slope;

    // The score of y on the line of the side where it is, by size; 0 within ±FROM.
    double on_line(double y, double z) const {
        if (!(std::fabs(z) > FROM)) return 0.0;
        double side = std::copysign(1.0, z), size = FROM + side * (y - held.from_normal(side * FROM)) / slope;
        return size > FROM ? size : 0.0;
    }

  public:
    LimitedMixture(const Mixture &held, double std) : held(held), slope(SLOPE * std) {}

    double to_normal(double y) const {
        double z = held.to_normal(y), size = on_line(y, z);
        return size > std::fabs(z) ? std::copysign(size, z) : z;
    }
    double log_prob(double y) const {
        double z = held.to_normal(y), size = on_line(y, z);
        return size > std::fabs(z) ? normal_log_pdf(size) - std::log(slope) : held.log_prob(y);
    }
    double from_normal(double z) const {
        if (!(std::fabs(z) > FROM) || !std::isfinite(z)) return held.from_normal(z);
        double side = std::copysign(1.0, z);
        double end = held.from_normal(side * FROM) + side * (std::fabs(z) - FROM) * slope;
        return std::fabs(held.to_normal(end)) < std::fabs(z) ? end : held.from_normal(z);
    }
};

// ---- straight lines ------------------------------------------------------------------------------------------------

// Numbers that lie some way apart.
struct Spaced {
    const double *first;
    size_t apart;
    double operator[](size_t i) const { return first[i * apart]; }
};

// From (0, 0) through the points (x, y), which increase, and beyond the last of them on with its ratio y/x.
class Lines {
    const Spaced x, y;
    const size_t count;

    // Which line u ≥ 0 is on.
    size_t line(double u) const {
        size_t i = 0;
        while (i < count && u > x[i]) i++;
        return i;
    }
    double slope_of(size_t i) const {
        if (i == count) return y[count - 1] / x[count - 1];
        return i == 0 ? y[0] / x[0] : (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
    }

  public:
    Lines(Spaced x, Spaced y, size_t count) : x(x), y(y), count(count) {}
    double slope(double u) const { return slope_of(line(u)); }
    double value(double u) const {
        size_t i = line(u);
        return i == 0 || i == count ? slope_of(i) * u : y[i - 1] + slope_of(i) * (u - x[i - 1]);
    }
};

}  // namespace DRIFTGP_LEVEL
