/* crc32c.h: the checksum of TFRecord files (Castagnoli's polynomial), and how they mask it. */
#ifndef SN_CODEC_CRC32C_H
#define SN_CODEC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t sn_crc32c(const void *bytes, size_t n);
/* As records store it. */
static inline uint32_t sn_crc32c_masked(const void *bytes, size_t n) {
    const uint32_t c = sn_crc32c(bytes, n);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

#endif
