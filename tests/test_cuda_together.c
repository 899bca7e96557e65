/* test_cuda_together.c: of GPU kernels that may run together: they give the bits they give one by
 * one, wherever their operands lie. They run in the emulator, or with SNUG_TEST_PLUGIN=path on the
 * GPU of that plug-in. */
#include "base/rng.h"
#include "op/impl.h"
#include "support/cuda_door.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

static const sn_gpu_door *door;

/* --- calls that run together ------------------------------------------------------------------ */
enum { ZONE = 4 << 20, MOST_CALLS = 40, N_PARAMS = 16, PLACES = 6 };

/* Parameters, then f32 numbers, then f64 ones, then f16 and bf16. */
typedef struct {
    sn_scalar param[N_PARAMS];
    float narrow[ZONE / 4];
    double wide[ZONE / 8];
    uint16_t half[ZONE / 2], brain[ZONE / 2];
} memory;

typedef struct {
    memory *m;
    uint64_t key, drawn;
    int64_t rows, channels;
    int n;
    sn_call calls[MOST_CALLS];
    sn_attrs attrs[MOST_CALLS];
    snug_view views[MOST_CALLS][8];
} together;

static uint32_t draw(together *t, uint32_t below) {
    return sn_philox(t->key, 0, t->drawn++).v[0] % below;
}

static snug_status any_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    (void)ctx, (void)is_key, (void)real, (void)key, (void)err;
    *slot = 0;
    return SNUG_OK;
}

static bool meet(const snug_view *a, const snug_view *b) {
    return (char *)a->data < (char *)b->data + b->bytes &&
           (char *)b->data < (char *)a->data + a->bytes;
}

/* d, c: as large as the result, or one per channel; D, C: of f64, h, k: of f16, b, l: of bf16. The
 * result is the last letter; "=k" behind it: it has k results, which lie where the first operands
 * do. */
static const struct {
    const char *op, *attrs, *form;
} links[] = {
    {"relu", "", "dd"},
    {"neg", "", "dd"},
    {"affine", "scale=2 shift=1", "dd"},
    {"affine", "scale=2 shift=1", "DD"},
    {"leaky_relu", "value=0.5", "dd"},
    {"sigmoid", "", "dd"},
    {"rsqrt", "", "DD"},
    {"add", "", "ddd"},
    {"sub", "", "DDD"},
    {"mul", "", "dcd"},
    {"maximum", "", "cdd"},
    {"div", "", "ddd"},
    {"relu_grad", "", "ddd"},
    {"cast", "dtype=f32", "Dd"},
    {"cast", "dtype=f64", "dD"},
    {"normalise", "epsilon=0.5", "dccccd"},
    {"channel_affine", "", "ddcccd"},
    {"softplus", "", "dd"},
    {"sgd", "rate=0.5", "ddd=1"},
    {"adam", "rate=0.5 one_minus_beta1=0.1 one_minus_beta2=0.1 epsilon=0.1", "ddddd=3"},
    {"relu", "", "hh"},
    {"sigmoid", "", "bb"},
    {"affine", "scale=2 shift=1", "hh"},
    {"add", "", "hhh"},
    {"mul", "", "blb"},
    {"div", "", "bbb"},
    {"relu_grad", "", "hhh"},
    {"cast", "dtype=f32", "hd"},
    {"cast", "dtype=bf16", "db"},
    {"cast", "dtype=f16", "Dh"},
    {"normalise", "epsilon=0.5", "hcccch"},
    {"normalise", "epsilon=0.5", "bllllb"},
    {"channel_affine", "", "hhckch"},
    {"sgd", "rate=0.5", "dhd=1"},
    {"sgd", "rate=0.5", "bbb=1"},
    {"adam", "rate=0.5 one_minus_beta1=0.1 one_minus_beta2=0.1 epsilon=0.1", "dddbd=3"},
};

/* Somewhere in its zone, often where another was. */
static snug_view place_view(together *t, char form) {
    const bool wide = strchr("DC", form), half = strchr("hk", form), brain = strchr("bl", form);
    snug_view v = {.type = {.dtype = SNUG_F32, .rank = 2}};
    v.type.dtype = wide ? SNUG_F64 : half ? SNUG_F16 : brain ? SNUG_BF16 : SNUG_F32;
    v.type.dims[0] = strchr("cCkl", form) ? 1 : t->rows;
    v.type.dims[1] = t->channels;
    v.bytes = (size_t)(v.type.dims[0] * t->channels) * snug_dtype_bytes(v.type.dtype);
    const size_t shift = 16 * (size_t)(draw(t, 8) == 0 ? draw(t, 4) : 0);
    char *zone = wide    ? (char *)t->m->wide
                 : half  ? (char *)t->m->half
                 : brain ? (char *)t->m->brain
                         : (char *)t->m->narrow;
    v.data = zone + draw(t, PLACES) * (ZONE / PLACES / 64 * 64) + shift;
    return v;
}

static bool are_apart(const snug_view *views, int n) {
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (meet(&views[i], &views[j]))
                return false;
    return true;
}

/* Operands may be one another's; a result is an operand of its size, or meets none. */
static bool place_operands(together *t, int link, snug_view *views, int *n_in, int *n_out) {
    const char *form = links[link].form, *same = strchr(form, '=');
    const int letters = (int)(same ? same - form : (int)strlen(form));
    *n_in = letters - 1;
    *n_out = same ? same[1] - '0' : 1;
    for (int k = 0; k < letters; k++)
        views[k] = place_view(t, form[k]);
    if (same) {
        memcpy(views + *n_in, views, (size_t)*n_out * sizeof *views);
        return are_apart(views, *n_in);
    }
    snug_view *out = &views[*n_in];
    bool ok = true;
    if (form[0] == form[letters - 1] && draw(t, 2) == 0)
        out->data = views[0].data;
    for (int k = 0; k < *n_in; k++)
        ok = ok && (!meet(&views[k], out) ||
                    (views[k].data == out->data && views[k].bytes == out->bytes));
    return ok;
}

static void add_call(together *t, int link) {
    const sn_param_maker maker = {NULL, any_slot};
    snug_error err;
    sn_op op;
    int n_in, n_out;
    snug_view *views = t->views[t->n];
    while (!place_operands(t, link, views, &n_in, &n_out)) {
    }
    expect_ok(sn_op_find(links[link].op, &op, &err), &err);
    expect_ok(sn_attrs_parse(op, links[link].attrs, &maker, &t->attrs[t->n], &err), &err);
    t->calls[t->n] = (sn_call){.op = op,
                               .attrs = &t->attrs[t->n],
                               .param = t->m->param + draw(t, N_PARAMS / 2),
                               .n_in = n_in,
                               .n_out = n_out,
                               .in = views,
                               .out = views + n_in,
                               .full = t->rows};
    t->n++;
}

static void fill_memory(memory *m, uint64_t key) {
    for (int i = 0; i < N_PARAMS; i++)
        m->param[i].real = 0.25 + 0.125 * i;
    sn_random_fill_f32(SN_RANDOM_UNIFORM, key, 0, ZONE / 4, m->narrow);
    for (size_t i = 0; i < ZONE / 8; i++)
        m->wide[i] = 0.5 + (double)m->narrow[i];
    for (size_t i = 0; i < ZONE / 2; i++) { /* 1/8 to 1, 1/8 to 2 */
        const uint32_t bits = (uint32_t)i * 2654435761u >> 16;
        m->half[i] = (uint16_t)(0x3000u + bits % 0xc00u);
        m->brain[i] = (uint16_t)(0x3e00u + bits % 0x200u);
    }
}

/* Launches of the calls one by one and together, whose memory is the same. */
static void compare(together *t, int64_t launches[2]) {
    memory *apart = malloc(sizeof *apart);
    snug_error err;
    assert_non_null(apart);
    fill_memory(t->m, t->key);
    expect_ok(door->run_all(t->calls, t->n, t->m, sizeof *t->m, true, &launches[0], &err), &err);
    memcpy(apart, t->m, sizeof *apart);
    fill_memory(t->m, t->key);
    expect_ok(door->run_all(t->calls, t->n, t->m, sizeof *t->m, false, &launches[1], &err), &err);
    if (memcmp(apart, t->m, sizeof *apart) != 0)
        fail_msg("calls %llu give other bits together", (unsigned long long)t->key);
    free(apart);
}

static void compare_random(memory *m, uint64_t key, int64_t rows, int n) {
    together *t = calloc(1, sizeof *t);
    int64_t launches[2];
    assert_non_null(t);
    *t = (together){.m = m, .key = key, .rows = rows, .channels = 16};
    for (int i = 0; i < n; i++)
        add_call(t, (int)draw(t, sizeof links / sizeof links[0]));
    compare(t, launches);
    if (launches[0] > 0 && rows < 100)
        assert_true(launches[1] < launches[0]);
    free(t);
}

static void test_calls_that_run_together_give_the_same_bits(void **state) {
    (void)state;
    memory *m = malloc(sizeof *m);
    assert_non_null(m);
    for (uint64_t key = 1; key <= 16; key++)
        compare_random(m, key, 3, MOST_CALLS);
    for (uint64_t key = 20; key <= 25; key++) /* of packs */
        compare_random(m, key, 4200, 12);
    free(m);
}

/* Packs of four elements, while there is one variance. */
static void test_one_channel_gives_the_same_bits_together(void **state) {
    (void)state;
    together *t = calloc(1, sizeof *t);
    memory *m = malloc(sizeof *m);
    int64_t launches[2];
    assert_true(t && m);
    *t = (together){.m = m, .key = 7, .rows = 65600, .channels = 1};
    for (int i = 0; i < 8; i++)
        add_call(t, i % 2 == 0 ? 15 : 0);
    compare(t, launches);
    free(m);
    free(t);
}

/* normalise, add, relu: two results in between are read by the next call alone. */
static void test_what_nobody_reads_is_not_stored(void **state) {
    (void)state;
    static const int chain[] = {15, 7, 0};
    together *t = calloc(1, sizeof *t);
    memory *m = malloc(sizeof *m);
    int64_t launches[2];
    snug_error err;
    assert_true(t && m);
    *t = (together){.m = m, .key = 5, .rows = 4200, .channels = 16};
    const size_t step = (size_t)(t->rows * t->channels);
    for (int i = 0; i < 3; i++) {
        add_call(t, chain[i]);
        for (int k = 0; k < t->calls[i].n_in + 1; k++)
            t->views[i][k].data = m->narrow + (size_t)(k < t->calls[i].n_in ? 6 + k : i) * step;
        if (i > 0)
            t->views[i][0].data = t->views[i - 1][t->calls[i - 1].n_in].data;
    }
    fill_memory(m, t->key);
    expect_ok(door->run_all(t->calls, 3, m, sizeof *m, true, &launches[0], &err), &err);
    const float kept = m->narrow[2 * step + 7];
    fill_memory(m, t->key);
    const float before[2] = {m->narrow[7], m->narrow[step + 7]};
    t->calls[0].reach = t->calls[1].reach = 1;
    expect_ok(door->run_all(t->calls, 3, m, sizeof *m, false, &launches[1], &err), &err);
    assert_true(m->narrow[2 * step + 7] == kept);
    assert_true(m->narrow[7] == before[0] && m->narrow[step + 7] == before[1]);
    if (launches[0] > 0)
        assert_int_equal(launches[1], 1);
    free(m);
    free(t);
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
        cmocka_unit_test(test_calls_that_run_together_give_the_same_bits),
        cmocka_unit_test(test_one_channel_gives_the_same_bits_together),
        cmocka_unit_test(test_what_nobody_reads_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
