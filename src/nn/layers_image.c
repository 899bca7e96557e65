/* layers_image.c: layers of pictures [batch, height, width, channels] that are neither convolutions
 * nor poolings. */
#include "nn/nn.h"

#define MAX_SETTING (1 << 20) /* larger paddings are typing errors; keeps sums far from overflow   \
                               */

static snug_type image_type(sn_layer_call *c) {
    if (c->b->error.code != SNUG_OK)
        return (snug_type){.rank = 0};
    const snug_type t = *sn_graph_type(c->b->graph, c->in[0]);
    if (t.rank == 4)
        return t;
    char text[192];
    sn_layer_refuse(c, SNUG_E_SHAPE,
                    "the input is %s; pictures have 4 axes: batch, height, width, channels",
                    snug_type_print(&t, text, sizeof text));
    return (snug_type){.rank = 0};
}

/* --- ZeroPadding2D ---------------------------------------------------------------------------- */
/* padding is one number, one for the height and one for the width, or top, bottom, left, right;
 * entries that were not given are -1. */
void sn_layer_build_zero_padding2d(sn_layer_call *c) {
    const sn_conf_zero_padding2d *conf = c->conf;
    const int64_t *p = conf->padding;
    const bool pair = p[0] >= 0 && p[2] < 0;
    const int64_t by_axis[4] = {p[0], p[0], p[1], p[1]}, one[4] = {1, 1, 1, 1};
    const int64_t *pad = p[0] < 0 ? one : pair ? by_axis : p;
    if (image_type(c).rank == 0)
        return;
    sn_attrs a;
    sn_attrs_default(SN_OP_pad, &a);
    for (int k = 0; k < 4; k++)
        if (pad[k] < 0 || pad[k] > MAX_SETTING) {
            sn_layer_refuse(c, SNUG_E_INVALID, "padding has the entry %lld", (long long)pad[k]);
            return;
        }
    a.pad.before = (sn_list){.n = 4, .v = {0, pad[0], pad[2], 0}};
    a.pad.after = (sn_list){.n = 4, .v = {0, pad[1], pad[3], 0}};
    a.pad.value = (int64_t)sn_build_param(c->b, "", 0).i;
    c->out = sn_build(c->b, SN_OP_pad, &a, c->in, 1);
}
