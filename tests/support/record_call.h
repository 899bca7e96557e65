/* record_call.h: short words for recorded code in tests, on a bench: tensors, variables, calls by
 * name, and what their first numbers are. */
#ifndef SN_TESTS_RECORD_CALL_H
#define SN_TESTS_RECORD_CALL_H

#include "support/bench.h"

static inline void close_bench(bench *b) {
    snug_recorder_destroy(b->r);
}

static inline snug_tensor *vector(bench *b, const float *v, int64_t n) {
    snug_tensor *t;
    const snug_type type = {SNUG_F32, 1, {n}};
    expect_ok(snug_tensor_copy(b->r, &type, v, &t, &b->err), &b->err);
    return t;
}

static inline snug_tensor *op(bench *b, const char *name, const char *attrs, snug_tensor *x,
                              snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    expect_ok(snug_record_op(b->r, name, attrs, in, y ? 2 : 1, &out, 1, &b->err), &b->err);
    return out;
}

static inline snug_tensor *number(bench *b, double v) {
    snug_tensor *t;
    expect_ok(snug_tensor_number(b->r, SNUG_F32, v, &t, &b->err), &b->err);
    return t;
}

static inline float first_of(bench *b, snug_tensor *t) {
    float v[64];
    size_t bytes;
    expect_ok(snug_type_bytes(snug_tensor_type(t), &bytes, &b->err), &b->err);
    assert_true(bytes <= sizeof v);
    expect_ok(snug_tensor_read(t, v, bytes, &b->err), &b->err);
    return v[0];
}

static inline void expect_first(bench *b, snug_tensor *t, double want) {
    const float v = first_of(b, t);
    if (!(v > want - 1e-5 && v < want + 1e-5))
        fail_msg("%g instead of %g", (double)v, want);
}

static inline snug_variable *variable(bench *b, double v) {
    snug_variable *out;
    snug_tensor *t;
    expect_ok(snug_tensor_full(b->r, &(snug_type){SNUG_F32, 1, {4}}, v, &t, &b->err), &b->err);
    expect_ok(snug_variable_create(b->r, t, NULL, &out, &b->err), &b->err);
    snug_tensor_drop(t);
    return out;
}

static inline snug_tensor *read(bench *b, snug_variable *v) {
    snug_tensor *t;
    expect_ok(snug_variable_read(v, &t, &b->err), &b->err);
    return t;
}

static inline void assign(bench *b, snug_variable *v, double x) {
    snug_tensor *t;
    expect_ok(snug_tensor_full(b->r, &(snug_type){SNUG_F32, 1, {4}}, x, &t, &b->err), &b->err);
    expect_ok(snug_variable_assign(v, t, &b->err), &b->err);
    snug_tensor_drop(t);
}

static inline snug_recorder_info info_of(const bench *b) {
    snug_recorder_info info;
    snug_recorder_tell(b->r, &info);
    return info;
}

#endif
