/* fuse_patterns.c: the pattern pairs. Each names the nodes it looks for and what stands there
 * afterwards; values between the nodes have no other reader and are no output: nobody misses them.
 *
 *     conv_pool       maxpool(relu(conv2d)) and its backward at once: see fuse_pool.c
 *     pool_relu       maxpool(relu(x)) -> relu(maxpool(x)): see there
 *     bias            add(matmul or conv2d, b[C]) -> input 2
 *     normalise       normalise(conv2d, m, v, g, b) -> conv2d with the line that normalise_line
 *                     makes of m, v, g, b: a batch norm in inference costs nothing
 *     activation      relu, relu_max=6, tanh, sigmoid, silu(matmul or conv2d) -> act
 *     bias_gradient   conv2d_dw(x, d) and sum(d) to [C] -> conv2d_dw with bias=1
 *     cross_entropy   -sum(labels log(softmax(x))) -> softmax_xent or sparse_xent: see fuse_xent.c
 *     dense_update    adam(w, m, v, matmul(x, dy)) -> matmul_adam(w, m, v, x, dy), where asked for;
 *                     with matmul(dy, w) -> matmul_adam_dx(w, m, v, x, dy), in its place; where
 *                     the gradient is an output, it is one of these rows, too; of halves, whose
 *                     product is wide, where the device has a kernel that takes them
 *     wide            a cast to f32 of what sums halves up: see fuse_casts.c
 *     channel_affine  a p + (b q + c) -> channel_affine(p, q, a, b, c): dx of batch norm at once */
#include "graph/fuse.h"
#include "op/impl.h"

#include <string.h>

/* --- questions -------------------------------------------------------------------------------- */

static bool is_before(const sn_fuser *f, sn_value v, uint32_t place) {
    return f->maker[v.i] == UINT32_MAX || f->maker[v.i] < place;
}

/* Whether v is one number per channel of `like`. */
static bool is_channels(const sn_fuser *f, sn_value v, const snug_type *like) {
    const snug_type *t = sn_graph_type(f->g, v);
    return t->rank == 1 && like->rank > 1 && t->dtype == like->dtype &&
           t->dims[0] == like->dims[like->rank - 1];
}

/* --- bias and activation ---------------------------------------------------------------------- */

/* Where matmul and conv2d keep their activation; NULL for other operators. */
static int64_t *act_of(sn_node_info *node) {
    if (node->op == SN_OP_matmul)
        return &node->attrs.matmul.act;
    return node->op == SN_OP_conv2d ? &node->attrs.conv.act : NULL;
}

/* A product that v alone is made for and that has no activation yet. */
static sn_record *open_product(sn_fuser *f, sn_value v) {
    sn_record *r = sn_fuse_maker(f, v);
    const int64_t *act = r ? act_of(&r->node) : NULL;
    return act && *act == SN_ACT_none && sn_fuse_read_once(f, v) ? r : NULL;
}

/* Record `r` makes from now on what the absorbed record in place n made. */
static void absorb_into(sn_fuser *f, sn_record *r, uint32_t n) {
    r->out[0] = f->records[n].out[0];
    f->maker[r->out[0].i] = (uint32_t)(r - f->records);
    f->records[n].gone = true;
}

static bool fuse_bias(sn_fuser *f, uint32_t n) {
    const sn_record *add = &f->records[n];
    if (add->node.op != SN_OP_add)
        return false;
    for (int side = 0; side < 2; side++) {
        const sn_value y = add->in[side], bias = add->in[1 - side];
        sn_record *r = open_product(f, y);
        if (!r || r->node.n_in != 2 || !is_channels(f, bias, sn_graph_type(f->g, y)) ||
            !is_before(f, bias, f->maker[y.i]))
            continue;
        r->in[2] = bias;
        r->node.n_in = 3;
        absorb_into(f, r, n);
        return true;
    }
    return false;
}

bool sn_graph_is_relu6(const sn_graph *g, const sn_node_info *n) {
    if (sn_ops[n->op].fuses != SN_ACT_relu6)
        return false;
    const sn_param_info *cap = sn_graph_param_at(g, (sn_param){(uint32_t)n->attrs.value.value});
    return cap->name[0] == 0 && cap->kind == SN_PARAM_REAL && cap->real == 6;
}

static bool fuse_activation(sn_fuser *f, uint32_t n) {
    const sn_act act = sn_ops[f->records[n].node.op].fuses;
    if (act == SN_ACT_none ||
        (act == SN_ACT_relu6 && !sn_graph_is_relu6(f->g, &f->records[n].node)))
        return false;
    sn_record *r = open_product(f, f->records[n].in[0]);
    if (!r)
        return false;
    *act_of(&r->node) = act;
    absorb_into(f, r, n);
    return true;
}

/* --- batch normalisation after a convolution -------------------------------------------------- */

/* A convolution whose kernel takes a line, read by the normalise in place n alone. */
static sn_record *conv_under(sn_fuser *f, uint32_t n) {
    const sn_record *norm = &f->records[n];
    sn_record *r = norm->node.op == SN_OP_normalise ? open_product(f, norm->in[0]) : NULL;
    if (!r || r->node.op != SN_OP_conv2d)
        return NULL;
    const int64_t groups = r->node.attrs.conv.groups, in = sn_graph_type(f->g, r->in[0])->dims[3],
                  out = sn_graph_type(f->g, r->in[1])->dims[3];
    if (groups != 1 && (groups != in || groups != out))
        return NULL;
    for (int i = 1; i < 5; i++)
        if (!is_before(f, norm->in[i], f->maker[norm->in[0].i]))
            return NULL;
    return r->node.n_in < 3 || sn_graph_type(f->g, r->in[2])->rank == 1 ? r : NULL;
}

/* The two change places: the line is made where the convolution was, which stands where the
 * normalise was. The id of the convolution's old output is the line's from now on. */
static bool fuse_normalise(sn_fuser *f, uint32_t n) {
    sn_record *first = conv_under(f, n), *second = &f->records[n];
    if (!first)
        return false;
    const sn_record conv = *first, norm = *second;
    first->node = norm.node;
    first->node.op = SN_OP_normalise_line;
    first->node.n_in = (uint16_t)(conv.node.n_in + 2); /* the bias, where there is one, is last */
    for (int i = 0; i < 4; i++)
        first->in[i] = norm.in[1 + i];
    first->in[4] = conv.in[2];
    second->node = conv.node;
    second->node.n_in = 3;
    second->in[0] = conv.in[0];
    second->in[1] = conv.in[1];
    second->in[2] = conv.out[0];
    first->node.in = first->in;
    first->node.out = first->out;
    second->node.in = second->in;
    second->node.out = second->out;
    return true;
}

/* --- bias gradient ---------------------------------------------------------------------------- */

/* Whether the record sums d over all axes but the last. */
bool sn_fuse_is_channel_sum(const sn_fuser *f, const sn_record *r, sn_value d) {
    const sn_attrs_axes *a = &r->node.attrs.axes;
    const int rank = sn_graph_type(f->g, d)->rank;
    if (r->gone || r->node.op != SN_OP_sum || a->keepdims || a->axes.n != rank - 1)
        return false;
    for (int i = 0; i < rank - 1; i++)
        if (a->axes.v[i] != i)
            return false;
    return true;
}

/* Whether its result is f32 beside halves. */
static bool is_wide(const sn_fuser *f, const sn_record *dw) {
    return sn_graph_type(f->g, dw->out[0])->dtype != sn_graph_type(f->g, dw->in[1])->dtype;
}

/* The sum may stand before or behind; what it makes is made in place n, so nobody may read it
 * earlier. */
static bool fuse_bias_gradient(sn_fuser *f, uint32_t n) {
    sn_record *dw = &f->records[n];
    if (dw->node.op != SN_OP_conv2d_dw || dw->node.attrs.conv_dw.bias)
        return false;
    const sn_value d = dw->in[1];
    const sn_readers *readers = &f->readers[d.i];
    for (uint32_t i = 0; i < readers->n; i++) {
        sn_record *sum = &f->records[f->places[readers->first + i]];
        if (!sn_fuse_is_channel_sum(f, sum, d))
            continue;
        sn_record *const cast = is_wide(f, dw) ? sn_fuse_only_widened(f, sum->out[0]) : NULL;
        const sn_value total = cast ? cast->out[0] : sum->out[0];
        if (sn_graph_type(f->g, total)->dtype != sn_graph_type(f->g, dw->out[0])->dtype)
            continue;
        const sn_readers *users = &f->readers[total.i];
        if (users->n > 0 && f->places[users->first] < n)
            continue;
        dw->node.attrs.conv_dw.bias = 1;
        dw->out[1] = total;
        dw->node.n_out = 2;
        f->maker[total.i] = n;
        sum->gone = true;
        if (cast)
            cast->gone = true;
        return true;
    }
    return false;
}

/* --- channel affine --------------------------------------------------------------------------- */

/* v = full * channels, with no other reader. */
typedef struct {
    sn_record *record;
    sn_value full, channels;
} scaled;

static bool match_scaled(const sn_fuser *f, sn_value v, scaled *out) {
    const snug_type *t = sn_graph_type(f->g, v);
    sn_record *mul = sn_fuse_only_for(f, v, SN_OP_mul);
    for (int side = 0; mul && side < 2; side++) {
        const sn_value full = mul->in[side], channels = mul->in[1 - side];
        if (!sn_type_equal(sn_graph_type(f->g, full), t) || !is_channels(f, channels, t))
            continue;
        *out = (scaled){mul, full, channels};
        return true;
    }
    return false;
}

/* v = q b + c with b, c along the channels, with no other reader. */
typedef struct {
    sn_record *record;
    scaled q;
    sn_value c;
} line;

static bool match_line(const sn_fuser *f, sn_value v, line *out) {
    sn_record *add = sn_fuse_only_for(f, v, SN_OP_add);
    for (int side = 0; add && side < 2; side++) {
        out->record = add;
        out->c = add->in[1 - side];
        if (is_channels(f, out->c, sn_graph_type(f->g, v)) &&
            match_scaled(f, add->in[side], &out->q))
            return true;
    }
    return false;
}

static void make_channel_affine(sn_record *r, const scaled *p, const line *l) {
    const sn_value in[5] = {p->full, l->q.full, p->channels, l->q.channels, l->c};
    r->node.op = SN_OP_channel_affine;
    r->node.n_in = 5;
    sn_attrs_default(SN_OP_channel_affine, &r->node.attrs);
    for (int i = 0; i < 5; i++)
        r->in[i] = in[i];
    p->record->gone = true;
    l->q.record->gone = true;
}

/* p a + (q b + c) */
static bool fuse_two_terms(sn_record *sum, const sn_fuser *f, sn_value term, const line *l) {
    scaled p;
    if (!match_scaled(f, term, &p))
        return false;
    make_channel_affine(sum, &p, l);
    l->record->gone = true;
    return true;
}

/* (d + p a) + (q b + c): another gradient came first; it stays a term of its own. */
static bool fuse_three_terms(sn_record *sum, const sn_fuser *f, sn_value terms, const line *l) {
    sn_record *add = sn_fuse_only_for(f, terms, SN_OP_add);
    for (int side = 1; add && side >= 0; side--) {
        scaled p;
        const sn_value rest = add->in[1 - side];
        if (!sn_type_equal(sn_graph_type(f->g, rest), sn_graph_type(f->g, terms)) ||
            !match_scaled(f, add->in[side], &p) || p.record > l->record)
            continue;
        make_channel_affine(l->record, &p, l);
        sum->in[0] = rest;
        sum->in[1] = l->record->out[0];
        add->gone = true;
        return true;
    }
    return false;
}

static bool fuse_channel_affine(sn_fuser *f, uint32_t n) {
    sn_record *sum = &f->records[n];
    if (sum->node.op != SN_OP_add)
        return false;
    const snug_type *t = sn_graph_type(f->g, sum->out[0]);
    for (int side = 0; sn_dtype_is_float(t->dtype) && side < 2; side++) {
        line l;
        const sn_value other = sum->in[1 - side];
        if (!sn_type_equal(sn_graph_type(f->g, sum->in[side]), t) ||
            !sn_type_equal(sn_graph_type(f->g, other), t))
            continue;
        if (match_line(f, sum->in[side], &l) &&
            (fuse_two_terms(sum, f, other, &l) || fuse_three_terms(sum, f, other, &l)))
            return true;
    }
    return false;
}

/* --- a dense layer's update ------------------------------------------------------------------- */

/* x^T dy of two matrices, made for v, which one record reads; it may be an output. */
static sn_record *match_gradient(const sn_fuser *f, sn_value v) {
    sn_record *r = sn_fuse_maker(f, v);
    if (!r || r->node.op != SN_OP_matmul || r->node.n_in != 2 || f->readers[v.i].n != 1 ||
        f->readers[v.i].is_unlisted)
        return NULL;
    const sn_attrs_matmul *a = &r->node.attrs.matmul;
    return a->trans_a && !a->trans_b && !a->fold_b && a->act == SN_ACT_none &&
                   sn_graph_type(f->g, r->in[0])->rank == 2 &&
                   sn_graph_type(f->g, r->in[1])->rank == 2
               ? r
               : NULL;
}

/* A value before the cast to a half that makes it, where one does: a product may read either. */
static sn_value before_rounding(const sn_fuser *f, sn_value v) {
    const sn_record *cast = sn_fuse_maker(f, v);
    const bool rounds = cast && cast->node.op == SN_OP_cast &&
                        sn_dtype_is_half(sn_graph_type(f->g, v)->dtype) &&
                        sn_graph_type(f->g, cast->in[0])->dtype == SNUG_F32;
    return rounds ? cast->in[0] : v;
}

/* Or as they are rounded: what reads that may come to read the value (sn_fuse_operands). */
static bool reads(const sn_fuser *f, const sn_record *r, const sn_value *values, int n) {
    for (int i = 0; i < r->node.n_in; i++)
        for (int k = 0; k < n; k++)
            if (r->in[i].i == values[k].i || before_rounding(f, r->in[i]).i == values[k].i)
                return true;
    return false;
}

/* dy of the product as a half, like x; false: it is f32 beside that, and nobody rounds it before
 * this place. */
static bool half_of_dy(const sn_fuser *f, uint32_t n, const sn_record *product, sn_value *out) {
    const snug_dtype dtype = sn_graph_type(f->g, product->in[0])->dtype;
    const sn_value dy = product->in[1];
    *out = dy;
    if (sn_graph_type(f->g, dy)->dtype == dtype)
        return true;
    for (uint32_t i = 0; i < f->readers[dy.i].n; i++) {
        const uint32_t place = f->places[f->readers[dy.i].first + i];
        const sn_record *r = &f->records[place];
        *out = r->out[0];
        if (!r->gone && place < n && r->node.op == SN_OP_cast &&
            sn_graph_type(f->g, *out)->dtype == dtype)
            return true;
    }
    return false;
}

/* An update in place `at` may stand in place `to` instead: what could refuse the step, and what
 * reads the variables as they were, comes before. */
static bool may_move_up(const sn_fuser *f, uint32_t at, uint32_t to) {
    for (uint32_t i = to + 1; i < f->n_nodes; i++) {
        const sn_record *r = &f->records[i];
        if (i != at && !r->gone &&
            ((i < at && sn_ops[r->node.op].effect == SN_MAYFAIL) ||
             reads(f, r, f->records[at].in, 3)))
            return false;
    }
    return true;
}

/* Whether what the update reads beside w and dy, which dx reads too, is made before this place. */
static bool is_ready_at(const sn_fuser *f, const sn_record *update, uint32_t place) {
    for (int i = 1; i < 4; i++)
        if (!is_before(f, update->in[i], place))
            return false;
    return true;
}

/* dy w^T, with w as this value has it, in a place where the update in place n may move; UINT32_MAX:
 * there is none. Kernels take sums over this many columns. */
static uint32_t find_product(const sn_fuser *f, uint32_t n, sn_value dy, sn_value w) {
    enum { MOST_COLUMNS = 2048 };
    for (uint32_t i = 0; i < f->readers[w.i].n; i++) {
        const uint32_t place = f->places[f->readers[w.i].first + i];
        const sn_record *r = &f->records[place];
        const sn_attrs_matmul *a = &r->node.attrs.matmul;
        if (!r->gone && r->node.op == SN_OP_matmul && r->node.n_in == 2 && r->in[0].i == dy.i &&
            r->in[1].i == w.i && a->trans_b && !a->trans_a && !a->fold_b && a->act == SN_ACT_none &&
            !a->wide && sn_graph_type(f->g, w)->dims[1] <= MOST_COLUMNS &&
            is_ready_at(f, &f->records[n], place) && may_move_up(f, n, place))
            return place;
    }
    return UINT32_MAX;
}

/* The same with the weights that the update changes, or, beside halves, with what they are rounded
 * to. */
static uint32_t find_dx(const sn_fuser *f, uint32_t n) {
    const sn_value w = f->records[n].in[0], dy = f->records[n].in[4];
    uint32_t place = find_product(f, n, dy, w);
    for (uint32_t i = 0; i < f->readers[w.i].n && place == UINT32_MAX; i++) {
        const sn_record *r = &f->records[f->places[f->readers[w.i].first + i]];
        if (!r->gone && before_rounding(f, r->out[0]).i == w.i &&
            sn_graph_type(f->g, r->out[0])->dtype == sn_graph_type(f->g, dy)->dtype)
            place = find_product(f, n, dy, r->out[0]);
    }
    return place;
}

/* The update moves to the product in this place, whose value is its fourth output. */
static void join_dx(sn_fuser *f, sn_record *update, uint32_t place) {
    sn_record *r = &f->records[place];
    const sn_value dx = r->out[0];
    r->node = update->node;
    r->node.op = SN_OP_matmul_adam_dx;
    r->node.n_out++;
    r->node.in = r->in;
    r->node.out = r->out;
    memcpy(r->in, update->in, sizeof r->in);
    memcpy(r->out, update->out, 3 * sizeof *r->out);
    r->out[3] = dx;
    if (r->node.attrs.matmul_adam.gradient)
        r->out[4] = update->out[3];
    for (int k = 0; k < r->node.n_out; k++)
        f->maker[r->out[k].i] = place;
    update->gone = true;
}

/* The record makes its gradient v itself, of x and dy. */
static void take_product(sn_fuser *f, uint32_t n, const sn_value factors[2], sn_value v) {
    sn_record *r = &f->records[n];
    const sn_attrs_adam adam = r->node.attrs.adam;
    r->node.op = SN_OP_matmul_adam;
    r->node.n_in = 5;
    sn_attrs_default(SN_OP_matmul_adam, &r->node.attrs);
    r->node.attrs.matmul_adam = (sn_attrs_matmul_adam){.gradient = f->readers[v.i].is_kept,
                                                       .rate = adam.rate,
                                                       .one_minus_beta1 = adam.one_minus_beta1,
                                                       .one_minus_beta2 = adam.one_minus_beta2,
                                                       .epsilon = adam.epsilon};
    for (int i = 0; i < 2; i++) {
        r->in[3 + i] = factors[i];
        sn_fuse_unlist(f, factors[i]);
    }
    if (r->node.attrs.matmul_adam.gradient) {
        r->out[r->node.n_out++] = v;
        f->maker[v.i] = n;
    }
}

/* Whether the device has a kernel of its own for the update with such factors, where they are
 * halves: a gradient that is rounded to one is no sum in f32. */
static bool takes_halves(const sn_fuser *f, const sn_record *adam, const sn_value factors[2]) {
    sn_opdesc d = {.op = SN_OP_matmul_adam, .n_in = 5};
    sn_variant v;
    snug_error unused;
    const snug_dtype gradient = sn_graph_type(f->g, adam->in[3])->dtype;
    if (!sn_dtype_is_half(sn_graph_type(f->g, factors[0])->dtype))
        return true;
    sn_attrs_default(d.op, &d.attrs);
    for (int i = 0; i < 5; i++)
        d.in[i] = *sn_graph_type(f->g, i < 3 ? adam->in[i] : factors[i - 3]);
    if (gradient != SNUG_F32 || d.in[0].dtype != SNUG_F32 || sn_op_infer(&d, &unused) != SNUG_OK)
        return false;
    const sn_device *device = f->options.device;
    return !device || (device->describe(device, &d, &v, &unused) == SNUG_OK &&
                       sn_impl_kind_of(v.impl) != SN_IMPL_HOST);
}

static bool fuse_dense_update(sn_fuser *f, uint32_t n) {
    sn_record *r = &f->records[n];
    sn_value factors[2];
    if (!f->options.dense_update || r->node.op != SN_OP_adam || r->node.n_in != 4)
        return false;
    sn_record *product = match_gradient(f, r->in[3]);
    if (!product || sn_type_count(sn_graph_type(f->g, r->in[0])) < f->options.dense_update)
        return false;
    factors[0] = product->in[0];
    if (!half_of_dy(f, n, product, &factors[1]) || !takes_halves(f, r, factors))
        return false;
    take_product(f, n, factors, r->in[3]);
    product->gone = true;
    const uint32_t place = find_dx(f, n);
    if (place != UINT32_MAX)
        join_dx(f, r, place);
    return true;
}

const sn_fuse_pattern sn_fuse_patterns[] = {sn_fuse_conv_pool,
                                            sn_fuse_pool_relu,
                                            fuse_bias,
                                            fuse_normalise,
                                            fuse_activation,
                                            fuse_bias_gradient,
                                            fuse_channel_affine,
                                            sn_fuse_cross_entropy,
                                            fuse_dense_update,
                                            sn_fuse_wide,
                                            NULL};
