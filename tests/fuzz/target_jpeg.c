/* JPEG: decoded whole, smaller, cut out and where it is damaged. */
#include "fuzz/fuzz.h"

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(jpeg) {
    fuzz f;
    fuzz_begin(&f, bytes, n);
    fuzz_call_text(&f, "tf.io.decode_jpeg", NULL, bytes, n);
    fuzz_call_text(&f, "tf.io.decode_jpeg",
                   ATTRS("channels", "1", "ratio", "4", "try_recover_truncated", "True",
                         "dct_method", "INTEGER_ACCURATE"),
                   bytes, n);
    fuzz_call_text(&f, "tf.io.decode_and_crop_jpeg", ATTRS("crop_window", "[1,2,3,4]"), bytes, n);
    fuzz_call_text(&f, "tf.io.extract_jpeg_shape", NULL, bytes, n);
    fuzz_call_text(&f, "snug.image.decode_resize", ATTRS("size", "[7,5]", "fast", "True"), bytes,
                   n);
    fuzz_end(&f, FUZZ_BUDGET);
}
