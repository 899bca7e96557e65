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

/* --- pipelines -------------------------------------------------------------------------------- */
static const sn_adder plus_ten = {.add = 10, .sleep_us = 30};
static const sn_adder evens = {.keeps_even = 1};

static snug_status map_ten(snug_dataset *d, const sn_knobs *k, snug_dataset **out,
                           snug_error *err) {
    const snug_mapper f = sn_adder_mapper(&plus_ten);
    return snug_dataset_map(d, &f, &(snug_map_options){.workers = k->workers}, out, err);
}

static snug_status range_ten(snug_engine *e, int64_t n, const sn_knobs *k, snug_dataset **out,
                             snug_error *err) {
    snug_dataset *d;
    SNUG_TRY(snug_dataset_range(e, 0, n, 1, &d, err));
    return map_ten(d, k, out, err);
}

static snug_status make_batches(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                                snug_error *err) {
    snug_dataset *d;
    SNUG_TRY(range_ten(e, 11, k, &d, err));
    SNUG_TRY(snug_dataset_batch(d, 3, 0, &d, err));
    return snug_dataset_prefetch(d, k->depth, out, err);
}

static snug_status make_shuffled(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                                 snug_error *err) {
    snug_dataset *d;
    SNUG_TRY(snug_dataset_range(e, 0, 9, 1, &d, err));
    SNUG_TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 4, .seed = 5}, &d, err));
    SNUG_TRY(map_ten(d, k, &d, err));
    SNUG_TRY(snug_dataset_repeat(d, 3, &d, err));
    SNUG_TRY(snug_dataset_batch(d, 2, 1, &d, err));
    return snug_dataset_prefetch(d, k->depth, out, err);
}

static snug_status make_stream_shuffled(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                                        snug_error *err) {
    snug_dataset *d;
    SNUG_TRY(range_ten(e, 12, k, &d, err));
    SNUG_TRY(snug_dataset_shuffle(
        d, &(snug_shuffle){.buffer = 5, .seed = 5, .spill_folder = k->folder}, &d, err));
    return snug_dataset_repeat(d, 2, out, err);
}

static snug_status make_filtered(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                                 snug_error *err) {
    snug_dataset *d;
    const snug_mapper even = sn_adder_mapper(&evens);
    SNUG_TRY(range_ten(e, 12, k, &d, err));
    SNUG_TRY(snug_dataset_filter(d, &even, &d, err));
    SNUG_TRY(snug_dataset_enumerate(d, 100, &d, err));
    SNUG_TRY(snug_dataset_repeat(d, 2, &d, err));
    return snug_dataset_padded_batch(d, &(snug_padding){.size = 4}, out, err);
}

static snug_status make_cut(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                            snug_error *err) {
    snug_dataset *d, *more;
    SNUG_TRY(range_ten(e, 40, k, &d, err));
    SNUG_TRY(snug_dataset_skip(d, 3, &d, err));
    SNUG_TRY(snug_dataset_shard(d, 3, 1, &d, err));
    SNUG_TRY(snug_dataset_take(d, 7, &d, err));
    const snug_status status = range_ten(e, 3, k, &more, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    SNUG_TRY(snug_dataset_concatenate(d, more, &d, err));
    return snug_dataset_window(d, &(snug_window){.size = 3, .shift = 2}, out, err);
}

static snug_status make_zipped(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                               snug_error *err) {
    snug_dataset *d[2];
    SNUG_TRY(range_ten(e, 8, k, &d[0], err));
    const snug_status status = snug_dataset_range(e, 50, 0, -7, &d[1], err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d[0]);
        return status;
    }
    SNUG_TRY(snug_dataset_zip(d, 2, &d[0], err));
    SNUG_TRY(snug_dataset_batch(d[0], 3, 0, &d[0], err));
    return snug_dataset_unbatch(d[0], out, err);
}

static snug_status make_cached(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                               snug_error *err) {
    snug_dataset *d;
    SNUG_TRY(range_ten(e, 7, k, &d, err));
    SNUG_TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 3, .seed = 1}, &d, err));
    SNUG_TRY(snug_dataset_cache(d, NULL, &d, err));
    return snug_dataset_repeat(d, 3, out, err);
}

static snug_status make_range(void *ctx, const snug_element *in, snug_dataset **out,
                              snug_error *err) {
    snug_dataset *d;
    const int64_t n = *(const int64_t *)in->part[0].data;
    SNUG_TRY(snug_dataset_range(ctx, n * 10, n * 10 + n, 1, &d, err));
    return snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 9, .seed = 2}, out, err);
}

static snug_status make_interleaved(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                                    snug_error *err) {
    snug_dataset *d;
    const snug_expander f = {
        .ctx = e, .spec = {.n = 1, .type = {{.dtype = SNUG_I64}}}, .make = make_range};
    SNUG_TRY(snug_dataset_range(e, 0, 6, 1, &d, err));
    SNUG_TRY(snug_dataset_interleave(
        d, &f, &(snug_interleave){.cycle = 3, .block = 2, .workers = k->workers}, &d, err));
    SNUG_TRY(snug_dataset_repeat(d, 2, &d, err));
    SNUG_TRY(map_ten(d, k, &d, err));
    return snug_dataset_prefetch(d, k->depth, out, err);
}

static snug_status make_chosen(snug_engine *e, const sn_knobs *k, snug_dataset **out,
                               snug_error *err) {
    snug_dataset *d[2];
    const double weights[] = {1, 2};
    SNUG_TRY(range_ten(e, 5, k, &d[0], err));
    const snug_status status = range_ten(e, 5, k, &d[1], err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d[0]);
        return status;
    }
    SNUG_TRY(snug_dataset_choose(d, 2, &(snug_choice){.weights = weights, .seed = 4}, &d[0], err));
    return snug_dataset_repeat(d[0], 2, out, err);
}

snug_status sn_pipeline(snug_engine *e, int which, const sn_knobs *k, snug_dataset **out,
                        snug_error *err) {
    static snug_status (*const make[])(snug_engine *, const sn_knobs *, snug_dataset **,
                                       snug_error *) = {
        make_batches, make_shuffled, make_stream_shuffled, make_filtered, make_cut,
        make_zipped,  make_cached,   make_interleaved,     make_chosen,
    };
    *out = NULL;
    if ((size_t)which >= sizeof make / sizeof *make)
        return SNUG_OK;
    return make[which](e, k, out, err);
}
