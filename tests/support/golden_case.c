/* golden_case.c: loads a folder of tests/golden (golden_case.h). */
#include "support/golden_case.h"

#include "model/safetensors.h"
#include "support/support.h"
#include "tensor/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tensor of this name as f64 (i32 for integers), malloc'ed; data NULL: there is none. */
static snug_view load(sn_safetensors *file, const char *name) {
    snug_error err;
    snug_view v = {.bytes = 0};
    for (size_t i = 0; i < sn_safetensors_count(file); i++) {
        const sn_st_entry *t = sn_safetensors_at(file, i);
        if (strcmp(t->name, name) != 0)
            continue;
        v.type = t->type;
        v.type.dtype = sn_dtype_is_int(t->type.dtype) ? SNUG_I32 : SNUG_F64;
        expect_ok(snug_type_bytes(&v.type, &v.bytes, &err), &err);
        v.data = malloc(v.bytes + 1);
        expect_ok(sn_safetensors_read(file, t, &v, &err), &err);
    }
    return v;
}

static void add_feed(golden_case *c, const snug_view *v, golden_feeds *out) {
    snug_error err;
    if (!v->data)
        return;
    out->data[out->n] = v->data;
    expect_ok(
        snug_feed_from_memory(c->engine, &v->type, v->data, NULL, NULL, &out->feed[out->n], &err),
        &err);
    out->n++;
}

/* "x", or "x_0", "x_1", ... */
static void load_feeds(golden_case *c, sn_safetensors *file, const char *name, golden_feeds *out) {
    snug_view v = load(file, name);
    add_feed(c, &v, out);
    for (int i = 0; i < GOLDEN_ENDS && out->n < GOLDEN_ENDS; i++) {
        char full[32];
        snprintf(full, sizeof full, "%s_%d", name, i);
        v = load(file, full);
        add_feed(c, &v, out);
    }
}

static void load_class_weight(golden_case *c, sn_safetensors *file) {
    const snug_view v = load(file, "class_weight");
    size_t n = 0;
    for (int64_t i = 0; v.data && i < v.type.dims[0]; i++)
        n += (size_t)snprintf(c->class_weight + n, sizeof c->class_weight - n, "%s%g=%.17g",
                              i ? "," : "", ((double *)v.data)[2 * i],
                              ((double *)v.data)[2 * i + 1]);
    free(v.data);
}

static void load_weights(golden_case *c, sn_safetensors *file) {
    for (size_t i = 0; i < snug_model_n_weights(c->model); i++) {
        const char *name;
        char full[160];
        const sn_st_entry *t;
        snug_view v;
        snug_error err;
        expect_ok(snug_model_weight(c->model, i, &name, &v, &err), &err);
        snprintf(full, sizeof full, "before/%s", name);
        expect_ok(sn_safetensors_find(file, full, &t, &err), &err);
        expect_ok(sn_safetensors_read(file, t, &v, &err), &err);
    }
}

void golden_case_open(golden_case *c, const char *folder, const char *name) {
    char path[512];
    sn_safetensors *file;
    snug_error err;
    memset(c, 0, sizeof *c);
    expect_ok(snug_engine_create(NULL, &c->engine, &err), &err);
    snprintf(path, sizeof path, "%s/%s/model.json", folder, name);
    expect_ok(snug_model_load(c->engine, path, &c->model, &err), &err);
    snprintf(path, sizeof path, "%s/%s/case.safetensors", folder, name);
    expect_ok(sn_safetensors_open(c->engine, path, 0, &file, &err), &err);
    load_weights(c, file);
    load_feeds(c, file, "x", &c->x);
    load_feeds(c, file, "y", &c->y);
    load_feeds(c, file, "w", &c->w);
    load_class_weight(c, file);
    sn_safetensors_close(file);
    const sn_step_data data = {.x = c->x.feed,
                               .n_x = c->x.n,
                               .y = c->y.feed,
                               .n_y = c->y.n,
                               .w = c->w.feed,
                               .n_w = c->w.n,
                               .class_weight = c->class_weight[0] ? c->class_weight : NULL};
    sn_model_subject_make(c->model, GOLDEN_BATCH, &data, &c->subject);
}

static void free_feeds(golden_feeds *f) {
    for (int i = 0; i < f->n; i++) {
        snug_feed_destroy(f->feed[i]);
        free(f->data[i]);
    }
}

void golden_case_close(golden_case *c) {
    free_feeds(&c->w);
    free_feeds(&c->y);
    free_feeds(&c->x);
    snug_model_destroy(c->model);
    assert_int_equal(snug_engine_bytes(c->engine), 0);
    snug_engine_destroy(c->engine);
}
