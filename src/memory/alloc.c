/* alloc.c: requests of any size, charged to a category, and arrays that grow. Small ones come from
 * the allocator, large ones from the system (large.c).
 *
 * Invariants:
 * 1. Order of a request: ask the ledger, take the bytes, book them. A failure at any point changes
 *    nothing.
 * 2. All of that happens under the engine's lock, so a caller's allocator is asked by one thread at
 *    a time.
 * 3. The allocator is asked for at least one byte, so that each pointer is unique, and given
 *    the same size when it gets it back. */
#include "base/size.h"
#include "memory/private.h"

#include <assert.h>
#include <string.h>

/* With SN_REDZONES each allocation carries its size and category in front, so that a free that
 * states another size or category is found where it happens. (Writes past the ends are
 * AddressSanitizer's to find.) A caller's allocator sees sizes as asked, so it gets no front. */
#ifdef SN_REDZONES
typedef struct {
    uint64_t magic;
    size_t bytes;
    sn_category category;
} alloc_front;
static const uint64_t front_live = 0x51ed270b9f3a11ceu;
static const uint64_t front_dead = 0xdeadf2eedeadf2eeu;
_Static_assert(sizeof(alloc_front) <= SN_ALLOC_ALIGN, "the front must keep the alignment");

static size_t front_bytes(const snug_engine *e) {
    return e->foreign ? 0 : SN_ALLOC_ALIGN;
}

static void *mark_live(const snug_engine *e, const sn_request *r, void *raw) {
    if (e->foreign)
        return raw;
    memcpy(raw, &(alloc_front){front_live, r->bytes, r->category}, sizeof(alloc_front));
    return (char *)raw + SN_ALLOC_ALIGN;
}

static void *mark_dead(const snug_engine *e, const sn_request *r, void *block) {
    if (e->foreign)
        return block;
    alloc_front *front = (alloc_front *)(void *)((char *)block - SN_ALLOC_ALIGN);
    assert(front->magic == front_live && "freed twice, or not from sn_alloc");
    assert(front->bytes == r->bytes && "freed with another size than it was asked with");
    assert(front->category == r->category && "freed in another category");
    front->magic = front_dead;
    memset(block, 0xdd, r->bytes);
    return front;
}
#else
static size_t front_bytes(const snug_engine *e) {
    (void)e;
    return 0;
}

static void *mark_live(const snug_engine *e, const sn_request *r, void *raw) {
    (void)e, (void)r;
    return raw;
}

static void *mark_dead(const snug_engine *e, const sn_request *r, void *block) {
    (void)e, (void)r;
    return block;
}
#endif

/* What the allocator is asked for; false when that passes the address space. */
static bool raw_bytes(const snug_engine *e, size_t bytes, size_t *out) {
    return sn_size_add(bytes > 0 ? bytes : 1, front_bytes(e), out);
}

static bool is_large(const snug_engine *e, size_t raw) {
    return raw >= SN_LARGE_BYTES && !e->foreign;
}

static void *take_raw(snug_engine *e, sn_category cat, size_t raw) {
    if (raw > PTRDIFF_MAX)
        return NULL;
    return is_large(e, raw) ? sn_large_take(e, cat, raw)
                            : e->allocator.alloc(e->allocator.ctx, raw, SN_ALLOC_ALIGN);
}

static snug_status take(snug_engine *e, const sn_request *r, void **out, snug_error *err) {
    SNUG_TRY(sn_ledger_ask(e, r, err));
    size_t raw;
    void *p = NULL;
    if (raw_bytes(e, r->bytes, &raw))
        p = take_raw(e, r->category, raw);
    if (!p)
        return sn_ledger_fail(e, r, err);
    sn_ledger_book(e, r);
    *out = mark_live(e, r, p);
    return SNUG_OK;
}

snug_status sn_alloc(snug_engine *e, sn_category cat, size_t bytes, void **out, snug_error *err) {
    const sn_request r = {.category = cat, .owner = "", .bytes = bytes};
    sn_ledger_lock(e);
    const snug_status status = take(e, &r, out, err);
    sn_ledger_unlock(e);
    return status;
}

snug_status sn_alloc_zero(snug_engine *e, sn_category cat, size_t bytes, void **out,
                          snug_error *err) {
    void *p;
    SNUG_TRY(sn_alloc(e, cat, bytes, &p, err));
    if (!is_large(e, bytes)) /* pages of the system are zero, and cost nothing until used */
        memset(p, 0, bytes);
    *out = p;
    return SNUG_OK;
}

void sn_free(snug_engine *e, sn_category cat, void *block, size_t bytes) {
    if (!block)
        return;
    const sn_request r = {.category = cat, .owner = "", .bytes = bytes};
    size_t raw = 0;
    const bool fits = raw_bytes(e, bytes, &raw);
    assert(fits);
    (void)fits;
    void *p = mark_dead(e, &r, block);
    sn_ledger_lock(e);
    if (is_large(e, raw))
        sn_large_give(e, p);
    else
        e->allocator.free(e->allocator.ctx, p, raw);
    sn_ledger_release(e, cat, bytes);
    sn_ledger_unlock(e);
}

/* Pages of the system move to where there is room for more of them. */
static snug_status move_pages(snug_engine *e, sn_category cat, size_t from, size_t to, void **inout,
                              snug_error *err) {
    const sn_request more = {.category = cat, .owner = "", .bytes = to > from ? to - from : 0};
    size_t raw;
    if (more.bytes > 0)
        SNUG_TRY(sn_ledger_ask(e, &more, err));
    void *p = NULL;
    if (raw_bytes(e, to, &raw) && raw <= PTRDIFF_MAX)
        p = sn_large_resize(e, (char *)*inout - front_bytes(e), raw);
    if (!p)
        return sn_ledger_fail(e, &more, err);
    if (more.bytes > 0)
        sn_ledger_book(e, &more);
    else
        sn_ledger_release(e, cat, from - to);
    *inout = mark_live(e, &(sn_request){.category = cat, .owner = "", .bytes = to}, p);
    return SNUG_OK;
}

static snug_status move_bytes(snug_engine *e, sn_category cat, size_t from, size_t to, void **inout,
                              snug_error *err) {
    void *made;
    SNUG_TRY(sn_alloc(e, cat, to, &made, err));
    memcpy(made, *inout, from < to ? from : to);
    sn_free(e, cat, *inout, from);
    *inout = made;
    return SNUG_OK;
}

snug_status sn_resize(snug_engine *e, sn_category cat, size_t from, size_t to, void **inout,
                      snug_error *err) {
    size_t least;
    if (!raw_bytes(e, from < to ? from : to, &least) || !is_large(e, least))
        return move_bytes(e, cat, from, to, inout, err);
    sn_ledger_lock(e);
    const snug_status status = move_pages(e, cat, from, to, inout, err);
    sn_ledger_unlock(e);
    return status;
}

/* Twice the capacity there is, or `need` where that is more, or where twice passes the address
 * space. */
static size_t next_cap(size_t cap, size_t elem_bytes, size_t need) {
    size_t twice = 8, bytes;
    if (cap > 0 && !sn_size_mul(cap, 2, &twice))
        return need;
    return twice > need && sn_size_mul(twice, elem_bytes, &bytes) ? twice : need;
}

snug_status sn_grow(snug_engine *e, sn_category cat, void *array, size_t elem_bytes, size_t *cap,
                    size_t need, snug_error *err) {
    if (need <= *cap)
        return SNUG_OK;
    const size_t new_cap = next_cap(*cap, elem_bytes, need);
    size_t bytes;
    if (!sn_size_mul(new_cap, elem_bytes, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "an array of %zu elements of %zu bytes exceeds the address space", need,
                       elem_bytes);
    void *grown, *old;
    SNUG_TRY(sn_alloc(e, cat, bytes, &grown, err));
    /* Copied, not read as a void *: the pointer there has the caller's type. */
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(grown, old, *cap * elem_bytes);
    sn_free(e, cat, old, *cap * elem_bytes);
    memcpy(array, &grown, sizeof grown);
    *cap = new_cap;
    return SNUG_OK;
}
