/* code.c: pages of this library's file (code.h). */
#include "memory/code.h"

#include "base/size.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static size_t page_size(void) {
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

/* Kernels before 5.14 do not know the advice: there each page is read from. */
static void bring(uintptr_t first, uintptr_t end, size_t page) {
    int rc;
    do {
        rc = madvise((void *)first, end - first, MADV_POPULATE_READ);
    } while (rc != 0 && (errno == EINTR || errno == EAGAIN));
    for (uintptr_t at = first; rc != 0 && errno == EINVAL && at < end; at += page)
        (void)*(const volatile char *)at;
}

static bool holds(const struct dl_phdr_info *info, uintptr_t at) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && at - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
            return true;
    }
    return false;
}

/* The C library and its mathematics: kernels and files call them. */
static bool is_c_library(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libm.so", 7) == 0;
}

typedef struct {
    const sn_code_range *unused;
    size_t n_unused;
} gaps;

/* What lies within a gap is not brought: the process would be that much larger for a moment. */
static void bring_around(uintptr_t first, uintptr_t end, const gaps *g, size_t page) {
    for (size_t i = 0; i < g->n_unused; i++) {
        const uintptr_t from = (g->unused[i].first + page - 1) / page * page;
        const uintptr_t to = g->unused[i].end / page * page;
        if (from >= to || to <= first || from >= end)
            continue;
        if (first < from)
            bring(first, from, page);
        first = to;
    }
    if (first < end)
        bring(first, end, page);
}

/* Where the system keeps a file in pages of 2 MiB it maps, at one touch, a whole one: the process
 * would grow by that while steps run. */
static int in_small_pages(struct dl_phdr_info *info, size_t size, void *ctx) {
    const size_t page = page_size();
    (void)size, (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t start = (info->dlpi_addr + h->p_vaddr) / page * page;
        const uintptr_t end = info->dlpi_addr + h->p_vaddr + h->p_filesz;
        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && h->p_filesz > 0)
            (void)madvise((void *)start, end - start, MADV_NOHUGEPAGE);
    }
    return 0;
}

/* The file that this function is in, and those. */
static int bring_file(struct dl_phdr_info *info, size_t size, void *ctx) {
    const size_t page = page_size();
    (void)size;
    if (!holds(info, (uintptr_t)&sn_code_settle) && !is_c_library(info->dlpi_name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + h->p_vaddr, end = start + h->p_filesz;
        if (h->p_type == PT_LOAD && (h->p_flags & PF_R) && h->p_filesz > 0)
            bring_around(start / page * page, (end + page - 1) / page * page, ctx, page);
    }
    return 0;
}

static void give_back(const gaps *g, size_t page) {
    for (size_t i = 0; i < g->n_unused; i++) {
        const uintptr_t first = (g->unused[i].first + page - 1) / page * page;
        const uintptr_t end = g->unused[i].end / page * page;
        if (first < end)
            (void)madvise((void *)first, end - first, MADV_DONTNEED); /* the file has them */
    }
}

void sn_code_bring(sn_code_range range) {
    const size_t page = page_size();
    bring(range.first / page * page, (range.end + page - 1) / page * page, page);
}

void sn_code_in_small_pages(void) {
    dl_iterate_phdr(in_small_pages, NULL);
}

/* Giving back comes first, as of a page of 2 MiB it takes all; and again, as the pages around one
 * that is brought come with it. */
void sn_code_settle(const sn_code_range *unused, size_t n_unused) {
    const size_t page = page_size();
    gaps g = {unused, n_unused};
    sn_code_in_small_pages();
    give_back(&g, page);
    dl_iterate_phdr(bring_file, &g);
    give_back(&g, page);
}
