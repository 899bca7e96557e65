/* process.c: what the system counts for this process, each part measured on its own.
 *
 *     files         resident pages of each mapping (smaps), by the name of the file; a library's
 *                   zeroed variables are the mapping without a name right behind its own
 *     ledger        blocks and large allocations by their addresses (mincore), small ones as booked
 *     C heap        [heap] and the heaps of threads (smaps), mappings of malloc (mallinfo2), less
 *                   the ledger's small allocations, which lie in it
 *     stacks        [stack]; mappings above an inaccessible page
 *     code          executable mappings of no file
 *     tables        VmPTE; kernel stacks by the number of threads
 *
 * Invariants:
 * 1. No byte is counted in two rows: a mapping that begins inside a block of the ledger is left to
 *    the ledger.
 * 2. What no row claims is the residual, never spread over the others. */
#include "memory/process.h"

#include "base/file.h"
#include "base/size.h"
#include "base/system.h"
#include "memory/private.h"
#include "memory/smaps.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of each thread, in the kernel (x86-64 and arm64). */
#define KERNEL_STACK_BYTES ((size_t)16 << 10)
/* The C library aligns the heaps of threads to this. */
#define THREAD_HEAP_ALIGN ((uintptr_t)64 << 20)

void sn_process_read(const snug_io *io, sn_process *out) {
    char text[4096];
    sn_system_text(io, "/proc/self/status", text, sizeof text);
    *out = (sn_process){
        .resident_bytes = sn_system_number(text, "VmRSS:") * 1024,
        .peak_bytes = sn_system_number(text, "VmHWM:") * 1024,
        .file_bytes = sn_system_number(text, "RssFile:") * 1024,
        .table_bytes = sn_system_number(text, "VmPTE:") * 1024,
        .stack_bytes = sn_system_number(text, "Threads:") * KERNEL_STACK_BYTES,
    };
}

size_t sn_process_counted(const sn_process *p) {
    return p->resident_bytes + p->table_bytes + p->stack_bytes;
}

size_t sn_process_counted_peak(const sn_process *p) {
    return p->peak_bytes + p->table_bytes + p->stack_bytes;
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char *const part_names[SN_N_PROCESS] = {
#define PART_NAME(id, name) name,
    SN_PROCESS_MAP(PART_NAME)
#undef PART_NAME
};

/* What of [base, base + bytes) is resident; both in whole pages. */
static size_t resident_bytes(char *base, size_t bytes) {
    unsigned char pages[4096];
    const long page = sysconf(_SC_PAGESIZE);
    const size_t page_bytes = page > 0 ? (size_t)page : 4096;
    size_t n = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t left = (bytes - at) / page_bytes;
        const size_t k = left < sizeof pages ? left : sizeof pages;
        if (k == 0 || mincore(base + at, k * page_bytes, pages) != 0)
            break;
        for (size_t i = 0; i < k; i++)
            n += pages[i] & 1u;
        at += k * page_bytes;
    }
    return n * page_bytes;
}

/* Whether the ledger has a block or a large allocation there. */
static bool on_ledger(const snug_engine *e, uintptr_t at) {
    for (const sn_block *b = e->blocks; b; b = b->next)
        if (at - (uintptr_t)sn_block_base(b) < b->mapped_bytes)
            return true;
    for (const sn_large *l = e->large; l; l = l->next)
        if (at - (uintptr_t)l < l->mapped_bytes)
            return true;
    return false;
}

static bool starts_with(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static sn_process_part part_of_file(const sn_mapping *m) {
    static const struct {
        const char *start;
        sn_process_part part;
    } names[] = {
        {"libsnug", SN_PROCESS_SNUG},       {"libdnnl", SN_PROCESS_ONEDNN},
        {"liblapack", SN_PROCESS_LAPACK},   {"libblas", SN_PROCESS_LAPACK},
        {"libgfortran", SN_PROCESS_LAPACK}, {"libquadmath", SN_PROCESS_LAPACK},
        {"libgomp", SN_PROCESS_OPENMP},     {"libomp", SN_PROCESS_OPENMP},
        {"libiomp", SN_PROCESS_OPENMP},     {"ld-", SN_PROCESS_LIBRARIES},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts_with(m->name, names[i].start))
            return names[i].part;
    return strstr(m->name, ".so") ? SN_PROCESS_LIBRARIES : SN_PROCESS_FILES;
}

/* The walk over the mappings: sums by part, and the mapping before. */
typedef struct {
    const snug_engine *engine;
    size_t bytes[SN_N_PROCESS];
    char own_file[sizeof((sn_mapping *)0)->name]; /* that holds this code */
    sn_mapping last;
    sn_process_part last_part; /* SN_N_PROCESS: of no part */
} walk;

/* Mappings of no file. SN_N_PROCESS: the ledger's, or nobody's. */
static sn_process_part part_of_nameless(const walk *w, const sn_mapping *m) {
    const bool behind = w->last.end == m->start;
    if (starts_with(m->name, "[heap]"))
        return SN_PROCESS_HEAP;
    if (starts_with(m->name, "[stack"))
        return SN_PROCESS_STACK;
    if (m->name[0] == '[' && !starts_with(m->name, "[anon"))
        return SN_PROCESS_LIBRARIES; /* [vdso] and its like */
    if (on_ledger(w->engine, m->start))
        return SN_N_PROCESS;
    if (m->executable)
        return SN_PROCESS_CODE;
    if (behind && w->last.file && w->last.writable)
        return w->last_part;
    if (behind && !w->last.readable && !w->last.file)
        return SN_PROCESS_STACKS;
    return SN_N_PROCESS;
}

static void find_own_file(void *ctx, const sn_mapping *m) {
    walk *w = ctx;
    const uintptr_t here = (uintptr_t)&sn_process_read;
    if (m->file && here >= m->start && here < m->end)
        memcpy(w->own_file, m->name, sizeof w->own_file);
}

static void add_mapping(void *ctx, const sn_mapping *m) {
    walk *w = ctx;
    /* A heap of a thread is known by what follows it: the rest of its aligned room. */
    const bool heap_rest = !m->readable && w->last.end == m->start && w->last.writable &&
                           w->last_part == SN_N_PROCESS && w->last.start % THREAD_HEAP_ALIGN == 0 &&
                           m->end % THREAD_HEAP_ALIGN == 0;
    if (heap_rest && !on_ledger(w->engine, w->last.start))
        w->bytes[SN_PROCESS_HEAP] += w->last.resident_bytes;
    sn_process_part part;
    if (!m->file)
        part = part_of_nameless(w, m);
    else if (w->own_file[0] && strcmp(m->name, w->own_file) == 0)
        part = SN_PROCESS_SNUG;
    else
        part = part_of_file(m);
    if (part < SN_N_PROCESS)
        w->bytes[part] += m->resident_bytes;
    w->last = *m;
    w->last_part = part;
}

/* What of the ledger's categories is resident, and how much of it lies in the C heap. A mapping
 * that once was, whole, is not looked at again. */
static size_t measure_ledger(const snug_engine *e, size_t *resident) {
    size_t in_heap = 0, apart[SN_N_CATEGORIES] = {0};
    for (sn_block *b = e->blocks; b; b = b->next) {
        const size_t n =
            b->is_full ? b->mapped_bytes : resident_bytes(sn_block_base(b), b->mapped_bytes);
        b->is_full = n == b->mapped_bytes;
        apart[b->category] += b->booked_bytes;
        resident[b->category] += n < b->booked_bytes ? n : b->booked_bytes;
    }
    for (sn_large *l = e->large; l; l = l->next) {
        const size_t n = l->is_full ? l->mapped_bytes : resident_bytes((char *)l, l->mapped_bytes);
        l->is_full = n == l->mapped_bytes;
        apart[l->category] += l->bytes;
        resident[l->category] += n;
    }
    for (size_t c = 0; c < SN_N_CATEGORIES; c++) {
        const size_t small = e->accounts[c].bytes > apart[c] ? e->accounts[c].bytes - apart[c] : 0;
        resident[c] += small;
        in_heap += small;
    }
    return in_heap;
}

void sn_process_measure(const snug_io *io, const snug_engine *e, sn_process_table *out) {
    walk w = {.engine = e, .last_part = SN_N_PROCESS};
    size_t ledger[SN_N_CATEGORIES] = {0}, sum = 0;
    sn_process p;
    *out = (sn_process_table){.n = SN_N_PROCESS + SN_N_CATEGORIES};
    (void)sn_smaps_each(io, find_own_file, &w);
    sn_ledger_lock(e);
    (void)sn_smaps_each(io, add_mapping, &w);
    const size_t in_heap = measure_ledger(e, ledger);
    sn_ledger_unlock(e);
    sn_process_read(io, &p);
    size_t *heap = &w.bytes[SN_PROCESS_HEAP];
    *heap += mallinfo2().hblkhd;
    *heap = *heap > in_heap ? *heap - in_heap : 0;
    w.bytes[SN_PROCESS_TABLES] = p.table_bytes;
    w.bytes[SN_PROCESS_KERNEL] = p.stack_bytes;
    for (size_t i = 0; i < out->n; i++) {
        const bool part = i < SN_N_PROCESS;
        out->rows[i].name =
            part ? part_names[i] : sn_category_name((sn_category)(i - SN_N_PROCESS));
        out->rows[i].bytes = part ? w.bytes[i] : ledger[i - SN_N_PROCESS];
        sum += out->rows[i].bytes;
    }
    out->counted_bytes = sn_process_counted(&p);
    out->residual_bytes = (int64_t)out->counted_bytes - (int64_t)sum;
}

/* --- booking ---------------------------------------------------------------------------------- */

#define DIFFER_BYTES        ((size_t)96 << 10)
#define DIFFER_AMONG_OTHERS ((size_t)384 << 10)
/* Pages that the first steps touch although the code is there: of other libraries, of stacks and of
 * the C heap. */
#define FIRST_STEPS_BYTES     ((size_t)192 << 10)
#define FIRST_AMONG_OTHERS    ((size_t)384 << 10)
#define FIRST_STEPS_EXPECTED  ((size_t)160 << 10)
#define EXPECTED_AMONG_OTHERS ((size_t)96 << 10)
/* Of the code that kernels may make at most, what they make, and keep on the C heap: measured from
 * a thirteenth to a third. */
#define CODE_PART 12

/* The batch of a processor, in pages, and how much at most is left for all of them: on machines of
 * many processors a peak could be counted larger, though no byte more is there. */
#define COUNTED_AT_ONCE 32
#define INEXACT_MOST    ((size_t)1 << 20)

size_t sn_process_inexact(const snug_engine *e) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t processors = online > 0 ? (size_t)online : 1;
    const size_t threads = e->n_threads > 0 ? (size_t)e->n_threads : 1;
    const size_t batch = 2 * processors > COUNTED_AT_ONCE ? 2 * processors : COUNTED_AT_ONCE;
    const size_t bytes = batch * 4096 * (threads < processors ? threads : processors);
    return bytes < INEXACT_MOST ? bytes : INEXACT_MOST;
}

static bool is_among_others(const snug_engine *e) {
    return e->makes_beside || e->is_settled[SN_SETTLED_LIBRARY] || e->is_settled[SN_SETTLED_LAPACK];
}

size_t sn_process_differ(const snug_engine *e) {
    return is_among_others(e) ? DIFFER_AMONG_OTHERS : DIFFER_BYTES;
}

static size_t first_steps(const snug_engine *e) {
    return is_among_others(e) ? FIRST_AMONG_OTHERS : FIRST_STEPS_BYTES;
}

/* 8 bytes a page, and the tables above them. */
size_t sn_process_tables(size_t mapped_bytes) {
    return mapped_bytes / 512 + mapped_bytes / 262144 + 8192;
}

/* What threads that are not there yet bring, with their stacks. */
static size_t thread_bytes(const snug_engine *e) {
    const size_t n = e->n_threads > 1 ? (size_t)e->n_threads - 1 : 0;
    return e->team ? 0 : n * (KERNEL_STACK_BYTES + SN_STACK_BOOKED);
}

/* No walk over the mappings: this is asked for each plan. Under the ledger's lock. */
size_t sn_process_beside(const snug_engine *e) {
    size_t ledger[SN_N_CATEGORIES] = {0};
    sn_process p;
    (void)measure_ledger(e, ledger);
    sn_process_read(&sn_io_system, &p);
    size_t n = sn_process_counted(&p);
    for (size_t c = 0; c < SN_N_CATEGORIES; c++)
        n -= ledger[c] < n ? ledger[c] : n;
    return n + (e->n_aside_lent > 0 ? 0 : e->aside_bytes);
}

_Static_assert(SN_N_SETTLED == sizeof((snug_engine *)0)->is_settled, "one for each");

bool sn_process_is_settled(snug_engine *e, sn_settled what) {
    const bool was = e->is_settled[what];
    e->is_settled[what] = true;
    return was;
}

snug_status sn_process_book(snug_engine *e, const sn_process_need *need, sn_process_booking *out,
                            snug_error *err) {
    malloc_trim(0);
    sn_ledger_lock(e);
    const size_t now = sn_process_beside(e), aside = e->n_aside_lent > 0 ? 0 : e->aside_bytes;
    sn_ledger_unlock(e);
    const bool ran = e->accounts[SN_MEM_ARENA].peak_bytes > 0;
    const size_t fixed = now + sn_process_tables(need->map_bytes) + thread_bytes(e);
    const size_t most = ran ? 0 : first_steps(e),
                 usual = is_among_others(e) ? EXPECTED_AMONG_OTHERS : FIRST_STEPS_EXPECTED,
                 expected = ran ? 0 : usual;
    size_t booked = 0;
    if (!sn_size_add(fixed, most + sn_process_inexact(e), &booked) ||
        !sn_size_add(booked, need->code_bytes, &booked))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "%zu bytes of code to make exceed the address space; plan anew",
                       need->code_bytes);
    *out = (sn_process_booking){.now_bytes = now,
                                .predicted_bytes =
                                    fixed - aside + expected + need->code_bytes / CODE_PART,
                                .booked_bytes = booked};
    return SNUG_OK;
}
