// L-BFGS that waits for each value of the function: the twin of members/descent.py.

#pragma once

#include "holding.hpp"

namespace DRIFTGP_LEVEL {

class Descent {
    static constexpr int PAIRS = 6, TRIES = 6;  // as in descent.py
    static constexpr double LONGEST = 1.0, DECREASE = 1e-4, SMALLEST = 1e-4;
    int K = 0;
    size_t value = 0, direction = 0, step = 0, tries = 0, accepted = 0, left = 0, steps = 0, turns = 0, pairs = 0;

    double dotted(const double *a, const double *b) const {
        double s = 0.0;
        for (int i = 0; i < K; i++) s += a[i] * b[i];
        return s;
    }
    void downhill(double *state, double *d) const {
        const double *slope = state + gradient;
        double length = std::max(1.0, std::sqrt(dotted(slope, slope)));
        for (int i = 0; i < K; i++) d[i] = -slope[i] / length;
    }
    // −B⁻¹ g, by the two loops of L-BFGS.
    void find_direction(double *state) const {
        double *d = state + direction;
        int64_t there = whole(state, pairs);
        int kept = int(std::min<int64_t>(there, PAIRS));
        if (kept == 0) return downhill(state, d);
        for (int i = 0; i < K; i++) d[i] = -state[gradient + i];
        double shares[PAIRS];
        auto place = [&](int age) { return size_t((there - 1 - age) % PAIRS) * K; };
        for (int age = 0; age < kept; age++) {
            const double *s = state + steps + place(age), *turn = state + turns + place(age);
            shares[age] = dotted(s, d) / dotted(s, turn);
            for (int i = 0; i < K; i++) d[i] -= shares[age] * turn[i];
        }
        const double *s = state + steps + place(0), *turn = state + turns + place(0);
        double size = dotted(s, turn) / dotted(turn, turn);
        for (int i = 0; i < K; i++) d[i] *= size;
        for (int age = kept - 1; age >= 0; age--) {
            const double *then = state + steps + place(age), *turned = state + turns + place(age);
            double share = shares[age] - dotted(turned, d) / dotted(then, turned);
            for (int i = 0; i < K; i++) d[i] += share * then[i];
        }
        if (!(dotted(state + gradient, d) < 0.0)) downhill(state, d);
    }
    void go(double *state) const {
        for (int i = 0; i < K; i++) state[trial + i] = state[theta + i] + state[step] * state[direction + i];
    }

  public:
    size_t theta = 0, trial = 0, gradient = 0;

    void declare(Layout &state, size_t start, int parameters) {
        K = parameters;
        theta = state.floats("theta", K) - start, gradient = state.floats("gradient", K) - start;
        value = state.floats("value") - start, trial = state.floats("trial", K) - start;
        direction = state.floats("direction", K) - start, step = state.floats("step") - start;
        tries = state.wholes("tries") - start, accepted = state.wholes("accepted") - start;
        left = state.wholes("left") - start, steps = state.floats("steps", size_t(PAIRS) * K) - start;
        turns = state.floats("turns", size_t(PAIRS) * K) - start, pairs = state.wholes("pairs") - start;
    }
    void begin(double *state, const double *from, int64_t points) const {
        std::copy_n(from, K, state + theta), std::copy_n(from, K, state + trial);
        whole(state, tries) = whole(state, accepted) = 0;
        whole(state, left) = points;
        state[step] = state[value] = 0.0;
    }
    // Whether the function at `trial` is too high, whatever its gradient.
    bool refuses(const double *state, double found) const {
        if (whole(state, accepted) == 0) return false;
        double fall = dotted(state + gradient, state + direction);
        return !(found <= state[value] + DECREASE * state[step] * fall);
    }
    // Takes the function at `trial`; whether it is wanted at another point.
    bool tell(double *state, double found, const double *slope) const {
        bool sound = std::isfinite(found) && all_finite(slope, K);
        double gained = std::numeric_limits<double>::infinity();
        if (whole(state, accepted) == 0) {
            if (!sound) return false;
        } else {
            if (!sound || refuses(state, found)) {
                if (++whole(state, tries) > TRIES) return false;
                double fall = dotted(state + gradient, state + direction), length = state[step];
                double curve = found - state[value] - length * fall;
                double best = sound && curve > 0.0 ? -0.5 * fall * length * length / curve : 0.0;
                state[step] = std::min(std::max(best, 0.1 * length), 0.5 * length);
                go(state);
                return true;
            }
            gained = state[value] - found;
            size_t place = size_t(whole(state, pairs) % PAIRS) * K;
            double along = 0.0, square = 0.0;
            for (int i = 0; i < K; i++) {
                double s = state[trial + i] - state[theta + i], turn = slope[i] - state[gradient + i];
                along += s * turn, square += turn * turn;
            }
            if (along > 1e-10 * square) {
                for (int i = 0; i < K; i++) {
                    state[steps + place + i] = state[trial + i] - state[theta + i];
                    state[turns + place + i] = slope[i] - state[gradient + i];
                }
                whole(state, pairs)++;
            }
        }
        std::copy_n(state + trial, K, state + theta), std::copy_n(slope, K, state + gradient);
        state[value] = found;
        whole(state, accepted)++, whole(state, left)--, whole(state, tries) = 0;
        if (whole(state, left) <= 0 || gained < SMALLEST * std::max(1.0, std::fabs(found))) return false;
        find_direction(state);
        double longest = 0.0;
        for (int i = 0; i < K; i++) longest = std::max(longest, std::fabs(state[direction + i]));
        if (!(longest > 0.0)) return false;
        state[step] = std::min(1.0, LONGEST / longest);
        go(state);
        return true;
    }
    void check(const double *state, bool going_on) const {
        refuse_unless(!going_on || whole(state, left) > 0, "fit.left", "positive during a fit");
    }
};

}  // namespace DRIFTGP_LEVEL
