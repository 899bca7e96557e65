/* test_ops_kernels.c: what the CPU kernels of every row of the table promise, from the cases column
 * alone: fast = reference on every instruction set, in place = out of place, accumulate = add,
 * bytes that lie in outputs and workspace do not matter and are all needed, bits depend on nothing
 * but the inputs, dtypes that a family says it takes it takes. */
#include "support/call.h"
#include "support/support.h"
#include "tensor/feed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- fast = reference ------------------------------------------------------------------------ */

static int half_cases[SN_N_OPS];

static void check_fast(sn_subject *s) {
    char text[64];
    half_cases[s->op] += s->real == SNUG_F16 || s->real == SNUG_BF16;
    snug_view wanted[SN_MAX_OUT], got[SN_MAX_OUT];
    const sn_how reference = {.n_threads = 1, .poison = 0xa5};
    sn_outputs_make(s, &reference, &s->desc, wanted);
    bool ok = sn_call_ok(s, &reference, wanted);
    for (int i = 0; ok && sn_isa_at(i); i++) {
        const sn_how fast = {.isa = sn_isa_at(i), .n_threads = 2, .poison = 0xa5};
        sn_outputs_make(s, &fast, &s->desc, got);
        ok = sn_call_ok(s, &fast, got);
        if (ok)
            sn_expect_near(s, sn_how_text(&fast, text), got, wanted, sn_case_tolerances[s->op]);
        sn_views_free(got, s->desc.n_out);
    }
    sn_views_free(wanted, s->desc.n_out);
}

static void test_fast_kernels_agree_with_references(void **state) {
    (void)state;
    memset(half_cases, 0, sizeof half_cases);
    sn_sweep_rows("fast = reference", check_fast);
    for (int op = 0; op < SN_N_OPS; op++)
        if (half_cases[op] == 0 && sn_cpu_family_of((sn_op)op)->takes_stored & SN_HALF_DTYPES)
            fail_msg("no case of %s ran in halves", sn_ops[op].name);
}

/* --- in place -------------------------------------------------------------------------------- */

/* Runs with each output k >= 0 of over[k] in the bytes of that input; -1: in its own. `twin`: input
 * 1 is input 0, the same bytes. */
typedef struct {
    int over[SN_MAX_OUT];
    bool twin;
} placing;

static void run_placed(sn_subject *s, const sn_how *how, const placing *p,
                       const snug_view *wanted) {
    char text[64];
    snug_view in[SN_MAX_IN], own[SN_MAX_OUT], out[SN_MAX_OUT];
    sn_outputs_make(s, how, &s->desc, own);
    for (int i = 0; i < s->desc.n_in; i++)
        in[i] = sn_view_copy(&s->in[i]);
    snug_view spare = in[1];
    if (p->twin)
        in[1] = in[0];
    for (int k = 0; k < s->desc.n_out; k++) {
        out[k] = own[k];
        if (p->over[k] >= 0)
            out[k].data = in[p->over[k]].data;
    }
    if (sn_call_on(s, how, &s->desc, in, out))
        sn_expect_bits(s, sn_how_text(how, text), out, wanted);
    if (p->twin)
        in[1] = spare;
    sn_views_free(in, s->desc.n_in);
    sn_views_free(own, s->desc.n_out);
}

static void compare_placed(sn_subject *s, const sn_how *how, const placing *p) {
    snug_view wanted[SN_MAX_OUT];
    const snug_view second = s->in[1];
    sn_outputs_make(s, how, &s->desc, wanted);
    if (p->twin)
        s->in[1] = s->in[0];
    if (sn_call_ok(s, how, wanted))
        run_placed(s, how, p, wanted);
    if (p->twin)
        s->in[1] = second;
    sn_views_free(wanted, s->desc.n_out);
}

/* Output 0 over input i, where the row allows it and the bytes are as many. */
static void check_over(sn_subject *s, const sn_how *how, int i) {
    const sn_inplace allowed = sn_ops[s->op].inplace;
    const sn_opdesc *d = &s->desc;
    const bool may = (allowed >> i & 1) || (allowed == SN_INPLACE_ALIAS && i == 0);
    size_t bytes;
    expect_ok(snug_type_bytes(&d->out[0], &bytes, NULL), NULL);
    if (!may || i >= d->n_in || d->in[i].dtype != d->out[0].dtype || s->in[i].bytes != bytes)
        return;
    placing p = {.over = {i, -1, -1, -1, -1}};
    compare_placed(s, how, &p);
    p.twin = true; /* both inputs may be overwritten, or neither where they are the same bytes */
    if (allowed == SN_INPLACE_EITHER && sn_type_equal(&d->in[0], &d->in[1]))
        compare_placed(s, how, &p);
}

static void check_in_place(sn_subject *s) {
    const sn_how hows[2] = {{.n_threads = 1}, {.isa = sn_cpu_isa(), .n_threads = 2}};
    for (int h = 0; h < 2; h++) {
        check_over(s, &hows[h], 0);
        check_over(s, &hows[h], 1);
        if (sn_ops[s->op].inplace == SN_INPLACE_STATE) {
            const placing versions = {.over = {0, 1, 2, 3, -1}};
            compare_placed(s, &hows[h], &versions);
        }
        if (sn_ops[s->op].inplace >= SN_INPLACE_STATE_THREE) {
            const placing apart = {.over = {0, 1, 2, -1, -1}};
            compare_placed(s, &hows[h], &apart);
        }
        if (sn_ops[s->op].inplace == SN_INPLACE_STATE_FOURTH) {
            const placing over = {.over = {0, 1, 2, 3, -1}};
            compare_placed(s, &hows[h], &over);
        }
    }
}

static void test_in_place_gives_the_same_bits(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "in place = out of place");
    sn_sweep_run(&w, check_in_place);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && sn_ops[op].inplace != SN_INPLACE_NEVER)
            fail_msg("no case of %s ran in place", sn_ops[op].name);
    sn_sweep_end(&w);
}

/* --- accumulate ------------------------------------------------------------------------------ */

/* A bias or an activation is applied once, to the whole sum: such a node never accumulates.
 * Nor does one whose sums are kept in another type. */
static bool may_accumulate(const sn_subject *s) {
    const bool fused =
        s->op == SN_OP_matmul && (s->desc.n_in == 3 || s->desc.attrs.matmul.act != SN_ACT_none);
    const snug_dtype out = s->desc.out[0].dtype;
    return sn_ops[s->op].accumulates && !fused && sn_dtype_sums(out) == out;
}

static void add_into(const snug_view *content, const snug_view *result) {
    for (int64_t i = 0; i < sn_view_count(content); i++)
        sn_view_put(content, i, sn_view_get(content, i) + sn_view_get(result, i));
}

/* The sum is rounded once more, or in another order. */
static void check_adding(sn_subject *s, const sn_how *how) {
    char text[64];
    const sn_tolerance tolerance = {.inputs = 32, .largest = 32}; /* the content is up to 9 */
    snug_view plain[SN_MAX_OUT], onto[SN_MAX_OUT], wanted[SN_MAX_OUT];
    sn_outputs_make(s, how, &s->desc, plain);
    for (int k = 0; k < s->desc.n_out; k++) {
        onto[k] = sn_view_copy(&plain[k]);
        sn_view_random(&onto[k], (uint64_t)k + 5, -9, 9);
        wanted[k] = sn_view_copy(&onto[k]);
    }
    sn_how adding = *how;
    adding.accumulate = true;
    if (sn_call_ok(s, how, plain) && sn_call_ok(s, &adding, onto)) {
        for (int k = 0; k < s->desc.n_out; k++)
            add_into(&wanted[k], &plain[k]);
        sn_expect_near(s, sn_how_text(how, text), onto, wanted, tolerance);
    }
    sn_views_free(plain, s->desc.n_out);
    sn_views_free(onto, s->desc.n_out);
    sn_views_free(wanted, s->desc.n_out);
}

static void check_accumulate(sn_subject *s) {
    if (!may_accumulate(s))
        return;
    check_adding(s, &(sn_how){.n_threads = 1});
    check_adding(s, &(sn_how){.isa = sn_cpu_isa(), .n_threads = 2});
}

static void test_accumulating_adds_to_what_is_there(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "accumulate = add");
    sn_sweep_run(&w, check_accumulate);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && sn_ops[op].accumulates)
            fail_msg("no case of %s accumulated", sn_ops[op].name);
    sn_sweep_end(&w);
}

/* --- inputs ---------------------------------------------------------------------------------- */

static void check_inputs_stay(sn_subject *s) {
    const sn_how hows[2] = {{.n_threads = 1}, {.isa = sn_cpu_isa(), .n_threads = 2}};
    for (int h = 0; h < 2; h++) {
        char text[64];
        snug_view before[SN_MAX_IN], out[SN_MAX_OUT];
        for (int i = 0; i < s->desc.n_in; i++)
            before[i] = sn_view_copy(&s->in[i]);
        sn_outputs_make(s, &hows[h], &s->desc, out);
        const bool ok = sn_call_ok(s, &hows[h], out);
        sn_checked(s);
        for (int i = 0; ok && i < s->desc.n_in; i++)
            if (memcmp(before[i].data, s->in[i].data, before[i].bytes) != 0)
                sn_complain(s, "%s wrote to input %d", sn_how_text(&hows[h], text), i);
        sn_views_free(before, s->desc.n_in);
        sn_views_free(out, s->desc.n_out);
    }
}

static void test_inputs_are_not_written(void **state) {
    (void)state;
    sn_sweep_rows("inputs stay", check_inputs_stay);
}

/* --- poison ---------------------------------------------------------------------------------- */

static void check_truth(sn_subject *s, const snug_view *v) {
    const uint8_t *at = v->data;
    for (size_t i = 0; v->type.dtype == SNUG_BOOL && i < v->bytes; i++) {
        if (at[i] > 1) {
            sn_complain(s, "truth value %zu is %d", i, at[i]);
            return;
        }
    }
}

static void check_poison_of(sn_subject *s, const char *isa) {
    static const int bytes[] = {0xa5, 0xff}; /* 0xff...: NaN */
    bool needs_all = false;
    snug_view clean[SN_MAX_OUT], got[SN_MAX_OUT];
    sn_how how = {.isa = isa, .n_threads = 2, .poison = 0, .needs_all = &needs_all};
    sn_outputs_make(s, &how, &s->desc, clean);
    bool ok = sn_call_ok(s, &how, clean);
    for (int i = 0; ok && i < 2; i++) {
        char text[96];
        how.poison = bytes[i];
        snprintf(text, sizeof text, "%s, memory full of %#x before", isa ? isa : "reference",
                 bytes[i]);
        sn_outputs_make(s, &how, &s->desc, got);
        ok = sn_call_ok(s, &how, got);
        if (ok)
            sn_expect_bits(s, text, got, clean);
        for (int k = 0; k < s->desc.n_out; k++)
            check_truth(s, &got[k]);
        sn_views_free(got, s->desc.n_out);
    }
    if (ok && !needs_all)
        sn_complain(s, "%s leaves the last byte of its workspace", isa ? isa : "reference");
    sn_views_free(clean, s->desc.n_out);
}

static void check_poison(sn_subject *s) {
    check_poison_of(s, NULL);
    check_poison_of(s, sn_cpu_isa());
}

static void test_bytes_in_outputs_and_workspace_do_not_matter(void **state) {
    (void)state;
    sn_sweep_rows("poison", check_poison);
}

/* --- threads --------------------------------------------------------------------------------- */

/* Own kernels: the bits of one thread. oneDNN: those of the call before with as many threads. */
static void check_threads(sn_subject *s) {
#ifdef SN_REDZONES /* what each of three threads touches; the bits are the plain build's to        \
                      compare */
    static const int counts[] = {1, 3};
#else
    static const int counts[] = {1, 1, 2, 2, 3};
#endif
    snug_view first[SN_MAX_OUT], got[SN_MAX_OUT];
    const sn_how one = {.isa = sn_cpu_isa(), .n_threads = 1};
    const bool foreign = sn_is_foreign(s, &one);
    sn_outputs_make(s, &one, &s->desc, first);
    bool ok = sn_call_ok(s, &one, first);
    for (size_t i = 1; ok && i < sizeof counts / sizeof *counts; i++) {
        char text[64];
        const sn_how how = {.isa = sn_cpu_isa(), .n_threads = counts[i], .poison = 0xa5};
        sn_outputs_make(s, &how, &s->desc, got);
        ok = sn_call_ok(s, &how, got);
        if (ok && (!foreign || counts[i] == counts[i - 1]))
            sn_expect_bits(s, sn_how_text(&how, text), got, first);
        if (foreign) /* the next is compared with this one */
            for (int k = 0; k < s->desc.n_out; k++)
                memcpy(first[k].data, got[k].data, got[k].bytes);
        sn_views_free(got, s->desc.n_out);
    }
    sn_views_free(first, s->desc.n_out);
}

static void test_bits_do_not_depend_on_threads(void **state) {
    (void)state;
    sn_sweep_rows("threads", check_threads);
}

/* --- halves = f32, rounded --------------------------------------------------------------------- */

/* Their kernels of halves do not give what those of f32 give, rounded: recurrent rows keep their
 * states as halves from step to step, products add words of two terms, and random draws its own. */
static bool has_own_halves(sn_op op) {
    const bool recurrent = op >= SN_OP_lstm && op <= SN_OP_simple_rnn_grad;
    const bool product = op == SN_OP_matmul || op == SN_OP_matmul_adam ||
                         op == SN_OP_matmul_adam_dx ||
                         (op >= SN_OP_conv2d && op <= SN_OP_conv2d_pool_dw);
    const bool attention = op == SN_OP_attention || op == SN_OP_attention_grad;
    return recurrent || product || attention || op == SN_OP_random || op == SN_OP_normalise_line;
}

static snug_view as_dtype(const snug_view *v, snug_dtype dtype) {
    snug_type t = v->type;
    const bool half = t.dtype == SNUG_F16 || t.dtype == SNUG_BF16;
    if (!half && !(t.dtype == SNUG_F32 && dtype != SNUG_F32))
        return sn_view_copy(v);
    t.dtype = dtype;
    const snug_view to = sn_view_make(&t, 0, 0);
    expect_ok(sn_convert(v->type.dtype, v->data, dtype, to.data, (size_t)sn_view_count(v), NULL),
              NULL);
    return to;
}

/* Of a call with operands of types d, those of the case but for f32 where there were halves. */
static void compare_with_f32(sn_subject *s, const sn_how *how, const sn_opdesc *d,
                             const sn_opdesc *f32) {
    char text[64];
    snug_view in[SN_MAX_IN], wide_in[SN_MAX_IN], wide[SN_MAX_OUT], got[SN_MAX_OUT];
    sn_outputs_make(s, how, f32, wide);
    sn_outputs_make(s, how, d, got);
    for (int i = 0; i < d->n_in; i++) {
        in[i] =
            d->in[i].dtype == SNUG_F32 ? as_dtype(&s->in[i], SNUG_F32) : sn_view_copy(&s->in[i]);
        wide_in[i] = as_dtype(&s->in[i], SNUG_F32);
    }
    if (sn_call_on(s, how, f32, wide_in, wide) && sn_call_on(s, how, d, in, got))
        for (int k = 0; k < d->n_out; k++) {
            snug_view wanted = as_dtype(&wide[k], d->out[k].dtype);
            sn_expect_view_near(s, sn_how_text(how, text), k, &got[k], &wanted, (sn_tolerance){0});
            sn_view_free(&wanted);
        }
    sn_views_free(in, d->n_in);
    sn_views_free(wide_in, d->n_in);
    sn_views_free(wide, d->n_out);
    sn_views_free(got, d->n_out);
}

/* Operands that kernels take in f32 beside halves, as bits: statistics, parameters, labels, losses,
 * sums; variables and slots beside gradients. */
static const struct {
    sn_op op;
    uint32_t in, out;
} mixtures[] = {
    {SN_OP_normalise, 0x1e, 0},
    {SN_OP_normalise_sums, 0xc, 3},
    {SN_OP_channel_affine, 0x1c, 0},
    {SN_OP_layernorm, 6, 6},
    {SN_OP_layernorm_dx, 0x1c, 0},
    {SN_OP_layernorm_sums, 0xc, 3},
    {SN_OP_softmax_xent, 2, 1},
    {SN_OP_softmax_xent_grad, 6, 0},
    {SN_OP_sparse_xent, 0, 1},
    {SN_OP_sparse_xent_grad, 4, 0},
    {SN_OP_softmax_xent_grad, 1, 0},
    {SN_OP_sum, 0, 1},
    {SN_OP_scatter_add, 0, 1},
    {SN_OP_scatter_nd, 0, 1},
    {SN_OP_moving_average, 1, 1},
    {SN_OP_sgd, 1, 1},
    {SN_OP_sgd_momentum, 3, 3},
    {SN_OP_adam, 7, 7},
    {SN_OP_rmsprop, 3, 3},
    {SN_OP_adagrad, 3, 3},
    {SN_OP_lion, 3, 3},
};
enum { N_MIXTURES = sizeof mixtures / sizeof mixtures[0] };

static void compare_mixture(sn_subject *s, const sn_how *how, const sn_opdesc *f32, int m) {
    sn_opdesc d = s->desc;
    for (int i = 0; i < d.n_in; i++)
        if (mixtures[m].in >> i & 1)
            d.in[i] = f32->in[i];
    for (int k = 0; k < d.n_out; k++)
        if (mixtures[m].out >> k & 1)
            d.out[k] = f32->out[k];
    compare_with_f32(s, how, &d, f32);
}

/* A half kernel gives what that of f32 gives for the same numbers, rounded once: its sums are not
 * sums of halves. */
static void check_rounded(sn_subject *s) {
    sn_opdesc f32 = s->desc;
    bool has_halves = false;
    for (int i = 0; i < f32.n_in; i++) {
        if (f32.in[i].dtype != SNUG_F16 && f32.in[i].dtype != SNUG_BF16)
            continue;
        f32.in[i].dtype = SNUG_F32;
        has_halves = true;
    }
    if (!has_halves || has_own_halves(s->op) || sn_op_infer(&f32, NULL) != SNUG_OK)
        return;
    for (int i = 0; sn_isa_at(i); i++) {
        const sn_how how = {.isa = sn_isa_at(i), .n_threads = 2, .poison = 0xa5};
        compare_with_f32(s, &how, &s->desc, &f32);
        for (int m = 0; m < N_MIXTURES; m++)
            if (mixtures[m].op == s->op)
                compare_mixture(s, &how, &f32, m);
    }
}

static void test_halves_are_f32_rounded(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "halves = f32 rounded");
    sn_sweep_run(&w, check_rounded);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && sn_ops[op].min_in > 0 && !has_own_halves((sn_op)op) &&
            sn_cpu_family_of((sn_op)op)->takes_stored & SN_HALF_DTYPES && op != SN_OP_one_hot)
            fail_msg("no case of %s was compared in halves", sn_ops[op].name);
    sn_sweep_end(&w);
}

/* --- whole numbers that are stored; halves are in every sweep ---------------------------------- */

/* The case with `dtype` in place of f32; false: its row has no such. */
static bool retype(const sn_subject *s, snug_dtype dtype, sn_opdesc *d) {
    *d = s->desc;
    for (int i = 0; i < d->n_in; i++)
        d->in[i].dtype = d->in[i].dtype == SNUG_F32 ? dtype : d->in[i].dtype;
    if (s->op == SN_OP_fill)
        d->attrs.fill.dtype = dtype;
    return sn_op_infer(d, NULL) == SNUG_OK;
}

/* A value of whole numbers in another dtype of such, each the nearest that it has. */
static snug_view converted(const snug_view *v, const snug_type *t) {
    const snug_view to = sn_view_make(t, 0, 0);
    for (int64_t i = 0; i < sn_view_count(v); i++) {
        const double most = sn_dtype_largest(t->dtype);
        const double least = sn_dtype_counts(t->dtype) ? 0 : -most - 1;
        sn_view_put(&to, i, fmin(fmax(sn_view_get(v, i), least), most));
    }
    return to;
}

/* The low bytes of 64: wrapping. Others are as they are. */
static snug_view wrapped(const snug_view *v, const snug_type *t) {
    if (v->type.dtype == t->dtype)
        return sn_view_copy(v);
    const snug_view to = sn_view_make(t, 0, 0);
    const size_t bytes = snug_dtype_bytes(t->dtype);
    for (int64_t i = 0; i < sn_view_count(v); i++)
        memcpy((char *)to.data + (size_t)i * bytes, (const int64_t *)v->data + i, bytes);
    return to;
}

/* A run in the dtype gives what one in i64 gives, of whole numbers that the dtype has. */
static void compare_stored(sn_subject *s, const sn_how *how, const sn_opdesc *d) {
    snug_view in[SN_MAX_IN], wide[SN_MAX_IN], out[SN_MAX_OUT], got[SN_MAX_OUT];
    sn_opdesc as_i64;
    /* constants, and the extremes of nothing */
    const bool saturates =
        s->op == SN_OP_fill || s->op == SN_OP_pad || s->op == SN_OP_max || s->op == SN_OP_min;
    if (!retype(s, SNUG_I64, &as_i64))
        return;
    sn_outputs_make(s, how, &as_i64, out);
    sn_outputs_make(s, how, d, got);
    for (int i = 0; i < d->n_in; i++) {
        in[i] = converted(&s->in[i], &d->in[i]);
        wide[i] = converted(&in[i], &as_i64.in[i]);
    }
    if (sn_call_on(s, how, &as_i64, wide, out) && sn_call_on(s, how, d, in, got))
        for (int k = 0; k < d->n_out; k++) {
            snug_view wanted = (saturates ? converted : wrapped)(&out[k], &d->out[k]);
            sn_expect_view_bits(s, snug_dtype_name(d->out[k].dtype), k, &got[k], &wanted);
            sn_view_free(&wanted);
        }
    sn_views_free(in, d->n_in);
    sn_views_free(wide, d->n_in);
    sn_views_free(out, d->n_out);
    sn_views_free(got, d->n_out);
}

/* Indices stay within their extents; others may wrap when they are multiplied. */
static void make_whole(const snug_view *v) {
    const bool real = sn_dtype_is_float(v->type.dtype);
    for (int64_t i = 0; i < sn_view_count(v); i++) {
        const double x = sn_view_get(v, i), small = isfinite(x) ? fmod(trunc(x), 100) : 0;
        sn_view_put(v, i, real ? small * (i % 3 == 0 ? 641 : 1) : fabs(small));
    }
}

static void check_stored(sn_subject *s) {
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    if (s->real != SNUG_F32 || sn_subject_elements(s) >= 4096)
        return;
    for (int i = 0; i < s->desc.n_in; i++)
        make_whole(&s->in[i]);
    for (int dtype = 0; dtype < SNUG_N_DTYPES; dtype++) {
        sn_opdesc d;
        sn_variant v;
        if (!((SN_STORED_DTYPES & ~SN_HALF_DTYPES) >> dtype & 1) ||
            !retype(s, (snug_dtype)dtype, &d) ||
            cpu.device.describe(&cpu.device, &d, &v, NULL) != SNUG_OK)
            continue;
        compare_stored(s, &(sn_how){.n_threads = 1, .poison = 0xa5}, &d);
        for (int i = 0; sn_isa_at(i); i++)
            compare_stored(s, &(sn_how){.isa = sn_isa_at(i), .n_threads = 2, .poison = 0xa5}, &d);
    }
}

/* What a family says it takes its kernels do; a family that says so is seen doing it. */
static void test_stored_dtypes_are_as_the_families_say(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "stored");
    sn_sweep_run(&w, check_stored);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 &&
            sn_cpu_family_of((sn_op)op)->takes_stored & ~(uint32_t)SN_HALF_DTYPES)
            fail_msg("no case of %s ran in a stored dtype", sn_ops[op].name);
    sn_sweep_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_kernels_agree_with_references),
        cmocka_unit_test(test_in_place_gives_the_same_bits),
        cmocka_unit_test(test_accumulating_adds_to_what_is_there),
#ifndef SN_REDZONES /* the same calls, compared as the plain build does */
        cmocka_unit_test(test_inputs_are_not_written),
        cmocka_unit_test(test_bytes_in_outputs_and_workspace_do_not_matter),
#endif
        cmocka_unit_test(test_bits_do_not_depend_on_threads),
        cmocka_unit_test(test_halves_are_f32_rounded),
        cmocka_unit_test(test_stored_dtypes_are_as_the_families_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
