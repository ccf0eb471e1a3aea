// Upper triangles of symmetric matrices, row after row, without padding.

#pragma once

#include "memory.hpp"

namespace DRIFTGP_LEVEL {

// Numbers in the upper triangle of an F×F matrix, and where its row i begins.
static inline size_t packed_size(size_t F) { return F * (F + 1) / 2; }
static inline size_t packed_row(size_t F, size_t i) { return i * (2 * F - i + 1) / 2; }

// Between an upper triangle, row after row, and a matrix whose rows lie `ld` apart.
static inline void pack(const double *A, int F, int ld, double *triangle) {
    for (int i = 0; i < F; i++) std::copy_n(A + size_t(i) * ld + i, F - i, triangle + packed_row(F, i));
}
static inline void unpack(const double *triangle, int F, int ld, double *A) {
    for (int i = 0; i < F; i++) std::copy_n(triangle + packed_row(F, i), F - i, A + size_t(i) * ld + i);
}

// One pass through the upper triangle of a symmetric matrix, W rows at a time, so that the vectors of the columns are
// loaded once for all of them. The last vector of a row may overlap the one before it, whose lanes are then left out.
class Triangle {
    const int F;

    double *row(double *triangle, int i) const { return triangle + packed_row(F, i) - i; }
    const double *row(const double *triangle, int i) const { return triangle + packed_row(F, i) - i; }

    // Calls visit(j, first): columns from j on, in which lanes before `first` have been visited.
    template <class Visit>
    void columns_after(int i, Visit visit) const {
        int j = i;
        for (; j + W <= F; j += W) visit(j, 0);
        if (j < F) visit(F - W, W - (F - j));
    }
    // A φ, to which the rows from i on add what they and their mirror images have.
    void times_rows(int i, const double *triangle, const double *phi, double *product) const {
        const double *rows[W];
        Vec own[W], f[W], at = load(phi + i), all_rows = load(product + i);
        for (int r = 0; r < W; r++) {
            rows[r] = row(triangle, i + r), f[r] = all(phi[i + r]);
            Vec c = load(rows[r] + i);
            own[r] = from_lane(c, r) * at, all_rows += f[r] * from_lane(c, r + 1);
        }
        store(product + i, all_rows);
        columns_after(i + W, [&](int j, int first) {
            Vec at = load(phi + j), all_rows = load(product + j);
            for (int r = 0; r < W; r++) {
                Vec c = load(rows[r] + j);
                if (first > 0) c = from_lane(c, first);
                own[r] += c * at, all_rows += f[r] * c;
            }
            store(product + j, all_rows);
        });
        store(product + i, load(product + i) + sums(own));
    }
    // Columns of W rows without Σ_k g_k s_kᵀ, for V vectors of columns from j on.
    template <int V>
    void reduced(double *const *rows, int i, int j, const double *g, const double *s, int count, double inverse,
                 Vec (*c)[V]) const {
        for (int r = 0; r < W; r++)
            for (int v = 0; v < V; v++) c[r][v] = load(rows[r] + j + v * W);
        for (int k = 0; k < count; k++) {
            const double *one = g + size_t(k) * F + i, *other = s + size_t(k) * F + j;
            Vec at[V];
            for (int v = 0; v < V; v++) at[v] = load(other + v * W);
            for (int r = 0; r < W; r++)
                for (int v = 0; v < V; v++) c[r][v] -= one[r] * at[v];
        }
        for (int r = 0; r < W; r++)
            for (int v = 0; v < V; v++) c[r][v] *= inverse;
    }
    void lose_rows(int i, double *triangle, const double *g, const double *s, int count, double inverse) const {
        double *rows[W];
        Vec one[W][1], three[W][3];
        for (int r = 0; r < W; r++) rows[r] = row(triangle, i + r);
        auto put_from = [&](int r, int j, int first) {
            store(rows[r] + j, from_lane(one[r][0], first, load(rows[r] + j)));
        };
        reduced<1>(rows, i, i, g, s, count, inverse, one);
        for (int r = 0; r < W; r++) put_from(r, i, r);
        int j = i + W;
        for (; j + 3 * W <= F; j += 3 * W) {
            reduced<3>(rows, i, j, g, s, count, inverse, three);
            for (int r = 0; r < W; r++)
                for (int v = 0; v < 3; v++) store(rows[r] + j + v * W, three[r][v]);
        }
        columns_after(j, [&](int j, int first) {
            reduced<1>(rows, i, j, g, s, count, inverse, one);
            for (int r = 0; r < W; r++) put_from(r, j, first);
        });
    }

  public:
    explicit Triangle(int F) : F(F) {}
    void times(const double *triangle, const double *phi, double *product) const {
        std::fill_n(product, F, 0.0);
        int i = 0;
        for (; i + W <= F; i += W) times_rows(i, triangle, phi, product);
        for (; i < F; i++) {
            const double *own = row(triangle, i);
            product[i] += own[i] * phi[i];
            for (int j = i + 1; j < F; j++) product[i] += own[j] * phi[j], product[j] += own[j] * phi[i];
        }
    }
    // Becomes (A − Σ_k γ_k g_k g_kᵀ) · inverse.
    void lose(double *triangle, const double *g, const double *gain, int count, double inverse, Memory &memory) const {
        Lease lease(memory);
        double *s = memory.take(size_t(count) * F);
        for (int k = 0; k < count; k++)
            for (int i = 0; i < F; i++) s[size_t(k) * F + i] = gain[k] * g[size_t(k) * F + i];
        int i = 0;
        for (; i + W <= F; i += W) lose_rows(i, triangle, g, s, count, inverse);
        for (; i < F; i++)
            for (int j = i; j < F; j++) {
                double &c = row(triangle, i)[j];
                for (int k = 0; k < count; k++) c -= g[size_t(k) * F + i] * s[size_t(k) * F + j];
                c *= inverse;
            }
    }
    double trace(const double *triangle) const {
        double all = 0.0;
        for (int i = 0; i < F; i++) all += triangle[packed_row(F, i)];
        return all;
    }
    // Column i, and so row i.
    void column(const double *triangle, int i, double *to) const {
        for (int j = 0; j < i; j++) to[j] = row(triangle, j)[i];
        std::copy_n(row(triangle, i) + i, F - i, to + i);
    }
};

}  // namespace DRIFTGP_LEVEL
