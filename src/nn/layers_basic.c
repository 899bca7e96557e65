/* layers_basic.c: Dense, Embedding, Dropout, and layers that only change the shape.
 * The batch is axis 0 and may be unknown (-1): the network is inferred before anyone knows
 * it, so shapes are computed from the other axes. */
#include "nn/activation.h"
#include "nn/layer_call.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

/* The type of input 0; rank 0 after an error, so that callers stop. */
static snug_type input_type(sn_layer_call *c) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, c->in[0])
                                       : (snug_type){.rank = 0};
}

void sn_layer_build_input_layer(sn_layer_call *c) {
    const sn_conf_input_layer *conf = c->conf;
    const snug_type t = input_type(c);
    for (int i = 1; i < t.rank && conf->batch_shape[0] != -2; i++)
        if (conf->batch_shape[i] != t.dims[i])
            sn_layer_refuse(c, SNUG_E_SHAPE,
                            "batch_shape has %lld at axis %d, the model's input %lld",
                            (long long)conf->batch_shape[i], i, (long long)t.dims[i]);
    c->out = c->in[0];
}

/* --- Dense ------------------------------------------------------------------------------------ */
void sn_layer_build_dense(sn_layer_call *c) {
    const sn_conf_dense *conf = c->conf;
    const snug_type t = input_type(c);
    if (conf->units < 1) {
        sn_layer_refuse(c, SNUG_E_INVALID, "units=%lld must be at least 1", (long long)conf->units);
        return;
    }
    if (t.rank < 2) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input has no axis beside the batch");
        return;
    }
    const int64_t n_in = t.dims[t.rank - 1];
    const snug_type kernel_type = {.rank = 2, .dims = {n_in, conf->units}};
    const snug_type bias_type = {.rank = 1, .dims = {conf->units}};
    const sn_value kernel =
        sn_layer_variable(c, "kernel", &kernel_type, &conf->kernel_initializer, true);
    const sn_value bias =
        conf->use_bias ? sn_layer_variable(c, "bias", &bias_type, &conf->bias_initializer, true)
                       : SN_NO_VALUE;
    /* More axes: rows of all of them are one batch of the product. */
    const int64_t flat[2] = {-1, n_in};
    const sn_value x = t.rank == 2 ? c->in[0] : sn_build_reshape(c->b, c->in[0], flat, 2);
    sn_value y = sn_build_matmul(c->b, x, kernel, bias);
    if (t.rank > 2) {
        int64_t dims[SNUG_MAX_RANK];
        memcpy(dims, t.dims, sizeof dims);
        dims[t.rank - 1] = conf->units;
        y = sn_build_reshape(c->b, y, dims, t.rank);
    }
    c->out = sn_activation(c->b, conf->activation.text, y);
}

/* --- Embedding -------------------------------------------------------------------------------- */
/* The variable "embeddings"; SN_NO_VALUE after refusing. */
static sn_value embedding_table(sn_layer_call *c, int64_t n, int64_t width, const sn_init *init) {
    if (n < 1 || width < 1) {
        sn_layer_refuse(c, SNUG_E_INVALID, "input_dim=%lld and output_dim=%lld must be at least 1",
                        (long long)n, (long long)width);
        return SN_NO_VALUE;
    }
    const snug_type type = {.rank = 2, .dims = {n, width}};
    return sn_layer_variable(c, "embeddings", &type, init, true);
}

/* The rows of the table that the input names. */
static void look_up(sn_layer_call *c, sn_value table, bool mask_zero) {
    const snug_type t = input_type(c);
    const sn_value ids =
        sn_dtype_is_int(t.dtype) ? c->in[0] : sn_build_cast(c->b, c->in[0], SNUG_I32);
    sn_attrs a;
    sn_attrs_default(SN_OP_gather, &a);
    a.axis.axis = 0;
    c->out =
        sn_layer_narrowed(c, sn_build(c->b, SN_OP_gather, &a, (const sn_value[]){table, ids}, 2));
    if (mask_zero) {
        const snug_dtype dtype = sn_dtype_is_int(t.dtype) ? t.dtype : SNUG_I32;
        const sn_value zero = sn_build_scalar(c->b, dtype, 0);
        c->out_mask = sn_build_logical_not(c->b, sn_build_equal(c->b, ids, zero));
    }
}

void sn_layer_build_embedding(sn_layer_call *c) {
    const sn_conf_embedding *conf = c->conf;
    const sn_value table =
        embedding_table(c, conf->input_dim, conf->output_dim, &conf->embeddings_initializer);
    if (sn_value_ok(table))
        look_up(c, table, conf->mask_zero != 0);
}

/* With reverse=true the products of the input with all rows, or with a kernel of its own. */
void sn_layer_build_reversible_embedding(sn_layer_call *c) {
    const sn_conf_reversible_embedding *conf = c->conf;
    const snug_type own_type = {.rank = 2, .dims = {conf->output_dim, conf->input_dim}};
    const sn_value table =
        embedding_table(c, conf->input_dim, conf->output_dim, &conf->embeddings_initializer);
    sn_value own = SN_NO_VALUE;
    if (sn_value_ok(table) && !conf->tie_weights)
        own = sn_layer_variable(c, "reverse_embeddings", &own_type, &conf->embeddings_initializer,
                                true);
    if (c->b->error.code != SNUG_OK)
        return;
    if (conf->reverse_dtype.text[0])
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "reverse_dtype=%s; leave it out",
                               conf->reverse_dtype.text);
    if (!sn_call_flag(c, "reverse", false))
        return look_up(c, table, conf->mask_zero != 0);
    snug_type t = input_type(c);
    const int64_t flat[2] = {-1, t.dims[t.rank - 1]};
    const sn_value x = sn_build_reshape(c->b, sn_layer_narrowed(c, c->in[0]), flat, 2);
    const sn_value by = sn_layer_narrowed(c, conf->tie_weights ? table : own);
    sn_value y = conf->tie_weights ? sn_build_matmul_t(c->b, x, by, false, true)
                                   : sn_build_matmul(c->b, x, by, SN_NO_VALUE);
    if (conf->logit_soft_cap != 0)
        y = sn_build_affine(
            c->b, sn_build_tanh(c->b, sn_build_affine(c->b, y, 1 / conf->logit_soft_cap, 0)),
            conf->logit_soft_cap, 0);
    t.dims[t.rank - 1] = conf->input_dim;
    c->out = sn_build_reshape(c->b, y, t.dims, t.rank);
}

void sn_layer_build_identity(sn_layer_call *c) {
    c->out = c->in[0];
}

/* --- shapes ----------------------------------------------------------------------------------- */
/* Elements of one example; extents beside the batch are known and were checked when the type was
 * made. */
static int64_t example_size(const snug_type *t) {
    int64_t n = 1;
    for (int i = 1; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

void sn_layer_build_flatten(sn_layer_call *c) {
    const snug_type t = input_type(c);
    const int64_t dims[2] = {-1, example_size(&t)};
    c->out = t.rank == 2 ? c->in[0] : sn_build_reshape(c->b, c->in[0], dims, 2);
}

/* Fills in the one -1 of the target; false when the sizes do not agree. */
static bool resolve_target(const sn_conf_reshape *conf, int64_t size, int64_t *dims, int *rank) {
    int64_t known = 1;
    int open = -1, n = 0;
    for (; n < SNUG_MAX_RANK - 1 && conf->target_shape[n] != -2; n++) {
        const int64_t d = conf->target_shape[n];
        dims[n + 1] = d;
        if (d == -1 && open < 0)
            open = n + 1;
        else if (d < 1 || !sn_i64_mul(known, d, &known))
            return false;
    }
    if (open >= 0) {
        if (size % known)
            return false;
        dims[open] = size / known;
        known = size;
    }
    *rank = n + 1;
    return known == size;
}

void sn_layer_build_reshape(sn_layer_call *c) {
    const sn_conf_reshape *conf = c->conf;
    const snug_type t = input_type(c);
    int64_t dims[SNUG_MAX_RANK] = {-1};
    int rank = 0;
    if (!resolve_target(conf, example_size(&t), dims, &rank)) {
        sn_layer_refuse(c, SNUG_E_SHAPE,
                        "target_shape does not have the %lld elements of an input example",
                        (long long)example_size(&t));
        return;
    }
    c->out = sn_build_reshape(c->b, c->in[0], dims, rank);
}

/* dims counts from 1, without the batch; each axis must come once. */
void sn_layer_build_permute(sn_layer_call *c) {
    const sn_conf_permute *conf = c->conf;
    const snug_type t = input_type(c);
    int perm[SNUG_MAX_RANK] = {0};
    uint32_t seen = 0;
    int n = 0;
    for (; n < SNUG_MAX_RANK - 1 && conf->dims[n] != -2; n++) {
        const int64_t axis = conf->dims[n];
        perm[n + 1] = axis >= 1 && axis < t.rank ? (int)axis : 0;
        seen |= 1u << perm[n + 1];
    }
    if (n != t.rank - 1 || seen != (1u << t.rank) - 2) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "dims must name each of the axes 1 to %d once",
                        t.rank - 1);
        return;
    }
    c->out = sn_build_transpose(c->b, c->in[0], perm);
}
