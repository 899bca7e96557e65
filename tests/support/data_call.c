/* data_call.c: see data_call.h. */
#include "support/data_call.h"

#include <string.h>

snug_data_op *sn_data_make(snug_engine *e, const char *name, const sn_attr_text *attrs, int n) {
    snug_data_attr list[8] = {0};
    snug_data_op *op;
    snug_error err;
    for (int i = 0; i < n; i++)
        list[i] = (snug_data_attr){attrs[i].name, {attrs[i].value, strlen(attrs[i].value)}};
    expect_ok(snug_data_op_create(e, name, list, n, &op, &err), &err);
    return op;
}

snug_datum sn_lent(snug_text *t) {
    return (snug_datum){
        .type = {.dtype = SNUG_OPAQUE}, .is_text = 1, .data = t, .bytes = sizeof *t};
}

snug_status sn_data_call(snug_engine *e, const char *name, const snug_datum *in, int n_in,
                         snug_datum *out, snug_error *err) {
    snug_data_op *op = sn_data_make(e, name, NULL, 0);
    int n;
    const snug_status status = snug_data_op_call(op, 0, in, n_in, out, 1, &n, err);
    snug_data_op_destroy(op);
    return status;
}

snug_status sn_data_on_text(snug_engine *e, const char *name, const void *bytes, size_t n,
                            snug_datum *out, snug_error *err) {
    snug_text t = {bytes, n};
    const snug_datum in = sn_lent(&t);
    return sn_data_call(e, name, &in, 1, out, err);
}

snug_status sn_data_read(snug_engine *e, const char *path, snug_datum *out, snug_error *err) {
    return sn_data_on_text(e, "tf.io.read_file", path, strlen(path), out, err);
}

uint64_t sn_next_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}
