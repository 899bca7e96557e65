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
 * Halves become f32 where tiles and weights are copied, and are rounded tile by tile.
 *
 * Scratch of a taker: sums [36][tiles][columns], weights [36][piece][columns], source
 * [36][tiles][piece]. */
#include "kernels/cpu/winograd.h"

#include "kernels/cpu/act.h"
#include "kernels/cpu/winograd_block.h"

#include <stdatomic.h>

/* Sums and tiles of a block should stay in the second-level cache with the weights' piece. Weights
 * that are one piece serve all blocks of a taker that have the same columns, so blocks may be lower
 * then, and take less scratch. */
enum { MAX_PIECE = 64, MAX_COLUMNS = 64, MIN_TILES = 2 * SN_GEMM_MR };
enum { MAX_TILES = 48, MAX_TILES_OF_ONE = 24 };

typedef struct {
    sn_tile_source source;
    int64_t N, depth, columns; /* channels of the source, of the target */
    int64_t size[2];           /* of the target's map */
    const float *weights, *bias, *scale;
    float *target;
    bool transposed; /* dx: k runs over the last axis of the weights */
    int64_t act;
    const sn_pooling *pool;  /* of the target, or NULL */
    const sn_stored *kernel; /* halves: the weights, and what sums become; or NULL */
    sn_finish finish;
    /* cut: */
    sn_tiles tiles;
    int64_t piece;          /* channels; the last may be less */
    int64_t high, wide;     /* tiles and columns of a block, at most */
    int64_t n_high, n_wide; /* blocks */
    int64_t n_takers;
} pass;

/* --- scratch --------------------------------------------------------------------------------- */
/* Floats between neighbouring rows, and between slices. */
static int64_t column_pitch(const pass *s) {
    return sn_round_up(s->wide, SN_VL);
}

static int64_t piece_pitch(const pass *s) {
    return sn_round_up(s->piece, SN_VL);
}

static sn_tile_slices slices_of(const pass *s) {
    return (sn_tile_slices){.a = s->high * piece_pitch(s) + SN_TILE_GAP,
                            .b = s->piece * column_pitch(s) + SN_TILE_GAP,
                            .c = s->high * column_pitch(s) + SN_TILE_GAP};
}

static int64_t taker_floats(const pass *s) {
    const sn_tile_slices slice = slices_of(s);
    return SN_TILE_POINTS * (slice.a + slice.b + slice.c) - SN_TILE_GAP;
}

/* --- cutting --------------------------------------------------------------------------------- */
static bool is_one_piece(const pass *s) {
    return s->piece == s->depth;
}

/* Even blocks; so many that all threads have the same to do where they are few. */
static void cut_tiles(pass *s, int threads) {
    const int64_t few = 4 * (int64_t)threads;
    s->n_high = sn_ceil_div(s->tiles.n, is_one_piece(s) ? MAX_TILES_OF_ONE : MAX_TILES);
    while (s->n_high * s->n_wide < few && s->n_high * s->n_wide % threads != 0 &&
           s->tiles.n > (s->n_high + 1) * MIN_TILES)
        s->n_high++;
    const int64_t share = sn_ceil_div(s->tiles.n, s->n_high);
    s->high = sn_min_i64(sn_round_up(share, 2), s->tiles.n); /* as fast per tile as more rows */
    s->n_high = sn_ceil_div(s->tiles.n, s->high);
}

static void cut(pass *s, int n_threads) {
    const double pixels = (double)(s->N * s->size[0] * s->size[1]);
    const int threads = sn_tile_threads(9 * pixels * (double)(s->depth * s->columns), n_threads);
    s->tiles = sn_tiles_of(s->N, s->size[0], s->size[1]);
    s->piece = sn_ceil_div(s->depth, sn_ceil_div(s->depth, MAX_PIECE));
    s->piece = sn_min_i64(sn_round_up(s->piece, 16), s->depth);
    if (s->tiles.n == 0 || s->columns == 0)
        return;
    s->wide = sn_min_i64(MAX_COLUMNS, s->columns);
    s->n_wide = sn_ceil_div(s->columns, s->wide);
    cut_tiles(s, threads);
    s->n_takers = sn_min_i64(threads, s->n_high * s->n_wide);
}

/* --- tiles of halves -------------------------------------------------------------------------- */
void SN_CPU(tile_widen)(const sn_tile_source *s, int64_t image, const sn_region *r, int64_t channel,
                        int64_t n, float *copy) {
    const int64_t at = image * s->w[0].size * s->w[1].size * s->channels + channel;
    const sn_stored_image from = {s->from, at, s->w[1].size, s->channels, false};
    sn_copy_stored(s->w, r, from, n, copy, s->extent, n);
}

/* --- one block ------------------------------------------------------------------------------- */
/* Tiles [tile, tile + tiles), columns [column, column + columns), and in turn each piece of the
 * channels. */
typedef struct {
    int64_t tile, tiles, column, columns;
    int64_t channel, channels;
    bool has_weights; /* from the taker's block before */
    float *sums, *weights, *source;
} block;

/* From element `at` of the weights on. */
static void pack_tap(const pass *s, int64_t at, sn_gemm_source *source, float *to) {
    if (s->kernel) {
        sn_stored_pack(
            &(sn_stored_source){s->kernel, at, source->k, source->n, source->row, source->col}, to);
        return;
    }
    source->b = s->weights + at;
    SN_CPU(gemm_pack)(source, to);
}

/* VL channels of k at a time are first brought together, tap after tap: the same place in all nine
 * taps often falls into the same few lines of the caches. The taps of dx come in the opposite
 * order, their rows and columns exchanged. */
static void transform_weights(const pass *s, const block *b) {
    enum { FLOATS = SN_VL * MAX_COLUMNS };
    float taps[9 * FLOATS];
    int64_t row[SN_VL];
    const int64_t down = s->transposed ? 1 : s->columns, across = s->transposed ? s->depth : 1;
    const int64_t pitch = column_pitch(s);
    for (int64_t i = 0; i < SN_VL; i++)
        row[i] = i * down;
    for (int64_t k = 0; k < b->channels; k += SN_VL) {
        const int64_t n = sn_min_i64(SN_VL, b->channels - k);
        sn_gemm_source source = {.k = n, .n = b->columns, .row = row, .col = across};
        for (int64_t tap = 0; tap < 9; tap++) {
            const int64_t place = s->transposed ? 8 - tap : tap;
            const int64_t at =
                place * s->depth * s->columns + (b->channel + k) * down + b->column * across;
            pack_tap(s, at, &source, taps + tap * FLOATS);
        }
        for (int64_t j = 0; j < b->columns; j += SN_VL) {
            const int64_t panel = j / SN_GEMM_NR * SN_GEMM_NR;
            const int64_t width = sn_min_i64(SN_GEMM_NR, sn_round_up(b->columns - panel, SN_VL));
            const float *from = taps + panel * n + j - panel;
            float *to = b->weights + k * pitch + j;
            for (int64_t i = 0; i < n; i++)
                SN_CPU(tile_kernel)(from + i * width, FLOATS, to + i * pitch, slices_of(s).b);
        }
    }
}

static void transform_source(const pass *s, const block *b) {
    float copy[SN_TILE_X * SN_TILE_X * MAX_PIECE];
    for (int64_t i = 0; i < b->tiles; i++) {
        const sn_place at = sn_tiles_place(&s->tiles, b->tile + i);
        const sn_tile_view x = sn_tile_view_of(&s->source, at, b->channel, b->channels, copy);
        SN_CPU(tile_source)(&x, b->channels, b->source + i * piece_pitch(s), slices_of(s).a);
    }
}

/* A tile [4][4][columns] of the target. */
static void pool_tile(const pass *s, const block *b, sn_place at, float *tile) {
    const sn_pool_area area = {
        .image = at.image,
        .row = at.row,
        .col = at.col,
        .high = SN_TILE_Y,
        .wide = SN_TILE_Y,
        .c = b->column,
        .n = b->columns,
        .at = tile,
        .pitch = SN_TILE_Y,
        .step = b->columns,
    };
    SN_CPU(conv_pool_take)(s->pool, &area, s->target);
}

/* Element of the target: the block's first column of the pixel. */
static int64_t target_at(const pass *s, const block *b, sn_place at) {
    return ((at.image * s->size[0] + at.row) * s->size[1] + at.col) * s->columns + b->column;
}

/* Halves: what is done to the pixels of a tile before it is stored, or pooled. Out of line, so that
 * tiles of f32 do not pay for it. */
static __attribute__((noinline)) void finish_halves(const pass *s, const block *b, sn_place at,
                                                    const sn_tile_pixels *y) {
    sn_finish_lines lines;
    sn_finish_open(&s->finish, b->column, b->columns, &lines);
    for (int64_t i = 0; i < y->high; i++)
        for (int64_t j = 0; j < y->wide; j++) {
            const sn_place pixel = {at.image, at.row + i, at.col + j};
            float *sums = y->data + i * y->row + j * y->pixel;
            sn_finish_line(&s->finish, &lines, sums);
            if (!s->pool)
                sn_stored_write(&s->finish.out, target_at(s, b, pixel), b->columns, sums, false);
        }
}

/* Tile i of the block: its sums become pixels. */
static void finish_tile(const pass *s, const block *b, int64_t i) {
    float tile[SN_TILE_Y * SN_TILE_Y * MAX_COLUMNS];
    const sn_place at = sn_tiles_place(&s->tiles, b->tile + i);
    const int64_t height = s->size[0], width = s->size[1];
    const bool curved = s->act != SN_ACT_none && s->act != SN_ACT_relu && s->act != SN_ACT_relu6;
    sn_tile_pixels y = {
        .row = width * s->columns,
        .pixel = s->columns,
        .high = sn_min_i64(SN_TILE_Y, height - at.row),
        .wide = sn_min_i64(SN_TILE_Y, width - at.col),
        .scale = s->scale ? s->scale + b->column : NULL,
        .bias = s->bias ? s->bias + b->column : NULL,
        .relu = s->act == SN_ACT_relu,
        .relu6 = s->act == SN_ACT_relu6,
    };
    if (!s->pool && !s->kernel) {
        y.data = s->target + target_at(s, b, at);
    } else {
        y.data = tile;
        y.row = SN_TILE_Y * b->columns;
        y.pixel = b->columns;
    }
    SN_CPU(tile_target)(b->sums + i * column_pitch(s), slices_of(s).c, b->columns, &y);
    for (int64_t p = 0; curved && p < y.high * y.wide; p++)
        sn_act_f32(s->act, y.data + p / y.wide * y.row + p % y.wide * y.pixel, b->columns);
    if (s->kernel)
        finish_halves(s, b, at, &y);
    if (s->pool)
        pool_tile(s, b, at, tile);
}

/* --- all blocks ------------------------------------------------------------------------------ */
void SN_CPU(winograd_multiply)(sn_gemm g, sn_tile_slices slice) {
    for (int i = 0; i < SN_TILE_POINTS; i++) {
        SN_CPU(gemm)(&g);
        g.a += slice.a;
        g.b += slice.b;
        g.c += slice.c;
    }
}

static void sum_block(const pass *s, block *b) {
    int64_t a_row[MAX_TILES], a_col[MAX_PIECE], c_row[MAX_TILES];
    for (int64_t k = 0; k < s->piece; k++)
        a_col[k] = k;
    for (int64_t t = 0; t < b->tiles; t++) {
        a_row[t] = t * piece_pitch(s);
        c_row[t] = t * column_pitch(s);
    }
    sn_gemm g = {.m = b->tiles, .n = b->columns, .a_row = a_row, .a_col = a_col, .c_row = c_row};
    g.a = b->source;
    g.b = b->weights;
    g.b_step = column_pitch(s);
    g.c = b->sums;
    for (; b->channel < s->depth; b->channel += s->piece) {
        b->channels = g.k = sn_min_i64(s->piece, s->depth - b->channel);
        if (!b->has_weights)
            transform_weights(s, b);
        transform_source(s, b);
        SN_CPU(winograd_multiply)(g, slices_of(s));
        g.add = true;
    }
}

/* Blocks side by side read the same tiles; those with the same weights follow each other where one
 * piece is all of them. */
static int64_t wide_at(const pass *s, int64_t i) {
    return is_one_piece(s) ? i / s->n_high : i % s->n_wide;
}

static int64_t high_at(const pass *s, int64_t i) {
    return is_one_piece(s) ? i % s->n_high : i / s->n_wide;
}

static void run_block(const void *ctx, int64_t i, int64_t before, float *scratch) {
    const pass *s = ctx;
    const sn_tile_slices slice = slices_of(s);
    const int64_t tile = high_at(s, i) * s->high, column = wide_at(s, i) * s->wide;
    block b = {
        .has_weights = is_one_piece(s) && before >= 0 && wide_at(s, before) == wide_at(s, i),
        .tile = tile,
        .tiles = sn_min_i64(s->high, s->tiles.n - tile),
        .column = column,
        .columns = sn_min_i64(s->wide, s->columns - column),
        .sums = scratch,
        .weights = scratch + SN_TILE_POINTS * slice.c,
        .source = scratch + SN_TILE_POINTS * (slice.c + slice.b),
    };
    sum_block(s, &b);
    for (int64_t t = 0; t < b.tiles; t++)
        finish_tile(s, &b, t);
}

typedef struct {
    const sn_tasks *tasks;
    float *scratch;
    _Atomic int64_t *next;
} taking;

static void take_tasks(const void *ctx, int64_t first, int64_t end) {
    const taking *l = ctx;
    const sn_tasks *t = l->tasks;
    for (int64_t taker = first; taker < end; taker++) {
        float *scratch = l->scratch + taker * sn_lines(t->scratch_floats);
        int64_t before = -1;
        for (int64_t i = t->n_takers - 1 - taker; i < t->n; i = atomic_fetch_add(l->next, 1)) {
            t->task(t->ctx, i, before, scratch);
            before = i;
        }
    }
}

void SN_CPU(winograd_take)(const sn_tasks *t, const sn_call *c, float *scratch) {
    _Atomic int64_t next = t->n_takers;
    const taking l = {t, scratch, &next};
    sn_team_run(c->team, t->n_takers, take_tasks, &l);
}

/* --- forward and backward -------------------------------------------------------------------- */
static sn_tasks tasks_of(const pass *s) {
    return (sn_tasks){s, run_block, s->n_high * s->n_wide, s->n_takers, taker_floats(s)};
}

static size_t workspace_bytes(const pass *s) {
    const sn_tasks t = tasks_of(s);
    return (size_t)sn_tasks_floats(&t) * sizeof(float);
}

static void run(const pass *s, const sn_call *c) {
    const sn_tasks t = tasks_of(s);
    SN_CPU(winograd_take)(&t, c, c->workspace);
}

static void read_through(pass *s, sn_window down, sn_window across) {
    s->source = (sn_tile_source){
        .w = {down, across},
        .low = {sn_window_low(&down), sn_window_low(&across)},
        .extent = SN_TILE_X,
        .channels = s->depth,
    };
    s->size[0] = down.count;
    s->size[1] = across.count;
}

static pass forward_pass(const sn_conv *v, int n_threads) {
    pass s = {.N = v->N, .depth = v->C, .columns = v->O, .act = v->act};
    read_through(&s, sn_window_forward(v, 0), sn_window_forward(v, 1));
    cut(&s, n_threads);
    return s;
}

static pass backward_pass(const sn_conv *v, int n_threads) {
    pass s = {.N = v->N, .depth = v->O, .columns = v->C, .transposed = true, .act = SN_ACT_none};
    read_through(&s, sn_window_backward(v, 0, 0), sn_window_backward(v, 1, 0));
    cut(&s, n_threads);
    return s;
}

size_t SN_CPU(winograd_workspace)(const sn_conv_operands *o, int n_threads) {
    const pass s = forward_pass(&o->v, n_threads);
    return workspace_bytes(&s);
}

void SN_CPU(winograd_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = forward_pass(&o->v, c->n_threads);
    s.pool = o->pool;
    s.source.data = o->x;
    s.weights = o->w;
    s.bias = o->bias;
    s.scale = o->scale;
    s.target = o->y;
    if (o->halves) {
        s.source.from = &o->halves->x;
        s.kernel = &o->halves->w;
        s.finish = (sn_finish){o->halves->y, o->halves->scale, o->halves->bias, s.act, false};
        s.act = SN_ACT_none;
    }
    run(&s, c);
}

size_t SN_CPU(winograd_dx_workspace)(const sn_conv_operands *o, int n_threads) {
    const pass s = backward_pass(&o->v, n_threads);
    return workspace_bytes(&s);
}

void SN_CPU(winograd_dx_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = backward_pass(&o->v, c->n_threads);
    s.source.pool = o->pool;
    s.source.data = o->dy;
    s.weights = o->w;
    s.target = o->dx;
    if (o->halves) {
        s.source.from = &o->halves->dy;
        s.kernel = &o->halves->w;
        s.finish.out = o->halves->dx;
    }
    run(&s, c);
}
