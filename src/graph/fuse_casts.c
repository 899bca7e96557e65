/* fuse_casts.c: casts between f32 and halves that rows beside them make themselves.
 *
 *     wide       cast(matmul, sum, conv2d_dw, ... of bf16) to f32 -> the row with wide=1: what it
 *                summed up in f32 anyway is not rounded
 *     operands   matmul(x, cast(w)) -> matmul(x, w): kernels round an f32 operand while they read
 *                it, so that no half copy of the weights lies in memory; biases and what belongs to
 *                channels are not rounded at all
 *     rows       cast to half(normalise(cast(x), ...)) -> normalise(x, ...): norms of halves read
 *                and write halves, compute in f32 and round once, as between the casts
 *                the same of rows by element; sum(cast(x)) -> sum(x) with wide=1
 *     gradients  adam(w, m, v, cast(g)) -> adam(w, m, v, g), a half gradient of f32 weights
 *     sums       x^T dy of halves that is read as a half -> a cast behind the row with wide=1:
 *                slices of the batch add up in f32, and the sum is rounded once, as of the whole */
#include "graph/fuse.h"

#include <stddef.h>

/* A cast between these two types, of which `from` is what it reads; NULL for other records. */
static const sn_record *cast_between(const sn_fuser *f, const sn_record *r, bool widens) {
    if (!r || r->gone || r->node.op != SN_OP_cast)
        return NULL;
    const snug_dtype from = sn_graph_type(f->g, r->in[0])->dtype;
    const snug_dtype to = sn_graph_type(f->g, r->out[0])->dtype;
    const bool fits = widens ? sn_dtype_is_half(from) && to == SNUG_F32
                             : from == SNUG_F32 && sn_dtype_is_half(to);
    return fits ? r : NULL;
}

/* --- wide results ----------------------------------------------------------------------------- */

/* Where a row says that its results are f32; NULL where it cannot, or says so already. Of products
 * only gradients of weights, x^T dy: what layers give is rounded, as Keras does. */
static int64_t *wide_of(sn_record *r) {
    const int word = sn_attrs_wide(r->node.op);
    const sn_attrs_matmul *a = &r->node.attrs.matmul;
    const bool is_result =
        r->node.op == SN_OP_matmul && (!a->trans_a || r->node.n_in == 3 || a->act != SN_ACT_none);
    return word >= 0 && r->node.attrs.word[word] == 0 && !is_result ? &r->node.attrs.word[word]
                                                                    : NULL;
}

/* The cast to f32 that alone reads v. A gradient that f16 cannot hold must show (a loss scale waits
 * for it), so those are rounded behind their sum. */
sn_record *sn_fuse_only_widened(sn_fuser *f, sn_value v) {
    if (!sn_fuse_read_once(f, v) || sn_graph_type(f->g, v)->dtype != SNUG_BF16)
        return NULL;
    sn_record *r = &f->records[f->places[f->readers[v.i].first]];
    return cast_between(f, r, true) && r->in[0].i == v.i ? r : NULL;
}

bool sn_fuse_wide(sn_fuser *f, uint32_t n) {
    sn_record *const casts = &f->records[n], *found[SN_MAX_OUT];
    if (!cast_between(f, casts, true))
        return false;
    sn_record *r = sn_fuse_maker(f, casts->in[0]);
    int64_t *wide = r ? wide_of(r) : NULL;
    bool all = wide != NULL;
    for (int k = 0; all && k < r->node.n_out; k++) {
        found[k] = sn_fuse_only_widened(f, r->out[k]);
        all = found[k] != NULL;
    }
    if (!all)
        return false;
    *wide = 1;
    for (int k = 0; k < r->node.n_out; k++) {
        r->out[k] = found[k]->out[0];
        f->maker[r->out[k].i] = (uint32_t)(r - f->records);
        found[k]->gone = true;
    }
    return true;
}

/* Gradients of what is read once per example: x^T dy, sums over the first axis, and rows that do
 * nothing else. */
bool sn_fuse_sums_halves(const sn_graph *g, const sn_node_info *n) {
    const int word = sn_attrs_wide(n->op);
    if (n->part != SN_PART_BACKWARD || word < 0 || n->attrs.word[word] != 0)
        return false;
    const snug_type *to = sn_graph_type(g, n->out[0]), *from = sn_graph_type(g, n->in[0]);
    if (!sn_dtype_is_half(to->dtype))
        return false;
    if (n->op == SN_OP_matmul)
        return n->attrs.matmul.trans_a && to->rank == 2 && n->n_in == 2 &&
               n->attrs.matmul.act == SN_ACT_none;
    return n->op != SN_OP_sum || (sn_axes_set(&n->attrs.axes.axes, from->rank) & 1) != 0;
}

/* The record that alone reads v; NULL: there are others. */
static const sn_record *only_reader(const sn_fuser *f, sn_value v) {
    return sn_fuse_read_once(f, v) ? &f->records[f->places[f->readers[v.i].first]] : NULL;
}

/* Whether an f32 copy is made in any case, behind a check or at once. */
static bool is_widened(const sn_fuser *f, sn_value v) {
    const sn_record *r = only_reader(f, v);
    if (r && r->node.op == SN_OP_check_finite)
        r = only_reader(f, r->out[0]);
    return cast_between(f, r, true) != NULL;
}

/* A wide gradient that nobody needs in f32 stays what it is: it would be three times as large while
 * it is rounded. */
void sn_fuse_round_sums(sn_fuser *f) {
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        sn_record *r = &f->records[n];
        if (r->gone || !sn_fuse_sums_halves(f->g, &r->node))
            continue;
        const bool is_wide = sn_type_count(sn_graph_type(f->g, r->out[0])) >= SN_WIDE_WEIGHTS;
        if (is_wide && !is_widened(f, r->out[0]))
            continue;
        r->node.attrs.word[sn_attrs_wide(r->node.op)] = 1;
        r->rounds = true;
    }
}

/* Records read the value as it was before the cast; whether somebody else reads that does not
 * matter: a cast without readers goes. */
static void read_before(sn_fuser *f, sn_record *r, int i, const sn_record *cast) {
    r->in[i] = cast->in[0];
    sn_fuse_unlist(f, cast->in[0]);
}

/* --- rows between casts ----------------------------------------------------------------------- */

/* How many of its first inputs may be halves beside f32 statistics; 0: none. Its first output is
 * one, too, where `gives` says so. */
static const struct {
    int n_inputs;
    bool gives;
} narrow_rows[SN_N_OPS] = {
    [SN_OP_moments] = {1, false},        [SN_OP_normalise] = {1, true},
    [SN_OP_layernorm] = {1, true},       [SN_OP_normalise_sums] = {2, false},
    [SN_OP_channel_affine] = {2, true},  [SN_OP_layernorm_dx] = {2, true},
    [SN_OP_layernorm_sums] = {2, false},
};

static sn_record *only_rounding_of(const sn_fuser *f, sn_value v, snug_dtype to) {
    if (!sn_fuse_read_once(f, v))
        return NULL;
    sn_record *r = &f->records[f->places[f->readers[v.i].first]];
    const bool fits = cast_between(f, r, false) && r->in[0].i == v.i &&
                      sn_graph_type(f->g, r->out[0])->dtype == to;
    return fits ? r : NULL;
}

static void take_rounding(sn_fuser *f, sn_record *r, sn_record *rounding) {
    r->out[0] = rounding->out[0];
    f->maker[r->out[0].i] = (uint32_t)(r - f->records);
    rounding->gone = true;
}

static const sn_record *widening_of(const sn_fuser *f, sn_value v) {
    return cast_between(f, sn_fuse_maker(f, v), true);
}

/* Of the type that all its f32 inputs were widened from; false: they were not, or none is. */
static bool find_half(const sn_fuser *f, const sn_record *r, snug_dtype *half) {
    bool found = false, same = true;
    for (int i = 0; i < r->node.n_in && same; i++) {
        const snug_dtype dtype = sn_graph_type(f->g, r->in[i])->dtype;
        const sn_record *cast = dtype == SNUG_F32 ? widening_of(f, r->in[i]) : NULL;
        const snug_dtype from = cast ? sn_graph_type(f->g, cast->in[0])->dtype : dtype;
        same = cast ? !found || from == *half : !sn_dtype_is_float(dtype);
        *half = cast ? from : *half;
        found = found || cast;
    }
    return found && same;
}

/* Rows by element between casts, and sums behind them, which are f32 in any case. */
static void narrow_elements(sn_fuser *f, sn_record *r) {
    const bool sums = r->node.op == SN_OP_sum && r->node.attrs.axes.wide == 0;
    snug_dtype half = SNUG_F32;
    if ((!sums && !sn_op_is_by_element(r->node.op)) || r->node.op == SN_OP_cast ||
        r->node.n_out != 1 || !find_half(f, r, &half))
        return;
    sn_record *rounding = sums ? NULL : only_rounding_of(f, r->out[0], half);
    if (!sums && !rounding)
        return;
    for (int i = 0; i < r->node.n_in; i++)
        if (sn_graph_type(f->g, r->in[i])->dtype == SNUG_F32)
            read_before(f, r, i, widening_of(f, r->in[i]));
    if (sums)
        r->node.attrs.axes.wide = 1;
    else
        take_rounding(f, r, rounding);
}

static void narrow_row(sn_fuser *f, sn_record *r) {
    const int n = narrow_rows[r->node.op].n_inputs;
    sn_record *rounding = NULL;
    sn_value in[2];
    for (int i = 0; i < n; i++) {
        const sn_record *cast = cast_between(f, sn_fuse_maker(f, r->in[i]), true);
        if (!cast)
            return;
        in[i] = cast->in[0];
    }
    const snug_dtype half = n > 0 ? sn_graph_type(f->g, in[0])->dtype : SNUG_F32;
    if (n == 0 || sn_graph_type(f->g, in[n - 1])->dtype != half)
        return;
    if (narrow_rows[r->node.op].gives && !(rounding = only_rounding_of(f, r->out[0], half)))
        return;
    for (int i = 0; i < n; i++) {
        r->in[i] = in[i];
        sn_fuse_unlist(f, in[i]);
    }
    if (rounding)
        take_rounding(f, r, rounding);
}

/* --- operands --------------------------------------------------------------------------------- */

#define IN(i) (1u << (i))

/* Inputs that may be f32 beside a half first input (sn_want_beside). */
static const uint32_t wide_inputs[SN_N_OPS] = {
    [SN_OP_matmul] = IN(1) | IN(2),         [SN_OP_conv2d] = IN(1) | IN(2),
    [SN_OP_conv2d_pool] = IN(1) | IN(2),    [SN_OP_conv2d_dx] = IN(1),
    [SN_OP_conv2d_pool_dx] = IN(1),         [SN_OP_normalise] = IN(1) | IN(2) | IN(3) | IN(4),
    [SN_OP_normalise_sums] = IN(2) | IN(3), [SN_OP_channel_affine] = IN(2) | IN(3) | IN(4),
    [SN_OP_layernorm] = IN(1) | IN(2),      [SN_OP_layernorm_dx] = IN(2),
};

/* An update's inputs behind the variables, which are its outputs, too. */
static bool takes_gradient(const sn_record *r, int i) {
    const sn_op op = r->node.op;
    return sn_ops[op].effect == SN_STATE && op != SN_OP_assign && op != SN_OP_assign_add &&
           i >= r->node.n_out;
}

void sn_fuse_operands(sn_fuser *f) {
    for (uint32_t n = 0; n < f->n_nodes; n++)
        if (!f->records[n].gone) {
            narrow_row(f, &f->records[n]);
            narrow_elements(f, &f->records[n]);
        }
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        sn_record *r = &f->records[n];
        const uint32_t wide = r->gone ? 0 : wide_inputs[r->node.op];
        for (int i = 0; !r->gone && i < r->node.n_in; i++) {
            const sn_record *maker = sn_fuse_maker(f, r->in[i]), *cast = NULL;
            if (i < 32 && (wide >> i & 1))
                cast = cast_between(f, maker, false);
            else if (takes_gradient(r, i))
                cast = cast_between(f, maker, true);
            if (cast)
                read_before(f, r, i, cast);
        }
    }
}
