/* kernel_call.c: operands, workspace and guards of one kernel call (kernel_call.h). */
#include "support/kernel_call.h"

#include "support/subject.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xa5 };

/* --- built ------------------------------------------------------------------------------------ */

void sn_begin(sn_test_call *k, sn_op op) {
    memset(k, 0, sizeof *k);
    k->d.op = op;
    k->family = sn_cpu_family_of(op);
    k->threads = 1;
    k->poison = POISON;
    sn_attrs_default(op, &k->d.attrs);
}

/* Numbers in [low, high), the same for the same key; whole ones for integers. */
static void randomise(const snug_view *v, uint64_t key, double low, double high) {
    for (int64_t i = 0; i < sn_view_count(v); i++) {
        double u;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, key, (uint64_t)i, 1, &u);
        const double x = low + (high - low) * u;
        const bool real = sn_dtype_is_float(v->type.dtype), truth = v->type.dtype == SNUG_BOOL;
        sn_view_put(v, i, real ? x : truth ? x >= 0 : floor(x));
    }
}

void sn_add_in(sn_test_call *k, snug_type t, double low, double high) {
    const int i = k->d.n_in++;
    k->d.in[i] = t;
    k->in[i] = sn_view_make(&t, 0, POISON);
    randomise(&k->in[i], 7 + (uint64_t)i, low, high);
}

void sn_ready(sn_test_call *k) {
    snug_error err;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, k->threads, false);
    expect_ok(sn_op_infer(&k->d, &err), &err);
    expect_ok(cpu.device.describe(&cpu.device, &k->d, &k->variant, &err), &err);
    for (int i = 0; i < k->d.n_out; i++)
        k->out[i] = sn_view_make(&k->d.out[i], k->variant.opaque_bytes[i], POISON);
    k->full = k->d.out[0].rank > 0 ? k->d.out[0].dims[0] : 1;
}

void sn_unready(sn_test_call *k) {
    sn_views_free(k->out, k->d.n_out);
}

void sn_kernel_close(sn_test_call *k) {
    sn_views_free(k->in, k->d.n_in);
    sn_unready(k);
}

/* --- from text -------------------------------------------------------------------------------- */

/* Class numbers below the logits' width; codes below the window's places; any bits. */
static int64_t code_limit(const sn_test_call *k, int i) {
    if (k->d.op == SN_OP_conv2d_pool_dx || k->d.op == SN_OP_conv2d_pool_dw)
        return 256;
    if (k->d.in[i].dtype == SNUG_OPAQUE)
        return k->d.attrs.pool_grad.kernel[0] * k->d.attrs.pool_grad.kernel[1];
    return k->d.in[0].dims[k->d.in[0].rank - 1];
}

static void fill_input(sn_test_call *k, int i, uint64_t seed) {
    const snug_view *v = &k->in[i];
    const int64_t count = sn_view_count(v);
    float *const f32 = v->data;
    if (v->type.dtype == SNUG_F32) /* benchmarks have many */
        sn_random_fill_f32(SN_RANDOM_UNIFORM, seed + (uint64_t)i, 0, (size_t)count, f32);
    for (int64_t j = 0; j < count && v->type.dtype == SNUG_F32; j++)
        f32[j] = 2 * f32[j] - 1;
    for (int64_t j = 0; j < count && v->type.dtype != SNUG_F32; j++) {
        double u;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, seed + (uint64_t)i, (uint64_t)j, 1, &u);
        const int64_t code = (int64_t)(u * (double)code_limit(k, i));
        if (v->type.dtype == SNUG_OPAQUE)
            ((uint8_t *)v->data)[j] = (uint8_t)code;
        else
            sn_view_put(v, j, sn_dtype_is_float(v->type.dtype) ? 2 * u - 1 : (double)code);
    }
}

static void make_inputs(sn_test_call *k) {
    for (int i = 0; i < k->d.n_in; i++)
        k->in[i] = sn_view_make(&k->d.in[i], (size_t)sn_type_count(&k->d.in[i]), POISON);
}

void sn_kernel_open(sn_test_call *k, const sn_kernel_case *c, uint64_t seed) {
    snug_error err;
    sn_op op = SN_OP_fill;
    const char *at = c->types;
    expect_ok(sn_op_find(c->op, &op, &err), &err);
    sn_begin(k, op);
    expect_ok(sn_attrs_parse(op, c->attrs, NULL, &k->d.attrs, &err), &err);
    for (; *at; k->d.n_in++) {
        at += *at == ' ';
        expect_ok(sn_type_parse(at, &at, &k->d.in[k->d.n_in], &err), &err);
    }
    for (int i = 0; i < 4; i++)
        k->param[i].real = c->param[i];
    make_inputs(k);
    sn_ready(k);
    for (int i = 0; i < k->d.n_in; i++)
        fill_input(k, i, seed);
}

void sn_kernel_slice(sn_test_call *slice, const sn_test_call *whole, unsigned batch, int64_t first,
                     int64_t n) {
    sn_begin(slice, whole->d.op);
    slice->d = whole->d;
    memcpy(slice->param, whole->param, sizeof slice->param);
    for (int i = 0; i < whole->d.n_in; i++)
        if (batch >> i & 1)
            slice->d.in[i].dims[0] = n;
    make_inputs(slice);
    sn_ready(slice);
    for (int i = 0; i < whole->d.n_in; i++) {
        const size_t row =
            whole->d.in[i].rank ? whole->in[i].bytes / (size_t)whole->d.in[i].dims[0] : 0;
        const size_t skip = batch >> i & 1 ? row * (size_t)first : 0;
        memcpy(slice->in[i].data, (const char *)whole->in[i].data + skip, slice->in[i].bytes);
    }
}

/* --- run -------------------------------------------------------------------------------------- */

static snug_status run_kernel(sn_test_call *k, const sn_cpu_family *family, sn_kernel kernel,
                              snug_error *err) {
    const bool fast = kernel == family->run;
    sn_team *team;
    snug_engine *engine = sn_test_engine(0);
    expect_ok(sn_team_create(engine, k->threads, &team, err), err);
    memset(&k->variant, 0, sizeof k->variant);
    if (family->describe && fast) /* references take no workspace */
        expect_ok(family->describe(&k->d, k->threads, &k->variant, err), err);
    const size_t bytes = k->variant.workspace_bytes;
    unsigned char *workspace = sn_guarded(bytes, k->poison);
    sn_call c = {.op = k->d.op,
                 .attrs = &k->d.attrs,
                 .param = k->param,
                 .n_in = k->d.n_in,
                 .n_out = k->d.n_out,
                 .in = k->in,
                 .out = k->out,
                 .workspace = workspace,
                 .workspace_bytes = bytes,
                 .accumulate = k->accumulate,
                 .n_threads = k->threads,
                 .team = team,
                 .axis = k->axis,
                 .first = k->first,
                 .full = k->full};
    if (family->prepare && fast)
        expect_ok(family->prepare(engine, &k->d, k->threads, &c.prepared, err), err);
    const snug_status status = kernel(&c, err);
    if (family->release)
        family->release(engine, c.prepared);
    sn_team_destroy(team);
    sn_test_engine_end(engine);
    k->needs_all = bytes == 0 || workspace[bytes - 1] != k->poison;
    if (!sn_guards_ok(workspace, bytes))
        fail_msg("%s wrote beside its workspace", sn_ops[k->d.op].name);
    sn_guarded_free(workspace, bytes);
    return status;
}

snug_status sn_run_with(sn_test_call *k, const sn_cpu_family *family, bool reference,
                        snug_error *err) {
    return run_kernel(k, family, reference ? family->reference : family->run, err);
}

void sn_run(sn_test_call *k) {
    snug_error err;
    expect_ok(sn_run_with(k, sn_cpu_family_of(k->d.op), false, &err), &err);
}

void sn_run_reference(sn_test_call *k) {
    snug_error err;
    expect_ok(sn_run_with(k, sn_cpu_family_of(k->d.op), true, &err), &err);
}

snug_status sn_kernel_try(sn_test_call *k, sn_kernel kernel, int n_threads, bool accumulate,
                          snug_error *err) {
    k->threads = n_threads;
    k->accumulate = accumulate;
    for (int i = 0; i < k->d.n_out && !accumulate; i++)
        memset(k->out[i].data, k->poison, k->out[i].bytes);
    const snug_status status = run_kernel(k, k->family, kernel, err);
    for (int i = 0; i < k->d.n_out; i++)
        if (!sn_guards_ok(k->out[i].data, k->out[i].bytes))
            fail_msg("%s wrote beside output %d", sn_ops[k->d.op].name, i);
    return status;
}

void sn_kernel_call(sn_test_call *k, sn_kernel kernel, int n_threads, bool accumulate) {
    snug_error err;
    expect_ok(sn_kernel_try(k, kernel, n_threads, accumulate, &err), &err);
}

/* --- compared --------------------------------------------------------------------------------- */

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
