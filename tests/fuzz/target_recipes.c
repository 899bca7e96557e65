/* Sources as texts, "normal:256x10@7": rows of them, with the same bits when they are asked for
 * again, alone or together. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

FUZZ_TARGET(recipes) {
    static double room[4096], again[4096];
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    f.names_files = true;
    char *text = fuzz_text(bytes, n);
    snug_feed *feed;
    if (fuzz_ok(&f, snug_feed_open(f.engine, text, &feed, &f.err))) {
        snug_view v = {.data = room, .type = *snug_feed_type(feed)};
        const int64_t rows = v.type.dims[0];
        v.type.dims[0] = 1;
        if (rows > 0 && snug_type_bytes(&v.type, &v.bytes, &f.err) == SNUG_OK &&
            v.bytes <= sizeof room / 2) {
            snug_view u = v;
            (void)fuzz_ok(&f, snug_feed_fill(feed, rows / 2, 1, &v, &f.err));
            u.data = again;
            if (fuzz_ok(&f, snug_feed_fill(feed, rows - 1, 1, &v, &f.err)) && rows > 1) {
                u.type.dims[0] = 2, u.bytes = 2 * v.bytes;
                fuzz_must(&f, snug_feed_fill(feed, rows - 2, 2, &u, &f.err));
                fuzz_true(memcmp((char *)again + v.bytes, room, v.bytes) == 0,
                          "the same row, after another one");
            }
        }
        snug_feed_destroy(feed);
    }
    free(text);
    fuzz_end(&f, FUZZ_MIB);
}
