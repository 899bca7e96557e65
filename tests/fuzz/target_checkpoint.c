/* Checkpoints: what is accepted is read to its end, and written again it is the same file. */
#include "fuzz/fuzz.h"
#include "tensor/type.h"

#include <snug/checkpoint.h>
#include <string.h>

static double room[8192];

static void copy_array(fuzz *f, snug_checkpoint *c, size_t i, snug_checkpoint_writer *w) {
    const char *name;
    snug_view v = {.data = room};
    fuzz_must(f, snug_checkpoint_at(c, i, &name, &v.type, &f->err));
    fuzz_must(f, snug_type_bytes(&v.type, &v.bytes, &f->err));
    fuzz_true(v.bytes <= sizeof room, "an array that is larger than the file");
    fuzz_must(f, snug_checkpoint_read(c, i, &v, &f->err));
    fuzz_must(f, snug_checkpoint_begin(w, name, &v.type, &f->err));
    fuzz_must(f, snug_checkpoint_append(w, room, v.bytes / 2, &f->err));
    fuzz_must(
        f, snug_checkpoint_append(w, (char *)room + v.bytes / 2, v.bytes - v.bytes / 2, &f->err));
}

static void same_arrays(fuzz *f, snug_checkpoint *a, snug_checkpoint *b) {
    fuzz_true(snug_checkpoint_count(a) == snug_checkpoint_count(b), "as many arrays");
    for (size_t i = 0; i < snug_checkpoint_count(a); i++) {
        const char *x, *y;
        snug_type t, u;
        size_t k;
        fuzz_must(f, snug_checkpoint_at(a, i, &x, &t, &f->err));
        fuzz_must(f, snug_checkpoint_at(b, i, &y, &u, &f->err));
        fuzz_true(strcmp(x, y) == 0 && sn_type_equal(&t, &u), "an array of this name and type");
        fuzz_must(f, snug_checkpoint_find(b, x, &k, &f->err));
        fuzz_true(k == i, "the array of a name");
    }
}

FUZZ_TARGET(checkpoint) {
    snug_checkpoint *c, *again;
    snug_checkpoint_writer *w;
    fuzz f;
    if (n > sizeof room)
        return;
    fuzz_begin(&f, bytes, n);
    if (fuzz_ok(&f, snug_checkpoint_open(f.engine, FUZZ_FILE, 0, &c, &f.err))) {
        fuzz_must(&f, snug_checkpoint_create(f.engine, FUZZ_OTHER, &w, &f.err));
        for (size_t i = 0; i < snug_checkpoint_count(c); i++)
            copy_array(&f, c, i, w);
        fuzz_must(&f, snug_checkpoint_commit(w, &f.err));
        snug_checkpoint_writer_destroy(w);
        fuzz_must(&f, snug_checkpoint_open(f.engine, FUZZ_OTHER, 0, &again, &f.err));
        same_arrays(&f, c, again);
        snug_checkpoint_close(again);
        snug_checkpoint_close(c);
    }
    fuzz_end(&f, 2 * FUZZ_MIB);
}
