/* operation_values.c: functions of keras.ops that make values like others, bring rows to unit
 * length or multiply: rows of a table for layers_operation.c. */
#include "nn/operation.h"

typedef const sn_conf_operation *conf_of;

static snug_type type_of(const sn_layer_call *c, sn_value v) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, v) : (snug_type){.rank = 1};
}

/* Ones of x's shape, also where x is not finite: every number is at least 0 or it is not. */
static sn_value ones_like(sn_layer_call *c, sn_value x) {
    const snug_dtype dtype = type_of(c, x).dtype;
    const sn_value above = sn_build_greater_equal(c->b, x, sn_build_scalar(c->b, dtype, 0));
    const sn_value all = sn_build_logical_or(c->b, above, sn_build_logical_not(c->b, above));
    return sn_build_cast(c->b, all, c->network->compute_dtype);
}

static void build_full_like(sn_layer_call *c, conf_of conf) {
    if (conf->n_numbers != 1)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it needs a number to fill with");
    c->out = sn_build_affine(c->b, ones_like(c, c->in[0]), conf->first, 0);
}

/* x over its length along an axis; Keras' epsilon where none is given. */
static void build_normalize(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    const double epsilon = conf->second > 0 ? conf->second : 1e-7;
    int axis;
    if (conf->first != 0 && conf->first != 2)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "order=%g; only 2 is supported", conf->first);
    if (!sn_operation_axis(c, conf, t.rank, -1, &axis))
        return;
    const sn_value square = sn_build_sum(c->b, sn_build_square(c->b, c->in[0]), 1u << axis, true);
    const sn_value most = sn_build_scalar(c->b, t.dtype, 1 / epsilon);
    c->out =
        sn_build_mul(c->b, c->in[0], sn_build_minimum(c->b, sn_build_rsqrt(c->b, square), most));
}

static void build_hypot(sn_layer_call *c, conf_of conf) {
    (void)conf;
    if (c->n_in != 2)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it needs two tensors");
    c->out = sn_build_sqrt(
        c->b, sn_build_add(c->b, sn_build_square(c->b, c->in[0]), sn_build_square(c->b, c->in[1])));
}

/* With a matrix on the right, what matmul does. */
static void build_dot(sn_layer_call *c, conf_of conf) {
    const bool given = c->n_in == 2 || conf->array.n > 0;
    const sn_value y = c->n_in == 2 ? c->in[1] : given ? sn_operation_array(c, conf) : SN_NO_VALUE;
    if (!given || type_of(c, y).rank != 2)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "its second operand must be a matrix");
    c->out = sn_build_matmul(c->b, c->in[0], y, SN_NO_VALUE);
}

static void build_hstack(sn_layer_call *c, conf_of conf) {
    (void)conf;
    c->out = sn_build_concat(c->b, c->in, c->n_in, 1);
}

const sn_operation_row sn_value_operations[] = {
    {"fulllike", build_full_like}, {"normalize l2normalize", build_normalize},
    {"hypot", build_hypot},        {"dot", build_dot},
    {"hstack", build_hstack},      {NULL, NULL},
};
