/* onednn.c: convolutions by oneDNN's C API, versions 2 and 3 (which differ in how descriptors are
 * made).
 *
 * 1. Activations are plain NHWC, weights HWIO; the library chooses the packed form of the weights.
 * 2. Implementations named "ref" are refused: the own kernels are faster.
 * 3. A run makes no request of ours; all memory it touches is operands and workspace:
 *        packed weights | scratch | bias gradient (dw)
 * 4. oneDNN takes its threads from OpenMP's setting, so that is set around each call and put
 * back. */
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/onednn_library.h"

#include <stdio.h>
#include <string.h>

enum { CODE_BYTES = 256 * 1024 }; /* bound on the code made for one convolution and its reorders */

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc_ref;
#define REF(desc) (desc)
#else
typedef const dnnl_memory_desc_t *desc_ref;
#define REF(desc) (&(desc))
#endif

/* Everything below is for processes that have it: sn_onednn_describe asks. */
static const sn_onednn_library *dnnl(void) {
    return sn_onednn_found();
}

/* --- descriptors ----------------------------------------------------------------------------- */
/* Everything that describes one convolution; a slot that is not used stays zero. */
typedef struct {
    dnnl_engine_t engine;
    dnnl_memory_desc_t x, y, w, any_w, bias;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t forward, conv; /* conv is forward, or made with it as a hint */
} recipe;

static dnnl_status_t make_plain(dnnl_memory_desc_t *d, int n, const dnnl_dim_t *dims,
                                const dnnl_dim_t *strides) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->memory_desc_create_with_strides(d, n, dims, dnnl_f32, strides);
#else
    return dnnl()->memory_desc_init_by_strides(d, n, dims, dnnl_f32, strides);
#endif
}

static dnnl_status_t make_any(dnnl_memory_desc_t *d, int n, const dnnl_dim_t *dims) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->memory_desc_create_with_tag(d, n, dims, dnnl_f32, dnnl_format_tag_any);
#else
    return dnnl()->memory_desc_init_by_tag(d, n, dims, dnnl_f32, dnnl_format_tag_any);
#endif
}

static void clear_descs(recipe *r) {
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t all[] = {r->x, r->y, r->w, r->any_w, r->bias};
    for (int i = 0; i < 5; i++)
        if (all[i])
            dnnl()->memory_desc_destroy(all[i]);
#else
    (void)r;
#endif
}

static dnnl_status_t make_images(recipe *r, const sn_conv *v) {
    const dnnl_dims_t x = {v->N, v->C, v->H, v->W}, y = {v->N, v->O, v->oh, v->ow}, bias = {v->O},
                      one = {1};
    const dnnl_dims_t x_strides = {v->H * v->W * v->C, 1, v->W * v->C, v->C};
    const dnnl_dims_t y_strides = {v->oh * v->ow * v->O, 1, v->ow * v->O, v->O};
    dnnl_status_t s = make_plain(&r->x, 4, x, x_strides);
    if (s == dnnl_success)
        s = make_plain(&r->y, 4, y, y_strides);
    return s == dnnl_success ? make_plain(&r->bias, 1, bias, one) : s;
}

/* [kh, kw, C/groups, O] seen as (groups, O/groups, C/groups, kh, kw). */
static dnnl_status_t make_weights(recipe *r, const sn_conv *v) {
    const int64_t width = v->O / v->groups, depth = v->C / v->groups;
    const dnnl_dims_t dims = {v->groups, width, depth, v->kh, v->kw};
    const dnnl_dims_t strides = {width, 1, v->O, v->kw * depth * v->O, depth * v->O};
    const dnnl_status_t s = make_plain(&r->w, 5, dims, strides);
    return s == dnnl_success ? make_any(&r->any_w, 5, dims) : s;
}

static dnnl_status_t append(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float a, float b) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->post_ops_append_eltwise(ops, kind, a, b);
#else
    return dnnl()->post_ops_append_eltwise(ops, 1.0f, kind, a, b);
#endif
}

static dnnl_status_t append_act(dnnl_post_ops_t ops, int64_t act) {
    if (act == SN_ACT_hard_sigmoid) {
        const dnnl_status_t s = append(ops, dnnl_eltwise_linear, 1.0f / 6.0f, 0.5f);
        return s == dnnl_success ? append(ops, dnnl_eltwise_clip, 0.0f, 1.0f) : s;
    }
    if (act == SN_ACT_relu6)
        return append(ops, dnnl_eltwise_clip, 0.0f, 6.0f);
    if (act == SN_ACT_silu)
        return append(ops, dnnl_eltwise_swish, 1.0f, 0.0f);
    const dnnl_alg_kind_t kind = act == SN_ACT_relu   ? dnnl_eltwise_relu
                                 : act == SN_ACT_tanh ? dnnl_eltwise_tanh
                                                      : dnnl_eltwise_logistic;
    return append(ops, kind, 0.0f, 0.0f);
}

/* Scratch is ours; the activation is fused. */
static dnnl_status_t make_attr(recipe *r, int64_t act) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = dnnl()->primitive_attr_create(&r->attr);
    if (s == dnnl_success)
        s = dnnl()->primitive_attr_set_scratchpad_mode(r->attr, dnnl_scratchpad_mode_user);
    if (s != dnnl_success || act == SN_ACT_none)
        return s;
    s = dnnl()->post_ops_create(&ops);
    if (s == dnnl_success)
        s = append_act(ops, act);
    if (s == dnnl_success)
        s = dnnl()->primitive_attr_set_post_ops(r->attr, ops);
    if (ops)
        dnnl()->post_ops_destroy(ops);
    return s;
}

/* Strides and padding as the library wants them; its dilation 0 is our 1. */
typedef struct {
    dnnl_dims_t stride, dilation, before, after;
} geometry;

static geometry geometry_of(const sn_conv *v) {
    geometry g;
    for (int i = 0; i < 2; i++) {
        const int64_t extent = i == 0 ? v->H : v->W, out = i == 0 ? v->oh : v->ow,
                      k = i == 0 ? v->kh : v->kw;
        g.stride[i] = v->stride[i];
        g.dilation[i] = v->dilation[i] - 1;
        g.before[i] = v->pad[2 * i];
        /* what the windows reach, which is less than the padding when the last stride does not
         * fit */
        g.after[i] =
            (out - 1) * v->stride[i] + (k - 1) * v->dilation[i] + 1 - extent - v->pad[2 * i];
    }
    return g;
}

static dnnl_status_t make_forward(recipe *r, const geometry *g, bool bias) {
    const desc_ref b = bias ? REF(r->bias) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->convolution_forward_primitive_desc_create(
        &r->forward, r->engine, dnnl_forward_training, dnnl_convolution_direct, r->x, r->any_w, b,
        r->y, g->stride, g->dilation, g->before, g->after, r->attr);
#else
    dnnl_convolution_desc_t d;
    const dnnl_status_t s = dnnl()->dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, &r->x, &r->any_w, b, &r->y, g->stride,
        g->dilation, g->before, g->after);
    return s == dnnl_success
               ? dnnl()->primitive_desc_create(&r->forward, &d, r->attr, r->engine, NULL)
               : s;
#endif
}

static dnnl_status_t make_dx(recipe *r, const geometry *g) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->convolution_backward_data_primitive_desc_create(
        &r->conv, r->engine, dnnl_convolution_direct, r->x, r->any_w, r->y, g->stride, g->dilation,
        g->before, g->after, r->forward, r->attr);
#else
    dnnl_convolution_desc_t d;
    const dnnl_status_t s = dnnl()->dilated_convolution_backward_data_desc_init(
        &d, dnnl_convolution_direct, &r->x, &r->any_w, &r->y, g->stride, g->dilation, g->before,
        g->after);
    return s == dnnl_success
               ? dnnl()->primitive_desc_create(&r->conv, &d, r->attr, r->engine, r->forward)
               : s;
#endif
}

static dnnl_status_t make_dw(recipe *r, const geometry *g, bool bias) {
    const desc_ref b = bias ? REF(r->bias) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl()->convolution_backward_weights_primitive_desc_create(
        &r->conv, r->engine, dnnl_convolution_direct, r->x, r->any_w, b, r->y, g->stride,
        g->dilation, g->before, g->after, r->forward, r->attr);
#else
    dnnl_convolution_desc_t d;
    const dnnl_status_t s = dnnl()->dilated_convolution_backward_weights_desc_init(
        &d, dnnl_convolution_direct, &r->x, &r->any_w, b, &r->y, g->stride, g->dilation, g->before,
        g->after);
    return s == dnnl_success
               ? dnnl()->primitive_desc_create(&r->conv, &d, r->attr, r->engine, r->forward)
               : s;
#endif
}

static void clear_recipe(recipe *r) {
    if (r->conv && r->conv != r->forward)
        dnnl()->primitive_desc_destroy(r->conv);
    if (r->forward)
        dnnl()->primitive_desc_destroy(r->forward);
    if (r->attr)
        dnnl()->primitive_attr_destroy(r->attr);
    clear_descs(r);
    if (r->engine)
        dnnl()->engine_destroy(r->engine);
}

/* The caller clears r, whatever the answer. */
static dnnl_status_t make_recipe(recipe *r, sn_onednn_kind kind, const sn_conv *v) {
    const geometry g = geometry_of(v);
    memset(r, 0, sizeof *r);
    dnnl_status_t s = dnnl()->engine_create(&r->engine, dnnl_cpu, 0);
    if (s == dnnl_success)
        s = make_images(r, v);
    if (s == dnnl_success)
        s = make_weights(r, v);
    if (s == dnnl_success)
        s = make_attr(r, kind == SN_ONEDNN_FORWARD ? v->act : SN_ACT_none);
    if (s == dnnl_success)
        s = make_forward(r, &g, v->bias);
    if (s != dnnl_success)
        return s;
    if (kind == SN_ONEDNN_DX)
        return make_dx(r, &g);
    if (kind == SN_ONEDNN_DW)
        return make_dw(r, &g, v->bias);
    r->conv = r->forward;
    return dnnl_success;
}

static const char *impl_of(const recipe *r) {
    const char *name = "ref";
    dnnl()->primitive_desc_query(r->conv, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

static bool is_reference(const char *impl) {
    return strncmp(impl, "ref", 3) == 0 || strstr(impl, ":ref") || strstr(impl, "_ref");
}

/* The packed form of the weights that the library chose. */
static desc_ref packed_of(const recipe *r, sn_onednn_kind kind) {
    return dnnl()->primitive_desc_query_md(
        r->conv, kind == SN_ONEDNN_DW ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
}

static desc_ref scratch_of(const recipe *r) {
    return dnnl()->primitive_desc_query_md(r->conv, dnnl_query_scratchpad_md, 0);
}

static size_t lines(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* --- description ----------------------------------------------------------------------------- */
/* "unimplemented" is an answer, not an error: the own kernels take over. */
static snug_status failed(dnnl_status_t s, const char *what, snug_error *err) {
    if (s == dnnl_out_of_memory)
        return sn_fail(err, SNUG_E_MEMORY, "oneDNN had no memory to %s; use a smaller batch", what);
    return sn_fail(err, SNUG_E_INTERNAL, "oneDNN could not %s (its status %d)", what, (int)s);
}

/* The workspace: scratch | bias gradient | packed weights. The last are written whole, so that all
 * of it is needed; what the library does with its scratch is its own business. */
static size_t db_at(const recipe *r) {
    return lines(dnnl()->memory_desc_get_size(scratch_of(r)));
}

static size_t packed_at(const recipe *r, sn_onednn_kind kind, const sn_conv *v) {
    const bool db = kind == SN_ONEDNN_DW && v->bias;
    return db_at(r) + (db ? lines((size_t)v->O * sizeof(float)) : 0);
}

static size_t workspace_of(const recipe *r, sn_onednn_kind kind, const sn_conv *v) {
    return packed_at(r, kind, v) + dnnl()->memory_desc_get_size(packed_of(r, kind));
}

snug_status sn_onednn_describe(sn_onednn_kind kind, const sn_conv *v, int n_threads,
                               sn_variant *out, snug_error *err) {
    recipe r;
    if (!dnnl())
        return SNUG_OK;
    const int before = dnnl()->threads();
    dnnl()->set_threads(n_threads);
    const dnnl_status_t s = make_recipe(&r, kind, v);
    snug_status status = SNUG_OK;
    if (s == dnnl_success && !is_reference(impl_of(&r))) {
        out->workspace_bytes = workspace_of(&r, kind, v);
        out->code_bytes = CODE_BYTES;
        snprintf(out->impl, sizeof out->impl, "onednn:%s", impl_of(&r));
    } else if (s != dnnl_success && s != dnnl_unimplemented) {
        status = failed(s, "describe a convolution", err);
    }
    clear_recipe(&r);
    dnnl()->set_threads(before);
    return status;
}

/* --- prepared objects ------------------------------------------------------------------------ */
typedef struct {
    sn_onednn_kind kind;
    bool bias;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t conv, pack, add; /* dw: pack unpacks, add unpacks and adds */
    dnnl_memory_t x, y, w, packed, biases, scratch;
    size_t db_at, packed_at; /* in the workspace */
} prepared_conv;

static dnnl_status_t make_reorder(const recipe *r, desc_ref from, desc_ref to, bool add,
                                  dnnl_primitive_t *out) {
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t d = NULL;
    dnnl_status_t s = dnnl()->primitive_attr_create(&attr);
    if (s == dnnl_success && add)
        s = dnnl()->post_ops_create(&ops);
#if DNNL_VERSION_MAJOR >= 3
    if (s == dnnl_success && add)
        s = dnnl()->post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    if (s == dnnl_success && add)
        s = dnnl()->post_ops_append_sum(ops, 1.0f);
#endif
    if (s == dnnl_success && add)
        s = dnnl()->primitive_attr_set_post_ops(attr, ops);
    if (s == dnnl_success)
        s = dnnl()->reorder_primitive_desc_create(&d, from, r->engine, to, r->engine, attr);
    if (s == dnnl_success)
        s = dnnl()->primitive_create(out, d);
    if (d)
        dnnl()->primitive_desc_destroy(d);
    if (ops)
        dnnl()->post_ops_destroy(ops);
    if (attr)
        dnnl()->primitive_attr_destroy(attr);
    return s;
}

static dnnl_status_t make_memories(prepared_conv *p, const recipe *r) {
    const struct {
        dnnl_memory_t *memory;
        desc_ref desc;
    } all[] = {{&p->x, REF(r->x)},         {&p->y, REF(r->y)},
               {&p->w, REF(r->w)},         {&p->packed, packed_of(r, p->kind)},
               {&p->biases, REF(r->bias)}, {&p->scratch, scratch_of(r)}};
    dnnl_status_t s = dnnl_success;
    for (int i = 0; i < 6 && s == dnnl_success; i++)
        s = dnnl()->memory_create(all[i].memory, all[i].desc, r->engine, DNNL_MEMORY_NONE);
    return s;
}

static dnnl_status_t make_primitives(prepared_conv *p, const sn_conv *v, const recipe *r) {
    const desc_ref plain = REF(r->w), packed = packed_of(r, p->kind);
    const bool dw = p->kind == SN_ONEDNN_DW;
    dnnl_status_t s = dnnl()->stream_create(&p->stream, r->engine, dnnl_stream_default_flags);
    if (s == dnnl_success)
        s = dnnl()->primitive_create(&p->conv, r->conv);
    if (s == dnnl_success)
        s = make_reorder(r, dw ? packed : plain, dw ? plain : packed, false, &p->pack);
    if (s == dnnl_success && dw)
        s = make_reorder(r, packed, plain, true, &p->add);
    p->db_at = db_at(r);
    p->packed_at = packed_at(r, p->kind, v);
    return s == dnnl_success ? make_memories(p, r) : s;
}

/* Primitives for the recipe; takes over its engine, in which memories and stream live. The caller
 * releases p, whatever the answer. */
static dnnl_status_t fill_prepared(prepared_conv *p, const sn_conv *v, recipe *r) {
    dnnl_status_t s = make_recipe(r, p->kind, v);
    if (s == dnnl_success && is_reference(impl_of(r)))
        s = dnnl_unimplemented;
    if (s == dnnl_success)
        s = make_primitives(p, v, r);
    if (s == dnnl_success) {
        p->engine = r->engine;
        r->engine = NULL;
    }
    return s;
}

snug_status sn_onednn_prepare(snug_engine *e, sn_onednn_kind kind, const sn_conv *v, int n_threads,
                              void **out, snug_error *err) {
    recipe r = {0};
    void *block = NULL;
    *out = NULL;
    if (!dnnl())
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_KERNELS, sizeof(prepared_conv), &block, err));
    prepared_conv *p = block;
    p->kind = kind;
    p->bias = v->bias;
    const int before = dnnl()->threads();
    dnnl()->set_threads(n_threads);
    const dnnl_status_t s = fill_prepared(p, v, &r);
    dnnl()->set_threads(before);
    if (s != dnnl_success)
        sn_onednn_release(e, p);
    clear_recipe(&r);
    if (s != dnnl_success && s != dnnl_unimplemented)
        return failed(s, "prepare a convolution", err);
    *out = s == dnnl_success ? p : NULL;
    return SNUG_OK;
}

void sn_onednn_release(snug_engine *e, void *prepared) {
    prepared_conv *p = prepared;
    if (!p)
        return;
    const dnnl_primitive_t primitives[] = {p->conv, p->pack, p->add};
    const dnnl_memory_t memories[] = {p->x, p->y, p->w, p->packed, p->biases, p->scratch};
    for (int i = 0; i < 3; i++)
        if (primitives[i])
            dnnl()->primitive_destroy(primitives[i]);
    for (int i = 0; i < 6; i++)
        if (memories[i])
            dnnl()->memory_destroy(memories[i]);
    if (p->stream)
        dnnl()->stream_destroy(p->stream);
    if (p->engine)
        dnnl()->engine_destroy(p->engine);
    sn_free(e, SN_MEM_KERNELS, p, sizeof *p);
}

/* --- running --------------------------------------------------------------------------------- */
/* The library's interface takes pointers to non-const, also for what it only reads. */
static dnnl_status_t bind(dnnl_memory_t memory, const void *data) {
    return dnnl()->memory_set_data_handle(memory, (void *)(uintptr_t)data);
}

static dnnl_status_t bind_all(prepared_conv *p, const sn_conv_operands *o, char *workspace,
                              float *db) {
    const bool forward = p->kind == SN_ONEDNN_FORWARD, dx = p->kind == SN_ONEDNN_DX;
    dnnl_status_t s = bind(p->x, dx ? o->dx : o->x);
    if (s == dnnl_success)
        s = bind(p->y, forward ? o->y : o->dy);
    if (s == dnnl_success)
        s = bind(p->w, p->kind == SN_ONEDNN_DW ? o->dw : o->w);
    if (s == dnnl_success)
        s = bind(p->packed, workspace + p->packed_at);
    if (s == dnnl_success)
        s = bind(p->scratch, workspace);
    if (s == dnnl_success && p->bias)
        s = bind(p->biases, forward ? o->bias : db);
    return s;
}

static dnnl_status_t reorder(const prepared_conv *p, dnnl_primitive_t how, dnnl_memory_t from,
                             dnnl_memory_t to) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl()->primitive_execute(how, p->stream, 2, args);
}

static dnnl_status_t convolve(const prepared_conv *p) {
    const bool forward = p->kind == SN_ONEDNN_FORWARD, dx = p->kind == SN_ONEDNN_DX,
               dw = p->kind == SN_ONEDNN_DW;
    const dnnl_exec_arg_t args[] = {
        {dx ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, p->x},
        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, p->y},
        {dw ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, p->packed},
        {DNNL_ARG_SCRATCHPAD, p->scratch},
        {dw ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, p->biases},
    };
    return dnnl()->primitive_execute(p->conv, p->stream, p->bias ? 5 : 4, args);
}

snug_status sn_onednn_run(void *prepared, const sn_conv_operands *o, void *workspace, int n_threads,
                          snug_error *err) {
    prepared_conv *p = prepared;
    float *db = (float *)(void *)((char *)workspace + p->db_at);
    const bool dw = p->kind == SN_ONEDNN_DW;
    const int before = dnnl()->threads();
    dnnl()->set_threads(n_threads);
    dnnl_status_t s = bind_all(p, o, workspace, db);
    if (s == dnnl_success && !dw)
        s = reorder(p, p->pack, p->w, p->packed);
    if (s == dnnl_success)
        s = convolve(p);
    if (s == dnnl_success && dw)
        s = reorder(p, o->accumulate ? p->add : p->pack, p->packed, p->w);
    if (s == dnnl_success)
        s = dnnl()->stream_wait(p->stream);
    dnnl()->set_threads(before);
    if (s != dnnl_success)
        return failed(s, "run a convolution", err);
    for (int64_t i = 0; o->db && i < o->v.O; i++)
        o->db[i] = o->accumulate ? o->db[i] + db[i] : db[i];
    return SNUG_OK;
}
