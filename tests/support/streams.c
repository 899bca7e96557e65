/* streams.c: datasets as text, and functions on numbers (streams.h). */
#include "support/streams.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *text;
    size_t size, used;
} page;

static void say(page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(page *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(p->text + p->used, p->size - p->used, format, args);
    va_end(args);
    p->used += (size_t)n;
    if (p->used >= p->size)
        p->used = p->size - 1;
}

static void say_value(page *p, const snug_datum *d, int64_t i) {
    switch (d->is_text ? SNUG_OPAQUE : d->type.dtype) {
    case SNUG_F32:
        say(p, "%g", (double)((const float *)d->data)[i]);
        break;
    case SNUG_F64:
        say(p, "%g", ((const double *)d->data)[i]);
        break;
    case SNUG_I64:
        say(p, "%" PRId64, ((const int64_t *)d->data)[i]);
        break;
    case SNUG_I32:
        say(p, "%" PRId32, ((const int32_t *)d->data)[i]);
        break;
    case SNUG_U8:
    case SNUG_BOOL:
        say(p, "%u", ((const unsigned char *)d->data)[i]);
        break;
    case SNUG_OPAQUE:
        say(p, "'%.*s'", (int)((const snug_text *)d->data)[i].bytes,
            ((const snug_text *)d->data)[i].data);
        break;
    default:
        say(p, "?");
    }
}

static void say_array(page *p, const snug_datum *d, int axis, int64_t *at) {
    if (axis == d->type.rank) {
        say_value(p, d, (*at)++);
        return;
    }
    say(p, "[");
    for (int64_t i = 0; i < d->type.dims[axis]; i++) {
        say(p, "%s", i ? "," : "");
        say_array(p, d, axis + 1, at);
    }
    say(p, "]");
}

char *sn_element_text(const snug_element *e, char *text, size_t size) {
    page p = {text, size, 0};
    text[0] = '\0';
    say(&p, "%s", e->n > 1 ? "(" : "");
    for (int i = 0; i < e->n; i++) {
        int64_t at = 0;
        say(&p, "%s", i ? "," : "");
        say_array(&p, &e->part[i], 0, &at);
    }
    say(&p, "%s", e->n > 1 ? ")" : "");
    return text;
}

const char *sn_next_text(snug_iterator *it, int64_t n) {
    static char text[STREAM_TEXT_BYTES];
    page p = {text, sizeof text, 0};
    text[0] = '\0';
    for (int64_t i = 0; i < n; i++) {
        snug_element e;
        snug_error err = {0};
        char one[4096];
        const snug_status status = snug_iterator_next(it, &e, &err);
        if (status == SNUG_E_END)
            break;
        if (status == SNUG_OK)
            say(&p, "%s%s", i ? " " : "", sn_element_text(&e, one, sizeof one));
        else
            say(&p, "%s!%s", i ? " " : "", err.text);
        snug_element_drop(&e);
    }
    return text;
}

const char *sn_stream_text(snug_dataset *d) {
    snug_iterator *it;
    snug_error err = {0};
    expect_ok(snug_iterator_create(d, &it, &err), &err);
    snug_dataset_drop(d);
    const char *text = sn_next_text(it, 1 << 14);
    snug_iterator_destroy(it);
    return text;
}

snug_dataset *sn_range_of(snug_engine *e, int64_t n) {
    snug_dataset *d;
    snug_error err = {0};
    expect_ok(snug_dataset_range(e, 0, n, 1, &d, &err), &err);
    return d;
}

/* --- functions -------------------------------------------------------------------------------- */
static snug_status open_adder(void *ctx, snug_engine *engine, void **worker, snug_error *err) {
    (void)ctx, (void)err;
    *worker = engine;
    return SNUG_OK;
}

static void close_adder(void *ctx, void *worker) {
    (void)ctx, (void)worker;
}

static snug_status call_adder(void *ctx, void *worker, const snug_element *in, snug_element *out,
                              snug_error *err) {
    const sn_adder *a = ctx;
    const int64_t x = *(const int64_t *)in->part[0].data;
    if (a->fails_at != 0 && x == a->fails_at) {
        if (err)
            snprintf(err->text, sizeof err->text, "%" PRId64 " is wrong", x);
        return SNUG_E_DATA;
    }
    if (a->sleep_us > 0) /* some elements take long, so that workers overtake each other */
        usleep((useconds_t)((x * 7919) % a->sleep_us));
    SNUG_TRY(snug_datum_create(worker, &in->part[0].type, &out->part[0], err));
    *(int64_t *)out->part[0].data = a->keeps_even ? x % 2 == 0 : x + a->add;
    out->n = 1;
    return SNUG_OK;
}

snug_mapper sn_adder_mapper(const sn_adder *a) {
    return (snug_mapper){
        .ctx = (void *)(uintptr_t)a, .open = open_adder, .close = close_adder, .call = call_adder};
}
