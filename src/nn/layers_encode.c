/* layers_encode.c: numbers that stand for categories: CategoryEncoding, and Discretization, which
 * makes them of real numbers. Both end in the same three encodings, over a one-hot axis of `depth`:
 * one per number, or of all numbers of an example which there are, or how many. A number outside of
 * 0 to depth - 1 counts nowhere. */
#include "nn/layer_call.h"

#include <string.h>

static snug_type type_of(const sn_layer_call *c, sn_value v) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, v) : (snug_type){.rank = 1};
}

static sn_value one_hot(sn_layer_call *c, sn_value at, int64_t depth) {
    const sn_one_hot spec = {.depth = depth, .dtype = c->policy.compute, .axis = -1, .on = 1};
    return sn_build_one_hot(c->b, at, &spec);
}

/* One number along the last axis is no axis of numbers. */
static sn_value each(sn_layer_call *c, sn_value at, int64_t depth) {
    const snug_type t = type_of(c, at);
    const bool one = t.rank > 1 && t.dims[t.rank - 1] == 1;
    return one_hot(c, one ? sn_build_squeeze(c->b, at, -1) : at, depth);
}

/* weights: SN_NO_VALUE, or what each number counts. */
static sn_value together(sn_layer_call *c, sn_value at, int64_t depth, bool counts,
                         sn_value weights) {
    const int rank = type_of(c, at).rank;
    if (rank < 2) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "examples have no axis of numbers to put together");
        return SN_NO_VALUE;
    }
    sn_value hot = one_hot(c, at, depth);
    if (sn_value_ok(weights)) {
        const sn_value cast = sn_build_cast(c->b, weights, c->policy.compute);
        hot = sn_build_mul(c->b, hot, sn_build_expand_dims(c->b, cast, -1));
    }
    return counts ? sn_build_sum(c->b, hot, 1u << 1, false)
                  : sn_build_max(c->b, hot, 1u << 1, false);
}

static sn_value encode(sn_layer_call *c, sn_value at, int64_t depth, const char *mode,
                       sn_value weights) {
    const bool counts = strcmp(mode, "count") == 0;
    if (strcmp(mode, "one_hot") == 0)
        return each(c, at, depth);
    if (counts || strcmp(mode, "multi_hot") == 0 || strcmp(mode, "binary") == 0)
        return together(c, at, depth, counts, weights);
    sn_layer_refuse(c, SNUG_E_INVALID, "output_mode=%s; there are one_hot, multi_hot and count",
                    mode);
    return SN_NO_VALUE;
}

void sn_layer_build_category_encoding(sn_layer_call *c) {
    const sn_conf_category_encoding *conf = c->conf;
    const int weights = sn_call_role(c, "count_weights", 0);
    if (conf->num_tokens < 1)
        return sn_layer_refuse(c, SNUG_E_INVALID, "num_tokens=%lld must be at least 1",
                               (long long)conf->num_tokens);
    if (c->n_in > 1 + (weights > 0))
        return sn_layer_refuse(c, SNUG_E_INVALID, "it is applied to %d tensors", c->n_in);
    if (weights > 0 && strcmp(conf->output_mode.text, "count") != 0)
        return sn_layer_refuse(c, SNUG_E_INVALID, "count_weights belong to output_mode=count");
    const bool whole = sn_dtype_is_int(type_of(c, c->in[0]).dtype);
    const sn_value at = whole ? c->in[0] : sn_build_cast(c->b, c->in[0], SNUG_I32);
    c->out = encode(c, at, conf->num_tokens, conf->output_mode.text,
                    weights > 0 ? c->in[weights] : SN_NO_VALUE);
}

/* The bin of x is how many boundaries are at most x; TensorFlow keeps them in f32. */
void sn_layer_build_discretization(sn_layer_call *c) {
    const sn_conf_discretization *conf = c->conf;
    const int64_t n = conf->bin_boundaries.n;
    if (n < 1)
        return sn_layer_refuse(c, SNUG_E_INVALID,
                               "bin_boundaries are not given; adapt the layer to its data in Keras "
                               "before the model is written");
    for (int64_t i = 1; i < n; i++)
        if (!(conf->bin_boundaries.v[i - 1] <= conf->bin_boundaries.v[i]))
            return sn_layer_refuse(c, SNUG_E_INVALID, "bin_boundaries must rise");
    sn_layer_without_halves(c); /* as Keras has it */
    const sn_value x = sn_build_cast(c->b, c->in[0], c->policy.compute),
                   edges = sn_layer_vector(c, conf->bin_boundaries.v, n, true);
    const sn_value above = sn_build_greater_equal(c->b, sn_build_expand_dims(c->b, x, -1), edges);
    if (c->b->error.code != SNUG_OK)
        return;
    const int last = type_of(c, above).rank - 1;
    const sn_value bin =
        sn_build_sum(c->b, sn_build_cast(c->b, above, SNUG_I32), 1u << last, false);
    c->out = strcmp(conf->output_mode.text, "int") == 0
                 ? bin
                 : encode(c, bin, n + 1, conf->output_mode.text, SN_NO_VALUE);
}
