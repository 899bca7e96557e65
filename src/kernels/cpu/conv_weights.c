/* conv_weights.c: the gradient of a convolution's weights (and bias), as a product (product.h):
 *
 *   rows: (tap, channel of x)    k: pixels of dy    columns: channels of y
 *
 * A piece is a block of pixels of one image, or several whole images where they are small. Its part
 * of x is copied into the thread's scratch as the tiles will read it, with the padding's zeros;
 * where there are too few channels for that to pay, x is read in place, or, where windows reach
 * into the padding, in a copy of the piece's part of the image. The bias gradient adds up the
 * pieces of dy while they are in the cache. A pooled dy (conv_pool.h) is spread in the thread's
 * scratch, piece by piece.
 *
 * Halves become f32 in these copies, which are always made; a block of dw lies behind them until it
 * is rounded. */
#include "kernels/cpu/conv_fast.h"
#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/conv_pool.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/window.h"

#include <string.h>

/* Channels from which copying tiles pays; up to how many rows of dy lie near enough to each other
 * to be read as they are; how many pixels before its turn a pixel of x is asked for. */
enum { MIN_TILED = 64, MAX_PLAIN = 512, AHEAD = 6 };

typedef struct {
    const sn_conv_operands *o;
    sn_window w[2];
    sn_grid g;
    int64_t images;         /* per piece */
    int64_t depth, columns; /* per group */
    bool tiled;             /* x is copied as the tiles read it */
    bool direct;            /* no window reaches into the padding */
    bool plain;             /* dy can be B as it is */
    float *db_sums;         /* per group of pieces: the sum of dy, in the workspace */
} weights_pass;

static weights_pass weights_pass_of(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    weights_pass s = {
        .o = o,
        .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
        .g = sn_grid_of(v->oh, v->ow, SN_PRODUCT_DEPTH, 1),
        .depth = v->C / v->groups,
        .columns = v->O / v->groups,
    };
    s.tiled = s.depth >= MIN_TILED && s.columns >= 2 * MIN_TILED;
    s.direct = sn_window_inside(&s.w[0]) && sn_window_inside(&s.w[1]) && !o->halves;
    s.plain = s.columns % SN_GEMM_VL == 0 && v->O <= MAX_PLAIN && !o->pool && !o->halves;
    const bool whole = s.g.n_down * s.g.n_across == 1;
    s.images = whole ? sn_min_i64(SN_PRODUCT_DEPTH / (s.g.high * s.g.wide), v->N) : 1;
    s.images = s.images > 0 ? s.images : 1;
    return s;
}

static int64_t dw_rows(const weights_pass *s) {
    return s->w[0].taps * s->w[1].taps * s->depth;
}

static int64_t count_taps(const sn_product *p, int64_t limit, int64_t *rows) {
    const int64_t M = dw_rows(p->ctx);
    const int64_t share = M > 0 ? sn_ceil_div(M, sn_ceil_div(M, limit)) : 0;
    *rows = sn_min_i64(sn_ceil_div(share, SN_GEMM_MR) * SN_GEMM_MR, M);
    return M > 0 ? sn_ceil_div(M, *rows) : 0;
}

/* Pitch and channels of what A reads; the pitch of a patch is that of the widest. */
static sn_image dw_image(const weights_pass *s) {
    const sn_conv *v = &s->o->v;
    return s->direct ? (sn_image){NULL, v->W, v->C}
                     : (sn_image){NULL, sn_window_reach(&s->w[1], s->g.wide), s->depth};
}

/* Floats of one image's patch. */
static int64_t dw_patch_floats(const weights_pass *s) {
    const int64_t high = sn_window_reach(&s->w[0], s->g.high);
    return s->direct ? 0 : high * dw_image(s).pitch * s->depth;
}

/* Packed or spread dy, then the patches. */
static int64_t dw_packed_floats(const sn_product *p) {
    const weights_pass *s = p->ctx;
    return s->plain ? 0 : sn_gemm_packed(s->images * s->g.high * s->g.wide, p->columns);
}

/* Pixels of a piece, at most. */
static int64_t piece_pixels(const weights_pass *s) {
    return s->images * s->g.high * s->g.wide;
}

/* Tiles of MR rows, each [pixels][MR]; the last ends with its last row. */
static int64_t dw_tiles_floats(const sn_product *p) {
    const int64_t spare = sn_ceil_div(p->rows, SN_GEMM_MR) * SN_GEMM_MR - p->rows;
    return p->rows > 0 ? (p->rows + spare) * piece_pixels(p->ctx) - spare : 0;
}

static int64_t dw_copies_floats(const sn_product *p) {
    const weights_pass *s = p->ctx;
    const int64_t packed = dw_packed_floats(p);
    if (s->tiled)
        return sn_lines(packed) + dw_tiles_floats(p);
    return s->direct ? packed : sn_lines(packed) + s->images * dw_patch_floats(s);
}

static int64_t dw_own_floats(const sn_product *p) {
    const weights_pass *s = p->ctx;
    const int64_t copies = dw_copies_floats(p);
    return s->o->halves ? sn_lines(copies) + p->rows * p->columns : copies;
}

static void open_taps(const sn_product *p, sn_product_block *b) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    const sn_image from = dw_image(s);
    const int64_t first = b->row_block * p->rows;
    b->rows = sn_min_i64(p->rows, dw_rows(s) - first);
    b->c = s->o->halves ? b->own + sn_lines(dw_copies_floats(p)) : s->o->dw + b->entry * s->columns;
    for (int64_t i = 0; i < b->rows; i++) {
        const int64_t tap = (first + i) / s->depth, channel = (first + i) % s->depth;
        const int64_t row = tap / v->kw * v->dilation[0], col = tap % v->kw * v->dilation[1];
        b->a_row[i] = s->tiled ? i / SN_GEMM_MR * SN_GEMM_MR * piece_pixels(s) + i % SN_GEMM_MR
                               : (row * from.pitch + col) * from.channels + channel;
        b->c_row[i] = s->o->halves ? i * b->columns - b->n : (first + i) * v->O;
    }
}

static void close_halves(const sn_product *p, const sn_product_block *b) {
    const weights_pass *s = p->ctx;
    const int64_t O = s->o->v.O, at = b->row_block * p->rows * O + b->entry * s->columns + b->n;
    for (int64_t i = 0; i < b->rows; i++)
        sn_stored_write(&s->o->halves->dw, at + i * O, b->columns, b->c + i * b->columns,
                        s->o->accumulate);
}

/* n is a constant but for the last columns, so that the sums stay in registers. Four
 * sums, pixel by pixel in turn: one alone would wait for each addition. */
static inline __attribute__((always_inline)) void
add_lanes(const float *dy, int64_t step, int64_t count, float *sums, const int64_t n) {
    float a[SN_GEMM_VL] = {0}, b[SN_GEMM_VL] = {0}, c[SN_GEMM_VL] = {0}, d[SN_GEMM_VL] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *row = dy + i * step;
#pragma omp simd
        for (int64_t l = 0; l < n; l++) {
            a[l] += row[l];
            b[l] += row[step + l];
            c[l] += row[2 * step + l];
            d[l] += row[3 * step + l];
        }
    }
    for (; i < count; i++)
        for (int64_t l = 0; l < n; l++)
            a[l] += dy[i * step + l];
    for (int64_t l = 0; l < n; l++)
        sums[l] += (a[l] + b[l]) + (c[l] + d[l]);
}

/* The sum of dy over a piece, added to its group's: the blocks of row block 0 see every piece once,
 * in order. */
static void add_columns(const sn_product *p, const sn_product_block *b, int64_t piece,
                        const sn_gemm *g, int64_t count) {
    const weights_pass *s = p->ctx;
    const int64_t O = s->o->v.O, step = g->b_step;
    const float *dy = g->b;
    int64_t group = piece * p->n_groups / p->n_pieces;
    while (sn_product_first(p, group + 1) <= piece)
        group++;
    float *sums = s->db_sums + group * O + b->entry * s->columns + b->n;
    if (piece == sn_product_first(p, group))
        memset(sums, 0, (size_t)b->columns * sizeof(float));
    int64_t j = 0;
    for (; j + SN_GEMM_VL <= b->columns; j += SN_GEMM_VL)
        add_lanes(dy + j, step, count, sums + j, SN_GEMM_VL);
    if (j < b->columns)
        add_lanes(dy + j, step, count, sums + j, b->columns - j);
}

/* The pixels of a piece: images [n, n + images), and in each the same block. */
typedef struct {
    int64_t n, images, first[2], high, wide;
} pixels;

static pixels pixels_of(const weights_pass *s, int64_t piece) {
    const sn_conv *v = &s->o->v;
    const int64_t per_image = s->g.n_down * s->g.n_across, at = piece % per_image;
    const int64_t n = piece / per_image * s->images;
    const int64_t down = at / s->g.n_across * s->g.high, across = at % s->g.n_across * s->g.wide;
    return (pixels){
        .n = n,
        .images = sn_min_i64(s->images, v->N - n),
        .first = {down, across},
        .high = sn_min_i64(s->g.high, v->oh - down),
        .wide = sn_min_i64(s->g.wide, v->ow - across),
    };
}

static inline void put_lanes(const float *from, int64_t n, float *to) {
    for (int64_t k = 0; k < n; k++)
        to[k] = from[k];
}

/* n neighbouring channels of one tap at one pixel (NULL: in the padding), from this lane of a tile
 * on; `to` is the pixel's place in that tile. */
static void put_in_tiles(const float *from, int64_t lane, int64_t n, float *to, int64_t tile) {
    static const float zeros[SN_PRODUCT_ROWS];
    const int64_t head = sn_min_i64(lane > 0 ? SN_GEMM_MR - lane : 0, n);
    const float *at = from ? from : zeros;
    put_lanes(at, head, to + lane);
    to += lane > 0 ? tile : 0;
    int64_t i = head;
    for (; i + SN_GEMM_MR <= n; i += SN_GEMM_MR, to += tile)
        memcpy(to, at + i, SN_GEMM_MR * sizeof(float));
    put_lanes(at + i, n - i, to);
}

/* Rows [row, row + n) of a block: neighbouring channels of one tap, from element `at` of x on in
 * pixel 0. */
typedef struct {
    int64_t at, tap, row, n;
} tap_run;

/* The run's channels in the pixel at this element of x; `line` is where halves become f32. */
static const float *run_at(const weights_pass *s, const tap_run *r, int64_t at, float *line) {
    if (s->o->halves) {
        sn_stored_read(&s->o->halves->x, at, r->n, line);
        return line;
    }
    const float *from = s->o->x + at;
    for (int64_t f = 0; f < r->n; f += 16)
        __builtin_prefetch(from + AHEAD * s->w[1].step * s->o->v.C + f);
    return from;
}

/* A run at all pixels of the piece. */
static void fill_tiles(const weights_pass *s, const pixels *at, const tap_run *r, float *tiles) {
    const sn_conv *v = &s->o->v;
    float row[SN_PRODUCT_ROWS];
    const int64_t tile = SN_GEMM_MR * piece_pixels(s), lane = r->row % SN_GEMM_MR;
    tiles += r->row / SN_GEMM_MR * tile;
    for (int64_t image = 0; image < at->images; image++)
        for (int64_t i = 0; i < at->high; i++) {
            const int64_t down = sn_conv_at(v, 0, at->first[0] + i, r->tap / v->kw);
            const bool line = down >= 0 && down < v->H;
            for (int64_t j = 0; j < at->wide; j++, tiles += SN_GEMM_MR) {
                const int64_t across = sn_conv_at(v, 1, at->first[1] + j, r->tap % v->kw);
                const int64_t from = r->at + ((image * v->H + down) * v->W + across) * v->C;
                const bool inside = line && across >= 0 && across < v->W;
                put_in_tiles(inside ? run_at(s, r, from, row) : NULL, lane, r->n, tiles, tile);
            }
        }
}

/* A as the tiles read it: runs of channels of one tap after the other. */
static void open_tiles(const sn_product *p, sn_product_block *b, const pixels *at, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    float *tiles = b->own + sn_lines(dw_packed_floats(p));
    const int64_t x = at->n * v->H * v->W * v->C + b->entry * s->depth;
    const int64_t first = b->row_block * p->rows;
    for (int64_t i = 0, n; i < b->rows; i += n) {
        const int64_t channel = (first + i) % s->depth;
        n = sn_min_i64(s->depth - channel, b->rows - i);
        fill_tiles(s, at, &(tap_run){x + channel, (first + i) / s->depth, i, n}, tiles);
    }
    g->k = at->images * at->high * at->wide;
    for (int64_t k = 0; k < g->k; k++)
        b->a_col[k] = k * SN_GEMM_MR;
    g->a = tiles;
    g->a_row = b->a_row;
    g->a_col = b->a_col;
}

/* The region of the image whose first channel is element x. */
static void fill_patch(const weights_pass *s, const sn_region *r, int64_t x, float *patch) {
    const sn_conv *v = &s->o->v;
    if (s->o->halves) {
        const sn_stored_image image = {&s->o->halves->x, x, v->W, v->C, false};
        sn_copy_stored(s->w, r, image, s->depth, patch, dw_image(s).pitch, s->depth);
        return;
    }
    const sn_image image = {s->o->x + x, v->W, v->C};
    sn_copy_region(s->w, r, image, s->depth, patch, dw_image(s).pitch);
}

/* A: where it begins, and the offsets of its columns. */
static void open_columns(const sn_product *p, sn_product_block *b, const pixels *at, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    float *patches = b->own + sn_lines(dw_packed_floats(p));
    const sn_image from = dw_image(s);
    const sn_region r = sn_region_of(s->w, at->first, at->high, at->wide);
    const int64_t x = at->n * v->H * v->W * v->C + b->entry * s->depth;
    const int64_t per_image = s->direct ? v->H * v->W * v->C : dw_patch_floats(s);
    int64_t k = 0;
    for (int64_t n = 0; n < at->images; n++) {
        if (!s->direct)
            fill_patch(s, &r, x + n * v->H * v->W * v->C, patches + n * per_image);
        for (int64_t i = 0; i < at->high; i++)
            for (int64_t j = 0; j < at->wide; j++)
                b->a_col[k++] = n * per_image +
                                (i * s->w[0].step * from.pitch + j * s->w[1].step) * from.channels;
    }
    g->k = k;
    g->a = s->direct ? s->o->x + x + (r.row * v->W + r.col) * v->C : patches;
    g->a_row = b->a_row;
    g->a_col = b->a_col;
}

/* The piece's part of the full-size gradient, from the pooled one. */
static void spread_piece(const sn_product *p, sn_product_block *b, const pixels *at, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    sn_pool_area area = {
        .image = at->n,
        .row = at->first[0],
        .col = at->first[1],
        .high = at->high,
        .wide = at->wide,
        .c = b->entry * s->columns + b->n,
        .n = b->columns,
        .at = b->own,
        .pitch = at->wide,
        .step = sn_gemm_packed(1, b->columns),
    };
    g->b = area.at;
    g->b_step = area.step;
    for (; area.image < at->n + at->images; area.image++) {
        SN_CPU(conv_pool_spread)(s->o->pool, &area, s->o->dy);
        area.at += at->high * at->wide * area.step;
    }
}

/* The piece's part of dy, as f32. */
static void widen_piece(const sn_product *p, sn_product_block *b, const pixels *at, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    const int64_t column = b->entry * s->columns + b->n;
    float *to = b->own;
    g->b = to;
    g->b_step = sn_gemm_packed(1, b->columns);
    for (int64_t image = at->n; image < at->n + at->images; image++)
        for (int64_t i = 0; i < at->high; i++) {
            const int64_t pixel = (image * v->oh + at->first[0] + i) * v->ow + at->first[1];
            for (int64_t j = 0; j < at->wide; j++, to += g->b_step)
                sn_stored_read(&s->o->halves->dy, (pixel + j) * v->O + column, b->columns, to);
        }
}

static void taps_piece(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g) {
    const weights_pass *s = p->ctx;
    const sn_conv *v = &s->o->v;
    const pixels at = pixels_of(s, i);
    const int64_t pixel = (at.n * v->oh + at.first[0]) * v->ow + at.first[1];
    const int64_t count = at.images * at.high * at.wide;
    if (s->o->pool)
        spread_piece(p, b, &at, g);
    else if (s->o->halves)
        widen_piece(p, b, &at, g);
    else {
        g->b = s->o->dy + pixel * v->O + b->entry * s->columns + b->n;
        g->b_step = v->O;
    }
    if (v->bias && b->row_block == 0)
        add_columns(p, b, i, g, count);
    if (!s->plain && !s->o->pool && !s->o->halves) {
        for (int64_t k = 0; k < count; k++)
            b->a_col[k] = k * v->O;
        const sn_gemm_source source = {
            .k = count, .n = b->columns, .b = g->b, .row = b->a_col, .col = 1};
        SN_CPU(gemm_pack)(&source, b->own);
        g->b = b->own;
        g->b_step = 0;
    }
    (s->tiled ? open_tiles : open_columns)(p, b, &at, g);
}

static sn_product weights_product_of(const weights_pass *s, int n_threads) {
    sn_product p = {
        .ctx = s,
        .batch = s->o->v.groups,
        .N = s->columns,
        .n_pieces = sn_ceil_div(s->o->v.N, s->images) * s->g.n_down * s->g.n_across,
        .count_row_blocks = count_taps,
        .open = open_taps,
        .piece = taps_piece,
        .own_floats = dw_own_floats,
        .close = s->o->halves ? close_halves : NULL,
        .accumulate = s->o->accumulate && !s->o->halves,
    };
    const sn_conv *v = &s->o->v;
    p.work = (double)(v->N * v->oh * v->ow) * (double)(dw_rows(s) * v->O);
    SN_CPU(product_cut)(&p, n_threads);
    return p;
}

/* The sums of dy stand behind the product's scratch. */
static size_t db_at(const sn_product *p) {
    return (p->workspace_bytes + 63) / 64 * 64;
}

size_t SN_CPU(conv_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    const sn_conv *v = &o->v;
    const weights_pass s = weights_pass_of(o);
    const sn_product p = weights_product_of(&s, n_threads);
    const size_t db_floats = v->bias ? (size_t)(p.n_groups * v->O) : 0;
    return db_floats > 0 ? db_at(&p) + db_floats * sizeof(float) : p.workspace_bytes;
}

void SN_CPU(conv_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    weights_pass s = weights_pass_of(o);
    sn_product p = weights_product_of(&s, c->n_threads);
    s.db_sums = (float *)(void *)((char *)c->workspace + db_at(&p));
    SN_CPU(product_run)(&p, c, c->workspace);
    for (int64_t i = 0; o->v.bias && i < o->v.O; i++) {
        float sum = o->accumulate && !o->halves ? o->db[i] : 0.0f;
        for (int64_t group = 0; group < p.n_groups; group++)
            sum += s.db_sums[group * o->v.O + i];
        if (o->halves)
            sn_stored_write(&o->halves->db, i, 1, &sum, o->accumulate);
        else
            o->db[i] = sum;
    }
}
