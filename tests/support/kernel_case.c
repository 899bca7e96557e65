/* kernel_case.c: operands, workspace and guard bytes of one kernel call. */
#include "support/kernel_case.h"

#include "base/rng.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, POISON = 0xa5 };

static void *guarded(size_t bytes, int poison) {
    char *block = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    assert_non_null(block);
    memset(block, poison, bytes);
    memset(block + bytes, POISON, GUARD);
    return block;
}

static void check_guard(const void *block, size_t bytes, const char *what) {
    const unsigned char *end = (const unsigned char *)block + bytes;
    for (int i = 0; i < GUARD; i++)
        if (end[i] != POISON)
            fail_msg("byte %d behind %s was written", i, what);
}

static snug_view view_of(const snug_type *t, size_t opaque_bytes) {
    snug_view v = {.bytes = opaque_bytes, .type = *t};
    if (t->dtype != SNUG_OPAQUE)
        expect_ok(snug_type_bytes(t, &v.bytes, NULL), NULL);
    v.data = guarded(v.bytes, POISON);
    return v;
}

/* Class numbers below the logits' width; codes below the window's places. */
static int64_t code_limit(const sn_kernel_run *r, int i) {
    if (r->d.in[i].dtype == SNUG_OPAQUE)
        return r->d.attrs.pool_grad.kernel[0] * r->d.attrs.pool_grad.kernel[1];
    return r->d.in[0].dims[r->d.in[0].rank - 1];
}

static void fill_input(sn_kernel_run *r, int i, uint64_t seed) {
    const snug_view *v = &r->in[i];
    const int64_t count = sn_type_count(&v->type);
    float *const f32 = v->data;
    if (v->type.dtype == SNUG_F32)
        sn_random_fill_f32(SN_RANDOM_UNIFORM, seed + (uint64_t)i, 0, (size_t)count, f32);
    for (int64_t k = 0; k < count && v->type.dtype == SNUG_F32; k++)
        f32[k] = 2 * f32[k] - 1;
    for (int64_t k = 0; k < count && v->type.dtype != SNUG_F32; k++) {
        double u;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, seed + (uint64_t)i, (uint64_t)k, 1, &u);
        const int64_t code = (int64_t)(u * (double)code_limit(r, i));
        if (v->type.dtype == SNUG_F64)
            ((double *)v->data)[k] = 2 * u - 1;
        else if (v->type.dtype == SNUG_I32)
            ((int32_t *)v->data)[k] = (int32_t)code;
        else if (v->type.dtype == SNUG_I64)
            ((int64_t *)v->data)[k] = code;
        else
            ((uint8_t *)v->data)[k] = (uint8_t)code;
    }
}

static void open_operands(sn_kernel_run *r) {
    snug_error err;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    r->poison = POISON;
    expect_ok(sn_op_infer(&r->d, &err), &err);
    expect_ok(cpu.device.describe(&cpu.device, &r->d, &r->variant, &err), &err);
    r->family = sn_cpu_family_of(r->d.op);
    for (int i = 0; i < r->d.n_in; i++)
        r->in[i] = view_of(&r->d.in[i], (size_t)sn_type_count(&r->d.in[i]));
    for (int i = 0; i < r->d.n_out; i++)
        r->out[i] = view_of(&r->d.out[i], r->variant.opaque_bytes[i]);
}

void sn_kernel_open(sn_kernel_run *r, const sn_kernel_case *c, uint64_t seed) {
    snug_error err;
    const char *at = c->types;
    memset(r, 0, sizeof *r);
    expect_ok(sn_op_find(c->op, &r->d.op, &err), &err);
    expect_ok(sn_attrs_parse(r->d.op, c->attrs, NULL, &r->d.attrs, &err), &err);
    for (; *at; r->d.n_in++) {
        at += *at == ' ';
        expect_ok(sn_type_parse(at, &at, &r->d.in[r->d.n_in], &err), &err);
    }
    for (int i = 0; i < 4; i++)
        r->param[i].real = c->param[i];
    open_operands(r);
    for (int i = 0; i < r->d.n_in; i++)
        fill_input(r, i, seed);
}

snug_status sn_kernel_try(sn_kernel_run *r, sn_kernel kernel, int n_threads, bool accumulate,
                          snug_error *err) {
    void *prepared = NULL;
    sn_team *team;
    snug_engine *engine = sn_test_engine(0);
    expect_ok(sn_team_create(engine, n_threads, &team, err), err);
    memset(&r->variant, 0, sizeof r->variant);
    if (r->family->describe)
        expect_ok(r->family->describe(&r->d, n_threads, &r->variant, err), err);
    if (kernel != r->family->run) /* references take no workspace */
        r->variant.workspace_bytes = 0;
    const size_t bytes = r->variant.workspace_bytes;
    unsigned char *workspace = guarded(bytes, r->poison);
    for (int i = 0; i < r->d.n_out && !accumulate; i++)
        memset(r->out[i].data, r->poison, r->out[i].bytes);
    if (r->family->prepare && kernel != r->family->reference)
        expect_ok(r->family->prepare(engine, &r->d, n_threads, &prepared, err), err);
    const sn_call call = {
        .op = r->d.op,
        .attrs = &r->d.attrs,
        .param = r->param,
        .n_in = r->d.n_in,
        .n_out = r->d.n_out,
        .in = r->in,
        .out = r->out,
        .workspace = workspace,
        .workspace_bytes = bytes,
        .prepared = prepared,
        .accumulate = accumulate,
        .n_threads = n_threads,
        .team = team,
        .full = r->d.out[0].rank > 0 ? r->d.out[0].dims[0] : 1,
    };
    const snug_status status = kernel(&call, err);
    if (r->family->release)
        r->family->release(engine, prepared);
    sn_team_destroy(team);
    sn_test_engine_end(engine);
    check_guard(workspace, bytes, "the workspace");
    r->needs_all = bytes == 0 || workspace[bytes - 1] != r->poison;
    for (int i = 0; i < r->d.n_out; i++)
        check_guard(r->out[i].data, r->out[i].bytes, "an output");
    free(workspace);
    return status;
}

void sn_kernel_call(sn_kernel_run *r, sn_kernel kernel, int n_threads, bool accumulate) {
    snug_error err;
    expect_ok(sn_kernel_try(r, kernel, n_threads, accumulate, &err), &err);
}

void sn_kernel_slice(sn_kernel_run *slice, const sn_kernel_run *whole, unsigned batch,
                     int64_t first, int64_t n) {
    memset(slice, 0, sizeof *slice);
    slice->d = whole->d;
    memcpy(slice->param, whole->param, sizeof slice->param);
    for (int i = 0; i < whole->d.n_in; i++)
        if (batch >> i & 1)
            slice->d.in[i].dims[0] = n;
    open_operands(slice);
    for (int i = 0; i < whole->d.n_in; i++) {
        const size_t row =
            whole->d.in[i].rank ? whole->in[i].bytes / (size_t)whole->d.in[i].dims[0] : 0;
        const size_t skip = batch >> i & 1 ? row * (size_t)first : 0;
        memcpy(slice->in[i].data, (const char *)whole->in[i].data + skip, slice->in[i].bytes);
    }
}

void sn_kernel_close(sn_kernel_run *r) {
    for (int i = 0; i < r->d.n_in; i++)
        free(r->in[i].data);
    for (int i = 0; i < r->d.n_out; i++)
        free(r->out[i].data);
}
