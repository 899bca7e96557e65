/* The file of a cached pipeline: elements of the pipeline's kind, or a reason. */
#include "fuzz/fuzz.h"

#include <snug/dataset.h>

FUZZ_TARGET(cache) {
    snug_dataset *d;
    snug_iterator *it;
    snug_element e;
    fuzz f;
    fuzz_begin(&f, bytes, n);
    fuzz_must(&f, snug_dataset_range(f.engine, 0, 5, 1, &d, &f.err));
    if (fuzz_ok(&f, snug_dataset_cache(d, FUZZ_FILE, &d, &f.err))) {
        fuzz_must(&f, snug_iterator_create(d, &it, &f.err));
        for (int i = 0; i < 50 && fuzz_ok(&f, snug_iterator_next(it, &e, &f.err)); i++) {
            fuzz_true(e.n == 1 && e.part[0].type.dtype == SNUG_I64, "a number");
            snug_element_drop(&e);
        }
        snug_iterator_destroy(it);
        snug_dataset_drop(d);
    }
    fuzz_end(&f, 4 * FUZZ_MIB);
}
