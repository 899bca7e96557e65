/* conv_fast.c: f32 convolutions as products (product.h) whose A is the image itself: a window's
 * element is found by adding the offset of the pixel and the offset of the tap, so no matrix of
 * windows is ever written.
 *
 *   forward   rows: pixels of y     k: (tap, channel of x)      columns: channels of y
 *   dx        rows: pixels of dx    k: (tap, channel of dy)     columns: channels of x; one run per
 * stride remainder dw        rows: (tap, channel)  k: pixels of dy             columns: channels of
 * y
 *
 * Where windows reach into the padding, the part of the image that a block reads is first copied
 * with its zeros into the thread's scratch. Bits follow from the shape of one image: not from N
 * (for y and dx) or the threads. */
#include "kernels/cpu/conv_fast.h"

#include "kernels/cpu/product.h"
#include "kernels/cpu/window.h"

#include <string.h>

/* A block of neighbouring targets: `high` rows of `wide` pixels; every pixel of an image is in one.
 */
typedef struct {
    int64_t high, wide, n_down, n_across;
} grid;

/* At most `limit` pixels: whole rows, or even parts of one in multiples of `multiple`. */
static grid grid_of(int64_t height, int64_t width, int64_t limit, int64_t multiple) {
    if (height == 0 || width == 0)
        return (grid){0, 0, 0, 0};
    const int64_t across = sn_parts(width, limit);
    const int64_t wide = sn_least(sn_parts(sn_parts(width, across), multiple) * multiple, width);
    const int64_t most = wide < width || width > limit ? 1 : limit / width;
    const int64_t high = sn_parts(height, sn_parts(height, most));
    return (grid){high, wide, sn_parts(height, high), sn_parts(width, wide)};
}

/* Source pixels around a block, and where they are read: in the image itself, or in a copy with the
 * padding. */
typedef struct {
    int64_t row, col, high, wide; /* in source positions; may reach outside */
} region;

typedef struct {
    const float *data; /* one image, first channel of the group */
    int64_t pitch, channels;
} image;

static region region_of(const sn_window *w, const int64_t first[2], int64_t high, int64_t wide) {
    return (region){
        .row = first[0] * w[0].step + sn_window_low(&w[0]),
        .col = first[1] * w[1].step + sn_window_low(&w[1]),
        .high = sn_window_reach(&w[0], high),
        .wide = sn_window_reach(&w[1], wide),
    };
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* dst[high][pitch][depth] = the region of the image, zeros outside. */
static void copy_region(const sn_window *w, const region *r, image from, int64_t depth, float *dst,
                        int64_t pitch) {
    const int64_t left = clamp(-r->col, 0, r->wide),
                  right = clamp(w[1].size - r->col, left, r->wide);
    for (int64_t i = 0; i < r->high; i++) {
        float *row = dst + i * pitch * depth;
        const bool outside = r->row + i < 0 || r->row + i >= w[0].size;
        const int64_t a = outside ? r->wide : left, b = outside ? r->wide : right;
        memset(row, 0, (size_t)(a * depth) * sizeof(float));
        memset(row + b * depth, 0, (size_t)((r->wide - b) * depth) * sizeof(float));
        const float *src = from.data + ((r->row + i) * from.pitch + r->col) * from.channels;
        if (depth == from.channels && b > a)
            memcpy(row + a * depth, src + a * depth, (size_t)((b - a) * depth) * sizeof(float));
        for (int64_t j = a; j < b && depth != from.channels; j++)
            memcpy(row + j * depth, src + j * from.channels, (size_t)depth * sizeof(float));
    }
}

/* --- forward and dx -------------------------------------------------------------------------- */
typedef struct {
    sn_window w[2];
    int64_t groups, kw;
    int64_t source_channels, depth;   /* depth: per group */
    int64_t target_channels, columns; /* columns: per group */
    int64_t target_size[2];
    const float *source, *weights, *bias;
    float *target;
    bool transposed; /* dx: k runs over the last axis of the weights */
    bool direct;     /* no window reaches into the padding */
    grid g;          /* blocks of pixels, once the product is cut */
} pass;

static int64_t pass_k(const pass *s) {
    return s->w[0].taps * s->w[1].taps * s->depth;
}

/* Terms of every piece but the last. */
static int64_t pass_piece(const pass *s) {
    const int64_t n_pieces = sn_parts(pass_k(s), SN_PRODUCT_DEPTH);
    return n_pieces > 0 ? sn_parts(pass_k(s), n_pieces) : 0;
}

static int64_t count_pixels(const sn_product *p, int64_t limit, int64_t *rows) {
    const pass *s = p->ctx;
    const grid g = grid_of(s->w[0].count, s->w[1].count, limit, SN_GEMM_MR);
    *rows = g.high * g.wide;
    return g.n_down * g.n_across;
}

static int64_t patch_floats(const sn_product *p) {
    const pass *s = p->ctx;
    const grid g = grid_of(s->w[0].count, s->w[1].count, p->limit, SN_GEMM_MR);
    return s->direct
               ? 0
               : sn_window_reach(&s->w[0], g.high) * sn_window_reach(&s->w[1], g.wide) * s->depth;
}

/* The source image of an entry, first channel of its group. */
static image source_image(const pass *s, int64_t entry) {
    const int64_t pixels = s->w[0].size * s->w[1].size;
    return (image){s->source + entry / s->groups * pixels * s->source_channels +
                       entry % s->groups * s->depth,
                   s->w[1].size, s->source_channels};
}

/* Where a block reads: the image itself, or its patch. */
static image block_image(const pass *s, const sn_product_block *b) {
    if (s->direct)
        return source_image(s, b->entry);
    return (image){b->own, sn_window_reach(&s->w[1], s->g.wide), s->depth};
}

/* Offsets of one row of a block's pixels, from pixel i of the block on. */
static void open_row(const pass *s, sn_product_block *b, int64_t i, int64_t n, int64_t from,
                     int64_t to) {
    const int64_t a_step = s->w[1].step * block_image(s, b).channels;
    const int64_t c_step = s->w[1].dt * s->target_channels;
    for (int64_t j = 0; j < n; j++) {
        b->a_row[i + j] = from + j * a_step;
        b->c_row[i + j] = to + j * c_step;
    }
}

static void open_pixels(const sn_product *p, sn_product_block *b) {
    const pass *s = p->ctx;
    const int64_t first[2] = {b->row_block / s->g.n_across * s->g.high,
                              b->row_block % s->g.n_across * s->g.wide};
    const int64_t high = sn_least(s->g.high, s->w[0].count - first[0]);
    const int64_t wide = sn_least(s->g.wide, s->w[1].count - first[1]);
    const image from = block_image(s, b);
    b->rows = high * wide;
    b->c = s->target + b->entry % s->groups * s->columns +
           b->entry / s->groups * s->target_size[0] * s->target_size[1] * s->target_channels;
    if (b->bias)
        b->bias += b->entry % s->groups * s->columns;
    for (int64_t i = 0; i < high; i++) {
        const int64_t row = (s->direct ? first[0] + i : i) * s->w[0].step;
        const int64_t col = (s->direct ? first[1] : 0) * s->w[1].step;
        const int64_t down = s->w[0].t0 + (first[0] + i) * s->w[0].dt;
        const int64_t across = s->w[1].t0 + first[1] * s->w[1].dt;
        open_row(s, b, i * wide, wide, (row * from.pitch + col) * from.channels,
                 (down * s->target_size[1] + across) * s->target_channels);
    }
    const region r = region_of(s->w, first, high, wide);
    if (!s->direct)
        copy_region(s->w, &r, source_image(s, b->entry), s->depth, b->own, from.pitch);
}

/* Term k of the sum: a tap of the window and a channel. */
typedef struct {
    int64_t down, across, channel;
} term;

static term term_at(const pass *s, int64_t k) {
    const int64_t tap = k / s->depth;
    return (term){tap / s->w[1].taps, tap % s->w[1].taps, k % s->depth};
}

static void next_term(const pass *s, term *t) {
    if (++t->channel < s->depth)
        return;
    t->channel = 0;
    if (++t->across < s->w[1].taps)
        return;
    t->across = 0;
    t->down++;
}

static void pixel_piece(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g) {
    const pass *s = p->ctx;
    const image from = block_image(s, b);
    const int64_t first = i * pass_piece(s);
    const int64_t origin[2] = {s->direct ? 0 : sn_window_low(&s->w[0]),
                               s->direct ? 0 : sn_window_low(&s->w[1])};
    g->k = sn_least(pass_piece(s), pass_k(s) - first);
    term t = term_at(s, first);
    for (int64_t k = 0; k < g->k; k++, next_term(s, &t)) {
        const int64_t row = s->w[0].e0 + t.down * s->w[0].de - origin[0];
        const int64_t col = s->w[1].e0 + t.across * s->w[1].de - origin[1];
        b->a_col[k] = (row * from.pitch + col) * from.channels + t.channel;
    }
    const float *packed = p->shared + b->entry % s->groups * sn_gemm_packed(pass_k(s), s->columns);
    g->a = from.data;
    g->a_row = b->a_row;
    g->a_col = b->a_col;
    g->b = packed + sn_gemm_packed(first, s->columns) + b->n * g->k;
    g->b_step = 0;
}

/* Packs the weights of one piece of one group. */
static void pack_weights(const sn_product *p, int64_t share) {
    const pass *s = p->ctx;
    const int64_t group = share / p->n_pieces, first = share % p->n_pieces * pass_piece(s);
    const int64_t channels = s->transposed ? s->source_channels : s->target_channels;
    const int64_t inner =
        s->transposed ? s->columns : s->depth; /* extent of the weights' third axis */
    int64_t row[SN_PRODUCT_DEPTH];
    sn_gemm_source source = {
        .k = sn_least(pass_piece(s), pass_k(s) - first), .n = s->columns, .row = row};
    source.b = s->weights + group * (s->transposed ? s->depth : s->columns);
    source.col = s->transposed ? channels : 1;
    term t = term_at(s, first);
    for (int64_t k = 0; k < source.k; k++, next_term(s, &t)) {
        const int64_t down = s->w[0].k0 + t.down * s->w[0].dk,
                      across = s->w[1].k0 + t.across * s->w[1].dk;
        const int64_t tap = (down * s->kw + across) * inner * channels;
        row[k] = tap + t.channel * (s->transposed ? 1 : channels);
    }
    float *packed = p->shared + group * sn_gemm_packed(pass_k(s), s->columns);
    SN_CPU(gemm_pack)(&source, packed + sn_gemm_packed(first, s->columns));
}

static sn_product product_of(pass *s, int64_t N, int n_threads) {
    sn_product p = {
        .ctx = s,
        .batch = N * s->groups,
        .N = s->columns,
        .n_pieces = sn_parts(pass_k(s), SN_PRODUCT_DEPTH),
        .count_row_blocks = count_pixels,
        .open = open_pixels,
        .piece = pixel_piece,
        .fill_shared = pack_weights,
        .own_floats = patch_floats,
        .shared_floats = s->groups * sn_gemm_packed(pass_k(s), s->columns),
        .bias = s->bias,
    };
    p.n_shares = s->groups * p.n_pieces;
    SN_CPU(product_cut)(&p, n_threads);
    s->g = grid_of(s->w[0].count, s->w[1].count, p.limit, SN_GEMM_MR);
    return p;
}

static pass forward_pass(const sn_conv *v) {
    pass s = {
        .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
        .groups = v->groups,
        .kw = v->kw,
        .source_channels = v->C,
        .depth = v->C / v->groups,
        .target_channels = v->O,
        .columns = v->O / v->groups,
        .target_size = {v->oh, v->ow},
    };
    s.direct = sn_window_inside(&s.w[0]) && sn_window_inside(&s.w[1]);
    return s;
}

static pass backward_pass(const sn_conv *v, int64_t down, int64_t across) {
    pass s = {
        .w = {sn_window_backward(v, 0, down), sn_window_backward(v, 1, across)},
        .groups = v->groups,
        .kw = v->kw,
        .source_channels = v->O,
        .depth = v->O / v->groups,
        .target_channels = v->C,
        .columns = v->C / v->groups,
        .target_size = {v->H, v->W},
        .transposed = true,
    };
    s.direct = sn_window_inside(&s.w[0]) && sn_window_inside(&s.w[1]);
    return s;
}

size_t SN_CPU(conv_workspace)(const sn_conv *v, int n_threads) {
    pass s = forward_pass(v);
    return product_of(&s, v->N, n_threads).workspace_bytes;
}

void SN_CPU(conv_run)(const sn_conv_operands *o, void *workspace, int n_threads) {
    pass s = forward_pass(&o->v);
    s.source = o->x;
    s.weights = o->w;
    s.bias = o->bias;
    s.target = o->y;
    sn_product p = product_of(&s, o->v.N, n_threads);
    p.act = o->v.act;
    SN_CPU(product_run)(&p, workspace, n_threads);
}

size_t SN_CPU(conv_dx_workspace)(const sn_conv *v, int n_threads) {
    size_t most = 0;
    for (int64_t i = 0; i < sn_least(v->stride[0], v->H); i++)
        for (int64_t j = 0; j < sn_least(v->stride[1], v->W); j++) {
            pass s = backward_pass(v, i, j);
            const size_t bytes = product_of(&s, v->N, n_threads).workspace_bytes;
            most = bytes > most ? bytes : most;
        }
    return most;
}

void SN_CPU(conv_dx_run)(const sn_conv_operands *o, void *workspace, int n_threads) {
    for (int64_t i = 0; i < sn_least(o->v.stride[0], o->v.H); i++)
        for (int64_t j = 0; j < sn_least(o->v.stride[1], o->v.W); j++) {
            pass s = backward_pass(&o->v, i, j);
            s.source = o->dy;
            s.weights = o->w;
            s.target = o->dx;
            sn_product p = product_of(&s, o->v.N, n_threads);
            SN_CPU(product_run)(&p, workspace, n_threads);
        }
}

/* --- dw -------------------------------------------------------------------------------------- */
/* Rows of A are (tap, channel), its columns pixels. A piece is a block of pixels of one image. */
typedef struct {
    const sn_conv_operands *o;
    sn_window w[2];
    grid g;
    int64_t depth, columns; /* per group */
    bool direct;            /* as above */
    bool plain;             /* dy can be B as it is */
    float *db_sums;         /* per group of pieces: the sum of dy, in the workspace */
} weights_pass;

static weights_pass weights_pass_of(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    weights_pass s = {
        .o = o,
        .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
        .g = grid_of(v->oh, v->ow, SN_PRODUCT_DEPTH, 1),
        .depth = v->C / v->groups,
        .columns = v->O / v->groups,
    };
    s.direct = sn_window_inside(&s.w[0]) && sn_window_inside(&s.w[1]);
    s.plain = s.columns % SN_GEMM_VL == 0 && v->O <= 2 * SN_GEMM_NR;
    return s;
}

static int64_t dw_rows(const weights_pass *s) {
    return s->w[0].taps * s->w[1].taps * s->depth;
}

static int64_t count_taps(const sn_product *p, int64_t limit, int64_t *rows) {
    const int64_t M = dw_rows(p->ctx);
    *rows = M > 0 ? sn_parts(sn_parts(M, sn_parts(M, limit)), SN_GEMM_MR) * SN_GEMM_MR : 0;
    return M > 0 ? sn_parts(M, *rows) : 0;
}

/* Pitch and channels of what A reads; the pitch of a patch is that of the widest. */
static image dw_image(const weights_pass *s) {
    const sn_conv *v = &s->o->v;
    return s->direct ? (image){NULL, v->W, v->C}
                     : (image){NULL, sn_window_reach(&s->w[1], s->g.wide), s->depth};
}

static int64_t dw_patch_floats(const weights_pass *s) {
    return s->direct
               ? 0
               : sn_lines(sn_window_reach(&s->w[0], s->g.high) * dw_image(s).pitch * s->depth);
}

static int64_t dw_own_floats(const sn_product *p) {
    const weights_pass *s = p->ctx;
    return dw_patch_floats(s) + (s->plain ? 0 : sn_gemm_packed(s->g.high * s->g.wide, p->columns));
}

static void open_taps(const sn_product *p, sn_product_block *b) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    const image from = dw_image(s);
    const int64_t first = b->row_block * p->rows;
    b->rows = sn_least(p->rows, dw_rows(s) - first);
    b->c = s->o->dw + b->entry * s->columns;
    for (int64_t i = 0; i < b->rows; i++) {
        const int64_t tap = (first + i) / s->depth, channel = (first + i) % s->depth;
        const int64_t row = tap / v->kw * v->dilation[0], col = tap % v->kw * v->dilation[1];
        b->a_row[i] = (row * from.pitch + col) * from.channels + channel;
        b->c_row[i] = (first + i) * v->O;
    }
}

/* n is a constant but for the last columns, so that the sums stay in registers. Four
 * sums, pixel by pixel in turn: one alone would wait for each addition. */
static inline __attribute__((always_inline)) void
add_lanes(const float *dy, int64_t step, int64_t pixels, float *sums, const int64_t n) {
    float a[SN_GEMM_VL] = {0}, b[SN_GEMM_VL] = {0}, c[SN_GEMM_VL] = {0}, d[SN_GEMM_VL] = {0};
    int64_t i = 0;
    for (; i + 4 <= pixels; i += 4) {
        const float *row = dy + i * step;
#pragma omp simd
        for (int64_t l = 0; l < n; l++) {
            a[l] += row[l];
            b[l] += row[step + l];
            c[l] += row[2 * step + l];
            d[l] += row[3 * step + l];
        }
    }
    for (; i < pixels; i++)
        for (int64_t l = 0; l < n; l++)
            a[l] += dy[i * step + l];
    for (int64_t l = 0; l < n; l++)
        sums[l] += (a[l] + b[l]) + (c[l] + d[l]);
}

/* The sum of dy over a piece, added to its group's: the blocks of row block 0 see every piece once,
 * in order. */
static void add_columns(const sn_product *p, const sn_product_block *b, int64_t piece,
                        const float *dy, int64_t pixels) {
    const weights_pass *s = p->ctx;
    const int64_t O = s->o->v.O;
    int64_t group = piece * p->n_groups / p->n_pieces;
    while (sn_product_first(p, group + 1) <= piece)
        group++;
    float *sums = s->db_sums + group * O + b->entry * s->columns + b->n;
    if (piece == sn_product_first(p, group))
        memset(sums, 0, (size_t)b->columns * sizeof(float));
    int64_t j = 0;
    for (; j + SN_GEMM_VL <= b->columns; j += SN_GEMM_VL)
        add_lanes(dy + j, O, pixels, sums + j, SN_GEMM_VL);
    if (j < b->columns)
        add_lanes(dy + j, O, pixels, sums + j, b->columns - j);
}

static void taps_piece(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    const int64_t per_image = s->g.n_down * s->g.n_across, n = i / per_image, at = i % per_image;
    const int64_t first[2] = {at / s->g.n_across * s->g.high, at % s->g.n_across * s->g.wide};
    const int64_t high = sn_least(s->g.high, v->oh - first[0]),
                  wide = sn_least(s->g.wide, v->ow - first[1]);
    const float *dy = s->o->dy + ((n * v->oh + first[0]) * v->ow + first[1]) * v->O +
                      b->entry * s->columns + b->n;
    const region r = region_of(s->w, first, high, wide);
    const image whole = {s->o->x + n * v->H * v->W * v->C + b->entry * s->depth, v->W, v->C};
    const image from = dw_image(s);
    g->k = high * wide;
    g->a = s->direct ? whole.data + (r.row * v->W + r.col) * v->C : b->own;
    if (!s->direct)
        copy_region(s->w, &r, whole, s->depth, b->own, from.pitch);
    if (s->o->db && b->row_block == 0)
        add_columns(p, b, i, dy, g->k);
    g->b = dy;
    g->b_step = v->O;
    if (!s->plain) {
        for (int64_t k = 0; k < g->k; k++)
            b->a_col[k] = k * v->O;
        const sn_gemm_source source = {
            .k = g->k, .n = b->columns, .b = dy, .row = b->a_col, .col = 1};
        float *packed = b->own + dw_patch_floats(s);
        SN_CPU(gemm_pack)(&source, packed);
        g->b = packed;
        g->b_step = 0;
    }
    for (int64_t k = 0; k < g->k; k++)
        b->a_col[k] =
            (k / wide * s->w[0].step * from.pitch + k % wide * s->w[1].step) * from.channels;
    g->a_row = b->a_row;
    g->a_col = b->a_col;
}

static sn_product weights_product_of(const weights_pass *s, int n_threads) {
    sn_product p = {
        .ctx = s,
        .batch = s->o->v.groups,
        .N = s->columns,
        .n_pieces = s->o->v.N * s->g.n_down * s->g.n_across,
        .count_row_blocks = count_taps,
        .open = open_taps,
        .piece = taps_piece,
        .own_floats = dw_own_floats,
        .accumulate = s->o->accumulate,
    };
    SN_CPU(product_cut)(&p, n_threads);
    return p;
}

static size_t db_bytes(const sn_product *p, const sn_conv *v) {
    return v->bias ? (size_t)sn_lines(p->n_groups * v->O) * sizeof(float) : 0;
}

size_t SN_CPU(conv_dw_workspace)(const sn_conv *v, int n_threads) {
    const sn_conv_operands o = {.v = *v};
    const weights_pass s = weights_pass_of(&o);
    const sn_product p = weights_product_of(&s, n_threads);
    return p.workspace_bytes + db_bytes(&p, v);
}

void SN_CPU(conv_dw_run)(const sn_conv_operands *o, void *workspace, int n_threads) {
    weights_pass s = weights_pass_of(o);
    sn_product p = weights_product_of(&s, n_threads);
    s.db_sums = workspace;
    SN_CPU(product_run)(&p, (char *)workspace + db_bytes(&p, &o->v), n_threads);
    for (int64_t i = 0; o->db && i < o->v.O; i++) {
        float sum = o->accumulate ? o->db[i] : 0.0f;
        for (int64_t group = 0; group < p.n_groups; group++)
            sum += s.db_sums[group * o->v.O + i];
        o->db[i] = sum;
    }
}
