/* TFRecord files and text files, plain, gzip and zlib: the records read, and written again they are
 * the same ones. */
#include "fuzz/fuzz.h"

#include <snug/data_files.h>
#include <string.h>

enum { MOST = 64 };

static snug_dataset *records_of(fuzz *f, const char *path, snug_records kind, snug_compression c) {
    const snug_text name = {path, strlen(path)};
    const snug_type one = {SNUG_OPAQUE, 0, {0}};
    snug_element element = {.n = 1};
    snug_dataset *d;
    fuzz_must(f, snug_datum_texts(f->engine, &one, &name, &element.part[0], &f->err));
    fuzz_must(f, snug_dataset_from_element(f->engine, &element, 0, &d, &f->err));
    snug_element_drop(&element);
    fuzz_must(f, snug_dataset_records(d, kind, c, &d, &f->err));
    return d;
}

static void write_record(fuzz *f, snug_record_writer *w, const snug_element *e) {
    const snug_text *t = e->part[0].data;
    fuzz_must(f, snug_record_write(w, t->data, t->bytes, &f->err));
}

/* At most MOST records; w NULL: they are not written. Says whether the file was read to its end. */
static bool read_records(fuzz *f, snug_dataset *d, snug_record_writer *w, int *count) {
    snug_iterator *it;
    snug_element e;
    snug_status status = SNUG_OK;
    fuzz_must(f, snug_iterator_create(d, &it, &f->err));
    for (*count = 0; *count < MOST; ++*count) {
        status = snug_iterator_next(it, &e, &f->err);
        if (!fuzz_ok(f, status))
            break;
        if (w)
            write_record(f, w, &e);
        snug_element_drop(&e);
    }
    snug_iterator_destroy(it);
    return status == SNUG_E_END;
}

FUZZ_TARGET(records) {
    static const snug_compression packings[] = {SNUG_PLAIN, SNUG_GZIP, SNUG_ZLIB};
    fuzz f;
    fuzz_begin(&f, bytes, n);
    for (int i = 0; i < 6; i++) {
        const snug_records kind = i < 3 ? SNUG_RECORDS : SNUG_LINES;
        snug_dataset *d = records_of(&f, FUZZ_FILE, kind, packings[i % 3]);
        snug_record_writer *w;
        int count, again;
        fuzz_must(&f, snug_record_writer_create(f.engine, FUZZ_OTHER, packings[i % 3], &w, &f.err));
        (void)read_records(&f, d, w, &count);
        fuzz_must(&f, snug_record_writer_close(w, &f.err));
        snug_dataset_drop(d);
        d = records_of(&f, FUZZ_OTHER, SNUG_RECORDS, packings[i % 3]);
        fuzz_true(read_records(&f, d, NULL, &again) || count == MOST,
                  "the end of what was written");
        fuzz_true(again == count, "as many records as were written");
        snug_dataset_drop(d);
    }
    fuzz_end(&f, 8 * FUZZ_MIB);
}
