/* ops_spec.c: what functions of data_ops.def give, where several rows give the same. */
#include "codec/data_ops.h"

/* The shape of the first input; OPAQUE: texts. */
static snug_status same_shape(const snug_spec *in, snug_dtype dtype, snug_spec *out) {
    out->n = 1;
    out->is_text[0] = dtype == SNUG_OPAQUE;
    out->type[0] = in->type[0];
    out->type[0].dtype = dtype;
    return SNUG_OK;
}

snug_status sn_spec_nothing(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                            snug_error *err) {
    (void)op;
    (void)in;
    (void)err;
    out->n = 0;
    return SNUG_OK;
}

snug_status sn_spec_one_text(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                             snug_error *err) {
    (void)op;
    (void)in;
    (void)err;
    out->n = 1;
    out->is_text[0] = 1;
    out->type[0] = (snug_type){.dtype = SNUG_OPAQUE, .rank = 0};
    return SNUG_OK;
}

snug_status sn_spec_same_text(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    (void)op;
    (void)err;
    return same_shape(in, SNUG_OPAQUE, out);
}

snug_status sn_spec_same_bool(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    (void)op;
    (void)err;
    return same_shape(in, SNUG_BOOL, out);
}

snug_status sn_spec_same_i32(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                             snug_error *err) {
    (void)op;
    (void)err;
    return same_shape(in, SNUG_I32, out);
}

snug_status sn_spec_same_i64(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                             snug_error *err) {
    (void)op;
    (void)err;
    return same_shape(in, SNUG_I64, out);
}

/* The shape of the first input that has axes. */
snug_status sn_spec_join(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                         snug_error *err) {
    (void)op;
    (void)err;
    SNUG_TRY(same_shape(in, SNUG_OPAQUE, out));
    for (int i = 1; i < in->n && out->type[0].rank == 0; i++)
        out->type[0] = in->type[i];
    out->type[0].dtype = SNUG_OPAQUE;
    return SNUG_OK;
}
