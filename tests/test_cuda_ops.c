/* test_cuda_ops.c: the GPU families of every row that names one, from the cases column alone:
 * CUDA = CPU's reference, in place = out of place, accumulate = add, slices give the whole's bits,
 * and bytes that lie in outputs and workspace do not matter. Kernels run in the emulator, or with
 * SNUG_TEST_PLUGIN=path on the GPU of that plug-in. */
#include "support/call.h"
#include "support/cuda_door.h"
#include "support/support.h"

#include <math.h>
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

/* How far from the reference: 1e-5 of a value in f32, 1e-12 in f64, and what the CPU's own fast
 * kernels are allowed for cancellation and the order of sums. */
static sn_tolerance tolerance_of(const sn_subject *s) {
#define EXACT(name) [SN_OP_##name] = true,
    static const bool exact[SN_N_OPS] = {EXACT_MAP(EXACT)};
    sn_tolerance t = sn_case_tolerances[s->op];
    if (exact[s->op] || (s->op == SN_OP_random && s->real == SNUG_F32))
        return (sn_tolerance){0};
    t.ulps = s->real == SNUG_F32 ? 84 : 4500;
    t.inputs += 4;
    t.largest += 2;
    return t;
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
        sn_expect_near(s, "CUDA", got, wanted, tolerance_of(s));
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
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, cpu, cuda, cases) \
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
            compare_placed(s, (const int[]){i, -1, -1, -1});
    }
    if (allowed == SN_INPLACE_STATE)
        compare_placed(s, (const int[]){0, 1, 2, 3});
    if (allowed == SN_INPLACE_STATE_LAST)
        compare_placed(s, (const int[]){0, 1, 2, 3});
}

static void test_in_place_gives_the_same_bits(void **state) {
    (void)state;
    sn_sweep_rows("in place", check_in_place);
}

/* --- accumulate ------------------------------------------------------------------------------ */

static void check_accumulate(sn_subject *s) {
    const bool fused =
        s->op == SN_OP_matmul && (s->desc.n_in == 3 || s->desc.attrs.matmul.act != SN_ACT_none);
    if (!has(&s->desc) || !sn_ops[s->op].accumulates || fused)
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
        cmocka_unit_test(test_in_place_gives_the_same_bits),
        cmocka_unit_test(test_accumulating_adds_to_what_is_there),
        cmocka_unit_test(test_slices_draw_what_the_whole_draws),
        cmocka_unit_test(test_values_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
