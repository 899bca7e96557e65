/* .safetensors: every tensor read; a file that is accepted can be written, and has the same tensors
 * then; and weights of a model are loaded from it, or not at all. */
#include "fuzz/fuzz.h"
#include "model/safetensors.h"
#include "tensor/type.h"

#include <snug/train.h>
#include <string.h>

enum { MOST = 32, ROOM = 4096 };

static void same_tensors(fuzz *f, sn_safetensors *a, sn_safetensors *b) {
    static double x[ROOM], y[ROOM];
    fuzz_true(sn_safetensors_count(a) == sn_safetensors_count(b), "as many tensors");
    for (size_t i = 0; i < sn_safetensors_count(a); i++) {
        const sn_st_entry *t = sn_safetensors_at(a, i), *u;
        fuzz_must(f, sn_safetensors_find(b, t->name, &u, &f->err));
        fuzz_true(strcmp(t->name, u->name) == 0 && sn_type_equal(&t->type, &u->type),
                  "a tensor of the same name and type");
        const snug_view v = {x, t->bytes, t->type}, w = {y, u->bytes, u->type};
        fuzz_must(f, sn_safetensors_read(a, t, &v, &f->err));
        fuzz_must(f, sn_safetensors_read(b, u, &w, &f->err));
        fuzz_true(memcmp(x, y, t->bytes) == 0, "the tensor that was written");
    }
}

static void write_again(fuzz *f, sn_safetensors *s) {
    static double room[MOST][ROOM / 16];
    sn_st_tensor tensors[MOST];
    sn_safetensors *again;
    const size_t n = sn_safetensors_count(s);
    if (n > MOST)
        return;
    for (size_t i = 0; i < n; i++) {
        const sn_st_entry *t = sn_safetensors_at(s, i);
        if (t->bytes > sizeof room[i])
            return;
        tensors[i] = (sn_st_tensor){t->name, {room[i], t->bytes, t->type}};
        fuzz_must(f, sn_safetensors_read(s, t, &tensors[i].view, &f->err));
    }
    fuzz_must(f, sn_safetensors_save(f->engine, FUZZ_OTHER, tensors, n, &f->err));
    fuzz_must(f, sn_safetensors_open(f->engine, FUZZ_OTHER, 0, &again, &f->err));
    same_tensors(f, s, again);
    sn_safetensors_close(again);
}

static void load_weights(fuzz *f) {
    snug_model *m;
    const snug_type in = {SNUG_F32, 1, {3}};
    fuzz_must(f, snug_model_create(f->engine, "m", &in, &m, &f->err));
    fuzz_must(f, snug_model_add(m, "Dense", "units=4 name=dense", &f->err));
    (void)fuzz_ok(f, snug_model_load_weights(m, FUZZ_FILE, &f->err));
    snug_model_destroy(m);
}

FUZZ_TARGET(safetensors) {
    static double room[ROOM];
    sn_safetensors *s;
    const sn_st_entry *found;
    fuzz f;
    if (n > sizeof room)
        return;
    fuzz_begin(&f, bytes, n);
    if (fuzz_ok(&f, sn_safetensors_open(f.engine, FUZZ_FILE, 0, &s, &f.err))) {
        for (size_t i = 0; i < sn_safetensors_count(s); i++) {
            const sn_st_entry *t = sn_safetensors_at(s, i);
            snug_view v = {.data = room, .bytes = t->bytes, .type = t->type};
            fuzz_true(t->bytes <= n && t->begin <= n, "a tensor beyond the file");
            fuzz_must(&f, sn_safetensors_read(s, t, &v, &f.err));
            v.type.dtype = i % 2 ? SNUG_F32 : SNUG_F64;
            if (snug_type_bytes(&v.type, &v.bytes, &f.err) == SNUG_OK && v.bytes <= sizeof room)
                (void)fuzz_ok(&f, sn_safetensors_read(s, t, &v, &f.err));
        }
        (void)fuzz_ok(&f, sn_safetensors_find(s, "dense/kernel", &found, &f.err));
        write_again(&f, s);
        sn_safetensors_close(s);
        load_weights(&f);
    }
    fuzz_end(&f, 4 * FUZZ_MIB);
}
