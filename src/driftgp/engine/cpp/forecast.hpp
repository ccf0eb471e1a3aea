// Rows of a forecaster: the twin of forecasting/core.py, which has the equations. A row whose value may be wild is left
// to it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "driftgp.h"
#include "forecast_parts.hpp"
#include "products.hpp"

namespace DRIFTGP_LEVEL {

namespace forecast {

constexpr int L = 4;  // levels
constexpr double NONE = std::numeric_limits<double>::quiet_NaN();

static inline double inner(const double *a, const double *b, int64_t n) {
    Vec s{}, t{};
    int64_t i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
        s += load(a + i) * load(b + i);
        t += load(a + i + W) * load(b + i + W);
    }
    double rest = 0.0;
    for (; i < n; i++) rest += a[i] * b[i];
    return sum(s + t) + rest;
}

static inline void add(double f, const double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += f * x[i];
}

static inline double held_in(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

// H regressions on D inputs: regression.py.
struct Regression {
    int64_t D, H;
    double forgetting, greatest;
    double *P, *factor, *w, *phi, *k;

    // FARTHEST of regression.py.
    std::vector<double> limited(const double *given) const {
        std::vector<double> x(given, given + D);
        for (double &each : x) each = held_in(each, -1e4, 1e4);
        return x;
    }
    void observe(int64_t row, const double *given) {
        const std::vector<double> inputs = limited(given);
        const double *x = inputs.data();
        double f = *factor;
        std::vector<double> g(D, 0.0);
        for (int64_t j = 0; j < D; j++) {  // P is symmetric: its lower triangle, column after column
            const double *column = P + j * D;
            g[j] += column[j] * x[j] + inner(column + j + 1, x + j + 1, D - j - 1);
            add(x[j], column + j + 1, g.data() + j + 1, D - j - 1);
        }
        for (double &each : g) each *= f;
        double total = forgetting + std::max(inner(x, g.data(), D), 0.0), rate = -1.0 / (total * f);
        for (int64_t j = 0; j < D; j++) add(rate * g[j], g.data() + j, P + j * D + j, D - j);
        *factor = f = f / forgetting;
        if (f > 2.0) {
            double trace = 0.0;
            for (int64_t j = 0; j < D; j++) trace += P[j * D + j];
            trace *= f;
            double by = trace > 0.0 ? f * std::min(1.0, greatest / trace) : 1.0;
            for (int64_t i = 0; i < D * D; i++) P[i] *= by;
            *factor = 1.0;
        }
        int64_t place = (H - row % H) % H;
        for (int64_t i = 0; i < D; i++) {
            phi[place * D + i] = phi[(place + H) * D + i] = x[i];
            k[place * D + i] = k[(place + H) * D + i] = g[i] / total;
        }
    }
    void means(const double *given, double *m) const {
        const std::vector<double> x = limited(given);
        for (int64_t h = 0; h < H; h++) m[h] = inner(w + h * D, x.data(), D);
    }
    // base: strided by lead and origin, what the target is relative to
    template <class Base>
    void learn(int64_t row, double z, const double *known, Base base, const double *most) {
        int64_t place = (H - (row - 1) % H) % H;
        for (int64_t h = 0; h < H; h++) {
            const double *x = phi + (place + h) * D;
            double e = z - known[h] - base(h) - inner(w + h * D, x, D);
            if (e != e) continue;
            e = held_in(e, -most[h], most[h]);
            add(e, k + (place + h) * D, w + h * D, D);
        }
    }
};

// Minimum of wᵀ A w with w ≥ 0, Σ w = 1: mixture.py.
static inline void simplex(const std::vector<double> &A, int64_t J, double *w) {
    std::vector<char> inside(J, 0);
    std::vector<double> v(J, 0.0), target(J), M, u;
    int64_t first = 0;
    for (int64_t j = 1; j < J; j++)
        if (A[j * J + j] < A[first * J + first]) first = j;
    inside[first] = 1;
    v[first] = 1.0;
    for (int64_t turn = 0; turn < 4 * J; turn++) {
        double size = 0.0, least = std::numeric_limits<double>::infinity();
        int64_t candidate = -1;
        for (int64_t j = 0; j < J; j++) {
            double g = inner(&A[j * J], v.data(), J);
            size += v[j] * g;
            if (!inside[j] && g < least) least = g, candidate = j;
        }
        if (candidate < 0 || !(least < size * (1.0 - 1e-9))) break;
        inside[candidate] = 1;
        for (;;) {
            std::vector<int64_t> chosen;
            for (int64_t j = 0; j < J; j++)
                if (inside[j]) chosen.push_back(j);
            int64_t n = (int64_t)chosen.size();
            M.assign(n * n, 0.0);
            u.assign(n, 1.0);
            for (int64_t a = 0; a < n; a++)
                for (int64_t b = 0; b < n; b++) M[a * n + b] = A[chosen[a] * J + chosen[b]];
            for (int64_t a = 0; a < n; a++) {  // Gauss with pivots
                int64_t pivot = a;
                for (int64_t b = a + 1; b < n; b++)
                    if (std::fabs(M[b * n + a]) > std::fabs(M[pivot * n + a])) pivot = b;
                if (M[pivot * n + a] == 0.0 || M[pivot * n + a] != M[pivot * n + a]) return;
                if (pivot != a) {
                    for (int64_t b = 0; b < n; b++) std::swap(M[a * n + b], M[pivot * n + b]);
                    std::swap(u[a], u[pivot]);
                }
                for (int64_t b = a + 1; b < n; b++) {
                    double f = M[b * n + a] / M[a * n + a];
                    for (int64_t c = a; c < n; c++) M[b * n + c] -= f * M[a * n + c];
                    u[b] -= f * u[a];
                }
            }
            double all = 0.0;
            for (int64_t a = n - 1; a >= 0; a--) {
                for (int64_t b = a + 1; b < n; b++) u[a] -= M[a * n + b] * u[b];
                u[a] /= M[a * n + a];
                all += u[a];
            }
            std::fill(target.begin(), target.end(), 0.0);
            double lowest = std::numeric_limits<double>::infinity();
            for (int64_t a = 0; a < n; a++) {
                target[chosen[a]] = u[a] / all;
                lowest = std::min(lowest, target[chosen[a]]);
            }
            if (lowest > 0.0) {
                v = target;
                break;
            }
            if (lowest != lowest) return;
            double step = std::numeric_limits<double>::infinity();
            for (int64_t j : chosen)
                if (target[j] <= 0.0) step = std::min(step, v[j] / std::max(v[j] - target[j], 1e-300));
            double total = 0.0;
            for (int64_t j = 0; j < J; j++) {
                v[j] += step * (target[j] - v[j]);
                inside[j] = inside[j] && v[j] > 1e-12;
                if (!inside[j]) v[j] = 0.0;
                total += v[j];
            }
            for (int64_t j = 0; j < J; j++) v[j] /= total;
        }
    }
    for (int64_t j = 0; j < J; j++) w[j] = v[j];
}

using namespace ::forecast;

struct Series {
    const int64_t *n;
    double *const *a;
    int64_t *const *i;
    const double *c;
    int64_t H, S, J, T, X, Q;
    std::vector<double> known, m, most, reached, phi, wave, u, means, base, g;
    std::vector<double> row_phi, shared;
    std::vector<int64_t> place;
    std::vector<double> own_part;  // what the columns of this row add by its slot, H
    Regression few, waves, wide, late;

    explicit Series(const driftgp_series &s) : n(s.sizes), a(s.arrays), i(s.wholes), c(s.arrays[CONSTANTS]) {
        H = n[H_], S = n[S_], J = n[J_], T = n[T_], X = n[X_], Q = n[Q_];
        few = {n[FEW_], H, c[C_FORGETTING], c[C_GREATEST], a[FEW_P], a[FEW_F], a[FEW_W], a[FEW_PHI], a[FEW_K]};
        waves = {n[WAVES_],  H,          c[C_FORGETTING], c[C_GREATEST_WAVES], a[WAVES_P],
                 a[WAVES_F], a[WAVES_W], a[WAVES_PHI],    a[WAVES_K]};
        wide = {n[WIDE_],  H,         c[C_FORGETTING], c[C_GREATEST_WIDE], a[WIDE_P],
                a[WIDE_F], a[WIDE_W], a[WIDE_PHI],     a[WIDE_K]};
        late = {n[ERRORS_OF_] + 1, H,         c[C_FORGETTING], c[C_GREATEST_LATE], a[LATE_P],
                a[LATE_F],         a[LATE_W], a[LATE_PHI],     a[LATE_K]};
        row_phi.assign(n[BY_SLOT_] + n[PLACES_], 0.0);
        shared.assign(std::max({n[BY_SLOT_] + n[PLACES_], n[ERRORS_OF_] + 1, (int64_t)1}), 0.0);
        for (auto *each : {&known, &m, &most, &base, &own_part}) each->assign(H, 0.0);
        place.assign(H, 0);
        reached.assign(H * 2 * L, 0.0);
        means.assign(J * H, 0.0);
        phi.assign(std::max({n[FEW_], n[WAVES_], n[WIDE_], (int64_t)1}), 0.0);
        wave.assign(n[COSINES_], 0.0);
        g.assign(std::max(n[E_], (int64_t)1), 0.0);
        u.assign(std::max(n[SEEN_], (int64_t)1), 0.0);
    }

    double inwards(double y) const {
        const double *f = a[FRAME];
        return ((f[2] != 0.0 ? std::sqrt(std::max(y, 0.0)) : y) - f[0]) / f[1];
    }
    double outwards(double z) const {
        const double *f = a[FRAME];
        double v = f[0] + f[1] * z;
        return f[2] != 0.0 ? std::max(v, 0.0) * std::max(v, 0.0) : v;
    }
    double slope(double z) const {
        const double *f = a[FRAME];
        return f[2] != 0.0 ? 2.0 * f[1] * std::max(f[0] + f[1] * z, 0.1 * f[1]) : f[1];
    }
    double *history(int64_t line) const { return a[HISTORY] + line * n[N_]; }
    int64_t row() const { return i[COUNTS][0]; }

    // Whether the row was taken in; if not nothing has changed.
    bool take(double value, const int64_t *slots, double year, const double *x, const double *past) {
        const int64_t row = this->row() + 1, N = n[N_];
        for (int64_t h = 0; h < H; h++) {
            place[h] = ((row - 1 - h) % H + H) % H;
            known[h] = inner(a[BETA] + place[h] * X, x, X);
            m[h] = said(0, h) + said(1, h) * known[h];
        }
        double level = 0.0;
        int64_t group = S ? slots[0] * n[GROUPS_] / n[SHORT_] : 0;
        if (n[SLOTTED_]) {
            level = slot_features(0, slots, year, row_phi.data());
            std::copy(x + X, x + X + (n[BY_SLOT_] - own_count()), row_phi.begin() + own_count());
            const int64_t own = own_count(), columns = n[BY_SLOT_] - own;
            double usual = inner(theta(group) + own, x + X, columns);
            double more = inner(season_theta(group) + own, x + X, columns);
            for (int64_t h = 0; h < H; h++) {
                own_part[h] = h <= slots[0] ? more : usual;
                m[h] += said(4, h) * own_part[h];
            }
            last_season(0, slots[0], level, row_phi.data() + n[BY_SLOT_]);
        }
        double expected = m[0] == m[0] ? m[0] : history(0)[N - n[SHORT_]];
        double y = held_in(value, -c[C_LARGEST], c[C_LARGEST]), z = NONE;
        bool turn = row % n[BLOCK_] == 0;
        double *r = a[RANGES];
        double range[4] = {turn ? NONE : r[0], turn ? NONE : r[1], turn ? r[0] : r[2], turn ? r[1] : r[3]};
        if (y == y) {
            z = inwards(y);
            double low = std::fmin(range[0], range[2]), high = std::fmax(range[1], range[3]);
            double usual = std::sqrt((a[N_OF][group * H] * a[V][group * H] + a[ALL][0]) / (a[N_OF][group * H] + 1.0));
            double length = low == low ? std::max(inwards(high) - inwards(low), 1.0) : 1.0;
            double reach = c[C_WILD] * std::min(std::max(usual, c[C_LEAST]), length);
            if (row > 0 && std::fabs(z - expected) > reach) {
                const double *last = history(0) + N - n[REACH_];
                double least = *std::min_element(last, last + n[REACH_]),
                       most = *std::max_element(last, last + n[REACH_]);
                if (std::max(least - z, z - most) > std::max(0.5 * reach, c[C_OUTSIDE] * (most - least))) return false;
            }
            for (int64_t k = 0; k < n[HELD_]; k++) a[HELD_ROWS][k] = NONE;
            range[0] = std::fmin(range[0], y), range[1] = std::fmax(range[1], y);
        }
        i[COUNTS][0] = row;
        std::copy(range, range + 4, r);
        judge(row, z, group);
        for (int64_t line = 0; line < 4; line++) std::copy(history(line) + 1, history(line) + N, history(line));
        learn(row, z);
        double error = n[SLOTTED_] && z == z ? learn_slot(z, level, group) : 0.0;
        double effect = n[EFFECTIVE_] ? effects(z, slots, year, x) : 0.0;
        double there = z == z ? z : expected;
        smooth(z - effect, slots);
        double seasonal = 0.0;
        for (int64_t s = 0; s < S; s++) seasonal += a[SEASONAL][n[PROFILE_] * n[SLOTS_] + i[OFFSETS][s] + slots[s]];
        history(0)[N - 1] = there, history(1)[N - 1] = there - effect, history(2)[N - 1] = there - effect - seasonal;
        history(3)[N - 1] = error;
        issue(row, slots, year, past);
        return true;
    }

    double said(int64_t what, int64_t h) const { return a[M][(what * H + place[h]) * H + h]; }

    // ---- the forecasts of a row, judged by its target: Reach.learn, _count, Mixture
    // -----------------------------------

    void reaches() {
        for (int64_t h = 0; h < H; h++) {
            for (int side = 0; side < 2; side++) {
                double best = -std::numeric_limits<double>::infinity();
                for (int l = 0; l < L; l++) {
                    double log_z = std::log(a[NOMINAL][l]), low = log_z * c[C_RATIO];
                    best = std::max(best, a[D][(h * 2 + side) * L + l] + (log_z - low));
                    reached[(h * 2 + side) * L + l] = std::exp(best + low);
                }
            }
        }
    }

    double slower(int64_t h) const { return 1.0 / (1.0 + (double)h / c[C_SLOWER]); }

    void judge(int64_t row, double z, int64_t group) {
        reaches();
        const double *nominal = a[NOMINAL];
        bool teach = z == z;
        int64_t back = n[SHORT_];
        double y = teach ? outwards(z) : 0.0;
        for (int64_t h = 0; h < H; h++) {
            double s = a[SIZE][place[h] * H + h], e = z - m[h], *score = &a[SCORES][place[h] * H + h];
            const int level = (int)c[C_LEVEL];
            double half = 0.5 * (reached[h * 2 * L + level] + reached[(h * 2 + 1) * L + level]), steep = slope(m[h]);
            *score = NONE;
            a[ERROR_SUM][place[h]] += steep * e;
            a[HALF_WIDTH][place[h] * H + h] = e == e ? steep * s * half : 1.0;
            if (e != e) continue;
            double e2 = e * e, r = e / s, size = std::fabs(r);
            int side = r < 0.0 ? 0 : 1;
            const double *own = &reached[(h * 2 + side) * L];
            if (teach) {
                a[SUMS][h] += 1.0;
                a[SUMS][H + h] += std::fabs(outwards(m[h]) - y);
                a[SUMS][2 * H + h] += std::fabs(outwards(history(0)[n[N_] - back * (1 + h / back)]) - y);
                a[SUMS][3 * H + h] += size <= own[(int)c[C_LEVEL]] ? 1.0 : 0.0;
            }
            double inf = std::numeric_limits<double>::infinity();
            double n_slot = a[N_OF][group * H + h];
            double usual = (n_slot * a[V][group * H + h] + c[C_LEAN] * a[ALL][h]) / (n_slot + c[C_LEAN]);
            double &count = a[COUNT][h], &all = a[ALL][h], &v = a[V][group * H + h], &nv = a[N_OF][group * H + h];
            count = std::min(count + 1.0, c[C_ALL]);
            bool many = count > 10.0;
            all += (std::min(e2, many ? c[C_LARGE] * all : inf) - all) / count;
            double more = std::min(nv + 1.0, c[C_SIZES]);
            v += (std::min(e2, more > 10.0 ? c[C_LARGE] * v : (many ? c[C_LARGE] * all : inf)) - v) /
                 std::max(more, 1.0);
            nv = more;
            double &issued = a[ISSUED][h], &q = a[RECENT_SIZE][h];
            issued = std::min(issued + 1.0, c[C_RECENT]);
            q = std::max(q + (std::min(e2 / usual, c[C_LARGE]) - q) / std::max(issued, 10.0), 1e-6);
            for (int k = 0; k < 2; k++)
                for (int l = 0; l < L; l++) {
                    double &d = a[D][(h * 2 + k) * L + l];
                    bool outside = k == side && size > own[l];
                    d = std::max(d + a[STEP][l] * slower(h) * ((outside ? 1.0 : 0.0) - a[SHARE][l]), c[C_LOWEST]);
                }
            int at = 0;
            while (at < L - 1 && size >= own[at]) at++;
            double from = at ? own[at - 1] : 0.0, height = at ? nominal[at - 1] : 0.0;
            double normal = height + (nominal[at] - height) * (size - from) / std::max(own[at] - from, 1e-300);
            *score = (r > 0.0 ? 1.0 : (r < 0.0 ? -1.0 : 0.0)) * std::min(normal, 8.0);
        }
        for (int64_t k = 0; k < n[GROUPS_] * H; k++) a[V][k] = std::max(a[V][k], c[C_TINY]);
        for (int64_t h = 0; h < H; h++) a[ALL][h] = std::max(a[ALL][h], c[C_TINY]);
        if (teach) mix(z);
        const int64_t apart = (int64_t)(row < (int64_t)c[C_EARLY] ? c[C_OFTEN] : c[C_SELDOM]);
        for (int64_t b = 0; b < n[B_]; b++)  // the blocks take turns, for any horizon
            if ((row - b) % apart == 0) solve(b);
        dependence(row);
    }

    void mix(double z) {
        std::vector<double> e(J), products(J * J);
        for (int64_t b = 0; b < n[B_]; b++) {
            int64_t end = b + 1 < n[B_] ? i[STARTS][b + 1] : T;
            double *S = a[S_MATRIX] + b * J * J, &seen = a[ERRORS][b], count = 0.0;
            double usual = std::numeric_limits<double>::infinity();
            for (int64_t j = 0; j < J; j++) usual = std::min(usual, S[j * J + j]);
            usual = std::sqrt(usual);
            std::fill(products.begin(), products.end(), 0.0);
            for (int64_t t = i[STARTS][b]; t < end; t++) {
                int64_t h = i[LEADS][t] - 1;
                const double *said = a[SAID] + (place[h] * T + t) * J;
                for (int64_t j = 0; j < J; j++) e[j] = z - said[j] - known[h] * a[OPEN][j] - own_part[h] * a[OWN][j];
                if (e[0] != e[0]) continue;
                count += 1.0;
                if (seen > c[C_FIRST]) {
                    double mixed = std::fabs(inner(a[WEIGHTS] + b * J, e.data(), J));
                    double by = std::sqrt(std::min(1.0, c[C_FARTHEST] * usual / std::max(mixed, 1e-300)));
                    for (double &each : e) each *= by;
                }
                for (int64_t j = 0; j < J; j++) add(e[j], e.data(), &products[j * J], J);
            }
            if (count == 0.0) continue;
            seen += 1.0;
            double rate = 1.0 / std::min(std::max(c[C_SHARE] * seen, std::min(seen, 50.0)), c[C_MEMORY]);
            for (int64_t k = 0; k < J * J; k++) S[k] += rate * (products[k] / count - S[k]);
        }
    }

    void solve(int64_t b) {
        const double *S = a[S_MATRIX] + b * J * J;
        std::vector<double> A(S, S + J * J), p(J);
        double least = std::numeric_limits<double>::infinity(), all = 0.0, squares = 0.0;
        for (int64_t j = 0; j < J; j++) least = std::min(least, std::max(S[j * J + j], 1e-300));
        for (int64_t j = 0; j < J; j++) {
            double ratio = least / std::max(S[j * J + j], 1e-300);
            all += p[j] = ratio * ratio;
        }
        for (double &each : p) each /= all;
        for (double each : p) squares += each * each;
        double kappa = (c[C_RIDGE] + c[C_FIRST] / a[ERRORS][b]) * least;
        for (int64_t j = 0; j < J; j++)
            for (int64_t k = 0; k < J; k++) A[j * J + k] += kappa * ((j == k ? 1.0 : 0.0) - p[j] - p[k] + squares);
        simplex(A, J, a[WEIGHTS] + b * J);
    }

    void dependence(int64_t row) {
        if ((double)row < (double)H + c[C_FIRST_SCORES]) return;
        const int64_t now = row % H;
        const double *scores = a[SCORES] + now * H, *s = a[HALF_WIDTH] + now * H;
        for (int64_t h = 0; h < H; h++)
            if (!std::isfinite(scores[h])) return;
        std::vector<double> z(H), t(H);
        double variance = 0.0, &wider = a[WIDER][0];
        for (int64_t h = 0; h < H; h++) {
            z[h] = held_in(scores[h], -c[C_LARGEST_SCORE], c[C_LARGEST_SCORE]);
            t[h] = s[h] / std::sqrt(a[R][h * H + h]);
            variance += c[C_SHRINK] * s[h] * s[h];
        }
        for (int64_t h = 0; h < H; h++) variance += (1.0 - c[C_SHRINK]) * t[h] * inner(a[R] + h * H, t.data(), H);
        bool outside = std::fabs(a[ERROR_SUM][now]) > std::exp(wider) * std::sqrt(variance);
        wider = held_in(wider + c[C_SUM_STEP] * ((outside ? 1.0 : 0.0) - c[C_SUM_OUTSIDE]), -c[C_SUM_FARTHEST],
                        c[C_SUM_FARTHEST]);
        double &origins = a[ORIGINS][0];
        origins = std::min(origins + 1.0, c[C_DEPENDENCE]);
        double rate = 1.0 / origins;
        for (int64_t h = 0; h < H; h++) {
            double *line = a[R] + h * H;
            for (int64_t k = 0; k < H; k++) line[k] += rate * (z[h] * z[k] - line[k]);
        }
    }

    // ---- learning
    // -----------------------------------------------------------------------------------------------------

    void learn(int64_t row, double z) {
        if (z != z || row == 0) return;
        bool early = (double)row < 2.0 * c[C_FIRST_SCORES];
        for (int64_t h = 0; h < H; h++)
            most[h] = early ? std::numeric_limits<double>::infinity() : c[C_CLIP] * std::sqrt(a[ALL][h]);
        auto profile = [this](int64_t h) { return said(3, h); };
        few.learn(row, z, known.data(), profile, most.data());
        if (waves.D) waves.learn(row, z, known.data(), profile, most.data());
        if (wide.D) wide.learn(row, z, known.data(), [this](int64_t h) { return said(2, h); }, most.data());
        if (!n[SLOTTED_]) return;
        for (int64_t h = 0; h < H; h++) {
            most[h] *= c[C_CLIP_LATE] / c[C_CLIP];
            base[h] = own_part[h];
        }
        late.learn(row, z, base.data(), [this](int64_t h) { return said(5, h); }, most.data());
    }

    // ---- regressions by slot: by_slot.py
    // -----------------------------------------------------------------------------------------------------

    double *theta(int64_t group) const { return a[SLOT_THETA] + group * n[BY_SLOT_]; }
    double *season_theta(int64_t group) const { return a[SEASON_THETA] + group * (n[BY_SLOT_] + n[PLACES_]); }
    int64_t own_count() const {
        return n[OLDER_] + (n[LONG_] > n[SHORT_]) + n[QUARTERS_] + 2 + n[DAYS_] + 4 * n[YEARLY_];
    }

    // Inputs of lead h after the last row, less the columns, at its slots, strided by `apart`; returns its level.
    double slot_features(int64_t h, const int64_t *slots, double year, double *to, int64_t apart = 1) const {
        const int64_t length = n[SHORT_];
        const double *values = history(0) + n[N_] + h, *last = values - i[SHORT_BACK][h] - length;
        double level = 0.0;
        for (int64_t k = 0; k < length; k++) level += last[-k];
        level /= (double)length;
        for (int64_t k = 0; k < n[OLDER_]; k++) *to++ = last[length - i[SLOT_LAGS][k]] - level;
        if (n[LONG_] > length) *to++ = values[-i[LONG_BACK][h] - n[LONG_]] - level;
        for (int64_t q = 0; q < n[QUARTERS_]; q++) {
            int64_t first = q * length / 4, end = (q + 1) * length / 4;
            double part = 0.0;
            for (int64_t k = first; k < end; k++) part += last[-k];
            *to++ = part / (double)(end - first) - level;
        }
        *to++ = 1.0;
        *to++ = level;
        if (n[DAYS_]) {
            std::fill(to, to + n[DAYS_], 0.0);
            to[slots[(S - 1) * apart] / length] = 1.0;
            to += n[DAYS_];
        }
        if (n[YEARLY_]) yearly(to, year);
        return level;
    }

    // The short season before that of lead h + 1, whose slot is given, less a level.
    void last_season(int64_t h, int64_t slot, double level, double *to) const {
        const int64_t length = n[SHORT_];
        const double *first = history(0) + n[N_] + h - slot - length;
        for (int64_t k = 0; k < n[PLACES_]; k++) {
            int64_t at = k * length / n[PLACES_], end = (k + 1) * length / n[PLACES_];
            double part = 0.0;
            for (int64_t i = at; i < end; i++) part += first[i];
            to[k] = part / (double)(end - at) - level;
        }
    }

    double learn_slot(double z, double level, int64_t group) {
        const int64_t D = n[BY_SLOT_], more = D + n[PLACES_];
        robust(z - level, more, a[SEASON_P] + group * more * more, season_theta(group), a[SEASON_COUNT][group],
               a[SEASON_ERROR][group], c[C_SEASON_GREATEST]);
        return robust(z - level, D, a[SLOT_P] + group * D * D, theta(group), a[SLOT_COUNT][group], a[SLOT_ERROR][group],
                      c[C_SLOT_GREATEST]);
    }

    // Robust.learn on the first inputs of the row; returns the error.
    double robust(double target, int64_t count, double *P, double *w, double &seen, double &size, double greatest) {
        const double *x = row_phi.data(), forgetting = c[C_SLOT_FORGETTING];
        double e = target - inner(w, x, count);
        seen += 1.0;
        double limited = seen > c[C_SLOT_FIRST] ? held_in(e, -c[C_ROBUST] * size, c[C_ROBUST] * size) : e;
        size += (std::min(std::fabs(e), 5.0 * size) - size) / std::min(seen + 1.0, c[C_SLOT_AVERAGED]);
        for (int64_t k = 0; k < count; k++) shared[k] = inner(P + k * count, x, count);
        double total = forgetting + std::max(inner(x, shared.data(), count), 0.0), trace = 0.0;
        add(limited / total, shared.data(), w, count);
        for (int64_t k = 0; k < count; k++) {
            double by = shared[k] / total;
            for (int64_t j = 0; j < count; j++) P[k * count + j] = (P[k * count + j] - by * shared[j]) / forgetting;
            trace += P[k * count + k];
        }
        if (trace > greatest)
            for (int64_t k = 0; k < count * count; k++) P[k] *= 0.5;
        return e;
    }

    double effects(double z, const int64_t *slots, double year, const double *x) {
        const int64_t E = n[E_];
        double *theta = a[THETA], *before = a[BEFORE], *P = a[EFFECTS_P], *products = a[PRODUCTS];
        std::fill(g.begin(), g.end(), 0.0);
        g[0] = 1.0;
        for (int64_t k = 0; k < n[TOLD_]; k++) g[i[TOLD_OFFSETS][k] + told(k, slots[0], slots[S - 1])] = 1.0;
        int64_t first = E - X - 4 * n[YEARLY_];
        if (n[YEARLY_])
            g[first] = std::sin(year), g[first + 1] = std::cos(year), g[first + 2] = std::sin(2.0 * year),
            g[first + 3] = std::cos(2.0 * year);
        std::copy(x, x + X, g.begin() + (E - X));
        double rho = persistence();
        if (z != z) {
            a[RESIDUAL][0] *= rho;
            before[0] = NONE;
        } else {
            double e = z - inner(theta, g.data(), E);
            if (before[0] == before[0]) {
                double last = before[0] - inner(theta, before + 1, E);
                products[2] = std::min(products[2] + 1.0, c[C_PERSISTENCE]);
                products[0] += (e * last - products[0]) / products[2];
                products[1] += (0.5 * (e * e + last * last) - products[1]) / products[2];
                std::vector<double> v(E), h(E);
                for (int64_t k = 0; k < E; k++) v[k] = g[k] - rho * before[1 + k];
                double target = z - rho * before[0];
                for (int64_t k = 0; k < E; k++) h[k] = inner(P + k * E, v.data(), E);
                double total = c[C_EFFECTS_FORGETTING] + inner(v.data(), h.data(), E);
                double miss = target - inner(theta, v.data(), E), trace = 0.0;
                for (int64_t k = 0; k < E; k++) theta[k] += h[k] / total * miss;
                for (int64_t k = 0; k < E; k++) {
                    double by = h[k] / total;
                    for (int64_t j = 0; j < E; j++) P[k * E + j] = (P[k * E + j] - by * h[j]) / c[C_EFFECTS_FORGETTING];
                    trace += P[k * E + k];
                }
                if (trace > c[C_EFFECTS_GREATEST])
                    for (int64_t k = 0; k < E * E; k++) P[k] *= 0.5;
            }
            before[0] = z;
            std::copy(g.begin(), g.begin() + E, before + 1);
            a[RESIDUAL][0] = z - inner(theta, g.data(), E);
        }
        return inner(theta + (E - X), x, X);
    }
    double persistence() const { return held_in(a[PRODUCTS][0] / std::max(a[PRODUCTS][1], 1e-12), 0.0, c[C_RHO]); }
    int64_t told(int64_t k, int64_t shortest, int64_t longest) const {
        return i[TOLD][k] >= 0 ? shortest : longest / i[LENGTHS][0];
    }

    void smooth(double y, const int64_t *slots) {
        double *l = a[SMOOTH], *b = l + Q, *t = b + Q, *seen = a[SEEN_SO_FAR];
        for (int64_t q = 0; q < Q; q++) {
            l[q] += a[PHI][q] * b[q];
            b[q] *= a[PHI][q];
            t[q] *= a[RHO][q];
        }
        if (y != y) return;
        seen[0] += 1.0;
        for (int64_t s = 0; s < S; s++) seen[1 + i[OFFSETS][s] + slots[s]] += 1.0;
        for (int64_t q = 0; q < Q; q++) {
            double *season = a[SEASONAL] + q * n[SLOTS_], seasonal = 0.0;
            for (int64_t s = 0; s < S; s++) seasonal += season[i[OFFSETS][s] + slots[s]];
            double e = y - (l[q] + t[q] + seasonal);
            l[q] += std::max(a[ALPHA][q], 1.0 / seen[0]) * e;
            b[q] += a[ALPHA_BETA][q] * e;
            t[q] += a[KAPPA][q] * e;
            for (int64_t s = 0; s < S; s++) {
                int64_t at = i[OFFSETS][s] + slots[s];
                season[at] += std::max(a[GAMMA][q * S + s], a[BEGINS][q * S + s] / (seen[1 + at] + 1.0)) * e;
            }
        }
    }

    // ---- forecasts
    // ----------------------------------------------------------------------------------------------------

    void issue(int64_t row, const int64_t *slots, double year, const double *past) {
        const int64_t N = n[N_], now = row % H;
        int64_t *ahead = i[AHEAD];
        for (int64_t s = 0; s < S; s++)
            for (int64_t h = 0; h < H; h++) ahead[s * H + h] = (slots[s] + 1 + h) % i[LENGTHS][s];
        const double *values = history(0), *less = history(1), *dev = history(2);
        double *out = means.data();
        for (int64_t h = 0; h < H; h++) out[h] = values[N - 1];
        out += H;
        for (int64_t s = 0; s < S; s++, out += H) {
            int64_t length = i[LENGTHS][s];
            for (int64_t h = 0; h < H; h++) out[h] = length <= N ? values[N + h % length - length] : values[N - 1];
        }
        const double *l = a[SMOOTH], *b = l + Q, *t = b + Q;
        for (int64_t q = 0; q < Q; q++, out += H) {
            const double *season = a[SEASONAL] + q * n[SLOTS_];
            for (int64_t h = 0; h < H; h++) out[h] = l[q] + b[q] * a[TRENDED][q * H + h] + t[q] * a[KEPT][q * H + h];
            for (int64_t s = 0; s < S; s++)
                for (int64_t h = 0; h < H; h++) out[h] += season[i[OFFSETS][s] + ahead[s * H + h]];
        }
        if (n[EFFECTIVE_]) {
            const double *theta = a[THETA];
            double rho = persistence(), kept = 1.0;
            int64_t first = n[E_] - X - 4 * n[YEARLY_];
            for (int64_t h = 0; h < H; h++) {
                kept *= rho;
                double value = theta[0] + kept * a[RESIDUAL][0];
                for (int64_t k = 0; k < n[TOLD_]; k++)
                    value += theta[i[TOLD_OFFSETS][k] + told(k, ahead[h], ahead[(S - 1) * H + h])];
                if (n[YEARLY_]) {
                    double at = year + c[C_YEAR_STEP] * (double)(1 + h), sin = std::sin(at), cos = std::cos(at);
                    value += theta[first] * sin + theta[first + 1] * cos + theta[first + 2] * 2.0 * sin * cos +
                             theta[first + 3] * (1.0 - 2.0 * sin * sin);
                }
                out[h] = value;
            }
            out += H;
        }
        auto mean = [N](const double *x, int64_t count) {
            double all = 0.0;
            for (int64_t k = 0; k < count; k++) all += x[N - 1 - k];
            return all / (double)count;
        };
        double level = mean(dev, n[SHORT_]), of_values = mean(less, n[SHORT_]);
        for (int64_t h = 0; h < H; h++) {
            base[h] = level;
            for (int64_t s = 0; s < S; s++)
                base[h] += a[SEASONAL][n[PROFILE_] * n[SLOTS_] + i[OFFSETS][s] + ahead[s * H + h]];
        }
        small(dev, slots, level, year, past, mean(dev, 3) - level);
        few.observe(row, phi.data());
        few.means(phi.data(), out);
        for (int64_t h = 0; h < H; h++) out[h] += base[h];
        out += H;
        if (n[COSINES_]) cosines(std::max(std::sqrt(a[ALL][0]), 1e-6));
        if (waves.D) {
            std::copy(wave.begin(), wave.end(), phi.begin() + n[FEW_]);
            waves.observe(row, phi.data());
            waves.means(phi.data(), out);
            for (int64_t h = 0; h < H; h++) out[h] += base[h];
            out += H;
        }
        if (wide.D) {
            large(less, slots, of_values, year, past, mean(less, n[LONG_]) - of_values);
            std::copy(wave.begin(), wave.end(), phi.begin() + n[LARGE_]);
            wide.observe(row, phi.data());
            wide.means(phi.data(), out);
            for (int64_t h = 0; h < H; h++) out[h] += of_values;
        }
        if (n[SLOTTED_]) {
            if (wide.D) out += H;
            for (int64_t h = 0; h < H; h++) {
                double at = slot_features(h, ahead + h, year + c[C_YEAR_STEP] * (double)(1 + h), shared.data(), H);
                int64_t group = ahead[h] * n[GROUPS_] / n[SHORT_];
                const double *w = theta(group);
                double of_season = 0.0;
                if (h <= ahead[h]) {
                    last_season(h, ahead[h], at, shared.data() + n[BY_SLOT_]);
                    w = season_theta(group);
                    of_season = inner(w + n[BY_SLOT_], shared.data() + n[BY_SLOT_], n[PLACES_]);
                }
                out[h] = at + inner(w, shared.data(), own_count()) + of_season;
                a[M][(5 * H + now) * H + h] = out[h];
            }
            for (int64_t k = 0; k < n[ERRORS_OF_]; k++) shared[k] = history(3)[N - 1 - k];
            shared[n[ERRORS_OF_]] = 1.0;
            late.observe(row, shared.data());
            late.means(shared.data(), out + H);
            for (int64_t h = 0; h < H; h++) out[H + h] += out[h];
        }
        const double *r = a[RANGES];
        double low = std::fmin(r[0], r[2]), high = std::fmax(r[1], r[3]), length = high - low;
        if (length > 0.0) {
            low = inwards(low - length), high = inwards(high + length);
            for (double &each : means) each = held_in(each, low, high);
        }
        int64_t group_of = n[GROUPS_];
        for (int64_t t = 0; t < T; t++)
            for (int64_t j = 0; j < J; j++) a[SAID][(now * T + t) * J + j] = means[j * H + i[LEADS][t] - 1];
        for (int64_t h = 0; h < H; h++) {
            const double *w = a[WEIGHTS] + i[BLOCK_OF][h] * J;
            double all = 0.0, open = 0.0, own = 0.0;
            for (int64_t j = 0; j < J; j++)
                all += w[j] * means[j * H + h], open += w[j] * a[OPEN][j], own += w[j] * a[OWN][j];
            a[M][(0 * H + now) * H + h] = all;
            a[M][(1 * H + now) * H + h] = open;
            a[M][(4 * H + now) * H + h] = own;
            a[M][(2 * H + now) * H + h] = of_values;
            a[M][(3 * H + now) * H + h] = base[h];
            int64_t group = S ? ahead[h] * group_of / n[SHORT_] : 0;
            double count = a[N_OF][group * H + h];
            a[SIZE][now * H + h] = std::sqrt(a[RECENT_SIZE][h] * (count * a[V][group * H + h] + c[C_LEAN] * a[ALL][h]) /
                                             (count + c[C_LEAN]));
            a[SCORES][now * H + h] = NONE;
        }
        a[ERROR_SUM][now] = 0.0;
        std::copy(a[THETA] + (n[E_] - X), a[THETA] + n[E_], a[BETA] + now * X);
    }

    void yearly(double *to, double year) const {
        to[0] = 0.3 * std::sin(year), to[1] = 0.3 * std::cos(year);
        to[2] = 0.3 * std::sin(2.0 * year), to[3] = 0.3 * std::cos(2.0 * year);
    }

    void small(const double *dev, const int64_t *slots, double level, double year, const double *past, double recent) {
        const double full = 6.283185307179586;
        int64_t count = n[LAGS_];
        std::fill(phi.begin(), phi.end(), 0.0);
        for (int64_t k = 0; k < count; k++) phi[k] = dev[n[N_] - 1 - i[LAGS][k]] - level;
        if (S) {
            double at = full * (double)slots[0] / (double)n[SHORT_], sin = std::sin(at), cos = std::cos(at);
            phi[count] = phi[0] * sin, phi[count + 1] = phi[0] * cos, phi[count + 2] = 0.3 * sin,
            phi[count + 3] = 0.3 * cos;
            at = full * (double)slots[S - 1] / (double)n[LONG_];
            phi[count + 4] = 0.3 * std::sin(at), phi[count + 5] = 0.3 * std::cos(at);
        }
        phi[count + 6] = 0.3;
        phi[count + 7] = recent;
        if (n[YEARLY_]) yearly(&phi[count + 8], year);
        std::copy(past, past + n[PAST_], phi.begin() + (n[FEW_] - n[PAST_]));
    }

    void cosines(double scale) {
        int64_t count = std::min((int64_t)4, n[LAGS_]), width = n[SEEN_];
        for (int64_t k = 0; k < width; k++) {
            double by = k < count + 2 || k == count + 7 ? 1.0 / scale : (k == count + 6 ? 1.0 : 5.0);
            u[k] = held_in(phi[i[SEEN][k]] * by, -6.0, 6.0);
        }
        double size = scale * std::sqrt(2.0 / (double)n[COSINES_]);
        for (int64_t k = 0; k < n[COSINES_]; k++)
            wave[k] = size * std::cos(inner(a[OMEGA] + k * width, u.data(), width) + a[SHIFT][k]);
    }

    void large(const double *values, const int64_t *slots, double level, double year, const double *past,
               double longer) {
        std::fill(phi.begin(), phi.end(), 0.0);
        int64_t at = n[RECENT_], groups = n[GROUPS_];
        for (int64_t k = 0; k < at; k++) phi[k] = values[n[N_] - 1 - i[RECENT][k]] - level;
        if (S) {
            int64_t group = slots[0] * groups / n[SHORT_];
            phi[at + group] = 1.0;
            phi[at + groups + group] = phi[0];
            phi[at + 2 * groups + group] = phi[0] - phi[1];
            phi[at + 3 * groups + group] = longer;
            const double *last = values + n[N_] - 1;
            double before = 0.0;
            for (int64_t k = 0; k < n[SHORT_]; k++) before += last[-n[SHORT_] - k];
            phi[at + 4 * groups + group] = last[0] - last[-n[SHORT_]];
            phi[at + 5 * groups + group] = last[0] - last[-n[LONG_]];
            phi[at + 6 * groups + group] = before / (double)n[SHORT_] - level;
            if (n[YEARLY_])
                phi[at + 7 * groups + group] = 0.3 * std::sin(year),
                                      phi[at + 8 * groups + group] = 0.3 * std::cos(year);
        }
        at += (7 + 2 * n[YEARLY_]) * groups;
        if (S && n[WEEKS_]) {
            phi[at + slots[S - 1] * n[WEEKS_] / n[LONG_]] = 1.0;
            at += n[WEEKS_];
        }
        phi[at] = 1.0;
        phi[at + 1] = longer;
        if (n[YEARLY_]) yearly(&phi[at + 2], year);
        std::copy(past, past + n[PAST_], phi.begin() + (n[LARGE_] - n[PAST_]));
    }
};

static void take(driftgp_series &s) {
    Series series(s);
    const int64_t S = series.S, P = series.n[PAST_];
    const int64_t X = series.X + (series.n[SLOTTED_] ? series.n[BY_SLOT_] - series.own_count() : 0);
    for (; s.first < s.rows; s.first++) {
        const int64_t row = s.first;
        if (!series.take(s.values[row], s.slots + row * S, s.years[row], s.known + row * X, s.past + row * P)) return;
    }
}

}  // namespace forecast

}  // namespace DRIFTGP_LEVEL
