/* stream.c: a dataset as data of a pass (stream.h).
 *
 * Invariants:
 * 1. Feeds read `now`, the batch of the step that runs; it is dropped when the next is asked for.
 * 2. Without a prefetch, a batch over random access is never assembled: the step's input, or a
 * slice of it, is filled from the source.
 * 3. Every batch has rows of the first one's shapes; its number of rows may differ.
 * 4. The batch after it may be asked for while the step runs; the error of that is kept for who
 * asks for it in turn.
 * 5. With a budget and no limit on pipelines, the first batch is made by as little as it can be,
 *    one element after another: what that took is what the pipeline cannot do without. Nothing is
 *    made ahead before the plans are: they count what is there. */
#include "train/stream.h"

#include "base/size.h"
#include "data/batch.h"
#include "data/iterator.h"
#include "data/element_store.h"
#include "memory/pool.h"
#include "memory/team.h"

#include <stdio.h>
#include <string.h>

/* Of a budget, what pipelines get at most beyond what they cannot do without: batches and elements
 * ahead of who asks. */
#define AHEAD_PART    8
#define BATCHES_AHEAD 3
/* Of what the smallest step leaves, what stages keep in memory that have a file for the rest. */
#define SPILL_PART 4
/* Elements after the first batch may take a little more: this part, and so many bytes at most. */
#define WORK_PART   8
#define MOST_MARGIN ((size_t)256 << 10)
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
    bool waiting;  /* the batch was not given to a step yet */
    bool is_fresh; /* nothing was asked of the iterator */
    int64_t batch;
    int64_t wait_ns;
    bool sets_limit;          /* of pipelines, by what this one needs: */
    size_t least;             /* that it cannot do without */
    size_t want;              /* that it makes use of */
    size_t work;              /* of least: what making a batch takes beside it */
    size_t batch_bytes, kept; /* of least, too: in one batch, and in shuffle and cache */
    bool is_least;            /* it gets no more than that */
    sn_step_mode mode;
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
        s->waiting = s->is_fresh = false;
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

/* The first batch would wait beside the steps of others until it is asked for. */
snug_status sn_stream_put_back(sn_stream *s, snug_error *err) {
    snug_element_drop(&s->now.element);
    s->waiting = false;
    s->is_fresh = true;
    return sn_iterator_rewind(s->iterator, err);
}

snug_status sn_stream_restart(sn_stream *s, snug_error *err) {
    if (s->waiting || s->is_fresh)
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
    while (d->kind->hands_on)
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

/* Inputs, targets, weights. For predict inputs are enough, and what follows them is not looked
 * at. */
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

static size_t index_bytes(const sn_stream *s) {
    return 2 * (size_t)s->size * sizeof *s->indices;
}

/* Rows of numbers, all of one shape, that can be asked for by number; NULL: none. */
static const snug_dataset *loose_rows(const snug_dataset *d, int64_t *size) {
    if (!sn_stage_is_batch(d, size) || *size > MOST_LOOSE || !sn_spec_is_fixed(&d->before[0]->spec))
        return NULL;
    const snug_dataset *from = sn_stage_drawn_from(d->before[0]);
    for (int i = 0; from && i < from->spec.n; i++)
        if (from->spec.type[i].rank >= SNUG_MAX_RANK)
            from = NULL;
    return from;
}

static snug_status find_loose_rows(sn_stream *s, snug_error *err) {
    void *block;
    const snug_dataset *from = loose_rows(s->dataset, &s->size);
    if (!from)
        return SNUG_OK;
    SNUG_TRY(sn_alloc(s->engine, SN_MEM_INPUT, index_bytes(s), &block, err));
    s->indices = s->now.index = block;
    s->next.index = s->indices + s->size;
    s->rows_of = from;
    return SNUG_OK;
}

/* --- what it needs ---------------------------------------------------------------------------- */
static bool hoards(const snug_dataset *d) {
    bool found = d->hoards;
    for (int i = 0; i < d->n_before && !found; i++)
        found = hoards(d->before[i]);
    return found;
}

/* What stages may keep in memory: what the smallest step leaves, and a part of that where there is
 * a file for the rest. What making a batch takes beside is known when one was made: then the step
 * is judged with it. */
static snug_status share_stores(const sn_stream *s, snug_model *m, snug_error *err) {
    int64_t size = 0;
    const bool spills = sn_engine_spill_folder(s->engine) != NULL;
    size_t floor = 0;
    if (!hoards(s->dataset))
        return SNUG_OK;
    if (!last_batch(s->dataset, &size))
        size = 32;
    const snug_plan_request request = {.batch = size, .train = s->mode != SN_STEP_PREDICT};
    SNUG_TRY(sn_model_floor(m, &request, SN_LOOK_PLAIN, &floor, err));
    const size_t budget = snug_budget_bytes(s->engine), left = budget > floor ? budget - floor : 0;
    const size_t room = left / (spills ? SPILL_PART : 1);
    sn_pool_set_store(s->engine, room > 0 ? room : 1);
    return SNUG_OK;
}

/* By what the first batch took; before: what was taken when it was asked for. */
static void measure(sn_stream *s, size_t before, bool ahead) {
    size_t batch = 0, n_kept;
    const size_t kept = sn_pool_kept(s->engine, &n_kept), peak = sn_pool_peak(s->engine);
    for (int i = 0; i < s->now.element.n; i++)
        batch += sn_pool_rounded(s->now.element.part[i].bytes + 64);
    const size_t took = peak > before ? peak - before : 0, still = kept + batch;
    const size_t n_threads = (size_t)snug_engine_threads(s->engine);
    s->work = took > still ? took - still : 0;
    s->work += s->work / WORK_PART < MOST_MARGIN ? s->work / WORK_PART : MOST_MARGIN;
    s->batch_bytes = batch;
    s->kept = kept;
    s->least =
        still + s->work + (ahead ? batch : 0) +
        sn_store_growth(s->dataset, sn_pool_store(s->engine, sn_engine_spill_folder(s->engine)));
    s->want = s->least + BATCHES_AHEAD * batch + n_threads * s->work;
}

void sn_streams_book(const sn_stream *a, const sn_stream *b, bool together) {
    const sn_stream *const both[2] = {a, b};
    size_t least = 0, want = 0, work = 0;
    for (int i = 0; i < 2; i++) {
        const sn_stream *s = both[i];
        if (!s || !s->sets_limit)
            continue;
        const size_t more = snug_budget_bytes(s->engine) / AHEAD_PART, ahead = s->want - s->least;
        const size_t l = s->least, w = l + (s->is_least ? 0 : ahead < more ? ahead : more);
        least = together ? least + l : l > least ? l : least;
        want = together ? want + w : w > want ? w : want;
        work = s->work > work ? s->work : work;
    }
    if (!a || !a->sets_limit)
        return;
    sn_pool_set_limit(a->engine, want > 0 ? want : 1);
    sn_pool_set_work(a->engine, work);
}

void sn_stream_start(const sn_stream *s) {
    if (s && s->sets_limit)
        sn_pool_set_rest(s->engine, false);
}

snug_status sn_stream_explain(const sn_stream *s, snug_status status, snug_error *err) {
    const size_t n = err ? strlen(err->text) : 0;
    char all[24], batch[24], work[24], kept[24];
    if (n == 0 || status != SNUG_E_BUDGET || !s || !s->sets_limit || s->least == 0)
        return status;
    snprintf(err->text + n, sizeof err->text - n,
             "; the input pipeline has %s of it (a batch of %s, %s to make it, %s in shuffle and "
             "cache): a smaller batch, smaller elements or a smaller buffer take less",
             snug_bytes_print(s->least, all, sizeof all),
             snug_bytes_print(s->batch_bytes, batch, sizeof batch),
             snug_bytes_print(s->work, work, sizeof work),
             snug_bytes_print(s->kept, kept, sizeof kept));
    return status;
}

/* --- smaller ---------------------------------------------------------------------------------- */
static void clear_batches(sn_stream *s) {
    for (int i = 0; i < SNUG_MAX_PARTS; i++) {
        snug_feed_destroy(s->feeds[i]);
        s->feeds[i] = NULL;
    }
    snug_element_drop(&s->now.element);
    snug_element_drop(&s->next.element);
    snug_iterator_destroy(s->iterator);
    s->iterator = NULL;
    sn_free(s->engine, SN_MEM_INPUT, s->indices, s->indices ? index_bytes(s) : 0);
    s->indices = NULL;
    s->rows_of = NULL;
}

/* Without the prefetch: rows go straight into the step's input, no batch is made. */
static bool may_loosen(const sn_stream *s) {
    int64_t size;
    const snug_dataset *batch = last_batch(s->dataset, &size);
    return s->sets_limit && batch && batch != s->dataset && loose_rows(batch, &size);
}

static snug_status begin(sn_stream *s, const snug_model *m, snug_error *err);

static snug_status loosen(sn_stream *s, const snug_model *m, snug_error *err) {
    int64_t size;
    snug_dataset *batch = (snug_dataset *)last_batch(s->dataset, &size);
    clear_batches(s);
    sn_dataset_forget_iterator(batch); /* the next one is the first, with its order */
    snug_dataset_hold(batch);
    snug_dataset_drop(s->dataset);
    s->dataset = batch;
    return begin(s, m, err);
}

snug_status sn_stream_shrink(sn_stream *s, const snug_model *m, bool *done, snug_error *err) {
    *done = false;
    if (!s || !s->sets_limit)
        return SNUG_OK;
    if (!s->is_least) {
        *done = s->is_least = true;
        return SNUG_OK;
    }
    if (!may_loosen(s))
        return SNUG_OK;
    *done = true;
    return loosen(s, m, err);
}

/* --- the first batch -------------------------------------------------------------------------- */
static snug_status begin(sn_stream *s, const snug_model *m, snug_error *err) {
    const size_t before = sn_pool_taken(s->engine);
    if (s->sets_limit) {
        sn_pool_set_rest(s->engine, true);
        sn_pool_set_limit(s->engine, 1);
        sn_pool_forget_peak(s->engine);
    }
    SNUG_TRY(find_loose_rows(s, err));
    SNUG_TRY(snug_iterator_create(s->dataset, &s->iterator, err));
    snug_status status = pull(s, err);
    if (status == SNUG_E_BUDGET && may_loosen(s))
        return loosen(s, m, err);
    if (status == SNUG_E_END)
        return sn_fail(err, SNUG_E_DATA, "the dataset has no batch; at least one is needed");
    SNUG_TRY(status);
    SNUG_TRY(share_parts(s, m, s->mode, err));
    SNUG_TRY(check_batch(s, &s->now, &s->batch, err));
    if (s->batch < 1)
        return sn_fail(err, SNUG_E_DATA, "the first batch of the dataset has no rows");
    s->waiting = true;
    if (s->sets_limit) {
        measure(s, before, m->target->apart && sn_stream_may_look(s));
        if (may_loosen(s) && s->least > snug_budget_bytes(s->engine) / AHEAD_PART)
            return loosen(s, m, err); /* memory is worth more to the step than a batch ahead */
        sn_streams_book(s, NULL, false);
    }
    return make_feeds(s, err);
}

snug_status sn_stream_create(snug_model *m, snug_dataset *d, sn_step_mode mode,
                             const sn_stream *beside, sn_stream **out, snug_error *err) {
    const bool free = sn_pool_limit(m->engine) == 0 || (beside && beside->sets_limit);
    void *block;
    SNUG_TRY(sn_alloc_zero(m->engine, SN_MEM_INPUT, sizeof(sn_stream), &block, err));
    sn_stream *s = block;
    s->engine = m->engine;
    s->dataset = d;
    s->mode = mode;
    s->sets_limit = snug_budget_bytes(m->engine) > 0 && free;
    snug_dataset_hold(d);
    snug_status status = s->sets_limit && !beside ? share_stores(s, m, err) : SNUG_OK;
    if (status == SNUG_OK)
        status = begin(s, m, err);
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
    clear_batches(s);
    snug_dataset_drop(s->dataset);
    if (s->sets_limit) {
        sn_pool_set_rest(e, false);
        sn_pool_set_limit(e, 0);
        sn_pool_set_work(e, 0);
        sn_pool_set_store(e, 0);
    }
    sn_free(e, SN_MEM_INPUT, s, sizeof *s);
}
