/* jpeg_memory.c: libjpeg's memory from the pool (jpeg_memory.h).
 *
 *     [ chunk | object, object, ...        ]      small objects share a chunk
 *     [ chunk | row pointers | rows        ]      an array has its own
 *
 * Invariants:
 * 1. Objects and rows are aligned to 64: libjpeg-turbo's vector code wants 32, and may read to the
 *    end of a row's last 64 bytes.
 * 2. Virtual arrays are whole from the moment they are asked for.
 * 3. A request that fails does not return: libjpeg leaves by error_exit, as with its own memory. */
#include "codec/jpeg_memory.h"

#include "base/size.h"

#include <string.h>

#include <jerror.h>

#define ALIGN       ((size_t)64)
#define SMALL_BYTES ((size_t)16 << 10)

struct sn_jpeg_chunk {
    sn_jpeg_chunk *next;
    size_t used; /* of the block, this header with it */
    snug_datum block;
};

/* libjpeg names these types and leaves them to who keeps the arrays. */
struct jvirt_sarray_control {
    JSAMPARRAY rows;
};
struct jvirt_barray_control {
    JBLOCKARRAY rows;
};

static sn_jpeg_memory *memory_of(j_common_ptr object) {
    return (sn_jpeg_memory *)(void *)object->mem;
}

static void leave(j_common_ptr object) {
    object->err->msg_code = JERR_OUT_OF_MEMORY;
    object->err->msg_parm.i[0] = 0;
    object->err->error_exit(object);
}

static size_t first_byte(void) {
    return (sizeof(sn_jpeg_chunk) + ALIGN - 1) / ALIGN * ALIGN;
}

/* A chunk with room for so many bytes behind its header. */
static sn_jpeg_chunk *add_chunk(j_common_ptr object, int pool, size_t bytes) {
    sn_jpeg_memory *m = memory_of(object);
    snug_datum block;
    size_t all = 0;
    if (!sn_size_add(bytes, first_byte(), &all)) {
        sn_fail(&m->refused, SNUG_E_OVERFLOW, "%zu bytes exceed the address space", bytes);
        leave(object);
    }
    if (sn_scratch(m->engine, all, &block, &m->refused) != SNUG_OK)
        leave(object);
    sn_jpeg_chunk *c = block.data;
    *c = (sn_jpeg_chunk){.next = m->chunks[pool], .used = first_byte(), .block = block};
    m->chunks[pool] = c;
    return c;
}

static void *take(sn_jpeg_chunk *c, size_t bytes) {
    void *at = (char *)c + c->used;
    c->used += bytes;
    return at;
}

static void *alloc_large(j_common_ptr object, int pool, size_t bytes) {
    return take(add_chunk(object, pool, bytes), bytes);
}

static void *alloc_small(j_common_ptr object, int pool, size_t bytes) {
    sn_jpeg_chunk *c = memory_of(object)->chunks[pool];
    size_t n;
    if (!sn_size_align(bytes, ALIGN, &n) || n >= SMALL_BYTES)
        return alloc_large(object, pool, bytes);
    if (!c || c->block.bytes - c->used < n)
        c = add_chunk(object, pool, SMALL_BYTES);
    return take(c, n);
}

/* Pointers to n rows of so many bytes each. */
static void **alloc_rows(j_common_ptr object, int pool, size_t row_bytes, size_t n) {
    size_t row = 0, rows, pointers = 0, all = 0;
    const bool fits = sn_size_align(row_bytes, ALIGN, &row) && sn_size_mul(row, n, &rows) &&
                      sn_size_mul(n, sizeof(void *), &pointers) &&
                      sn_size_align(pointers, ALIGN, &pointers) &&
                      sn_size_add(rows, pointers, &all);
    void **list = alloc_large(object, pool, fits ? all : SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        list[i] = (char *)list + pointers + i * row;
    return list;
}

static JSAMPARRAY alloc_sarray(j_common_ptr object, int pool, JDIMENSION samples, JDIMENSION n) {
    return (JSAMPARRAY)(void *)alloc_rows(object, pool, samples * sizeof(JSAMPLE), n);
}

static JBLOCKARRAY alloc_barray(j_common_ptr object, int pool, JDIMENSION blocks, JDIMENSION n) {
    return (JBLOCKARRAY)(void *)alloc_rows(object, pool, blocks * sizeof(JBLOCK), n);
}

/* --- virtual arrays --------------------------------------------------------------------------- */
static jvirt_sarray_ptr request_sarray(j_common_ptr object, int pool, boolean zero,
                                       JDIMENSION samples, JDIMENSION n, JDIMENSION most) {
    (void)most;
    jvirt_sarray_ptr a = alloc_small(object, pool, sizeof *a);
    a->rows = alloc_sarray(object, pool, samples, n);
    for (JDIMENSION i = 0; i < n && zero; i++)
        memset(a->rows[i], 0, samples * sizeof(JSAMPLE));
    return a;
}

static jvirt_barray_ptr request_barray(j_common_ptr object, int pool, boolean zero,
                                       JDIMENSION blocks, JDIMENSION n, JDIMENSION most) {
    (void)most;
    jvirt_barray_ptr a = alloc_small(object, pool, sizeof *a);
    a->rows = alloc_barray(object, pool, blocks, n);
    for (JDIMENSION i = 0; i < n && zero; i++)
        memset(a->rows[i], 0, blocks * sizeof(JBLOCK));
    return a;
}

static void realize(j_common_ptr object) {
    (void)object;
}

static JSAMPARRAY access_sarray(j_common_ptr object, jvirt_sarray_ptr a, JDIMENSION first,
                                JDIMENSION n, boolean writes) {
    (void)object, (void)n, (void)writes;
    return a->rows + first;
}

static JBLOCKARRAY access_barray(j_common_ptr object, jvirt_barray_ptr a, JDIMENSION first,
                                 JDIMENSION n, boolean writes) {
    (void)object, (void)n, (void)writes;
    return a->rows + first;
}

/* --- life ------------------------------------------------------------------------------------- */
static void free_pool(j_common_ptr object, int pool) {
    sn_jpeg_memory *m = memory_of(object);
    for (sn_jpeg_chunk *c = m->chunks[pool], *next; c; c = next) {
        snug_datum block = c->block;
        next = c->next;
        snug_datum_drop(&block);
    }
    m->chunks[pool] = NULL;
}

static void self_destruct(j_common_ptr object) {
    sn_jpeg_memory *m = memory_of(object);
    for (int pool = 0; pool < JPOOL_NUMPOOLS; pool++)
        free_pool(object, pool);
    object->mem = m->library;
    object->mem->self_destruct(object);
}

void sn_jpeg_memory_set(sn_jpeg_memory *m, snug_engine *e, j_common_ptr object) {
    *m = (sn_jpeg_memory){
        .methods = {.alloc_small = alloc_small,
                    .alloc_large = alloc_large,
                    .alloc_sarray = alloc_sarray,
                    .alloc_barray = alloc_barray,
                    .request_virt_sarray = request_sarray,
                    .request_virt_barray = request_barray,
                    .realize_virt_arrays = realize,
                    .access_virt_sarray = access_sarray,
                    .access_virt_barray = access_barray,
                    .free_pool = free_pool,
                    .self_destruct = self_destruct,
                    .max_alloc_chunk = object->mem->max_alloc_chunk},
        .library = object->mem,
        .engine = e,
    };
    object->mem = &m->methods;
}
