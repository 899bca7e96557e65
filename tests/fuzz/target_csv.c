/* CSV lines for columns of every type; and the text that lists the columns, from the first line. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

FUZZ_TARGET(csv) {
    static const char columns[] = "f32 1.5\ni64 -\ntext x61\nf64 2\ni32 7";
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n);
    fuzz_call_text(&f, "tf.io.decode_csv", ATTRS("record_defaults", columns), bytes, n);
    fuzz_call_text(&f, "tf.io.decode_csv",
                   ATTRS("record_defaults", columns, "field_delim", ";", "use_quote_delim", "False",
                         "na_value", "NA"),
                   bytes, n);
    fuzz_call_text(&f, "tf.io.decode_csv",
                   ATTRS("record_defaults", "text x\nf32 0", "select_cols", "[1,3]"), bytes, n);
    fuzz_call_text(&f, "tf.io.decode_csv", ATTRS("record_defaults", text), "1,2,3", 5);
    free(text);
    fuzz_end(&f, 2 * FUZZ_MIB);
}
