/* utf8.c: texts in UTF-8 (utf8.h). */
#include "base/utf8.h"

#include <stdint.h>

int sn_utf8_bytes(const char *text) {
    const unsigned char *const s = (const unsigned char *)text;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const int n = s[0] < 0x80   ? 1
                  : s[0] < 0xc0 ? 0
                  : s[0] < 0xe0 ? 2
                  : s[0] < 0xf0 ? 3
                  : s[0] < 0xf8 ? 4
                                : 0;
    uint32_t code = n < 2 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    return code < least[n] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : n; /* 0x1b: surrogates */
}
