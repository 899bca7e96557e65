/* zone.c: many small objects with one lifetime: bump allocation in chunks that double up to a
 * limit.
 *
 *     zone -> chunk (newest) -> chunk -> ... -> first chunk, which also holds the zone itself
 *     chunk: [ header | object, object, ... | unused ]
 *
 * Invariants:
 * 1. Objects are aligned to 16, zeroed unless raw, never moved and never freed alone.
 * 2. A zone of HUGE_FROM_BYTES and more grows by chunks that huge pages fill (large.c); not one of
 *    the planner, whose bytes stand beside what it promises.
 * 3. With SN_REDZONES a gap lies behind each object and all unused bytes are poisoned for
 *    AddressSanitizer. */
#include "base/size.h"
#include "memory/private.h"

#include <string.h>

#ifdef SN_REDZONES
enum { GAP_BYTES = 16 };
#else
enum { GAP_BYTES = 0 };
#endif

enum {
    ZONE_ALIGN = 16,
    FIRST_CHUNK_BYTES = 1024,
    LARGEST_CHUNK_BYTES = 64 * 1024,
    HUGE_FROM_BYTES = 1 << 19,
    HUGE_CHUNK_BYTES = (2 << 20) - 128 /* with the front of a large allocation */
};

typedef struct chunk {
    struct chunk *older;
    size_t bytes; /* with this header */
    size_t used;  /* with this header */
} chunk;

/* Objects start at a multiple of ZONE_ALIGN; chunks themselves are aligned to 64. */
enum { CHUNK_HEADER_BYTES = (sizeof(chunk) + ZONE_ALIGN - 1) / ZONE_ALIGN * ZONE_ALIGN };

struct sn_zone {
    snug_engine *engine;
    sn_category category;
    chunk *newest;
    size_t bytes;      /* of all chunks */
    size_t next_bytes; /* what the next chunk will have, if the object fits */
};

static snug_status create_chunk(snug_engine *e, sn_category cat, size_t bytes, chunk **out,
                                snug_error *err) {
    void *p;
    SNUG_TRY(sn_alloc(e, cat, bytes, &p, err));
    chunk *c = p;
    *c = (chunk){.bytes = bytes, .used = CHUNK_HEADER_BYTES};
    SN_POISON((char *)p + CHUNK_HEADER_BYTES, bytes - CHUNK_HEADER_BYTES);
    *out = c;
    return SNUG_OK;
}

/* The caller made sure that it fits. */
static void *take(chunk *c, size_t step, size_t bytes) {
    char *p = (char *)c + c->used;
    c->used += step;
    SN_UNPOISON(p, bytes);
    return p;
}

/* What an object of that many bytes takes from a chunk; at least ZONE_ALIGN, so that pointers are
 * unique. */
static bool step_of(size_t bytes, size_t *out) {
    return sn_size_add(bytes > 0 ? bytes : 1, GAP_BYTES, out) &&
           sn_size_align(*out, ZONE_ALIGN, out);
}

snug_status sn_zone_create_for(snug_engine *e, sn_category cat, size_t bytes, sn_zone **out,
                               snug_error *err) {
    size_t first = FIRST_CHUNK_BYTES, step = 0;
    chunk *c;
    while (first < bytes && first < LARGEST_CHUNK_BYTES)
        first *= 2;
    SNUG_TRY(create_chunk(e, cat, first, &c, err));
    step_of(sizeof(sn_zone), &step);
    sn_zone *const z = take(c, step, sizeof *z);
    *z = (sn_zone){e, cat, c, c->bytes, first < LARGEST_CHUNK_BYTES ? first * 2 : first};
    *out = z;
    return SNUG_OK;
}

snug_status sn_zone_create(snug_engine *e, sn_category cat, sn_zone **out, snug_error *err) {
    return sn_zone_create_for(e, cat, FIRST_CHUNK_BYTES, out, err);
}

snug_status sn_zone_alloc_raw(sn_zone *z, size_t bytes, void **out, snug_error *err) {
    size_t step, need;
    if (!step_of(bytes, &step) || !sn_size_add(step, CHUNK_HEADER_BYTES, &need))
        return sn_fail(err, SNUG_E_OVERFLOW, "an object of %zu bytes exceeds the address space",
                       bytes);
    if (step > z->newest->bytes - z->newest->used) {
        chunk *c;
        SNUG_TRY(create_chunk(z->engine, z->category, need > z->next_bytes ? need : z->next_bytes,
                              &c, err));
        c->older = z->newest;
        z->newest = c;
        z->bytes += c->bytes;
        if (z->next_bytes < LARGEST_CHUNK_BYTES)
            z->next_bytes *= 2;
        if (z->bytes >= HUGE_FROM_BYTES && z->category != SN_MEM_PLAN)
            z->next_bytes = HUGE_CHUNK_BYTES;
    }
    *out = take(z->newest, step, bytes);
    return SNUG_OK;
}

snug_status sn_zone_alloc(sn_zone *z, size_t bytes, void **out, snug_error *err) {
    SNUG_TRY(sn_zone_alloc_raw(z, bytes, out, err));
    memset(*out, 0, bytes);
    return SNUG_OK;
}

snug_status sn_zone_text(sn_zone *z, const char *text, const char **out, snug_error *err) {
    const size_t bytes = strlen(text) + 1;
    void *p;
    SNUG_TRY(sn_zone_alloc(z, bytes, &p, err));
    memcpy(p, text, bytes);
    *out = p;
    return SNUG_OK;
}

snug_engine *sn_zone_engine(const sn_zone *z) {
    return z->engine;
}

size_t sn_zone_bytes(const sn_zone *z) {
    return z->bytes;
}

/* The oldest chunk, which has the zone in it, stays, and one chunk beside it. */
snug_status sn_zone_reset(sn_zone *z, snug_error *err) {
    size_t own = 0, used = 0;
    chunk *c = z->newest;
    step_of(sizeof *z, &own);
    for (const chunk *k = c; k; k = k->older)
        used += k->used;
    if (c->older && c->older->older) {
        for (chunk *older = c->older; older; c = older, older = c->older) {
            SN_UNPOISON(c, c->bytes);
            sn_free(z->engine, z->category, c, c->bytes);
        }
        z->newest = c;
        z->bytes = c->bytes;
        /* a little more may be wanted the next time */
        SNUG_TRY(create_chunk(z->engine, z->category, used + used / 16, &z->newest, err));
        z->newest->older = c;
        z->bytes += z->newest->bytes;
    }
    for (c = z->newest; c; c = c->older) {
        const size_t kept = CHUNK_HEADER_BYTES + (c->older ? 0 : own);
        SN_POISON((char *)c + kept, c->bytes - kept);
        c->used = kept;
    }
    return SNUG_OK;
}

void sn_zone_destroy(sn_zone *z) {
    if (!z)
        return;
    /* The zone lies in its oldest chunk, so what the loop needs is copied out first. */
    snug_engine *e = z->engine;
    const sn_category cat = z->category;
    for (chunk *c = z->newest, *older; c; c = older) {
        older = c->older;
        SN_UNPOISON(c, c->bytes);
        sn_free(e, cat, c, c->bytes);
    }
}
