/* Texts taken apart: numbers, words, characters, bytes, items by key. The first two bytes say where
 * and how much. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(strings) {
    char pos[16], len[16];
    fuzz f;
    if (n < 2)
        return;
    fuzz_begin(&f, NULL, 0);
    snprintf(pos, sizeof pos, "%d", (int8_t)bytes[0]);
    snprintf(len, sizeof len, "%d", (int8_t)bytes[1]);
    bytes += 2, n -= 2;
    char *key = fuzz_text(bytes, n < 12 ? n : 12);
    fuzz_call_text(&f, "tf.strings.substr", ATTRS("pos", pos, "len", len), bytes, n);
    fuzz_call_text(&f, "tf.strings.substr", ATTRS("pos", pos, "len", len, "unit", "UTF8_CHAR"),
                   bytes, n);
    fuzz_call_text(&f, "tf.strings.length", ATTRS("unit", "UTF8_CHAR"), bytes, n);
    fuzz_call_text(&f, "tf.strings.to_number", NULL, bytes, n);
    fuzz_call_text(&f, "tf.strings.to_number", ATTRS("out_type", "int64"), bytes, n);
    fuzz_call_text(&f, "tf.strings.to_number", ATTRS("out_type", "float64"), bytes, n);
    fuzz_call_text(&f, "tf.strings.split", NULL, bytes, n);
    fuzz_call_text(&f, "tf.strings.split", ATTRS("sep", key, "maxsplit", pos), bytes, n);
    fuzz_call_text(&f, "tf.strings.lower", ATTRS("encoding", "utf-8"), bytes, n);
    fuzz_call_text(&f, "tf.strings.strip", NULL, bytes, n);
    fuzz_call_text(&f, "tf.io.decode_raw", ATTRS("out_type", "int32"), bytes, n);
    fuzz_call_text(&f, "tf.io.decode_raw",
                   ATTRS("out_type", "uint16", "fixed_length", len, "little_endian", "False"),
                   bytes, n);
    fuzz_call_text(&f, "snug.text_item", ATTRS("key", key), bytes, n);
    free(key);
    fuzz_end(&f, 4 * FUZZ_MIB);
}
