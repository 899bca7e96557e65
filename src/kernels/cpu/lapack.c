/* lapack.c: LAPACK's Fortran interface (lapack.h).
 *
 * A workspace, each part from a line of the cache on:
 *     work | roots (singular values, reflectors) | indices | copies of operands | the state
 * XERBLA ends the process where it is given an argument that is none, and LAPACK calls it itself
 * where it meets a NaN: so matrices are looked at before. */
#include "kernels/cpu/lapack.h"

#include "kernels/cpu/lapack_library.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* --- elements ------------------------------------------------------------------------------- */
static size_t size_of(const sn_lapack_problem *p) {
    return p->is_f64 ? sizeof(double) : sizeof(float);
}

static int64_t shorter(const sn_lapack_problem *p) {
    return p->rows < p->columns ? p->rows : p->columns;
}

static int64_t longer(const sn_lapack_problem *p) {
    return p->rows < p->columns ? p->columns : p->rows;
}

static void put(const sn_lapack_problem *p, void *to, int64_t i, double x) {
    if (p->is_f64)
        ((double *)to)[i] = x;
    else
        ((float *)to)[i] = (float)x;
}

static void fill(const sn_lapack_problem *p, void *to, int64_t n, double x) {
    for (int64_t i = 0; i < n; i++)
        put(p, to, i, x);
}

/* [rows, columns] to [columns, rows], whose lines are `line` elements apart. */
static void turn(const sn_lapack_problem *p, void *to, int64_t line, const void *from, int64_t rows,
                 int64_t columns) {
    const size_t size = size_of(p);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy((char *)to + (size_t)(j * line + i) * size,
                   (const char *)from + (size_t)(i * columns + j) * size, size);
}

static void turn_in_place(const sn_lapack_problem *p, void *m, int64_t n) {
    const size_t size = size_of(p);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            char *const a = (char *)m + (size_t)(i * n + j) * size, *const b =
                                                                        (char *)m +
                                                                        (size_t)(j * n + i) * size;
            char kept[sizeof(double)];
            memcpy(kept, a, size);
            memcpy(a, b, size);
            memcpy(b, kept, size);
        }
}

static bool is_finite(const sn_lapack_problem *p, const void *m, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(p->is_f64 ? isfinite(((const double *)m)[i]) : isfinite(((const float *)m)[i])))
            return false;
    return true;
}

/* --- operands ------------------------------------------------------------------------------- */
static bool is_triangle(const sn_lapack_problem *p) {
    return p->lower || p->upper;
}

/* Elements of output k that are of the matrix' type. */
static int64_t count_out(const sn_lapack_problem *p, int k) {
    const int64_t m = p->rows, n = p->columns, s = shorter(p);
    if (p->kind == SN_LAPACK_EIGH)
        return k == 0 ? n : k == 1 ? n * n : 0;
    if (p->kind == SN_LAPACK_LSTSQ)
        return k == 0 ? n * p->right : 0;
    if (p->kind == SN_LAPACK_SOLVE)
        return k == 0 ? n * p->right : k == 1 && !is_triangle(p) ? 1 : 0;
    if (p->kind == SN_LAPACK_LU || p->kind == SN_LAPACK_CHOLESKY)
        return k == 0 ? n * n : k == 2 && p->kind == SN_LAPACK_LU ? 1 : 0;
    if (p->kind == SN_LAPACK_QR)
        return k == 0 ? m * (p->whole ? m : s) : k == 1 ? (p->whole ? m : s) * n : 0;
    if (k > 0 && !p->vectors)
        return 0;
    return k == 0 ? s : k == 1 ? m * (p->whole ? m : s) : (p->whole ? n : s) * n;
}

static bool has_no_elements(const sn_lapack_problem *p) {
    return shorter(p) == 0 || (p->kind == SN_LAPACK_LSTSQ && p->right == 0);
}

static void unit(const sn_lapack_problem *p, void *to, int64_t n) {
    fill(p, to, n * n, 0);
    for (int64_t i = 0; i < n; i++)
        put(p, to, i * n + i, 1);
}

/* Of a matrix without elements: square factors are units, x is 0, its determinant is 1. */
static void solve_nothing(const sn_lapack_problem *p, const sn_lapack_operands *o) {
    if (p->kind == SN_LAPACK_LU)
        put(p, o->out[2], 0, 1);
    if (p->kind == SN_LAPACK_SOLVE && !is_triangle(p))
        put(p, o->out[1], 0, 1);
    if (p->kind == SN_LAPACK_LSTSQ)
        fill(p, o->out[0], count_out(p, 0), 0);
    if (p->kind == SN_LAPACK_QR && p->whole)
        unit(p, o->out[0], p->rows);
    if (p->kind == SN_LAPACK_SVD && p->whole && p->vectors) {
        unit(p, o->out[1], p->rows);
        unit(p, o->out[2], p->columns);
    }
}

static bool all_finite(const sn_lapack_problem *p, const sn_lapack_operands *o) {
    const bool half = p->kind == SN_LAPACK_EIGH || p->kind == SN_LAPACK_CHOLESKY;
    bool ok = true;
    const size_t line = (size_t)p->columns * size_of(p);
    for (int64_t i = 0; i < p->rows && ok && !is_triangle(p); i++)
        ok = is_finite(p, (const char *)o->a + (size_t)i * line, half ? i + 1 : p->columns);
    return ok && (p->kind != SN_LAPACK_LSTSQ || is_finite(p, o->b, p->rows * p->right));
}

/* --- the workspace -------------------------------------------------------------------------- */
typedef struct {
    char *work, *roots;
    int *indices;       /* of rows that changed places, too */
    char *copy, *right; /* of the matrix, where LAPACK would write over it; of b */
    int *state;         /* 0: all went well */
} places;

static size_t lines(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

enum { WORK, ROOTS, INDICES, COPY, RIGHT, STATE, N_PLACES };

/* Where each of them begins; gives the bytes of all. */
static size_t lay_out(const sn_lapack_problem *p, const sn_lapack_need *need, size_t at[N_PLACES]) {
    const size_t size = size_of(p);
    const bool copies = p->kind == SN_LAPACK_SVD || p->kind == SN_LAPACK_LSTSQ ||
                        (p->kind == SN_LAPACK_SOLVE && !is_triangle(p));
    const bool solves = p->kind == SN_LAPACK_LSTSQ;
    at[WORK] = 0;
    at[ROOTS] = at[WORK] + lines((size_t)need->work * size);
    at[INDICES] = at[ROOTS] + lines((size_t)shorter(p) * size);
    at[COPY] = at[INDICES] + lines((size_t)need->indices * sizeof(int));
    at[RIGHT] = at[COPY] + (copies ? lines((size_t)(p->rows * p->columns) * size) : 0);
    at[STATE] = at[RIGHT] + (solves ? lines((size_t)(longer(p) * p->right) * size) : 0);
    return at[STATE] + sizeof(int);
}

static places places_in(char *base, const size_t at[N_PLACES]) {
    return (places){.work = base + at[WORK],
                    .roots = base + at[ROOTS],
                    .indices = (int *)(void *)(base + at[INDICES]),
                    .copy = base + at[COPY],
                    .right = base + at[RIGHT],
                    .state = (int *)(void *)(base + at[STATE])};
}

/* --- calls ---------------------------------------------------------------------------------- */
/* Each is a question, too: with no work (-1), LAPACK says in the first places what it wants. */
typedef struct {
    const sn_lapack_problem *p;
    const sn_lapack_library *l;
    const sn_lapack_operands *o;
    places at;
    int m, n, k;       /* rows and columns of the matrix as LAPACK sees it; the shorter */
    int work, indices; /* as many as there are; -1: it is a question */
} call;

static void call_eigh(const call *c) {
    c->l->eigh[c->p->is_f64]("V", "U", &c->n, c->o->out[1], &c->n, c->o->out[0], c->at.work,
                             &c->work, c->at.indices, &c->indices, c->at.state, 1, 1);
}

static void call_svd(const call *c) {
    const char *job = !c->p->vectors ? "N" : c->p->whole ? "A" : "S";
    const int line = c->p->whole ? c->n : c->k;
    c->l->svd[c->p->is_f64](job, &c->m, &c->n, c->at.copy, &c->m, c->o->out[0], c->o->out[2], &c->m,
                            c->o->out[1], &line, c->at.work, &c->work, c->at.indices, c->at.state,
                            1);
}

/* a' = l q': r is l' and q is q''s rows, as they lie. Where the factors go: l and the reflectors
 * into q, or, where that is too narrow, into r. */
static bool factors_in_q(const call *c) {
    return c->m <= c->n;
}

static int line_of_q(const call *c) {
    return c->p->whole ? c->n : c->k;
}

static void call_factors(const call *c) {
    void *const in = c->o->out[factors_in_q(c) ? 0 : 1];
    const int line = factors_in_q(c) ? line_of_q(c) : c->m;
    c->l->lq[c->p->is_f64](&c->m, &c->n, in, &line, c->at.roots, c->at.work, &c->work, c->at.state);
}

static void call_rows(const call *c) {
    const int line = line_of_q(c);
    c->l->rows_of_q[c->p->is_f64](&line, &c->n, &c->k, c->o->out[0], &line, c->at.roots, c->at.work,
                                  &c->work, c->at.state);
}

static void call_lstsq(const call *c) {
    const int most = (int)longer(c->p), right = (int)c->p->right;
    const float cut32 = (float)c->o->cut;
    const void *const cut = c->p->is_f64 ? (const void *)&c->o->cut : &cut32;
    int rank; /* the matrix lies turned in the copy: rows are LAPACK's rows */
    c->l->lstsq[c->p->is_f64](&c->n, &c->m, &right, c->at.copy, &c->n, c->at.right, &most,
                              c->at.roots, cut, &rank, c->at.work, &c->work, c->at.indices,
                              c->at.state);
}

/* --- one matrix ------------------------------------------------------------------------------ */
static void solve_eigh(const call *c) {
    memcpy(c->o->out[1], c->o->a, (size_t)(c->p->rows * c->p->rows) * size_of(c->p));
    call_eigh(c);
    turn_in_place(c->p, c->o->out[1], c->p->rows);
}

static void solve_svd(const call *c) {
    memcpy(c->at.copy, c->o->a, (size_t)(c->p->rows * c->p->columns) * size_of(c->p));
    call_svd(c);
}

/* Lines of one matrix into those of another; what is longer there stays. */
static void copy_lines(const sn_lapack_problem *p, void *to, int64_t to_line, const void *from,
                       int64_t from_line, int64_t n, int64_t count) {
    const size_t size = size_of(p);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + (size_t)(i * to_line) * size,
               (const char *)from + (size_t)(i * from_line) * size, (size_t)count * size);
}

/* r is zero below its diagonal, and in lines beyond the matrix' columns. */
static void clear_below(const sn_lapack_problem *p, void *r, int64_t n_lines) {
    for (int64_t i = 1; i < n_lines; i++) {
        const int64_t n = i < p->columns ? i : p->columns;
        fill(p, (char *)r + (size_t)(i * p->columns) * size_of(p), n, 0);
    }
}

static void solve_qr(const call *c) {
    const sn_lapack_problem *p = c->p;
    void *const q = c->o->out[0], *const r = c->o->out[1];
    const int64_t line = line_of_q(c);
    if (factors_in_q(c)) {
        copy_lines(p, q, line, c->o->a, p->columns, p->rows, p->columns);
        call_factors(c);
        copy_lines(p, r, p->columns, q, line, line, p->columns);
    } else {
        memcpy(r, c->o->a, (size_t)(p->rows * p->columns) * size_of(p));
        call_factors(c);
        copy_lines(p, q, line, r, p->columns, p->rows, line);
    }
    clear_below(p, r, line);
    call_rows(c);
}

static void solve_lstsq(const call *c) {
    const sn_lapack_problem *p = c->p;
    const size_t size = size_of(p);
    const int64_t line = longer(p);
    turn(p, c->at.copy, p->rows, c->o->a, p->rows, p->columns);
    fill(p, c->at.right, line * p->right, 0);
    turn(p, c->at.right, line, c->o->b, p->rows, p->right);
    call_lstsq(c);
    for (int64_t j = 0; j < p->right; j++) /* x stands above in each column */
        for (int64_t i = 0; i < p->columns; i++)
            memcpy((char *)c->o->out[0] + (size_t)(i * p->right + j) * size,
                   c->at.right + (size_t)(j * line + i) * size, size);
}

/* --- elimination ------------------------------------------------------------------------------ */
/* -1 where as many rows changed places as make the sign another, else 1; 0 with a pivot of zero. */
static double sign_of(const call *c, const void *both) {
    const int64_t n = c->p->rows;
    double sign = 1;
    for (int64_t i = 0; i < n; i++) {
        const double pivot = c->p->is_f64 ? ((const double *)both)[i * n + i]
                                          : (double)((const float *)both)[i * n + i];
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : 0;
        sign = c->at.indices[i] == i + 1 ? sign : -sign;
    }
    return sign;
}

static void solve_lu(const call *c) {
    const int64_t n = c->p->rows;
    int32_t *const order = c->o->out[1];
    turn(c->p, c->o->out[0], n, c->o->a, n, n);
    c->l->lu[c->p->is_f64](&c->n, &c->n, c->o->out[0], &c->n, c->at.indices, c->at.state);
    turn_in_place(c->p, c->o->out[0], n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = c->at.indices[i] - 1;
        const int32_t row = order[i];
        order[i] = order[k];
        order[k] = row;
    }
    put(c->p, c->o->out[2], 0, sign_of(c, c->o->out[0]));
    *c->at.state = 0; /* a pivot of zero is none of ours */
}

/* LAPACK's upper triangle is our lower one. */
static void solve_cholesky(const call *c) {
    const int64_t n = c->p->rows;
    const size_t size = size_of(c->p);
    memcpy(c->o->out[0], c->o->a, (size_t)(n * n) * size);
    c->l->cholesky[c->p->is_f64]("U", &c->n, c->o->out[0], &c->n, c->at.state, 1);
    for (int64_t i = 0; i < n; i++)
        fill(c->p, (char *)c->o->out[0] + (size_t)(i * n + i + 1) * size, n - i - 1, 0);
}

/* x' m^-1 or x' m'^-1 over x, where m is a triangle of what LAPACK sees. */
static void by_triangle(const call *c, const void *m, bool upper, bool turned, bool unit) {
    const int right = (int)c->p->right, line = right > 0 ? right : 1;
    const float one32 = 1;
    const double one64 = 1;
    c->l->triangle[c->p->is_f64]("R", upper ? "U" : "L", turned ? "T" : "N", unit ? "U" : "N",
                                 &right, &c->n, c->p->is_f64 ? (const void *)&one64 : &one32, m,
                                 &c->n, c->o->out[0], &line, 1, 1, 1, 1);
}

/* Rows of x change places as those of the matrix did; backwards, the last ones first. */
static void exchange(const call *c, bool backwards) {
    const size_t line = (size_t)c->p->right * size_of(c->p);
    for (int64_t k = 0; k < c->n; k++) {
        const int64_t i = backwards ? c->n - 1 - k : k;
        char *const a = (char *)c->o->out[0] + (size_t)i * line, *const b =
                                                                     (char *)c->o->out[0] +
                                                                     (size_t)(c->at.indices[i] -
                                                                              1) *
                                                                         line;
        for (size_t j = 0; j < line && a != b; j++) {
            const char kept = a[j];
            a[j] = b[j];
            b[j] = kept;
        }
    }
}

/* LAPACK sees a' = p l u: x' = b' u^-1 l^-1 p', or of the adjoint x' = b' p l'^-1 u'^-1. */
static void solve_whole(const call *c) {
    const sn_lapack_problem *p = c->p;
    memcpy(c->at.copy, c->o->a, (size_t)(p->rows * p->rows) * size_of(p));
    c->l->lu[p->is_f64](&c->n, &c->n, c->at.copy, &c->n, c->at.indices, c->at.state);
    if (p->adjoint)
        exchange(c, false);
    by_triangle(c, c->at.copy, !p->adjoint, p->adjoint, p->adjoint);
    by_triangle(c, c->at.copy, p->adjoint, p->adjoint, !p->adjoint);
    if (!p->adjoint)
        exchange(c, true);
    put(p, c->o->out[1], 0, 1);
}

static void solve_equations(const call *c) {
    memcpy(c->o->out[0], c->o->b, (size_t)(c->p->rows * c->p->right) * size_of(c->p));
    if (!is_triangle(c->p)) {
        solve_whole(c);
        return;
    }
    by_triangle(c, c->o->a, c->p->lower, c->p->adjoint, c->p->unit);
    *c->at.state = 0;
}

/* --- every kind ------------------------------------------------------------------------------- */
static const struct {
    void (*solve)(const call *);
    void (*asks[2])(const call *); /* for the workspace; the larger one counts */
} kinds[SN_N_LAPACK] = {[SN_LAPACK_EIGH] = {solve_eigh, {call_eigh}},
                        [SN_LAPACK_SVD] = {solve_svd, {call_svd}},
                        [SN_LAPACK_QR] = {solve_qr, {call_factors, call_rows}},
                        [SN_LAPACK_LSTSQ] = {solve_lstsq, {call_lstsq}},
                        [SN_LAPACK_LU] = {solve_lu, {NULL}},
                        [SN_LAPACK_CHOLESKY] = {solve_cholesky, {NULL}},
                        [SN_LAPACK_SOLVE] = {solve_equations, {NULL}}};

static call call_of(const sn_lapack_problem *p, const sn_lapack_library *l,
                    const sn_lapack_operands *o) {
    return (call){
        .p = p, .l = l, .o = o, .m = (int)p->columns, .n = (int)p->rows, .k = (int)shorter(p)};
}

void sn_lapack_solve(const sn_lapack_problem *p, const sn_lapack_need *need,
                     const sn_lapack_operands *o, void *workspace) {
    call c = call_of(p, sn_lapack_loaded(), o);
    size_t at[N_PLACES];
    if (has_no_elements(p)) {
        solve_nothing(p, o);
        return;
    }
    (void)lay_out(p, need, at);
    c.at = places_in(workspace, at);
    c.work = need->work;
    c.indices = need->indices;
    *c.at.state = -1;
    for (int64_t i = 0; i < p->rows && p->kind == SN_LAPACK_LU; i++)
        ((int32_t *)o->out[1])[i] = (int32_t)i;
    if (all_finite(p, o))
        kinds[p->kind].solve(&c);
    for (int k = 0; k < 3 && *c.at.state != 0; k++)
        fill(p, o->out[k], count_out(p, k), NAN);
}

/* --- what a call takes ----------------------------------------------------------------------- */
/* A count that came as a float may be rounded down. */
static double wanted(const sn_lapack_problem *p, const void *work) {
    if (p->is_f64)
        return *(const double *)work;
    const float n = *(const float *)work;
    return n < 0x1p24f ? n : nextafterf(n, INFINITY);
}

/* Elements of the workspace; integers, where LAPACK says how many, go to at.indices. */
static double ask(const call *c) {
    double most = 0;
    for (int k = 0; k < 2 && kinds[c->p->kind].asks[k]; k++) {
        kinds[c->p->kind].asks[k](c);
        const double work = wanted(c->p, c->at.work);
        most = work > most ? work : most;
    }
    return most;
}

/* Its workspace is up to 7 times the square of the shorter side, 64 times the longer one, and of
 * least squares 64 right sides' share, in 32 bits. */
enum { MOST_SHORT = 16384, MOST_LONG = 1 << 24 };

static int64_t most_right(const sn_lapack_problem *p) {
    return p->kind == SN_LAPACK_LSTSQ ? MOST_LONG / shorter(p) : INT_MAX;
}

static bool is_too_large(const sn_lapack_problem *p) {
    return shorter(p) > MOST_SHORT || longer(p) > MOST_LONG || p->right > most_right(p);
}

/* Those that LAPACK does not say itself. */
static int count_indices(const sn_lapack_problem *p, int said) {
    const bool exchanges =
        p->kind == SN_LAPACK_LU || (p->kind == SN_LAPACK_SOLVE && !is_triangle(p));
    return p->kind == SN_LAPACK_SVD ? 8 * (int)shorter(p) : exchanges ? (int)p->rows : said;
}

static snug_status too_large(const sn_lapack_problem *p, snug_error *err) {
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "a matrix of %lld x %lld elements and %lld right sides: LAPACK counts what it "
                   "works with in 32 bits, which is enough for shorter sides of up to %d, longer "
                   "ones of up to %d, and %lld right sides",
                   (long long)p->rows, (long long)p->columns, (long long)p->right, MOST_SHORT,
                   MOST_LONG, (long long)most_right(p));
}

snug_status sn_lapack_describe(const sn_lapack_problem *p, sn_lapack_need *need, snug_error *err) {
    const sn_lapack_library *library;
    double room[2] = {0};
    int indices = 0, state = 0;
    size_t at[N_PLACES];
    const sn_lapack_operands nothing = {.out = {room, room, room}};
    *need = (sn_lapack_need){0};
    SNUG_TRY(sn_lapack_load(&library, err));
    if (has_no_elements(p))
        return SNUG_OK;
    if (is_too_large(p))
        return too_large(p, err);
    call c = call_of(p, library, &nothing);
    c.at = (places){(char *)room, (char *)room, &indices, (char *)room, (char *)room, &state};
    c.work = c.indices = -1;
    const double work = ask(&c);
    if (work >= INT_MAX || state != 0)
        return too_large(p, err);
    need->work = (int)work;
    need->indices = count_indices(p, indices);
    need->bytes = lay_out(p, need, at);
    sn_lapack_will_run(p);
    return SNUG_OK;
}
