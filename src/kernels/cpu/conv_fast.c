/* conv_fast.c: convolutions as products (product.h) whose A is the image itself: a window's element
 * is found by adding the offset of the pixel and the offset of the tap, so no matrix of windows is
 * ever written.
 *
 *   forward   rows: pixels of y    k: (tap, channel of x)     columns: channels of y
 *   dx        rows: pixels of dx   k: (tap, channel of dy)    columns: channels of x
 *
 * dx is one product per remainder by the stride; see window.h. The weights' gradient is in
 * conv_weights.c.
 *
 * Where y or dy is pooled (conv_pool.h), a block of y stays in the thread's scratch until it is
 * pooled, and the part of dy that a block of dx reads is made there.
 *
 * Where windows reach into the padding, the part of the image that a block reads is first copied
 * with its zeros into the thread's scratch. Bits follow from the shape of one image: not from N
 * (for y and dx) or the threads.
 *
 * Halves are copied always, and become f32 then, or words of two channels (pairs.h); windows of one
 * pixel are copied piece by piece of their channels. Results lie in the thread's scratch until they
 * are rounded. */
#include "kernels/cpu/conv_fast.h"

#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/conv_pool.h"
#include "kernels/cpu/window.h"

enum { FEW_PIXELS = 256 };

typedef struct {
    sn_window w[2];
    int64_t groups, kw;
    int64_t source_channels, depth;   /* depth: per group */
    int64_t target_channels, columns; /* columns: per group */
    int64_t target_size[2];
    const float *source, *weights, *bias, *scale;
    float *target;
    bool transposed;   /* dx: k runs over the last axis of the weights */
    bool direct;       /* no window reaches into the padding, or there is none */
    bool plain;        /* the weights are B as they are */
    int64_t N, images; /* of the call; in a block: several where they are small */
    const sn_pooling *pool;
    bool halves; /* the last three then say where operands lie */
    bool pairs;  /* and they are multiplied as words of two terms */
    sn_stored from, kernel;
    sn_finish finish;
    sn_grid g; /* blocks of one image's pixels, once the product is cut */
} pass;

static int64_t pass_k(const pass *s) {
    return s->w[0].taps * s->w[1].taps * s->depth;
}

/* Whether y is pooled, and whether dy is. */
static bool takes(const pass *s) {
    return s->pool && !s->transposed;
}

static bool spreads(const pass *s) {
    return s->pool && s->transposed;
}

static bool reads_inside(const pass *s) {
    if (pass_k(s) > 0 && spreads(s))
        return false;
    return pass_k(s) == 0 || (sn_window_inside(&s->w[0]) && sn_window_inside(&s->w[1]));
}

static bool reads_in_place(const pass *s) {
    return s->halves ? pass_k(s) == 0 : reads_inside(s);
}

static bool reads_one_pixel(const pass *s) {
    return s->w[0].taps == 1 && s->w[1].taps == 1;
}

static int64_t word_of(const pass *s) {
    return s->pairs ? 2 : 1;
}

static int64_t pass_words(const pass *s) {
    return pass_k(s) / word_of(s);
}

/* Words of every piece but the last; of pairs in whole vectors, so that those of weights that lie
 * side by side do not reach into the next tap. */
static int64_t pass_piece(const pass *s) {
    const int64_t n_pieces = sn_ceil_div(pass_words(s), SN_PRODUCT_DEPTH);
    const int64_t even = n_pieces > 0 ? sn_ceil_div(pass_words(s), n_pieces) : 0;
    return s->pairs ? sn_ceil_div(even, SN_VL) * SN_VL : even;
}

static int64_t count_pieces(const pass *s) {
    const int64_t depth = s->pairs && pass_k(s) > 0 ? pass_piece(s) : SN_PRODUCT_DEPTH;
    return sn_ceil_div(pass_words(s), depth);
}

/* Whether the factors are done by words. By the depth alone, which no axis rule cuts without
 * cutting the sum. */
static bool takes_pairs(const sn_conv_operands *o, const pass *s) {
    const int64_t multiple = s->transposed ? 2 * SN_VL : 2;
    return o->halves && s->depth > 0 && s->depth % multiple == 0 && !s->pool &&
           sn_pairs_take(s->transposed ? o->halves->dy.dtype : o->halves->x.dtype,
                         o->halves->w.dtype);
}

/* Pixels that n pooled ones along an axis need; each has at most `cell` of them. */
static int64_t span_of(const sn_pool *p, int axis, int64_t n) {
    return n > 0 ? (n - 1) * p->stride[axis] + p->kernel[axis] : 0;
}

static int64_t cell_of(const sn_pool *p, int axis) {
    return p->stride[axis] > p->kernel[axis] ? p->stride[axis] : p->kernel[axis];
}

/* Several images are whole ones. Blocks that are pooled are made of whole windows. */
static sn_grid grid_of(const pass *s, int64_t limit) {
    const int64_t most = s->images > 1 ? SN_PRODUCT_ROWS : limit;
    if (!takes(s))
        return sn_grid_of(s->w[0].count, s->w[1].count, most, SN_GEMM_MR);
    const sn_pool *p = &s->pool->p;
    const int64_t fit = most / (cell_of(p, 0) * cell_of(p, 1));
    sn_grid g = sn_grid_of(p->oh, p->ow, fit > 1 ? fit : 1, 1);
    g.high = span_of(p, 0, g.high);
    g.wide = span_of(p, 1, g.wide);
    return g;
}

static int64_t count_pixels(const sn_product *p, int64_t limit, int64_t *rows) {
    const pass *s = p->ctx;
    const sn_grid g = grid_of(s, limit);
    *rows = s->images * g.high * g.wide;
    return g.n_down * g.n_across;
}

/* As many images as fill a block, but so few that there is work for all threads. */
static int64_t images_of(const pass *s, int64_t N) {
    enum { MIN_BLOCKS = 8 };
    const sn_pool *p = takes(s) ? &s->pool->p : NULL;
    const int64_t pixels =
        p ? p->oh * p->ow * cell_of(p, 0) * cell_of(p, 1) : s->w[0].count * s->w[1].count;
    const int64_t fit = pixels > 0 ? SN_PRODUCT_ROWS / pixels : 1;
    const int64_t most = sn_min_i64(fit, N / MIN_BLOCKS);
    return most > 1 ? most : 1;
}

/* Whether a patch has the channels of one piece, which is copied when its turn comes. */
static bool goes_by_pieces(const pass *s) {
    return s->halves && reads_one_pixel(s) && !spreads(s);
}

static int64_t patch_depth(const pass *s) {
    return goes_by_pieces(s) ? pass_piece(s) : s->depth / word_of(s);
}

/* Of one image. */
static int64_t patch_floats(const pass *s, sn_grid g) {
    return sn_window_reach(&s->w[0], g.high) * sn_window_reach(&s->w[1], g.wide) * patch_depth(s);
}

static int64_t patches_floats(const sn_product *p) {
    const pass *s = p->ctx;
    return s->direct ? 0 : s->images * patch_floats(s, grid_of(s, p->limit));
}

/* Whether a block's results are not stored at once: they are pooled, or rounded. */
static bool keeps_results(const pass *s) {
    return takes(s) || s->halves;
}

/* Behind the patches the block's results, where they are kept. */
static int64_t own_floats(const sn_product *p) {
    const int64_t patches = patches_floats(p);
    return keeps_results(p->ctx) ? sn_lines(patches) + p->rows * p->columns : patches;
}

/* Where each pixel reads one other, and pooling does not want its neighbours, all pixels of all
 * images are one line: blocks of it are as even as threads like them. */
static void straighten(pass *s, int64_t *N) {
    const bool single = reads_one_pixel(s) && !s->pool && s->groups == 1;
    if (!single || !reads_inside(s) || s->w[0].count != s->w[0].size ||
        s->w[1].count != s->w[1].size || s->target_size[0] != s->w[0].size ||
        s->target_size[1] != s->w[1].size)
        return;
    s->w[1].count = s->w[1].size = s->target_size[1] = *N * s->w[0].size * s->w[1].size;
    s->w[0].count = s->w[0].size = s->target_size[0] = 1;
    *N = 1;
}

static int64_t source_floats(const pass *s) {
    return s->w[0].size * s->w[1].size * s->source_channels;
}

/* The first source image of an entry, first channel of its group. */
static sn_image source_image(const pass *s, int64_t entry) {
    const int64_t at =
        entry / s->groups * s->images * source_floats(s) + entry % s->groups * s->depth;
    return (sn_image){s->halves ? NULL : s->source + at, s->w[1].size, s->source_channels};
}

/* Where a block reads: the image itself, or its patch. */
static sn_image block_image(const pass *s, const sn_product_block *b) {
    if (s->direct)
        return source_image(s, b->entry);
    return (sn_image){b->own, sn_window_reach(&s->w[1], s->g.wide), patch_depth(s)};
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

/* Pixels of a block: in each of its images the same ones. */
typedef struct {
    int64_t first[2], high, wide;
} pixels;

/* n channels from `channel` of a group on, of halves; or words. */
static void widen_patch(const pass *s, sn_product_block *b, const pixels *at, int64_t image,
                        int64_t channel, int64_t n) {
    const sn_region r = sn_region_of(s->w, at->first, at->high, at->wide);
    const int64_t first = (b->entry / s->groups * s->images + image) * source_floats(s);
    const sn_stored_image whole = {
        .from = &s->from,
        .at = first + b->entry % s->groups * s->depth + channel * word_of(s),
        .pitch = s->w[1].size,
        .channels = s->source_channels,
        .pairs = s->pairs,
    };
    sn_copy_stored(s->w, &r, whole, n, b->own + image * patch_floats(s, s->g),
                   block_image(s, b).pitch, patch_depth(s));
}

/* The pixels around a block's, with zeros in the padding, or spread from pooled ones. */
static void fill_patch(const pass *s, sn_product_block *b, const pixels *at, int64_t image) {
    if (s->halves && !spreads(s)) {
        if (!goes_by_pieces(s))
            widen_patch(s, b, at, image, 0, patch_depth(s));
        return;
    }
    const sn_image from = block_image(s, b);
    const sn_region r = sn_region_of(s->w, at->first, at->high, at->wide);
    float *patch = b->own + image * patch_floats(s, s->g);
    if (!spreads(s)) {
        sn_image whole = source_image(s, b->entry);
        whole.data += image * source_floats(s);
        sn_copy_region(s->w, &r, whole, s->depth, patch, from.pitch);
        return;
    }
    const sn_pool_area area = {
        .image = b->entry / s->groups * s->images + image,
        .row = r.row,
        .col = r.col,
        .high = r.high,
        .wide = r.wide,
        .c = b->entry % s->groups * s->depth,
        .n = s->depth,
        .at = patch,
        .pitch = from.pitch,
        .step = s->depth,
    };
    SN_CPU(conv_pool_spread)(s->pool, &area, s->source);
}

/* A block that will be pooled: pixels outside, which no window reads, are some other pixel. */
static void open_pooled(const pass *s, sn_product_block *b, const pixels *at, int64_t image) {
    const sn_image from = block_image(s, b);
    const int64_t begin = image * (s->direct ? source_floats(s) : patch_floats(s, s->g));
    for (int64_t i = 0; i < at->high * at->wide; i++) {
        int64_t row = i / at->wide, col = i % at->wide;
        if (s->direct) {
            row = sn_clamp(at->first[0] + row, 0, s->w[0].count - 1);
            col = sn_clamp(at->first[1] + col, 0, s->w[1].count - 1);
        }
        b->a_row[image * at->high * at->wide + i] =
            begin + (row * s->w[0].step * from.pitch + col * s->w[1].step) * from.channels;
    }
    if (!s->direct)
        fill_patch(s, b, at, image);
}

/* Image `image` of the block. */
static void open_image(const pass *s, sn_product_block *b, const pixels *at, int64_t image) {
    const sn_image from = block_image(s, b);
    const int64_t target = s->target_size[0] * s->target_size[1] * s->target_channels;
    const int64_t begin = image * (s->direct ? source_floats(s) : patch_floats(s, s->g));
    for (int64_t i = 0; i < at->high; i++) {
        const int64_t row = (s->direct ? at->first[0] + i : i) * s->w[0].step;
        const int64_t col = (s->direct ? at->first[1] : 0) * s->w[1].step;
        const int64_t down = s->w[0].t0 + (at->first[0] + i) * s->w[0].dt;
        const int64_t across = s->w[1].t0 + at->first[1] * s->w[1].dt;
        open_row(s, b, (image * at->high + i) * at->wide, at->wide,
                 begin + (row * from.pitch + col) * from.channels,
                 image * target + (down * s->target_size[1] + across) * s->target_channels);
    }
    if (!s->direct)
        fill_patch(s, b, at, image);
}

static pixels pixels_of(const pass *s, const sn_product_block *b) {
    const int64_t i = b->row_block / s->g.n_across, j = b->row_block % s->g.n_across;
    if (!takes(s)) {
        const int64_t down = i * s->g.high, across = j * s->g.wide;
        return (pixels){{down, across},
                        sn_min_i64(s->g.high, s->w[0].count - down),
                        sn_min_i64(s->g.wide, s->w[1].count - across)};
    }
    const sn_pool *p = &s->pool->p;
    const int64_t high = (s->g.high - p->kernel[0]) / p->stride[0] + 1, /* in windows */
        wide = (s->g.wide - p->kernel[1]) / p->stride[1] + 1;
    return (pixels){{i * high * p->stride[0] - p->pad[0], j * wide * p->stride[1] - p->pad[2]},
                    span_of(p, 0, sn_min_i64(high, p->oh - i * high)),
                    span_of(p, 1, sn_min_i64(wide, p->ow - j * wide))};
}

static void open_pixels(const sn_product *p, sn_product_block *b) {
    const pass *s = p->ctx;
    const pixels at = pixels_of(s, b);
    const int64_t n = b->entry / s->groups * s->images, images = sn_min_i64(s->images, s->N - n);
    b->rows = images * at.high * at.wide;
    b->c = keeps_results(s) ? b->own + sn_lines(patches_floats(p))
                            : s->target + b->entry % s->groups * s->columns +
                                  n * s->target_size[0] * s->target_size[1] * s->target_channels;
    if (b->bias)
        b->bias += b->entry % s->groups * s->columns;
    if (b->scale)
        b->scale += b->entry % s->groups * s->columns;
    for (int64_t image = 0; image < images; image++)
        (takes(s) ? open_pooled : open_image)(s, b, &at, image);
    for (int64_t i = 0; keeps_results(s) && i < b->rows; i++)
        b->c_row[i] = i * b->columns - b->n;
}

/* Halves: what the block made goes to the target, row by row of its pixels. */
static void close_halves(const sn_product *p, const sn_product_block *b) {
    const pass *s = p->ctx;
    const pixels at = pixels_of(s, b);
    const int64_t column = b->entry % s->groups * s->columns + b->n;
    const int64_t first = b->entry / s->groups * s->images * s->target_size[0];
    sn_finish_lines lines;
    sn_finish_open(&s->finish, column, b->columns, &lines);
    float *sums = b->c;
    for (int64_t row = 0; row * at.wide < b->rows; row++) {
        const int64_t image = row / at.high, i = row % at.high;
        const int64_t line =
            first + image * s->target_size[0] + s->w[0].t0 + (at.first[0] + i) * s->w[0].dt;
        const int64_t step = s->w[1].dt * s->target_channels;
        const int64_t to = (line * s->target_size[1] + s->w[1].t0) * s->target_channels + column +
                           at.first[1] * step;
        sn_finish_rows(&s->finish, &lines, sums, at.wide, to, step);
        sums += at.wide * b->columns;
    }
}

/* Halves that will be pooled. */
static void finish_sums(const pass *s, const sn_product_block *b) {
    sn_finish_lines lines;
    sn_finish_open(&s->finish, b->entry % s->groups * s->columns + b->n, b->columns, &lines);
    for (int64_t i = 0; i < b->rows; i++)
        sn_finish_line(&s->finish, &lines, b->c + i * b->columns);
}

/* Pools what the block made. */
static void close_pixels(const sn_product *p, const sn_product_block *b) {
    const pass *s = p->ctx;
    const pixels at = pixels_of(s, b);
    sn_pool_area area = {
        .image = b->entry / s->groups * s->images,
        .row = at.first[0],
        .col = at.first[1],
        .high = at.high,
        .wide = at.wide,
        .c = b->entry % s->groups * s->columns + b->n,
        .n = b->columns,
        .at = b->c,
        .pitch = at.wide,
        .step = b->columns,
    };
    if (s->halves)
        finish_sums(s, b);
    for (int64_t i = 0; i < b->rows; i += at.high * at.wide) {
        SN_CPU(conv_pool_take)(s->pool, &area, s->target);
        area.image++;
        area.at += at.high * at.wide * b->columns;
    }
}

/* Term k of the sum: a tap of the window and a channel, of `depth` of them. */
typedef struct {
    int64_t down, across, channel;
} term;

static term term_at(const pass *s, int64_t k, int64_t depth) {
    const int64_t tap = k / depth;
    return (term){tap / s->w[1].taps, tap % s->w[1].taps, k % depth};
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

/* Channels [first, first + n) of the block's pixels. */
static void widen_piece(const pass *s, sn_product_block *b, int64_t first, int64_t n) {
    const pixels at = pixels_of(s, b);
    for (int64_t image = 0; image * at.high * at.wide < b->rows; image++)
        widen_patch(s, b, &at, image, first, n);
}

static void pixel_piece(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g) {
    const pass *s = p->ctx;
    const sn_image from = block_image(s, b);
    const int64_t first = i * pass_piece(s);
    const int64_t origin[2] = {s->direct ? 0 : sn_window_low(&s->w[0]),
                               s->direct ? 0 : sn_window_low(&s->w[1])};
    const int64_t depth = s->depth / word_of(s);
    g->k = sn_min_i64(pass_piece(s), pass_words(s) - first);
    g->pairs = s->pairs;
    if (goes_by_pieces(s))
        widen_piece(s, b, first, g->k);
    for (int64_t k = 0, n; k < g->k; k += n) { /* the channels of a tap lie side by side */
        const term t = term_at(s, first + k, depth);
        const int64_t row = s->w[0].e0 + t.down * s->w[0].de - origin[0];
        const int64_t col = s->w[1].e0 + t.across * s->w[1].de - origin[1];
        const int64_t channel = goes_by_pieces(s) ? t.channel - first : t.channel;
        const int64_t at = (row * from.pitch + col) * from.channels + channel;
        n = sn_min_i64(depth - t.channel, g->k - k);
        for (int64_t j = 0; j < n; j++)
            b->a_col[k + j] = at + j;
    }
    g->a = from.data;
    g->a_row = b->a_row;
    g->a_col = b->a_col;
    if (s->plain) {
        g->b_step = s->target_channels;
        g->b_goes_on = i + 1 < p->n_pieces;
        g->b = s->weights + first * g->b_step + b->entry % s->groups * s->columns + b->n;
        return;
    }
    const float *packed =
        p->shared + b->entry % s->groups * sn_gemm_packed(pass_words(s), s->columns);
    g->b = packed + sn_gemm_packed(first, s->columns) + b->n * g->k;
    g->b_step = 0;
}

/* Whether packing would cost more than it saves: each weight meets few pixels. It changes no
 * bits. */
static bool weights_are_plain(const sn_conv *v) {
    return v->N * v->oh * v->ow <= FEW_PIXELS && v->O >= SN_GEMM_VL;
}

/* Packs the weights of one piece of one group. */
static void pack_weights(const sn_product *p, int64_t share) {
    const pass *s = p->ctx;
    const int64_t group = share / p->n_pieces, word = share % p->n_pieces * pass_piece(s);
    const int64_t first = word * word_of(s);
    const int64_t channels = s->transposed ? s->source_channels : s->target_channels;
    const int64_t inner =
        s->transposed ? s->columns : s->depth; /* extent of the weights' third axis */
    int64_t row[2 * SN_PRODUCT_DEPTH];
    sn_gemm_source source = {.k = sn_min_i64(pass_piece(s) * word_of(s), pass_k(s) - first),
                             .n = s->columns,
                             .row = row};
    const int64_t from = group * (s->transposed ? s->depth : s->columns);
    source.col = s->transposed ? channels : 1;
    term t = term_at(s, first, s->depth);
    for (int64_t k = 0; k < source.k; k++, next_term(s, &t)) {
        const int64_t down = s->w[0].k0 + t.down * s->w[0].dk,
                      across = s->w[1].k0 + t.across * s->w[1].dk;
        const int64_t tap = (down * s->kw + across) * inner * channels;
        row[k] = tap + t.channel * (s->transposed ? 1 : channels);
    }
    float *packed = p->shared + group * sn_gemm_packed(pass_words(s), s->columns) +
                    sn_gemm_packed(word, s->columns);
    if (s->halves) {
        (s->pairs ? sn_pairs_pack : sn_stored_pack)(
            &(sn_stored_source){&s->kernel, from, source.k, source.n, row, source.col}, packed);
        return;
    }
    source.b = s->weights + from;
    SN_CPU(gemm_pack)(&source, packed);
}

static sn_product product_of(pass *s, int64_t N, int n_threads) {
    straighten(s, &N);
    s->N = N;
    s->images = images_of(s, N);
    sn_product p = {
        .ctx = s,
        .batch = sn_ceil_div(N, s->images) * s->groups,
        .N = s->columns,
        .n_pieces = count_pieces(s),
        .count_row_blocks = count_pixels,
        .open = open_pixels,
        .piece = pixel_piece,
        .fill_shared = pack_weights,
        .close = takes(s)    ? close_pixels
                 : s->halves ? close_halves
                             : NULL,
        .own_floats = own_floats,
        .shared_floats = s->plain ? 0 : s->groups * sn_gemm_packed(pass_words(s), s->columns),
        .bias = s->bias,
        .scale = s->scale,
        .grain = s->plain && !s->pool ? SN_GEMM_VL : 0, /* codes of a pooled byte stay together */
    };
    p.work = (double)(N * s->groups * s->w[0].count * s->w[1].count) * (double)(pass_k(s) * p.N);
    p.n_shares = s->plain ? 0 : s->groups * p.n_pieces;
    SN_CPU(product_cut)(&p, n_threads);
    s->g = grid_of(s, p.limit);
    return p;
}

static pass forward_pass(const sn_conv_operands *o) {
    const sn_conv *v = &o->v;
    pass s = {
        .pool = o->pool,
        .halves = o->halves != NULL,
        .w = {sn_window_forward(v, 0), sn_window_forward(v, 1)},
        .groups = v->groups,
        .kw = v->kw,
        .source_channels = v->C,
        .depth = v->C / v->groups,
        .target_channels = v->O,
        .columns = v->O / v->groups,
        .target_size = {v->oh, v->ow},
    };
    s.direct = reads_in_place(&s);
    s.plain = weights_are_plain(v) && !s.halves;
    s.pairs = takes_pairs(o, &s);
    return s;
}

static pass backward_pass(const sn_conv_operands *o, int64_t down, int64_t across) {
    const sn_conv *v = &o->v;
    pass s = {
        .pool = o->pool,
        .halves = o->halves != NULL,
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
    s.direct = reads_in_place(&s);
    s.pairs = takes_pairs(o, &s);
    return s;
}

bool SN_CPU(conv_has_pairs)(const sn_conv_operands *o, sn_onednn_kind kind) {
    if (kind == SN_ONEDNN_DW)
        return false;
    const pass s = kind == SN_ONEDNN_DX ? backward_pass(o, 0, 0) : forward_pass(o);
    return s.pairs;
}

size_t SN_CPU(conv_workspace)(const sn_conv_operands *o, int n_threads) {
    pass s = forward_pass(o);
    return product_of(&s, o->v.N, n_threads).workspace_bytes;
}

void SN_CPU(conv_run)(const sn_conv_operands *o, const sn_call *c) {
    pass s = forward_pass(o);
    s.source = o->x;
    s.weights = o->w;
    s.bias = o->bias;
    s.scale = o->scale;
    s.target = o->y;
    if (s.halves) {
        s.from = o->halves->x;
        s.kernel = o->halves->w;
        s.finish = (sn_finish){o->halves->y, o->halves->scale, o->halves->bias, o->v.act, false};
    }
    sn_product p = product_of(&s, o->v.N, c->n_threads);
    p.act = s.halves ? SN_ACT_none : o->v.act;
    SN_CPU(product_run)(&p, c, c->workspace);
}

size_t SN_CPU(conv_dx_workspace)(const sn_conv_operands *o, int n_threads) {
    const sn_conv *v = &o->v;
    size_t most = 0;
    for (int64_t i = 0; i < sn_min_i64(v->stride[0], v->H); i++)
        for (int64_t j = 0; j < sn_min_i64(v->stride[1], v->W); j++) {
            pass s = backward_pass(o, i, j);
            const size_t bytes = product_of(&s, v->N, n_threads).workspace_bytes;
            most = bytes > most ? bytes : most;
        }
    return most;
}

void SN_CPU(conv_dx_run)(const sn_conv_operands *o, const sn_call *c) {
    for (int64_t i = 0; i < sn_min_i64(o->v.stride[0], o->v.H); i++)
        for (int64_t j = 0; j < sn_min_i64(o->v.stride[1], o->v.W); j++) {
            pass s = backward_pass(o, i, j);
            s.source = o->dy;
            s.weights = o->w;
            s.target = o->dx;
            if (s.halves) {
                s.from = o->halves->dy;
                s.kernel = o->halves->w;
                s.finish.out = o->halves->dx;
            }
            sn_product p = product_of(&s, o->v.N, c->n_threads);
            SN_CPU(product_run)(&p, c, c->workspace);
        }
}
