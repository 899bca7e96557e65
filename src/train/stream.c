/* stream.c: a dataset as data of a pass (stream.h).
 *
 * Invariants:
 * 1. Feeds read `now`, the batch of the step that runs; it is dropped when the next is asked for.
 * 2. Without a prefetch, a batch over random access is never assembled: the step's input, or a
 * slice of it, is filled from the source.
 * 3. Every batch has rows of the first one's shapes; its number of rows may differ.
 * 4. The batch after it may be asked for while the step runs; the error of that is kept for who
 * asks for it in turn. */
#include "train/stream.h"

#include "data/batch.h"
#include "data/iterator.h"
#include "memory/pool.h"
#include "memory/team.h"

#include <string.h>

/* Of a budget, what pipelines get that nobody gave a limit. */
#define BUDGET_PART 8
/* Rows of a batch whose numbers are kept instead of it. */
#define MOST_LOOSE 65536

/* Assembled, or as numbers of rows. */
typedef struct {
    snug_element element;
    int64_t *index;
    int64_t n_index;
} stream_batch;

struct sn_stream {
    snug_engine *engine;
    snug_dataset *dataset;
    snug_iterator *iterator;
    int (*asked)(void *ctx);
    void *asked_ctx;
    stream_batch now, next;
    bool has_next; /* next was asked for, and this came of it: */
    snug_status came;
    snug_error why;
    bool looks_ahead; /* feeds read it */
    /* Loose batches: numbers of rows of `rows_of`, which go straight into the step's input. */
    const snug_dataset *rows_of; /* NULL: batches are assembled */
    int64_t *indices;            /* of now and next, `size` each */
    int64_t size;
    bool waiting; /* the batch was not given to a step yet */
    int64_t batch;
    int64_t wait_ns;
    bool set_limit;
    int n_parts;
    snug_data data;
    snug_feed *feeds[SNUG_MAX_PARTS];
    struct part {
        sn_stream *stream;
        int index;
    } parts[SNUG_MAX_PARTS];
};

static const stream_batch *batch_read(const sn_stream *s) {
    return s->looks_ahead ? &s->next : &s->now;
}

/* Rows of one part by their numbers. */
static snug_status fill_loose(const struct part *p, int64_t first, int64_t n, const snug_view *dst,
                              snug_error *err) {
    const sn_stream *s = p->stream;
    const stream_batch *b = batch_read(s);
    sn_target to = {.n = s->rows_of->spec.n};
    to.part[p->index].data = dst->data;
    to.part[p->index].type = s->rows_of->spec.type[p->index];
    to.part[p->index].type.dtype = dst->type.dtype;
    to.part[p->index].row_bytes = n > 0 ? dst->bytes / (size_t)n : 0;
    return sn_stage_gather(s->rows_of, b->index + first, n, &to, 0, err);
}

static snug_status fill_rows(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                             snug_error *err) {
    const struct part *p = ctx;
    if (p->stream->rows_of)
        return fill_loose(p, first, n, dst, err);
    const snug_datum *d = &batch_read(p->stream)->element.part[p->index];
    const size_t count = (size_t)sn_type_span(&d->type, 1, d->type.rank);
    const char *from =
        (const char *)d->data + (size_t)first * count * snug_dtype_bytes(d->type.dtype);
    const size_t bytes = (size_t)n * count * snug_dtype_bytes(d->type.dtype);
    if (d->type.dtype != dst->type.dtype)
        return sn_convert(d->type.dtype, from, dst->type.dtype, dst->data, (size_t)n * count, err);
    sn_team_copy(sn_team_of(p->stream->engine), dst->data, from, bytes);
    return SNUG_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */
static snug_status check_batch(const sn_stream *s, const stream_batch *b, int64_t *rows,
                               snug_error *err) {
    const snug_element *e = &b->element;
    if (s->rows_of) {
        *rows = b->n_index;
        return SNUG_OK;
    }
    for (int i = 0; i < s->n_parts; i++) {
        const snug_type *t = &e->part[i].type;
        char text[192];
        if (e->part[i].is_text || t->rank < 1)
            return sn_fail(err, SNUG_E_SHAPE,
                           "part %d of the dataset is %s%s; a model takes batches of numbers: add "
                           "a batch stage",
                           i, e->part[i].is_text ? "text " : "",
                           snug_type_print(t, text, sizeof text));
        if (i > 0 && t->dims[0] != *rows)
            return sn_fail(
                err, SNUG_E_DATA,
                "part %d of a batch has %lld rows, part 0 has %lld; is there a batch stage?", i,
                (long long)t->dims[0], (long long)*rows);
        *rows = t->dims[0];
        if (!s->feeds[i])
            continue;
        snug_type want = *snug_feed_type(s->feeds[i]);
        want.dims[0] = *rows;
        if (want.dtype != t->dtype || !sn_dims_equal(&want, t))
            return sn_fail(err, SNUG_E_SHAPE,
                           "part %d of a batch is %s; rows of the first were "
                           "others",
                           i, snug_type_print(t, text, sizeof text));
    }
    return SNUG_OK;
}

static snug_status pull_loose(sn_stream *s, stream_batch *to, snug_error *err) {
    sn_cursor *batch = s->iterator->cursor;
    const sn_batch *b = batch->stage->ctx;
    SNUG_TRY(sn_iterator_begin(s->iterator, err));
    SNUG_TRY(sn_cursor_draw(batch->before[0], to->index, s->size, &to->n_index, err));
    if (to->n_index == 0 || (to->n_index < s->size && b->drop_remainder))
        return sn_end(err);
    batch->given++;
    return SNUG_OK;
}

static snug_status pull_into(sn_stream *s, stream_batch *to, snug_error *err) {
    snug_element_drop(&to->element);
    snug_iterator_set_interrupt(s->iterator, s->asked, s->asked_ctx);
    return s->rows_of ? pull_loose(s, to, err) : snug_iterator_next(s->iterator, &to->element, err);
}

static snug_status pull(sn_stream *s, snug_error *err) {
    const int64_t start = sn_now_ns();
    const snug_status status = pull_into(s, &s->now, err);
    s->wait_ns += sn_now_ns() - start;
    return status;
}

/* What was looked at becomes the batch of now. */
static snug_status take_next(sn_stream *s, snug_error *err) {
    const stream_batch now = s->now;
    s->has_next = false;
    if (s->came != SNUG_OK) {
        if (err)
            *err = s->why;
        return s->came;
    }
    s->now = s->next;
    s->next = now;
    snug_element_drop(&s->next.element);
    return SNUG_OK;
}

snug_status sn_stream_next(sn_stream *s, int64_t *rows, snug_error *err) {
    do {
        if (s->has_next)
            SNUG_TRY(take_next(s, err));
        else if (!s->waiting)
            SNUG_TRY(pull(s, err));
        s->waiting = false;
        SNUG_TRY(check_batch(s, &s->now, rows, err));
    } while (*rows == 0);
    return SNUG_OK;
}

bool sn_stream_may_look(const sn_stream *s) {
    return !s->dataset->serial;
}

bool sn_stream_look(sn_stream *s, int64_t *rows) {
    s->came = pull_into(s, &s->next, &s->why);
    s->has_next = true;
    s->looks_ahead =
        s->came == SNUG_OK && check_batch(s, &s->next, rows, NULL) == SNUG_OK && *rows > 0;
    return s->looks_ahead;
}

void sn_stream_look_back(sn_stream *s) {
    s->looks_ahead = false;
}

snug_status sn_stream_restart(sn_stream *s, snug_error *err) {
    if (s->waiting)
        return SNUG_OK;
    s->has_next = false;
    snug_element_drop(&s->next.element);
    snug_iterator *it;
    SNUG_TRY(snug_iterator_create(s->dataset, &it, err));
    snug_iterator_destroy(s->iterator);
    s->iterator = it;
    return SNUG_OK;
}

/* --- what is known beforehand ----------------------------------------------------------------- */
/* The batch stage that gives the elements, behind stages that leave their rows as they are. */
static const snug_dataset *last_batch(const snug_dataset *d, int64_t *size) {
    while (strcmp(d->kind->name, "prefetch") == 0)
        d = d->before[0];
    return sn_stage_is_batch(d, size) ? d : NULL;
}

int64_t sn_stream_rows(const sn_stream *s) {
    int64_t size = 0;
    const snug_dataset *batch = last_batch(s->dataset, &size);
    if (!batch || batch->before[0]->cardinality < 0 || size != s->batch)
        return -1;
    const int64_t n = batch->before[0]->cardinality;
    return batch->cardinality * size < n ? batch->cardinality * size : n; /* drop_remainder */
}

int64_t sn_stream_steps(const sn_stream *s) {
    return s->dataset->cardinality < 0 ? -1 : s->dataset->cardinality;
}

int64_t sn_stream_batch(const sn_stream *s) {
    return s->batch;
}

const snug_data *sn_stream_data(const sn_stream *s) {
    return &s->data;
}

double sn_stream_wait_seconds(const sn_stream *s) {
    return (double)s->wait_ns * 1e-9;
}

void sn_stream_set_interrupt(sn_stream *s, int (*asked)(void *ctx), void *ctx) {
    s->asked = asked;
    s->asked_ctx = ctx;
}

/* --- life ------------------------------------------------------------------------------------- */
static snug_status make_feeds(sn_stream *s, snug_error *err) {
    for (int i = 0; i < s->n_parts; i++) {
        const snug_type type = s->rows_of
                                   ? sn_type_with_rows(&s->rows_of->spec.type[i], s->now.n_index)
                                   : s->now.element.part[i].type;
        s->parts[i] = (struct part){s, i};
        SNUG_TRY(
            sn_feed_create(s->engine, &type, &s->parts[i], fill_rows, NULL, &s->feeds[i], err));
    }
    return SNUG_OK;
}

/* Inputs, targets, weights. For predict inputs are enough, and what follows them is not looked at.
 */
static snug_status share_parts(sn_stream *s, const snug_model *m, sn_step_mode mode,
                               snug_error *err) {
    const int n_x = (int)m->network->n_inputs, n_y = (int)m->network->n_outputs;
    const int n = s->rows_of ? s->rows_of->spec.n : s->now.element.n, n_w = n - n_x - n_y;
    if (mode == SN_STEP_PREDICT && n >= n_x) {
        s->n_parts = n_x;
        s->data = (snug_data){.x = s->feeds, .n_x = n_x};
        return SNUG_OK;
    }
    if (mode != SN_STEP_PREDICT && (n_w == 0 || n_w == 1 || n_w == n_y)) {
        s->n_parts = n;
        s->data = (snug_data){.x = s->feeds,
                              .n_x = n_x,
                              .y = s->feeds + n_x,
                              .n_y = n_y,
                              .sample_weight = s->feeds + n_x + n_y,
                              .n_sample_weights = n_w};
        return SNUG_OK;
    }
    return sn_fail(
        err, SNUG_E_SHAPE, "elements of the dataset have %d parts; the model wants %d inputs%s", n,
        n_x, mode == SN_STEP_PREDICT ? "" : ", a target for each output, and weights or none");
}

static void limit_pipelines(sn_stream *s) {
    const size_t budget = snug_budget_bytes(s->engine);
    if (budget == 0 || sn_pool_limit(s->engine) != 0)
        return;
    sn_pool_set_limit(s->engine, budget / BUDGET_PART > 0 ? budget / BUDGET_PART : 1);
    s->set_limit = true;
}

static size_t index_bytes(const sn_stream *s) {
    return 2 * (size_t)s->size * sizeof *s->indices;
}

/* Rows of numbers, all of one shape, that can be asked for by number. */
static snug_status find_loose_rows(sn_stream *s, snug_error *err) {
    void *block;
    if (!sn_stage_is_batch(s->dataset, &s->size) || s->size > MOST_LOOSE ||
        !sn_spec_is_fixed(&s->dataset->before[0]->spec))
        return SNUG_OK;
    const snug_dataset *from = sn_stage_drawn_from(s->dataset->before[0]);
    for (int i = 0; from && i < from->spec.n; i++)
        if (from->spec.type[i].rank >= SNUG_MAX_RANK)
            from = NULL;
    if (!from)
        return SNUG_OK;
    SNUG_TRY(sn_alloc(s->engine, SN_MEM_INPUT, index_bytes(s), &block, err));
    s->indices = s->now.index = block;
    s->next.index = s->indices + s->size;
    s->rows_of = from;
    return SNUG_OK;
}

/* What a pipeline cannot do without counts in the plan even if it is more than its share: a batch
 * in use, for a GPU the next that is on its way there, one that waits, one that is being made, and
 * elements at work. */
static void widen_limit(sn_stream *s, bool ahead) {
    size_t batch = 0;
    for (int i = 0; i < s->now.element.n; i++)
        batch += s->now.element.part[i].bytes;
    const size_t at_work = 6 * (size_t)snug_engine_threads(s->engine) * (batch / (size_t)s->batch);
    const size_t least = (ahead ? 4 : 3) * batch + at_work;
    if (s->set_limit && sn_pool_limit(s->engine) < least)
        sn_pool_set_limit(s->engine, least);
}

static snug_status begin(sn_stream *s, const snug_model *m, sn_step_mode mode, snug_error *err) {
    limit_pipelines(s);
    SNUG_TRY(find_loose_rows(s, err));
    SNUG_TRY(snug_iterator_create(s->dataset, &s->iterator, err));
    snug_status status = pull(s, err);
    if (status == SNUG_E_END)
        return sn_fail(err, SNUG_E_DATA, "the dataset has no batch; at least one is needed");
    SNUG_TRY(status);
    SNUG_TRY(share_parts(s, m, mode, err));
    SNUG_TRY(check_batch(s, &s->now, &s->batch, err));
    if (s->batch < 1)
        return sn_fail(err, SNUG_E_DATA, "the first batch of the dataset has no rows");
    widen_limit(s, sn_gpu_of(m->target) && sn_stream_may_look(s));
    s->waiting = true;
    return make_feeds(s, err);
}

snug_status sn_stream_create(snug_model *m, snug_dataset *d, sn_step_mode mode, sn_stream **out,
                             snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(m->engine, SN_MEM_INPUT, sizeof(sn_stream), &block, err));
    sn_stream *s = block;
    s->engine = m->engine;
    s->dataset = d;
    snug_dataset_hold(d);
    const snug_status status = begin(s, m, mode, err);
    if (status == SNUG_OK)
        *out = s;
    else
        sn_stream_destroy(s);
    return status;
}

void sn_stream_destroy(sn_stream *s) {
    if (!s)
        return;
    snug_engine *e = s->engine;
    for (int i = 0; i < SNUG_MAX_PARTS; i++)
        snug_feed_destroy(s->feeds[i]);
    snug_element_drop(&s->now.element);
    snug_element_drop(&s->next.element);
    snug_iterator_destroy(s->iterator);
    snug_dataset_drop(s->dataset);
    sn_free(e, SN_MEM_INPUT, s->indices, s->indices ? index_bytes(s) : 0);
    if (s->set_limit)
        sn_pool_set_limit(e, 0);
    sn_free(e, SN_MEM_INPUT, s, sizeof *s);
}
