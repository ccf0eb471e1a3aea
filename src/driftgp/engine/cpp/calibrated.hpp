// Intervals that hold their share of the targets: the twin of wrappers/calibrate.py.

#pragma once

#include <optional>

#include "holding.hpp"
#include "laws.hpp"
#include "rowscale.hpp"

namespace DRIFTGP_LEVEL {

class Calibrated : public Holding {
    static constexpr double LEAST_RATIO = 0.2, LEAST_LOG = -7.0;  // as in calibrate.py
    static constexpr double CAP = 9.0;          // as in calibrate.py
    static constexpr double HIGHEST = 200.0;    // as in recalibrated.py
    static constexpr size_t MOST = 1 << 12;     // levels, gains
    int sides = 1;
    double rate = 0.0, memory_rate = 1.0;
    std::vector<double> levels, gains, log_prior;
    // Of each level: z, its logarithm, the controller's step. Of each line between the levels: ∫ φ, ∫ u φ and ∫ u² φ.
    std::vector<double> nominal, log_nominal, steps, mass, linear, square;
    double tail = 0.0, tail_first = 0.0, tail_second = 0.0;  // t, ∫ e^(u/t − 1) φ and ∫ e^(2u/t − 2) φ from t on
    size_t log_s2 = 0, log_weights = 0, offset = 0;
    size_t told_reach = 0, told_plain = 0, told_log_g = 0, told_recent = 0;  // in a forecast
    std::optional<RowScale> row_scale;                                       // without it g = 1

    size_t at(size_t level, int side, int p) const { return (level * sides + side) * P + p; }
    int calibrations() const { return row_scale ? 2 : 1; }  // as if g were 1, and with g
    size_t spreads() const { return gains.size() * P; }    // numbers of a calibration, and those of its offsets
    size_t reaches() const { return levels.size() * sides * P; }

    void prepare() {
        double z = 0.0;  // where a line begins
        for (double level : levels) {
            double next = reach_of(level);
            nominal.push_back(next), log_nominal.push_back(std::log(next));
            steps.push_back(rate / ((sides == 1 ? 2.0 : 1.0) * next * normal_pdf(next)));
            add_line(z, next);
            z = next;
        }
        tail = std::max(z, reach_of(0.99));
        add_line(z, tail);
        tail_first = std::exp(0.5 / (tail * tail) - 1.0) * normal_cdf(1.0 / tail - tail);
        tail_second = std::exp(2.0 / (tail * tail) - 2.0) * normal_cdf(2.0 / tail - tail);
    }
    static double reach_of(double level) { return -normal_quantile(0.5 * (1.0 - level)); }
    void add_line(double from, double to) {
        double area = normal_cdf(to) - normal_cdf(from);
        mass.push_back(area), linear.push_back(normal_pdf(from) - normal_pdf(to));
        square.push_back(area + from * normal_pdf(from) - to * normal_pdf(to));
    }

    // c of each level and side by one of the calibrations, in increasing order of the levels, L×S×P.
    void find_reach(const double *state, int which, const double *log_g, double *reach) const {
        size_t J = gains.size(), at_spreads = which * spreads(), at_offsets = offset + which * reaches();
        for (int p = 0; p < P; p++) {
            const double *logs = state + log_weights + at_spreads + p, *spread = state + log_s2 + at_spreads + p;
            double top = -INFINITE, total = 0.0, sum = 0.0;
            for (size_t j = 0; j < J; j++) top = std::max(top, logs[j * P]);
            for (size_t j = 0; j < J; j++) {
                double share = std::exp(logs[j * P] - top);
                total += share, sum += share * spread[j * P];
            }
            double log_s = 0.5 * sum / total, g = log_g ? std::exp(log_g[p]) : 1.0;
            for (int side = 0; side < sides; side++) {
                double so_far = -INFINITE;
                for (size_t l = 0; l < levels.size(); l++) {
                    so_far = std::max(
                        so_far, log_s + state[at_offsets + at(l, side, p)] + (1.0 - LEAST_RATIO) * log_nominal[l]);
                    reach[at(l, side, p)] = std::exp(so_far + LEAST_RATIO * log_nominal[l]) * g;
                }
            }
        }
    }
    // Adds ∫ h φ and ∫ h² φ over u ≥ 0, h being the lines of one side.
    void add_moments(const double *reach, int side, int p, double &first, double &second) const {
        double z = 0.0, c = 0.0, top = tail_height(reach, side, p);
        first += tail_first * top, second += tail_second * top * top;
        for (size_t l = 0; l <= levels.size(); l++) {
            bool last = l == levels.size();
            double next_z = last ? 0.0 : nominal[l], next_c = last ? 0.0 : reach[at(l, side, p)];
            double slope = (next_c - c) / (next_z - z), height = c - slope * z;  // the last line passes through (0, 0)
            first += height * mass[l] + slope * linear[l];
            second += height * height * mass[l] + 2.0 * height * slope * linear[l] + slope * slope * square[l];
            z = next_z, c = next_c;
        }
    }
    // Variance of h, and its mean.
    double factor(const double *reach, int p, double &first) const {
        double second = 0.0, below = 0.0;
        first = 0.0;
        add_moments(reach, sides - 1, p, first, second);
        if (sides == 2) add_moments(reach, 0, p, below, second), first -= below;
        else first = 0.0, second *= 2.0;
        return second - first * first;
    }
    // h(t) of one side, where the tail begins.
    double tail_height(const double *reach, int side, int p) const {
        return reach[at(levels.size() - 1, side, p)] * (tail / nominal.back());
    }
    double exponent(double size) const { return std::isinf(size) ? size : std::min(size / tail - 1.0, HIGHEST); }
    int side_of(double z) const { return sides == 2 && !(z < 0.0) ? 1 : 0; }
    // The lines of h on one side: nominal scores to the held forecast's, or back.
    Lines lines(const double *made, int p, int side, bool back) const {
        Spaced z{nominal.data(), 1}, c{made + told_reach + at(0, side, p), size_t(sides) * P};
        return back ? Lines(c, z, levels.size()) : Lines(z, c, levels.size());
    }
    // h(u), h'(u) and h⁻¹(z): lines, and beyond t the tail h(t) exp(u/t − 1).
    double stretched(const double *made, int p, double u) const {
        int side = side_of(u);
        double size = std::fabs(u);
        double value = size > tail ? tail_height(made + told_reach, side, p) * std::exp(exponent(size))
                                   : lines(made, p, side, false).value(size);
        return std::copysign(value, u);
    }
    double slope(const double *made, int p, double u) const {
        int side = side_of(u);
        double size = std::fabs(u);
        if (size > tail) return tail_height(made + told_reach, side, p) / tail * std::exp(exponent(size));
        return lines(made, p, side, false).slope(size);
    }
    double unstretched(const double *made, int p, double z) const {
        int side = side_of(z);
        double size = std::fabs(z), top = tail_height(made + told_reach, side, p);
        double value = size > top ? tail * (1.0 + std::log(size / top)) : lines(made, p, side, true).value(size);
        return std::copysign(value, z);
    }

  public:
    Calibrated(const driftgp::Part &part, int inputs, int outputs) : Holding(part, inputs, outputs) {
        driftgp::Settings settings(part);
        sides = settings.flag("symmetric") ? 1 : 2;
        rate = settings.number("rate", 0.0, 1.0), memory_rate = settings.number("memory", 0.0, 1.0);
        levels = settings.numbers("levels", MOST, 0.0, 1.0);
        gains = settings.numbers("gains", MOST, 0.0, 1.0);
        log_prior = settings.numbers("log_prior", MOST, std::numeric_limits<double>::lowest(), 0.0);
        int features = int(settings.whole("features", 0, 4096));
        settings.end(1);
        double before = 0.0;
        for (double level : levels) {
            if (!(level > before && level < 1.0))
                throw std::invalid_argument("levels must increase and lie strictly between 0 and 1");
            before = level;
        }
        if (levels.empty() || gains.empty() || log_prior.size() != gains.size())
            throw std::invalid_argument("levels and gains must hold something, and log_prior a number for each gain");
        if (features > 0 && features < 10) throw std::invalid_argument("features must be 0, or at least 10");
        prepare();
        int K = features ? 2 : 1;
        log_s2 = floats("log_s2", K * spreads(), FINITE), log_weights = floats("log_weights", K * spreads(), FINITE);
        offset = floats("offset", K * reaches(), FINITE), told_reach = told_floats("reach", reaches());
        if (!features) return;
        row_scale.emplace(own, features, D, P);
        told_plain = told_floats("plain", reaches());
        told_log_g = told_floats("log_g", P), told_recent = told_floats("recent", 2 * P);
    }

    bool normal() const override { return false; }
    double usual_std(const double *made, int p) const override {
        double moved;
        return std::sqrt(made[forecast_inner + P + p] * factor(made + (row_scale ? told_plain : told_reach), p, moved));
    }
    double median_reach(const double *made, int p) const override {
        return std::fabs(made[p] - made[forecast_inner + p]) + held->median_reach(made + forecast_inner, p);
    }

    // The held node's word is taken for its intervals.
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        for (size_t j = 0; j < calibrations() * gains.size(); j++)
            std::fill_n(state + log_weights + j * P, P, log_prior[j % gains.size()]);
        if (row_scale) row_scale->start(state, X, y, rows, memory);
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        double *said = made + forecast_inner, *reach = made + told_reach,
               *log_g = row_scale ? made + told_log_g : nullptr;
        held->forecast(state + inner, x, said, memory);
        if (row_scale) {
            row_scale->log_factor(state, x, said, log_g, memory);
            std::copy_n(row_scale->late(state), 2 * P, made + told_recent);
            find_reach(state, 0, nullptr, made + told_plain);
        }
        find_reach(state, calibrations() - 1, log_g, reach);
        for (int p = 0; p < P; p++) {
            double moved, by = factor(reach, p, moved);
            made[p] = said[p] + std::sqrt(said[P + p]) * moved;
            made[P + p] = by * said[P + p], made[2 * P + p] = by * said[2 * P + p];
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        known = issued(state, x, known, memory);
        const double *said = known + forecast_inner;
        const double *log_g = row_scale ? known + told_log_g : nullptr;
        double *scores = memory.take(P), keep = std::pow(memory_rate, elapsed);
        bool there = inputs_there(x);
        for (int p = 0; p < P; p++) {
            bool observed = there && std::isfinite(y[p]);
            double z = observed ? held->to_normal(said, p, y[p]) : 0.0;
            observed &= !std::isnan(z);  // a forecast that is not finite
            scores[p] = observed ? std::fabs(unstretched(known, p, z)) : std::nan("");
            for (int which = 0; which < calibrations(); which++) {
                bool scaled = which == 1, plain = row_scale && !scaled;
                follow_spread(state, which, p, scaled ? z * std::exp(-log_g[p]) : z, observed, keep);
                if (observed) control(state, which, p, z, known + (plain ? told_plain : told_reach));
            }
        }
        if (row_scale) row_scale->learn(state, x, said, known + told_recent, scores, log_g, elapsed, memory);
        held->learn(state + inner, x, y, elapsed, said, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        if (row_scale) row_scale->rescale(state, units);
        Holding::rescale(state, units, memory);
    }
    void move_level(double *state, const double *step) const override {
        if (row_scale) row_scale->move_level(state, step);
        Holding::move_level(state, step);
    }

    // ---- the law: cdf(y) = Φ(h⁻¹(z)), where z is the held forecast's normal score of y (recalibrated.py)

    double to_normal(const double *made, int p, double y) const override {
        return unstretched(made, p, held->to_normal(made + forecast_inner, p, y));
    }
    double from_normal(const double *made, int p, double z) const override {
        return held->from_normal(made + forecast_inner, p, stretched(made, p, z));
    }
    double log_prob(const double *made, int p, double y) const override {
        const double *said = made + forecast_inner;
        double z = held->to_normal(said, p, y), u = unstretched(made, p, z);
        return held->log_prob(said, p, y) + 0.5 * (z * z - u * u) - std::log(slope(made, p, u));
    }

  private:
    // Trackers of the spread of the scores, and how well each has foretold this one.
    void follow_spread(double *state, int which, int p, double z, bool observed, double keep) const {
        size_t first = which * spreads() + p;
        double *logs = state + log_weights + first, *spread_of = state + log_s2 + first, top = -INFINITE;
        for (size_t j = 0; j < gains.size(); j++) {
            double &weight = logs[j * P], &spread = spread_of[j * P];
            weight = keep * weight + (1.0 - keep) * log_prior[j];
            if (observed) {
                double squared = z * z * std::exp(-spread);
                if (!(squared < CAP)) squared = CAP;
                weight -= 0.5 * (spread + squared);
                spread = std::max(spread + gains[j] * (squared - 1.0), 2.0 * LEAST_LOG);
            }
            top = std::max(top, weight);
        }
        for (size_t j = 0; j < gains.size(); j++) logs[j * P] -= top;
    }
    // Moves each level by whether the target was outside of its interval.
    void control(double *state, int which, int p, double z, const double *reach) const {
        for (size_t l = 0; l < levels.size(); l++)
            for (int side = 0; side < sides; side++) {
                double distance = sides == 1 ? std::fabs(z) : side == 0 ? -z : z;
                double outside = distance > reach[at(l, side, p)] ? 1.0 : 0.0;
                double &more = state[offset + which * reaches() + at(l, side, p)];
                more = std::max(more + steps[l] * (outside - (1.0 - levels[l]) / sides), LEAST_LOG);
            }
    }
};

}  // namespace DRIFTGP_LEVEL
