/* TensorProto: parsed as each of some types; what comes out can be written and is the same
 * again. */
#include "fuzz/fuzz.h"

#include <string.h>

FUZZ_TARGET(tensors) {
    static const char *const types[] = {"float32", "float64", "int64", "int32",
                                        "uint8",   "bool",    "half",  "string"};
    fuzz f;
    fuzz_begin(&f, bytes, n);
    for (int i = 0; i < 8; i++) {
        const char *const attrs[] = {"out_type", types[i], NULL};
        snug_datum tensor[SNUG_MAX_PARTS], proto[SNUG_MAX_PARTS], again[SNUG_MAX_PARTS];
        snug_text text;
        const snug_datum in = fuzz_text_part(&text, bytes, n);
        if (!fuzz_call(&f, "tf.io.parse_tensor", attrs, &in, 1, tensor))
            continue;
        if (tensor[0].bytes > FUZZ_MIB) { /* one value stands for all that follow */
            snug_datum_drop(tensor);
            continue;
        }
        fuzz_true(fuzz_call(&f, "tf.io.serialize_tensor", NULL, tensor, 1, proto) == 1, "written");
        fuzz_true(fuzz_call(&f, "tf.io.parse_tensor", attrs, proto, 1, again) == 1, "parsed");
        fuzz_true(again[0].bytes == tensor[0].bytes, "the tensor's size");
        if (!tensor[0].is_text)
            fuzz_true(memcmp(again[0].data, tensor[0].data, again[0].bytes) == 0, "its numbers");
        snug_datum_drop(tensor), snug_datum_drop(proto), snug_datum_drop(again);
    }
    fuzz_end(&f, FUZZ_BUDGET);
}
