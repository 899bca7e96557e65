/* channels.c: data_format="channels_first". Build functions know channels last only; here, around
 * them, the channels of the inputs are moved behind the spatial axes and those of the outputs back.
 * Weights are as Keras stores them in either format.
 *
 * An output without spatial axes (of Flatten, of global pooling) has no place to move its channels
 * to and stays. Between two such layers the moves cancel: no transposition is left there. */
#include "nn/application.h"

#include <string.h>

static const char *text_of(const sn_layer *l, const char *key) {
    const sn_conf_field *f = sn_conf_find(l->cls, key);
    return f && f->kind == SN_CONF_TEXT ? (const char *)l->conf + f->offset : "";
}

/* Activations over the last axis; in Keras that is then a spatial one. */
static bool acts_on_last_axis(const char *activation) {
    static const char *const names[] = {"softmax", "log_softmax", "sparsemax", "glu"};
    const size_t n = strcspn(activation, ":");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(activation, names[i], n) == 0)
            return true;
    return false;
}

bool sn_channels_first(sn_layer_call *c) {
    const char *format = text_of(c->layer, "data_format");
    if (strcmp(format, "channels_first") != 0) {
        if (format[0] && strcmp(format, "channels_last") != 0)
            sn_layer_refuse(c, SNUG_E_INVALID,
                            "data_format=%s; it is channels_last or channels_first", format);
        return false;
    }
    if (acts_on_last_axis(text_of(c->layer, "activation")))
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "activation=%s acts on the last axis, which channels_first makes a spatial "
                        "one; put a layer Softmax with an axis behind it",
                        text_of(c->layer, "activation"));
    return c->b->error.code == SNUG_OK;
}

/* Where x has its channels in front of `spatial` axes; 0: nowhere. */
static int channel_axis(const snug_type *t, int spatial) {
    const int axis = t->rank - 1 - spatial;
    return axis > 0 && spatial > 0 ? axis : 0;
}

/* What x was before it was transposed by the opposite of `perm`; or SN_NO_VALUE. */
static sn_value turned_from(const sn_graph *g, sn_value x, const int *perm, int rank) {
    const sn_node maker = sn_graph_value_at(g, x)->node;
    if (maker.i == SN_NO_NODE.i || sn_graph_node_at(g, maker)->op != SN_OP_transpose)
        return SN_NO_VALUE;
    const sn_node_info *node = sn_graph_node_at(g, maker);
    for (int k = 0; k < rank; k++)
        if (node->attrs.perm.perm.v[perm[k]] != k)
            return SN_NO_VALUE;
    return node->in[0];
}

/* Channels from `axis` to the end, or from the end to `axis`. */
static sn_value move_channels(sn_layer_call *c, sn_value x, int spatial, bool to_end) {
    if (c->b->error.code != SNUG_OK || !sn_value_ok(x))
        return x;
    const snug_type t = *sn_graph_type(c->b->graph, x);
    const int axis = channel_axis(&t, spatial), last = t.rank - 1;
    int perm[SNUG_MAX_RANK];
    if (axis == 0)
        return x;
    for (int k = 0; k <= last; k++) {
        perm[k] = k;
        if (to_end && k >= axis)
            perm[k] = k == last ? axis : k + 1;
        else if (k >= axis)
            perm[k] = k == axis ? last : k - 1;
    }
    const sn_value before = turned_from(c->b->graph, x, perm, t.rank);
    return sn_value_ok(before) ? before : sn_build_transpose(c->b, x, perm);
}

/* Layers that run over steps have one more axis in front. */
int sn_channels_to_end(sn_layer_call *c) {
    const bool has_steps = sn_conf_find(c->layer->cls, "return_sequences") != NULL;
    const int spatial = sn_graph_type(c->b->graph, c->in[0])->rank - (has_steps ? 3 : 2);
    for (int i = 0; i < c->n_in; i++)
        c->in[i] = move_channels(c, c->in[i], spatial, true);
    return spatial;
}

void sn_channels_back(sn_layer_call *c, int spatial) {
    c->out = move_channels(c, c->out, spatial, false);
    for (int i = 1; i < c->n_out; i++)
        c->outs[i] = move_channels(c, c->outs[i], spatial, false);
}
