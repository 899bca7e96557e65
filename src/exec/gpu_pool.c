/* gpu_pool.c: see gpu_pool.h.
 *
 * Invariants:
 * 1. The blocks of a chunk cover it without gaps, in the order of their addresses; no two free ones
 *    are neighbours.
 * 2. Giving back asks for nothing and cannot fail. */
#include "exec/gpu_pool.h"

#include "memory/engine.h"

#define UNIT        ((size_t)SN_GPU_ALIGN)
#define SMALL_BYTES ((size_t)1 << 20)  /* below it blocks lie in chunks for small ones */
#define SMALL_CHUNK (2 * SMALL_BYTES)  /* of these chunks, at least */
#define MOST_CHUNK  ((size_t)32 << 20) /* of such chunks, which grow with their sum */
#define KEPT_BYTES  ((size_t)256 << 20)

typedef struct sn_gpu_chunk {
    void *data;
    size_t bytes, used;
    bool small;
    sn_gpu_block *first;
    struct sn_gpu_chunk *next;
} sn_gpu_chunk;

struct sn_gpu_pool {
    sn_gpu_chunk *chunks;
    size_t small_bytes; /* of chunks for small blocks */
};

/* Of a block, in its chunk. */
static size_t block_room(size_t bytes) {
    return ((bytes > 0 ? bytes : 1) + UNIT - 1) / UNIT * UNIT;
}

/* Two small blocks of a little over a third of a chunk leave nearly a third of it to none. */
size_t sn_gpu_pool_bytes(const sn_gpu_device *d, size_t bytes) {
    if (bytes > SIZE_MAX / 2)
        return bytes; /* none has them */
    const size_t room = block_room(bytes);
    return room < SMALL_BYTES ? room + room / 2 : sn_gpu_granules(&d->facts, room);
}

size_t sn_gpu_pool_slack(const sn_gpu_device *d) {
    return sn_gpu_granules(&d->facts, SMALL_CHUNK);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static snug_status new_block(sn_gpu_device *d, const sn_gpu_block *like, sn_gpu_block **out,
                             snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(d->engine, SN_MEM_KERNELS, sizeof **out, &block, err));
    *out = block;
    **out = *like;
    return SNUG_OK;
}

static void free_block(sn_gpu_device *d, sn_gpu_block *b) {
    sn_free(d->engine, SN_MEM_KERNELS, b, sizeof *b);
}

/* What is behind the first `bytes` becomes a free block. */
static snug_status split(sn_gpu_device *d, sn_gpu_block *b, size_t bytes, snug_error *err) {
    sn_gpu_block rest = {.data = b->data + bytes,
                         .room = b->room - bytes,
                         .chunk = b->chunk,
                         .before = b,
                         .after = b->after};
    sn_gpu_block *made;
    if (rest.room == 0)
        return SNUG_OK;
    SNUG_TRY(new_block(d, &rest, &made, err));
    if (b->after)
        b->after->before = made;
    b->after = made;
    b->room = bytes;
    return SNUG_OK;
}

/* b takes in the one behind it. */
static void absorb(sn_gpu_device *d, sn_gpu_block *b) {
    sn_gpu_block *gone = b->after;
    b->room += gone->room;
    b->after = gone->after;
    if (b->after)
        b->after->before = b;
    free_block(d, gone);
}

static sn_gpu_block *best_fit(const struct sn_gpu_pool *p, size_t bytes, bool small) {
    sn_gpu_block *best = NULL;
    for (const sn_gpu_chunk *c = p->chunks; c; c = c->next)
        for (sn_gpu_block *b = c->small == small ? c->first : NULL; b; b = b->after)
            if (!b->used && b->room >= bytes && (!best || b->room < best->room))
                best = b;
    return best;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static void drop_chunk(sn_gpu_device *d, sn_gpu_chunk **link) {
    sn_gpu_chunk *c = *link;
    *link = c->next;
    d->pool->small_bytes -= c->small ? c->bytes : 0;
    sn_gpu_give(d, c->data);
    while (c->first->after)
        absorb(d, c->first);
    free_block(d, c->first);
    sn_free(d->engine, SN_MEM_KERNELS, c, sizeof *c);
}

static void keep_only(sn_gpu_device *d, size_t most) {
    size_t idle = 0;
    for (sn_gpu_chunk **link = d->pool ? &d->pool->chunks : NULL; link && *link;) {
        const size_t bytes = (*link)->used == 0 ? (*link)->bytes : 0;
        if (bytes > 0 && idle + bytes > most) {
            drop_chunk(d, link);
            continue;
        }
        idle += bytes;
        link = &(*link)->next;
    }
}

void sn_gpu_pool_trim(sn_gpu_device *d) {
    keep_only(d, 0);
}

/* Within a budget plans count on every granule. */
static size_t chunk_bytes(const sn_gpu_device *d, size_t bytes, bool small) {
    size_t grown = small && d->budget_bytes == 0 ? d->pool->small_bytes / 2 : 0;
    grown = grown < MOST_CHUNK ? grown : MOST_CHUNK;
    grown = small && grown < SMALL_CHUNK ? SMALL_CHUNK : grown;
    return sn_gpu_granules(&d->facts, bytes > grown ? bytes : grown);
}

static snug_status fill_chunk(sn_gpu_device *d, const char *what, sn_gpu_chunk *c,
                              snug_error *err) {
    SNUG_TRY(sn_gpu_take(d, what, c->bytes, &c->data, err));
    const sn_gpu_block whole = {.data = c->data, .room = c->bytes, .chunk = c};
    const snug_status status = new_block(d, &whole, &c->first, err);
    if (status != SNUG_OK)
        sn_gpu_give(d, c->data);
    return status;
}

static snug_status add_chunk(sn_gpu_device *d, const char *what, size_t bytes, bool small,
                             snug_error *err) {
    struct sn_gpu_pool *p = d->pool;
    void *block;
    SNUG_TRY(sn_alloc_zero(d->engine, SN_MEM_KERNELS, sizeof(sn_gpu_chunk), &block, err));
    sn_gpu_chunk *c = block;
    c->bytes = chunk_bytes(d, bytes, small);
    c->small = small;
    snug_status status = fill_chunk(d, what, c, NULL);
    if (status == SNUG_E_BUDGET || status == SNUG_E_MEMORY) { /* only what is needed, then */
        c->bytes = sn_gpu_granules(&d->facts, bytes);
        status = fill_chunk(d, what, c, err);
    }
    if (status != SNUG_OK) {
        sn_free(d->engine, SN_MEM_KERNELS, c, sizeof *c);
        return status;
    }
    c->next = p->chunks;
    p->chunks = c;
    p->small_bytes += small ? c->bytes : 0;
    return SNUG_OK;
}

/* --- the pool --------------------------------------------------------------------------------- */

static snug_status open_pool(sn_gpu_device *d, snug_error *err) {
    void *block;
    if (d->pool)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(d->engine, SN_MEM_KERNELS, sizeof *d->pool, &block, err));
    d->pool = block;
    return SNUG_OK;
}

snug_status sn_gpu_pool_take(sn_gpu_device *d, const char *what, size_t bytes, sn_gpu_block **out,
                             snug_error *err) {
    if (bytes > SIZE_MAX / 2)
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu bytes exceed every GPU", bytes);
    const size_t room = block_room(bytes);
    const bool small = room < SMALL_BYTES;
    SNUG_TRY(open_pool(d, err));
    sn_gpu_block *b = best_fit(d->pool, room, small);
    if (!b) {
        SNUG_TRY(add_chunk(d, what, room, small, err));
        b = best_fit(d->pool, room, small);
    }
    SNUG_TRY(split(d, b, room, err));
    b->used = true;
    b->bytes = bytes;
    b->chunk->used += b->room;
    *out = b;
    return SNUG_OK;
}

void sn_gpu_pool_give(sn_gpu_device *d, sn_gpu_block *b) {
    if (!b)
        return;
    b->used = false;
    b->chunk->used -= b->room;
    if (b->after && !b->after->used)
        absorb(d, b);
    if (b->before && !b->before->used) {
        b = b->before;
        absorb(d, b);
    }
    if (b->chunk->used == 0)
        keep_only(d, KEPT_BYTES);
}

void sn_gpu_pool_close(sn_gpu_device *d) {
    if (!d->pool)
        return;
    while (d->pool->chunks)
        drop_chunk(d, &d->pool->chunks);
    sn_free(d->engine, SN_MEM_KERNELS, d->pool, sizeof *d->pool);
    d->pool = NULL;
}

void sn_gpu_pool_tell(const sn_gpu_device *d, sn_gpu_pool_info *out) {
    *out = (sn_gpu_pool_info){.used_bytes = 0};
    for (const sn_gpu_chunk *c = d->pool ? d->pool->chunks : NULL; c; c = c->next) {
        out->used_bytes += c->used;
        out->chunk_bytes += c->bytes;
        out->idle_bytes += c->used == 0 ? c->bytes : 0;
        for (const sn_gpu_block *b = c->first; b; b = b->after)
            if (!b->used && b->room > out->largest_free_bytes)
                out->largest_free_bytes = b->room;
    }
}
