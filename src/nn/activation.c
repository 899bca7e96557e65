/* activation.c: activations by Keras' names, each one line of operators. Constants are Keras'
 * defaults: leaky_relu's slope is 0.2, elu's alpha 1, gelu is the exact one (erf). */
#include "nn/nn.h"
#include "nn/text.h"

#define SELU_ALPHA 1.6732632423543772
#define SELU_SCALE 1.0507009873554805

static sn_value act_linear(sn_builder *b, sn_value x) {
    (void)b;
    return x;
}
static sn_value act_relu(sn_builder *b, sn_value x) {
    return sn_build_relu(b, x);
}
static sn_value act_sigmoid(sn_builder *b, sn_value x) {
    return sn_build_sigmoid(b, x);
}
static sn_value act_tanh(sn_builder *b, sn_value x) {
    return sn_build_tanh(b, x);
}
static sn_value act_softmax(sn_builder *b, sn_value x) {
    return sn_build_softmax(b, x);
}
static sn_value act_log_softmax(sn_builder *b, sn_value x) {
    return sn_build_log_softmax(b, x);
}
static sn_value act_softplus(sn_builder *b, sn_value x) {
    return sn_build_softplus(b, x);
}
static sn_value act_gelu(sn_builder *b, sn_value x) {
    return sn_build_gelu(b, x);
}
static sn_value act_silu(sn_builder *b, sn_value x) {
    return sn_build_silu(b, x);
}
static sn_value act_exponential(sn_builder *b, sn_value x) {
    return sn_build_exp(b, x);
}
static sn_value act_elu(sn_builder *b, sn_value x) {
    return sn_build_value_op(b, SN_OP_elu, &x, 1, 1);
}
static sn_value act_leaky_relu(sn_builder *b, sn_value x) {
    return sn_build_value_op(b, SN_OP_leaky_relu, &x, 1, sn_keras_number(0.2));
}
static sn_value act_selu(sn_builder *b, sn_value x) {
    return sn_build_affine(b, sn_build_value_op(b, SN_OP_elu, &x, 1, SELU_ALPHA), SELU_SCALE, 0);
}
static sn_value act_softsign(sn_builder *b, sn_value x) {
    return sn_build_div(b, x, sn_build_affine(b, sn_build_abs(b, x), 1, 1));
}
static sn_value act_mish(sn_builder *b, sn_value x) {
    return sn_build_mul(b, x, sn_build_tanh(b, sn_build_softplus(b, x)));
}

static const struct {
    const char *name, *alias;
    sn_value (*build)(sn_builder *b, sn_value x);
} activations[] = {
    {"linear", NULL, act_linear},     {"relu", NULL, act_relu},
    {"sigmoid", NULL, act_sigmoid},   {"tanh", NULL, act_tanh},
    {"softmax", NULL, act_softmax},   {"log_softmax", NULL, act_log_softmax},
    {"softplus", NULL, act_softplus}, {"elu", NULL, act_elu},
    {"gelu", NULL, act_gelu},         {"silu", "swish", act_silu},
    {"selu", NULL, act_selu},         {"leaky_relu", NULL, act_leaky_relu},
    {"mish", NULL, act_mish},         {"exponential", NULL, act_exponential},
    {"softsign", NULL, act_softsign},
};

sn_value sn_activation(sn_builder *b, const char *name, sn_value x) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    char list[300] = "";
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (sn_same_name(name, activations[i].name) ||
            (activations[i].alias && sn_same_name(name, activations[i].alias)))
            return activations[i].build(b, x);
        sn_text_list(list, sizeof list, activations[i].name);
    }
    sn_fail(&b->error, SNUG_E_UNSUPPORTED, "activation '%.40s' is not known; there are %s", name,
            list);
    return SN_NO_VALUE;
}
