// Algorithm 1, fast-AGP: points come and go, hyperparameters stay.
//
// A point that comes adds a row to N = L⁻¹ and to S, and one that goes is rotated out of both: O(M²), where a factor
// from scratch takes O(M³). Once a turn of the window N is one from scratch.

#pragma once

#include "work.hpp"

namespace DRIFTGP_LEVEL {

inline void Work::follow(const double *x) {
    if (*state.cursor == 0) {  // what is forever added to and subtracted from drifts: once a turn, anew
        open();
        take_points(true);
        sums(false);
        inverse_root(N);
    }
    inside(m, N, Phi, S, one, two, ld);
    double trace = 0.0, *relevances = memory.zeros(ld), *inverse = memory.zeros(ld);
    int *kept = memory.wholes(ld);
    for (int i = 0; i < m; i++) trace += S[size_t(i) * ld + i];
    bool wanted = needed(*state.kappa - trace);
    relevance(relevances, inverse);
    if ((wanted || survivors(relevances, M, rules.published, kept) != m) &&
        !exchange(x, wanted, relevances, inverse, kept)) {
        exchange_anew(x, wanted, relevances, inverse, kept);
        inside(m, N, Phi, S, one, two, ld);
    }
    *state.repaired += settle();
}

inline bool Work::needed(double unexplained) const {
    double noise = 0.0;
    for (int p = 0; p < P; p++) noise += state.noise[p] / P;
    return rules.published ? unexplained / noise > *state.kappa / *state.n : unexplained > *state.kappa / T;
}

// Admit x or not, then drop what has become useless; the newcomer competes with the others. Relevances are those of the
// present points. False, with nothing changed, where N has to be computed anew.
inline bool Work::exchange(const double *x, bool wanted, double *relevances, double *inverse, int *kept) {
    int before = m;
    double *row = memory.take(T);
    if (!kernel.level() || (wanted && !border(x))) return false;  // not level: the jitter, relative to all, is another
    if (wanted) {
        look_at_samples();
        admit(x, row);
        add_to_S();
        add_relevance(relevances, inverse, kernel.diagonal(x));
    }
    int count = survivors(relevances, M, rules.published, kept);
    for (int i = m - 1, left = count, size = m; i >= 0; i--)
        if (left > 0 && kept[left - 1] == i) left--;
        else rotate_out(i, size--);
    close_ranks(x, row, kept, count, before);
    return true;
}

// The same with N from scratch, before and after.
inline void Work::exchange_anew(const double *x, bool wanted, double *relevances, double *inverse, int *kept) {
    int before = m;
    double *row = memory.take(T), *U = state.U, *wide = memory.zeros(size_t(M + 1) * D);
    std::copy_n(U, size_t(m) * D, wide);
    if (wanted) {
        look_at_samples();
        admit(x, row);
        std::copy_n(x, D, wide + size_t(before) * D);
    }
    state.U = wide;  // one point more than the state has room for
    take_points(false);
    int repairs = inverse_root(N);
    inside(m, N, Phi, S, one, two, ld);
    relevance(relevances, inverse);
    state.U = U;
    int all = m, count = survivors(relevances, M, rules.published, kept);
    close_ranks(x, row, kept, count, before);
    if (m < all) take_points(false), repairs = inverse_root(N);
    *state.repaired += repairs;
}

// Points that stay, the newcomer, whose row of Kux is `row`, as the last of them if it stays.
inline void Work::close_ranks(const double *x, const double *row, const int *kept, int count, int before) {
    bool stays = count > 0 && kept[count - 1] == before;
    keep(kept, count, before);
    if (!stays) return;
    std::copy_n(x, D, state.U + size_t(m - 1) * D);
    std::copy_n(row, T, K + size_t(m - 1) * ldK);
}

// Row m of N for x, from k = k(U, x): with l = N k and d² = k(x, x) − |l|² it is (−lᵀN, 1)/d. False if d² is lost.
inline bool Work::border(const double *x) {
    double kxx = kernel.diagonal(x), jitter = rules.jitter * kxx + rules.absolute_jitter, d2 = kxx + jitter;
    double *added = N + size_t(m) * ld, *l = two;
    for (int i = 0; i < m; i++) l[i] = dot(N + size_t(i) * ld, k, i + 1), d2 -= l[i] * l[i];
    if (!(d2 > std::max(0.5 * jitter, 1e-10 * kxx))) return false;
    double f = 1.0 / std::sqrt(d2);
    clear(added, ld);
    for (int i = 0; i < m; i++) axpy(-f * l[i], N + size_t(i) * ld, added, 0, i + 1);
    added[m] = f;
    return true;
}

// The last row and column of S, from those of N and Φ.
inline void Work::add_to_S() {
    int q = m - 1;
    double *added = N + size_t(q) * ld, *v = two;
    clear(v, ld);
    for (int i = 0; i < m; i++) v[i] = dot(Phi + size_t(i) * ld, added, m);
    for (int i = 0; i < m; i++) S[size_t(q) * ld + i] = S[size_t(i) * ld + q] = dot(N + size_t(i) * ld, v, i + 1);
}

// The last point's relevance, and what it changes in the others'.
inline void Work::add_relevance(double *relevances, double *inverse, double kxx) {
    int q = m - 1;
    const double *n = N + size_t(q) * ld, *s = S + size_t(q) * ld;
    if (rules.rule == BY_DIAGONAL) relevances[q] = Phi[size_t(q) * ld + q] / kxx;
    if (rules.rule == BY_CHOLESKY) relevances[q] = s[q];
    if (rules.rule != LEAVE_ONE_OUT) return;
    double *g = two;  // Nᵀ s of the other rows
    clear(g, ld);
    for (int i = 0; i < q; i++) axpy(s[i], N + size_t(i) * ld, g, 0, i + 1);
    for (int i = 0; i < m; i++) {
        double gain = relevances[i] * inverse[i] + n[i] * (2.0 * g[i] + n[i] * s[q]);
        inverse[i] += n[i] * n[i];
        relevances[i] = gain / inverse[i];
    }
}

// Take point r out of N and S, which have this number of rows. Rotations of neighbouring rows gather column r of N in
// the last row, which is then dropped. Those that stay are triangular without the column, and NᵀN is the inverse
// without the point.
inline void Work::rotate_out(int r, int size) {
    Lease lease(memory);
    double *cosines = memory.take(size), *sines = memory.take(size);
    auto rotate = [&](double *A, int j, int columns) {
        double *upper = A + size_t(j) * ld, *lower = upper + ld;
        for (int i = 0; i < columns; i += W) {
            Vec a = load(upper + i), c = load(lower + i);
            store(upper + i, cosines[j] * c - sines[j] * a), store(lower + i, sines[j] * c + cosines[j] * a);
        }
    };
    for (int j = r; j + 1 < size; j++) {
        double a = N[size_t(j) * ld + r], c = N[size_t(j + 1) * ld + r], h = std::sqrt(a * a + c * c);
        cosines[j] = a / h, sines[j] = c / h;
        rotate(N, j, j + 2);
    }
    for (int j = r; j + 1 < size; j++) {
        double *row = N + size_t(j) * ld;
        std::copy(row + r + 1, row + j + 2, row + r);
        row[j + 1] = 0.0;
    }
    clear(N + size_t(size - 1) * ld, ld);
    if (r + 1 == size) return;
    for (int j = r; j + 1 < size; j++) rotate(S, j, size);
    transpose(size, size, S, ld, one, ld);  // S is symmetric: the same for its columns
    for (int j = r; j + 1 < size; j++) rotate(one, j, size);
    std::swap(S, one);
}

}  // namespace DRIFTGP_LEVEL
