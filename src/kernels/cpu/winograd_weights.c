/* winograd_weights.c: the gradient of a 3 x 3 convolution's weights (and bias) by transformed
 * tiles; see winograd.h.
 *
 * A block is some channels of x by some channels of dy. The tiles of all images go in groups, and a
 * group in pieces: tiles of x and of dy are transformed, and 36 products add to the block's sums.
 * Behind a group's last piece the sums become nine taps.
 *
 *     dw = ((before + group 0) + group 1) + ..., group = (piece 0 + piece 1) + ...
 *
 * Groups and pieces follow from the number of tiles alone, so bits depend neither on threads nor on
 * blocks. A task is a block; or, where those are too few for the threads and tiles are many, a
 * group of one, whose taps wait in the workspace until all are there.
 *
 * Workspace: scratch of each taker (sums [36][channels of x][of dy], gradient [36][piece][of dy],
 * source [36][piece][of x], and where dw is of halves the block's taps) | the sum of dy of each
 * group | when split, the taps of each group. */
#include "kernels/cpu/winograd.h"

#include "kernels/cpu/winograd_block.h"

enum { MAX_ROWS = 64, MAX_COLUMNS = 64, MAX_PIECE = 48 };
/* Groups where there are so many tiles, and floats that may wait. */
enum { GROUPS = 4, MANY_TILES = 192, MAX_WAITING = 1 << 19 };

typedef struct {
    const sn_conv_operands *o;
    sn_tile_source x, dy;
    sn_tiles tiles;
    int64_t group, n_groups, piece; /* tiles of a group and of a piece, but for the last */
    int64_t high, wide;             /* channels of x and of dy in a block, at most */
    int64_t n_high, n_wide;
    int threads;
    bool split;
    float *db_sums, *waiting; /* in the workspace */
} pass;

/* --- cutting --------------------------------------------------------------------------------- */
static int64_t pitch_of(int64_t channels) {
    return sn_round_up(channels, SN_VL);
}

static sn_tile_slices slices_of(const pass *s) {
    return (sn_tile_slices){.a = s->piece * pitch_of(s->high) + SN_TILE_GAP,
                            .b = s->piece * pitch_of(s->wide) + SN_TILE_GAP,
                            .c = s->high * pitch_of(s->wide) + SN_TILE_GAP};
}

static int64_t taps_floats(const pass *s) {
    return SN_TILE_W * SN_TILE_W * s->o->v.C * s->o->v.O;
}

static int64_t db_floats(const pass *s) {
    return s->o->v.bias ? s->n_groups * s->o->v.O : 0;
}

static void cut_columns(pass *s, int64_t most) {
    s->wide = sn_min_i64(most, s->o->v.O);
    s->n_wide = sn_ceil_div(s->o->v.O, s->wide);
}

/* Some threads would have more blocks than others, and blocks are few. */
static bool is_uneven(const pass *s) {
    const int64_t n_blocks = s->n_high * s->n_wide;
    return n_blocks < 4 * (int64_t)s->threads && n_blocks % s->threads != 0;
}

/* Groups as tasks need no work twice, but memory for what waits, and as many of them as threads
 * have the same number. Blocks of fewer columns transform x more often. */
static void cut(pass *s, int n_threads) {
    const sn_conv *v = &s->o->v;
    const double pixels = (double)(v->N * v->oh * v->ow);
    s->threads = sn_tile_threads(9 * pixels * (double)(v->C * v->O), n_threads);
    s->tiles = sn_tiles_of(v->N, v->oh, v->ow);
    if (s->tiles.n == 0 || v->O == 0)
        return;
    s->group = sn_ceil_div(s->tiles.n, s->tiles.n < MANY_TILES ? 1 : GROUPS);
    s->n_groups = sn_ceil_div(s->tiles.n, s->group);
    s->piece = sn_ceil_div(s->group, sn_ceil_div(s->group, MAX_PIECE));
    s->high = sn_min_i64(MAX_ROWS, v->C);
    s->n_high = sn_ceil_div(v->C, s->high);
    cut_columns(s, MAX_COLUMNS);
    s->split = is_uneven(s) && s->n_groups > 1 && s->n_groups % s->threads == 0 &&
               s->n_groups * taps_floats(s) <= MAX_WAITING;
    while (is_uneven(s) && !s->split && s->wide > SN_VL)
        cut_columns(s, sn_round_up(s->wide / 2, SN_VL));
}

static pass pass_of(const sn_conv_operands *o, int n_threads) {
    const sn_conv *v = &o->v;
    const sn_window down = sn_window_forward(v, 0), across = sn_window_forward(v, 1);
    pass s = {
        .o = o,
        .x = {o->x, {down, across}, {down.e0, across.e0}, SN_TILE_X, v->C, NULL, NULL},
        .dy = {o->dy, {{.size = v->oh}, {.size = v->ow}}, {0, 0}, SN_TILE_Y, v->O, o->pool, NULL},
    };
    if (o->halves) {
        s.x.from = &o->halves->x;
        s.dy.from = &o->halves->dy;
    }
    cut(&s, n_threads);
    return s;
}

/* --- one group of one block ------------------------------------------------------------------ */
typedef struct {
    int64_t row, rows, column, columns; /* channels of x, of dy */
    int64_t tile, tiles;                /* of the piece */
    float *sums, *gradient, *source, *taps;
} block;

/* The piece of dy; `db` grows by its sum, or is NULL. */
static void transform_gradient(const pass *s, const block *b, float *db) {
    float copy[SN_TILE_Y * SN_TILE_Y * MAX_COLUMNS];
    sn_vec sums[MAX_COLUMNS / SN_VL] = {0};
    for (int64_t i = 0; i < b->tiles; i++) {
        const sn_place at = sn_tiles_place(&s->tiles, b->tile + i);
        const sn_tile_view dy = sn_tile_view_of(&s->dy, at, b->column, b->columns, copy);
        SN_CPU(tile_gradient)
        (&dy, b->columns, b->gradient + i * pitch_of(s->wide), slices_of(s).b, sums);
    }
    for (int64_t j = 0; db && j < b->columns; j++)
        db[j] += sums[j / SN_VL][j % SN_VL];
}

static void transform_source(const pass *s, const block *b) {
    float copy[SN_TILE_X * SN_TILE_X * MAX_ROWS];
    for (int64_t i = 0; i < b->tiles; i++) {
        const sn_place at = sn_tiles_place(&s->tiles, b->tile + i);
        const sn_tile_view x = sn_tile_view_of(&s->x, at, b->row, b->rows, copy);
        SN_CPU(tile_source)(&x, b->rows, b->source + i * pitch_of(s->high), slices_of(s).a);
    }
}

/* Where a block's taps go: floats between rows, and between taps. */
typedef struct {
    float *at;
    int64_t row, tap;
} taps_place;

/* dw, or a group's part of it. */
static taps_place place_in(const pass *s, const block *b, float *dw) {
    const int64_t O = s->o->v.O;
    return (taps_place){dw + b->row * O + b->column, O, s->o->v.C * O};
}

static bool rounds_taps(const pass *s) {
    return s->o->halves && sn_dtype_is_half(s->o->halves->dw.dtype);
}

/* The block's sums become taps. */
static void finish_group(const pass *s, const block *b, taps_place to, bool add) {
    const int64_t pitch = pitch_of(s->wide);
    for (int64_t i = 0; i < b->rows; i++)
        SN_CPU(tile_taps)
    (b->sums + i * pitch, slices_of(s).c, b->columns, to.at + i * to.row, to.tap, add);
}

/* The block's own taps become dw, of halves. */
static void round_taps(const pass *s, const block *b) {
    const int64_t C = s->o->v.C, O = s->o->v.O;
    for (int64_t tap = 0; tap < SN_TILE_W * SN_TILE_W; tap++)
        for (int64_t i = 0; i < b->rows; i++)
            sn_stored_write(&s->o->halves->dw, (tap * C + b->row + i) * O + b->column, b->columns,
                            b->taps + (tap * s->high + i) * s->wide, s->o->accumulate);
}

static void sum_group(const pass *s, block *b, int64_t group) {
    int64_t a_row[MAX_ROWS], a_col[MAX_PIECE], c_row[MAX_ROWS];
    for (int64_t k = 0; k < s->piece; k++)
        a_col[k] = k * pitch_of(s->high);
    for (int64_t i = 0; i < b->rows; i++) {
        a_row[i] = i;
        c_row[i] = i * pitch_of(s->wide);
    }
    sn_gemm g = {.m = b->rows, .n = b->columns, .a_row = a_row, .a_col = a_col, .c_row = c_row};
    g.a = b->source;
    g.b = b->gradient;
    g.b_step = pitch_of(s->wide);
    g.c = b->sums;
    const int64_t first = group * s->group, end = sn_min_i64(first + s->group, s->tiles.n);
    float *db = s->o->v.bias && b->row == 0 ? s->db_sums + group * s->o->v.O + b->column : NULL;
    if (db)
        memset(db, 0, (size_t)b->columns * sizeof(float));
    for (b->tile = first; b->tile < end; b->tile += s->piece) {
        b->tiles = g.k = sn_min_i64(s->piece, end - b->tile);
        transform_gradient(s, b, db);
        transform_source(s, b);
        SN_CPU(winograd_multiply)(g, slices_of(s));
        g.add = true;
    }
}

/* --- all blocks ------------------------------------------------------------------------------ */
static block block_of(const pass *s, int64_t i, float *scratch) {
    const sn_conv *v = &s->o->v;
    const sn_tile_slices slice = slices_of(s);
    const int64_t row = i / s->n_wide * s->high, column = i % s->n_wide * s->wide;
    return (block){
        .row = row,
        .rows = sn_min_i64(s->high, v->C - row),
        .column = column,
        .columns = sn_min_i64(s->wide, v->O - column),
        .sums = scratch,
        .gradient = scratch + SN_TILE_POINTS * slice.c,
        .source = scratch + SN_TILE_POINTS * (slice.c + slice.b),
        .taps = scratch + SN_TILE_POINTS * (slice.c + slice.b + slice.a) - SN_TILE_GAP,
    };
}

static void run_block(const void *ctx, int64_t i, int64_t before, float *scratch) {
    const pass *s = ctx;
    (void)before;
    block b = block_of(s, i, scratch);
    const bool rounds = rounds_taps(s);
    const taps_place to =
        rounds ? (taps_place){b.taps, s->wide, s->high * s->wide} : place_in(s, &b, s->o->dw);
    for (int64_t group = 0; group < s->n_groups; group++) {
        sum_group(s, &b, group);
        finish_group(s, &b, to, group > 0 || (s->o->accumulate && !rounds));
    }
    if (rounds)
        round_taps(s, &b);
}

static void run_group(const void *ctx, int64_t i, int64_t before, float *scratch) {
    const pass *s = ctx;
    (void)before;
    const int64_t group = i % s->n_groups;
    block b = block_of(s, i / s->n_groups, scratch);
    sum_group(s, &b, group);
    finish_group(s, &b, place_in(s, &b, s->waiting + group * taps_floats(s)), false);
}

/* The same of halves, or of f32 beside them. */
static void store_groups(const float *groups, int64_t n_groups, int64_t n, const sn_stored *to,
                         bool add) {
    enum { LINE = 256 };
    float sum[LINE];
    for (int64_t i = 0, part; i < n; i += part) {
        part = sn_min_i64(LINE, n - i);
        for (int64_t j = 0; j < part; j++)
            sum[j] = groups[i + j];
        for (int64_t group = 1; group < n_groups; group++)
            for (int64_t j = 0; j < part; j++)
                sum[j] += groups[group * n + i + j];
        sn_stored_write(to, i, part, sum, add);
    }
}

/* `to` grows by what the groups have, or becomes it. */
static void add_groups(const float *groups, int64_t n_groups, int64_t n, float *to, bool add) {
    for (int64_t i = 0; i < n; i++) {
        float sum = add ? to[i] + groups[i] : groups[i];
        for (int64_t group = 1; group < n_groups; group++)
            sum += groups[group * n + i];
        to[i] = sum;
    }
}

/* Sums, gradient and source; the block's taps where those of dw are halves. */
static int64_t scratch_floats(const pass *s) {
    const sn_tile_slices slice = slices_of(s);
    const int64_t points = SN_TILE_POINTS * (slice.a + slice.b + slice.c) - SN_TILE_GAP;
    return rounds_taps(s) && !s->split ? points + SN_TILE_W * SN_TILE_W * s->high * s->wide
                                       : points;
}

static sn_tasks tasks_of(const pass *s) {
    const int64_t n = s->n_high * s->n_wide * (s->split ? s->n_groups : 1);
    return (sn_tasks){
        .ctx = s,
        .task = s->split ? run_group : run_block,
        .n = n,
        .n_takers = sn_min_i64(s->threads, n),
        .scratch_floats = scratch_floats(s),
    };
}

/* Where the sums of dy begin, and the taps that wait. */
static int64_t db_at(const sn_tasks *t) {
    return sn_lines(sn_tasks_floats(t));
}

static int64_t waiting_at(const pass *s, const sn_tasks *t) {
    return db_at(t) + sn_lines(db_floats(s));
}

size_t SN_CPU(winograd_dw_workspace)(const sn_conv_operands *o, int n_threads) {
    const pass s = pass_of(o, n_threads);
    const sn_tasks t = tasks_of(&s);
    int64_t floats = sn_tasks_floats(&t);
    if (db_floats(&s) > 0)
        floats = db_at(&t) + db_floats(&s);
    if (s.split)
        floats = waiting_at(&s, &t) + s.n_groups * taps_floats(&s);
    return (size_t)floats * sizeof(float);
}

void SN_CPU(winograd_dw_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = pass_of(o, c->n_threads);
    const sn_tasks t = tasks_of(&s);
    float *workspace = c->workspace;
    if (t.n == 0) {
        const size_t dw_bytes = o->halves ? snug_dtype_bytes(o->halves->dw.dtype) : sizeof(float);
        const size_t db_bytes = o->halves ? snug_dtype_bytes(o->halves->db.dtype) : sizeof(float);
        if (!o->accumulate && taps_floats(&s) > 0)
            memset(o->halves ? o->halves->dw.data : o->dw, 0, (size_t)taps_floats(&s) * dw_bytes);
        if (!o->accumulate && o->v.bias && o->v.O > 0)
            memset(o->halves ? o->halves->db.data : o->db, 0, (size_t)o->v.O * db_bytes);
        return;
    }
    s.db_sums = workspace + db_at(&t);
    s.waiting = workspace + waiting_at(&s, &t);
    SN_CPU(winograd_take)(&t, c, workspace);
    if (s.split && o->halves)
        store_groups(s.waiting, s.n_groups, taps_floats(&s), &o->halves->dw, o->accumulate);
    else if (s.split)
        add_groups(s.waiting, s.n_groups, taps_floats(&s), o->dw, o->accumulate);
    if (o->v.bias && o->halves)
        store_groups(s.db_sums, s.n_groups, o->v.O, &o->halves->db, o->accumulate);
    else if (o->v.bias)
        add_groups(s.db_sums, s.n_groups, o->v.O, o->db, o->accumulate);
}
