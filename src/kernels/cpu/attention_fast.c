/* attention_fast.c: attention in blocks of queries by keys; letters are those of attention.h,
 * formulas those of attention.c.
 *
 * Forward, a task is one block of queries of one head. It goes through the keys once and keeps, for
 * each query, the largest score so far, the sum of exp(score - largest) and the weighted values;
 * where a block brings a larger score, sum and values are scaled down. The gradient's task is one
 * head of k with all heads of q that read it, so that its sums stay in one thread. Blocks come from
 * the shape alone: an element's bits depend neither on threads nor on other entries or heads.
 *
 * Halves: what a block reads becomes f32 in the thread's scratch, and what it sums up lies there
 * until it is whole and is rounded: y of a block of queries, dk and dv of a block of keys, dq of
 * all heads of a task. */
#include "kernels/cpu/attention.h"

#include "base/rng.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/vmath.h"

#include <stdatomic.h>
#include <string.h>

enum { ROWS = 96, KEYS = 128, DEPTH = 256, LANES = 16 };
/* Blocks of queries and keys. Where later keys are not seen, smaller ones leave more of them
 * out. */
static int64_t rows_of(const sn_attention *a) {
    return a->causal ? 2 * ROWS / 3 : ROWS;
}
static int64_t keys_of(const sn_attention *a) {
    return a->causal ? KEYS / 2 : KEYS;
}

/* Fewer multiplications than this are done before another thread would be awake. */
enum { SMALL = 1 << 18 };

/* Of one thread. Rows of a block are `width` floats apart: forward whole vectors. */
typedef struct {
    float *packed, *scores, *slopes;
    int64_t width;
    float *q, *k, *v, *y, *dy, *dq, *dk, *dv; /* of halves, as f32 */
} scratch;

/* Operands of a call with halves. */
typedef struct {
    sn_stored q, k, v, y, lse, dy, bias, dq, dk, dv;
} stored;

typedef struct job job;
struct job {
    sn_attention a;
    const float *q, *k, *v;
    float *y, *lse;
    const float *dy;
    float *dq, *dk, *dv;
    const stored *halves; /* or NULL: all is f32, and lies as above */
    void (*task)(const job *j, int64_t i, const scratch *s);
    float *workspace;
    int64_t takers;
    _Atomic int64_t *next;
};

/* --- products of blocks ----------------------------------------------------------------------- */
/* Element (i, j) at at + i * row + j * col. */
typedef struct {
    const float *at;
    int64_t row, col;
} matrix;

static matrix turned(matrix m) {
    return (matrix){m.at, m.col, m.row};
}

/* Which part of a product is zero, or nobody reads it, where query i of a block sees its first
 * corner + i + 1 keys only: rows are queries and columns keys, rows queries and terms keys, or rows
 * keys and terms queries. Strips of STRIP rows leave that part out. */
typedef enum { WHOLE, KEYS_ACROSS, KEYS_SUMMED, QUERIES_SUMMED } part;
enum { STRIP = 16 };

/* c (+)= a b; m <= KEYS. */
typedef struct {
    int64_t m, n, k;
    matrix a, b;
    float *c;
    int64_t c_row;
    bool add;
    part part;
    int64_t corner;
} product;

/* Rows [m, m + STRIP) of g. */
static void multiply_strip(const product *p, sn_gemm g, int64_t m) {
    const int64_t seen = p->corner + m + STRIP, begin = m - p->corner;
    g.a_row += m;
    g.c_row += m;
    g.m = sn_min_i64(STRIP, g.m - m);
    if (p->part == KEYS_ACROSS)
        g.n = sn_min_i64(g.n, sn_ceil_div(seen, LANES) * LANES);
    if (p->part == KEYS_SUMMED)
        g.k = sn_min_i64(g.k, seen);
    if (p->part == QUERIES_SUMMED && begin > 0) {
        g.a_col += begin;
        g.b += begin * g.b_step;
        g.k -= begin;
    }
    SN_CPU(gemm)(&g);
}

static void multiply_part(const product *p, int64_t n0, int64_t k0, float *packed) {
    int64_t a_row[KEYS], c_row[KEYS], a_col[DEPTH], b_row[DEPTH];
    const int64_t n = sn_min_i64(KEYS, p->n - n0), k = sn_min_i64(DEPTH, p->k - k0);
    const float *b = p->b.at + k0 * p->b.row + n0 * p->b.col;
    for (int64_t i = 0; i < p->m; i++) {
        a_row[i] = i * p->a.row;
        c_row[i] = i * p->c_row;
    }
    for (int64_t i = 0; i < k; i++) {
        a_col[i] = i * p->a.col;
        b_row[i] = i * p->b.row;
    }
    sn_gemm g = {.m = p->m, .n = n, .k = k, .a_row = a_row, .a_col = a_col, .c_row = c_row};
    g.a = p->a.at + k0 * p->a.col;
    g.c = p->c + n0;
    g.add = p->add || k0 > 0;
    g.b = b;
    g.b_step = p->b.row;
    if (p->b.col != 1 || n % SN_GEMM_VL != 0) {
        const sn_gemm_source source = {.k = k, .n = n, .b = b, .row = b_row, .col = p->b.col};
        SN_CPU(gemm_pack)(&source, packed);
        g.b = packed;
        g.b_step = p->part != WHOLE && n <= SN_GEMM_NR ? sn_gemm_packed(1, n) : 0;
    }
    const bool cuts = p->part != WHOLE && g.b_step > 0 && p->k <= DEPTH;
    for (int64_t m = 0; cuts && m < p->m; m += STRIP)
        multiply_strip(p, g, m);
    if (!cuts)
        SN_CPU(gemm)(&g);
}

static void multiply(const product *p, float *packed) {
    for (int64_t n = 0; n < p->n; n += KEYS)
        for (int64_t k = 0; k < p->k; k += DEPTH)
            multiply_part(p, n, k, packed);
    for (int64_t i = 0; p->k == 0 && !p->add && i < p->m; i++)
        memset(p->c + i * p->c_row, 0, (size_t)p->n * sizeof(float));
}

/* --- one block -------------------------------------------------------------------------------- */
/* Rows that are summed up. */
typedef struct {
    float *at;
    int64_t row;
} sums;

/* Queries [t, t + rows) and keys [s, s + n) of head h in entry b, and where their rows lie: those
 * that the task reads or makes. */
typedef struct {
    int64_t b, h, t, rows, s, n;
    matrix queries, keys, values, results, slopes; /* the last: of results */
    sums y, dq, dk, dv;
} block;

/* Rows of n elements, the first at element `at`, `step` apart. */
typedef struct {
    int64_t at, rows, step, n;
} row_set;

static row_set query_rows(const job *j, const block *k) {
    const sn_attention *a = &j->a;
    return (row_set){sn_query_at(a, k->b, k->t, k->h), k->rows, a->H * a->D, a->D};
}
static row_set key_rows(const job *j, const block *k) {
    const sn_attention *a = &j->a;
    return (row_set){sn_key_at(a, k->b, k->s, k->h), k->n, a->G * a->D, a->D};
}
static row_set value_rows(const job *j, const block *k) {
    const sn_attention *a = &j->a;
    return (row_set){sn_value_at(a, k->b, k->s, k->h), k->n, a->G * a->E, a->E};
}
static row_set result_rows(const job *j, const block *k) {
    const sn_attention *a = &j->a;
    return (row_set){sn_result_at(a, k->b, k->t, k->h), k->rows, a->H * a->E, a->E};
}

static matrix plain(const float *data, row_set r) {
    return (matrix){data + r.at, r.step, 1};
}

static matrix widened(const sn_stored *from, row_set r, float *to) {
    for (int64_t i = 0; i < r.rows; i++)
        sn_stored_read(from, r.at + i * r.step, r.n, to + i * r.n);
    return (matrix){to, r.n, 1};
}

static void round_rows(const float *from, row_set r, const sn_stored *to) {
    for (int64_t i = 0; i < r.rows; i++)
        sn_stored_write(to, r.at + i * r.step, r.n, from + i * r.n, false);
}

/* f32, or halves. */
static void clear_rows(float *data, const sn_stored *halves, row_set r) {
    const int64_t bytes = halves ? (int64_t)snug_dtype_bytes(halves->dtype) : (int64_t)sizeof *data;
    char *to = halves ? halves->data : (char *)data;
    for (int64_t i = 0; i < r.rows; i++)
        memset(to + (r.at + i * r.step) * bytes, 0, (size_t)(r.n * bytes));
}

static void open_keys(const job *j, block *k, const scratch *s) {
    const stored *h = j->halves;
    const row_set keys = key_rows(j, k), values = value_rows(j, k);
    k->keys = h ? widened(&h->k, keys, s->k) : plain(j->k, keys);
    k->values = h ? widened(&h->v, values, s->v) : plain(j->v, values);
}

static void open_queries(const job *j, block *k, const scratch *s) {
    const stored *h = j->halves;
    const row_set queries = query_rows(j, k);
    k->queries = h ? widened(&h->q, queries, s->q) : plain(j->q, queries);
}

/* What the gradient reads and sums up besides. dq has the rows of all heads of the task. */
static void open_results(const job *j, block *k, const scratch *s) {
    const sn_attention *a = &j->a;
    const stored *h = j->halves;
    const row_set results = result_rows(j, k);
    k->slopes = h ? widened(&h->dy, results, s->dy) : plain(j->dy, results);
    k->results = h ? widened(&h->y, results, s->y) : plain(j->y, results);
    k->dq = h ? (sums){s->dq + (k->h % (a->H / a->G) * a->T + k->t) * a->D, a->D}
              : (sums){j->dq + sn_query_at(a, k->b, k->t, k->h), a->H * a->D};
}

static void open_sums(const job *j, block *k, const scratch *s) {
    const sn_attention *a = &j->a;
    k->dk = j->halves ? (sums){s->dk, a->D}
                      : (sums){j->dk + sn_key_at(a, k->b, k->s, k->h), a->G * a->D};
    k->dv = j->halves ? (sums){s->dv, a->E}
                      : (sums){j->dv + sn_value_at(a, k->b, k->s, k->h), a->G * a->E};
}

static int64_t lse_at(const job *j, const block *k, int64_t t) {
    return (k->b * j->a.T + t) * j->a.H + k->h;
}

/* Whether queries of the block see some of its keys only, by their places alone. */
static part cut(const sn_attention *a, const block *k, part p) {
    return a->causal && !a->mask && k->t < k->s + k->n - 1 ? p : WHOLE;
}

/* Keys of the block that query t may see, in whole strips; the weights of others are zero. */
static int64_t keys_seen(const sn_attention *a, const block *k, int64_t t) {
    const int64_t seen = ((t - k->t) / STRIP + 1) * STRIP + k->t - k->s;
    return cut(a, k, KEYS_ACROSS) != WHOLE && seen < k->n ? seen : k->n;
}

/* The bias from element `at` on, where it has a row: of halves in `line`. */
static const float *bias_at(const job *j, const block *k, int64_t at, float *line) {
    if (!j->a.bias || !j->halves)
        return j->a.bias ? (const float *)j->a.bias + at : NULL;
    sn_stored_read(&j->halves->bias, at, j->a.mask_s ? k->n : 1, line);
    return line;
}

/* Raw products of a row of queries with n keys become scores. */
static void finish_scores(const job *j, const block *k, int64_t t, float *x) {
    const sn_attention *a = &j->a;
    float line[KEYS];
    const float scale = (float)a->scale;
    const int64_t n = keys_seen(a, k, t);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= scale;
    const int64_t at = !a->mask ? 0
                                : sn_attention_mask_at(a, k->b) + k->h * a->mask_h + t * a->mask_t +
                                      k->s * a->mask_s;
    const float *bias = bias_at(j, k, at, line);
    for (int64_t i = 0; bias && i < k->n; i++) {
        const float v = x[i] + bias[i * a->mask_s];
        x[i] = v < SN_UNSEEN ? SN_UNSEEN : v;
    }
    for (int64_t i = 0; a->seen && i < k->n; i++)
        x[i] = a->seen[at + i * a->mask_s] ? x[i] : SN_UNSEEN;
    const int64_t visible = t - k->s + 1;
    for (int64_t i = visible < 0 ? 0 : visible; a->causal && i < n; i++)
        x[i] = SN_UNSEEN;
}

static void score_block(const job *j, const block *k, const scratch *s) {
    multiply(&(product){k->rows, k->n, j->a.D, k->queries, turned(k->keys), s->scores, s->width,
                        false, cut(&j->a, k, KEYS_ACROSS), k->t - k->s},
             s->packed);
    for (int64_t r = 0; r < k->rows; r++)
        finish_scores(j, k, k->t + r, s->scores + r * s->width);
}

/* Elements [from, to). */
static void clear(float *x, int64_t from, int64_t to) {
    const sn_vec zero = {0};
    for (; from + SN_VL <= to; from += SN_VL)
        sn_vec_store(x + from, zero);
    for (; from < to; from++)
        x[from] = 0;
}

/* What the weights of row t are multiplied by. */
static void draw_kept(const sn_attention *a, const block *k, int64_t t, float *keep) {
    const float rate = (float)a->rate, scale = (float)(1 / (1 - a->rate));
    sn_random_fill_f32(SN_RANDOM_UNIFORM, a->key,
                       sn_attention_place(a, k->b, k->h, t) + (uint64_t)k->s, (size_t)k->n, keep);
#pragma omp simd
    for (int64_t i = 0; i < k->n; i++)
        keep[i] = keep[i] >= rate ? scale : 0.0f;
}

/* Where the blocks of keys end that queries up to `last` see: without a mask or bias, which may
 * leave a query without any key, none begins behind their own places. */
static int64_t key_limit(const sn_attention *a, int64_t last) {
    return a->causal && !a->mask ? sn_min_i64(a->S, (last / keys_of(a) + 1) * keys_of(a)) : a->S;
}

/* --- forward ---------------------------------------------------------------------------------- */
/* Of a query: the largest score so far and the sum of exp(score - largest). */
typedef struct {
    float max, sum;
} stats;

static float larger(float v, float max) {
    return ((v > max) | (v != v)) ? v : max;
}

static float lanes_max(const float *x, int64_t n, float start) {
    float lane[LANES], max = start;
    for (int l = 0; l < LANES; l++)
        lane[l] = start;
    for (int64_t i = 0; i < n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lane[l] = larger(x[i + l], lane[l]);
    for (int l = 0; l < LANES; l++)
        max = larger(lane[l], max);
    return max;
}

static float lanes_sum(const float *x, int64_t n) {
    float lane[LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

/* Scores become weights relative to the largest so far; returns what earlier blocks shrink by. A
 * row has room for whole vectors behind its n scores. */
static float weigh_row(float *x, int64_t n, stats *s) {
    const int64_t full = sn_ceil_div(n, LANES) * LANES;
    for (int64_t i = n; i < full; i++)
        x[i] = SN_UNSEEN;
    const float max = lanes_max(x, full, s->max), shrink = sn_exp_f32(s->max - max);
#pragma omp simd
    for (int64_t i = 0; i < full; i++)
        x[i] = sn_exp_f32(x[i] - max);
    for (int64_t i = n; i < full; i++)
        x[i] = 0;
    s->sum = s->sum * shrink + lanes_sum(x, full);
    s->max = max;
    return shrink;
}

static void weigh_block(const job *j, const block *k, stats *all, const scratch *s) {
    const sn_attention *a = &j->a;
    for (int64_t r = 0; r < k->rows; r++) {
        float *x = s->scores + r * s->width, keep[KEYS];
        float *y = k->y.at + r * k->y.row;
        const int64_t seen = keys_seen(a, k, k->t + r);
        const float shrink = weigh_row(x, seen, &all[r]);
        clear(x, seen, s->width);
        for (int64_t i = 0; k->s > 0 && shrink != 1.0f && i < a->E; i++)
            y[i] *= shrink;
        if (!a->dropout)
            continue;
        draw_kept(a, k, k->t + r, keep);
        for (int64_t i = 0; i < k->n; i++)
            x[i] *= keep[i];
    }
}

static void put_lse(const job *j, const block *k, int64_t t, float lse) {
    if (j->halves)
        sn_stored_write(&j->halves->lse, lse_at(j, k, t), 1, &lse, false);
    else
        j->lse[lse_at(j, k, t)] = lse;
}

static void finish_rows(const job *j, const block *k, const stats *all) {
    const sn_attention *a = &j->a;
    for (int64_t r = 0; r < k->rows; r++) {
        const bool dead = all[r].max <= SN_HALF_UNSEEN;
        const float scale = a->S > 0 ? 1.0f / all[r].sum : 0.0f;
        for (int64_t i = 0; a->S > 0 && i < a->E; i++)
            k->y.at[r * k->y.row + i] *= scale;
        put_lse(j, k, k->t + r, dead ? SN_UNSEEN : all[r].max + sn_log_f32(all[r].sum));
    }
    if (a->S == 0)
        clear_rows(j->y, j->halves ? &j->halves->y : NULL, result_rows(j, k));
    else if (j->halves)
        round_rows(k->y.at, result_rows(j, k), &j->halves->y);
}

/* Task i: a block of queries. */
static void attend(const job *j, int64_t i, const scratch *s) {
    const sn_attention *a = &j->a;
    const int64_t blocks = sn_ceil_div(a->T, rows_of(a));
    block k = {.b = i / blocks / a->H, .h = i / blocks % a->H, .t = i % blocks * rows_of(a)};
    stats all[ROWS];
    k.rows = sn_min_i64(rows_of(a), a->T - k.t);
    for (int64_t r = 0; r < k.rows; r++)
        all[r] = (stats){SN_UNSEEN, 0};
    if (a->S > 0)
        open_queries(j, &k, s);
    k.y =
        j->halves ? (sums){s->y, a->E} : (sums){j->y + sn_result_at(a, k.b, k.t, k.h), a->H * a->E};
    const int64_t limit = key_limit(a, k.t + k.rows - 1);
    for (k.s = 0; k.s < limit; k.s += keys_of(a)) {
        k.n = sn_min_i64(keys_of(a), limit - k.s);
        open_keys(j, &k, s);
        score_block(j, &k, s);
        weigh_block(j, &k, all, s);
        multiply(&(product){k.rows,
                            a->E,
                            k.n,
                            {s->scores, s->width, 1},
                            k.values,
                            k.y.at,
                            k.y.row,
                            k.s > 0,
                            cut(a, &k, KEYS_SUMMED),
                            k.t - k.s},
                 s->packed);
    }
    finish_rows(j, &k, all);
}

/* --- gradient --------------------------------------------------------------------------------- */
static float dot(const float *x, const float *y, int64_t n) {
    float lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l] * y[i + l];
    for (int l = 0; i + l < n; l++)
        lane[l] += x[i + l] * y[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static float get_lse(const job *j, const block *k, int64_t t) {
    float lse;
    if (!j->halves)
        return j->lse[lse_at(j, k, t)];
    sn_stored_read(&j->halves->lse, lse_at(j, k, t), 1, &lse);
    return lse;
}

/* Scores of a row become the weights that were used, and dy v^T the slopes of q k^T. */
static void slope_row(const job *j, const block *k, int64_t t, float *x, float *slope) {
    const sn_attention *a = &j->a;
    const int64_t r = t - k->t;
    const float *dy = k->slopes.at + r * k->slopes.row, *y = k->results.at + r * k->results.row;
    const float delta = dot(dy, y, a->E), scale = (float)a->scale, lse = get_lse(j, k, t);
    const float blind = lse <= SN_HALF_UNSEEN ? 1.0f / (float)a->S : 0.0f;
    const int64_t n = keys_seen(a, k, t);
    float keep[KEYS];
    for (int64_t i = 0; i < n; i++)
        keep[i] = 1.0f;
    if (a->dropout)
        draw_kept(a, k, t, keep);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float p = sn_exp_f32(x[i] - lse);
        const float ds = p * (slope[i] * keep[i] - delta) * scale;
        const int unseen = x[i] <= SN_HALF_UNSEEN;
        x[i] = (unseen ? blind : p) * keep[i];
        slope[i] = unseen ? 0.0f : ds;
    }
    clear(x, n, k->n);
    clear(slope, n, k->n);
}

/* One block's share of dq, dk and dv; `add`: to what is in dk and dv. */
static void gradient_block(const job *j, const block *k, bool add, const scratch *s) {
    const sn_attention *a = &j->a;
    const matrix slopes = {s->slopes, s->width, 1}, weights = {s->scores, s->width, 1};
    score_block(j, k, s);
    const part summed = cut(a, k, QUERIES_SUMMED);
    multiply(&(product){k->rows, k->n, a->E, k->slopes, turned(k->values), s->slopes, s->width,
                        false, cut(a, k, KEYS_ACROSS), k->t - k->s},
             s->packed);
    for (int64_t r = 0; r < k->rows; r++)
        slope_row(j, k, k->t + r, s->scores + r * s->width, s->slopes + r * s->width);
    multiply(&(product){k->rows, a->D, k->n, slopes, k->keys, k->dq.at, k->dq.row, k->s > 0,
                        cut(a, k, KEYS_SUMMED), k->t - k->s},
             s->packed);
    multiply(&(product){k->n, a->D, k->rows, turned(slopes), k->queries, k->dk.at, k->dk.row, add,
                        summed, k->t - k->s},
             s->packed);
    multiply(&(product){k->n, a->E, k->rows, turned(weights), k->slopes, k->dv.at, k->dv.row, add,
                        summed, k->t - k->s},
             s->packed);
}

/* Behind the last queries of a block of keys; `any`: some query saw them. */
static void finish_keys(const job *j, const block *k, bool any) {
    const stored *h = j->halves;
    if (!any) {
        clear_rows(j->dk, h ? &h->dk : NULL, key_rows(j, k));
        clear_rows(j->dv, h ? &h->dv : NULL, value_rows(j, k));
    } else if (h) {
        round_rows(k->dk.at, key_rows(j, k), &h->dk);
        round_rows(k->dv.at, value_rows(j, k), &h->dv);
    }
}

/* Behind the last keys: all queries of a head, which may have had none. */
static void finish_queries(const job *j, int64_t b, int64_t h, const scratch *s) {
    const sn_attention *a = &j->a;
    const block all = {.b = b, .h = h, .rows = a->T};
    if (a->S == 0)
        clear_rows(j->dq, j->halves ? &j->halves->dq : NULL, query_rows(j, &all));
    else if (j->halves)
        round_rows(s->dq + h % (a->H / a->G) * a->T * a->D, query_rows(j, &all), &j->halves->dq);
}

/* Task i: a head of k. */
static void attend_back(const job *j, int64_t i, const scratch *s) {
    const sn_attention *a = &j->a;
    const int64_t b = i / a->G, heads = a->H / a->G, first = i % a->G * heads;
    for (int64_t at = 0; at < a->S; at += keys_of(a)) {
        block k = {.b = b, .h = first, .s = at, .n = sn_min_i64(keys_of(a), a->S - at)};
        bool any = false;
        if (a->T > 0)
            open_keys(j, &k, s);
        open_sums(j, &k, s);
        for (int64_t step = 0; step < heads * sn_ceil_div(a->T, rows_of(a)); step++) {
            k.h = first + step / sn_ceil_div(a->T, rows_of(a));
            k.t = step % sn_ceil_div(a->T, rows_of(a)) * rows_of(a);
            k.rows = sn_min_i64(rows_of(a), a->T - k.t);
            if (key_limit(a, k.t + k.rows - 1) <= at)
                continue;
            open_queries(j, &k, s);
            open_results(j, &k, s);
            gradient_block(j, &k, any, s);
            any = true;
        }
        k.h = first;
        finish_keys(j, &k, any);
    }
    for (int64_t h = first; h < first + heads; h++)
        finish_queries(j, b, h, s);
}

/* --- all tasks -------------------------------------------------------------------------------- */
static int64_t n_tasks(const sn_attention *a, bool gradient) {
    return gradient ? a->B * a->G : a->B * a->H * sn_ceil_div(a->T, rows_of(a));
}

static int64_t count_takers(const sn_attention *a, bool gradient, int n_threads) {
    const double work = (double)a->B * (double)a->H * (double)(a->T * a->S) * (double)(a->D + a->E);
    return sn_min_i64(work < SMALL || n_threads < 1 ? 1 : n_threads, n_tasks(a, gradient));
}

/* Floats of packed operands: the largest product's. */
static int64_t packed_floats(const sn_attention *a, bool gradient) {
    const int64_t n = sn_min_i64(keys_of(a), a->S), k[2] = {a->D, a->E};
    int64_t most = 0;
    for (int i = gradient ? 0 : 1; i < 2; i++) { /* values and, for dq and dk, keys and queries */
        const int64_t terms = sn_min_i64(keys_of(a), gradient && a->T > a->S ? a->T : a->S);
        const int64_t plain = sn_gemm_packed(terms, sn_min_i64(KEYS, k[i]));
        most = k[i] % SN_GEMM_VL != 0 && plain > most ? plain : most;
    }
    for (int i = 0; i < (gradient ? 2 : 1); i++) { /* turned: keys, and for dy v^T values */
        const int64_t turn = sn_gemm_packed(sn_min_i64(DEPTH, k[i]), n);
        most = turn > most ? turn : most;
    }
    return sn_lines(most);
}

static int64_t block_floats(const sn_attention *a, bool gradient) {
    const int64_t n = sn_min_i64(keys_of(a), a->S);
    return sn_min_i64(rows_of(a), a->T) * (gradient ? n : sn_ceil_div(n, LANES) * LANES);
}

/* Gives out floats one after the other, in whole cache lines; from NULL on it counts them. */
typedef struct {
    float *at;
    int64_t n;
} floats;

static float *next_floats(floats *f, int64_t n) {
    float *at = f->at ? f->at + f->n : NULL;
    f->n += sn_lines(n);
    return at;
}

/* Of halves: what a block reads and sums up. */
static void place_halves(const sn_attention *a, bool gradient, floats *f, scratch *s) {
    const int64_t rows = sn_min_i64(rows_of(a), a->T), n = sn_min_i64(keys_of(a), a->S);
    s->q = next_floats(f, rows * a->D);
    s->k = next_floats(f, n * a->D);
    s->v = next_floats(f, n * a->E);
    s->y = next_floats(f, rows * a->E);
    if (!gradient)
        return;
    s->dy = next_floats(f, rows * a->E);
    s->dk = next_floats(f, n * a->D);
    s->dv = next_floats(f, n * a->E);
    s->dq = next_floats(f, a->G > 0 ? a->H / a->G * a->T * a->D : 0);
}

static int64_t halves_floats(const sn_attention *a, bool gradient) {
    floats counted = {NULL, 0};
    scratch none;
    if (a->halves)
        place_halves(a, gradient, &counted, &none);
    return counted.n;
}

/* The gradient has two blocks, a thread's last floats are of its last block. */
static int64_t thread_floats(const sn_attention *a, bool gradient) {
    const int64_t own = block_floats(a, gradient);
    if (own == 0)
        return 0;
    return packed_floats(a, gradient) + halves_floats(a, gradient) +
           (gradient ? sn_lines(own) : 0) + own;
}

static scratch scratch_of(const job *j, int64_t taker) {
    const sn_attention *a = &j->a;
    const bool gradient = j->task == attend_back;
    const int64_t rows = sn_min_i64(rows_of(a), a->T), own = block_floats(a, gradient);
    float *at = j->workspace + taker * sn_lines(thread_floats(a, gradient));
    float *halves = at + packed_floats(a, gradient);
    float *scores = halves + halves_floats(a, gradient);
    scratch s = {
        .packed = at,
        .scores = scores,
        .slopes = scores + sn_lines(own),
        .width = rows > 0 ? own / rows : 0,
    };
    if (a->halves && own > 0)
        place_halves(a, gradient, &(floats){halves, 0}, &s);
    return s;
}

/* Every taker has a first task of its own; the last one's is task 0, which fills its scratch. */
static void take_tasks(const void *ctx, int64_t first, int64_t end) {
    const job *j = ctx;
    const int64_t n = n_tasks(&j->a, j->task == attend_back);
    for (int64_t taker = first; taker < end; taker++) {
        const scratch s = scratch_of(j, taker);
        for (int64_t i = j->takers - 1 - taker; i < n; i = atomic_fetch_add(j->next, 1))
            j->task(j, i, &s);
    }
}

static void run_tasks(job *j, const sn_call *c) {
    j->takers = count_takers(&j->a, j->task == attend_back, c->n_threads);
    _Atomic int64_t next = j->takers;
    j->next = &next;
    j->workspace = c->workspace;
    sn_team_run(c->team, j->takers, take_tasks, j);
}

size_t SN_CPU(attention_workspace)(const sn_attention *a, bool gradient, int n_threads) {
    const int64_t takers = count_takers(a, gradient, n_threads), own = thread_floats(a, gradient);
    return takers > 0 ? (size_t)((takers - 1) * sn_lines(own) + own) * sizeof(float) : 0;
}

void SN_CPU(attention_f32)(const sn_call *c) {
    job j = {.a = sn_attention_of(c, 3), .q = c->in[0].data, .k = c->in[1].data};
    j.v = c->in[2].data;
    j.y = c->out[0].data;
    j.lse = c->out[1].data;
    j.task = attend;
    run_tasks(&j, c);
}

void SN_CPU(attention_grad_f32)(const sn_call *c) {
    job j = {.a = sn_attention_of(c, 6), .q = c->in[0].data, .k = c->in[1].data};
    j.v = c->in[2].data;
    j.y = c->in[3].data;
    j.lse = c->in[4].data;
    j.dy = c->in[5].data;
    j.dq = c->out[0].data;
    j.dk = c->out[1].data;
    j.dv = c->out[2].data;
    j.task = attend_back;
    run_tasks(&j, c);
}

void SN_CPU(attention_halves)(const sn_call *c) {
    const stored h = {
        .q = sn_stored_of(&c->in[0]),
        .k = sn_stored_of(&c->in[1]),
        .v = sn_stored_of(&c->in[2]),
        .bias = c->n_in > 3 ? sn_stored_of(&c->in[3]) : (sn_stored){0},
        .y = sn_stored_of(&c->out[0]),
        .lse = sn_stored_of(&c->out[1]),
    };
    job j = {.a = sn_attention_of(c, 3), .halves = &h, .task = attend};
    j.a.halves = true;
    run_tasks(&j, c);
}

void SN_CPU(attention_grad_halves)(const sn_call *c) {
    const stored h = {
        .q = sn_stored_of(&c->in[0]),
        .k = sn_stored_of(&c->in[1]),
        .v = sn_stored_of(&c->in[2]),
        .y = sn_stored_of(&c->in[3]),
        .lse = sn_stored_of(&c->in[4]),
        .dy = sn_stored_of(&c->in[5]),
        .bias = c->n_in > 6 ? sn_stored_of(&c->in[6]) : (sn_stored){0},
        .dq = sn_stored_of(&c->out[0]),
        .dk = sn_stored_of(&c->out[1]),
        .dv = sn_stored_of(&c->out[2]),
    };
    job j = {.a = sn_attention_of(c, 6), .halves = &h, .task = attend_back};
    j.a.halves = true;
    run_tasks(&j, c);
}
