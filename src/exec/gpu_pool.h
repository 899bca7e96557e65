/* gpu_pool.h: device memory for what recorded code holds: tensors and variables of any size, made
 * and dropped in any order. A plan's own memory is its arena's, beside it.
 *
 *     sn_gpu_block *b;
 *     sn_gpu_pool_take(d, "a tensor", bytes, &b, err);   // b->data, aligned to 256
 *     sn_gpu_pool_give(d, b);
 *
 * Blocks are cut from chunks, best fit, and grow together again when neighbours are free. Small and
 * large blocks have chunks of their own, so that a few bytes do not hold a large chunk. A chunk
 * that is free waits to be used again, up to some bytes, or until the device wants the room. */
#ifndef SN_EXEC_GPU_POOL_H
#define SN_EXEC_GPU_POOL_H

#include "exec/gpu.h"

typedef struct sn_gpu_block {
    unsigned char *data;
    size_t bytes; /* what was asked for */
    /* inside */
    size_t room;
    bool used;
    struct sn_gpu_chunk *chunk;
    struct sn_gpu_block *before, *after; /* in the chunk */
} sn_gpu_block;

SNUG_CHECKED snug_status sn_gpu_pool_take(sn_gpu_device *d, const char *what, size_t bytes,
                                          sn_gpu_block **out, snug_error *err);
void sn_gpu_pool_give(sn_gpu_device *d, sn_gpu_block *b); /* NULL is legal */
/* What a block of so many may take of the device at most; small ones share chunks, of which the
 * last one may be nearly empty: that much more, once. */
size_t sn_gpu_pool_bytes(const sn_gpu_device *d, size_t bytes);
size_t sn_gpu_pool_slack(const sn_gpu_device *d);
/* Gives free chunks back to the device. */
void sn_gpu_pool_trim(sn_gpu_device *d);
void sn_gpu_pool_close(sn_gpu_device *d);

typedef struct {
    size_t used_bytes;  /* of blocks, in whole units */
    size_t chunk_bytes; /* of the device */
    size_t idle_bytes;  /* of chunks without a block */
    size_t largest_free_bytes;
} sn_gpu_pool_info;
void sn_gpu_pool_tell(const sn_gpu_device *d, sn_gpu_pool_info *out);

#endif
