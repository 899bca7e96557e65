/* fuse_pool.c: a max-pool and what stands before it.
 *
 *     pool_relu   maxpool(relu(x)) -> relu(maxpool(x)); and its backward, so y is not kept:
 *                 relu_grad(maxpool_grad(d, code), y) -> maxpool_grad(relu_grad(d, p), code)
 *     conv_pool   maxpool(relu(conv2d)), or without relu -> conv2d_pool; and its backward: of
 *                 g = relu_grad(maxpool_grad(d, code), y) the readers
 *                 conv2d_dw(x, g), sum(g) to [C]   -> conv2d_pool_dw(x, d, code)
 *                 conv2d_dx(g, w)                  -> conv2d_pool_dx(d, w, code)
 *
 * After conv_pool neither the convolution's result nor its gradient exists in full size. Both
 * directions are matched before anything changes: a pool whose gradient somebody else reads stays
 * as it is. */
#include "graph/fuse.h"

#include <stddef.h>
#include <string.h>

/* --- pooling after relu ----------------------------------------------------------------------- */

/* The nodes around one pool; the backward ones are NULL where there is no backward half. */
typedef struct {
    sn_record *relu, *pool, *pool_grad, *relu_grad;
} pool_match;

/* Whether the gradient goes back through the pool's own windows; pool_grad begins like pool. */
static bool has_pool_window(const pool_match *m) {
    return memcmp(&m->pool_grad->node.attrs, &m->pool->node.attrs, sizeof(sn_attrs_pool)) == 0;
}

/* relu_grad(maxpool_grad(d, code), y), where y is the relu's output and code the pool's. */
static bool match_pool_backward(const sn_fuser *f, pool_match *m) {
    m->pool_grad = sn_fuse_only_for(f, m->relu_grad->in[0], SN_OP_maxpool_grad);
    return m->pool_grad && m->relu_grad->in[1].i == m->relu->out[0].i &&
           m->pool_grad->in[1].i == m->pool->out[1].i && has_pool_window(m);
}

/* Whether nobody but the backward half of the match reads which elements won. Where a whole window
 * is <= 0 that changes with the swap; relu_grad makes it not matter. */
static bool has_own_code(const sn_fuser *f, const pool_match *m) {
    const sn_readers *code = &f->readers[m->pool->out[1].i];
    return !code->is_kept && code->n == (m->pool_grad ? 1 : 0);
}

static bool match_pool(const sn_fuser *f, uint32_t n, pool_match *m) {
    *m = (pool_match){.relu = &f->records[n]};
    if (m->relu->node.op != SN_OP_relu)
        return false;
    const sn_readers *readers = &f->readers[m->relu->out[0].i];
    if (readers->is_kept || readers->n < 1 || readers->n > 2)
        return false;
    for (uint32_t i = 0; i < readers->n; i++) {
        sn_record *r = &f->records[f->places[readers->first + i]];
        if (r->gone)
            return false;
        if (r->node.op == SN_OP_maxpool)
            m->pool = r;
        else if (r->node.op == SN_OP_relu_grad)
            m->relu_grad = r;
    }
    if (!m->pool || (readers->n == 2 && !m->relu_grad))
        return false;
    return (!m->relu_grad || match_pool_backward(f, m)) && has_own_code(f, m);
}

/* The operators of two nodes in a row change places; the value between them keeps its id. */
static void swap_pair(sn_fuser *f, sn_record *first, sn_record *second) {
    sn_record was_first = *first, was_second = *second;
    const sn_value between = was_first.out[0];
    *first = was_second;
    *second = was_first;
    first->node.in = first->in;
    first->node.out = first->out;
    second->node.in = second->in;
    second->node.out = second->out;
    first->in[0] = was_first.in[0];
    first->out[0] = between;
    second->in[0] = between;
    second->out[0] = was_second.out[0];
    for (int k = 0; k < first->node.n_out; k++)
        f->maker[first->out[k].i] = (uint32_t)(first - f->records);
}

/* Exact, ties included: relu keeps the order of numbers, so the same element wins; where the whole
 * window is <= 0 the winner may be another, but its gradient is 0. The id of the large relu's
 * output stands for the pooled value before relu from now on. */
bool sn_fuse_pool_relu(sn_fuser *f, uint32_t n) {
    pool_match m;
    if (!match_pool(f, n, &m))
        return false;
    /* Afterwards m.relu points to the pool on x and m.pool to the relu on the pooled value. */
    swap_pair(f, m.relu, m.pool);
    if (m.relu_grad) {
        swap_pair(f, m.pool_grad, m.relu_grad);
        m.pool_grad->in[1] = m.pool->out[0];
        sn_fuse_unlist(f, m.pool->out[0]);
    }
    return true;
}

/* --- convolution and pooling ------------------------------------------------------------------ */

typedef struct {
    pool_match pool; /* relu and relu_grad may be missing */
    sn_record *conv;
    sn_record *dw, *sum, *dx; /* readers of the full-size gradient, those there are */
} conv_pool_match;

/* Windows that do not overlap: no result of the convolution is needed in two blocks. Few places: a
 * block of results is made of whole windows. */
static bool is_poolable(const sn_attrs_pool *a) {
    enum { MAX_PLACES = 16 };
    return a->kernel[0] <= a->stride[0] && a->kernel[1] <= a->stride[1] &&
           a->stride[0] <= MAX_PLACES && a->stride[1] <= MAX_PLACES &&
           a->stride[0] * a->stride[1] <= MAX_PLACES;
}

/* maxpool(v) without a relu, and perhaps maxpool_grad(d, code). */
static bool match_plain_pool(const sn_fuser *f, uint32_t n, pool_match *m) {
    *m = (pool_match){.pool = &f->records[n]};
    if (m->pool->node.op != SN_OP_maxpool)
        return false;
    const sn_readers *code = &f->readers[m->pool->out[1].i];
    if (code->n == 1)
        m->pool_grad = &f->records[f->places[code->first]];
    return has_own_code(f, m) &&
           (!m->pool_grad || (m->pool_grad->node.op == SN_OP_maxpool_grad && has_pool_window(m)));
}

/* stride, pad, dilation, groups: how all these families begin. */
static bool has_window_of(const sn_record *r, const sn_record *conv) {
    const size_t head = offsetof(sn_attrs_conv, act);
    return memcmp(&r->node.attrs, &conv->node.attrs, head) == 0;
}

/* Whether this reader of the gradient g is one that has a fused form. */
static bool match_reader(const sn_fuser *f, sn_record *r, sn_value g, conv_pool_match *m) {
    const sn_record *conv = m->conv;
    sn_record **to = NULL;
    if (r->node.op == SN_OP_conv2d_dw && r->in[1].i == g.i && r->in[0].i == conv->in[0].i)
        to = &m->dw;
    else if (r->node.op == SN_OP_conv2d_dx && r->in[0].i == g.i && r->in[1].i == conv->in[1].i)
        to = &m->dx;
    else if (sn_fuse_is_channel_sum(f, r, g))
        to = &m->sum;
    if (!to || *to || r->gone || (to != &m->sum && !has_window_of(r, conv)))
        return false;
    *to = r;
    return true;
}

/* The bias gradient will be made in the place of dw: nobody may read it earlier. */
static bool is_sum_late(const sn_fuser *f, const conv_pool_match *m) {
    const sn_readers *users = &f->readers[m->sum->out[0].i];
    return m->dw && (users->n == 0 || &f->records[f->places[users->first]] > m->dw);
}

static bool match_conv_backward(const sn_fuser *f, conv_pool_match *m) {
    const sn_record *last = m->pool.relu ? m->pool.relu_grad : m->pool.pool_grad;
    if (!last)
        return true;
    const sn_readers *readers = &f->readers[last->out[0].i];
    for (uint32_t i = 0; i < readers->n; i++)
        if (!match_reader(f, &f->records[f->places[readers->first + i]], last->out[0], m))
            return false;
    return !readers->is_kept && (!m->sum || is_sum_late(f, m));
}

static bool match_conv_pool(const sn_fuser *f, uint32_t n, conv_pool_match *m) {
    *m = (conv_pool_match){0};
    if (!match_pool(f, n, &m->pool) && !match_plain_pool(f, n, &m->pool))
        return false;
    const sn_value y = m->pool.relu ? m->pool.relu->in[0] : m->pool.pool->in[0];
    m->conv = sn_fuse_only_for(f, y, SN_OP_conv2d);
    return m->conv && m->conv->node.attrs.conv.groups == 1 &&
           m->conv->node.attrs.conv.act == SN_ACT_none &&
           is_poolable(&m->pool.pool->node.attrs.pool) && match_conv_backward(f, m);
}

static void set_pool(const sn_attrs_pool *from, int64_t *pool) {
    for (int i = 0; i < 2; i++) {
        pool[i] = from->kernel[i];
        pool[2 + i] = from->stride[i];
    }
    for (int i = 0; i < 4; i++)
        pool[4 + i] = from->pad[i];
}

/* In the place of the pool, as the convolution's owner's. */
static void become_conv_pool(sn_fuser *f, const conv_pool_match *m) {
    sn_record *r = m->pool.pool;
    const sn_attrs_pool from = r->node.attrs.pool;
    const sn_record *conv = m->conv;
    r->node.op = SN_OP_conv2d_pool;
    r->node.owner = conv->node.owner;
    r->node.n_in = conv->node.n_in;
    for (int i = 0; i < conv->node.n_in; i++)
        r->in[i] = conv->in[i];
    r->node.attrs = conv->node.attrs; /* conv_pool begins like conv */
    sn_attrs_conv_pool *a = &r->node.attrs.conv_pool;
    a->act = m->pool.relu ? SN_ACT_relu : SN_ACT_none;
    a->codes = m->pool.pool_grad != NULL;
    r->node.n_out = a->codes ? 2 : 1;
    set_pool(&from, a->pool);
    m->conv->gone = true;
    if (m->pool.relu)
        m->pool.relu->gone = true;
    f->maker[r->out[0].i] = (uint32_t)(r - f->records);
}

/* dw and dx read the pooled gradient and the code; their attributes begin like those they had. */
static void become_backward(sn_fuser *f, const conv_pool_match *m, const sn_attrs_pool *pool) {
    const sn_value d = m->pool.pool_grad->in[0], code = m->pool.pool->out[1];
    if (m->dw) {
        m->dw->node.op = SN_OP_conv2d_pool_dw;
        m->dw->node.n_in = 3;
        m->dw->in[1] = d;
        m->dw->in[2] = code;
        set_pool(pool, m->dw->node.attrs.conv_pool_dw.pool);
    }
    if (m->dx) {
        m->dx->node.op = SN_OP_conv2d_pool_dx;
        m->dx->node.n_in = 3;
        m->dx->in[0] = d;
        m->dx->in[2] = code;
        set_pool(pool, m->dx->node.attrs.conv_pool_dx.pool);
    }
    if (m->sum) {
        m->dw->node.attrs.conv_pool_dw.bias = 1;
        m->dw->node.n_out = 2;
        m->dw->out[1] = m->sum->out[0];
        f->maker[m->dw->out[1].i] = (uint32_t)(m->dw - f->records);
        m->sum->gone = true;
    }
    m->pool.pool_grad->gone = true;
    if (m->pool.relu_grad)
        m->pool.relu_grad->gone = true;
    sn_fuse_unlist(f, d);
}

bool sn_fuse_conv_pool(sn_fuser *f, uint32_t n) {
    conv_pool_match m;
    if (!match_conv_pool(f, n, &m))
        return false;
    const sn_attrs_pool pool = m.pool.pool->node.attrs.pool;
    become_conv_pool(f, &m);
    if (m.pool.pool_grad)
        become_backward(f, &m, &pool);
    return true;
}
