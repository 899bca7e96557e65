/* The position of an iterator, as bytes: refused, or the stream goes on and can be saved again. */
#include "fuzz/fuzz.h"

#include <snug/dataset.h>
#include <stdlib.h>

static snug_dataset *pipeline(fuzz *f) {
    const snug_shuffle s = {.buffer = 10, .seed = 3};
    const snug_window w = {.size = 2};
    snug_dataset *d;
    fuzz_must(f, snug_dataset_range(f->engine, 0, 30, 1, &d, &f->err));
    fuzz_must(f, snug_dataset_shuffle(d, &s, &d, &f->err));
    fuzz_must(f, snug_dataset_window(d, &w, &d, &f->err));
    fuzz_must(f, snug_dataset_cache(d, NULL, &d, &f->err));
    fuzz_must(f, snug_dataset_batch(d, 4, 0, &d, &f->err));
    fuzz_must(f, snug_dataset_repeat(d, 3, &d, &f->err));
    return d;
}

FUZZ_TARGET(positions) {
    snug_iterator *it;
    snug_element e;
    fuzz_print saved;
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    snug_dataset *d = pipeline(&f);
    fuzz_must(&f, snug_iterator_create(d, &it, &f.err));
    if (fuzz_ok(&f, snug_iterator_restore(it, bytes, n, &f.err))) {
        for (int i = 0; i < 3 && fuzz_ok(&f, snug_iterator_next(it, &e, &f.err)); i++)
            snug_element_drop(&e);
        const snug_writer w = fuzz_writer(&saved);
        if (fuzz_ok(&f, snug_iterator_save(it, &w, &f.err))) {
            snug_iterator_destroy(it);
            fuzz_must(&f, snug_iterator_create(d, &it, &f.err));
            fuzz_must(&f, snug_iterator_restore(it, saved.text, saved.n, &f.err));
        }
        free(saved.text);
    }
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    fuzz_end(&f, 4 * FUZZ_MIB);
}
