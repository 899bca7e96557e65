/* test_factors.c: eigh, svd, qr, lstsq, lu, cholesky and solve: what their factors multiply to,
 * matrices that LAPACK must not see, bits, its code before and after large matrices, and processes that have none. */
#include "support/kernel_call.h"
#include "support/subject.h"

#include "base/file.h"
#include "kernels/cpu/lapack.h"
#include "memory/process.h"

#include <snug/record.h>

#include <dlfcn.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- small products ---------------------------------------------------------------------------- */
/* Element (i, j) of matrix k of a view. */
static double at(const snug_view *v, int64_t k, int64_t i, int64_t j) {
    const int64_t *d = v->type.dims + v->type.rank - 2;
    return sn_view_get(v, (k * d[0] + i) * d[1] + j);
}

static int64_t rows(const snug_view *v) {
    return v->type.dims[v->type.rank - 2];
}

static int64_t columns(const snug_view *v) {
    return v->type.dims[v->type.rank - 1];
}

static double epsilon(const snug_view *v) {
    return v->type.dtype == SNUG_F64 ? DBL_EPSILON : FLT_EPSILON;
}

/* Columns of q, or with `of_rows` its rows, are of unit length and at right angles. */
static void expect_right_angles(const snug_view *q, int64_t k, bool of_rows) {
    const int64_t n = of_rows ? rows(q) : columns(q), m = of_rows ? columns(q) : rows(q);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = i == j ? -1 : 0;
            for (int64_t l = 0; l < m; l++)
                sum += of_rows ? at(q, k, i, l) * at(q, k, j, l) : at(q, k, l, i) * at(q, k, l, j);
            if (fabs(sum) > 20 * (double)(m + 1) * epsilon(q))
                fail_msg("[%lld,%lld]: off by %g", (long long)i, (long long)j, sum);
        }
}

/* a = left diag(s) right; s NULL: ones. Elements are up to 1. */
static void expect_product(const snug_view *a, int64_t k, const snug_view *left, const snug_view *s,
                           const snug_view *right) {
    const int64_t n = s ? s->type.dims[s->type.rank - 1] : columns(left);
    for (int64_t i = 0; i < rows(a); i++)
        for (int64_t j = 0; j < columns(a); j++) {
            double sum = -at(a, k, i, j);
            for (int64_t l = 0; l < n; l++)
                sum += at(left, k, i, l) * (s ? sn_view_get(s, k * n + l) : 1) * at(right, k, l, j);
            if (fabs(sum) > 30 * (double)(n + 1) * epsilon(a))
                fail_msg("[%lld,%lld]: off by %g", (long long)i, (long long)j, sum);
        }
}

static void expect_order(const snug_view *w, int64_t n_matrices, int direction) {
    const int64_t n = w->type.dims[w->type.rank - 1];
    for (int64_t k = 0; k < n_matrices; k++)
        for (int64_t i = 1; i < n; i++) {
            const double step = sn_view_get(w, k * n + i) - sn_view_get(w, k * n + i - 1);
            assert_true(direction * step >= 0);
        }
}

static int64_t count(const snug_view *v) {
    return sn_type_span(&v->type, 0, v->type.rank - 2);
}

/* Of cholesky the matrices are positive definite. */
static void open_call(sn_test_call *k, const char *op, const char *attrs, const char *types) {
    const sn_kernel_case c = {.op = op, .attrs = attrs, .types = types, .param = {1e-5}};
    sn_kernel_open(k, &c, 3);
    const snug_view *a = &k->in[0];
    const int64_t n = rows(a);
    for (int64_t i = 0; i < sn_view_count(a) && strcmp(op, "cholesky") == 0; i++)
        if (i / n % n == i % n)
            sn_view_put(a, i, sn_view_get(a, i) + (double)n);
}

/* --- what they multiply to --------------------------------------------------------------------- */
static void test_eigh_takes_symmetric_matrices_apart(void **state) {
    (void)state;
    static const char *const types[] = {"f64[2,7,7]", "f32[40,40]", "f64[70,70]", "f32[3,1,1]"};
    for (int c = 0; c < 4; c++) {
        sn_test_call k;
        open_call(&k, "eigh", "", types[c]);
        sn_kernel_call(&k, k.family->run, 2, false);
        const snug_view *a = &k.in[0], *w = &k.out[0], *v = &k.out[1];
        for (int64_t m = 0; m < count(a); m++) {
            expect_right_angles(v, m, false);
            for (int64_t i = 0; i < rows(a); i++) /* a v = w v; of a the lower triangle counts */
                for (int64_t j = 0; j < rows(a); j++) {
                    double sum = -sn_view_get(w, m * rows(a) + j) * at(v, m, i, j);
                    for (int64_t l = 0; l < rows(a); l++)
                        sum += at(a, m, i > l ? i : l, i > l ? l : i) * at(v, m, l, j);
                    assert_true(fabs(sum) < 30 * (double)(rows(a) + 1) * epsilon(a));
                }
        }
        expect_order(w, count(a), 1);
        sn_kernel_close(&k);
    }
}

static void test_svd_takes_matrices_apart(void **state) {
    (void)state;
    static const char *const types[] = {"f64[2,7,4]", "f64[4,7]", "f32[60,33]", "f32[2,33,60]",
                                        "f64[81,80]"};
    for (int c = 0; c < 10; c++) {
        sn_test_call k, values;
        open_call(&k, "svd", c < 5 ? "vectors=1" : "vectors=1 whole=1", types[c % 5]);
        open_call(&values, "svd", "", types[c % 5]);
        sn_kernel_call(&k, k.family->run, 2, false);
        sn_kernel_call(&values, k.family->run, 2, false);
        for (int64_t m = 0; m < count(&k.in[0]); m++) {
            expect_product(&k.in[0], m, &k.out[1], &k.out[0], &k.out[2]);
            expect_right_angles(&k.out[1], m, false);
            expect_right_angles(&k.out[2], m, true);
        }
        expect_order(&k.out[0], count(&k.in[0]), -1);
        for (int64_t i = 0; i < sn_view_count(&k.out[0]); i++)
            assert_true(fabs(sn_view_get(&k.out[0], i) - sn_view_get(&values.out[0], i)) <
                        100 * epsilon(&k.in[0]));
        sn_kernel_close(&k);
        sn_kernel_close(&values);
    }
}

static void test_qr_takes_matrices_apart(void **state) {
    (void)state;
    static const char *const types[] = {"f64[2,7,4]", "f64[4,7]", "f32[60,33]", "f32[2,33,60]",
                                        "f64[140,139]"};
    for (int c = 0; c < 10; c++) {
        sn_test_call k;
        open_call(&k, "qr", c < 5 ? "" : "whole=1", types[c % 5]);
        sn_kernel_call(&k, k.family->run, 2, false);
        const snug_view *r = &k.out[1];
        for (int64_t m = 0; m < count(&k.in[0]); m++) {
            expect_product(&k.in[0], m, &k.out[0], NULL, r);
            expect_right_angles(&k.out[0], m, false);
            for (int64_t i = 0; i < rows(r); i++)
                for (int64_t j = 0; j < columns(r) && j < i; j++)
                    assert_true(at(r, m, i, j) == 0);
        }
        sn_kernel_close(&k);
    }
}

/* TensorFlow's: the first column of q points against the first of the matrix where that begins
 * positive. */
static void test_qr_has_the_signs_of_householder(void **state) {
    (void)state;
    sn_test_call k;
    open_call(&k, "qr", "", "f64[2,2]");
    static const double a[] = {3, 1, 4, 2};
    for (int i = 0; i < 4; i++)
        sn_view_put(&k.in[0], i, a[i]);
    sn_kernel_call(&k, k.family->run, 1, false);
    static const double q[] = {-0.6, -0.8, -0.8, 0.6}, r[] = {-5, -2.2, 0, 0.4};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(sn_view_get(&k.out[0], i) - q[i]) < 1e-14);
        assert_true(fabs(sn_view_get(&k.out[1], i) - r[i]) < 1e-14);
    }
    sn_kernel_close(&k);
}

/* Whole rows change places: [order[i]] of a is row i of l u, and no factor is larger than 1. */
static void expect_elimination(const sn_test_call *k, int64_t m) {
    const snug_view *a = &k->in[0], *f = &k->out[0], *order = &k->out[1];
    const int64_t n = rows(a);
    double sign = sn_view_get(&k->out[2], m);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = (int64_t)sn_view_get(order, m * n + i);
        assert_true(row >= 0 && row < n);
        for (int64_t j = 0; j < n; j++) {
            double sum = -at(a, m, row, j) + (i <= j ? at(f, m, i, j) : 0);
            for (int64_t l = 0; l < i && l <= j; l++)
                sum += at(f, m, i, l) * at(f, m, l, j);
            assert_true(fabs(sum) < 30 * (double)(n + 1) * epsilon(a));
            assert_true(j >= i || fabs(at(f, m, i, j)) <= 1);
        }
        sign *= at(f, m, i, i) < 0 ? -1 : 1;
        for (int64_t l = 0; l < i; l++) /* a pair in the wrong order turns the sign */
            sign *= sn_view_get(order, m * n + l) > (double)row ? -1 : 1;
    }
    assert_true(sign == 1);
}

static void test_lu_takes_matrices_apart(void **state) {
    (void)state;
    static const char *const types[] = {"f64[5,2,2]", "f64[7,4,4]", "f32[40,40]", "f64[150,150]",
                                        "f32[3,1,1]"};
    for (int c = 0; c < 5; c++) {
        sn_test_call k;
        open_call(&k, "lu", "", types[c]);
        sn_kernel_call(&k, k.family->run, 2, false);
        for (int64_t m = 0; m < count(&k.in[0]); m++)
            expect_elimination(&k, m);
        sn_kernel_close(&k);
    }
}

/* l l^T is what the lower triangle says; above its diagonal l is 0. */
static void test_cholesky_takes_positive_matrices_apart(void **state) {
    (void)state;
    static const char *const types[] = {"f64[7,4,4]", "f32[40,40]", "f64[150,150]", "f32[3,1,1]"};
    for (int c = 0; c < 4; c++) {
        sn_test_call k;
        open_call(&k, "cholesky", "", types[c]);
        sn_kernel_call(&k, k.family->run, 2, false);
        const snug_view *a = &k.in[0], *f = &k.out[0];
        for (int64_t m = 0; m < count(a); m++)
            for (int64_t i = 0; i < rows(a); i++)
                for (int64_t j = 0; j < rows(a); j++) {
                    double sum = -at(a, m, i, j);
                    for (int64_t l = 0; l <= j; l++)
                        sum += at(f, m, i, l) * at(f, m, j, l);
                    assert_true(j > i ? at(f, m, i, j) == 0
                                      : fabs(sum) <
                                            30 * (double)rows(a) * epsilon(a) * at(a, m, i, i));
                }
        sn_kernel_close(&k);
    }
}

/* Its neighbours have their factors. */
static void test_cholesky_of_no_positive_matrix_is_nan(void **state) {
    (void)state;
    const double last[] = {0, -1};
    for (int c = 0; c < 2; c++) {
        sn_test_call k, good;
        open_call(&k, "cholesky", "", "f64[3,4,4]");
        open_call(&good, "cholesky", "", "f64[3,4,4]");
        for (int64_t i = 0; i < 4; i++)
            sn_view_put(&k.in[0], 16 + 12 + i, i == 3 ? last[c] : 0);
        sn_kernel_call(&k, k.family->run, 1, false);
        sn_kernel_call(&good, k.family->run, 1, false);
        for (int64_t i = 0; i < 48; i++)
            if (i / 16 == 1)
                assert_true(isnan(sn_view_get(&k.out[0], i)));
            else
                assert_true(sn_view_get(&k.out[0], i) == sn_view_get(&good.out[0], i));
        sn_kernel_close(&k);
        sn_kernel_close(&good);
    }
}

/* --- equations --------------------------------------------------------------------------------- */
/* Element (i, j) of what solve reads of matrix m; only a triangle, or of the transposed. */
static double read_at(const sn_test_call *k, int64_t m, int64_t i, int64_t j) {
    const sn_attrs_solve *s = &k->d.attrs.solve;
    const int64_t row = s->adjoint ? j : i, column = s->adjoint ? i : j;
    if ((s->lower && column > row) || (s->upper && column < row))
        return 0;
    return s->unit && i == j ? 1 : at(&k->in[0], m, row, column);
}

/* A triangle has a strong diagonal, and what is not read is no number. */
static void prepare_triangles(const sn_test_call *k) {
    const sn_attrs_solve *s = &k->d.attrs.solve;
    const snug_view *a = &k->in[0];
    const int64_t n = rows(a);
    for (int64_t e = 0; e < sn_view_count(a) && (s->lower || s->upper); e++) {
        const int64_t i = e / n % n, j = e % n;
        const bool hidden = s->lower ? j > i : j < i;
        const double value = sn_view_get(a, e);
        sn_view_put(a, e, hidden || (s->unit && i == j) ? NAN : i == j ? 2 + value : value / 40);
    }
}

static void expect_solution(const sn_test_call *k, int64_t m) {
    const snug_view *b = &k->in[1], *x = &k->out[0];
    for (int64_t i = 0; i < rows(b); i++)
        for (int64_t j = 0; j < columns(b); j++) {
            double sum = -at(b, m, i, j), size = 1;
            for (int64_t l = 0; l < rows(b); l++) {
                sum += read_at(k, m, i, l) * at(x, m, l, j);
                size += fabs(at(x, m, l, j));
            }
            if (!(fabs(sum) < 30 * size * epsilon(b)))
                fail_msg("[%lld,%lld]: off by %g", (long long)i, (long long)j, sum);
        }
    if (k->d.n_out > 1)
        assert_true(sn_view_get(&k->out[1], m) == 1);
}

static void test_solve_solves(void **state) {
    (void)state;
    static const char *const attrs[] = {"",
                                        "adjoint=1",
                                        "lower=1",
                                        "upper=1",
                                        "lower=1 adjoint=1",
                                        "upper=1 adjoint=1",
                                        "lower=1 unit=1",
                                        "upper=1 adjoint=1 unit=1"},
                             *const types[] = {"f64[5,2,2] f64[5,2,3]", "f64[7,4,4] f64[7,4,1]",
                                               "f32[40,40] f32[40,50]", "f64[150,150] f64[150,2]",
                                               "f32[3,1,1] f32[3,1,2]", "f64[3,3] f64[3,0]"};
    for (int c = 0; c < 8 * 6; c++) {
        sn_test_call k;
        open_call(&k, "solve", attrs[c / 6], types[c % 6]);
        prepare_triangles(&k);
        sn_kernel_call(&k, k.family->run, 2, false);
        assert_int_equal(k.d.n_out, c / 6 < 2 ? 2 : 1);
        for (int64_t m = 0; m < count(&k.in[0]); m++)
            expect_solution(&k, m);
        sn_kernel_close(&k);
    }
}

/* [1 2; 2 4]: lu has its factors, with a pivot and a sign of 0; solve has nothing. */
static void test_singular_matrices_are_told(void **state) {
    (void)state;
    static const double a[] = {1, 2, 2, 4};
    sn_test_call lu, x;
    open_call(&lu, "lu", "", "f64[2,2]");
    open_call(&x, "solve", "", "f64[2,2] f64[2,1]");
    for (int i = 0; i < 4; i++) {
        sn_view_put(&lu.in[0], i, a[i]);
        sn_view_put(&x.in[0], i, a[i]);
    }
    sn_kernel_call(&lu, lu.family->run, 1, false);
    sn_kernel_call(&x, x.family->run, 1, false);
    static const double factors[] = {2, 4, 0.5, 0};
    for (int i = 0; i < 4; i++)
        assert_true(sn_view_get(&lu.out[0], i) == factors[i]);
    assert_true(sn_view_get(&lu.out[1], 0) == 1 && sn_view_get(&lu.out[1], 1) == 0);
    assert_true(sn_view_get(&lu.out[2], 0) == 0);
    assert_true(isnan(sn_view_get(&x.out[0], 0)) && isnan(sn_view_get(&x.out[0], 1)));
    assert_true(isnan(sn_view_get(&x.out[1], 0)));
    sn_kernel_close(&lu);
    sn_kernel_close(&x);
}

/* What is no number in a right side stays in its column; there still is a solution. */
static void test_right_sides_are_apart(void **state) {
    (void)state;
    sn_test_call k, good;
    open_call(&k, "solve", "", "f64[5,5] f64[5,3]");
    open_call(&good, "solve", "", "f64[5,5] f64[5,3]");
    sn_view_put(&k.in[1], 7, NAN);
    sn_kernel_call(&k, k.family->run, 1, false);
    sn_kernel_call(&good, k.family->run, 1, false);
    for (int64_t i = 0; i < 15; i++)
        if (i % 3 == 1)
            assert_true(isnan(sn_view_get(&k.out[0], i)));
        else
            assert_true(sn_view_get(&k.out[0], i) == sn_view_get(&good.out[0], i));
    assert_true(sn_view_get(&k.out[1], 0) == 1);
    sn_kernel_close(&k);
    sn_kernel_close(&good);
}

/* --- least squares ----------------------------------------------------------------------------- */
/* The rest of the right side is at right angles to the columns of a. */
static void test_lstsq_leaves_the_least(void **state) {
    (void)state;
    static const char *const types[] = {"f64[2,7,4] f64[2,7,3]", "f64[4,7] f64[4,1]",
                                        "f64[60,33] f64[60,2]", "f64[33,60] f64[33,2]"};
    for (int c = 0; c < 4; c++) {
        sn_test_call k;
        open_call(&k, "lstsq", "", types[c]);
        sn_kernel_call(&k, k.family->run, 2, false);
        const snug_view *a = &k.in[0], *b = &k.in[1], *x = &k.out[0];
        for (int64_t m = 0; m < count(a); m++)
            for (int64_t j = 0; j < columns(b); j++)
                for (int64_t p = 0; p < columns(a); p++) {
                    double product = 0;
                    for (int64_t i = 0; i < rows(a); i++) {
                        double left = at(b, m, i, j);
                        for (int64_t l = 0; l < columns(a); l++)
                            left -= at(a, m, i, l) * at(x, m, l, j);
                        product += at(a, m, i, p) * left;
                    }
                    assert_true(fabs(product) < 1e-11);
                }
        sn_kernel_close(&k);
    }
}

/* [1 1; 1 1] x = [2; 4]: of all x with x0 + x1 = 3 the shortest. */
static void test_lstsq_of_a_singular_matrix_is_the_shortest(void **state) {
    (void)state;
    sn_test_call k;
    open_call(&k, "lstsq", "", "f32[2,2] f32[2,1]");
    for (int i = 0; i < 4; i++)
        sn_view_put(&k.in[0], i, 1);
    sn_view_put(&k.in[1], 0, 2);
    sn_view_put(&k.in[1], 1, 4);
    sn_kernel_call(&k, k.family->run, 1, false);
    assert_true(fabs(sn_view_get(&k.out[0], 0) - 1.5) < 1e-5);
    assert_true(fabs(sn_view_get(&k.out[0], 1) - 1.5) < 1e-5);
    sn_kernel_close(&k);
}

/* diag(1, 1e-3) x = [1; 1]: 1000 counts, unless the cut takes it. */
static void test_the_cut_says_what_is_zero(void **state) {
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        sn_test_call k;
        open_call(&k, "lstsq", "", "f64[2,2] f64[2,1]");
        static const double a[] = {1, 0, 0, 1e-3};
        for (int i = 0; i < 4; i++)
            sn_view_put(&k.in[0], i, a[i]);
        sn_view_put(&k.in[1], 0, 1);
        sn_view_put(&k.in[1], 1, 1);
        k.param[0].real = cut ? 1e-2 : 1e-4;
        sn_kernel_call(&k, k.family->run, 1, false);
        assert_true(fabs(sn_view_get(&k.out[0], 0) - 1) < 1e-12);
        assert_true(fabs(sn_view_get(&k.out[0], 1) - (cut ? 0 : 1000)) < 1e-9);
        sn_kernel_close(&k);
    }
}

/* --- matrices that LAPACK must not see --------------------------------------------------------- */
static const struct {
    const char *op, *attrs, *types;
} all[] = {{"eigh", "", "f64[3,40,40]"},
           {"svd", "vectors=1", "f32[3,50,30]"},
           {"svd", "vectors=1 whole=1", "f64[3,30,50]"},
           {"svd", "", "f64[3,30,50]"},
           {"qr", "", "f64[3,50,30]"},
           {"qr", "whole=1", "f32[3,50,30]"},
           {"qr", "", "f32[3,30,50]"},
           {"lstsq", "", "f64[3,50,30] f64[3,50,2]"},
           {"lstsq", "", "f32[3,30,50] f32[3,30,2]"},
           {"lu", "", "f64[3,40,40]"},
           {"cholesky", "", "f32[3,40,40]"},
           {"solve", "", "f64[3,40,40] f64[3,40,9]"},
           {"solve", "adjoint=1", "f32[3,40,40] f32[3,40,2]"}};
enum { N_ALL = sizeof all / sizeof *all };

/* Outputs of a matrix with something in it that is no number are NaN; its neighbours are as before.
 * LAPACK ends the process where it meets one. */
static void test_what_is_not_finite_stays_apart(void **state) {
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int c = 0; c < N_ALL * 3; c++) {
        sn_test_call k, good;
        open_call(&k, all[c / 3].op, all[c / 3].attrs, all[c / 3].types);
        open_call(&good, all[c / 3].op, all[c / 3].attrs, all[c / 3].types);
        const snug_view *in = &k.in[k.d.op == SN_OP_lstsq ? 1 : 0];
        const int64_t area = sn_view_count(in) / 3;
        sn_view_put(in, 2 * area - 1, bad[c % 3]); /* the last element of the second */
        sn_kernel_call(&k, k.family->run, 2, false);
        sn_kernel_call(&good, k.family->run, 2, false);
        for (int o = 0; o < k.d.n_out; o++) {
            const int64_t n = sn_view_count(&k.out[o]) / 3;
            const bool real = sn_dtype_is_float(k.out[o].type.dtype);
            for (int64_t i = 0; i < 3 * n; i++)
                if (i / n == 1)
                    assert_true(real ? isnan(sn_view_get(&k.out[o], i))
                                     : sn_view_get(&k.out[o], i) == (double)(i % n));
                else
                    assert_true(sn_view_get(&k.out[o], i) == sn_view_get(&good.out[o], i));
        }
        sn_kernel_close(&k);
        sn_kernel_close(&good);
    }
}

/* Above the diagonal eigh reads nothing: what stands there may be anything. */
static void test_eigh_reads_the_lower_triangle(void **state) {
    (void)state;
    sn_test_call k, other;
    open_call(&k, "eigh", "", "f64[9,9]");
    open_call(&other, "eigh", "", "f64[9,9]");
    for (int64_t i = 0; i < 9; i++)
        for (int64_t j = i + 1; j < 9; j++)
            sn_view_put(&other.in[0], i * 9 + j, NAN);
    sn_kernel_call(&k, k.family->run, 1, false);
    sn_kernel_call(&other, k.family->run, 1, false);
    for (int o = 0; o < 2; o++)
        assert_memory_equal(k.out[o].data, other.out[o].data, k.out[o].bytes);
    sn_kernel_close(&k);
    sn_kernel_close(&other);
}

/* Elements as large and as small as there are: no overflow, no end of the process. */
static void test_extreme_numbers_are_ordinary(void **state) {
    (void)state;
    for (int c = 0; c < N_ALL * 2; c++) {
        sn_test_call k;
        open_call(&k, all[c / 2].op, all[c / 2].attrs, all[c / 2].types);
        const bool wide = k.in[0].type.dtype == SNUG_F64;
        const double scale = c % 2 ? (wide ? 1e-310 : 1e-41) : (wide ? 1e300 : 1e36);
        for (int64_t i = 0; i < sn_view_count(&k.in[0]); i++)
            sn_view_put(&k.in[0], i, sn_view_get(&k.in[0], i) * scale);
        sn_kernel_call(&k, k.family->run, 2, false);
        if (k.d.n_in == 1) /* else a solution may be beyond all numbers */
            for (int o = 0; o < k.d.n_out; o++)
                for (int64_t i = 0; i < sn_view_count(&k.out[o]); i++)
                    assert_true(isfinite(sn_view_get(&k.out[o], i)));
        sn_kernel_close(&k);
    }
}

static void test_matrices_beyond_lapack_are_refused(void **state) {
    (void)state;
    snug_error err;
    sn_lapack_need need;
    const sn_lapack_problem p = {
        .kind = SN_LAPACK_EIGH, .is_f64 = true, .rows = 50000, .columns = 50000};
    assert_int_equal(sn_lapack_describe(&p, &need, &err), SNUG_E_UNSUPPORTED);
    expect_text(err.text, "50000 x 50000");
    const sn_lapack_problem wide = {
        .kind = SN_LAPACK_SOLVE, .rows = 3, .columns = 3, .right = (int64_t)INT_MAX + 1};
    assert_int_equal(sn_lapack_describe(&wide, &need, &err), SNUG_E_UNSUPPORTED);
    expect_text(err.text, "2147483648 right sides");
    const sn_lapack_problem most = {
        .kind = SN_LAPACK_SOLVE, .rows = 6000, .columns = 6000, .right = 6000};
    expect_ok(sn_lapack_describe(&most, &need, &err), &err);
}

/* --- bits --------------------------------------------------------------------------------------- */
static char *hold(const sn_test_call *k, size_t *bytes) {
    *bytes = 0;
    for (int o = 0; o < k->d.n_out; o++)
        *bytes += k->out[o].bytes;
    char *copy = malloc(*bytes + 1), *to = copy;
    assert_non_null(copy);
    for (int o = 0; o < k->d.n_out; to += k->out[o++].bytes)
        memcpy(to, k->out[o].data, k->out[o].bytes);
    return copy;
}

/* One matrix alone, elsewhere in memory and behind others, has the same bits, whoever computes. */
static void test_bits_depend_on_the_matrix_alone(void **state) {
    (void)state;
    for (int c = 0; c < N_ALL; c++)
        for (int threads = 1; threads <= 3; threads++) {
            sn_test_call k, again;
            size_t n, m;
            open_call(&k, all[c].op, all[c].attrs, all[c].types);
            open_call(&again, all[c].op, all[c].attrs, all[c].types);
            for (int i = 0; i < k.d.n_in; i++) { /* the first is the third, too */
                const size_t one = again.in[i].bytes / 3;
                memcpy((char *)again.in[i].data + 2 * one, k.in[i].data, one);
            }
            again.poison = 0x11;
            sn_kernel_call(&k, k.family->run, 1, false);
            sn_kernel_call(&again, k.family->run, threads, false);
            char *a = hold(&k, &n), *b = hold(&again, &m), *from = a, *to = b;
            assert_int_equal(n, m);
            for (int o = 0; o < k.d.n_out; from += k.out[o].bytes, to += k.out[o++].bytes) {
                const size_t one = k.out[o].bytes / 3;
                assert_memory_equal(from, to, 2 * one);
                assert_memory_equal(from, to + 2 * one, one);
            }
            free(a);
            free(b);
            sn_kernel_close(&k);
            sn_kernel_close(&again);
        }
}

/* --- its code ----------------------------------------------------------------------------------- */
/* What plans may run is there before: matrices of any size bring no page of code. */
/* Within a budget the first plan that wants some code is made for the room that is left beside it:
 * before it runs, that is there. */
static void test_a_budget_brings_code_before_a_step_runs(void **state) {
    (void)state;
    const snug_type t = SHAPE(SNUG_F32, 2, 2);
    snug_engine *e = sn_test_engine(0);
    snug_error err;
    snug_recorder *r;
    snug_tensor *a, *made[2];
    float values[2];
    expect_ok(snug_budget(e, (size_t)1 << 30, &err), &err);
    expect_ok(snug_recorder_create(e, &r, &err), &err);
    expect_ok(snug_tensor_copy(r, &t, (float[]){2, 1, 1, 2}, &a, &err), &err);
    expect_ok(snug_record_op(r, "eigh", "", &a, 1, made, 2, &err), &err);
    expect_ok(snug_tensor_read(made[0], values, sizeof values, &err), &err);
    assert_true(fabsf(values[0] - 1) < 1e-6f && fabsf(values[1] - 3) < 1e-6f);
    assert_false(sn_lapack_is_cold());
    snug_tensor_drop(a);
    snug_tensor_drop(made[0]);
    snug_tensor_drop(made[1]);
    snug_recorder_destroy(r);
    sn_test_engine_end(e);
}

/* Request after request fails once; what was brought in before stays. */
static void bring_code_through_faults(void) {
    snug_status status = SNUG_E_MEMORY;
    int n_failed = 0;
    for (int64_t n = 0; status != SNUG_OK; n++) {
        snug_error err;
        snug_engine *e = sn_test_engine(0);
        sn_fault_memory(e, n, n % 2 == 0);
        status = sn_lapack_warm(e, &err);
        assert_true(status == SNUG_OK || status == SNUG_E_MEMORY);
        assert_int_equal(sn_lapack_is_cold(), status != SNUG_OK);
        n_failed += status != SNUG_OK;
        sn_test_engine_end(e);
    }
    assert_true(n_failed > 3);
}

/* Less than the 64 KiB that a fault brings; a sanitizer's own code comes, too. */
#ifdef SN_REDZONES
enum { MOST_GROWN = 256 << 10 };
#else
enum { MOST_GROWN = 48 << 10 };
#endif

static void test_large_matrices_bring_no_code(void **state) {
    (void)state;
    static const char *const large[][3] = {{"eigh", "", "f64[150,150]"},
                                           {"svd", "vectors=1", "f64[300,150]"},
                                           {"svd", "vectors=1 whole=1", "f64[150,170]"},
                                           {"qr", "", "f64[170,150]"},
                                           {"lstsq", "", "f64[170,150] f64[170,40]"},
                                           {"lstsq", "", "f64[150,300] f64[150,40]"},
                                           {"lu", "", "f64[150,150]"},
                                           {"cholesky", "", "f64[150,150]"},
                                           {"solve", "", "f64[150,150] f64[150,40]"},
                                           {"solve", "adjoint=1", "f64[150,150] f64[150,40]"}};
    enum { N_LARGE = sizeof large / sizeof *large };
    sn_process before, after;
    for (int c = 0; c < N_LARGE; c++) { /* asked for by being described */
        sn_test_call k;
        open_call(&k, large[c][0], large[c][1], large[c][2]);
        sn_kernel_close(&k);
    }
    assert_true(sn_lapack_is_cold());
    bring_code_through_faults();
    sn_cpu_settle_code();
    sn_process_read(&sn_io_system, &before);
    for (int c = 0; c < N_LARGE; c++) {
        sn_test_call k;
        open_call(&k, large[c][0], large[c][1], large[c][2]);
        sn_kernel_call(&k, k.family->run, 1, false);
        sn_kernel_close(&k);
    }
    sn_process_read(&sn_io_system, &after);
    const int64_t grown = (int64_t)after.file_bytes - (int64_t)before.file_bytes;
    if (grown > MOST_GROWN)
        fail_msg("%lld bytes of code came while matrices were taken apart", (long long)grown);
}

/* --- processes that have none ------------------------------------------------------------------- */
/* In a child: 0 when eigh is refused with these words. */
static void run_refused(const char *words) {
    const sn_lapack_problem p = {.kind = SN_LAPACK_EIGH, .is_f64 = true, .rows = 3, .columns = 3};
    sn_lapack_need need;
    snug_error err = {0};
    const snug_status status = sn_lapack_describe(&p, &need, &err);
    const bool ok = status == SNUG_E_UNSUPPORTED && strstr(err.text, words) &&
                    strstr(err.text, "install liblapack3 and libblas3");
    if (!ok)
        print_error("%s: %s\n", snug_status_name(status), err.text);
    _exit(ok ? 0 : 1);
}

static void expect_child_ok(pid_t child) {
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* libblas.so.3 is there and has no BLAS: LAPACK does not load. */
static void test_without_lapack_its_package_is_named(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        if (!dlopen(SNUG_OTHER_BLAS, RTLD_NOW))
            _exit(2);
        run_refused("it is LAPACK's work; install");
    }
    expect_child_ok(child);
}

/* It says that it is OpenBLAS: its functions are others'. */
static void test_lapack_over_another_blas_is_refused(void **state) {
    (void)state;
    void *const blas = dlopen(SNUG_OWN_BLAS, RTLD_NOW | RTLD_NOLOAD);
    assert_null(blas);
    const pid_t child = fork();
    if (child == 0) {
        if (!dlopen(SNUG_OTHER_BLAS, RTLD_NOW | RTLD_GLOBAL) ||
            !dlopen(SNUG_OWN_BLAS, RTLD_NOW | RTLD_GLOBAL))
            _exit(2);
        run_refused("OpenBLAS");
    }
    expect_child_ok(child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_lapack_its_package_is_named),
        cmocka_unit_test(test_lapack_over_another_blas_is_refused),
        cmocka_unit_test(test_a_budget_brings_code_before_a_step_runs),
        cmocka_unit_test(test_large_matrices_bring_no_code),
        cmocka_unit_test(test_eigh_takes_symmetric_matrices_apart),
        cmocka_unit_test(test_svd_takes_matrices_apart),
        cmocka_unit_test(test_qr_takes_matrices_apart),
        cmocka_unit_test(test_qr_has_the_signs_of_householder),
        cmocka_unit_test(test_lu_takes_matrices_apart),
        cmocka_unit_test(test_cholesky_takes_positive_matrices_apart),
        cmocka_unit_test(test_cholesky_of_no_positive_matrix_is_nan),
        cmocka_unit_test(test_solve_solves),
        cmocka_unit_test(test_singular_matrices_are_told),
        cmocka_unit_test(test_right_sides_are_apart),
        cmocka_unit_test(test_lstsq_leaves_the_least),
        cmocka_unit_test(test_lstsq_of_a_singular_matrix_is_the_shortest),
        cmocka_unit_test(test_the_cut_says_what_is_zero),
        cmocka_unit_test(test_what_is_not_finite_stays_apart),
        cmocka_unit_test(test_eigh_reads_the_lower_triangle),
        cmocka_unit_test(test_extreme_numbers_are_ordinary),
        cmocka_unit_test(test_matrices_beyond_lapack_are_refused),
        cmocka_unit_test(test_bits_depend_on_the_matrix_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
