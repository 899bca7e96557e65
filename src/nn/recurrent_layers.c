/* recurrent_layers.c: what layers that go step by step share: a bias that begins with an open
 * forget gate, dropout that is drawn once for all steps, and sequences cut into steps and put
 * together. */
#include "nn/recurrent_layers.h"
#include "base/setting_text.h"

#include <stdio.h>
#include <string.h>

sn_init sn_forget_init(sn_layer_call *c, const sn_init *bias, int64_t units) {
    static const char *const constant[] = {"zeros", "ones", "constant"};
    sn_init init = *bias;
    bool known = false;
    for (int i = 0; i < 3; i++)
        known = known || sn_same_name(init.kind, constant[i]);
    if (!known)
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "bias_initializer=%s with unit_forget_bias is not supported; use zeros, or "
                        "unit_forget_bias=false",
                        init.kind);
    sn_text_copy(init.kind, sizeof init.kind, "unit_forget_bias");
    init.b = (double)units;
    return init;
}

sn_value sn_drop_factors(sn_layer_call *c, const char *what, const snug_type *type, double rate) {
    char name[sizeof c->path + 64];
    sn_attrs a;
    snprintf(name, sizeof name, "dropout/%s/%s/%d/key", c->path, what, c->use);
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = (int64_t)sn_build_param(c->b, "", rate).i;
    a.dropout.key = (int64_t)sn_build_step_key(c->b, name, 0).i;
    const sn_value ones = sn_build_fill(c->b, type, 1);
    return sn_build(c->b, SN_OP_dropout, &a, &ones, 1);
}

bool sn_drops(const sn_layer_call *c, double rate) {
    return c->training && rate > 0 && rate < 1;
}

sn_value sn_step_of(sn_layer_call *c, sn_value x, int64_t t) {
    return sn_build_squeeze(c->b, sn_build_part(c->b, x, 1, t, 1), 1);
}

/* An operator has only so many inputs: what is there becomes one of them. */
void sn_steps_add(sn_layer_call *c, sn_steps *s, sn_value y) {
    if (s->n == SN_MAX_IN) {
        s->part[0] = sn_build_concat(c->b, s->part, s->n, 1);
        s->n = 1;
    }
    s->part[s->n++] = sn_build_expand_dims(c->b, y, 1);
}

sn_value sn_steps_end(sn_layer_call *c, const sn_steps *s) {
    return sn_build_concat(c->b, s->part, s->n, 1);
}
