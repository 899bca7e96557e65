/* checkpoint_format.h: the layout of a checkpoint, which its writer and its reader share.
 *
 *     [0, 64)      "SNUGCKPT", u32 version, zeros
 *     arrays       each at a multiple of 64, zeros up to the next one
 *     index        per array: u32 letters of the name, u32 dtype, u32 rank, u32 checksum,
 *                  u64 place, u64 bytes, i64 dims[rank], the name
 *     footer       u64 place of the index, u64 its bytes, u64 arrays, u32 checksum of the index,
 *                  u32 checksum of the 28 bytes before, "TPKCGUNS"
 *
 * All numbers are little-endian, checksums zlib's crc32; an array's covers the zeros behind it, so
 * that every byte of the file is compared or in a checksum. */
#ifndef SN_MODEL_CHECKPOINT_FORMAT_H
#define SN_MODEL_CHECKPOINT_FORMAT_H

#include <snug/tensor.h>

#include <stdint.h>
#include <string.h>

#define SN_CKPT_HEAD    "SNUGCKPT"
#define SN_CKPT_FOOT    "TPKCGUNS"
#define SN_CKPT_VERSION 1u

enum {
    SN_CKPT_HEAD_BYTES = 64,
    SN_CKPT_FOOT_BYTES = 40,
    SN_CKPT_ROW_BYTES = 32, /* of an array in the index, without dims and name */
    SN_CKPT_ALIGN = 64,
    SN_CKPT_MAX_NAME = 1000,
    SN_CKPT_MAX_INDEX = 64 << 20,
    SN_CKPT_MAX_ROW = SN_CKPT_ROW_BYTES + 8 * SNUG_MAX_RANK + SN_CKPT_MAX_NAME
};

static inline void sn_ckpt_put(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t sn_ckpt_get(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

static inline void sn_ckpt_head(unsigned char out[SN_CKPT_HEAD_BYTES]) {
    memset(out, 0, SN_CKPT_HEAD_BYTES);
    memcpy(out, SN_CKPT_HEAD, 8);
    sn_ckpt_put(out + 8, SN_CKPT_VERSION, 4);
}

#endif
