/* test_cuda_ops.c: the GPU families of every row that names one, from the cases column alone:
 * CUDA = CPU's reference, in place = out of place, accumulate = add, slices give the whole's bits,
 * and bytes that lie in outputs and workspace do not matter. Kernels run in the emulator. */
#include "support/call.h"
#include "support/cuda_door.h"
#include "support/support.h"

#include <string.h>

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

/* One call with guarded scratch; false after a complaint. */
static bool run_cuda(sn_subject *s, const manner *m, const sn_opdesc *d, const snug_view *in,
                     const snug_view *out) {
    snug_error err;
    sn_variant v = {0};
    if (sn_emulated_describe(d, &v, &err) != SNUG_OK) {
        sn_complain(s, "describe: %s", err.text);
        return false;
    }
    void *scratch = sn_guarded(v.workspace_bytes, m->poison);
    sn_call call = {.op = d->op,
                    .attrs = &d->attrs,
                    .param = s->param,
                    .n_in = d->n_in,
                    .n_out = d->n_out,
                    .in = in,
                    .out = out,
                    .workspace = scratch,
                    .workspace_bytes = v.workspace_bytes,
                    .accumulate = m->accumulate,
                    .n_threads = 1,
                    .axis = m->axis,
                    .first = m->first,
                    .full = m->full};
    if (m->full == 0)
        call.full = d->out[0].rank > 0 ? d->out[0].dims[0] : 1;
    const snug_status status = sn_emulated_run(d, &call, &err);
    if (status != SNUG_OK)
        sn_complain(s, "%s: %s", snug_status_name(status), err.text);
    if (!sn_guards_ok(scratch, v.workspace_bytes))
        sn_complain(s, "wrote outside its workspace of %zu", v.workspace_bytes);
    for (int k = 0; k < d->n_out; k++)
        if (!sn_guards_ok(out[k].data, out[k].bytes))
            sn_complain(s, "wrote outside output %d", k);
    sn_guarded_free(scratch, v.workspace_bytes);
    return status == SNUG_OK;
}

static void make_outputs(sn_subject *s, const sn_opdesc *d, int poison, snug_view *out) {
    sn_outputs_make(s, &(sn_how){.n_threads = 1, .poison = poison}, d, out);
}

/* --- CUDA = CPU ------------------------------------------------------------------------------ */

static void check_reference(sn_subject *s) {
    if (!sn_emulated_has(s->op))
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

static void test_kernels_agree_with_the_processor(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "CUDA = CPU");
    sn_sweep_run(&w, check_reference);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && sn_emulated_has((sn_op)op))
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
    if (!sn_emulated_has(s->op))
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
    if (!sn_emulated_has(s->op) || !sn_ops[s->op].accumulates || fused)
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree_with_the_processor),
        cmocka_unit_test(test_in_place_gives_the_same_bits),
        cmocka_unit_test(test_accumulating_adds_to_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
