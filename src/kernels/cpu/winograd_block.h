/* winograd_block.h: what winograd.c and winograd_weights.c share: an image seen as tiles, the 36
 * products of a block, and the takers of blocks. Slices, one per point, are a line longer than what
 * they hold, or all points of a tile would share few lines of the first-level cache. */
#ifndef SN_KERNELS_CPU_WINOGRAD_BLOCK_H
#define SN_KERNELS_CPU_WINOGRAD_BLOCK_H

#include "kernels/cpu/conv_halves.h"
#include "kernels/cpu/conv_pool.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/window.h"
#include "kernels/cpu/winograd_tile.h"

enum { SN_TILE_GAP = 16 };

static inline int64_t sn_round_up(int64_t n, int64_t multiple) {
    return sn_ceil_div(n, multiple) * multiple;
}

/* The tiles of all images, in order: a tile makes 4 x 4 pixels of a map. */
typedef struct {
    int64_t across, per_image, n;
} sn_tiles;

static inline sn_tiles sn_tiles_of(int64_t images, int64_t high, int64_t wide) {
    const int64_t across = sn_ceil_div(wide, SN_TILE_Y);
    const int64_t per_image = across * sn_ceil_div(high, SN_TILE_Y);
    return (sn_tiles){across, per_image, images * per_image};
}

/* The image of a tile, and the place of its first pixel in the map. */
typedef struct {
    int64_t image, row, col;
} sn_place;

static inline sn_place sn_tiles_place(const sn_tiles *t, int64_t i) {
    const int64_t in_image = i % t->per_image;
    return (sn_place){i / t->per_image, in_image / t->across * SN_TILE_Y,
                      in_image % t->across * SN_TILE_Y};
}

/* Images as they are read: `extent` pixels along each axis, from `low` before a tile's place on. */
typedef struct {
    const float *data;
    sn_window w[2]; /* of which `size` counts */
    int64_t low[2], extent, channels;
    const sn_pooling *pool; /* they are pooled, and spread as they are read; or NULL */
    const sn_stored *from;  /* they are halves, and lie here; or NULL */
} sn_tile_source;

/* n channels of a tile of the gradient whose pooled values s has. */
static inline void sn_tile_spread(const sn_tile_source *s, int64_t image, const sn_region *r,
                                  int64_t channel, int64_t n, float *copy) {
    const sn_pool_area area = {
        .image = image,
        .row = r->row,
        .col = r->col,
        .high = r->high,
        .wide = r->wide,
        .c = channel,
        .n = n,
        .at = copy,
        .pitch = r->wide,
        .step = n,
    };
    SN_CPU(conv_pool_spread)(s->pool, &area, s->data);
}

/* The same of halves, as f32. */
void SN_CPU(tile_widen)(const sn_tile_source *s, int64_t image, const sn_region *r, int64_t channel,
                        int64_t n, float *copy);

/* n channels of a tile; where it reaches outside, a copy with the padding's zeros. A copy, too,
 * of halves, and where pixels lie so far apart that they fall into the same few lines of the
 * caches. */
static inline sn_tile_view sn_tile_view_of(const sn_tile_source *s, sn_place at, int64_t channel,
                                           int64_t n, float *copy) {
    enum { FAR = 256 };
    const sn_region r = {at.row + s->low[0], at.col + s->low[1], s->extent, s->extent};
    const int64_t height = s->w[0].size, width = s->w[1].size, C = s->channels;
    const int64_t first = at.image * height * width * C + channel;
    const bool inside =
        r.row >= 0 && r.row + r.high <= height && r.col >= 0 && r.col + r.wide <= width;
    if (inside && !s->pool && !s->from && C < FAR)
        return (sn_tile_view){s->data + first + (r.row * width + r.col) * C, width * C, C};
    if (s->pool)
        sn_tile_spread(s, at.image, &r, channel, n, copy);
    else if (s->from)
        SN_CPU(tile_widen)(s, at.image, &r, channel, n, copy);
    else
        sn_copy_region(s->w, &r, (sn_image){s->data + first, width, C}, n, copy, s->extent);
    return (sn_tile_view){copy, s->extent * n, n};
}

/* g for the slices of every point in turn. */
typedef struct {
    int64_t a, b, c;
} sn_tile_slices;
void SN_CPU(winograd_multiply)(sn_gemm g, sn_tile_slices slice);

/* Takers go through n tasks, each taking the next one that is free after its first; the last begins
 * with task 0, which needs all of its scratch. `before` is the task that left the scratch as it is,
 * or -1. */
typedef struct {
    const void *ctx;
    void (*task)(const void *ctx, int64_t i, int64_t before, float *scratch);
    int64_t n, n_takers, scratch_floats;
} sn_tasks;
void SN_CPU(winograd_take)(const sn_tasks *t, const sn_call *c, float *scratch);
/* Floats of the scratch of all takers. */
static inline int64_t sn_tasks_floats(const sn_tasks *t) {
    return t->n_takers > 0 ? (t->n_takers - 1) * sn_lines(t->scratch_floats) + t->scratch_floats
                           : 0;
}

/* Threads for so many multiplications; fewer are done before another thread would be awake. */
static inline int sn_tile_threads(double work, int n_threads) {
    return work < (1 << 18) || n_threads < 1 ? 1 : n_threads;
}

#endif
