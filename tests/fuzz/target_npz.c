/* .npz files: the array of a name, the one without a name, and one that is not there. */
#include "fuzz/fuzz.h"

FUZZ_TARGET(npz) {
    static const char *const sources[] = {FUZZ_FILE ".npz:x", FUZZ_FILE ".npz:y",
                                          FUZZ_FILE ".npz:"};
    static double room[4096];
    static const char *const path[] = {FUZZ_FILE ".npz"};
    fuzz f;
    fuzz_begin_files(&f, bytes, n, path, 1);
    if (n > 0)
        for (int i = 0; i < 3; i++) {
            snug_feed *feed;
            if (!fuzz_ok(&f, snug_feed_open(f.engine, sources[i], &feed, &f.err)))
                continue;
            snug_view v = {.data = room, .bytes = 0, .type = *snug_feed_type(feed)};
            const int64_t rows = v.type.dims[0];
            v.type.dims[0] = 1;
            if (rows > 0 && snug_type_bytes(&v.type, &v.bytes, &f.err) == SNUG_OK &&
                v.bytes <= sizeof room) {
                (void)fuzz_ok(&f, snug_feed_fill(feed, 0, 1, &v, &f.err));
                (void)fuzz_ok(&f, snug_feed_fill(feed, rows - 1, 1, &v, &f.err));
            }
            snug_feed_destroy(feed);
        }
    fuzz_end(&f, 2 * FUZZ_MIB);
}
