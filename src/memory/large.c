/* large.c: allocations of many pages come straight from the system, one mapping each.
 *
 *     [ sn_large, 64 bytes | data ......... | rest of the last page ]
 *
 * The C library would do so up to a size that it moves as it likes; larger chunks then lie in its
 * heap, where a small neighbour keeps them from going back. Here a freed byte is a free byte, at
 * once, and where each lies is known, so that what is resident of it can be measured.
 *
 * Invariants:
 * 1. The engine's list holds every live one, newest first.
 * 2. Data are zero and aligned to 64. */
#include "base/size.h"
#include "memory/private.h"

#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(sn_large) <= SN_ALLOC_ALIGN, "the front must keep the alignment");

/* The whole mapping; false when that passes the address space. */
static bool mapping_bytes(size_t bytes, size_t *out) {
    return sn_size_add(bytes, SN_ALLOC_ALIGN, out) && sn_size_align(*out, 4096, out);
}

void *sn_large_take(snug_engine *e, sn_category cat, size_t bytes) {
    size_t whole;
    if (!mapping_bytes(bytes, &whole))
        return NULL;
    void *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    sn_large *l = p;
    *l = (sn_large){.next = e->large, .bytes = bytes, .mapped_bytes = whole, .category = cat};
    if (l->next)
        l->next->prev = l;
    e->large = l;
    return (char *)p + SN_ALLOC_ALIGN;
}

void sn_large_give(snug_engine *e, void *data) {
    sn_large *l = (sn_large *)(void *)((char *)data - SN_ALLOC_ALIGN);
    if (l->prev)
        l->prev->next = l->next;
    else
        e->large = l->next;
    if (l->next)
        l->next->prev = l->prev;
    munmap(l, l->mapped_bytes);
}
