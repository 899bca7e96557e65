/* large.c: allocations of many pages come straight from the system, one mapping each.
 *
 *     [ sn_large, 64 bytes | data ......... | rest of the last page ]
 *
 * The C library would do so up to a size that it moves as it likes; larger chunks then lie in its
 * heap, where a small neighbour keeps them from going back. Here a freed byte is a free byte, at
 * once, and where each lies is known, so that what is resident of it can be measured.
 *
 * From HUGE_BYTES on a mapping begins at a multiple of it and asks for huge pages: a new small page
 * costs the system more time than a kernel needs to fill it. What the mapping does not fill to its
 * end stays small pages, so no page reaches beyond what the ledger counts or into a neighbour.
 *
 * Invariants:
 * 1. The engine's list holds every live one, newest first.
 * 2. Data are zero and aligned to 64. */
#include "base/size.h"
#include "memory/private.h"

#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(sn_large) <= SN_ALLOC_ALIGN, "the front must keep the alignment");

#define HUGE_BYTES ((size_t)2 << 20)

/* The whole mapping; false when that passes the address space. */
static bool mapping_bytes(size_t bytes, size_t *out) {
    return sn_size_add(bytes, SN_ALLOC_ALIGN, out) && sn_size_align(*out, 4096, out);
}

static void *map(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* From a multiple of HUGE_BYTES on; what is mapped around it goes back at once. */
static void *map_huge(size_t bytes) {
    size_t wide;
    char *p = sn_size_add(bytes, HUGE_BYTES, &wide) ? map(wide) : NULL;
    if (!p)
        return NULL;
    const size_t front = (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
    if (front > 0)
        munmap(p, front);
    if (front < HUGE_BYTES)
        munmap(p + front + bytes, HUGE_BYTES - front);
    (void)madvise(p + front, bytes, MADV_HUGEPAGE); /* only advice */
    return p + front;
}

void *sn_large_take(snug_engine *e, sn_category cat, size_t bytes) {
    size_t whole;
    if (!mapping_bytes(bytes, &whole))
        return NULL;
    void *p = whole >= HUGE_BYTES ? map_huge(whole) : NULL;
    p = p ? p : map(whole); /* which asks for fewer addresses */
    if (!p)
        return NULL;
    sn_large *l = p;
    *l = (sn_large){.next = e->large, .bytes = bytes, .mapped_bytes = whole, .category = cat};
    if (l->next)
        l->next->prev = l;
    e->large = l;
    return (char *)p + SN_ALLOC_ALIGN;
}

static sn_large *front_of(void *data) {
    return (sn_large *)(void *)((char *)data - SN_ALLOC_ALIGN);
}

void *sn_large_resize(snug_engine *e, void *data, size_t bytes) {
    sn_large *l = front_of(data);
    size_t whole;
    if (!mapping_bytes(bytes, &whole))
        return NULL;
    void *p = mremap(l, l->mapped_bytes, whole, MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return NULL;
    l = p;
    l->is_full &= whole <= l->mapped_bytes;
    l->bytes = bytes;
    l->mapped_bytes = whole;
    *(l->prev ? &l->prev->next : &e->large) = l;
    if (l->next)
        l->next->prev = l;
    return (char *)p + SN_ALLOC_ALIGN;
}

void sn_large_give(snug_engine *e, void *data) {
    sn_large *l = front_of(data);
    if (l->prev)
        l->prev->next = l->next;
    else
        e->large = l->next;
    if (l->next)
        l->next->prev = l->prev;
    munmap(l, l->mapped_bytes);
}
