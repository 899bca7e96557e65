/* The text that lists the features of an Example (data_ops.h); an Example with some of them. */
#include "fuzz/fuzz.h"

#include <snug/data_files.h>
#include <stdlib.h>

FUZZ_TARGET(features) {
    static const float x[] = {1, 2};
    static const int64_t y[] = {3};
    static const snug_text z[] = {{"abc", 3}, {"", 0}};
    const snug_feature list[] = {
        {"x", SNUG_F32, 2, x}, {"y", SNUG_I64, 1, y}, {"z", SNUG_OPAQUE, 2, z}};
    snug_datum example, out[SNUG_MAX_PARTS];
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n);
    const char *const attrs[] = {"features", text, NULL};
    fuzz_must(&f, snug_example_encode(f.engine, list, 3, &example, &f.err));
    fuzz_drop(out, fuzz_call(&f, "tf.io.parse_single_example", attrs, &example, 1, out));
    snug_datum_drop(&example);
    free(text);
    fuzz_end(&f, FUZZ_BUDGET); /* a default fills as many values as the text says */
}
