// Inputs that are missing: what stands in for them, how much wider the law is for it, and which of these rows are
// learned from. The twin of wrappers/gaps.py.

#pragma once

#include "heads.hpp"

namespace DRIFTGP_LEVEL {

class Gaps : public Moved {
    static constexpr int MOST_INPUTS = 64, FEW = 10;  // as in gaps.py
    static constexpr double MEMORY = 1000.0, SOON = 3.0, BEFORE = 60.0, RIDGE = 2.0, FARTHEST = 5.0, FIRST = 10.0;
    static constexpr double WILD = 16.0, RATIO = 5.0, LEAST = 1e-3, MOST_SHARE = 4.0, PACE = 0.02, EFFECT_PACE = 0.01;
    static constexpr double SHRUNK = 10.0, WORTH = 0.5, CURIOUS = 0.1, RATIO_PACE = 0.01, TRUST_PACE = 0.02,
                            LASTING = 8.0;
    static constexpr double SHARE_PACE = 0.01, SLOPE_RIDGE = 0.05, SMALLEST = 1e-300, LARGEST = 1e40;
    static constexpr Range SHARE{0.0, 1.0};
    const size_t K = D <= MOST_INPUTS ? D : 0;  // inputs whose covariances are counted: all, or none
    const size_t DP = size_t(D) * P;
    size_t previous = floats("previous", D, FINITE), doubt = floats("doubt", D, NOT_NEGATIVE), age = wholes("age", D);
    size_t count = floats("count", D, NOT_NEGATIVE), mean = floats("mean", D, FINITE),
           variance = floats("variance", D, NOT_NEGATIVE);
    size_t echo = floats("echo", D, FINITE), joint = wholes("joint", 1, SHARE);
    size_t S = floats("S", packed_size(K), FINITE), T = floats("T", K *K, FINITE);
    size_t targets = floats("targets", 1, {0.0, MEMORY}), y_mean = floats("y_mean", P, FINITE);
    size_t y_variance = floats("y_variance", P, NOT_NEGATIVE), slope = floats("slope", DP, FINITE);
    size_t filled = wholes("filled", D), judged = wholes("judged", D), share = floats("share", D, NOT_NEGATIVE);
    size_t wider = floats("wider", D, NOT_NEGATIVE), change = floats("change", DP, FINITE);
    size_t effect = floats("effect", DP, FINITE), ratio = floats("ratio", P, NOT_NEGATIVE);
    size_t trust = floats("trust", 1, {POSITIVE.low, 1.0});

    static double limit(double n, double v) { return n > FIRST && v > 0.0 ? 2.0 * FARTHEST * std::sqrt(v) : LARGEST; }
    // Standard deviation of an input, 1 of one that has not varied.
    double unit(const double *state, int d) const {
        double v = state[variance + d];
        return v > 0.0 ? std::sqrt(v) : 1.0;
    }
    double ridge(const double *state) const {
        return RIDGE * weight_of(D ? *std::max_element(state + count, state + count + D) : 0.0);
    }
    // Weight of the last row in an average of this number of rows.
    static double weight_of(double rows) { return std::min(SOON / (rows + SOON - 1.0), 1.0); }
    bool any_missing(const double *x) const {
        for (int d = 0; d < D; d++)
            if (std::isnan(x[d])) return true;
        return false;
    }
    bool joined(const double *state) const { return K > 0 && whole(state, joint) == 1; }
    // Covariance of two inputs.
    double covariance(const double *state, int i, int j) const {
        return state[S + packed_row(K, std::min(i, j)) + std::abs(i - j)];
    }
    // Counts covariances of different inputs from here on.
    void join(double *state) const {
        if (whole(state, joint) == 1) return;
        whole(state, joint) = 1;
        for (int d = 0; d < D; d++) state[count + d] = std::min(state[count + d], BEFORE);
        if (K == 0) return;
        std::fill_n(state + S, packed_size(K), 0.0), std::fill_n(state + T, K * K, 0.0);
        for (int d = 0; d < D; d++) {
            state[S + packed_row(K, d)] = state[variance + d];
            state[T + d * K + d] = state[echo + d];
        }
    }

    // ---- regressions of inputs and targets

    // The factor of the covariances of u, scaled to unit variances. u has inputs of this row, or of the one before
    // where `missing` says so. nullptr if the factorisation fails.
    const double *factor(const double *state, const double *units, const bool *missing, double more, int ld,
                         Memory &memory) const {
        if (!joined(state)) return nullptr;
        double *R = memory.zeros(size_t(D) * ld);
        for (int i = 0; i < D; i++) {
            double *row = R + size_t(i) * ld;
            const double *same = state + S + packed_row(K, i);
            for (int j = i + 1; j < D; j++) {
                double c = missing[i] == missing[j] ? same[j - i]
                           : missing[j]             ? state[T + i * K + j]
                                                    : state[T + j * K + i];
                row[j] = c / (units[i] * units[j]);
            }
            row[i] = 1.0 + more;
        }
        return factorise(D, R, ld) ? R : nullptr;  // covariances of few rows need not fit each other
    }
    const double *all_units(const double *state, Memory &memory) const {
        double *units = memory.take(D);
        for (int d = 0; d < D; d++) units[d] = unit(state, d);
        return units;
    }
    bool *flags(const double *x, Memory &memory) const {
        bool *missing = memory.flags(D);
        for (int d = 0; d < D; d++) missing[d] = x && std::isnan(x[d]);
        return missing;
    }
    // Place of the covariance of two filled inputs. With too many inputs for covariances, only variances are kept.
    size_t place(int i, int j) const { return K ? size_t(i) * D + j : size_t(i); }
    size_t room() const { return K ? size_t(D) * D : size_t(D); }
    double variance_of(const double *off, int d) const { return off ? off[place(d, d)] : 0.0; }
    // What stands in for the gaps of a row. Returns the covariance of that, and after it the one with what stood in for
    // them in the row before, in memory; or nullptr if there are no gaps.
    const double *fill(const double *state, const double *x, double *complete_x, Memory &memory) const {
        std::copy_n(x, D, complete_x);
        if (!any_missing(x)) return nullptr;
        double *off = memory.zeros(2 * room());
        Lease lease(memory);
        int ld = padded(D);
        const double *units = all_units(state, memory);
        const bool *missing = flags(x, memory);
        double *z = memory.take(D), *doubts = memory.take(D);
        for (int d = 0; d < D; d++) {
            z[d] = limited(((missing[d] ? state[previous + d] : x[d]) - state[mean + d]) / units[d], FARTHEST);
            doubts[d] = missing[d] ? state[doubt + d] / (units[d] * units[d]) : 0.0;
        }
        const double *R = factor(state, units, missing, ridge(state), ld, memory);
        if (R) fill_by_all(state, units, missing, z, doubts, R, complete_x, off, memory);
        else
            for (int m = 0; m < D; m++) {
                if (!missing[m]) continue;
                double b = state[echo + m] / (units[m] * units[m]), w = b / (1.0 + ridge(state));
                off[place(m, m)] = state[variance + m] * share_left(1.0 - w * b + w * w * doubts[m]);
                off[room() + place(m, m)] = state[variance + m] * w * doubts[m];
                complete_x[m] = stand_in(state, m, units[m], w * z[m]);
            }
        return off;
    }
    static double share_left(double rest) { return std::min(std::max(rest, 0.0), 1.0); }
    double stand_in(const double *state, int m, double one, double z) const {
        return state[variance + m] > 0.0 ? state[mean + m] + one * limited(z, FARTHEST) : state[previous + m];
    }
    // By the regressions on inputs that are there and the last values of those that are not, z; R is the factor of
    // their covariances.
    void fill_by_all(const double *state, const double *units, const bool *missing, const double *z,
                     const double *doubts, const double *R, double *complete_x, double *off, Memory &memory) const {
        Lease lease(memory);
        int ld = padded(D);
        double *B = memory.take(size_t(D) * ld), *W = memory.take(size_t(D) * ld), *inherited = memory.take(D);
        for (int m = 0; m < D; m++) {
            if (!missing[m]) continue;
            double expected = 0.0, *b = B + size_t(m) * ld, *w = W + size_t(m) * ld, v = state[variance + m];
            for (int d = 0; d < D; d++) {
                double c = missing[d] ? state[T + m * K + d] : covariance(state, m, d);
                b[d] = w[d] = c / (units[m] * units[d]);
            }
            solve(D, R, ld, w);
            for (int d = 0; d < D; d++) {
                expected += w[d] * z[d], inherited[d] = w[d] * doubts[d];
                if (missing[d]) off[room() + place(m, d)] = inherited[d] * std::sqrt(v * state[variance + d]);
            }
            for (int k = 0; k <= m; k++) {
                if (!missing[k]) continue;
                double rest = k == m ? 1.0 : covariance(state, k, m) / (units[k] * units[m]);
                for (int d = 0; d < D; d++) rest += inherited[d] * W[size_t(k) * ld + d] - w[d] * B[size_t(k) * ld + d];
                if (k == m) off[place(m, m)] = v * share_left(rest);
                else off[place(m, k)] = off[place(k, m)] = rest * std::sqrt(v * state[variance + k]);
            }
            complete_x[m] = stand_in(state, m, units[m], expected);
        }
    }
    // Slopes of a linear regression of output p on the inputs.
    void slopes(const double *state, int p, double *g, Memory &memory) const {
        Lease lease(memory);
        int ld = padded(D);
        const double *units = all_units(state, memory);
        for (int d = 0; d < D; d++) g[d] = state[slope + size_t(d) * P + p] / units[d];
        const double *R = factor(state, units, flags(nullptr, memory), SLOPE_RIDGE, ld, memory);
        if (R) solve(D, R, ld, g);
        for (int d = 0; d < D; d++) g[d] /= units[d];
    }
    // h of inputs that are missing: by the slopes where few errors have told yet, in units of the held model's own
    // variances.
    void changes(const double *state, const bool *missing, double *h, Memory &memory) const {
        Lease lease(memory);
        std::copy_n(state + change, DP, h);
        bool told_all = true;
        for (int d = 0; d < D; d++) told_all &= !missing[d] || whole(state, judged + d) >= FEW;
        if (told_all) return;
        double *g = memory.take(padded(D));
        for (int p = 0; p < P; p++) {
            slopes(state, p, g, memory);
            double own = std::sqrt(usual(state, p));
            for (int d = 0; d < D; d++)
                if (whole(state, judged + d) < FEW)
                    h[size_t(d) * P + p] =
                        std::copysign(std::max(std::fabs(g[d]), share_of(state, LEAST, d, p)) / own, g[d]);
        }
    }
    // Squared errors over variances in complete rows.
    double usual(const double *state, int p) const { return std::min(std::max(state[ratio + p], 1.0 / RATIO), RATIO); }
    // The change of a target with an input that explains such a share of its variance.
    double share_of(const double *state, double of, int d, int p) const {
        return std::sqrt(of * state[y_variance + p]) / unit(state, d);
    }
    // (Q h) of input d, and hᵀ Q h.
    double product(const double *h, const double *off, int d, int p) const {
        if (K == 0) return off[d] * h[size_t(d) * P + p];
        double sum = 0.0;
        for (int e = 0; e < D; e++) sum += off[place(d, e)] * h[size_t(e) * P + p];
        return sum;
    }
    double spread(const double *h, const double *off, int p) const {
        double sum = 0.0;
        for (int d = 0; off && d < D; d++)
            if (off[place(d, d)] > 0.0) sum += h[size_t(d) * P + p] * product(h, off, d, p);
        return std::max(sum, 0.0);
    }

    // ---- what rows are like

    void note(double *state, const double *x, const double *complete_x, const double *off, const double *y,
              Memory &memory) const {
        Lease lease(memory);
        double *a = memory.take(D), *before = memory.take(D), *gain = memory.take(D);
        for (int d = 0; d < D; d++) {
            double &n = state[count + d], &m = state[mean + d], &v = state[variance + d], &c = state[echo + d];
            bool here = !std::isnan(x[d]) || n > 0.0;
            n = here ? std::min(n + 1.0, SOON * MEMORY) : 0.0;
            gain[d] = here ? weight_of(n) : 0.0;
            double most = limit(n, v), keep = 1.0 - gain[d];
            a[d] = limited(complete_x[d] - m, most), before[d] = limited(state[previous + d] - m, most);
            m += gain[d] * a[d];
            v = keep * (v + gain[d] * a[d] * a[d]) + gain[d] * variance_of(off, d);
            c = keep * (c + gain[d] * a[d] * before[d]) + gain[d] * (off ? off[room() + place(d, d)] : 0.0);
            state[previous + d] = limited(complete_x[d], LARGEST), state[doubt + d] = variance_of(off, d);
        }
        if (joined(state)) note_together(state, a, before, gain, off, memory);
        if (!all_finite(y, P)) return;
        double &n = state[targets] = std::min(state[targets] + 1.0, MEMORY);
        for (int p = 0; p < P; p++) {
            double &m = state[y_mean + p], &v = state[y_variance + p];
            double e = limited(y[p] - m, limit(n, v));
            for (int d = 0; d < D; d++) {
                double &c = state[slope + size_t(d) * P + p];
                if (!std::isnan(x[d])) c = (1.0 - gain[d]) * (c + gain[d] * a[d] * e);
            }
            m += e / n, v = (1.0 - 1.0 / n) * (v + e * e / n);
        }
    }
    void note_together(double *state, const double *a, const double *before, const double *gain, const double *off,
                       Memory &memory) const {
        Lease lease(memory);
        double *kept = memory.take(D), *root = memory.take(D), *now = memory.take(D), *then = memory.take(D);
        for (int d = 0; d < D; d++) {
            kept[d] = std::sqrt(1.0 - gain[d]), root[d] = std::sqrt(gain[d]);
            double h = root[d] * kept[d];
            now[d] = h * a[d], then[d] = h * before[d];
        }
        for (int i = 0; i < D; i++) {
            double *row = state + S + packed_row(K, i) - i, *past = state + T + i * K;
            for (int j = i; j < D; j++) row[j] = kept[i] * kept[j] * row[j] + now[i] * now[j];
            for (int j = 0; j < D; j++) past[j] = kept[i] * kept[j] * past[j] + now[i] * then[j];
            if (!off || off[place(i, i)] == 0.0) continue;
            for (int j = i; j < D; j++) row[j] += root[i] * root[j] * off[place(i, j)];
            for (int j = 0; j < D; j++) past[j] += root[i] * root[j] * off[room() + place(i, j)];
        }
    }

    // ---- what gaps have cost

    // Learns the cost of a gap from the error of a forecast; returns the information of the row as a share of that of a
    // complete row.
    double judge(double *state, const double *x, const double *off, const double *y, const double *made,
                 Memory &memory) const {
        Lease lease(memory);
        bool *missing = flags(x, memory);
        int gaps = 0;
        for (int d = 0; d < D; d++)
            gaps += missing[d] &= state[count + d] > 0.0;  // one that has not come has cost nothing
        double *h = memory.take(DP), told = 0.0, stretch = 0.0;
        if (gaps) changes(state, missing, h, memory);
        for (int d = 0; d < D; d++) whole(state, judged + d) += missing[d];
        for (int p = 0; p < P; p++) {
            double v = std::max(made[forecast_inner + P + p], SMALLEST), total = std::max(made[P + p], SMALLEST);
            bool here = std::isfinite(y[p]);
            double error = here ? y[p] - made[p] : 0.0, bounded = limited(error, LARGEST);
            double now = std::min(bounded * bounded / total, WILD);
            if (!gaps) {
                if (here) state[ratio + p] += RATIO_PACE * (now - state[ratio + p]);
                told += 1.0;
                continue;
            }
            told += here ? std::min(v / total, 1.0) : 1.0, stretch += std::sqrt(total / v);
            double expected = usual(state, p);
            double near = limited(error, 3.0 * std::sqrt(total));
            for (int d = 0; d < D; d++) {
                if (!missing[d]) continue;
                size_t at = size_t(d) * P + p;
                double n = double(whole(state, judged + d)), one = unit(state, d),
                       most = share_of(state, MOST_SHARE, d, p);
                double part = std::max(h[at] * product(h, off, d, p) / total, CURIOUS * off[place(d, d)] / (one * one));
                double step =
                    0.5 * std::max(1.0 / (n + 1.0), PACE) * std::sqrt(std::min(part, 1.0)) * (now / expected - 1.0);
                if (!here) step = 0.0;
                double size = std::min(std::max(std::fabs(h[at]) * std::exp(step), 1e-3 * most), most);
                state[change + at] = std::copysign(size, h[at]);
                double pace = std::max(1.0 / (n + SHRUNK), EFFECT_PACE) * (1.0 - state[share + d]) / gaps;
                pace /= double(whole(state, age + d)) + 1.0;  // errors in one gap are alike
                state[effect + at] += pace * near;
            }
        }
        for (int d = 0; d < D; d++) {
            if (!missing[d]) continue;
            double n = double(whole(state, judged + d));
            state[wider + d] += (stretch / P - state[wider + d]) * std::max(1.0 / n, PACE);
        }
        return told / P;
    }
    // Whether a row with this share of the information of a complete row is learned from.
    bool believed(double *state, double told) const {
        long longest = 0;
        for (int d = 0; d < D; d++) longest = std::max(longest, long(whole(state, age + d)));
        state[trust] += std::min(TRUST_PACE * std::max(1.0, double(longest) / LASTING), 0.5) * (told - state[trust]);
        return told >= WORTH * state[trust];
    }
    void count_gaps(double *state, const double *x) const {
        for (int d = 0; d < D; d++) {
            bool missing = std::isnan(x[d]);
            whole(state, age + d) = missing ? whole(state, age + d) + 1 : 0;
            whole(state, filled + d) += missing;
            state[share + d] += SHARE_PACE * (double(missing) - state[share + d]);
        }
    }
    // The batch as the held node is to see it, by all that it says of its columns.
    void fill_batch(double *state, const double *X, const double *y, int64_t rows, double *made, Memory &memory) const {
        Lease lease(memory);
        double *h = memory.take(DP), *v = memory.take(P), *g = memory.take(padded(D));
        bool *missing = flags(nullptr, memory);
        for (int64_t i = 0; i < rows; i++)
            for (int d = 0; d < D; d++) missing[d] |= std::isnan(X[i * D + d]);
        for (int p = 0; p < P; p++) {
            slopes(state, p, g, memory);
            double rest = state[y_variance + p];
            for (int d = 0; d < D; d++) rest -= state[slope + size_t(d) * P + p] * g[d];
            v[p] = std::max(rest, LEAST * state[y_variance + p]);
        }
        changes(state, missing, h, memory);
        std::copy_n(state + mean, D, state + previous), std::copy_n(state + variance, D, state + doubt);
        double *complete_x = memory.take(D);
        for (int64_t i = 0; i < rows; i++) {
            const double *x = X + i * D;
            Lease row(memory);
            const double *off = fill(state, x, complete_x, memory);
            for (int d = 0; d < D; d++) state[previous + d] = complete_x[d], state[doubt + d] = variance_of(off, d);
            count_gaps(state, x);
            std::copy_n(x, D, made + i * D);
            if (!any_finite(y + i * P, P)) continue;
            double told = 0.0;
            for (int p = 0; p < P; p++) told += v[p] / std::max(v[p] + spread(h, off, p), SMALLEST);
            if (believed(state, told / P)) std::copy_n(complete_x, D, made + i * D);
        }
    }

  public:
    Gaps(const driftgp::Part &part, int inputs, int outputs) : Moved(part, inputs, outputs) {
        driftgp::Settings(part).end(1);
    }

    bool fills_gaps() const override { return true; }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        Lease lease(memory);
        std::fill_n(state + ratio, P, 1.0), state[trust] = 1.0;
        bool gaps = false;
        for (int64_t i = 0; i < rows; i++) gaps |= any_missing(X + i * D);
        if (gaps) join(state);
        double *complete_x = memory.take(D);
        for (int64_t i = 0; i < rows; i++) {
            Lease row(memory);
            const double *off = fill(state, X + i * D, complete_x, memory);
            note(state, X + i * D, complete_x, off, y + i * P, memory);
        }
        if (gaps) {
            double *made = memory.take(size_t(rows) * D);
            fill_batch(state, X, y, rows, made, memory);
            X = made;
        }
        held->start(state + inner, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D), *said = made + forecast_inner, *h = nullptr;
        const double *off = fill(state, x, complete_x, memory);
        held->forecast(state + inner, complete_x, said, memory);
        if (off) h = memory.take(DP), changes(state, flags(x, memory), h, memory);
        for (int p = 0; p < P; p++) {
            double by = 0.0, scale = 1.0, m = said[p], v = said[P + p];
            if (off) {
                for (int d = 0; d < D; d++)
                    if (std::isnan(x[d])) by += state[effect + size_t(d) * P + p];
                scale = std::sqrt(1.0 + spread(h, off, p) / std::max(v, SMALLEST));
            }
            tell(made, p, scale, (1.0 - scale) * m + by);
            made[p] = m + by;
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        double *complete_x = memory.take(D);
        const double *off = fill(state, x, complete_x, memory);
        const double *given = complete_x;
        if (any_finite(y, P)) {
            known = issued(state, x, known, memory);
            if (!believed(state, judge(state, x, off, y, known, memory))) given = x;
        }
        if (off) join(state);
        count_gaps(state, x);
        note(state, x, complete_x, off, y, memory);
        held->learn(state + inner, given, y, elapsed, known ? known + forecast_inner : nullptr, memory);
    }
    // An input that has not come yet is 0 in any units.
    void rescale(double *state, const Units &units, Memory &memory) const override {
        Lease lease(memory);
        double *centre = memory.take(D), *scale = memory.take(D);
        for (int d = 0; d < D; d++) {
            bool seen = state[count + d] > 0.0;
            centre[d] = seen ? units.x_centre[d] : 0.0, scale[d] = seen ? units.x_scale[d] : 1.0;
            for (size_t at : {previous, mean}) state[at + d] = in_other_units(state[at + d], centre[d], scale[d]);
            for (size_t at : {doubt, variance, echo}) state[at + d] /= scale[d] * scale[d];
            for (int p = 0; p < P; p++) {
                size_t at = size_t(d) * P + p;
                double y_scale = units.y_scale[p];
                state[slope + at] /= scale[d] * y_scale, state[effect + at] /= y_scale;
                state[change + at] *= scale[d] / y_scale;
            }
        }
        for (size_t i = 0; i < K; i++) {
            double *row = state + S + packed_row(K, i) - i, *past = state + T + i * K;
            for (size_t j = i; j < K; j++) row[j] /= scale[i] * scale[j];
            for (size_t j = 0; j < K; j++) past[j] /= scale[i] * scale[j];
        }
        for (int p = 0; p < P; p++) {
            if (state[targets] > 0.0) units.target(state[y_mean + p], p);
            state[y_variance + p] /= units.y_scale[p] * units.y_scale[p];
        }
        held->rescale(state + inner, Units{centre, scale, units.y_centre, units.y_scale}, memory);
    }
};

}  // namespace DRIFTGP_LEVEL
