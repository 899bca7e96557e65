/* WAV: decoded with and without wishes; what comes out can be encoded and is the same again. */
#include "fuzz/fuzz.h"

#include <string.h>

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(sounds) {
    snug_datum sound[SNUG_MAX_PARTS], wav[SNUG_MAX_PARTS], again[SNUG_MAX_PARTS];
    snug_text text;
    fuzz f;
    fuzz_begin(&f, bytes, n);
    fuzz_call_text(&f, "tf.audio.decode_wav",
                   ATTRS("desired_channels", "2", "desired_samples", "100"), bytes, n);
    const snug_datum in = fuzz_text_part(&text, bytes, n);
    const int n_out = fuzz_call(&f, "tf.audio.decode_wav", NULL, &in, 1, sound);
    if (n_out == 2 && fuzz_call(&f, "tf.audio.encode_wav", NULL, sound, 2, wav) == 1) {
        const int n_again = fuzz_call(&f, "tf.audio.decode_wav", NULL, wav, 1, again);
        fuzz_true(n_again == 2 && again[0].bytes == sound[0].bytes &&
                      memcmp(again[0].data, sound[0].data, again[0].bytes) == 0,
                  "the sound that was encoded");
        fuzz_drop(again, n_again);
        snug_datum_drop(wav);
    }
    fuzz_drop(sound, n_out);
    fuzz_end(&f, 2 * FUZZ_MIB);
}
