/* subject.c: cases read from their text, values of every domain, guarded memory, and the loop of a
 * sweep. Values follow from (row, case, input, position) alone.
 *
 * Invariants:
 * 1. A case gives every parameter a literal, as a graph wants it; starts of a slice for each axis.
 * 2. A guarded block is GUARD bytes, the data, and GUARD or more bytes up to a multiple of 64. */
#include "support/subject.h"

#include "base/rng.h"
#include "support/call.h"
#include "support/support.h"
#include "tensor/feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define CLOSE_GUARD(at, n) ASAN_POISON_MEMORY_REGION(at, n)
#define OPEN_GUARD(at, n)  ASAN_UNPOISON_MEMORY_REGION(at, n)
#else
#define CLOSE_GUARD(at, n) ((void)(at), (void)(n))
#define OPEN_GUARD(at, n)  ((void)(at), (void)(n))
#endif

enum { GUARD = 64, GUARD_BYTE = 0x5b, MAX_COMPLAINTS = 40, MAX_SLOTS = 32 };

/* --- guarded memory ------------------------------------------------------------------------- */

static size_t behind(size_t bytes) {
    return (bytes + 63) / 64 * 64 - bytes + GUARD;
}

void *sn_guarded(size_t bytes, int fill) {
    unsigned char *block = aligned_alloc(64, GUARD + bytes + behind(bytes));
    assert_non_null(block);
    memset(block, GUARD_BYTE, GUARD);
    memset(block + GUARD, fill, bytes);
    memset(block + GUARD + bytes, GUARD_BYTE, behind(bytes));
    CLOSE_GUARD(block, GUARD);
    CLOSE_GUARD(block + GUARD + bytes, behind(bytes));
    return block + GUARD;
}

bool sn_guards_ok(const void *data, size_t bytes) {
    const unsigned char *at = data;
    bool ok = true;
    OPEN_GUARD(at - GUARD, GUARD);
    OPEN_GUARD(at + bytes, behind(bytes));
    for (size_t i = 0; i < GUARD; i++)
        ok = ok && at[-1 - (ptrdiff_t)i] == GUARD_BYTE;
    for (size_t i = 0; i < behind(bytes); i++)
        ok = ok && at[bytes + i] == GUARD_BYTE;
    CLOSE_GUARD(at - GUARD, GUARD);
    CLOSE_GUARD(at + bytes, behind(bytes));
    return ok;
}

void sn_guarded_free(void *data, size_t bytes) {
    if (!data)
        return;
    unsigned char *at = data;
    OPEN_GUARD(at - GUARD, GUARD);
    OPEN_GUARD(at + bytes, behind(bytes));
    free(at - GUARD);
}

/* --- views ---------------------------------------------------------------------------------- */

snug_view sn_view_make(const snug_type *t, size_t opaque_bytes, int fill) {
    snug_view v = {.bytes = opaque_bytes, .type = *t};
    if (t->dtype != SNUG_OPAQUE)
        expect_ok(snug_type_bytes(t, &v.bytes, NULL), NULL);
    v.data = sn_guarded(v.bytes, fill);
    return v;
}

snug_view sn_view_copy(const snug_view *v) {
    snug_view copy = sn_view_make(&v->type, v->bytes, 0);
    memcpy(copy.data, v->data, v->bytes);
    return copy;
}

void sn_view_free(snug_view *v) {
    sn_guarded_free(v->data, v->bytes);
    *v = (snug_view){0};
}

void sn_views_free(snug_view *v, int n) {
    for (int i = 0; i < n; i++)
        sn_view_free(&v[i]);
}

double sn_view_get(const snug_view *v, int64_t i) {
    const size_t bytes = snug_dtype_bytes(v->type.dtype);
    const char *at = (const char *)v->data + (size_t)i * bytes;
    double real;
    int64_t whole;
    if (v->type.dtype == SNUG_OPAQUE)
        return ((const uint8_t *)v->data)[i];
    if (sn_dtype_is_float(v->type.dtype)) {
        expect_ok(sn_convert(v->type.dtype, at, SNUG_F64, &real, 1, NULL), NULL);
        return real;
    }
    expect_ok(sn_convert(v->type.dtype, at, SNUG_I64, &whole, 1, NULL), NULL);
    return (double)whole;
}

/* Whole numbers wrap. */
void sn_view_put(const snug_view *v, int64_t i, double value) {
    const size_t bytes = snug_dtype_bytes(v->type.dtype);
    char *at = (char *)v->data + (size_t)i * bytes;
    const int64_t whole = sn_dtype_is_float(v->type.dtype) ? 0 : (int64_t)value;
    if (sn_dtype_is_float(v->type.dtype))
        expect_ok(sn_convert(SNUG_F64, &value, v->type.dtype, at, 1, NULL), NULL);
    else if (v->type.dtype == SNUG_OPAQUE)
        ((uint8_t *)v->data)[i] = (uint8_t)whole;
    else
        memcpy(at, &whole, bytes); /* little endian */
}

/* A stream read in order, a block at a time. */
typedef struct {
    uint64_t key, at;
    double block[256];
} stream;

static double next_uniform(stream *r) {
    if (r->at % 256 == 0)
        sn_random_fill_f64(SN_RANDOM_UNIFORM, r->key, r->at, 256, r->block);
    return r->block[r->at++ % 256];
}

void sn_view_random(const snug_view *v, uint64_t key, double low, double high) {
    stream r = {.key = key};
    const int64_t n = sn_view_count(v);
    for (int64_t i = 0; i < n; i++)
        sn_view_put(v, i, low + (high - low) * next_uniform(&r));
}

/* --- values by domain ----------------------------------------------------------------------- */

/* One input to fill. */
typedef struct {
    const snug_view *view;
    uint64_t key;
    int input;
    int64_t limit;
} filling;

static void fill_plain(const filling *f) {
    const bool real = sn_dtype_is_float(f->view->type.dtype);
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++) {
        const double u = next_uniform(&r);
        const double whole = f->view->type.dtype == SNUG_BOOL ? u >= 0.5
                             : f->view->type.dtype == SNUG_U8 ? floor(19 * u)
                                                              : floor(19 * u) - 9;
        sn_view_put(f->view, i, real ? 3 * u - 1.5 : whole);
    }
}

static void fill_pos(const filling *f) {
    sn_view_random(f->view, f->key, 0.5, 2);
}

static void fill_away(const filling *f) {
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++) {
        const double u = 2 * next_uniform(&r);
        sn_view_put(f->view, i, u < 1 ? -0.2 - u : u - 1 + 0.2);
    }
}

/* Steps of a size that has no divisor in common with n visit every number below n once. */
static int64_t visiting_step(uint64_t key, int64_t n) {
    for (int64_t step = n / 2 + (int64_t)(key % 97) + 1;; step++) {
        int64_t a = step, b = n;
        while (b != 0) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

/* Inputs of one case never meet: input k has the values that are k modulo 4. */
static void fill_distinct(const filling *f) {
    const int64_t n = sn_view_count(f->view), step = visiting_step(f->key, n > 0 ? n : 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t rank = (i + (int64_t)(f->key % 1009)) * step % n - n / 2;
        const double unit = sn_dtype_is_float(f->view->type.dtype) ? 0.02 : 1;
        sn_view_put(f->view, i, (double)(4 * rank + f->input % 4) * unit);
    }
}

static void fill_prob(const filling *f) {
    const snug_type *t = &f->view->type;
    const int64_t width = t->dims[t->rank - 1];
    fill_pos(f);
    for (int64_t first = 0; first < sn_view_count(f->view); first += width) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++)
            sum += sn_view_get(f->view, first + i);
        for (int64_t i = 0; i < width; i++)
            sn_view_put(f->view, first + i, sn_view_get(f->view, first + i) / sum);
    }
}

static void fill_labels(const filling *f) {
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++)
        sn_view_put(f->view, i, floor(next_uniform(&r) * (double)f->limit));
}

static void fill_ties(const filling *f) {
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++)
        sn_view_put(f->view, i, floor(4 * next_uniform(&r)) - 2);
}

static void fill_wide(const filling *f) {
    sn_view_random(f->view, f->key, -100, 100);
}

static void fill_inside(const filling *f) {
    sn_view_random(f->view, f->key, -0.9, 0.9);
}

static void fill_above(const filling *f) {
    sn_view_random(f->view, f->key, 1.2, 3);
}

static void fill_dominant(const filling *f) {
    const snug_type *t = &f->view->type;
    const int64_t n = t->dims[t->rank - 1];
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++) {
        const double u = next_uniform(&r);
        sn_view_put(f->view, i, i / n % n == i % n ? 2 + u : (2 * u - 1) / (double)n);
    }
}

/* Steps of rounding are at wholes and halves. */
static void fill_between(const filling *f) {
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++) {
        const double u = 12 * next_uniform(&r) - 6;
        sn_view_put(f->view, i, floor(u) / 2 + 0.1 + 0.3 * (u - floor(u)));
    }
}

static void fill_halves(const filling *f) {
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++)
        sn_view_put(f->view, i, floor(16 * next_uniform(&r)) / 2 - 4);
}

static void fill_special(const filling *f) {
    static const double list[] = {0.0,   -0.0,   1,    -1,    INFINITY, -INFINITY, NAN, 1e-40,
                                  1e-38, -1e-38, 1e30, -1e30, 88.5,     -88.5,     104, -104};
    enum { N = sizeof list / sizeof list[0] };
    stream r = {.key = f->key};
    for (int64_t i = 0; i < sn_view_count(f->view); i++) {
        const double u = next_uniform(&r);
        sn_view_put(f->view, i, u < 0.5 ? list[(int)(2 * u * N)] : 8 * u - 6);
    }
}

typedef struct {
    const char *name;
    void (*fill)(const filling *f);
} domain;

static const domain domains[] = {
    {"", fill_plain},          {"pos", fill_pos},
    {"away", fill_away},       {"distinct", fill_distinct},
    {"prob", fill_prob},       {"labels", fill_labels},
    {"ties", fill_ties},       {"wide", fill_wide},
    {"special", fill_special}, {"inside", fill_inside},
    {"above", fill_above},     {"between", fill_between},
    {"halves", fill_halves},   {"dominant", fill_dominant},
};
enum { N_DOMAINS = sizeof domains / sizeof domains[0] };

static const domain *find_domain(const char *name, size_t n) {
    for (int i = 0; i < N_DOMAINS; i++)
        if (strlen(domains[i].name) == n && strncmp(domains[i].name, name, n) == 0)
            return &domains[i];
    fail_msg("no domain of values is called '%.*s'", (int)n, name);
    return NULL;
}

static void make_maxpool(const sn_opdesc *d, int code, sn_opdesc *maker) {
    const sn_attrs_pool_grad *a = &d->attrs.pool_grad;
    const int64_t *y = d->in[code].dims;
    maker->op = SN_OP_maxpool;
    maker->n_in = 1;
    sn_attrs_default(maker->op, &maker->attrs);
    memcpy(maker->attrs.pool.kernel, a->kernel, sizeof a->kernel);
    memcpy(maker->attrs.pool.stride, a->stride, sizeof a->stride);
    memcpy(maker->attrs.pool.pad, a->pad, sizeof a->pad);
    maker->in[0] = (snug_type){SNUG_F64, 4, {y[0], a->input[0], a->input[1], y[3]}};
}

/* Of conv2d_pool_dx (dy, w, code) and conv2d_pool_dw (x, dy, code); their families begin alike. */
static void make_conv_pool(const sn_opdesc *d, sn_opdesc *maker) {
    const sn_attrs_conv *a = &d->attrs.conv;
    const bool dx = d->op == SN_OP_conv2d_pool_dx;
    const snug_type *dy = &d->in[dx ? 0 : 1];
    sn_attrs_conv_pool *to = &maker->attrs.conv_pool;
    maker->op = SN_OP_conv2d_pool;
    maker->n_in = 2;
    sn_attrs_default(maker->op, &maker->attrs);
    memcpy(to->stride, a->stride, sizeof a->stride);
    memcpy(to->pad, a->pad, sizeof a->pad);
    memcpy(to->dilation, a->dilation, sizeof a->dilation);
    to->groups = a->groups;
    to->act = SN_ACT_relu;
    to->codes = 1;
    memcpy(to->pool, dx ? d->attrs.conv_pool_dx.pool : d->attrs.conv_pool_dw.pool, sizeof to->pool);
    maker->in[0] = dx ? d->out[0] : d->in[0];
    maker->in[1] = dx ? d->in[1] : d->out[0];
    maker->in[0].dims[0] = dy->dims[0];
    for (int i = 0; i < 2; i++)
        maker->in[i].dtype = SNUG_F64;
}

void sn_code_maker(const sn_opdesc *d, int code, sn_opdesc *maker) {
    snug_error err;
    *maker = (sn_opdesc){0};
    if (d->op == SN_OP_conv2d_pool_dx || d->op == SN_OP_conv2d_pool_dw)
        make_conv_pool(d, maker);
    else
        make_maxpool(d, code, maker);
    expect_ok(sn_op_infer(maker, &err), &err);
}

/* Codes as a plan has them: the pooling's own, of distinct values. */
static void fill_codes(sn_subject *s, int i) {
    sn_subject pool = {.sweep = s->sweep, .from = s->from, .real = SNUG_F64};
    sn_code_maker(&s->desc, i, &pool.desc);
    pool.op = pool.desc.op;
    for (int k = 0; k < pool.desc.n_in; k++) {
        pool.in[k] = sn_view_make(&pool.desc.in[k], 0, 0);
        if (k == 0)
            fill_distinct(&(filling){.view = &pool.in[k], .key = 99});
        else
            sn_view_random(&pool.in[k], 98, -1, 1);
    }
    snug_view out[SN_MAX_OUT];
    sn_outputs_make(&pool, &(sn_how){0}, &pool.desc, out);
    sn_call_ok(&pool, &(sn_how){.n_threads = 1}, out);
    s->in[i] = sn_view_copy(&out[1]);
    sn_views_free(out, 2);
    sn_views_free(pool.in, pool.desc.n_in);
}

/* --- cases from text ------------------------------------------------------------------------ */

static bool names_real(const char *text) {
    const char *at = strstr(text, "dtype=f");
    return at && (at[7] == '\0' || at[7] == ' ');
}

static bool case_has_real(const sn_case *c) {
    return names_real(c->attrs) || strncmp(c->in, "f[", 2) == 0 || strstr(c->in, " f[");
}

const char *sn_case_attrs(const sn_case *c, snug_dtype real, char *text) {
    const char *at = names_real(c->attrs) ? strstr(c->attrs, "dtype=f") : NULL;
    const int before = at ? (int)(at - c->attrs) : 0;
    if (at)
        snprintf(text, 256, "%.*sdtype=%s%s", before, c->attrs, snug_dtype_name(real), at + 7);
    else
        snprintf(text, 256, "%s", c->attrs);
    return text;
}

typedef struct {
    int n;
    sn_scalar value[MAX_SLOTS];
} slots;

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    slots *all = ctx;
    if (all->n == MAX_SLOTS)
        return sn_fail(err, SNUG_E_INVALID, "a case has more than %d parameters", (int)MAX_SLOTS);
    all->value[all->n] = is_key ? (sn_scalar){.key = key} : (sn_scalar){.real = real};
    *slot = all->n++;
    return SNUG_OK;
}

static void read_attrs(sn_subject *s) {
    char text[256];
    snug_error err;
    slots all = {0};
    const sn_param_maker maker = {&all, add_slot};
    expect_ok(
        sn_attrs_parse(s->op, sn_case_attrs(s->from, s->real, text), &maker, &s->desc.attrs, &err),
        &err);
    const sn_attr_family *family = sn_ops[s->op].attrs;
    int n = 0;
    for (int f = 0; f < family->n_fields; f++) {
        const sn_field *field = &family->fields[f];
        const bool param = field->kind == SN_FIELD_REAL || field->kind == SN_FIELD_KEY;
        for (int k = 0; param && k < field->n; k++) {
            const int64_t slot = s->desc.attrs.word[field->word + k];
            if (slot < 0 && field->n == 1)
                fail_msg("%s {%s | %s}: no %s", sn_ops[s->op].name, s->from->attrs, s->from->in,
                         field->name);
            s->param[n++] = slot < 0 ? (sn_scalar){.key = 0} : all.value[slot];
        }
    }
}

/* "f[2,3]@labels:10": the type, then the domain; gives what stands behind it. */
static const char *read_input(sn_subject *s, const char *text, const domain **in) {
    char head[64];
    snug_error err;
    const int i = s->desc.n_in++;
    const size_t n = strcspn(text, " @");
    const int letter = text[0] == 'f' && text[1] == '['; /* the type under test */
    snprintf(head, sizeof head, "%s%.*s", letter ? snug_dtype_name(s->real) : "", (int)n - letter,
             text + letter);
    const char *end;
    expect_ok(sn_type_parse(head, &end, &s->desc.in[i], &err), &err);
    assert_int_equal(*end, '\0');
    text += n;
    *in = &domains[0];
    if (*text == '@') {
        const size_t length = strcspn(++text, ": ");
        *in = find_domain(text, length);
        text += length;
        if (*text == ':')
            s->limit[i] = strtoll(text + 1, NULL, 10);
        text += strcspn(text, " ");
    }
    return text + strspn(text, " ");
}

static bool has_kernel(const sn_subject *s) {
    sn_cpu_device cpu;
    sn_variant v;
    sn_cpu_device_init(&cpu, 1, false);
    return cpu.device.describe(&cpu.device, &s->desc, &v, NULL) == SNUG_OK;
}

/* What many kernels do with halves element by element takes its time: all cases in test-full. */
static bool is_too_large(const sn_subject *s) {
    return sn_subject_elements(s) > (s->is_mixed ? 5000 : 20000) && !getenv("SNUG_TEST_FULL");
}

/* Input i becomes one of this type, where the row takes it, alone or with the one behind it. */
static bool retype_input(sn_subject *s, int i, snug_dtype dtype) {
    snug_error unused;
    const snug_dtype before = s->desc.in[i].dtype;
    const bool has_next = i + 1 < s->desc.n_in && s->desc.in[i + 1].dtype == before;
    s->desc.in[i].dtype = dtype;
    if (sn_op_infer(&s->desc, &unused) == SNUG_OK)
        return true;
    if (has_next) {
        s->desc.in[i + 1].dtype = dtype;
        if (sn_op_infer(&s->desc, &unused) == SNUG_OK)
            return true;
        s->desc.in[i + 1].dtype = before;
    }
    s->desc.in[i].dtype = before;
    return false;
}

/* Keeps the change that was made in `place` where the row takes it. */
static bool takes(sn_subject *s, void *place, const void *before, size_t bytes) {
    snug_error unused;
    if (sn_op_infer(&s->desc, &unused) == SNUG_OK)
        return true;
    memcpy(place, before, bytes);
    return false;
}

/* What may be f32 beside halves is, and results are wide; or of updates, what may be a half beside
 * f32. False: the row takes nothing of that. */
static bool mix(sn_subject *s) {
    const bool updates = sn_ops[s->op].effect == SN_STATE;
    const snug_dtype most = updates ? SNUG_F32 : s->real, other = updates ? s->real : SNUG_F32;
    const int wide = sn_attrs_wide(s->op);
    bool mixed = false;
    for (int i = 0; i < s->desc.n_in; i++)
        if (s->desc.in[i].dtype == s->real)
            s->desc.in[i].dtype = most;
    for (int i = 1; i < s->desc.n_in; i++) {
        if (s->desc.in[i].dtype != most)
            continue;
        mixed = retype_input(s, i, other) || mixed;
    }
    if (wide >= 0) {
        const int64_t narrow = 0;
        s->desc.attrs.word[wide] = 1;
        mixed = takes(s, &s->desc.attrs.word[wide], &narrow, sizeof narrow) || mixed;
    }
    return mixed && sn_op_infer(&s->desc, NULL) == SNUG_OK;
}

/* False: the row has no kernel for the type under test, or the case is too large for it. */
static bool subject_open(sn_subject *s) {
    snug_error err;
    const domain *in[SN_MAX_IN];
    s->desc.op = s->op;
    read_attrs(s);
    for (const char *at = s->from->in; *at;) {
        assert_true(s->desc.n_in < SN_MAX_IN);
        at = read_input(s, at, &in[s->desc.n_in]);
    }
    const snug_status status = sn_op_infer(&s->desc, &err);
    const bool half = s->real == SNUG_F16 || s->real == SNUG_BF16;
    if (status == SNUG_OK && s->is_mixed && !mix(s))
        return false;
    if (half && (status != SNUG_OK || is_too_large(s) || !has_kernel(s)))
        return false;
    if (status != SNUG_OK)
        fail_msg("%s {%s | %s}: %s", sn_ops[s->op].name, s->from->attrs, s->from->in, err.text);
    for (int i = 0; i < s->desc.n_in; i++) {
        if (s->desc.in[i].dtype == SNUG_OPAQUE) {
            fill_codes(s, i);
            continue;
        }
        s->in[i] = sn_view_make(&s->desc.in[i], 0, 0);
        const uint64_t key = sn_rng_key((uint64_t)s->op * 1000 + (uint64_t)s->index, (uint64_t)i);
        in[i]->fill(&(filling){&s->in[i], key, i, s->limit[i]});
    }
    return true;
}

int64_t sn_subject_elements(const sn_subject *s) {
    int64_t n = 0;
    for (int i = 0; i < s->desc.n_in; i++)
        n += sn_type_count(&s->desc.in[i]);
    for (int i = 0; i < s->desc.n_out; i++)
        n += sn_type_count(&s->desc.out[i]);
    return n;
}

/* --- sweeps --------------------------------------------------------------------------------- */

void sn_complain(sn_subject *s, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (++s->sweep->n_complaints <= MAX_COMPLAINTS)
        print_error("%s: %s, case %d {%s | %s} as %s%s: %s\n", s->sweep->name, sn_ops[s->op].name,
                    s->index, s->from->attrs, s->from->in, snug_dtype_name(s->real),
                    s->is_mixed ? " beside f32" : "", what);
}

void sn_sweep_begin(sn_sweep *w, const char *name) {
    *w = (sn_sweep){.name = name, .engine = sn_test_engine(0)};
    expect_ok(sn_team_create(w->engine, 3, &w->team, NULL), NULL);
}

static void run_case(sn_sweep *w, sn_op op, int index, snug_dtype real, bool is_mixed,
                     void (*check)(sn_subject *)) {
    sn_subject s = {.sweep = w, .op = op, .index = index, .real = real, .is_mixed = is_mixed};
    s.from = &sn_case_sets[op]->cases[index];
    if (!subject_open(&s))
        return;
    check(&s);
    sn_views_free(s.in, s.desc.n_in);
}

void sn_sweep_run(sn_sweep *w, void (*check)(sn_subject *s)) {
    for (int op = 0; op < SN_N_OPS; op++) {
        for (int i = 0; i < sn_case_sets[op]->n; i++) {
            run_case(w, (sn_op)op, i, SNUG_F32, false, check);
            if (!case_has_real(&sn_case_sets[op]->cases[i]))
                continue;
            run_case(w, (sn_op)op, i, SNUG_F64, false, check);
            for (int mixed = 0; mixed < 2; mixed++) {
                run_case(w, (sn_op)op, i, SNUG_F16, mixed != 0, check);
                run_case(w, (sn_op)op, i, SNUG_BF16, mixed != 0, check);
            }
        }
    }
}

void sn_sweep_end(sn_sweep *w) {
    sn_team_destroy(w->team);
    sn_test_engine_end(w->engine);
    if (w->n_complaints > 0)
        fail_msg("%s: %d complaints", w->name, w->n_complaints);
}

void sn_sweep_rows(const char *name, void (*check)(sn_subject *s)) {
    sn_sweep w;
    sn_sweep_begin(&w, name);
    sn_sweep_run(&w, check);
    sn_sweep_end(&w);
}
