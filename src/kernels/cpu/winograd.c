/* winograd.c: y and dx of a 3 x 3 convolution by transformed tiles; see winograd.h. dx is the same
 * computation on dy with the kernel turned round.
 *
 * A task is a block of tiles (of one image or several) by a block of columns. Its channels go in
 * pieces: tiles and weights of the piece are transformed, and 36 products add to the block's sums.
 * Behind the last piece the sums become pixels, with bias and activation.
 *
 * Invariant: the terms of a sum are added in the order of the channels, piece after piece, and the
 * pieces follow from their number alone. So an element's bits depend on its tile, not on the block
 * or the thread that makes it.
 *
 * Scratch of a taker: sums [36][tiles][columns], weights [36][piece][columns], source
 * [36][tiles][piece]. */
#include "kernels/cpu/winograd.h"

#include "kernels/cpu/act.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/window.h"
#include "kernels/cpu/winograd_tile.h"

#include <stdatomic.h>

/* Sums and tiles of a block should stay in the second-level cache with the weights' piece. */
enum { MAX_PIECE = 64, MAX_COLUMNS = 64, MAX_TILES = 48, MIN_TILES = 2 * SN_GEMM_MR };
/* A slice per point: a line more than it holds, or all points of a tile would share few lines of
 * the first-level cache. */
enum { GAP = 16 };
/* Fewer multiplications than this are done before another thread would be awake. */
enum { SMALL = 1 << 18 };

typedef struct {
    sn_window w[2];
    int64_t N, depth, columns; /* channels of the source, of the target */
    const float *source, *weights, *bias, *scale;
    float *target;
    bool transposed; /* dx: k runs over the last axis of the weights */
    int64_t act;
    /* cut: */
    int64_t across, per_image, n_tiles; /* tiles of a row, of an image, of all */
    int64_t piece;                      /* channels; the last may be less */
    int64_t high, wide;                 /* tiles and columns of a block, at most */
    int64_t n_high, n_wide;             /* blocks */
    int64_t n_takers;
} pass;

static int64_t round_up(int64_t n, int64_t multiple) {
    return sn_ceil_div(n, multiple) * multiple;
}

/* --- scratch --------------------------------------------------------------------------------- */
/* Floats between neighbouring rows, and between slices. */
static int64_t column_pitch(const pass *s) {
    return round_up(s->wide, SN_VL);
}

static int64_t piece_pitch(const pass *s) {
    return round_up(s->piece, SN_VL);
}

static int64_t sums_slice(const pass *s) {
    return s->high * column_pitch(s) + GAP;
}

static int64_t weights_slice(const pass *s) {
    return s->piece * column_pitch(s) + GAP;
}

static int64_t source_slice(const pass *s) {
    return s->high * piece_pitch(s) + GAP;
}

static int64_t taker_floats(const pass *s) {
    return SN_TILE_POINTS * (sums_slice(s) + weights_slice(s) + source_slice(s)) - GAP;
}

/* --- cutting --------------------------------------------------------------------------------- */
/* Even blocks; so many that all threads have the same to do where they are few. */
static void cut_tiles(pass *s, int threads) {
    const int64_t few = 4 * (int64_t)threads;
    s->n_high = sn_ceil_div(s->n_tiles, MAX_TILES);
    while (s->n_high * s->n_wide < few && s->n_high * s->n_wide % threads != 0 &&
           s->n_tiles > (s->n_high + 1) * MIN_TILES)
        s->n_high++;
    const int64_t share = sn_ceil_div(s->n_tiles, s->n_high);
    s->high = sn_min_i64(round_up(share, SN_GEMM_MR), s->n_tiles);
    s->n_high = sn_ceil_div(s->n_tiles, s->high);
}

static void cut(pass *s, int n_threads) {
    const double work = 9.0 * (double)(s->N * s->w[0].count * s->w[1].count) *
                        (double)(s->depth * s->columns);
    const int threads = work < SMALL || n_threads < 1 ? 1 : n_threads;
    s->across = sn_ceil_div(s->w[1].count, SN_TILE_Y);
    s->per_image = s->across * sn_ceil_div(s->w[0].count, SN_TILE_Y);
    s->n_tiles = s->N * s->per_image;
    s->piece = sn_ceil_div(s->depth, sn_ceil_div(s->depth, MAX_PIECE));
    s->piece = sn_min_i64(round_up(s->piece, 16), s->depth);
    if (s->n_tiles == 0 || s->columns == 0)
        return;
    s->wide = sn_min_i64(MAX_COLUMNS, s->columns);
    s->n_wide = sn_ceil_div(s->columns, s->wide);
    cut_tiles(s, threads);
    s->n_takers = sn_min_i64(threads, s->n_high * s->n_wide);
}

/* --- one block ------------------------------------------------------------------------------- */
/* Tiles [tile, tile + tiles), columns [column, column + columns), and in turn each piece of the
 * channels. */
typedef struct {
    int64_t tile, tiles, column, columns;
    int64_t channel, channels;
    float *sums, *weights, *source;
} block;

/* Nine taps of VL columns, `step` floats apart, to their place in every slice. */
SN_TILE_INLINE void put_weights(const float *from, int64_t step, int64_t lanes, float *to,
                                int64_t slice) {
    sn_vec rows[3][6], t[6][3];
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        sn_vec g[3];
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            const float *tap = from + (i * 3 + j) * step;
            g[j] = lanes == SN_VL ? sn_vec_load(tap) : sn_vec_load_part(tap, lanes);
        }
        sn_tile_kernel(g, rows[i]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        sn_vec u[6];
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            t[j][i] = rows[i][j];
        sn_tile_kernel(t[j], u);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            sn_vec_store(to + (i * 6 + j) * slice, u[i]);
    }
}

static void transform_weights(const pass *s, const block *b) {
    const int64_t pitch = column_pitch(s), slice = weights_slice(s);
    for (int64_t k = 0; k < b->channels; k++) {
        const float *from = s->weights + (b->channel + k) * s->columns + b->column;
        for (int64_t j = 0; j < b->columns; j += SN_VL)
            put_weights(from + j, s->depth * s->columns, sn_min_i64(SN_VL, b->columns - j),
                        b->weights + k * pitch + j, slice);
    }
}

/* Weights of dx: taps in the opposite order, VL channels of dy at a time with rows and columns
 * exchanged. */
static void turn_weights(const pass *s, const block *b) {
    enum { FLOATS = SN_VL * MAX_COLUMNS };
    float taps[9 * FLOATS];
    int64_t row[SN_VL];
    for (int64_t i = 0; i < SN_VL; i++)
        row[i] = i;
    for (int64_t k = 0; k < b->channels; k += SN_VL) {
        const int64_t n = sn_min_i64(SN_VL, b->channels - k);
        sn_gemm_source source = {.k = n, .n = b->columns, .row = row, .col = s->depth};
        for (int64_t tap = 0; tap < 9; tap++) {
            const int64_t first = ((8 - tap) * s->columns + b->column) * s->depth;
            source.b = s->weights + first + b->channel + k;
            SN_CPU(gemm_pack)(&source, taps + tap * FLOATS);
        }
        for (int64_t j = 0; j < b->columns; j += SN_VL) {
            const int64_t panel = j / SN_GEMM_NR * SN_GEMM_NR;
            const int64_t width = sn_min_i64(SN_GEMM_NR, round_up(b->columns - panel, SN_VL));
            const float *from = taps + panel * n + j - panel;
            for (int64_t i = 0; i < n; i++)
                put_weights(from + i * width, FLOATS, SN_VL,
                            b->weights + (k + i) * column_pitch(s) + j, weights_slice(s));
        }
    }
}

/* Where VL channels of a tile of x are read. */
typedef struct {
    const float *data;
    int64_t row, pixel; /* floats between rows and between pixels */
} window;

SN_TILE_INLINE void put_source(const window *x, int64_t lanes, float *to, int64_t slice) {
    sn_vec t[6][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        sn_vec d[6], v[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            const float *at = x->data + i * x->row + j * x->pixel;
            d[i] = lanes == SN_VL ? sn_vec_load(at) : sn_vec_load_part(at, lanes);
        }
        sn_tile_source(d, v);
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            t[i][j] = v[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; i++) {
        sn_vec v[6];
        sn_tile_source(t[i], v);
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++)
            sn_vec_store(to + (i * 6 + j) * slice, v[j]);
    }
}

/* Tile i of all: its image, and the place of its first pixel. */
typedef struct {
    int64_t image, row, col;
} place;

static place place_of(const pass *s, int64_t i) {
    const int64_t in_image = i % s->per_image;
    return (place){i / s->per_image, in_image / s->across * SN_TILE_Y,
                   in_image % s->across * SN_TILE_Y};
}

/* The source of a tile; where it reaches outside, a copy with the padding's zeros. */
static window window_of(const pass *s, const block *b, place at, float *copy) {
    const sn_region r = {at.row + sn_window_low(&s->w[0]), at.col + sn_window_low(&s->w[1]),
                         SN_TILE_X, SN_TILE_X};
    const int64_t height = s->w[0].size, width = s->w[1].size;
    const sn_image image = {s->source + at.image * height * width * s->depth + b->channel, width,
                            s->depth};
    if (r.row >= 0 && r.row + r.high <= height && r.col >= 0 && r.col + r.wide <= width)
        return (window){image.data + (r.row * width + r.col) * s->depth, width * s->depth,
                        s->depth};
    sn_copy_region(s->w, &r, image, b->channels, copy, SN_TILE_X);
    return (window){copy, SN_TILE_X * b->channels, b->channels};
}

static void transform_source(const pass *s, const block *b) {
    float copy[SN_TILE_X * SN_TILE_X * MAX_PIECE];
    for (int64_t i = 0; i < b->tiles; i++) {
        window x = window_of(s, b, place_of(s, b->tile + i), copy);
        float *to = b->source + i * piece_pitch(s);
        int64_t k = 0;
        for (; k + SN_VL <= b->channels; k += SN_VL, x.data += SN_VL)
            put_source(&x, SN_VL, to + k, source_slice(s));
        if (k < b->channels)
            put_source(&x, b->channels - k, to + k, source_slice(s));
    }
}

static void multiply(const pass *s, const block *b, const int64_t *a_row, const int64_t *a_col,
                     const int64_t *c_row) {
    sn_gemm g = {
        .m = b->tiles,
        .n = b->columns,
        .k = b->channels,
        .a = b->source,
        .a_row = a_row,
        .a_col = a_col,
        .b = b->weights,
        .b_step = column_pitch(s),
        .c = b->sums,
        .c_row = c_row,
        .add = b->channel > 0,
    };
    for (int i = 0; i < SN_TILE_POINTS; i++) {
        SN_CPU(gemm)(&g);
        g.a += source_slice(s);
        g.b += weights_slice(s);
        g.c += sums_slice(s);
    }
}

/* --- from sums to pixels --------------------------------------------------------------------- */
typedef struct {
    float *y;
    int64_t row, pixel, high, wide; /* floats between rows and pixels; pixels that exist */
    sn_vec scale, bias;
    bool scaled, relu, relu6;
} corner;

SN_TILE_INLINE void put_pixels(const float *sums, int64_t slice, const corner *to, int64_t lanes) {
    sn_vec t[4][6], y[4][4];
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        sn_vec m[6], v[4];
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++)
            m[i] = sn_vec_load(sums + (i * 6 + j) * slice);
        sn_tile_target(m, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            t[i][j] = v[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        sn_tile_target(t[i], y[i]);
    for (int i = 0; i < to->high; i++)
        for (int j = 0; j < to->wide; j++) {
            sn_vec v = (to->scaled ? y[i][j] * to->scale : y[i][j]) + to->bias;
            v = to->relu ? sn_vec_relu(v) : v;
            v = to->relu6 ? sn_vec_relu6(v) : v;
            float *at = to->y + i * to->row + j * to->pixel;
            if (lanes == SN_VL)
                sn_vec_store(at, v);
            else
                sn_vec_store_part(at, v, lanes);
        }
}

static void finish_tile(const pass *s, const block *b, int64_t i) {
    const place at = place_of(s, b->tile + i);
    const int64_t height = s->w[0].count, width = s->w[1].count;
    const bool curved = s->act != SN_ACT_none && s->act != SN_ACT_relu && s->act != SN_ACT_relu6;
    corner to = {
        .y = s->target + ((at.image * height + at.row) * width + at.col) * s->columns + b->column,
        .row = width * s->columns,
        .pixel = s->columns,
        .high = sn_min_i64(SN_TILE_Y, height - at.row),
        .wide = sn_min_i64(SN_TILE_Y, width - at.col),
        .scaled = s->scale != NULL,
        .relu = s->act == SN_ACT_relu,
        .relu6 = s->act == SN_ACT_relu6,
    };
    float *first = to.y;
    for (int64_t j = 0; j < b->columns; j += SN_VL, to.y += SN_VL) {
        const int64_t lanes = sn_min_i64(SN_VL, b->columns - j);
        if (s->scale)
            to.scale = sn_vec_load_part(s->scale + b->column + j, lanes);
        if (s->bias)
            to.bias = sn_vec_load_part(s->bias + b->column + j, lanes);
        put_pixels(b->sums + i * column_pitch(s) + j, sums_slice(s), &to, lanes);
    }
    for (int64_t p = 0; curved && p < to.high * to.wide; p++)
        sn_act_f32(s->act, first + p / to.wide * to.row + p % to.wide * to.pixel, b->columns);
}

/* --- all blocks ------------------------------------------------------------------------------ */
static void run_block(const pass *s, int64_t i, float *scratch) {
    const int64_t tile = i / s->n_wide * s->high, column = i % s->n_wide * s->wide;
    block b = {
        .tile = tile,
        .tiles = sn_min_i64(s->high, s->n_tiles - tile),
        .column = column,
        .columns = sn_min_i64(s->wide, s->columns - column),
        .sums = scratch,
        .weights = scratch + SN_TILE_POINTS * sums_slice(s),
        .source = scratch + SN_TILE_POINTS * (sums_slice(s) + weights_slice(s)),
    };
    int64_t a_row[MAX_TILES], a_col[MAX_PIECE], c_row[MAX_TILES];
    for (int64_t k = 0; k < s->piece; k++)
        a_col[k] = k;
    for (int64_t t = 0; t < b.tiles; t++) {
        a_row[t] = t * piece_pitch(s);
        c_row[t] = t * column_pitch(s);
    }
    for (; b.channel < s->depth; b.channel += s->piece) {
        b.channels = sn_min_i64(s->piece, s->depth - b.channel);
        (s->transposed ? turn_weights : transform_weights)(s, &b);
        transform_source(s, &b);
        multiply(s, &b, a_row, a_col, c_row);
    }
    for (int64_t t = 0; t < b.tiles; t++)
        finish_tile(s, &b, t);
}

/* Takers go through the blocks, each taking the next one that is free after its first; the last
 * begins with block 0, which needs all of its scratch. */
typedef struct {
    const pass *s;
    float *workspace;
    _Atomic int64_t *next;
} taking;

static void take_blocks(const void *ctx, int64_t first, int64_t end) {
    const taking *l = ctx;
    const pass *s = l->s;
    for (int64_t taker = first; taker < end; taker++) {
        float *scratch = l->workspace + taker * sn_lines(taker_floats(s));
        for (int64_t i = s->n_takers - 1 - taker; i < s->n_high * s->n_wide;
             i = atomic_fetch_add(l->next, 1))
            run_block(s, i, scratch);
    }
}

static size_t workspace_bytes(const pass *s) {
    if (s->n_takers == 0)
        return 0;
    const int64_t floats = (s->n_takers - 1) * sn_lines(taker_floats(s)) + taker_floats(s);
    return (size_t)floats * sizeof(float);
}

static void run(const pass *s, const sn_call *c) {
    _Atomic int64_t next = s->n_takers;
    const taking l = {s, c->workspace, &next};
    sn_team_run(c->team, s->n_takers, take_blocks, &l);
}

static pass forward_pass(const sn_conv *v, int n_threads) {
    pass s = {
        .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
        .N = v->N,
        .depth = v->C,
        .columns = v->O,
        .act = v->act,
    };
    cut(&s, n_threads);
    return s;
}

static pass backward_pass(const sn_conv *v, int n_threads) {
    pass s = {
        .w = {sn_window_backward(v, 0, 0), sn_window_backward(v, 1, 0)},
        .N = v->N,
        .depth = v->O,
        .columns = v->C,
        .transposed = true,
        .act = SN_ACT_none,
    };
    cut(&s, n_threads);
    return s;
}

size_t SN_CPU(winograd_workspace)(const sn_conv *v, int n_threads) {
    const pass s = forward_pass(v, n_threads);
    return workspace_bytes(&s);
}

void SN_CPU(winograd_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = forward_pass(&o->v, c->n_threads);
    s.source = o->x;
    s.weights = o->w;
    s.bias = o->bias;
    s.scale = o->scale;
    s.target = o->y;
    run(&s, c);
}

size_t SN_CPU(winograd_dx_workspace)(const sn_conv *v, int n_threads) {
    const pass s = backward_pass(v, n_threads);
    return workspace_bytes(&s);
}

void SN_CPU(winograd_dx_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = backward_pass(&o->v, c->n_threads);
    s.source = o->dy;
    s.weights = o->w;
    s.target = o->dx;
    run(&s, c);
}
