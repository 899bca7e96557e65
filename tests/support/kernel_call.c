/* kernel_call.c: kernel calls for tests (kernel_call.h). */
#include "support/kernel_call.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static snug_view view_of(const snug_type *t) {
    snug_view v = {.type = *t};
    expect_ok(snug_type_bytes(t, &v.bytes, NULL), NULL);
    v.data = malloc(v.bytes > 0 ? v.bytes : 1);
    memset(v.data, 0xAB, v.bytes);
    return v;
}

/* Numbers in [low, high), the same for the same key. */
static void randomise(const snug_view *v, uint64_t key, double low, double high) {
    const int64_t n = sn_type_count(&v->type);
    for (int64_t i = 0; i < n; i++) {
        double u;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, key, (uint64_t)i, 1, &u);
        const double x = low + (high - low) * u;
        if (v->type.dtype == SNUG_F32)
            ((float *)v->data)[i] = (float)x;
        else if (v->type.dtype == SNUG_F64)
            ((double *)v->data)[i] = x;
        else if (v->type.dtype == SNUG_I32)
            ((int32_t *)v->data)[i] = (int32_t)floor(x);
        else if (v->type.dtype == SNUG_I64)
            ((int64_t *)v->data)[i] = (int64_t)floor(x);
        else if (v->type.dtype == SNUG_BOOL)
            ((uint8_t *)v->data)[i] = x >= 0;
        else
            ((uint8_t *)v->data)[i] = (uint8_t)(int64_t)floor(x);
    }
}

void sn_begin(sn_test_call *k, sn_op op) {
    memset(k, 0, sizeof *k);
    k->d.op = op;
    k->threads = 1;
    sn_attrs_default(op, &k->d.attrs);
}

void sn_add_in(sn_test_call *k, snug_type t, double low, double high) {
    k->d.in[k->d.n_in] = t;
    k->in[k->d.n_in] = view_of(&t);
    randomise(&k->in[k->d.n_in], 7 + (uint64_t)k->d.n_in, low, high);
    k->d.n_in++;
}

/* Infers the outputs and makes their memory. */
void sn_ready(sn_test_call *k) {
    snug_error err;
    expect_ok(sn_op_infer(&k->d, &err), &err);
    for (int i = 0; i < k->d.n_out; i++)
        k->out[i] = view_of(&k->d.out[i]);
    k->full = k->d.out[0].rank > 0 ? k->d.out[0].dims[0] : 1;
}

void sn_end(sn_test_call *k) {
    for (int i = 0; i < k->d.n_in; i++)
        free(k->in[i].data);
    for (int i = 0; i < k->d.n_out; i++)
        free(k->out[i].data);
}

snug_status sn_run_with(const sn_test_call *k, const sn_cpu_family *family, bool reference,
                        snug_error *err) {
    sn_variant variant = {0};
    if (family->describe && !reference)
        expect_ok(family->describe(&k->d, k->threads, &variant, NULL), NULL);
    void *workspace = malloc(variant.workspace_bytes + 1);
    memset(workspace, 0xCD, variant.workspace_bytes);
    snug_engine *engine = sn_test_engine(0);
    sn_team *team;
    expect_ok(sn_team_create(engine, k->threads, &team, NULL), NULL);
    const sn_call c = {.op = k->d.op,
                       .attrs = &k->d.attrs,
                       .param = k->param,
                       .n_in = k->d.n_in,
                       .n_out = k->d.n_out,
                       .in = k->in,
                       .out = k->out,
                       .workspace = workspace,
                       .workspace_bytes = variant.workspace_bytes,
                       .accumulate = k->accumulate,
                       .n_threads = k->threads,
                       .team = team,
                       .axis = k->axis,
                       .first = k->first,
                       .full = k->full};
    const snug_status status = (reference ? family->reference : family->run)(&c, err);
    sn_team_destroy(team);
    sn_test_engine_end(engine);
    free(workspace);
    return status;
}

void sn_run(const sn_test_call *k) {
    snug_error err;
    expect_ok(sn_run_with(k, sn_cpu_family_of(k->d.op), false, &err), &err);
}

void sn_run_reference(const sn_test_call *k) {
    snug_error err;
    expect_ok(sn_run_with(k, sn_cpu_family_of(k->d.op), true, &err), &err);
}

/* What output 0 holds, to be freed. */
void *sn_copy_out(const sn_test_call *k) {
    void *copy = malloc(k->out[0].bytes + 1);
    memcpy(copy, k->out[0].data, k->out[0].bytes);
    return copy;
}

void expect_bits(const sn_test_call *k, const void *want, const char *what) {
    if (memcmp(k->out[0].data, want, k->out[0].bytes) != 0) {
        char text[192];
        fail_msg("%s of %s: %s", sn_ops[k->d.op].name,
                 snug_type_print(&k->d.in[0], text, sizeof text), what);
    }
}

/* The fast kernel's bits are the reference's. */
void expect_fast_is_reference(sn_test_call *k) {
    sn_run_reference(k);
    void *want = sn_copy_out(k);
    memset(k->out[0].data, 0x5A, k->out[0].bytes);
    sn_run(k);
    expect_bits(k, want, "fast differs from reference");
    k->threads = 2;
    memset(k->out[0].data, 0xA5, k->out[0].bytes);
    sn_run(k);
    expect_bits(k, want, "two threads differ from one");
    free(want);
}
