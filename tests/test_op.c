/* test_op.c: the operator table by its text cases (support/op_texts.h): shapes, names, attributes,
 * axes, flops, and what anything at all does to them. Every good case also checks its axis rule:
 * cutting a label in the inputs must give outputs cut in the same place. */
#include "support/op_texts.h"

#include "op/impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- shapes ---------------------------------------------------------------------------------- */
static void test_shape_rules_give_the_types_of_the_cases(void **state) {
    (void)state;
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        bool ok = c.desc.n_out == c.n_want;
        for (int i = 0; ok && i < c.n_want; i++)
            ok = sn_type_equal(&c.desc.out[i], &c.want[i]);
        char got[192];
        if (!ok)
            fail_msg("%s\n  gave %d outputs, the first %s", text, c.desc.n_out,
                     snug_type_print(&c.desc.out[0], got, sizeof got));
    }
}

/* Whether two rows have the same rules for what they are given. */
static bool same_rules(const sn_op_row *a, const sn_op_row *b) {
    return a->shape == b->shape && a->axes == b->axes && a->attrs == b->attrs &&
           a->min_in == b->min_in && a->max_in == b->max_in;
}

static void test_every_rule_has_a_case(void **state) {
    (void)state;
    bool seen[SN_N_OPS] = {false};
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        seen[c.desc.op] = true;
    }
    for (int op = 0; op < SN_N_OPS; op++) {
        bool found = false;
        for (int other = 0; other < SN_N_OPS && !found; other++)
            found = seen[other] && same_rules(&sn_ops[op], &sn_ops[other]);
        if (!found)
            fail_msg("no case for %s, nor for a row with its rules", sn_ops[op].name);
    }
}

static void test_wrong_operands_are_named(void **state) {
    (void)state;
    for (size_t i = 0; op_bad[i] != NULL; i++) {
        text_case c;
        snug_error err = {.code = SNUG_OK};
        snug_status status = read_case(op_bad[i], &c, &err);
        c.desc.n_out = 77;
        if (status == SNUG_OK)
            status = sn_op_infer(&c.desc, &err);
        if (status == SNUG_OK)
            fail_msg("%s\n  was accepted", op_bad[i]);
        assert_int_equal(status, err.code);
        assert_int_equal(c.desc.n_out, 77); /* outputs only on success */
        if (strstr(err.text, c.words) == NULL)
            fail_msg("%s\n  said: %s", op_bad[i], err.text);
    }
}

static void test_an_error_object_is_not_needed(void **state) {
    (void)state;
    for (size_t i = 0; op_bad[i] != NULL; i++) {
        text_case c;
        if (read_case(op_bad[i], &c, NULL) == SNUG_OK)
            assert_int_not_equal(sn_op_infer(&c.desc, NULL), SNUG_OK);
    }
}

static void test_attribute_words_out_of_range_are_refused(void **state) {
    (void)state;
    text_case c;
    snug_error err;
    infer_good("matmul f32[2,3] f32[3,4] -> f32[2,4]", &c);
    c.desc.attrs.matmul.act = SN_N_ACTS;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    infer_good("reshape dims=6 f32[2,3] -> f32[6]", &c);
    c.desc.attrs.shape.dims.n = 9;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    infer_good("cast dtype=u8 f32[2] -> u8[2]", &c);
    c.desc.attrs.dtype.dtype = -1;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    c.desc.op = SN_N_OPS;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
}

/* --- names ----------------------------------------------------------------------------------- */
static void test_find_names_near_operators(void **state) {
    (void)state;
    snug_error err;
    sn_op op = SN_OP_add;
    assert_int_equal(sn_op_find("conv2d_dw", &op, &err), SNUG_OK);
    assert_int_equal(op, SN_OP_conv2d_dw);
    assert_int_equal(sn_op_find("mat_mul", &op, &err), SNUG_E_INVALID);
    assert_int_equal(op, SN_OP_conv2d_dw);
    assert_non_null(strstr(err.text, "did you mean matmul"));
    assert_int_equal(sn_op_find("normalize", &op, &err), SNUG_E_INVALID);
    assert_non_null(strstr(err.text, "normalise"));
    assert_int_equal(sn_op_find("", &op, &err), SNUG_E_INVALID);
    char huge[5000];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(sn_op_find(huge, &op, &err), SNUG_E_INVALID);
    assert_non_null(strstr(err.text, "docs/ops.md"));
}

/* --- attributes ------------------------------------------------------------------------------ */
/* Attributes with every word its own legal value: step 0, 1, 2... gives different ones. */
static void scramble(sn_op op, int64_t step, sn_attrs *a) {
    const sn_attr_family *family = sn_ops[op].attrs;
    memset(a, 0, sizeof *a);
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        int64_t *word = &a->word[f->word];
        const int64_t n_list = (step + i) % (SNUG_MAX_RANK + 1);
        if (f->kind == SN_FIELD_LIST)
            *word++ = n_list;
        for (int k = 0; k < (f->kind == SN_FIELD_LIST ? n_list : f->n); k++) {
            const int64_t value = 1 + (step * 31 + i * 7 + k * 3) % 1000;
            const int64_t limit = f->kind == SN_FIELD_ACT ? SN_N_ACTS : SNUG_OPAQUE;
            const bool is_name = f->kind == SN_FIELD_ACT || f->kind == SN_FIELD_DTYPE;
            const bool is_param = f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY;
            word[k] = is_name ? value % limit : is_param || k % 2 == 0 ? value : -value;
        }
    }
}

static void test_attributes_survive_text(void **state) {
    (void)state;
    snug_error err;
    for (int op = 0; op < SN_N_OPS; op++) {
        for (int64_t step = 0; step < 20; step++) {
            sn_attrs a, b;
            char text[512], again[512];
            scramble((sn_op)op, step, &a);
            sn_attrs_print((sn_op)op, &a, text, sizeof text);
            if (sn_attrs_parse((sn_op)op, text, NULL, &b, &err) != SNUG_OK)
                fail_msg("%s '%s': %s", sn_ops[op].name, text, err.text);
            if (memcmp(&a, &b, sizeof a) != 0)
                fail_msg("%s '%s' came back different", sn_ops[op].name, text);
            assert_string_equal(text, sn_attrs_print((sn_op)op, &b, again, sizeof again));
        }
    }
}

static void test_default_prints_nothing(void **state) {
    (void)state;
    for (int op = 0; op < SN_N_OPS; op++) {
        sn_attrs a;
        char text[512];
        sn_attrs_default((sn_op)op, &a);
        sn_attrs_print((sn_op)op, &a, text, sizeof text);
        if (text[0] != '\0')
            fail_msg("default of %s prints '%s'", sn_ops[op].name, text);
    }
    sn_attrs a;
    char text[100];
    sn_attrs_default(SN_OP_conv2d, &a);
    assert_int_equal(a.conv.groups * a.conv.stride[1] * a.conv.dilation[0], 1);
    a.conv.pad[1] = 3;
    a.conv.act = SN_ACT_relu;
    assert_string_equal(sn_attrs_print(SN_OP_conv2d, &a, text, sizeof text),
                        "pad=0,3,0,0 act=relu");
    assert_string_equal(sn_attrs_print(SN_OP_conv2d, &a, text, 7), "pad=0,");
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes = (sn_list){2, {4, 5}};
    a.slice.start[0] = 0;
    a.slice.start[1] = 3;
    assert_string_equal(sn_attrs_print(SN_OP_slice, &a, text, sizeof text),
                        "sizes=4,5 start=p0,p3");
}

typedef struct {
    int n;
    double reals;
    int64_t keys;
} slot_book;

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    slot_book *book = ctx;
    if (book->n >= 15)
        return sn_fail(err, SNUG_E_INVALID, "no more slots");
    book->reals += is_key ? 0 : real;
    book->keys += is_key ? key : 0;
    *slot = 10 + book->n++;
    return SNUG_OK;
}

static void test_literals_become_slots(void **state) {
    (void)state;
    slot_book book = {0};
    const sn_param_maker maker = {&book, add_slot};
    sn_attrs a;
    snug_error err;
    assert_int_equal(sn_attrs_parse(SN_OP_dropout, " rate=0.25  key=-7 ", &maker, &a, &err),
                     SNUG_OK);
    assert_int_equal(a.dropout.rate, 10);
    assert_int_equal(a.dropout.key, 11);
    assert_true(book.reals == 0.25 && book.keys == -7);
    assert_int_equal(sn_attrs_parse(SN_OP_slice, "sizes=1,1 start=p4,100", &maker, &a, &err),
                     SNUG_OK);
    assert_int_equal(a.slice.start[0], 4);
    assert_int_equal(a.slice.start[1], 12);
    assert_int_equal(a.slice.start[2], -1);
    book.n = 15;
    assert_int_equal(sn_attrs_parse(SN_OP_dropout, "rate=1 key=2", &maker, &a, &err),
                     SNUG_E_INVALID);
    assert_int_equal(a.slice.start[1], 12);
}

static void test_params_are_counted_in_words(void **state) {
    (void)state;
    assert_int_equal(sn_ops[SN_OP_slice].attrs->n_params, 8);
    assert_int_equal(sn_ops[SN_OP_adam].attrs->n_params, 4);
    assert_int_equal(sn_ops[SN_OP_random].attrs->n_params, 3);
    assert_int_equal(sn_ops[SN_OP_conv2d].attrs->n_params, 0);
    for (int op = 0; op < SN_N_OPS; op++) {
        int n = 0;
        for (int i = 0; i < sn_ops[op].attrs->n_fields; i++) {
            const sn_field *f = &sn_ops[op].attrs->fields[i];
            n += f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY ? f->n : 0;
        }
        assert_int_equal(n, sn_ops[op].attrs->n_params);
    }
}

/* --- axes ------------------------------------------------------------------------------------ */
/* Ways as text, "2: 0 - -> 0(1,3); 3: 1 0 sum -": the extent, then per operand its axis ('-': not
 * carried) with (outer,inner) where they are not 1. */
static void print_ref(char *text, const sn_axis_ref *ref) {
    if (ref->axis < 0)
        strcat(text, " -");
    else if (ref->outer == 1 && ref->inner == 1)
        sprintf(text + strlen(text), " %d", ref->axis);
    else
        sprintf(text + strlen(text), " %d(%lld,%lld)", ref->axis, (long long)ref->outer,
                (long long)ref->inner);
}

static void print_ways(const sn_opdesc *d, char *text) {
    sn_ways ways;
    sn_op_ways(d, &ways);
    text[0] = '\0';
    for (int w = 0; w < ways.n; w++) {
        const sn_way *way = &ways.way[w];
        sprintf(text + strlen(text), "%s%lld:", w ? "; " : "", (long long)way->extent);
        for (int i = 0; i < d->n_in; i++)
            print_ref(text, &way->in[i]);
        strcat(text, way->sum ? " sum" : " ->");
        for (int i = 0; i < d->n_out; i++)
            print_ref(text, &way->out[i]);
    }
}

static const struct {
    const char *text, *ways;
} way_cases[] = {
    {"fill dims=2,3 value=p0", "2: -> 0; 3: -> 1"},
    {"relu f32[2,3]", "2: 0 -> 0; 3: 1 -> 1"},
    {"add f32[2,3] f32[3]", "2: 0 - -> 0; 3: 1 0 -> 1"},
    {"add f32[2,1] f32[1,3]", "2: 0 - -> 0; 3: - 1 -> 1"},
    {"broadcast_to dims=4,2,3 f32[2,1]", "4: - -> 0; 2: 0 -> 1; 3: - -> 2"},
    {"sum axes=0 f32[2,3]", "2: 0 sum -; 3: 1 -> 0"},
    {"sum axes=0 keepdims=1 f32[2,3]", "2: 0 sum -; 3: 1 -> 1"},
    {"max axes=0 f32[2,3]", "3: 1 -> 0"},
    {"argmax axis=1 dtype=i32 f32[2,3]", "2: 0 -> 0"},
    {"matmul f32[2,3] f32[3,4]", "2: 0 - -> 0; 4: - 1 -> 1; 3: 1 0 sum -"},
    {"matmul trans_a=1 trans_b=1 f32[3,2] f32[4,3]", "2: 1 - -> 0; 4: - 0 -> 1; 3: 0 1 sum -"},
    {"matmul f32[2,3] f32[3,4] f32[4]", "2: 0 - - -> 0; 4: - 1 0 -> 1"},
    {"matmul act=relu f32[2,3] f32[3,4]", "2: 0 - -> 0; 4: - 1 -> 1"},
    {"matmul f32[7,2,3] f32[3,4] f32[4]", "7: 0 - - -> 0; 2: 1 - - -> 1; 4: - 1 0 -> 2"},
    {"matmul f32[7,1,2,3] f32[5,3,4]",
     "7: 0 - -> 0; 5: - 0 -> 1; 2: 2 - -> 2; 4: - 2 -> 3; 3: 3 1 sum -"},
    {"conv2d f32[2,4,4,3] f32[1,1,3,5] f32[5]", "2: 0 - - -> 0; 5: - 3 0 -> 3"},
    {"conv2d groups=3 f32[2,4,4,3] f32[1,1,1,6]", "2: 0 - -> 0"},
    {"conv2d f32[2,4,4,3] f32[1,1,3,5] f32[2,5]", "2: 0 - - -> 0; 5: - 3 1 -> 3"},
    {"normalise_line epsilon=p0 f32[4] f32[4] f32[4] f32[4]", "4: 0 0 0 0 -> 1"},
    {"conv2d_dx input=4,4 f32[2,4,4,5] f32[1,1,3,5]", "2: 0 - -> 0; 3: - 2 -> 3"},
    {"conv2d_dw kernel=1,1 f32[2,4,4,3] f32[2,4,4,5]", "2: 0 0 sum -; 5: - 3 -> 3; 3: 3 - -> 2"},
    {"conv2d_dw kernel=1,1 bias=1 f32[2,4,4,3] f32[2,4,4,5]", "2: 0 0 sum - -; 5: - 3 -> 3 0"},
    {"conv2d_pool codes=1 pool=2,2,2,2,0,0,0,0 f32[2,4,4,3] f32[1,1,3,5]", "2: 0 - -> 0 0"},
    {"conv2d_pool_dx input=4,4 pool=2,2,2,2,0,0,0,0 f32[2,2,2,5] f32[1,1,3,5] opaque[2,2,2,5]",
     "2: 0 - 0 -> 0"},
    {"conv2d_pool_dw kernel=1,1 pool=2,2,2,2,0,0,0,0 f32[2,4,4,3] f32[2,2,2,5] opaque[2,2,2,5]",
     "2: 0 0 0 sum -"},
    {"gru reset_after=1 f32[2,3,15] f32[5,15] f32[2,5] f32[15] bool[2,3]",
     "2: 0 - 0 - 0 -> 0 0 0 0"},
    {"maxpool kernel=2,2 f32[2,4,4,3]", "2: 0 -> 0 0"},
    {"moments f32[2,3,4]", "2: 0 sum - -; 3: 1 sum - -; 4: 2 -> 0 0"},
    {"normalise epsilon=p0 f32[2,4] f32[4] f32[4] f32[4] f32[4]",
     "2: 0 - - - - -> 0; 4: 1 0 0 0 0 -> 1"},
    {"normalise_sums epsilon=p0 f32[2,4] f32[2,4] f32[4] f32[4]",
     "2: 0 0 - - sum - -; 4: 1 1 0 0 -> 0 0"},
    {"layernorm epsilon=p0 f32[4,4] f32[4] f32[4]", "4: 0 - - -> 0 0 0"},
    {"layernorm_dx f32[4,4] f32[4,4] f32[4] f32[4] f32[4]", "4: 0 0 - 0 0 -> 0"},
    {"layernorm_sums f32[4,4] f32[4,4] f32[4] f32[4]", "4: 0 0 0 0 sum - -; 4: 1 1 - - -> 0 0"},
    {"attention scale=p0 rate=p1 key=p2 f32[2,5,3,4] f32[2,7,3,4] f32[2,7,3,8] bool[1,3,1,7]",
     "2: 0 0 0 - -> 0 0; 3: 2 2 2 1 -> 2 2"},
    {"softmax f32[2,5,3]", "2: 0 -> 0; 5: 1 -> 1"},
    {"sparse_xent f32[2,3] i32[2]", "2: 0 0 -> 0"},
    {"reshape dims=6,5 f32[2,3,5]", "2: 0 -> 0(1,3); 3: 1 -> 0(2,1); 5: 2 -> 1"},
    {"reshape dims=2,3,5 f32[6,5]", "2: 0(1,3) -> 0; 3: 0(2,1) -> 1; 5: 1 -> 2"},
    {"reshape dims=7,4,6 f32[7,6,4]", "7: 0 -> 0"},
    {"reshape dims=8,3 f32[4,6]", "4: 0 -> 0(1,2); 2: 1(1,3) -> 0(4,1); 3: 1(2,1) -> 1"},
    {"reshape dims=1,28,28,1 f32[1,784]", "1: 0 -> 0; 28: 1(1,28) -> 1; 28: 1(28,1) -> 2"},
    {"reshape dims=5,2,1,2 f32[5,1,4]", "5: 0 -> 0; 2: 2(1,2) -> 1; 2: 2(2,1) -> 3"},
    {"reshape dims=3,0,4 f32[3,0]", "3: 0 -> 0; 0: 1 -> 1"},
    {"transpose perm=2,0,1 f32[2,3,4]", "4: 2 -> 0; 2: 0 -> 1; 3: 1 -> 2"},
    {"concat axis=1 f32[2,3] f32[2,4]", "2: 0 0 -> 0"},
    {"slice sizes=4,2 start=p1,p2 f32[4,3]", "4: 0 -> 0"},
    {"slice_grad dims=4,3 start=p1,p2 f32[4,2]", "4: 0 -> 0"},
    {"pad before=1,0 after=0,0 value=p0 f32[2,3]", "3: 1 -> 1"},
    {"gather axis=1 f32[9,4,5] i64[2,3]", "2: - 0 -> 1; 3: - 1 -> 2; 9: 0 - -> 0; 5: 2 - -> 3"},
    {"scatter_add dims=9,4,5 axis=1 i64[2] f32[9,2,5]", "2: 0 1 sum -; 9: - 0 -> 0; 5: - 2 -> 2"},
    {"one_hot depth=10 i32[2]", "2: 0 -> 0"},
    {"cumsum axis=1 f32[2,3,4]", "2: 0 -> 0; 4: 2 -> 2"},
    {"sort dtype=i32 f32[2,3]", "2: 0 -> 0 0"},
    {"slice sizes=3,4 strides=1,-1 start=p0,p1 f32[3,4]", "3: 0 -> 0"},
    {"gather_nd batch=1 f32[9,4,5] i64[9,2,1]", "9: 0 0 -> 0; 2: - 1 -> 1; 5: 2 - -> 2"},
    {"scatter_nd dims=9,4,5 batch=1 i64[9,2,1] f32[9,2,5]",
     "9: 0 0 -> 0; 2: 1 1 sum -; 5: - 2 -> 2"},
    {"band low=0 high=9 f32[9,4,4]", "9: 0 -> 0"},
    {"resize size=4,6 f32[9,2,3,5]", "9: 0 -> 0; 5: 3 -> 3"},
    {"warp size=4,6 value=p0 f32[9,2,3,5] f32[9,8]", "9: 0 0 -> 0; 5: 3 - -> 3"},
    {"adam f32[2] f32[2] f32[2] f32[2]", "2: 0 0 0 0 -> 0 0 0"},
    {"matmul_adam f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[5,2]",
     "3: 0 0 0 1 - -> 0 0 0; 2: 1 1 1 - 1 -> 1 1 1"},
    {"matmul_adam gradient=1 f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[5,2]",
     "3: 0 0 0 1 - -> 0 0 0 0; 2: 1 1 1 - 1 -> 1 1 1 1"},
    {"matmul_adam_dx f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[5,2]", "3: 0 0 0 1 - -> 0 0 0 1"},
    {"matmul_adam_dx gradient=1 f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[5,2]",
     "3: 0 0 0 1 - -> 0 0 0 1 0"},
};

static void test_axis_rules_find_the_ways_of_the_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof way_cases / sizeof way_cases[0]; i++) {
        text_case c;
        char text[2000];
        infer_good(way_cases[i].text, &c);
        print_ways(&c.desc, text);
        if (strcmp(text, way_cases[i].ways) != 0)
            fail_msg("%s\n  gave %s\n  want %s", way_cases[i].text, text, way_cases[i].ways);
    }
}

/* Cuts the label in one operand down to `piece`; the reference must describe the axis exactly. */
static void cut(const char *text, snug_type *t, const sn_axis_ref *ref, int64_t extent,
                int64_t piece) {
    if (ref->axis < 0)
        return;
    assert_true(ref->axis < t->rank);
    if (t->dims[ref->axis] != ref->outer * extent * ref->inner)
        fail_msg("%s: axis %d is not %lld * %lld * %lld", text, ref->axis, (long long)ref->outer,
                 (long long)extent, (long long)ref->inner);
    t->dims[ref->axis] = ref->outer * piece * ref->inner;
}

/* Attributes that repeat the output's dims follow the cut. */
static void cut_attrs(sn_opdesc *d, const snug_type *out) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const char *name = family->fields[i].name;
        sn_list list = {.n = out->rank};
        memcpy(list.v, out->dims, sizeof list.v);
        if (strcmp(name, "dims") == 0 || strcmp(name, "sizes") == 0)
            memcpy(&d->attrs.word[family->fields[i].word], &list, sizeof list);
    }
}

static void check_way(const char *text, const sn_opdesc *whole, const sn_way *way) {
    sn_opdesc piece = *whole;
    snug_error err;
    const int64_t n = (way->extent + 1) / 2;
    for (int i = 0; i < piece.n_in; i++)
        cut(text, &piece.in[i], &way->in[i], way->extent, n);
    snug_type want[SN_MAX_OUT];
    for (int i = 0; i < whole->n_out; i++) {
        want[i] = whole->out[i];
        cut(text, &want[i], &way->out[i], way->extent, n);
        if ((way->out[i].axis < 0) != way->sum)
            fail_msg("%s: output %d neither carries the label nor is a sum over it", text, i);
    }
    cut_attrs(&piece, &want[0]);
    if (sn_op_infer(&piece, &err) != SNUG_OK)
        fail_msg("%s cut to %lld of %lld: %s", text, (long long)n, (long long)way->extent,
                 err.text);
    for (int i = 0; i < whole->n_out; i++)
        assert_true(sn_type_equal(&piece.out[i], &want[i]));
}

static void test_cutting_a_label_cuts_the_outputs(void **state) {
    (void)state;
    const char *text;
    int n_checked = 0;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        sn_ways ways = {.n = 0};
        if (strchr(text, '?') == NULL && strstr(text, "dims=-1") == NULL)
            sn_op_ways(&c.desc, &ways);
        for (int w = 0; w < ways.n; w++, n_checked++)
            check_way(text, &c.desc, &ways.way[w]);
    }
    assert_true(n_checked > 150);
}

/* --- flops ----------------------------------------------------------------------------------- */
static void test_flops_count_products_twice(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double flops;
    } cases[] = {
        {"matmul f32[2,3] f32[3,4]", 2 * 24},
        {"matmul trans_a=1 f32[3,2] f32[3,4]", 2 * 24},
        {"matmul f32[5,2,3] f32[3,4]", 2 * 120},
        {"conv2d groups=3 f32[2,4,4,6] f32[1,1,2,9]", 2 * (2 * 16 * 9) * 2},
        {"conv2d_dx stride=2,2 pad=1,1,0,1 input=7,8 f32[2,4,4,5] f32[3,3,3,5]", 2 * 160 * 27},
        {"conv2d_dw stride=2,2 pad=1,1,0,1 kernel=3,3 f32[2,7,8,3] f32[2,4,4,5]", 2 * 160 * 27},
        {"conv2d_pool pool=2,2,2,2,0,0,0,0 f32[2,10,10,3] f32[3,3,3,5]", 2 * 640 * 27},
        {"avgpool kernel=2,2 stride=2,2 f32[1,4,4,3]", 12 * 4},
        {"sum f32[4,5]", 20},
        {"add f32[4,1] f32[5]", 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_case c;
        infer_good(cases[i].text, &c);
        assert_true(sn_op_flops(&c.desc) == cases[i].flops);
    }
}

/* --- anything at all ------------------------------------------------------------------------- */
static uint64_t draw(uint64_t *state, uint64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static int64_t draw_number(uint64_t *state) {
    static const int64_t numbers[] = {
        INT64_MIN, -2, -1, 0, 1, 1, 2, 2, 3, 4, 64, INT32_MAX, 1LL << 31, 1LL << 60, INT64_MAX};
    return numbers[draw(state, sizeof numbers / sizeof numbers[0])];
}

/* A good case with some of its words replaced by any number, which keeps most of it plausible. */
static void disturb(sn_opdesc *d, uint64_t *state) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (uint64_t n = 1 + draw(state, 3); n > 0; n--) {
        if (family->n_fields > 0 && draw(state, 2) == 0) {
            const sn_field *f = &family->fields[draw(state, (uint64_t)family->n_fields)];
            d->attrs.word[(uint64_t)f->word + draw(state, (uint64_t)f->n)] = draw_number(state);
        } else if (d->n_in > 0) {
            snug_type *t = &d->in[draw(state, (uint64_t)d->n_in)];
            t->dims[draw(state, SNUG_MAX_RANK)] = draw_number(state);
            t->rank = draw(state, 8) == 0 ? (int)draw(state, 10) : t->rank;
            t->dtype = draw(state, 8) == 0 ? (snug_dtype)draw(state, 11) : t->dtype;
        }
    }
}

static void check_accepted(const char *text, const sn_opdesc *d) {
    snug_error err;
    bool known = true;
    for (int i = 0; i < d->n_in; i++)
        known = known && sn_type_known(&d->in[i]);
    for (int i = 0; i < d->n_out; i++) {
        assert_int_equal(sn_type_check(&d->out[i], true, &err), SNUG_OK);
        known = known && sn_type_known(&d->out[i]);
    }
    sn_ways ways = {.n = 0};
    if (known)
        sn_op_ways(d, &ways);
    for (int w = 0; w < ways.n; w++) {
        const sn_way *way = &ways.way[w];
        for (int i = 0; i < d->n_in; i++) {
            snug_type in = d->in[i];
            cut(text, &in, &way->in[i], way->extent, way->extent);
        }
        for (int i = 0; i < d->n_out; i++) {
            snug_type out = d->out[i];
            cut(text, &out, &way->out[i], way->extent, way->extent);
        }
    }
}

static void test_no_words_break_a_rule(void **state) {
    (void)state;
    uint64_t seed = 7;
    int n_accepted = 0, n_refused = 0;
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        for (int round = 0; round < 400; round++) {
            snug_error err = {.code = SNUG_OK};
            sn_opdesc d = c.desc;
            disturb(&d, &seed);
            const snug_status status = sn_op_infer(&d, &err);
            if (status == SNUG_OK)
                check_accepted(text, &d);
            else
                assert_true(err.code == status && err.text[0] != '\0');
            *(status == SNUG_OK ? &n_accepted : &n_refused) += 1;
        }
    }
    assert_true(n_accepted > 5000 && n_refused > 5000);
}

/* As they stand in plans that were printed before. */
static void test_a_text_says_whose_kernel_it_is(void **state) {
    static const struct {
        const char *impl;
        sn_impl_kind kind;
        bool library, absent;
    } cases[] = {
        {"own:tiles", SN_IMPL_OWN, false, false},
        {"onednn:brgconv:avx512_core", SN_IMPL_OWN, false, false},
        {"", SN_IMPL_OWN, false, false},
        {"cudnn", SN_IMPL_OWN, false, false},
        {"host:own:simd", SN_IMPL_HOST, false, false},
        {"host:absent", SN_IMPL_HOST, false, false},
        {"cublaslt:algo66.20.7.1 ws 4MiB", SN_IMPL_BLAS, true, false},
        {"cublaslt:absent", SN_IMPL_BLAS, true, true},
        {"cudnn:eng12.3fa1 ws 7MiB", SN_IMPL_DNN, true, false},
        {"cudnn:absent", SN_IMPL_DNN, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(sn_impl_kind_of(cases[i].impl), cases[i].kind);
        assert_int_equal(sn_impl_is_library(cases[i].impl), cases[i].library);
        assert_int_equal(sn_impl_is_absent(cases[i].impl), cases[i].absent);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_rules_give_the_types_of_the_cases),
        cmocka_unit_test(test_every_rule_has_a_case),
        cmocka_unit_test(test_wrong_operands_are_named),
        cmocka_unit_test(test_an_error_object_is_not_needed),
        cmocka_unit_test(test_attribute_words_out_of_range_are_refused),
        cmocka_unit_test(test_find_names_near_operators),
        cmocka_unit_test(test_attributes_survive_text),
        cmocka_unit_test(test_default_prints_nothing),
        cmocka_unit_test(test_literals_become_slots),
        cmocka_unit_test(test_params_are_counted_in_words),
        cmocka_unit_test(test_axis_rules_find_the_ways_of_the_cases),
        cmocka_unit_test(test_cutting_a_label_cuts_the_outputs),
        cmocka_unit_test(test_flops_count_products_twice),
        cmocka_unit_test(test_no_words_break_a_rule),
        cmocka_unit_test(test_a_text_says_whose_kernel_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
