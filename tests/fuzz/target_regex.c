/* Regular expressions: the first line is the pattern, the second what replaces it, the rest the
 * text. A pattern that matches all of a text is found in it. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(regex) {
    snug_datum out[SNUG_MAX_PARTS], replaced[SNUG_MAX_PARTS];
    snug_text text;
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *all = fuzz_text(bytes, n), *at = all;
    const char *pattern = fuzz_line(&at), *rewrite = fuzz_line(&at);
    const snug_datum in = fuzz_text_part(&text, at, (size_t)(all + n - at));
    fuzz_drop(replaced,
              fuzz_call(&f, "tf.strings.regex_replace",
                        ATTRS("pattern", pattern, "rewrite", rewrite, "replace_global", "False"),
                        &in, 1, replaced));
    const int n_out =
        fuzz_call(&f, "tf.strings.regex_full_match", ATTRS("pattern", pattern), &in, 1, out);
    const int n_replaced = fuzz_call(&f, "tf.strings.regex_replace",
                                     ATTRS("pattern", pattern, "rewrite", "~"), &in, 1, replaced);
    fuzz_true(n_out == n_replaced, "one accepts the pattern, and the other does not");
    if (n_out == 1 && *(const uint8_t *)out[0].data) {
        const snug_text *t = replaced[0].data;
        fuzz_true(memchr(t->data, '~', t->bytes) != NULL, "all of it matches, but nothing in it");
    }
    fuzz_drop(out, n_out), fuzz_drop(replaced, n_replaced);
    free(all);
    fuzz_end(&f, 16 * FUZZ_MIB);
}
