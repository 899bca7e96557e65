/* layers_einsum.c: EinsumDense and Dot, both by sn_build_einsum. */
#include "nn/layer_call.h"
#include "nn/activation.h"

#include <stdio.h>
#include <string.h>

/* --- EinsumDense ------------------------------------------------------------------------------ */
/* "abc,cde->abde": the three terms; "..." stands on the left or on the right of the first and the
 * last. */
typedef struct {
    char in[16], kernel[16], out[16]; /* letters alone */
    bool left_dots;
    int elided; /* axes that "..." stands for */
} terms;

/* The letters of a term; false where there are too many. */
static bool copy_letters(const char *from, size_t n, char *to, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (from[i] == '.' || from[i] == ' ')
            continue;
        if (at + 1 >= size)
            return false;
        to[at++] = from[i];
    }
    to[at] = 0;
    return true;
}

static bool read_terms(const char *text, int rank, terms *t) {
    const char *comma = strchr(text, ','), *arrow = strstr(text, "->");
    if (!comma || !arrow || arrow < comma)
        return false;
    t->left_dots = text[0] == '.';
    if (!copy_letters(text, (size_t)(comma - text), t->in, sizeof t->in) ||
        !copy_letters(comma + 1, (size_t)(arrow - comma - 1), t->kernel, sizeof t->kernel) ||
        !copy_letters(arrow + 2, strlen(arrow + 2), t->out, sizeof t->out))
        return false;
    t->elided = rank - (int)strlen(t->in);
    return t->elided >= 0 && strlen(t->kernel) <= SNUG_MAX_RANK;
}

/* The extent of a letter of the input, 0 when it has none. */
static int64_t input_extent(const terms *t, const snug_type *x, char letter) {
    const char *at = strchr(t->in, letter);
    return at ? x->dims[(at - t->in) + (t->left_dots ? t->elided : 0)] : 0;
}

/* The extent of a letter of the result: the first axis is the input's, those of "..." too, the
 * others are output_shape's; an open one is the input's. */
static int64_t output_extent(const terms *t, const sn_conf_einsum_dense *conf, const snug_type *x,
                             char letter) {
    const char *at = strchr(t->out, letter);
    if (!at)
        return 0;
    const int64_t place = (at - t->out) - (t->left_dots && t->elided > 0 ? 0 : 1);
    const int64_t given = place < 0 || place >= 8 ? -1 : conf->output_shape[place];
    return given >= 0 ? given : input_extent(t, x, letter);
}

static bool kernel_type(const terms *t, const sn_conf_einsum_dense *conf, const snug_type *x,
                        snug_type *type, sn_init *init) {
    *type = (snug_type){.rank = (int)strlen(t->kernel)};
    init->fan_in = init->fan_out = 1;
    for (int k = 0; k < type->rank; k++) {
        const bool out = strchr(t->out, t->kernel[k]) != NULL;
        type->dims[k] =
            out ? output_extent(t, conf, x, t->kernel[k]) : input_extent(t, x, t->kernel[k]);
        *(out ? &init->fan_out : &init->fan_in) *= (double)type->dims[k];
        if (type->dims[k] < 1)
            return false;
    }
    return true;
}

/* From the first letter of bias_axes on: an extent, or 1 for letters without bias and "...". */
static snug_type bias_type(const terms *t, const sn_conf_einsum_dense *conf, const snug_type *x) {
    snug_type type = {.rank = 0};
    for (const char *l = t->out; *l; l++)
        if (type.rank > 0 || strchr(conf->bias_axes.text, *l))
            type.dims[type.rank++] =
                strchr(conf->bias_axes.text, *l) ? output_extent(t, conf, x, *l) : 1;
    for (int k = 0; !t->left_dots && k < t->elided; k++)
        type.dims[type.rank++] = 1;
    return type;
}

void sn_layer_build_einsum_dense(sn_layer_call *c) {
    const sn_conf_einsum_dense *conf = c->conf;
    if (c->b->error.code != SNUG_OK)
        return;
    const snug_type x = *sn_graph_type(c->b->graph, c->in[0]);
    sn_init init = conf->kernel_initializer;
    snug_type kernel;
    terms t;
    if (!read_terms(conf->equation.text, x.rank, &t) ||
        !kernel_type(&t, conf, &x, &kernel, &init)) {
        char text[192];
        sn_layer_refuse(c, SNUG_E_SHAPE,
                        "equation '%s' and output_shape leave an extent of the kernel open for an "
                        "input %s",
                        conf->equation.text, snug_type_print(&x, text, sizeof text));
        return;
    }
    const sn_value in[2] = {c->in[0], sn_layer_variable(c, "kernel", &kernel, &init, true)};
    sn_value y = sn_build_einsum(c->b, conf->equation.text, in, 2);
    if (conf->bias_axes.text[0] && c->b->error.code == SNUG_OK) { /* y has axes enough */
        const snug_type bias = bias_type(&t, conf, &x);
        y = sn_build_add(c->b, y,
                         sn_layer_variable(c, "bias", &bias, &conf->bias_initializer, true));
    }
    c->out = sn_activation(c->b, conf->activation.text, y);
}

/* --- Dot -------------------------------------------------------------------------------------- */
/* x / |x| along an axis. */
static sn_value unit(sn_builder *b, sn_value x, int axis) {
    const sn_value inverse =
        sn_build_rsqrt(b, sn_build_sum(b, sn_build_square(b, x), 1u << axis, true));
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value most = sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, 1 / 1e-7);
    return sn_build_mul(b, x, sn_build_minimum(b, inverse, most));
}

/* Letters of input i, whose axis `axis` is summed over; those that stay also go to the result. */
static void name_axes(int i, int rank, int64_t axis, char *term, char *result) {
    for (int k = 0; k < rank; k++) {
        const char letter[2] = {k == 0 ? 'b' : k == axis ? 'k' : (char)((i ? 'J' : 'A') + k)};
        strcat(term, letter);
        if (k != axis && !strchr(result, letter[0]))
            strcat(result, letter);
    }
}

void sn_layer_build_dot(sn_layer_call *c) {
    const sn_conf_dot *conf = c->conf;
    char term[2][SNUG_MAX_RANK + 1] = {"", ""}, result[2 * SNUG_MAX_RANK + 1] = "", equation[64];
    sn_value in[2];
    for (int i = 0; i < 2 && c->b->error.code == SNUG_OK; i++) {
        const int rank = sn_graph_type(c->b->graph, c->in[i])->rank;
        const int64_t axis = conf->axes[i] < 0 ? conf->axes[i] + rank : conf->axes[i];
        if (axis < 1 || axis >= rank) {
            sn_layer_refuse(c, SNUG_E_SHAPE, "axes: %lld is no axis beside the batch of input %d",
                            (long long)conf->axes[i], i);
            return;
        }
        name_axes(i, rank, axis, term[i], result);
        in[i] = conf->normalize ? unit(c->b, c->in[i], (int)axis) : c->in[i];
    }
    const int64_t column[2] = {-1, 1};
    snprintf(equation, sizeof equation, "%s,%s->%s", term[0], term[1], result);
    c->out = sn_build_einsum(c->b, equation, in, 2);
    if (strlen(result) == 1) /* of vectors: [batch, 1] */
        c->out = sn_build_reshape(c->b, c->out, column, 2);
}
