/* test_ops_split.c: every row of the table, cut in two along each way its axis rule allows, gives
 * the whole: pieces of outputs put side by side have the whole's bits (own kernels; oneDNN comes
 * near), partial sums add up to it. Also where a row accumulates, and wherever the pieces of a
 * random value lie in the full one. */
#include "support/call.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

/* A way and the part of its label that one piece has. */
typedef struct {
    const sn_way *way;
    int64_t first, n;
} part;

/* Bytes of a label in an operand: `rows` runs of extent * step bytes. */
typedef struct {
    int64_t rows, step;
} layout;

static layout layout_of(const snug_view *whole, const sn_axis_ref *ref) {
    const snug_type *t = &whole->type;
    const int64_t rows = sn_type_span(t, 0, ref->axis) * ref->outer;
    const int64_t steps = rows * (t->dims[ref->axis] / (ref->outer * ref->inner));
    return (layout){rows, steps > 0 ? (int64_t)whole->bytes / steps : 0};
}

static snug_type piece_type(const snug_type *whole, const sn_axis_ref *ref, const part *p) {
    snug_type t = *whole;
    if (ref->axis >= 0)
        t.dims[ref->axis] = ref->outer * p->n * ref->inner;
    return t;
}

/* Copies the part between the whole operand and a piece of it. */
static void copy_part(const snug_view *whole, const snug_view *piece, const sn_axis_ref *ref,
                      const part *p, bool take) {
    const layout at = layout_of(whole, ref);
    const size_t bytes = (size_t)(p->n * at.step);
    for (int64_t r = 0; r < at.rows; r++) {
        char *w = (char *)whole->data + (r * p->way->extent + p->first) * at.step;
        char *q = (char *)piece->data + (size_t)r * bytes;
        memcpy(take ? q : w, take ? w : q, bytes);
    }
}

static snug_view take_piece(const snug_view *whole, const sn_axis_ref *ref, const part *p) {
    if (ref->axis < 0)
        return sn_view_copy(whole);
    const snug_type t = piece_type(&whole->type, ref, p);
    const layout at = layout_of(whole, ref);
    const snug_view piece = sn_view_make(&t, (size_t)(at.rows * p->n * at.step), 0);
    copy_part(whole, &piece, ref, p, true);
    return piece;
}

/* Kernels learn where output 0 lies; a label inside an axis has no such place, nor needs one. */
static sn_how placed(const sn_how *how, const part *p) {
    const sn_axis_ref *ref = &p->way->out[0];
    sn_how placed = *how;
    if (ref->axis >= 0 && ref->outer == 1 && ref->inner == 1) {
        placed.axis = ref->axis;
        placed.first = p->first;
        placed.full = p->way->extent;
    }
    return placed;
}

/* A plan cuts batches by what fits: the kernel must not change with their extent. */
static void check_choice(sn_subject *s, const sn_how *how, const part *p, const sn_opdesc *piece) {
    const sn_variant whole = sn_how_describe(s, how, &s->desc);
    const sn_variant part_of = sn_how_describe(s, how, piece);
    const bool batch = p->way->in[0].axis == 0 && p->way->out[0].axis == 0;
    if (batch && strcmp(whole.impl, part_of.impl) != 0)
        sn_complain(s, "%s runs the whole, %s a part of the batch", whole.impl, part_of.impl);
    for (int k = 0; batch && k < s->desc.n_out; k++)
        if (whole.opaque_bytes[k] * (size_t)p->n !=
            part_of.opaque_bytes[k] * (size_t)p->way->extent)
            sn_complain(s, "bytes of output %d are not linear in the batch", k);
}

/* Runs one part; `out` holds guarded pieces, made here unless it accumulates onto those it is
 * given. */
static bool run_part(sn_subject *s, const sn_how *how, const part *p, snug_view *out) {
    sn_opdesc d = s->desc;
    snug_view in[SN_MAX_IN];
    const sn_how at = placed(how, p);
    for (int i = 0; i < d.n_in; i++) {
        in[i] = take_piece(&s->in[i], &p->way->in[i], p);
        d.in[i] = in[i].type;
    }
    for (int k = 0; k < d.n_out; k++)
        d.out[k] = piece_type(&d.out[k], &p->way->out[k], p);
    check_choice(s, &at, p, &d);
    if (!how->accumulate)
        sn_outputs_make(s, &at, &d, out);
    const bool ok = sn_call_on(s, &at, &d, in, out);
    sn_views_free(in, d.n_in);
    return ok;
}

/* The pieces made into a whole: side by side, or their sum. */
static void join(sn_subject *s, const part *p, snug_view *piece, snug_view *joined) {
    for (int k = 0; k < s->desc.n_out; k++) {
        const sn_axis_ref *ref = &p->way->out[k];
        if (ref->axis >= 0)
            copy_part(&joined[k], &piece[k], ref, p, false);
        else if (!p->way->sum)
            sn_complain(s, "output %d does not carry a label that is no sum", k);
        for (int64_t i = 0; ref->axis < 0 && i < sn_view_count(&joined[k]); i++)
            sn_view_put(&joined[k], i, sn_view_get(&joined[k], i) + sn_view_get(&piece[k], i));
    }
}

static void expect_whole(sn_subject *s, const sn_how *how, const sn_way *way, const snug_view *got,
                         const snug_view *whole) {
    static const sn_tolerance foreign = {.ulps = 8, .largest = 64}, added = {.largest = 64};
    char text[64], what[128];
    snprintf(what, sizeof what, "%s, way of extent %lld with output 0 at axis %d",
             sn_how_text(how, text), (long long)way->extent, way->out[0].axis);
    for (int k = 0; k < s->desc.n_out; k++) {
        if (way->out[k].axis < 0)
            sn_expect_view_near(s, what, k, &got[k], &whole[k], added);
        else if (sn_is_foreign(s, how))
            sn_expect_view_near(s, what, k, &got[k], &whole[k], foreign);
        else
            sn_expect_view_bits(s, what, k, &got[k], &whole[k]);
    }
}

/* The second part adds into what the first one made. */
static void check_added(sn_subject *s, const sn_how *how, const part *parts,
                        const snug_view *whole) {
    snug_view out[SN_MAX_OUT];
    sn_how later = *how;
    later.accumulate = true;
    if (run_part(s, how, &parts[0], out) && run_part(s, &later, &parts[1], out))
        expect_whole(s, how, parts[0].way, out, whole);
    sn_views_free(out, s->desc.n_out);
}

static void check_way(sn_subject *s, const sn_how *how, const sn_way *way, const snug_view *whole) {
    const int64_t cut = (way->extent + 2) / 3;
    const part parts[2] = {{way, 0, cut}, {way, cut, way->extent - cut}};
    snug_view joined[SN_MAX_OUT], piece[SN_MAX_OUT];
    bool ok = true, sums = way->sum;
    for (int k = 0; k < s->desc.n_out; k++) {
        joined[k] = sn_view_make(&whole[k].type, whole[k].bytes, 0);
        sums = sums && way->out[k].axis < 0;
    }
    for (int i = 0; i < 2 && ok; i++) {
        ok = run_part(s, how, &parts[i], piece);
        join(s, &parts[i], piece, joined);
        sn_views_free(piece, s->desc.n_out);
    }
    if (ok)
        expect_whole(s, how, way, joined, whole);
    if (ok && sums && sn_ops[s->op].accumulates)
        check_added(s, how, parts, whole);
    sn_views_free(joined, s->desc.n_out);
}

static void check_split_by(sn_subject *s, const sn_how *how) {
    sn_ways ways;
    snug_view whole[SN_MAX_OUT];
    sn_op_ways(&s->desc, &ways);
    sn_outputs_make(s, how, &s->desc, whole);
    const bool ok = sn_call_ok(s, how, whole);
    for (int i = 0; i < ways.n && ok; i++)
        if (ways.way[i].extent > 1)
            check_way(s, how, &ways.way[i], whole);
    sn_views_free(whole, s->desc.n_out);
}

static void check_split(sn_subject *s) {
    check_split_by(s, &(sn_how){.n_threads = 1, .poison = 0xa5});
    check_split_by(s, &(sn_how){.isa = sn_cpu_isa(), .n_threads = 2, .poison = 0xa5});
}

static void test_two_parts_make_the_whole(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "split in two = whole");
    sn_sweep_run(&w, check_split);
    for (int op = 0; op < SN_N_OPS; op++)
        if (w.checked[op] == 0 && sn_ops[op].axes)
            fail_msg("no case of %s was split", sn_ops[op].name);
    sn_sweep_end(&w);
}

/* --- the rule itself ------------------------------------------------------------------------- */

static void check_ref(sn_subject *s, int way, const sn_way *w, const sn_axis_ref *ref,
                      const snug_type *t) {
    sn_checked(s);
    if (ref->axis < 0)
        return;
    if (ref->axis >= t->rank || ref->outer * w->extent * ref->inner != t->dims[ref->axis])
        sn_complain(s, "way %d: axis %d as %lld x %lld x %lld of an operand of rank %d", way,
                    ref->axis, (long long)ref->outer, (long long)w->extent, (long long)ref->inner,
                    t->rank);
}

static void check_rule(sn_subject *s) {
    sn_ways ways;
    sn_op_ways(&s->desc, &ways);
    for (int i = 0; i < ways.n; i++) {
        for (int k = 0; k < s->desc.n_in; k++)
            check_ref(s, i, &ways.way[i], &ways.way[i].in[k], &s->desc.in[k]);
        for (int k = 0; k < s->desc.n_out; k++)
            check_ref(s, i, &ways.way[i], &ways.way[i].out[k], &s->desc.out[k]);
    }
}

static void test_labels_are_parts_of_their_axes(void **state) {
    (void)state;
    sn_sweep_rows("axis rules", check_rule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_are_parts_of_their_axes),
        cmocka_unit_test(test_two_parts_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
