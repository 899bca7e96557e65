/* tf.train.Example and SequenceExample: each feature found or refused. */
#include "fuzz/fuzz.h"

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(examples) {
    static const char features[] = "fixed f32 [2] - x\nvar i64 [] - y\nsequence text [] - z\n"
                                   "fixed i64 [] 3 q\nsequence f32 [2] - s";
    static const char lenient[] = "var f32 [] - x\nvar i64 [] - y\nvar text [] - z\n"
                                  "fixed text [] x q\nfixed f32 [2] 1,2 s";
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    fuzz_call_text(&f, "tf.io.parse_single_example", ATTRS("features", features), bytes, n);
    fuzz_call_text(&f, "tf.io.parse_single_example", ATTRS("features", lenient), bytes, n);
    fuzz_call_text(&f, "snug.sequence_steps", ATTRS("key", "x", "missing", "True"), bytes, n);
    snug_datum in, out[SNUG_MAX_PARTS];
    const snug_text texts[] = {{(const char *)bytes, n}, {(const char *)bytes, n / 2}};
    const snug_type pair = {SNUG_OPAQUE, 1, {2}};
    fuzz_must(&f, snug_datum_texts(f.engine, &pair, texts, &in, &f.err));
    fuzz_drop(out, fuzz_call(&f, "tf.io.parse_example", ATTRS("features", lenient), &in, 1, out));
    snug_datum_drop(&in);
    fuzz_end(&f, 4 * FUZZ_MIB);
}
