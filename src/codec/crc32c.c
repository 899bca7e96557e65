/* crc32c.c: by the processor's instruction where it has one, else bit by bit over nibbles. */
#include "codec/crc32c.h"

#include <string.h>

/* The remainder of four bits. */
static uint32_t plain(uint32_t c, const unsigned char *p, size_t n) {
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        c = c >> 4 ^ nibble[c & 15];
        c = c >> 4 ^ nibble[c & 15];
    }
    return c;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t c, const unsigned char *p,
                                                                 size_t n) {
    uint64_t wide = c;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        wide = _mm_crc32_u64(wide, v);
    }
    c = (uint32_t)wide;
    for (; n > 0; n--)
        c = _mm_crc32_u8(c, *p++);
    return c;
}
#endif

uint32_t sn_crc32c(const void *bytes, size_t n) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~by_instruction(~0u, bytes, n);
#endif
    return ~plain(~0u, bytes, n);
}
