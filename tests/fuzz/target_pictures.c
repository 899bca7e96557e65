/* PNG, GIF and BMP: decoded in every way; what a PNG shows can be encoded and is the same again. */
#include "fuzz/fuzz.h"

#include <string.h>

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void encode_again(fuzz *f, const uint8_t *bytes, size_t n) {
    snug_datum picture[SNUG_MAX_PARTS], png[SNUG_MAX_PARTS], again[SNUG_MAX_PARTS];
    snug_text text;
    const snug_datum in = fuzz_text_part(&text, bytes, n);
    const int n_out = fuzz_call(f, "tf.io.decode_png", NULL, &in, 1, picture);
    if (n_out == 0)
        return;
    const int64_t *dims = picture[0].type.dims;
    if (dims[0] > 0 && dims[1] > 0 && picture[0].bytes < 1 << 16) {
        fuzz_true(fuzz_call(f, "tf.io.encode_png", NULL, picture, 1, png) == 1, "to be encoded");
        fuzz_true(fuzz_call(f, "tf.io.decode_png", NULL, png, 1, again) == 1, "to be decoded");
        fuzz_true(again[0].bytes == picture[0].bytes &&
                      memcmp(again[0].data, picture[0].data, again[0].bytes) == 0,
                  "the picture that was encoded");
        snug_datum_drop(again), snug_datum_drop(png);
    }
    fuzz_drop(picture, n_out);
}

FUZZ_TARGET(pictures) {
    fuzz f;
    fuzz_begin(&f, bytes, n);
    if (n > 3 && bytes[0] != 0xff) { /* not JPEG, which has a target of its own */
        fuzz_call_text(&f, "tf.io.decode_image", NULL, bytes, n);
        fuzz_call_text(&f, "tf.io.decode_image",
                       ATTRS("channels", "1", "expand_animations", "False", "dtype", "float32"),
                       bytes, n);
        fuzz_call_text(&f, "tf.io.decode_png", ATTRS("channels", "4", "dtype", "uint16"), bytes, n);
        fuzz_call_text(&f, "tf.io.decode_bmp", ATTRS("channels", "3"), bytes, n);
        fuzz_call_text(&f, "snug.image.decode_resize", ATTRS("size", "[7,5]"), bytes, n);
        encode_again(&f, bytes, n);
    }
    fuzz_end(&f, FUZZ_BUDGET);
}
