/* test_cuda_ops.c: the GPU families of every row that names one, from the cases column alone:
 * CUDA = CPU's reference, in place = out of place, accumulate = add, slices give the whole's bits,
 * and bytes that lie in outputs and workspace do not matter. Kernels run in the emulator, or with
 * SNUG_TEST_PLUGIN=path on the GPU of that plug-in. */
#include "base/rng.h"
#include "op/impl.h"
#include "support/call.h"
#include "support/cuda_door.h"
#include "support/cuda_driver.h"
#include "support/kernel_call.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sn_gpu_door *door;

/* Whether the GPU runs it. */
static bool has(const sn_opdesc *d) {
    sn_variant v = {0};
    return door->describe(d, &v, NULL) == SNUG_OK;
}

/* Rows that move elements, compare them or round once: their bits are the processor's. Integers and
 * truth values are exact in every row. */
#define EXACT_MAP(X)                                                                               \
    X(identity)                                                                                    \
    X(stop_gradient)                                                                               \
    X(reshape)                                                                                     \
    X(fill)                                                                                        \
    X(broadcast_to)                                                                                \
    X(transpose)                                                                                   \
    X(concat)                                                                                      \
    X(slice)                                                                                       \
    X(slice_grad)                                                                                  \
    X(pad)                                                                                         \
    X(gather)                                                                                      \
    X(gather_nd)                                                                                   \
    X(scatter_add)                                                                                 \
    X(scatter_nd)                                                                                  \
    X(one_hot)                                                                                     \
    X(band)                                                                                        \
    X(sort)                                                                                        \
    X(select)                                                                                      \
    X(cast)                                                                                        \
    X(assign)                                                                                      \
    X(assign_add)                                                                                  \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(maximum)                                                                                     \
    X(minimum)                                                                                     \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(neg)                                                                                         \
    X(abs)                                                                                         \
    X(sign)                                                                                        \
    X(square)                                                                                      \
    X(sqrt)                                                                                        \
    X(relu)                                                                                        \
    X(relu_grad)                                                                                   \
    X(clip)                                                                                        \
    X(floor)                                                                                       \
    X(ceil)                                                                                        \
    X(round)                                                                                       \
    X(trunc)                                                                                       \
    X(maxpool)                                                                                     \
    X(maxpool_pick)                                                                                \
    X(dropout)

static bool is_half(snug_dtype dtype) {
    return dtype == SNUG_F16 || dtype == SNUG_BF16;
}

/* How far from the reference: 1e-5 of a value in f32, 1e-12 in f64, and what the CPU's own fast
 * kernels are allowed for cancellation and the order of sums; halves are computed as f32 and may
 * then be rounded to a neighbour. */
static sn_tolerance tolerance_of(const sn_subject *s) {
#define EXACT(name) [SN_OP_##name] = true,
    static const bool exact[SN_N_OPS] = {EXACT_MAP(EXACT)};
    sn_tolerance t = sn_case_tolerances[s->op];
    if (exact[s->op] || (s->op == SN_OP_random && s->real == SNUG_F32))
        return (sn_tolerance){0};
    t.ulps = s->real == SNUG_F64 ? 4500 : 84;
    t.inputs += 4;
    t.largest += 2;
    return t;
}

static bool is_recurrent(sn_op op) {
    return op >= SN_OP_lstm && op <= SN_OP_simple_rnn_grad;
}

/* Whether a library's result may be rounded before it is finished: by a bias, by an activation, or
 * as f32. */
static bool is_finished(const sn_subject *s) {
    const bool posed = sn_emulated_world()->has_libraries;
    const int64_t act = s->op == SN_OP_matmul ? s->desc.attrs.matmul.act : SN_ACT_none;
    return (posed || strcmp(door->name, "emulated") != 0) &&
           ((s->op == SN_OP_conv2d && s->desc.n_in > 2) || s->op == SN_OP_conv2d_dw ||
            s->op == SN_OP_conv2d_pool_dw || (act != SN_ACT_none && act != SN_ACT_relu));
}

/* Whether weights of attention are operands of tensor cores, which take halves. */
static bool is_flash(const sn_subject *s) {
    return strcmp(door->name, "emulated") != 0 &&
           (s->op == SN_OP_attention || s->op == SN_OP_attention_grad);
}

/* Whether halves are stored on the way: what a convolution gives before it is pooled, and the
 * gradient before it goes back through one, where windows overlap: elsewhere it is a copy. The
 * processor stores the states of recurrent rows. */
static bool is_stored(const sn_subject *s) {
    const int64_t *dx = s->desc.attrs.conv_pool_dx.pool, *dw = s->desc.attrs.conv_pool_dw.pool;
    return s->op == SN_OP_conv2d_pool || is_finished(s) || is_flash(s) ||
           (is_recurrent(s->op) && is_half(s->real)) ||
           (s->op == SN_OP_conv2d_pool_dx && (dx[0] > dx[2] || dx[1] > dx[3])) ||
           (s->op == SN_OP_conv2d_pool_dw && (dw[0] > dw[2] || dw[1] > dw[3]));
}

/* What is stored is rounded once more, states in every step, and the winners of pooling may be
 * others where they are near. */
static void expect_near(sn_subject *s, const char *what, snug_dtype dtype, const snug_view *got,
                        const snug_view *wanted, sn_tolerance t) {
    const bool stored = is_half(dtype) && is_stored(s);
    const double digits = dtype == SNUG_F16 ? 0x1p13 : 0x1p16;
    t.largest += stored ? digits * (is_recurrent(s->op) ? 4 : 1) : 0;
    for (int k = 0; k < s->desc.n_out; k++)
        if (!stored || got[k].type.dtype != SNUG_OPAQUE)
            sn_expect_view_near(s, what, k, &got[k], &wanted[k], t);
}

typedef struct {
    int poison;
    bool accumulate;
    int axis;
    int64_t first, full; /* full 0: the whole */
} manner;

/* One call; false after a complaint. */
static bool run_cuda(sn_subject *s, const manner *m, const sn_opdesc *d, const snug_view *in,
                     const snug_view *out) {
    snug_error err;
    sn_call call = {.op = d->op,
                    .attrs = &d->attrs,
                    .param = s->param,
                    .n_in = d->n_in,
                    .n_out = d->n_out,
                    .in = in,
                    .out = out,
                    .accumulate = m->accumulate,
                    .n_threads = 1,
                    .axis = m->axis,
                    .first = m->first,
                    .full = m->full};
    if (m->full == 0)
        call.full = d->out[0].rank > 0 ? d->out[0].dims[0] : 1;
    const snug_status status = door->run(d, &call, m->poison, &err);
    if (status != SNUG_OK)
        sn_complain(s, "%s: %s", snug_status_name(status), err.text);
    for (int k = 0; k < d->n_out; k++)
        if (!sn_guards_ok(out[k].data, out[k].bytes))
            sn_complain(s, "wrote outside output %d", k);
    return status == SNUG_OK;
}

static void make_outputs(sn_subject *s, const sn_opdesc *d, int poison, snug_view *out) {
    sn_outputs_make(s, &(sn_how){.n_threads = 1, .poison = poison}, d, out);
}

/* --- CUDA = CPU ------------------------------------------------------------------------------ */

static void check_reference(sn_subject *s) {
    if (!has(&s->desc))
        return;
    snug_view wanted[SN_MAX_OUT], got[SN_MAX_OUT], before[SN_MAX_IN];
    const sn_how reference = {.n_threads = 1, .poison = 0xa5};
    sn_outputs_make(s, &reference, &s->desc, wanted);
    make_outputs(s, &s->desc, 0xff, got);
    for (int i = 0; i < s->desc.n_in; i++)
        before[i] = sn_view_copy(&s->in[i]);
    if (sn_call_ok(s, &reference, wanted) &&
        run_cuda(s, &(manner){.poison = 0xff}, &s->desc, s->in, got))
        expect_near(s, "CUDA", s->real, got, wanted, tolerance_of(s));
    for (int i = 0; i < s->desc.n_in; i++)
        if (memcmp(before[i].data, s->in[i].data, before[i].bytes) != 0)
            sn_complain(s, "wrote to input %d", i);
    sn_views_free(before, s->desc.n_in);
    sn_views_free(got, s->desc.n_out);
    sn_views_free(wanted, s->desc.n_out);
}

/* Whether the cuda column says more than `host`. */
static bool names_family(sn_op op) {
    static const char *const names[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    [SN_OP_##name] = #cuda,
#include "op/ops.def"
#undef SNUG_OP
    };
    return strcmp(names[op], "host") != 0;
}

static void test_kernels_agree_with_the_processor(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "CUDA = CPU");
    sn_sweep_run(&w, check_reference);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && names_family((sn_op)op))
            fail_msg("no case of %s ran", sn_ops[op].name);
    sn_sweep_end(&w);
}

/* --- in place -------------------------------------------------------------------------------- */

/* Output k of over[k] in the bytes of that input; -1: in its own. */
static void compare_placed(sn_subject *s, const int over[SN_MAX_OUT]) {
    snug_view wanted[SN_MAX_OUT], own[SN_MAX_OUT], out[SN_MAX_OUT], in[SN_MAX_IN];
    make_outputs(s, &s->desc, 0xa5, wanted);
    make_outputs(s, &s->desc, 0xa5, own);
    for (int i = 0; i < s->desc.n_in; i++)
        in[i] = sn_view_copy(&s->in[i]);
    for (int k = 0; k < s->desc.n_out; k++) {
        out[k] = own[k];
        if (over[k] >= 0)
            out[k].data = in[over[k]].data;
    }
    if (run_cuda(s, &(manner){.poison = 0xa5}, &s->desc, s->in, wanted) &&
        run_cuda(s, &(manner){.poison = 0}, &s->desc, in, out))
        sn_expect_bits(s, "in place", out, wanted);
    sn_views_free(in, s->desc.n_in);
    sn_views_free(own, s->desc.n_out);
    sn_views_free(wanted, s->desc.n_out);
}

static void check_in_place(sn_subject *s) {
    const sn_inplace allowed = sn_ops[s->op].inplace;
    const sn_opdesc *d = &s->desc;
    if (!has(&s->desc))
        return;
    for (int i = 0; i < 2 && i < d->n_in; i++) {
        const bool may = (allowed >> i & 1) || (allowed == SN_INPLACE_ALIAS && i == 0);
        if (may && d->in[i].dtype == d->out[0].dtype &&
            sn_type_count(&d->in[i]) == sn_type_count(&d->out[0]))
            compare_placed(s, (const int[]){i, -1, -1, -1, -1});
    }
    if (allowed == SN_INPLACE_STATE_THREE)
        compare_placed(s, (const int[]){0, 1, 2, -1, -1});
    if (allowed == SN_INPLACE_STATE || allowed == SN_INPLACE_STATE_FOURTH)
        compare_placed(s, (const int[]){0, 1, 2, 3, -1});
}

static void test_in_place_gives_the_same_bits(void **state) {
    (void)state;
    sn_sweep_rows("in place", check_in_place);
}

/* --- accumulate ------------------------------------------------------------------------------ */

/* Sums over parts are not of halves: nobody adds into one. */
static void check_accumulate(sn_subject *s) {
    const bool fused =
        s->op == SN_OP_matmul && (s->desc.n_in == 3 || s->desc.attrs.matmul.act != SN_ACT_none);
    if (!has(&s->desc) || !sn_ops[s->op].accumulates || fused || is_half(s->desc.out[0].dtype))
        return;
    snug_view once[SN_MAX_OUT], twice[SN_MAX_OUT];
    make_outputs(s, &s->desc, 0xff, once);
    make_outputs(s, &s->desc, 0, twice);
    bool ok = run_cuda(s, &(manner){.poison = 0xff}, &s->desc, s->in, once);
    for (int k = 0; k < s->desc.n_out; k++)
        sn_view_random(&twice[k], 5, 0, 9);
    for (int k = 0; k < s->desc.n_out; k++)
        for (int64_t i = 0; i < sn_view_count(&once[k]); i++)
            sn_view_put(&once[k], i, sn_view_get(&once[k], i) + sn_view_get(&twice[k], i));
    ok = ok && run_cuda(s, &(manner){.poison = 0xff, .accumulate = true}, &s->desc, s->in, twice);
    if (ok)
        sn_expect_near(s, "accumulated", twice, once, (sn_tolerance){.inputs = 32, .largest = 32});
    sn_views_free(once, s->desc.n_out);
    sn_views_free(twice, s->desc.n_out);
}

static void test_accumulating_adds_to_what_is_there(void **state) {
    (void)state;
    sn_sweep_rows("accumulate", check_accumulate);
}

/* --- slices ---------------------------------------------------------------------------------- */

/* Rows [1, n) of axis 0, whose numbers depend on where they lie in the full value. */
static void check_slices(sn_subject *s) {
    const sn_opdesc *d = &s->desc;
    if ((s->op != SN_OP_random && s->op != SN_OP_dropout) || !has(d))
        return;
    for (int axis = 0; axis < d->out[0].rank; axis++) {
        const int64_t full = d->out[0].dims[axis], n = full - 1;
        if (full < 2)
            continue;
        const int64_t inner = sn_type_span(&d->out[0], axis + 1, d->out[0].rank);
        const int64_t outer = sn_type_span(&d->out[0], 0, axis);
        const size_t size = snug_dtype_bytes(d->out[0].dtype), row = (size_t)inner * size;
        sn_opdesc piece = *d;
        snug_view whole, part, in = {0};
        piece.out[0].dims[axis] = n;
        if (s->op == SN_OP_random)
            piece.attrs.random.dims.v[axis] = n;
        make_outputs(s, d, 0, &whole);
        make_outputs(s, &piece, 0xff, &part);
        if (d->n_in > 0) {
            piece.in[0].dims[axis] = n;
            in = sn_view_make(&piece.in[0], 0, 0);
        }
        for (int64_t o = 0; o < outer && d->n_in > 0; o++)
            memcpy((char *)in.data + (size_t)(o * n) * row,
                   (char *)s->in[0].data + (size_t)(o * full + 1) * row, (size_t)n * row);
        bool ok = run_cuda(s, &(manner){0}, d, s->in, &whole) &&
                  run_cuda(s, &(manner){.axis = axis, .first = 1, .full = full}, &piece,
                           d->n_in > 0 ? &in : s->in, &part);
        for (int64_t o = 0; ok && o < outer; o++)
            ok = memcmp((char *)part.data + (size_t)(o * n) * row,
                        (char *)whole.data + (size_t)(o * full + 1) * row, (size_t)n * row) == 0;
        sn_checked(s);
        if (!ok)
            sn_complain(s, "a slice of axis %d is not the whole's", axis);
        sn_view_free(&in);
        sn_view_free(&whole);
        sn_view_free(&part);
    }
}

static void test_slices_draw_what_the_whole_draws(void **state) {
    (void)state;
    sn_sweep_rows("slices", check_slices);
}

/* --- refusals -------------------------------------------------------------------------------- */

static void check_refusal(sn_subject *s) {
    snug_error err;
    snug_view out[SN_MAX_OUT];
    const int index = s->op == SN_OP_gather || s->op == SN_OP_gather_nd ? 1
                      : s->op == SN_OP_sparse_xent                      ? 1
                                                                        : 0;
    if (sn_ops[s->op].effect != SN_MAYFAIL || !has(&s->desc) ||
        sn_type_count(&s->desc.in[index]) == 0 || sn_type_count(&s->desc.out[0]) == 0 ||
        (s->op == SN_OP_sparse_xent && s->desc.attrs.labels.skip))
        return;
    const bool real = sn_dtype_is_float(s->desc.in[index].dtype);
    const double before = sn_view_get(&s->in[index], 0);
    sn_view_put(&s->in[index], 0, real ? (double)INFINITY : 1e6);
    make_outputs(s, &s->desc, 0, out);
    sn_call call = {.op = s->op,
                    .attrs = &s->desc.attrs,
                    .param = s->param,
                    .n_in = s->desc.n_in,
                    .n_out = s->desc.n_out,
                    .in = s->in,
                    .out = out,
                    .full = s->desc.out[0].dims[0]};
    const snug_status status = door->run(&s->desc, &call, 0, &err);
    sn_checked(s);
    if (status != (real ? SNUG_E_NUMERIC : SNUG_E_DATA))
        sn_complain(s, "values out of range gave %s", snug_status_name(status));
    sn_view_put(&s->in[index], 0, before);
    sn_views_free(out, s->desc.n_out);
}

static void test_values_out_of_range_are_refused(void **state) {
    (void)state;
    sn_sweep_rows("refusals", check_refusal);
}

/* --- other types ----------------------------------------------------------------------------- */

/* The case with `dtype` in place of f32; false: its row has no such. */
static bool retype(const sn_subject *s, snug_dtype dtype, sn_opdesc *d) {
    bool any = false;
    *d = s->desc;
    for (int i = 0; i < d->n_in; i++) {
        any = any || d->in[i].dtype == SNUG_F32;
        d->in[i].dtype = d->in[i].dtype == SNUG_F32 ? dtype : d->in[i].dtype;
    }
    if (s->op == SN_OP_fill)
        d->attrs.fill.dtype = dtype;
    else if (s->op == SN_OP_one_hot)
        d->attrs.one_hot.dtype = dtype;
    else if (!any)
        return false;
    return sn_op_infer(d, NULL) == SNUG_OK;
}

static void fill_input(const snug_view *from, const snug_view *to) {
    for (int64_t i = 0; i < sn_view_count(to); i++) {
        const double v = 3 * sn_view_get(from, i);
        sn_view_put(to, i, to->type.dtype == SNUG_BOOL ? v > 0 : fabs(trunc(v)));
    }
}

/* What the processor computes the GPU computes to the same numbers, or says before that it has no
 * kernel for it, so that the processor does. */
static void compare_retyped(sn_subject *s, const sn_opdesc *d) {
    const sn_how reference = {.n_threads = 1, .poison = 0xa5};
    const snug_dtype dtype = d->n_in > 0 ? d->in[0].dtype : d->out[0].dtype;
    snug_view in[SN_MAX_IN], wanted[SN_MAX_OUT], got[SN_MAX_OUT];
    for (int i = 0; i < d->n_in; i++) {
        const bool same = d->in[i].dtype == s->desc.in[i].dtype;
        in[i] = same ? sn_view_copy(&s->in[i]) : sn_view_make(&d->in[i], 0, 0);
        if (!same)
            fill_input(&s->in[i], &in[i]);
    }
    sn_outputs_make(s, &reference, d, wanted);
    make_outputs(s, d, 0xff, got);
    const bool here = sn_call_try(s, &reference, d, in, wanted, NULL) == SNUG_OK;
    if (here && run_cuda(s, &(manner){.poison = 0xff}, d, in, got))
        for (int k = 0; k < d->n_out; k++)
            if (got[k].type.dtype != SNUG_OPAQUE &&
                memcmp(got[k].data, wanted[k].data, got[k].bytes) != 0)
                sn_complain(s, "output %d of %s is another than the processor's", k,
                            snug_dtype_name(dtype));
    sn_views_free(in, d->n_in);
    sn_views_free(wanted, d->n_out);
    sn_views_free(got, d->n_out);
}

static void check_types(sn_subject *s) {
    static const snug_dtype types[] = {SNUG_I8,   SNUG_U8,  SNUG_I32, SNUG_I64,
                                       SNUG_BOOL, SNUG_I16, SNUG_U32};
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, true);
    for (size_t i = 0; i < sizeof types / sizeof types[0] && s->real == SNUG_F32; i++) {
        sn_variant v = {0};
        sn_opdesc d;
        if (retype(s, types[i], &d) && sn_subject_elements(s) < 4096 && has(&d) &&
            cpu.device.describe(&cpu.device, &d, &v, NULL) == SNUG_OK)
            compare_retyped(s, &d);
    }
}

static void test_other_types_give_the_processors_numbers(void **state) {
    (void)state;
    sn_sweep_rows("other types", check_types);
}

/* --- halves ---------------------------------------------------------------------------------- */

/* Operands in order: inputs, then outputs. */
static snug_type *operand(sn_opdesc *d, int i) {
    return i < d->n_in ? &d->in[i] : &d->out[i - d->n_in];
}

/* Where another type than the first input's was taken, by row and operand. */
static int mixtures[SN_N_OPS][SN_MAX_IN + SN_MAX_OUT];

/* The numbers of `from` in the types of d's inputs; all of them are halves of `dtype`. */
static void make_halves(const sn_subject *s, const sn_opdesc *d, snug_dtype dtype, snug_view *in) {
    for (int i = 0; i < d->n_in; i++) {
        if (!sn_dtype_is_float(s->desc.in[i].dtype)) {
            in[i] = sn_view_copy(&s->in[i]);
            continue;
        }
        snug_type t = d->in[i];
        t.dtype = dtype;
        snug_view half = sn_view_make(&t, 0, 0);
        in[i] = sn_view_make(&d->in[i], 0, 0);
        for (int64_t k = 0; k < sn_view_count(&half); k++) {
            sn_view_put(&half, k, sn_view_get(&s->in[i], k));
            sn_view_put(&in[i], k, sn_view_get(&half, k));
        }
        sn_view_free(&half);
    }
}

/* The processor's outputs of f32, in the types of d's. */
static bool make_wanted(sn_subject *s, const sn_opdesc *d, snug_dtype dtype, snug_view *wanted) {
    const sn_how reference = {.n_threads = 1, .poison = 0xa5};
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    make_halves(s, &s->desc, dtype, in);
    sn_outputs_make(s, &reference, &s->desc, out);
    make_outputs(s, d, 0, wanted);
    const bool ok = sn_call_try(s, &reference, &s->desc, in, out, NULL) == SNUG_OK;
    for (int k = 0; k < d->n_out && ok; k++)
        for (int64_t i = 0; i < sn_view_count(&wanted[k]); i++)
            sn_view_put(&wanted[k], i, sn_view_get(&out[k], i));
    sn_views_free(in, d->n_in);
    sn_views_free(out, d->n_out);
    return ok;
}

static void compare_halves(sn_subject *s, const sn_opdesc *d, snug_dtype dtype) {
    snug_view in[SN_MAX_IN], wanted[SN_MAX_OUT], got[SN_MAX_OUT];
    sn_tolerance t = tolerance_of(s);
    t.ulps += 2; /* no row has the bits of f32 here */
    make_halves(s, d, dtype, in);
    make_outputs(s, d, 0xff, got);
    if (make_wanted(s, d, dtype, wanted) && run_cuda(s, &(manner){.poison = 0xff}, d, in, got))
        expect_near(s, snug_dtype_name(dtype), dtype, got, wanted, t);
    sn_views_free(in, d->n_in);
    sn_views_free(wanted, d->n_out);
    sn_views_free(got, d->n_out);
}

/* One operand of f32 among halves, or one of halves among f32. */
static void check_mixture(sn_subject *s, const sn_opdesc *halves, int i, bool one_is_half) {
    const snug_dtype dtype = halves->in[0].dtype;
    sn_opdesc d = one_is_half ? s->desc : *halves;
    sn_opdesc h = *halves;
    if (operand((sn_opdesc *)&s->desc, i)->dtype != SNUG_F32)
        return;
    operand(&d, i)->dtype = one_is_half ? operand(&h, i)->dtype : SNUG_F32;
    if (!has(&d))
        return;
    mixtures[s->op][i]++;
    compare_halves(s, &d, dtype);
}

static void check_halves(sn_subject *s) {
    static const snug_dtype types[] = {SNUG_F16, SNUG_BF16};
    if (s->real != SNUG_F32 || sn_subject_elements(s) > 20000)
        return;
    for (int k = 0; k < 2; k++) {
        sn_opdesc d;
        if (!retype(s, types[k], &d) || (s->op == SN_OP_cast && is_half(d.out[0].dtype)))
            continue;
        if (has(&d))
            compare_halves(s, &d, types[k]);
        for (int i = 0; i < d.n_in + d.n_out && d.n_in > 0 && d.in[0].dtype == types[k]; i++) {
            check_mixture(s, &d, i, false);
            check_mixture(s, &d, i, true);
        }
    }
}

/* What a network's f32 masters and statistics need beside halves. */
static void test_halves_are_computed_as_f32(void **state) {
    (void)state;
    static const struct {
        sn_op op;
        int operand;
    } wanted[] = {{SN_OP_matmul, 1},         {SN_OP_matmul, 2},
                  {SN_OP_adam, 3},           {SN_OP_sgd, 1},
                  {SN_OP_normalise, 1},      {SN_OP_normalise, 2},
                  {SN_OP_normalise, 3},      {SN_OP_layernorm, 1},
                  {SN_OP_layernorm, 4},      {SN_OP_layernorm_dx, 3},
                  {SN_OP_layernorm_sums, 4}, {SN_OP_normalise_sums, 2},
                  {SN_OP_channel_affine, 2}, {SN_OP_conv2d, 1},
                  {SN_OP_conv2d, 2},         {SN_OP_conv2d_dx, 1},
                  {SN_OP_conv2d_dw, 2},      {SN_OP_conv2d_pool, 1},
                  {SN_OP_conv2d_pool_dw, 3}};
    memset(mixtures, 0, sizeof mixtures);
    sn_sweep_rows("halves", check_halves);
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
        if (mixtures[wanted[k].op][wanted[k].operand] == 0)
            fail_msg("%s takes no operand %d of f32 beside halves", sn_ops[wanted[k].op].name,
                     wanted[k].operand);
}

/* What own kernels do around the libraries: these are posed for, or a card has them. */
static int library_cases[SN_N_OPS][SNUG_N_DTYPES];

static void check_around_libraries(sn_subject *s) {
    sn_variant v = {0};
    const bool product = s->op == SN_OP_matmul ||
                         (s->op >= SN_OP_conv2d && s->op <= SN_OP_conv2d_dw) ||
                         (s->op >= SN_OP_conv2d_pool && s->op <= SN_OP_conv2d_pool_dw);
    if (!product || door->describe(&s->desc, &v, NULL) != SNUG_OK || !sn_impl_is_library(v.impl))
        return;
    library_cases[s->op][s->real]++;
    check_reference(s);
    check_halves(s);
}

static void test_libraries_are_given_what_they_want(void **state) {
    (void)state;
    static const sn_op ops[] = {SN_OP_conv2d, SN_OP_conv2d_dx, SN_OP_conv2d_dw, SN_OP_conv2d_pool};
    memset(library_cases, 0, sizeof library_cases);
    sn_emulated_world()->has_libraries = true;
    sn_sweep_rows("libraries", check_around_libraries);
    sn_emulated_world()->has_libraries = false;
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
        if (library_cases[ops[k]][SNUG_F32] == 0 || library_cases[ops[k]][SNUG_BF16] == 0)
            fail_msg("no library ran a case of %s", sn_ops[ops[k]].name);
}

/* --- casts ----------------------------------------------------------------------------------- */

static const char *const cast_types[] = {"f32", "f64", "f16", "bf16", "i8",  "u8",
                                         "i16", "u16", "i32", "u32",  "i64", "bool"};
/* Ties, ends of ranges, and what is beyond them. */
static const double cast_values[] = {0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -2.5,
                                     1.00048828125,
                                     1.00146484375,
                                     1.0009,
                                     0x1p-14,
                                     0x1.ffcp-15,
                                     0x1p-24,
                                     0x1p-25,
                                     0x1.8p-24,
                                     0x1.0001p-25,
                                     0x1p-26,
                                     65504,
                                     65519.99,
                                     65520,
                                     -65520,
                                     1e-30,
                                     0x1p-149,
                                     127.5,
                                     128,
                                     -128.9,
                                     255,
                                     256.5,
                                     32767.9,
                                     32768,
                                     -32769,
                                     65535,
                                     65536.5,
                                     2147483647,
                                     2147483648.0,
                                     4294967295.0,
                                     4294967296.0,
                                     0x1p53,
                                     9.3e18,
                                     -9.3e18,
                                     1e300,
                                     3.3895313892515355e38,
                                     3.396e38,
                                     3.4028235e38,
                                     1e39,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     -7};
enum { N_CAST = sizeof cast_values / sizeof cast_values[0] };

static bool is_nan_at(snug_dtype dtype, const void *data, int i) {
    const uint16_t *narrow = data;
    if (dtype == SNUG_F64)
        return isnan(((const double *)data)[i]);
    if (dtype == SNUG_F32)
        return isnan(((const float *)data)[i]);
    return (dtype == SNUG_F16 && (narrow[i] & 0x7fff) > 0x7c00) ||
           (dtype == SNUG_BF16 && (narrow[i] & 0x7fff) > 0x7f80);
}

/* The CPU's cast of data, in k->out[0]; k is to be closed. */
static void cast_here(sn_test_call *k, const char *from, const char *to, const void *data) {
    char attrs[24], type[24];
    snprintf(attrs, sizeof attrs, "dtype=%s", to);
    snprintf(type, sizeof type, "%s[%d]", from, (int)N_CAST);
    sn_kernel_open(k, &(sn_kernel_case){"cast", attrs, type, {0}, 0, 0}, 1);
    memcpy(k->in[0].data, data, k->in[0].bytes);
    sn_run(k);
}

static void expect_same_cast(const sn_test_call *k, const char *from, const char *to) {
    snug_error err;
    unsigned char got[N_CAST * 8];
    const size_t width = k->out[0].bytes / N_CAST;
    const snug_view out = {got, k->out[0].bytes, k->out[0].type};
    sn_call call = {.op = SN_OP_cast,
                    .attrs = &k->d.attrs,
                    .param = k->param,
                    .n_in = 1,
                    .n_out = 1,
                    .in = k->in,
                    .out = &out,
                    .n_threads = 1,
                    .full = N_CAST};
    expect_ok(door->run(&k->d, &call, 0xa5, &err), &err);
    for (int i = 0; i < N_CAST; i++) {
        const unsigned char *want = (const unsigned char *)k->out[0].data;
        if (memcmp(got + (size_t)i * width, want + (size_t)i * width, width) != 0 &&
            !(is_nan_at(out.type.dtype, got, i) && is_nan_at(out.type.dtype, want, i)))
            fail_msg("%s to %s: value %d of the list is another here", from, to, i);
    }
}

static void test_every_type_is_cast_to_every_other_as_on_the_processor(void **state) {
    (void)state;
    enum { N = sizeof cast_types / sizeof cast_types[0] };
    for (int i = 0; i < N; i++) {
        sn_test_call first;
        cast_here(&first, "f64", cast_types[i], cast_values);
        for (int j = 0; j < N; j++) {
            sn_test_call k;
            cast_here(&k, cast_types[i], cast_types[j], first.out[0].data);
            expect_same_cast(&k, cast_types[i], cast_types[j]);
            sn_kernel_close(&k);
        }
        sn_kernel_close(&first);
    }
}

int main(void) {
    const char *path = getenv("SNUG_TEST_PLUGIN");
    char why[512] = "";
    door = path && path[0] ? sn_plugin_door(path, why, sizeof why) : sn_emulated_door();
    if (!door) {
        print_message("no GPU: %s\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree_with_the_processor),
        cmocka_unit_test(test_libraries_are_given_what_they_want),
        cmocka_unit_test(test_in_place_gives_the_same_bits),
        cmocka_unit_test(test_accumulating_adds_to_what_is_there),
        cmocka_unit_test(test_slices_draw_what_the_whole_draws),
        cmocka_unit_test(test_values_out_of_range_are_refused),
        cmocka_unit_test(test_other_types_give_the_processors_numbers),
        cmocka_unit_test(test_halves_are_computed_as_f32),
        cmocka_unit_test(test_every_type_is_cast_to_every_other_as_on_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
