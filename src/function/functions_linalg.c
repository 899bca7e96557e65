/* functions_linalg.c: products, norms, diagonals and triangles. Products of whole numbers are made
 * in f64, of 16 bits at a time: sums of up to 2^21 such products are exact, and what they come to
 * is what the dtype keeps of them, as in TensorFlow. */
#include "function/function_call.h"

#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- products --------------------------------------------------------------------------------- */
/* Something that is linear in each of its operands, in f64; y is not there where it has one. */
typedef struct {
    sn_value (*apply)(sn_fn_call *c, const void *of, sn_value x, sn_value y);
    const void *of;
} linear;

enum { LIMB_BITS = 16, MOST_LIMBS = 4 };

/* x is the sum of limb k times 2^(16 k); all but the highest are 0 to 65535. */
static int split(sn_fn_call *c, sn_value x, sn_value limbs[MOST_LIMBS]) {
    const size_t bytes = snug_dtype_bytes(sn_fn_dtype_of(c, x));
    const int n = bytes > 4 ? 4 : bytes > 2 ? 2 : 1;
    sn_value rest = sn_build_cast(c->b, x, SNUG_I64);
    for (int k = 0; k < n; k++) {
        const sn_value base = sn_fn_like(c, rest, 1 << LIMB_BITS),
                       limb = k + 1 < n ? sn_build_mod(c->b, rest, base) : rest;
        rest = k + 1 < n ? sn_build_floor_div(c->b, rest, base) : rest;
        limbs[k] = sn_build_cast(c->b, limb, SNUG_F64);
    }
    return n;
}

/* Of whole numbers, as i64: what is beyond its bits is not there. */
static sn_value apply_to_whole(sn_fn_call *c, const linear *l, sn_value x, sn_value y) {
    sn_value in_x[MOST_LIMBS], in_y[MOST_LIMBS] = {SN_NO_VALUE}, sum = SN_NO_VALUE;
    const int n_x = split(c, x, in_x), n_y = sn_value_ok(y) ? split(c, y, in_y) : 1;
    const int most = n_x > n_y ? n_x : n_y;
    for (int i = 0; i < n_x; i++)
        for (int k = 0; k < n_y && i + k < most; k++) {
            const sn_value part =
                sn_build_cast(c->b, l->apply(c, l->of, in_x[i], in_y[k]), SNUG_I64);
            const sn_value scaled =
                i + k ? sn_build_mul(c->b, part, sn_fn_like(c, part, ldexp(1, LIMB_BITS * (i + k))))
                      : part;
            sum = sn_value_ok(sum) ? sn_build_add(c->b, sum, scaled) : scaled;
        }
    return sum;
}

typedef struct {
    bool turn_x, turn_y;
} turns;

static sn_value apply_matmul(sn_fn_call *c, const void *of, sn_value x, sn_value y) {
    const turns *t = of;
    return sn_build_matmul_t(c->b, x, y, t->turn_x, t->turn_y);
}

/* A product of two matrices in the operands' dtype. */
static sn_value product(sn_fn_call *c, sn_value x, sn_value y, bool turn_x, bool turn_y) {
    const snug_dtype dtype = sn_fn_type(c, x).dtype;
    const turns t = {turn_x, turn_y};
    if (sn_fn_failed(c) || sn_dtype_is_float(dtype))
        return apply_matmul(c, &t, x, y);
    return sn_build_cast(c->b, apply_to_whole(c, &(linear){apply_matmul, &t}, x, y), dtype);
}

/* Matrices that all have the same right factor are rows of one. */
static sn_value multiply(sn_fn_call *c, sn_value x, sn_value y, bool turn_x, bool turn_y) {
    const snug_type tx = sn_fn_type(c, x), ty = sn_fn_type(c, y);
    if (tx.rank <= 2 || ty.rank != 2 || turn_x)
        return product(c, x, y, turn_x, turn_y);
    const int64_t inner = tx.dims[tx.rank - 1], flat[2] = {-1, inner};
    snug_type out = tx;
    out.dims[tx.rank - 1] = ty.dims[turn_y ? 0 : 1];
    const sn_value rows = product(c, sn_build_reshape(c->b, x, flat, 2), y, false, turn_y);
    return sn_build_reshape(c->b, rows, out.dims, out.rank);
}

void sn_fn_matmul(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    if (sn_fn_given(c, "output_type")) {
        const snug_dtype wanted = sn_fn_dtype(c, "output_type", SNUG_F32);
        x = sn_build_cast(c->b, x, wanted);
        y = sn_build_cast(c->b, y, wanted);
    }
    const snug_type tx = sn_fn_type(c, x), ty = sn_fn_type(c, y);
    const bool turn_x = sn_fn_flag(c, "transpose_a") || sn_fn_flag(c, "adjoint_a"),
               turn_y = sn_fn_flag(c, "transpose_b") || sn_fn_flag(c, "adjoint_b");
    const bool row = tx.rank == 1 && c->promotes, column = ty.rank == 1 && c->promotes;
    if (sn_fn_failed(c))
        return;
    if ((tx.rank < 2 && !row) || (ty.rank < 2 && !column))
        return sn_fn_refuse(c, SNUG_E_INVALID,
                            "the tensors have %d and %d axes; at least 2 are needed", tx.rank,
                            ty.rank);
    x = row ? sn_build_expand_dims(c->b, x, 0) : x;
    y = column ? sn_build_expand_dims(c->b, y, 1) : y;
    sn_value z = multiply(c, x, y, turn_x, turn_y);
    z = column ? sn_build_squeeze(c->b, z, -1) : z;
    c->out[0] = row ? sn_build_squeeze(c->b, z, column ? -1 : -2) : z;
}

void sn_fn_matvec(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const bool turn = sn_fn_flag(c, "transpose_a") || sn_fn_flag(c, "adjoint_a");
    c->out[0] =
        sn_build_squeeze(c->b, product(c, x, sn_build_expand_dims(c->b, y, -1), turn, false), -1);
}

/* --- products over any axes ------------------------------------------------------------------- */
typedef struct {
    int n, x[SNUG_MAX_RANK], y[SNUG_MAX_RANK];
} axis_pairs;

/* x with the axes of the list as one, at the end or in front; the others' extents at *others. */
static sn_value as_matrix(sn_fn_call *c, sn_value v, const int *list, int n, bool last,
                          snug_type *others) {
    const snug_type t = sn_fn_type(c, v);
    int perm[SNUG_MAX_RANK], rest = last ? 0 : n;
    int64_t inner = 1, sides[2];
    uint32_t set = 0;
    for (int i = 0; i < n; i++) {
        set |= 1u << list[i];
        perm[last ? t.rank - n + i : i] = list[i];
        inner *= t.dims[list[i]];
    }
    for (int k = 0; k < t.rank; k++)
        if (!(set >> k & 1)) {
            perm[rest++] = k;
            if (others->rank == SNUG_MAX_RANK) {
                sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "the result has more than %d axes",
                             SNUG_MAX_RANK);
                return SN_NO_VALUE;
            }
            others->dims[others->rank++] = t.dims[k];
        }
    sides[last] = inner;
    sides[!last] = -1;
    const sn_value turned = t.rank > 1 ? sn_build_transpose(c->b, v, perm) : v;
    return sn_build_reshape(c->b, turned, sides, 2);
}

static void contract(sn_fn_call *c, sn_value x, sn_value y, const axis_pairs *p) {
    snug_type out = {.rank = 0};
    const snug_type tx = sn_fn_type(c, x), ty = sn_fn_type(c, y);
    for (int i = 0; i < p->n; i++)
        if (tx.dims[p->x[i]] != ty.dims[p->y[i]])
            return sn_fn_refuse(c, SNUG_E_SHAPE, "axes of %lld and %lld elements do not fit",
                                (long long)tx.dims[p->x[i]], (long long)ty.dims[p->y[i]]);
    const sn_value left = as_matrix(c, x, p->x, p->n, true, &out),
                   right = as_matrix(c, y, p->y, p->n, false, &out);
    c->out[0] = sn_build_reshape(c->b, product(c, left, right, false, false), out.dims, out.rank);
}

/* axes: how many, the last of x and the first of y; or a list for each. */
static bool read_pairs(sn_fn_call *c, int rank_x, int rank_y, axis_pairs *p) {
    int n;
    const bool list = sn_fn_argument(c, "axes")->kind == SNUG_ARG_LIST;
    const int64_t *v = sn_fn_ints(c, "axes", &n);
    p->n = !v || n < 1 ? 0 : list ? n / 2 : (int)v[0];
    bool fits = p->n >= 0 && p->n <= rank_x && p->n <= rank_y && (!list || n % 2 == 0);
    for (int i = 0; i < p->n && fits; i++) {
        const int64_t a = list ? v[i] : rank_x - p->n + i, z = list ? v[p->n + i] : i;
        p->x[i] = (int)(a < 0 ? a + rank_x : a);
        p->y[i] = (int)(z < 0 ? z + rank_y : z);
        fits = p->x[i] >= 0 && p->x[i] < rank_x && p->y[i] >= 0 && p->y[i] < rank_y;
        for (int k = 0; k < i && fits; k++) /* an axis comes once */
            fits = p->x[k] != p->x[i] && p->y[k] != p->y[i];
    }
    if (!fits)
        sn_fn_refuse(c, SNUG_E_INVALID, "these axes are not of tensors with %d and %d axes", rank_x,
                     rank_y);
    return fits && !sn_fn_failed(c);
}

void sn_fn_tensordot(sn_fn_call *c) {
    sn_value x, y;
    axis_pairs p;
    sn_fn_pair(c, 0, 1, &x, &y);
    if (!sn_fn_failed(c) && read_pairs(c, sn_fn_type(c, x).rank, sn_fn_type(c, y).rank, &p))
        contract(c, x, y, &p);
}

/* NumPy's dot: the last axis of x with the last but one of y; of scalars the product. */
void sn_fn_dot(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const int rx = sn_fn_type(c, x).rank, ry = sn_fn_type(c, y).rank;
    if (rx == 0 || ry == 0)
        c->out[0] = sn_build_mul(c->b, x, y);
    else
        contract(c, x, y, &(axis_pairs){1, {rx - 1}, {ry > 1 ? ry - 2 : 0}});
}

void sn_fn_inner(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    const int rx = sn_fn_type(c, x).rank, ry = sn_fn_type(c, y).rank;
    if (rx == 0 || ry == 0)
        c->out[0] = sn_build_mul(c->b, x, y);
    else
        contract(c, x, y, &(axis_pairs){1, {rx - 1}, {ry - 1}});
}

void sn_fn_outer(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    c->out[0] = sn_build_mul(c->b, sn_build_reshape(c->b, x, (const int64_t[]){-1, 1}, 2),
                             sn_build_reshape(c->b, y, (const int64_t[]){1, -1}, 2));
}

/* The diagonal `offset` above the main one of the last two axes. */
static sn_value diagonal(sn_fn_call *c, sn_value x, int64_t offset) {
    const snug_type t = sn_fn_type(c, x);
    if (t.rank < 2 || offset > INT32_MAX || offset < -INT32_MAX) {
        sn_fn_refuse(c, SNUG_E_INVALID, "a tensor with %d axes has no diagonal %lld", t.rank,
                     (long long)offset);
        return SN_NO_VALUE;
    }
    const int64_t rows = t.dims[t.rank - 2], columns = t.dims[t.rank - 1];
    const int64_t top = offset < 0 ? -offset : 0, left = offset > 0 ? offset : 0;
    const int64_t n = rows - top < columns - left ? rows - top : columns - left;
    const sn_value sum =
        sn_build_sum(c->b, sn_build_band(c->b, x, offset, offset), 1u << (t.rank - 1), false);
    return sn_build_part(c->b, sum, t.rank - 2, n > 0 ? top : 0, n > 0 ? n : 0);
}

/* --- einsum ----------------------------------------------------------------------------------- */
#define MAX_EQUATION 128
typedef struct {
    char term[SN_MAX_IN][32];
    char result[32];
    int n;
} equation;

static bool is_letter(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* Letters that come once in all terms, in the alphabet's order, behind "..." if there is one. */
static void imply_result(equation *e) {
    int seen[128] = {0}, n = 0;
    bool dots = false;
    for (int i = 0; i < e->n; i++)
        for (const char *s = e->term[i]; *s; s++) {
            seen[(unsigned char)*s & 127]++;
            dots = dots || *s == '.';
        }
    if (dots)
        n = snprintf(e->result, sizeof e->result, "...");
    for (int ch = 'A'; ch <= 'z' && n + 1 < (int)sizeof e->result; ch++)
        if (is_letter((char)ch) && seen[ch] == 1)
            e->result[n++] = (char)ch;
    e->result[n] = 0;
}

static bool read_equation(sn_fn_call *c, equation *e) {
    const char *at = sn_fn_text(c, sn_fn_place(c, "equation") >= 0 ? "equation" : "subscripts");
    char *to = e->term[0];
    size_t n = 0;
    bool implied = true, fits = true;
    e->n = 1;
    e->term[0][0] = e->result[0] = 0;
    for (; *at && fits; at++) {
        if (*at == ',' && implied) {
            fits = e->n < SN_MAX_IN;
            to = e->term[fits ? e->n++ : 0];
            n = 0;
        } else if (*at == '-' && at[1] == '>') {
            implied = false;
            to = e->result;
            n = 0;
            at++;
        } else if (*at != ' ') {
            fits = (is_letter(*at) || *at == '.') && n + 1 < sizeof e->result;
            to[n++] = *at;
        }
        to[n] = 0;
    }
    if (!fits)
        sn_fn_refuse(c, SNUG_E_INVALID, "the equation has an odd sign or too many letters");
    if (implied)
        imply_result(e);
    return fits;
}

/* The term that terms 0 and 1 make, with the letters that others still need. */
static void between(const equation *e, int next, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (int k = 0; k < 2; k++)
        for (const char *s = e->term[next - 1 + k]; *s && n + 1 < size; s++) {
            bool wanted = strchr(e->result, *s) != NULL;
            for (int i = next + 1; i < e->n && !wanted; i++)
                wanted = strchr(e->term[i], *s) != NULL;
            if (wanted && (*s == '.' ? n < 3 : !strchr(out, *s)))
                out[n++] = *s;
            out[n] = 0;
        }
}

/* A letter that stands twice in a term means the diagonal of its two axes, which goes last. */
static sn_value without_twins(sn_fn_call *c, sn_value x, char *term) {
    for (int i = 0; term[i]; i++) {
        const char *const twin = term[i] == '.' ? NULL : strchr(term + i + 1, term[i]);
        const int rank = (int)strlen(term), other = twin ? (int)(twin - term) : 0;
        int perm[SNUG_MAX_RANK], at = 0;
        char left[32];
        if (!twin)
            continue;
        if (strchr(term, '.') || rank > SNUG_MAX_RANK || sn_fn_type(c, x).rank != rank) {
            sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a letter stands twice in '%s'", term);
            return SN_NO_VALUE;
        }
        for (int k = 0; k < rank; k++)
            if (k != i && k != other) {
                left[at] = term[k];
                perm[at++] = k;
            }
        left[at] = term[i];
        left[at + 1] = 0;
        perm[rank - 2] = i;
        perm[rank - 1] = other;
        x = diagonal(c, sn_build_transpose(c->b, x, perm), 0);
        snprintf(term, sizeof left, "%s", left);
        i = -1;
    }
    return x;
}

static sn_value apply_einsum(sn_fn_call *c, const void *text, sn_value x, sn_value y) {
    return sn_build_einsum(c->b, text, (sn_value[]){x, y}, sn_value_ok(y) ? 2 : 1);
}

/* Of whole numbers, i64. */
static sn_value sum_over(sn_fn_call *c, const char *text, sn_value x, sn_value y) {
    if (sn_fn_failed(c) || sn_dtype_is_float(sn_fn_dtype_of(c, x)))
        return apply_einsum(c, text, x, y);
    return apply_to_whole(c, &(linear){apply_einsum, text}, x, y);
}

/* Two at a time, from the left. */
void sn_fn_einsum(sn_fn_call *c) {
    sn_value x[SN_MAX_IN];
    equation e;
    char text[MAX_EQUATION];
    const int n = sn_fn_values(c, 1, x, SN_MAX_IN);
    if (!n || !read_equation(c, &e))
        return;
    if (n != e.n)
        return sn_fn_refuse(c, SNUG_E_INVALID, "the equation has %d terms for %d tensors", e.n, n);
    const snug_dtype dtype = sn_fn_dtype_of(c, x[0]);
    for (int i = 0; i < n; i++)
        x[i] = without_twins(c, x[i], e.term[i]);
    for (int i = 1; i + 1 < n; i++) {
        char part[32];
        between(&e, i, part, sizeof part);
        snprintf(text, sizeof text, "%s,%s->%s", e.term[i - 1], e.term[i], part);
        x[i] = sum_over(c, text, x[i - 1], x[i]);
        snprintf(e.term[i], sizeof e.term[i], "%s", part);
    }
    if (n == 1)
        snprintf(text, sizeof text, "%s->%s", e.term[0], e.result);
    else
        snprintf(text, sizeof text, "%s,%s->%s", e.term[n - 2], e.term[n - 1], e.result);
    const sn_value sum =
        n > 1 ? sum_over(c, text, x[n - 2], x[n - 1]) : sum_over(c, text, x[0], SN_NO_VALUE);
    c->out[0] = sn_dtype_is_float(dtype) ? sum : sn_build_cast(c->b, sum, dtype);
}

/* --- norms ------------------------------------------------------------------------------------ */
static sn_value reduce(sn_fn_call *c, sn_op op, sn_value x, uint32_t axes, bool keepdims) {
    return sn_fn_type(c, x).rank ? sn_build_reduce(c->b, op, x, axes, keepdims) : x;
}

/* The matrix norm that sums magnitudes along one axis and takes the largest (or smallest) sum along
 * the other: 1 adds columns up, infinity rows. */
static sn_value norm_of_sums(sn_fn_call *c, sn_value x, const int pair[2], double p,
                             bool keepdims) {
    const int added = isinf(p) ? pair[1] : pair[0], left = isinf(p) ? pair[0] : pair[1];
    const sn_value sums = sn_build_sum(c->b, sn_build_abs(c->b, x), 1u << added, true),
                   most = reduce(c, p > 0 ? SN_OP_max : SN_OP_min, sums, 1u << left, true);
    return keepdims ? most : sn_build_sum(c->b, most, 1u << pair[0] | 1u << pair[1], false);
}

/* From singular values: the largest (2), the smallest (-2), or their sum ("nuc", p = 0). */
static sn_value norm_of_spectrum(sn_fn_call *c, sn_value x, const int pair[2], double p,
                                 bool keepdims) {
    const int rank = sn_fn_type(c, x).rank;
    int order[SNUG_MAX_RANK], n = 0;
    for (int k = 0; k < rank; k++)
        if (k != pair[0] && k != pair[1])
            order[n++] = k;
    order[n++] = pair[0];
    order[n] = pair[1];
    const sn_value s = sn_fn_singular_values(c, sn_build_transpose(c->b, x, order)),
                   norm = reduce(c,
                                 p == 0  ? SN_OP_sum
                                 : p > 0 ? SN_OP_max
                                         : SN_OP_min,
                                 s, 1u << (rank - 2), false);
    if (!keepdims)
        return norm;
    const int first = pair[0] < pair[1] ? pair[0] : pair[1];
    return sn_build_expand_dims(c->b, sn_build_expand_dims(c->b, norm, first),
                                pair[0] + pair[1] - first);
}

/* The two axes of matrices, where the norm is one of matrices and not of all numbers as one vector:
 * where two axes are given, in Keras of a matrix without axes, too. */
static bool is_of_matrices(sn_fn_call *c, int rank, int pair[2]) {
    int n;
    const int64_t *given = sn_fn_ints(c, "axis", &n);
    if (given ? n != 2 : !c->promotes || rank != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const int64_t axis = given ? given[i] : i;
        pair[i] = (int)(axis < 0 ? axis + rank : axis);
    }
    if (pair[0] == pair[1])
        sn_fn_refuse(c, SNUG_E_INVALID, "both axes of a matrix are %d", pair[0]);
    return !sn_fn_failed(c);
}

static void matrix_norm(sn_fn_call *c, sn_value x, const int pair[2], double p) {
    const bool keepdims = sn_fn_flag(c, "keepdims");
    if (isinf(p) || fabs(p) == 1)
        c->out[0] = norm_of_sums(c, x, pair, p, keepdims);
    else if (p == 0 || fabs(p) == 2)
        c->out[0] = norm_of_spectrum(c, x, pair, p, keepdims);
    else
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a norm of matrices of order %g", p);
}

void sn_fn_norm(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const int rank = sn_fn_type(c, x).rank;
    const uint32_t axes = sn_fn_axes(c, "axis", rank);
    const bool keepdims = sn_fn_flag(c, "keepdims");
    const snug_argument *ord = sn_fn_argument(c, "ord");
    const bool named = ord->kind == SNUG_ARG_TEXT || ord->kind == SNUG_ARG_NONE,
               nuclear = named && sn_fn_says(c, "ord", "nuc");
    const double p = nuclear ? 0 : named ? 2 : sn_fn_real(c, "ord");
    int pair[2];
    if (sn_fn_failed(c))
        return;
    const bool matrices = ord->kind != SNUG_ARG_NONE && is_of_matrices(c, rank, pair);
    if (named && ord->kind == SNUG_ARG_TEXT && !sn_fn_says(c, "ord", "euclidean") && !nuclear &&
        !(sn_fn_says(c, "ord", "fro") && matrices))
        return sn_fn_refuse(c, SNUG_E_INVALID, "ord '%.20s' names no norm of %s",
                            sn_fn_text(c, "ord"), matrices ? "matrices" : "vectors");
    if ((!named || nuclear) && matrices)
        return matrix_norm(c, x, pair, p);
    const sn_value size = sn_build_abs(c->b, x);
    if (isinf(p)) {
        c->out[0] = reduce(c, p > 0 ? SN_OP_max : SN_OP_min, size, axes, keepdims);
    } else if (p == 2) {
        c->out[0] =
            sn_build_sqrt(c->b, reduce(c, SN_OP_sum, sn_build_square(c->b, x), axes, keepdims));
    } else if (p == 1) {
        c->out[0] = reduce(c, SN_OP_sum, size, axes, keepdims);
    } else if (p > 0) {
        const sn_value powers = sn_build_value_op(c->b, SN_OP_power, &size, 1, p);
        const sn_value sum = reduce(c, SN_OP_sum, powers, axes, keepdims);
        c->out[0] = sn_build_value_op(c->b, SN_OP_power, &sum, 1, 1 / p);
    } else {
        sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a norm of order %g", p);
    }
}

/* x over its length, at least the root of epsilon. */
void sn_fn_l2_normalize(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const uint32_t axes = sn_fn_axes(c, "axis", sn_fn_type(c, x).rank);
    const double epsilon = sn_fn_given(c, "epsilon") ? sn_fn_real(c, "epsilon") : 1e-12;
    const sn_value each = sn_build_square(c->b, x),
                   squares =
                       sn_fn_no_axes(c, "axis") ? each : reduce(c, SN_OP_sum, each, axes, true),
                   least = sn_fn_like(c, x, epsilon);
    c->out[0] = sn_build_mul(c->b, x, sn_build_rsqrt(c->b, sn_build_maximum(c->b, squares, least)));
}

/* x over its norm, and the norm. */
void sn_fn_normalize(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const uint32_t axes = sn_fn_axes(c, "axis", sn_fn_type(c, x).rank);
    const snug_argument *ord = sn_fn_argument(c, "ord");
    const double p =
        ord->kind == SNUG_ARG_INTEGER || ord->kind == SNUG_ARG_REAL ? sn_fn_real(c, "ord") : 2;
    const sn_value size =
        p == 1 ? reduce(c, SN_OP_sum, sn_build_abs(c->b, x), axes, true)
               : sn_build_sqrt(c->b, reduce(c, SN_OP_sum, sn_build_square(c->b, x), axes, true));
    int pair[2];
    const bool spectral = ord->kind != SNUG_ARG_TEXT && ord->kind != SNUG_ARG_NONE &&
                          is_of_matrices(c, sn_fn_type(c, x).rank, pair);
    if ((p != 1 && p != 2) || spectral)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "a norm of order %g", p);
    c->out[0] = sn_build_div(c->b, x, size);
    c->out[1] = size;
    c->n_out = 2;
}

/* Keras': unit length along an axis, or with axis=None as one vector. */
void sn_fn_unit(sn_fn_call *c) {
    const sn_value x = sn_fn_float(c, 0);
    const uint32_t axes = sn_fn_axes(c, "axis", sn_fn_type(c, x).rank);
    const int64_t order = sn_fn_int(c, "order");
    if (order < 1)
        return sn_fn_refuse(c, SNUG_E_INVALID, "order=%lld; it must be 1 or more",
                            (long long)order);
    if (order != 2) {
        const snug_dtype dtype = sn_fn_dtype_of(c, x);
        const sn_value power = sn_build_scalar(c->b, dtype, (double)order),
                       root = sn_build_scalar(c->b, dtype, 1 / (double)order),
                       powers = sn_build_pow(c->b, sn_build_abs(c->b, x), power),
                       norm = sn_build_pow(c->b, sn_build_sum(c->b, powers, axes, true), root),
                       least = sn_fn_like(c, x, sn_fn_real(c, "epsilon"));
        c->out[0] = sn_build_div(c->b, x, sn_build_maximum(c->b, norm, least));
        return;
    }
    const sn_value squares = sn_build_sum(c->b, sn_build_square(c->b, x), axes, true),
                   most = sn_fn_like(c, x, 1 / sn_fn_real(c, "epsilon"));
    c->out[0] = sn_build_mul(c->b, x, sn_build_minimum(c->b, sn_build_rsqrt(c->b, squares), most));
}

/* --- diagonals -------------------------------------------------------------------------------- */
/* Rows [..., n] on diagonal k of zeros; `rows` and `columns` are their extents, at least what
 * fits. */
static sn_value on_diagonal(sn_fn_call *c, sn_value x, int64_t k, int64_t rows, int64_t columns) {
    snug_type t = sn_fn_type(c, x);
    if (t.rank < 1) /* of a value that could not be made */
        return SN_NO_VALUE;
    const int64_t n = t.dims[t.rank - 1], down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
    int64_t before[SNUG_MAX_RANK] = {0}, after[SNUG_MAX_RANK] = {0};
    t.dims[t.rank++] = n;
    before[t.rank - 2] = down;
    before[t.rank - 1] = right;
    after[t.rank - 2] = rows - n - down;
    after[t.rank - 1] = columns - n - right;
    const sn_value square = sn_build_band(
        c->b, sn_build_broadcast_to(c->b, sn_build_expand_dims(c->b, x, -2), &t), 0, 0);
    const bool alone = rows == n && columns == n;
    return alone ? square : sn_build_pad(c->b, square, before, after, 0);
}

/* Which diagonal; one that no matrix has is refused. */
static int64_t diagonal_asked(sn_fn_call *c) {
    const int64_t k = sn_fn_int(c, "k");
    if (k >= -INT32_MAX && k <= INT32_MAX)
        return k;
    sn_fn_refuse(c, SNUG_E_INVALID, "there is no diagonal %lld", (long long)k);
    return 0;
}

/* Row vectors [..., n] as matrices with them on a diagonal. */
void sn_fn_diag(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const int64_t k = diagonal_asked(c);
    if (sn_fn_failed(c))
        return;
    if (t.rank < 1 || t.rank == SNUG_MAX_RANK)
        return sn_fn_refuse(c, SNUG_E_UNSUPPORTED, "the diagonal of a tensor with %d axes", t.rank);
    const int64_t n = t.dims[t.rank - 1], tall = n + (k < 0 ? -k : 0), wide = n + (k > 0 ? k : 0);
    const int64_t rows = sn_fn_given(c, "num_rows") ? sn_fn_int(c, "num_rows") : -1,
                  columns = sn_fn_given(c, "num_cols") ? sn_fn_int(c, "num_cols") : -1;
    /* Without one of them what is asked for is square, or as small as it can be. */
    const int64_t side = tall > wide ? tall : wide,
                  m = rows > 0      ? rows
                      : columns > 0 ? tall
                                    : side,
                  l = columns > 0 ? columns
                      : rows > 0  ? wide
                                  : side;
    if (sn_fn_failed(c))
        return;
    if (m < tall || l < wide || (m > tall && l > wide))
        return sn_fn_refuse(c, SNUG_E_INVALID,
                            "%lld rows and %lld columns for %lld numbers on diagonal %lld",
                            (long long)m, (long long)l, (long long)n, (long long)k);
    c->out[0] = on_diagonal(c, x, k, m, l);
    const double other = sn_fn_real(c, "padding_value");
    if (other != 0 && !sn_fn_failed(c)) {
        const sn_value on = on_diagonal(c, sn_build_fill(c->b, &t, 1), k, m, l);
        const sn_value zero = sn_build_scalar(c->b, t.dtype, 0);
        c->out[0] = sn_build_select(c->b, sn_build_equal(c->b, on, zero),
                                    sn_fn_like(c, c->out[0], other), c->out[0]);
    }
}

/* x with two axes at the end. */
static sn_value planes(sn_fn_call *c, sn_value x) {
    const int rank = sn_fn_type(c, x).rank;
    if (rank <= 2 || sn_fn_place(c, "axis1") < 0)
        return x;
    const int one = sn_fn_axis(c, "axis1", rank, 0), other = sn_fn_axis(c, "axis2", rank, 1);
    int perm[SNUG_MAX_RANK], at = 0;
    for (int k = 0; k < rank; k++)
        if (k != one && k != other)
            perm[at++] = k;
    if (one == other) {
        sn_fn_refuse(c, SNUG_E_INVALID, "the two axes are one");
        return SN_NO_VALUE;
    }
    perm[rank - 2] = one;
    perm[rank - 1] = other;
    return sn_build_transpose(c->b, x, perm);
}

void sn_fn_diag_part(sn_fn_call *c) {
    const sn_value x = planes(c, sn_fn_value(c, 0));
    c->out[0] = diagonal(c, x, sn_fn_int(c, sn_fn_place(c, "offset") >= 0 ? "offset" : "k"));
}

void sn_fn_trace(sn_fn_call *c) {
    const sn_value x = planes(c, sn_fn_value(c, 0)), d = diagonal(c, x, sn_fn_int(c, "offset"));
    const int rank = sn_fn_type(c, d).rank;
    c->out[0] = sn_fn_failed(c) ? SN_NO_VALUE : sn_build_sum(c->b, d, 1u << (rank - 1), false);
}

/* Matrices with other numbers on diagonal k. */
void sn_fn_set_diag(sn_fn_call *c) {
    const sn_value x = sn_fn_value(c, 0);
    const snug_type t = sn_fn_type(c, x);
    const sn_value d = sn_fn_value_as(c, 1, t.dtype);
    const snug_type td = sn_fn_type(c, d);
    const int64_t k = diagonal_asked(c);
    if (sn_fn_failed(c))
        return;
    if (t.rank < 2 || td.rank < 1 || td.rank >= t.rank)
        return sn_fn_refuse(c, SNUG_E_INVALID, "%d axes of numbers for a tensor with %d axes",
                            td.rank, t.rank);
    const int64_t rows = t.dims[t.rank - 2], columns = t.dims[t.rank - 1];
    const int64_t down = rows - (k < 0 ? -k : 0), right = columns - (k > 0 ? k : 0),
                  n = down < right ? down : right;
    if (n < 1 || td.dims[td.rank - 1] != n)
        return sn_fn_refuse(c, SNUG_E_INVALID, "%lld numbers for diagonal %lld of %lld by %lld",
                            (long long)td.dims[td.rank - 1], (long long)k, (long long)rows,
                            (long long)columns);
    const sn_value ones = sn_build_fill(c->b, &(snug_type){t.dtype, 1, {n}}, 1),
                   on = on_diagonal(c, ones, k, rows, columns),
                   other = sn_build_equal(c->b, on, sn_build_scalar(c->b, t.dtype, 0));
    c->out[0] = sn_build_select(c->b, other, x, on_diagonal(c, d, k, rows, columns));
}

void sn_fn_band_part(sn_fn_call *c) {
    const int64_t low = sn_fn_int(c, "num_lower"), high = sn_fn_int(c, "num_upper");
    c->out[0] = sn_build_band(c->b, sn_fn_value(c, 0), low < 0 ? INT32_MIN : -low,
                              high < 0 ? INT32_MAX : high);
}

void sn_fn_tril(sn_fn_call *c) {
    c->out[0] = sn_build_band(c->b, sn_fn_value(c, 0), INT32_MIN, sn_fn_int(c, "k"));
}

void sn_fn_triu(sn_fn_call *c) {
    c->out[0] = sn_build_band(c->b, sn_fn_value(c, 0), sn_fn_int(c, "k"), INT32_MAX);
}

/* x with the axis of its components last: that of `axis`, else of `own`. */
static sn_value components_last(sn_fn_call *c, sn_value x, const char *own) {
    const int rank = sn_fn_type(c, x).rank;
    const int at = sn_fn_axis(c, sn_fn_given(c, "axis") ? "axis" : own, rank, -1);
    int perm[SNUG_MAX_RANK];
    for (int k = 0; k < rank; k++)
        perm[k] = k == rank - 1 ? at : k + (k >= at);
    return sn_fn_failed(c) || at == rank - 1 ? x : sn_build_transpose(c->b, x, perm);
}

/* Three components: the next times the one after, less the other way round. */
void sn_fn_cross(sn_fn_call *c) {
    sn_value x, y;
    sn_fn_pair(c, 0, 1, &x, &y);
    x = components_last(c, x, "axisa");
    y = components_last(c, y, "axisb");
    const snug_type t = sn_fn_type(c, x), ty = sn_fn_type(c, y);
    if (t.rank < 1 || t.dims[t.rank - 1] != 3 || ty.rank < 1 || ty.dims[ty.rank - 1] != 3)
        return sn_fn_refuse(c, SNUG_E_INVALID, "it needs three components along an axis of each");
    sn_builder *const b = c->b;
    const sn_value out =
        sn_build_sub(b, sn_build_mul(b, sn_build_roll(b, x, -1, -1), sn_build_roll(b, y, -1, -2)),
                     sn_build_mul(b, sn_build_roll(b, x, -1, -2), sn_build_roll(b, y, -1, -1)));
    const int rank = sn_fn_type(c, out).rank;
    const int to = sn_fn_axis(c, sn_fn_given(c, "axis") ? "axis" : "axisc", rank, -1);
    int perm[SNUG_MAX_RANK];
    for (int k = 0; k < rank; k++)
        perm[k] = k == to ? rank - 1 : k - (k > to);
    c->out[0] = sn_fn_failed(c) || to == rank - 1 ? out : sn_build_transpose(b, out, perm);
}
