// Limits for wild targets and forecasts, jumps of the level, and a new start when the past no longer applies: the
// twin of wrappers/guarded.py.

#pragma once

#include "holding.hpp"
#include "plausible.hpp"

namespace DRIFTGP_LEVEL {

class Guarded : public Holding {
    static constexpr int64_t FIRST = 30, CALM = 1000, SOON = 100, STEADY = 5, ABSENT = 100;  // as in guarded.py
    static constexpr double WILD = 2.0, ALIKE = 4.0, BACK = 0.25, EXPLAINED = 0.25;
    static constexpr double FARTHEST = 1e8, LARGE = 10.0, USELESS = 2.0, ABRUPT = 50.0, LASTING = 4.0, MOST = 0.6;
    static constexpr double PACE = 0.02, LARGEST = 1e40, SMALLEST = 1e-140;
    static constexpr int SUSPECT = 20, OFTEN = 2;
    double reach = 6.0;
    bool widen_first = false;
    size_t seen = wholes("seen"), beyond = wholes("beyond", P, {-1, 1});
    size_t error_beyond = floats("error_beyond", P, FINITE), guarded = wholes("guarded", P), last = wholes("last");
    size_t moves = wholes("moves"), step = floats("step", P, FINITE), moved = wholes("moved");
    size_t returned = wholes("returned");
    Span span{own, P};
    size_t last_x = floats("x", D, FINITE), run = wholes("run", D), run_before = wholes("run_before", D);
    size_t absent = wholes("absent", D), held_back = wholes("held", P, ANYTHING);
    size_t first = wholes("first", 1, {0, SUSPECT}), X = floats("X", size_t(SUSPECT) * D);
    size_t y = floats("y", size_t(SUSPECT) * P), error = floats("error", size_t(SUSPECT) * P);
    size_t suspect = wholes("suspect", 1, {0, SUSPECT - 1}), usual = floats("usual", P);
    size_t restarts = wholes("restarts"), anew = wholes("anew", OFTEN);
    size_t told_stretch = told_floats("stretch", P), told_scale = told_floats("scale", P);
    size_t told_shift = told_floats("shift", P);

    static double bounded(double value) { return limited(value, LARGEST); }

    // On which side the target of output p lies beyond the limit: −1, 1, or 0 for neither.
    int side(const double *state, int p, double y, const double *known) const {
        double mean = known[p], std = held->usual_std(known, p);
        bool here = std::isfinite(y) && std::isfinite(mean) && std::isfinite(std) && whole(state, seen) >= FIRST;
        if (!here || !(std::fabs(y - mean) > reach * std)) return 0;
        return y > mean ? 1 : -1;
    }
    // Whether a step leads back to where the level was before it last moved, soon after that.
    bool is_back(const double *state, int p, double by) const {
        bool soon = whole(state, moves) > 0 && whole(state, seen) - whole(state, moved) <= SOON;
        return soon && std::fabs(by + state[step + p]) <= BACK * std::fabs(state[step + p]);
    }
    // Whether an input that had not changed for some samples has another value in this one, or since the last.
    bool switched(const double *state) const {
        for (int d = 0; d < D; d++)
            if (whole(state, run + d) <= 2 && whole(state, run_before + d) >= STEADY) return true;
        return false;
    }
    // For how long each input has had its value; a sample without all its targets counts for nothing.
    void note_inputs(double *state, const double *x, const double *target) const {
        if (!all_finite(target, P)) return;
        for (int d = 0; d < D; d++) {
            whole(state, absent + d) = std::isfinite(x[d]) ? 0 : whole(state, absent + d) + 1;
            if (!std::isfinite(x[d])) continue;
            Whole &length = whole(state, run + d);
            if (length > 0 && x[d] == state[last_x + d]) length++;
            else whole(state, run_before + d) = int64_t(length), length = 1;
            state[last_x + d] = x[d];
        }
    }
    // Widens the range by targets as the held node sees them, but at most up to the targets themselves.
    void count_range(double *state, const double *target, const double *seen_y) const {
        for (int p = 0; p < P; p++) span.widen_within(state, p, seen_y[p], target[p]);
    }
    // How far the held forecast of output p is to be drawn in: κ, and (1 − κ) c.
    void draw_in(const double *state, const double *said, int p, double &scale, double &shift) const {
        scale = 1.0, shift = 0.0;
        double middle, reach;
        if (!span.around(state, p, middle, reach)) return;
        double farthest = std::fabs(said[p] - middle);
        if (farthest + held->median_reach(said, p) > reach)
            farthest = std::max(farthest, std::fabs(held->from_normal(said, p, 0.0) - middle));
        if (farthest > reach) scale = reach / farthest, shift = (1.0 - scale) * middle;
    }
    // The factor of the scores of a held forecast of output p, and that of its variance, so that it is wide enough for
    // what the first targets tell.
    void widen(const double *state, const double *said, int p, double &stretch, double &wider) const {
        double least = span.least_std(state, p);
        if (least == 0.0) return;
        wider = std::max(1.0, least * least / said[P + p]), stretch = INFINITE;
        if (std::isinf(least)) return;
        double middle = held->from_normal(said, p, 0.0), far = 0.0;
        for (double side : {-1.0, 1.0}) {
            double end = std::fabs(held->to_normal(said, p, middle + side * 1.96 * least));
            if (std::isfinite(end)) far = std::max(far, end);  // beyond a bound nothing is
        }
        stretch = std::max(1.0, far / 1.96);
    }
    // Learns one of the first samples, and judges all of them again.
    void begin(double *state, const double *sample, const double *target, double elapsed, const double *said,
               Memory &memory) const {
        Lease lease(memory);
        Whole &count = whole(state, first);
        int64_t n = count;
        double *before = memory.take(size_t(n) * P), *now = memory.take(size_t(n + 1) * P);
        std::copy_n(sample, D, state + X + size_t(n) * D);
        for (int p = 0; p < P; p++) state[y + size_t(n) * P + p] = bounded(target[p]);
        std::copy_n(state + y, size_t(n) * P, before), std::copy_n(state + y, size_t(n + 1) * P, now);
        for (int p = 0; p < P; p++) {
            span.leave_out_absurd(before + p, n, P, memory);
            span.leave_out_absurd(now + p, n + 1, P, memory);
        }
        bool same = true;
        for (int64_t i = 0; i < n * P; i++) same &= std::isfinite(before[i]) == std::isfinite(now[i]);
        if (!same) {
            std::fill_n(state + inner, held_size, 0.0);
            span.clear(state), std::fill_n(state + usual, P, 0.0);
            held->start(state + inner, state + X, state + y, 0, memory);
        }
        for (int64_t i = same ? n : 0; i <= n; i++) {
            for (int p = 0; p < P; p++) span.widen(state, p, now[i * P + p]);
            held->learn(state + inner, state + X + size_t(i) * D, now + i * P, same ? elapsed : 1.0,
                        same ? said : nullptr, memory);
        }
        whole(state, seen)++, count++;
        if (all_finite(now, size_t(n + 1) * P) && all_finite(said, P)) judge(state, sample, target, said, memory);
    }
    // Whether a target of output p is to be believed: it is not absurd, or enough others running have confirmed it.
    bool is_believed(double *state, int p, double target) const {
        if (!std::isfinite(target)) return false;
        int side;
        double distance = span.far(state, p, target, whole(state, seen) < FIRST, side);
        Whole &running = whole(state, held_back + p);
        if (distance == 0.0) {
            running = 0;
            return true;
        }
        running = (running * side > 0 ? int64_t(running) : 0) + side;
        return double(std::abs(int64_t(running))) >= span.confirming(distance);
    }
    // A forecast that follows inputs beyond all before, or does not, if that explains targets; else the known one.
    const double *explained(double *state, const double *x, const double *target, const double *known,
                            Memory &memory) const {
        for (int how : {1, -1}) {
            int before = held->follow_inputs(state + inner, how);
            if (before == NO_LIMIT) break;
            const double *other = heard(state, x, nullptr, memory);
            bool fine = true;
            for (int p = 0; p < P; p++) {
                if (!std::isfinite(target[p])) continue;
                double error = std::fabs(target[p] - other[p]), off = std::fabs(target[p] - known[p]);
                fine &= error <= reach * held->usual_std(other, p) && error <= EXPLAINED * off;
            }
            if (fine) return other;
            held->follow_inputs(state + inner, before);
        }
        return known;
    }
    // Moves the past to where two wild targets running say that the level is; whether they do.
    bool follow_level(double *state, const double *y, const double *sides, const double *now, Memory &memory) const {
        Lease lease(memory);
        double *jump = memory.take(P);
        bool any = false, back = true;
        for (int p = 0; p < P; p++) {
            double std = held->usual_std(now, p), &before = state[error_beyond + p];
            double off = sides[p] != 0.0 ? bounded(y[p] - now[p]) : 0.0;
            bool wild = std::min(std::fabs(off), std::fabs(before)) > WILD * reach * std;
            bool alike = sides[p] != 0.0 && wild && sides[p] == double(whole(state, beyond + p)) &&
                         std::fabs(off - before) <= ALIKE * std;
            jump[p] = alike ? 0.5 * (off + before) : 0.0;
            if (std::isfinite(y[p])) before = alike ? 0.0 : off;
            any |= alike, back &= is_back(state, p, jump[p]);
        }
        int64_t samples = whole(state, seen), spike = whole(state, returned);
        if (!any || switched(state) || (spike > 0 && samples - spike < CALM)) return false;
        if (back) whole(state, returned) = samples;
        held->move_level(state + inner, jump);
        std::copy_n(jump, P, state + step);
        whole(state, moved) = samples, whole(state, moves)++;
        return true;
    }
    // The targets as the held node is to see them. A lone one beyond the limit is brought there, or left out; one that
    // goes beyond it on the same side twice running is taken for real.
    void near(double *state, const double *y, const double *known, const double *sides, double *seen_y) const {
        Whole &before = whole(state, last);
        bool calm = before == 0 || whole(state, seen) - before >= CALM, any = false;
        for (int p = 0; p < P; p++) {
            double mean = known[p], std = held->usual_std(known, p);
            bool by_switch = std::fabs(y[p] - mean) > ABRUPT * std && switched(state);
            bool lone = sides[p] != 0.0 && sides[p] != double(whole(state, beyond + p)) && !by_switch;
            bool wild = lone && std::fabs(y[p] - mean) > WILD * reach * std;
            whole(state, guarded + p) += lone;
            if (std::isfinite(y[p])) whole(state, beyond + p) = int64_t(sides[p]);
            double limit = (lone ? reach : FARTHEST) * std;
            seen_y[p] = sides[p] == 0.0 ? y[p] : clip(y[p], mean - limit, mean + limit);
            if (wild && (calm || is_back(state, p, y[p] - mean))) seen_y[p] = NAN;
            any |= wild;
        }
        if (any) before = whole(state, seen);
    }

    static double median(double *values) {  // which come to be in order
        std::sort(values, values + SUSPECT);
        return 0.5 * (values[SUSPECT / 2 - 1] + values[SUSPECT / 2]);
    }
    // Whether the errors of an output in the trial are too large to go on.
    bool useless(const double *state, int p, bool often, Memory &memory) const {
        Lease lease(memory);
        double *targets = memory.take(SUSPECT), *errors = memory.take(SUSPECT);
        for (int i = 0; i < SUSPECT; i++)
            targets[i] = state[y + size_t(i) * P + p], errors[i] = state[error + size_t(i) * P + p];
        double middle = median(targets);
        for (int i = 0; i < SUSPECT; i++) targets[i] = std::fabs(targets[i] - middle);
        double spread = median(targets);  // 0 for a sensor that is stuck, which tells of no new world
        double first = errors[0], typical = median(errors), before = state[usual + p];
        bool lost = typical > std::max(LASTING * before, MOST * spread) || typical > LASTING * spread;
        bool useless = typical > std::max(LARGE * before, USELESS * spread) || (lost && first > ABRUPT * before);
        return spread > 0.0 && useless && (!often || typical > FARTHEST * spread);
    }
    // Notes an error, and starts anew where the last ones were too large to go on.
    void judge(double *state, const double *sample, const double *target, const double *mean, Memory &memory) const {
        Lease lease(memory);
        double *now = memory.take(P), pace = std::max(PACE, 1.0 / double(whole(state, seen)));
        bool large = false, switch_seen = switched(state);
        for (int p = 0; p < P; p++) {
            double &size = state[usual + p];
            now[p] = std::fabs(bounded(bounded(target[p]) - mean[p]));
            large |= now[p] > LARGE * size && whole(state, seen) > FIRST && !switch_seen;
            double sign = now[p] > size ? 1.0 : now[p] < size ? -1.0 : 0.0;
            size = size > 0.0 ? clip(size * std::exp(pace * sign), SMALLEST, LARGEST) : now[p];
        }
        for (int d = 0; d < D; d++)  // a gap explains the error of its row, unless it lasts
            if (std::isnan(sample[d]) && whole(state, absent + d) < ABSENT) return;
        Whole &count = whole(state, suspect);
        if (count < 2 && !large) {
            count = 0;
            return;
        }
        std::copy_n(sample, D, state + X + size_t(count) * D), std::copy_n(now, P, state + error + size_t(count) * P);
        for (int p = 0; p < P; p++) state[y + size_t(count) * P + p] = bounded(target[p]);
        if (++count < SUSPECT) return;
        count = 0;
        int64_t before = whole(state, anew + OFTEN - 1);
        bool any = false, often = before > 0 && whole(state, seen) - before < CALM;
        for (int p = 0; p < P; p++) any |= useless(state, p, often, memory);
        if (any) start_anew(state, memory);
    }
    // Forgets all but the samples of the trial.
    void start_anew(double *state, Memory &memory) const {
        Lease lease(memory);
        std::fill_n(state + inner, held_size, 0.0);
        held->start(state + inner, state + X, state + y, SUSPECT, memory);
        for (int p = 0; p < P; p++) whole(state, beyond + p) = 0, state[error_beyond + p] = 0.0;
        for (int i = OFTEN - 1; i > 0; i--) whole(state, anew + i) = int64_t(whole(state, anew + i - 1));
        whole(state, anew) = int64_t(whole(state, seen)), whole(state, restarts)++;
    }

  public:
    Guarded(const driftgp::Part &part, int inputs, int outputs) : Holding(part, inputs, outputs) {
        driftgp::Settings settings(part);
        reach = settings.number("reach", 1.0, FARTHEST), widen_first = settings.flag("widen_first");
        settings.end(1);
    }

    void start(double *state, const double *samples, const double *targets, int64_t rows,
               Memory &memory) const override {
        Lease lease(memory);
        double *believed = memory.take(size_t(rows) * P);
        std::copy_n(targets, size_t(rows) * P, believed);
        for (int p = 0; p < P; p++) span.leave_out_absurd(believed + p, rows, P, memory);
        for (int64_t i = 0; i < rows; i++) {
            whole(state, seen) += all_finite(targets + i * P, P);
            for (int p = 0; p < P; p++) span.widen(state, p, believed[i * P + p]);
            note_inputs(state, samples + i * D, targets + i * P);
        }
        held->start(state + inner, samples, believed, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        double *said = made + forecast_inner;
        held->forecast(state + inner, x, said, memory);
        for (int p = 0; p < P; p++) {
            double scale, shift;
            draw_in(state, said, p, scale, shift);
            double stretch = 1.0, wider = 1.0;
            if (widen_first) widen(state, said, p, stretch, wider);
            double factor = scale * scale * wider;
            made[p] = scale * said[p] + shift;
            made[P + p] = factor * said[P + p], made[2 * P + p] = factor * said[2 * P + p];
            made[told_stretch + p] = stretch, made[told_scale + p] = scale, made[told_shift + p] = shift;
        }
    }
    void learn(double *state, const double *x, const double *target, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        const double *said = heard(state, x, known, memory), *now = said;
        double *sides = memory.take(P), *seen_y = memory.take(P);
        bool any = false;
        note_inputs(state, x, target);
        bool complete = all_finite(target, P);
        if (complete && whole(state, seen) == whole(state, first) && whole(state, first) < SUSPECT && inputs_there(x)) {
            begin(state, x, target, elapsed, said, memory);
            return;
        }
        if (complete) whole(state, first) = 0;
        const double *given = target;
        double *believed = memory.take(P);
        bool sane = true;
        for (int p = 0, side; p < P; p++)
            sane &= !std::isfinite(target[p]) || span.far(state, p, target[p], false, side) == 0.0;
        for (int p = 0; p < P; p++) believed[p] = is_believed(state, p, target[p]) ? target[p] : NAN;
        target = believed;
        for (int p = 0; p < P; p++) any |= (sides[p] = side(state, p, target[p], said)) != 0.0;
        if (any) {
            now = said = explained(state, x, target, said, memory), any = false;
            for (int p = 0; p < P; p++) any |= (sides[p] = side(state, p, target[p], said)) != 0.0;
        }
        // what was issued may be older than the node's state
        if (known && (any || whole(state, suspect) > 0)) now = heard(state, x, nullptr, memory);
        bool jumped = follow_level(state, target, sides, now, memory);
        near(state, target, said, sides, seen_y);
        count_range(state, target, seen_y);
        held->learn(state + inner, x, seen_y, elapsed, said, memory);
        whole(state, seen) += complete;
        if (jumped) whole(state, suspect) = 0;
        else if (complete && sane && inputs_there(x) && all_finite(now, P)) judge(state, x, given, now, memory);
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        for (int i = 0; i < SUSPECT; i++) {
            bool here = i < std::max(int64_t(whole(state, suspect)), int64_t(whole(state, first)));
            units.inputs(state + X + size_t(i) * D, D, here), units.targets(state + y + size_t(i) * P, P, here);
            for (int p = 0; p < P; p++) {
                double &e = state[error + size_t(i) * P + p];
                e = here ? e / units.y_scale[p] : 0.0;
            }
        }
        for (int p = 0; p < P; p++)
            state[usual + p] /= units.y_scale[p], state[error_beyond + p] /= units.y_scale[p],
                state[step + p] /= units.y_scale[p];
        for (int d = 0; d < D; d++) units.input(state[last_x + d], d, whole(state, run + d) > 0);
        span.rescale(state, units);
        Holding::rescale(state, units, memory);
    }
    void check(const double *state) const override {
        refuse_unless(whole(state, first) <= whole(state, seen), "first", "at most the field seen");
        span.check(state);
        Holding::check(state);
    }

    // ---- the law: the held node's, stretched and drawn in

    double to_normal(const double *made, int p, double y) const override {
        double held_y = (y - made[told_shift + p]) / made[told_scale + p];
        return held->to_normal(made + forecast_inner, p, held_y) / made[told_stretch + p];
    }
    double from_normal(const double *made, int p, double z) const override {
        double held_z = z == 0.0 ? z : made[told_stretch + p] * z;  // the median is where it was
        return made[told_scale + p] * held->from_normal(made + forecast_inner, p, held_z) + made[told_shift + p];
    }
    double log_prob(const double *made, int p, double y) const override {
        double scale = made[told_scale + p], stretch = made[told_stretch + p];
        double held_y = (y - made[told_shift + p]) / scale;
        double density = held->log_prob(made + forecast_inner, p, held_y) - std::log(scale);
        if (stretch == 1.0) return density;
        double z = held->to_normal(made + forecast_inner, p, held_y), u = z / stretch;
        return density + 0.5 * (z - u) * (z + u) - std::log(stretch);
    }
};

}  // namespace DRIFTGP_LEVEL
