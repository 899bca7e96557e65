/* block.c: large memory straight from the system, whole pages, with an owner's name on the ledger.
 *
 *     guarded:    [ pages ............ | data ... rounded to 64 ][ inaccessible page ]
 *     unguarded:  [ data ... | rest of the last page ]
 *
 * Invariants:
 * 1. The ledger counts booked_bytes: whole pages without the guard page, which costs no memory, or
 *    of a stack what is expected to be touched.
 * 2. A populated block is resident when sn_block_init returns, or the call failed: nothing later
 *    can fault in a page that the system does not have. The limits are read before, because a
 *    cgroup answers with a kill.
 * 3. With a caller's allocator the block comes from it, page aligned and in whole pages, and has no
 *    guard. */
#include "base/file.h"
#include "base/size.h"
#include "memory/limits.h"
#include "memory/private.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const size_t huge_from_bytes = (size_t)4 << 20;

static size_t page_size(void) {
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

/* Where data starts in the mapping: in a guarded block so that its last line of SN_ALLOC_ALIGN
 * bytes ends at the guard page. */
static size_t front_bytes(const sn_block *b) {
    const size_t lines = b->bytes > 0 ? (b->bytes - 1) / SN_ALLOC_ALIGN + 1 : 1;
    return b->guarded ? b->mapped_bytes - lines * SN_ALLOC_ALIGN : 0;
}

char *sn_block_base(const sn_block *b) {
    return (char *)b->data - front_bytes(b);
}

/* Makes [base, base + bytes) resident. MADV_POPULATE_WRITE reports want of memory as an error;
 * kernels before 5.14 do not know it, there each page is written to. */
static bool populate(void *base, size_t bytes, size_t page) {
    int rc;
    do {
        rc = madvise(base, bytes, MADV_POPULATE_WRITE);
    } while (rc != 0 && (errno == EINTR || errno == EAGAIN));
    if (rc == 0)
        return true;
    if (errno != EINVAL)
        return false;
    volatile char *p = base;
    for (size_t i = 0; i < bytes; i += page)
        p[i] = 0;
    return true;
}

/* Page tables count, too: 8 bytes a page, and the tables above them. Asked of the system itself: a
 * caller's I/O table need not know /proc, and not to know a limit is to be killed by it. */
static snug_status check_limits(const snug_engine *e, const sn_request *r, snug_error *err) {
    const sn_limits limits = sn_limits_read(&sn_io_system);
    const size_t tables = r->bytes / 256;
    const char *category = sn_category_name(r->category);
    char needs[32], room[32];
    if (limits.room_bytes > tables && r->bytes <= limits.room_bytes - tables)
        return SNUG_OK;
    return sn_fail_by(
        err, SNUG_E_MEMORY, e->process_budget_bytes > 0 ? SNUG_CAUSE_NONE : SNUG_CAUSE_NO_BUDGET,
        "%zu bytes (%s) for %s%s%.64s exceed the %zu bytes (%s) that the %s has left; "
        "give a %s or raise that limit",
        r->bytes, snug_bytes_print(r->bytes, needs, sizeof needs), category,
        strcmp(category, r->owner) == 0 ? "" : " ", strcmp(category, r->owner) == 0 ? "" : r->owner,
        limits.room_bytes, snug_bytes_print(limits.room_bytes, room, sizeof room), limits.name,
        e->process_budget_bytes > 0 ? "smaller budget" : "budget (what is free), a smaller batch,");
}

/* Maps b->mapped_bytes and the guard page; sets *base. */
static snug_status map_pages(const sn_block *b, const sn_block_options *o, const sn_request *r,
                             char **base, snug_error *err) {
    const size_t page = page_size();
    size_t total = b->mapped_bytes;
    if (o->guard && !sn_size_add(total, page, &total))
        return sn_ledger_fail(b->engine, r, err);
    if (r->category == SN_MEM_ARENA)
        malloc_trim(0); /* or what planning freed would stand beside the arena for good */
    if (o->populate)
        SNUG_TRY(check_limits(b->engine, r, err));
    /* RLIMIT_AS and RLIMIT_DATA are the kernel's to check: it answers ENOMEM and kills nobody. */
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return sn_ledger_fail(b->engine, r, err);
    const bool guarded = !o->guard || mprotect(p + b->mapped_bytes, page, PROT_NONE) == 0;
    /* Only advice; a huge page lies wholly inside the mapping, within what the ledger counts. */
    if (guarded && b->mapped_bytes >= huge_from_bytes)
        (void)madvise(p, b->mapped_bytes, MADV_HUGEPAGE);
    if (!guarded || (o->populate && !populate(p, b->mapped_bytes, page))) {
        munmap(p, total);
        return sn_ledger_fail(b->engine, r, err);
    }
    *base = p;
    return SNUG_OK;
}

static snug_status take_pages(const sn_block *b, const sn_block_options *o, const sn_request *r,
                              char **base, snug_error *err) {
    snug_engine *e = b->engine;
    if (!e->foreign)
        return map_pages(b, o, r, base, err);
    *base = e->allocator.alloc(e->allocator.ctx, b->mapped_bytes, page_size());
    return *base ? SNUG_OK : sn_ledger_fail(e, r, err);
}

static void link_block(sn_block *b) {
    snug_engine *e = b->engine;
    b->next = e->blocks;
    b->prev = NULL;
    if (b->next)
        b->next->prev = b;
    e->blocks = b;
}

static snug_status take_block(sn_block *b, const sn_block_options *o, const sn_request *r,
                              sn_block *out, snug_error *err) {
    char *base = NULL;
    SNUG_TRY(sn_ledger_ask(b->engine, r, err));
    SNUG_TRY(take_pages(b, o, r, &base, err));
    sn_ledger_book(b->engine, r);
    b->data = base + front_bytes(b);
    SN_POISON(base, b->mapped_bytes);
    SN_UNPOISON(b->data, b->bytes);
    *out = *b;
    link_block(out);
    return SNUG_OK;
}

snug_status sn_block_init(snug_engine *e, sn_category cat, const char *owner, size_t bytes,
                          const sn_block_options *o, sn_block *out, snug_error *err) {
    static const sn_block_options defaults;
    if (!o)
        o = &defaults;
    sn_block b = {.engine = e, .category = cat, .bytes = bytes, .guarded = o->guard && !e->foreign};
    snprintf(b.owner, sizeof b.owner, "%s", owner);
    if (!sn_size_align(bytes > 0 ? bytes : 1, page_size(), &b.mapped_bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu bytes for %s %s exceed the address space", bytes,
                       sn_category_name(cat), b.owner);
    const bool part = o->touched_bytes > 0 && o->touched_bytes < b.mapped_bytes;
    b.booked_bytes = part ? o->touched_bytes : b.mapped_bytes;
    const sn_request r = {.category = cat, .owner = b.owner, .bytes = b.booked_bytes};
    sn_ledger_lock(e);
    const snug_status status = take_block(&b, o, &r, out, err);
    sn_ledger_unlock(e);
    return status;
}

void sn_block_clear(sn_block *b) {
    if (!b || !b->data)
        return;
    snug_engine *e = b->engine;
    sn_ledger_lock(e);
    if (b->prev)
        b->prev->next = b->next;
    else
        e->blocks = b->next;
    if (b->next)
        b->next->prev = b->prev;
    char *base = sn_block_base(b);
    SN_UNPOISON(base, b->mapped_bytes);
    if (e->foreign)
        e->allocator.free(e->allocator.ctx, base, b->mapped_bytes);
    else
        munmap(base, b->mapped_bytes + (b->guarded ? page_size() : 0));
    sn_ledger_release(e, b->category, b->booked_bytes);
    sn_ledger_unlock(e);
    *b = (sn_block){0};
}
