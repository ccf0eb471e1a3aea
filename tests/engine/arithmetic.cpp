// The arithmetic of the engine against plain loops and the standard library: products, factors, laws.
//
// Compiled and run by test_arithmetic.py, once for each kind of processor. Prints what is wrong; its code says whether.

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "laws.hpp"
#include "products.hpp"
#include "triangle.hpp"

using namespace DRIFTGP_LEVEL;

namespace {

int wrong = 0;
std::mt19937_64 generator(0);

void near(const char *what, int size, double found, double expected, double tolerance) {
    if (std::fabs(found - expected) <= tolerance * std::max(1.0, std::fabs(expected))) return;
    wrong++;
    std::printf("%s at size %d: %.17g, where %.17g was expected\n", what, size, found, expected);
}

// A matrix whose rows are padded to whole vectors, and begin where a whole vector need not.
struct Matrix {
    int rows, columns, ld;
    std::vector<double> numbers;

    Matrix(int rows, int columns) : rows(rows), columns(columns), ld(padded(columns)), numbers(size_t(rows) * ld + W) {}
    double *data() { return numbers.data(); }
    double &operator()(int i, int j) { return numbers[size_t(i) * ld + j]; }
    double operator()(int i, int j) const { return numbers[size_t(i) * ld + j]; }
};

Matrix random_matrix(int rows, int columns) {
    std::normal_distribution<double> normal;
    Matrix A(rows, columns);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) A(i, j) = normal(generator);
    return A;
}

Matrix turned(const Matrix &A) {
    Matrix B(A.columns, A.rows);
    for (int i = 0; i < A.rows; i++)
        for (int j = 0; j < A.columns; j++) B(j, i) = A(i, j);
    return B;
}

Matrix plain_product(const Matrix &A, const Matrix &B) {
    Matrix C(A.rows, B.columns);
    for (int i = 0; i < A.rows; i++)
        for (int j = 0; j < B.columns; j++)
            for (int k = 0; k < A.columns; k++) C(i, j) += A(i, k) * B(k, j);
    return C;
}

void alike(const char *what, const Matrix &found, const Matrix &expected, double tolerance = 1e-12) {
    for (int i = 0; i < expected.rows; i++)
        for (int j = 0; j < expected.columns; j++) near(what, expected.rows, found(i, j), expected(i, j), tolerance);
}

// A symmetric matrix with eigenvalues of 1 and more.
Matrix positive(int m) {
    Matrix A = random_matrix(m, m), B = plain_product(A, turned(A));
    for (int i = 0; i < m; i++) B(i, i) += 1.0;
    return B;
}

void products(int rows, int columns, int inner) {
    Matrix A = random_matrix(rows, inner), B = random_matrix(inner, columns), expected = plain_product(A, B);
    Matrix C(rows, columns), A_turned = turned(A), B_turned = turned(B);
    product<false>(rows, columns, inner, A.data(), A.ld, B.data(), B.ld, C.data(), C.ld);
    alike("product", C, expected);
    product<true>(rows, columns, inner, A_turned.data(), A_turned.ld, B.data(), B.ld, C.data(), C.ld);
    alike("product with A turned", C, expected);
    product<false>(rows, columns, inner, A.data(), A.ld, B.data(), B.ld, C.data(), C.ld, FIRST, LAST, SUBTRACT);
    alike("product subtracted", C, Matrix(rows, columns));
    Matrix by_dots(rows, columns);
    dots(rows, columns, A.data(), B_turned.data(), A.ld, by_dots.data(), by_dots.ld, A.ld);
    alike("dots", by_dots, expected);
    Matrix there(columns, rows);
    transpose(rows, columns, expected.data(), expected.ld, there.data(), there.ld);
    alike("transpose", there, turned(expected), 0.0);
}

void factors(int m) {
    Matrix A = positive(m), R = A, N(m, m);
    if (!factorise(m, R.data(), R.ld)) near("factorise", m, 0.0, 1.0, 0.0);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < i; j++) R(i, j) = 0.0;
    alike("RᵀR", plain_product(turned(R), R), A, 1e-11);
    invert(m, R.data(), N.data(), N.ld);
    Matrix unit(m, m);
    for (int i = 0; i < m; i++) unit(i, i) = 1.0;
    alike("N Rᵀ", plain_product(N, turned(R)), unit, 1e-10);
    Matrix S = positive(m), found(m, m), one(m, m), two(m, m);
    outside(m, N.data(), S.data(), found.data(), one.data(), S.ld);
    alike("NᵀSN", found, plain_product(plain_product(turned(N), S), N), 1e-10);
    inside(m, N.data(), S.data(), found.data(), one.data(), two.data(), S.ld);
    alike("NSNᵀ", found, plain_product(plain_product(N, S), turned(N)), 1e-10);
    A(m - 1, m - 1) = -1.0;
    if (factorise(m, A.data(), A.ld)) near("a matrix that has no factor", m, 1.0, 0.0, 0.0);
    A(0, 0) = NAN;
    if (factorise(m, A.data(), A.ld)) near("NaN", m, 1.0, 0.0, 0.0);
}

void triangles(int F) {
    const int count = 3;
    const double gain[] = {0.5, 2.0, 0.1}, inverse = 1.25;
    Matrix A = positive(F), g = random_matrix(count, F), phi = random_matrix(F, 1);
    // numbers before and behind the triangle, to see whether they stay; vectors without padding
    std::vector<double> kept(packed_size(F) + 2 * W, -7.0), changes, x, product(F + W, -7.0);
    double *triangle = kept.data() + W;
    pack(A.data(), F, A.ld, triangle);
    for (int i = 0; i < F; i++) x.push_back(phi(i, 0));
    for (int k = 0; k < count; k++)
        for (int i = 0; i < F; i++) changes.push_back(g(k, i));
    Triangle(F).times(triangle, x.data(), product.data());
    for (int i = 0; i < F; i++) near("triangle times", F, product[i], plain_product(A, phi)(i, 0), 1e-12);
    for (int j = 0; j < F; j++) {
        std::vector<double> column(F);
        Triangle(F).column(triangle, j, column.data());
        for (int i = 0; i < F; i++) near("column of a triangle", F, column[i], A(i, j), 0.0);
    }
    Memory memory;
    Triangle(F).lose(triangle, changes.data(), gain, count, inverse, memory);
    Matrix rest(F, F), expected(F, F);
    unpack(triangle, F, rest.ld, rest.data());
    for (int i = 0; i < F; i++)
        for (int j = i; j < F; j++) {
            expected(i, j) = A(i, j);
            for (int k = 0; k < count; k++) expected(i, j) -= gain[k] * g(k, i) * g(k, j);
            expected(i, j) *= inverse;
        }
    alike("triangle without changes", rest, expected);
    for (int i = 0; i < W; i++) {
        near("before a triangle", F, kept[i], -7.0, 0.0),
            near("behind a triangle", F, *(kept.end() - 1 - i), -7.0, 0.0);
        near("behind a product", F, product[F + i], -7.0, 0.0);
    }
}

void lanes() {
    Vec rows[W];
    double expected[W];
    for (int r = 0; r < W; r++) {
        expected[r] = 0.0;
        for (int l = 0; l < W; l++) expected[r] += rows[r][l] = std::sin(1.0 + r + 10.0 * l);
    }
    Vec found = sums(rows);
    for (int r = 0; r < W; r++) near("sums over lanes", r, found[r], expected[r], 1e-14);
    for (int n = 0; n < 6 * W; n++) {
        std::vector<double> a(n), b(n);
        double product = 0.0, sum = 0.0;
        for (int i = 0; i < n; i++) a[i] = i + 1.0, b[i] = 1.0 / (i + 2.0), product += a[i] * b[i], sum += a[i];
        near("dot without padding", n, loose_dot(a.data(), b.data(), n), product, 1e-14);
        near("sum without padding", n, loose_dot(a.data(), nullptr, n), sum, 1e-14);
    }
}

void functions() {
    for (double x = 0.0; x < 700.0; x = 1.1 * x + 1e-3)
        near("exp", 0, exponential(all(-x))[0] / std::exp(-x), 1.0, 1e-15);
    for (double u = 1e-300; u < 1e300; u *= 7.7) near("log1p", 0, log_one_plus(all(u))[0] / std::log1p(u), 1.0, 1e-15);
    for (double x = -3.0; x < 3.0; x += 0.01) {
        SineCosine found = sine_cosine(all(x));
        near("sin cos", 0, found.sine[0] * found.cosine[0], 0.5 * std::sin(2.0 * M_PI * x), 1e-14);
        near("sin²", 0, found.sine[0] * found.sine[0], std::pow(std::sin(M_PI * x), 2), 1e-14);
    }
}

double slope(const std::function<double(double)> &value, double x) {
    double step = 1e-5;
    return (value(x + step) - value(x - step)) / (2.0 * step);
}

void laws() {
    for (double z = -8.0; z <= 5.0; z += 0.1) near("quantile", 0, normal_quantile(normal_cdf(z)), z, 1e-9);
    for (double z = -60.0; z <= 0.0; z += 0.3) near("score", 0, lower_score(normal_log_cdf(z)), z, 1e-10);
    for (double z = -60.0; z <= 3.0; z += 0.3)
        near("log cdf", 0, slope(normal_log_cdf, z), std::exp(normal_log_pdf(z) - normal_log_cdf(z)), 1e-6);

    const double weights[] = {0.5, 0.3, 0.2}, numbers[] = {0.0, 3.0, -1.0, 1.0, 0.25, 4.0};  // means, then variances
    const size_t at[] = {0, 1, 2};
    Mixture mixture(3, weights, numbers, at, 3);
    for (double z = -40.0; z <= 40.0; z += 0.25) near("mixture", 0, mixture.to_normal(mixture.from_normal(z)), z, 1e-9);
    for (double y = -4.0; y <= 5.0; y += 0.1) {
        double density = slope([&](double x) { return normal_cdf(mixture.to_normal(x)); }, y);
        near("density of a mixture", 0, std::exp(mixture.log_prob(y)), density, 1e-7);
    }

    const double x[] = {1.0, 2.0}, y[] = {1.5, 1.8};
    Lines lines({x, 1}, {y, 1}, 2), inverse({y, 1}, {x, 1}, 2);
    for (double u = 0.0; u <= 5.0; u += 0.1) {
        near("lines", 0, inverse.value(lines.value(u)), u, 1e-13);
        near("slope of lines", 0, lines.slope(u) * inverse.slope(lines.value(u)), 1.0, 1e-13);
    }
}

}  // namespace

int main() {
    for (int rows : {1, 3, 4, 5, 8, 17})
        for (int columns : {1, 2, 4, 7, 12, 25, 49})
            for (int inner : {1, 2, 9, 24, 31}) products(rows, columns, inner);
    for (int m : {1, 2, 3, 8, 23, 24, 25, 60}) factors(m);
    for (int F = 1; F < 8 * W; F++) triangles(F);
    lanes();
    functions();
    laws();
    return wrong > 0;
}
