/* flow.c: which elements, how often and in which order: take, skip, repeat, shard, enumerate,
 * zip, choose. None of them keeps an element.
 *
 * Invariants:
 * 1. Every stage here goes forward by seek where the one before it can: skipping costs no work of a
 *    map.
 * 2. repeat opens what is before it when its turn comes. */
#include "data/stage.h"

#include "base/rng.h"
#include "base/size.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

static int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- take and skip ---------------------------------------------------------------------------- */
typedef struct {
    int64_t n; /* < 0: all */
} number;

static int64_t left_to_take(const sn_cursor *c, int64_t n) {
    const number *take = c->stage->ctx;
    return take->n < 0 ? n : at_most(n, take->n - c->given);
}

static snug_status next_taken(sn_cursor *c, snug_element *out, snug_error *err) {
    return left_to_take(c, 1) < 1 ? sn_end(err) : sn_cursor_next(c->before[0], out, err);
}

static snug_status seek_taken(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    return sn_cursor_seek(c->before[0], left_to_take(c, n), done, err);
}

static snug_status fill_taken(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                              int64_t *done, snug_error *err) {
    return sn_cursor_fill(c->before[0], to, first, left_to_take(c, n), done, err);
}

static snug_status draw_taken(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                              snug_error *err) {
    return sn_cursor_draw(c->before[0], index, left_to_take(c, n), done, err);
}

static snug_status at_taken(const snug_dataset *d, int64_t index, snug_element *out,
                            snug_error *err) {
    return d->before[0]->kind->at(d->before[0], index, out, err);
}

static const sn_stage_class take_class = {.name = "take",
                                          .next = next_taken,
                                          .seek = seek_taken,
                                          .fill = fill_taken,
                                          .draw = draw_taken,
                                          .at = at_taken};

static snug_status open_skip(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(bool), err);
}

static snug_status skip_first(sn_cursor *c, snug_error *err) {
    bool *skipped = c->ctx;
    const number *skip = c->stage->ctx;
    int64_t done;
    if (*skipped)
        return SNUG_OK;
    SNUG_TRY(sn_cursor_seek(c->before[0], skip->n < 0 ? INT64_MAX : skip->n, &done, err));
    *skipped = true;
    return SNUG_OK;
}

static snug_status next_skipped(sn_cursor *c, snug_element *out, snug_error *err) {
    SNUG_TRY(skip_first(c, err));
    return sn_cursor_next(c->before[0], out, err);
}

static snug_status seek_skipped(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    SNUG_TRY(skip_first(c, err));
    return sn_cursor_seek(c->before[0], n, done, err);
}

static snug_status fill_skipped(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                int64_t *done, snug_error *err) {
    SNUG_TRY(skip_first(c, err));
    return sn_cursor_fill(c->before[0], to, first, n, done, err);
}

static snug_status at_skipped(const snug_dataset *d, int64_t index, snug_element *out,
                              snug_error *err) {
    const number *skip = d->ctx;
    return d->before[0]->kind->at(d->before[0], index + skip->n, out, err);
}

static const sn_stage_class skip_class = {.name = "skip",
                                          .open = open_skip,
                                          .next = next_skipped,
                                          .seek = seek_skipped,
                                          .fill = fill_skipped,
                                          .at = at_skipped};

static snug_status create_numbered(const sn_stage_class *kind, snug_dataset *d, int64_t n,
                                   snug_dataset **out, snug_error *err) {
    snug_dataset *made = NULL;
    SNUG_TRY(sn_stage_after(kind, d, sizeof(number), &made, err));
    *(number *)made->ctx = (number){n};
    *out = made;
    return SNUG_OK;
}

snug_status snug_dataset_take(snug_dataset *d, int64_t n, snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    SNUG_TRY(create_numbered(&take_class, d, n, out, err));
    const int64_t had = (*out)->before[0]->cardinality;
    if (n == 0 || (n > 0 && had == SNUG_ENDLESS))
        (*out)->cardinality = n;
    else if (n > 0 && had >= 0)
        (*out)->cardinality = at_most(n, had);
    (*out)->random = (*out)->before[0]->random;
    return SNUG_OK;
}

snug_status snug_dataset_skip(snug_dataset *d, int64_t n, snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    SNUG_TRY(create_numbered(&skip_class, d, n, out, err));
    const int64_t had = (*out)->before[0]->cardinality;
    if (had >= 0)
        (*out)->cardinality = n < 0 || n > had ? 0 : had - n;
    (*out)->random = (*out)->before[0]->random && n >= 0;
    return SNUG_OK;
}

/* --- repeat ----------------------------------------------------------------------------------- */
typedef struct {
    int64_t passes;  /* begun and ended */
    int64_t in_pass; /* given in the one now */
    bool ended;
} repetition;

static snug_status open_repeat(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(repetition), err);
}

static bool all_passes_done(const sn_cursor *c, const repetition *r) {
    const number *times = c->stage->ctx;
    return r->ended || (times->n >= 0 && r->passes >= times->n);
}

/* A pass is over. One that gave nothing will not give more the next time. */
static void end_pass(sn_cursor *c, repetition *r) {
    sn_cursor_close(c->before[0]);
    c->before[0] = NULL;
    c->place->fact = r->in_pass;
    r->ended = r->in_pass == 0;
    r->passes++;
    r->in_pass = 0;
}

static snug_status begin_pass(sn_cursor *c, snug_error *err) {
    return c->before[0] ? SNUG_OK : sn_cursor_open(c->place->before[0], &c->before[0], err);
}

static snug_status next_repeated(sn_cursor *c, snug_element *out, snug_error *err) {
    repetition *r = c->ctx;
    while (!all_passes_done(c, r)) {
        SNUG_TRY(begin_pass(c, err));
        const snug_status status = sn_cursor_next(c->before[0], out, err);
        r->in_pass += status == SNUG_OK;
        if (status != SNUG_E_END)
            return status;
        end_pass(c, r);
    }
    return sn_end(err);
}

static snug_status fill_repeated(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                 int64_t *done, snug_error *err) {
    repetition *r = c->ctx;
    *done = 0;
    while (*done < n && !all_passes_done(c, r)) {
        int64_t got;
        SNUG_TRY(begin_pass(c, err));
        SNUG_TRY(sn_cursor_fill(c->before[0], to, first + *done, n - *done, &got, err));
        const bool over = got < n - *done;
        r->in_pass += got;
        *done += got;
        if (over)
            end_pass(c, r);
    }
    return SNUG_OK;
}

static snug_status draw_repeated(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                                 snug_error *err) {
    repetition *r = c->ctx;
    *done = 0;
    while (*done < n && !all_passes_done(c, r)) {
        int64_t got;
        SNUG_TRY(begin_pass(c, err));
        SNUG_TRY(sn_cursor_draw(c->before[0], index + *done, n - *done, &got, err));
        const bool over = got < n - *done;
        r->in_pass += got;
        *done += got;
        if (over)
            end_pass(c, r);
    }
    return SNUG_OK;
}

/* Whether each pass opens each stage before it exactly once. */
static bool opens_plainly(const snug_dataset *d) {
    bool plain = !d->kind->opens_before;
    for (int i = 0; plain && i < d->n_before; i++)
        plain = opens_plainly(d->before[i]);
    return plain;
}

static void count_opens(sn_station *p, uint64_t n) {
    p->opens += n;
    for (int i = 0; i < p->stage->n_before; i++)
        count_opens(p->before[i], n);
}

/* Passes of known length are counted, not run. */
static int64_t leave_out_passes(sn_cursor *c, int64_t n) {
    const number *times = c->stage->ctx;
    const snug_dataset *before = c->stage->before[0];
    repetition *r = c->ctx;
    const int64_t length = before->cardinality > 0 ? before->cardinality : c->place->fact;
    if (c->before[0] || length < 1 || !opens_plainly(before))
        return 0;
    int64_t k = n / length;
    if (times->n >= 0)
        k = at_most(k, times->n - r->passes);
    r->passes += k;
    count_opens(c->place->before[0], (uint64_t)k);
    return k * length;
}

static snug_status seek_repeated(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    repetition *r = c->ctx;
    *done = 0;
    while (*done < n && !all_passes_done(c, r)) {
        int64_t got;
        *done += leave_out_passes(c, n - *done);
        if (*done >= n || all_passes_done(c, r))
            break;
        SNUG_TRY(begin_pass(c, err));
        SNUG_TRY(sn_cursor_seek(c->before[0], n - *done, &got, err));
        const bool over = got < n - *done;
        r->in_pass += got;
        *done += got;
        if (over)
            end_pass(c, r);
    }
    return SNUG_OK;
}

static const sn_stage_class repeat_class = {.name = "repeat",
                                            .open = open_repeat,
                                            .next = next_repeated,
                                            .seek = seek_repeated,
                                            .fill = fill_repeated,
                                            .draw = draw_repeated,
                                            .opens_before = true};

snug_status snug_dataset_repeat(snug_dataset *d, int64_t times, snug_dataset **out,
                                snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    SNUG_TRY(create_numbered(&repeat_class, d, times, out, err));
    const int64_t had = (*out)->before[0]->cardinality;
    int64_t all = SNUG_UNKNOWN;
    if (had == 0 || times == 0)
        all = 0;
    else if (times < 0)
        all = had == SNUG_UNKNOWN ? SNUG_UNKNOWN : SNUG_ENDLESS;
    else if (had == SNUG_ENDLESS)
        all = SNUG_ENDLESS;
    else if (had > 0 && !sn_i64_mul(had, times, &all))
        all = INT64_MAX;
    (*out)->cardinality = all;
    return SNUG_OK;
}

/* --- shard ------------------------------------------------------------------------------------ */
typedef struct {
    int64_t n, index;
} share;

/* Upstream elements before the cursor's k-th element from now is given, that one included. */
static int64_t to_ask(const sn_cursor *c, int64_t k) {
    const share *s = c->stage->ctx;
    int64_t all;
    const int64_t first = c->given == 0 ? s->index + 1 : s->n;
    if (k < 1)
        return 0;
    return sn_i64_mul(k - 1, s->n, &all) && sn_i64_add(all, first, &all) ? all : INT64_MAX;
}

static snug_status next_shared(sn_cursor *c, snug_element *out, snug_error *err) {
    const int64_t n = to_ask(c, 1) - 1;
    int64_t done;
    SNUG_TRY(sn_cursor_seek(c->before[0], n, &done, err));
    return done < n ? sn_end(err) : sn_cursor_next(c->before[0], out, err);
}

static snug_status seek_shared(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    const share *s = c->stage->ctx;
    const int64_t first = to_ask(c, 1);
    int64_t got;
    SNUG_TRY(sn_cursor_seek(c->before[0], to_ask(c, n), &got, err));
    *done = got < first ? 0 : (got - first) / s->n + 1;
    return SNUG_OK;
}

static snug_status at_shared(const snug_dataset *d, int64_t index, snug_element *out,
                             snug_error *err) {
    const share *s = d->ctx;
    return d->before[0]->kind->at(d->before[0], index * s->n + s->index, out, err);
}

static const sn_stage_class shard_class = {
    .name = "shard", .next = next_shared, .seek = seek_shared, .at = at_shared};

snug_status snug_dataset_shard(snug_dataset *d, int64_t n, int64_t index, snug_dataset **out,
                               snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    if (n < 1 || index < 0 || index >= n) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID,
                       "shard %" PRId64 " of %" PRId64 " is none; indices are 0 to n - 1", index,
                       n);
    }
    SNUG_TRY(sn_stage_after(&shard_class, d, sizeof(share), &made, err));
    *(share *)made->ctx = (share){n, index};
    const int64_t had = d->cardinality;
    if (had >= 0)
        made->cardinality = had > index ? (had - index - 1) / n + 1 : 0;
    made->random = d->random;
    *out = made;
    return SNUG_OK;
}

/* --- enumerate -------------------------------------------------------------------------------- */
/* The number stands in front of the other parts. */
static snug_status put_number(const snug_dataset *d, int64_t index, snug_element *e,
                              snug_error *err) {
    const number *start = d->ctx;
    const snug_type scalar = {.dtype = SNUG_I64};
    const int64_t value = (int64_t)((uint64_t)start->n + (uint64_t)index);
    snug_datum first;
    const snug_status status = snug_datum_create(d->engine, &scalar, &first, err);
    if (status != SNUG_OK) {
        snug_element_drop(e);
        return status;
    }
    memcpy(first.data, &value, sizeof value);
    memmove(e->part + 1, e->part, (size_t)e->n * sizeof *e->part);
    e->part[0] = first;
    e->n++;
    return SNUG_OK;
}

static snug_status next_numbered(sn_cursor *c, snug_element *out, snug_error *err) {
    SNUG_TRY(sn_cursor_next(c->before[0], out, err));
    return put_number(c->stage, c->given, out, err);
}

static snug_status seek_same(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    return sn_cursor_seek(c->before[0], n, done, err);
}

static snug_status at_numbered(const snug_dataset *d, int64_t index, snug_element *out,
                               snug_error *err) {
    SNUG_TRY(d->before[0]->kind->at(d->before[0], index, out, err));
    return put_number(d, index, out, err);
}

static const sn_stage_class enumerate_class = {
    .name = "enumerate", .next = next_numbered, .seek = seek_same, .at = at_numbered};

static snug_status check_parts(int n, snug_error *err) {
    if (n <= SNUG_MAX_PARTS)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "elements would have %d parts; there may be %d", n,
                   SNUG_MAX_PARTS);
}

snug_status snug_dataset_enumerate(snug_dataset *d, int64_t start, snug_dataset **out,
                                   snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    const snug_status status = check_parts(d ? d->spec.n + 1 : 0, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    SNUG_TRY(create_numbered(&enumerate_class, d, start, out, err));
    snug_spec *s = &(*out)->spec;
    memmove(s->type + 1, s->type, (size_t)s->n * sizeof *s->type);
    memmove(s->is_text + 1, s->is_text, (size_t)s->n * sizeof *s->is_text);
    s->type[0] = (snug_type){.dtype = SNUG_I64};
    s->is_text[0] = 0;
    s->n++;
    (*out)->random = (*out)->before[0]->random;
    return SNUG_OK;
}

/* --- zip -------------------------------------------------------------------------------------- */
static void append(snug_element *to, snug_element *from) {
    memcpy(to->part + to->n, from->part, (size_t)from->n * sizeof *to->part);
    to->n += from->n;
    from->n = 0;
}

static snug_status next_zipped(sn_cursor *c, snug_element *out, snug_error *err) {
    snug_status status = sn_cursor_next(c->before[0], out, err);
    for (int i = 1; i < c->stage->n_before && status == SNUG_OK; i++) {
        snug_element e;
        status = sn_cursor_next(c->before[i], &e, err);
        append(out, &e);
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

static snug_status seek_zipped(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    *done = n;
    for (int i = 0; i < c->stage->n_before; i++) {
        int64_t got;
        SNUG_TRY(sn_cursor_seek(c->before[i], n, &got, err));
        *done = at_most(*done, got);
    }
    return SNUG_OK;
}

static snug_status at_zipped(const snug_dataset *d, int64_t index, snug_element *out,
                             snug_error *err) {
    snug_status status = SNUG_OK;
    out->n = 0;
    for (int i = 0; i < d->n_before && status == SNUG_OK; i++) {
        snug_element e = {0};
        status = d->before[i]->kind->at(d->before[i], index, &e, err);
        append(out, &e);
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

/* Part by part: each source fills its own columns. */
static snug_status gather_zipped(const snug_dataset *d, const int64_t *index, int64_t n,
                                 const sn_target *to, int64_t first, snug_error *err) {
    int at = 0;
    for (int i = 0; i < d->n_before; i++) {
        sn_target part = {.n = d->before[i]->spec.n};
        bool wanted = false;
        for (int k = 0; k < part.n && at + k < to->n; k++) {
            part.part[k] = to->part[at + k];
            wanted = wanted || part.part[k].data;
        }
        if (wanted)
            SNUG_TRY(sn_stage_gather(d->before[i], index, n, &part, first, err));
        at += part.n;
    }
    return SNUG_OK;
}

static const sn_stage_class zip_class = {.name = "zip",
                                         .next = next_zipped,
                                         .seek = seek_zipped,
                                         .at = at_zipped,
                                         .gather = gather_zipped};

static int64_t shortest(snug_dataset *const *d, int n) {
    int64_t least = SNUG_ENDLESS;
    for (int i = 0; i < n; i++) {
        const int64_t have = d[i]->cardinality;
        if (have == SNUG_UNKNOWN || have == 0)
            return have;
        if (have >= 0 && (least == SNUG_ENDLESS || have < least))
            least = have;
    }
    return least;
}

static snug_status drop_given(snug_dataset *const *d, int n, snug_status status) {
    for (int i = 0; d && i < n; i++)
        snug_dataset_drop(d[i]);
    return status;
}

static bool all_there(snug_dataset *const *d, int n) {
    bool there = d && n > 0;
    for (int i = 0; there && i < n; i++)
        there = d[i] != NULL;
    return there;
}

snug_status snug_dataset_zip(snug_dataset *const *d, int n, snug_dataset **out, snug_error *err) {
    if (!all_there(d, n) || !out)
        return drop_given(d, n, sn_fail(err, SNUG_E_INVALID, "zip: a dataset or out is NULL"));
    int parts = 0;
    snug_dataset *made = NULL;
    for (int i = 0; i < n; i++)
        parts += d[i]->spec.n;
    const snug_status status = check_parts(parts, err);
    if (status != SNUG_OK)
        return drop_given(d, n, status);
    SNUG_TRY(sn_stage_create(&zip_class, d[0]->engine, d, n, &made, err));
    made->random = d[0]->random;
    for (int i = 1; i < n; i++) {
        const snug_spec *more = &d[i]->spec;
        memcpy(made->spec.type + made->spec.n, more->type, (size_t)more->n * sizeof *more->type);
        memcpy(made->spec.is_text + made->spec.n, more->is_text,
               (size_t)more->n * sizeof *more->is_text);
        made->spec.n += more->n;
        made->random = made->random && d[i]->random;
    }
    made->cardinality = shortest(d, n);
    *out = made;
    return SNUG_OK;
}

/* --- choose ----------------------------------------------------------------------------------- */
/* The datasets to choose from, and with choices those behind them as the last one before it. */
typedef struct {
    int n;
    bool by_weight, stop_on_empty;
    uint64_t seed;
    double weights[]; /* n */
} choice;

typedef struct {
    int64_t draws;
    int n_ended;
    bool over;
    bool ended[]; /* n */
} choosing;

static snug_status open_choose(sn_cursor *c, snug_error *err) {
    const choice *o = c->stage->ctx;
    return sn_cursor_ctx(c, sizeof(choosing) + (size_t)o->n * sizeof(bool), err);
}

/* Among those that have not ended. */
static int draw_by_weight(const choice *o, choosing *now, uint64_t key) {
    const sn_philox_block b = sn_philox(sn_rng_key(o->seed, key), 0, (uint64_t)now->draws++);
    double sum = 0, u = (double)(((uint64_t)b.v[1] << 32 | b.v[0]) >> 11) * 0x1p-53;
    int last = -1;
    for (int i = 0; i < o->n; i++)
        sum += now->ended[i] ? 0 : o->weights[i];
    u *= sum;
    for (int i = 0; i < o->n; i++) {
        if (now->ended[i] || o->weights[i] <= 0)
            continue;
        last = i;
        u -= o->weights[i];
        if (u < 0)
            break;
    }
    return last;
}

static snug_status draw_choice(sn_cursor *c, int *out, snug_error *err) {
    const choice *o = c->stage->ctx;
    choosing *now = c->ctx;
    if (o->by_weight) {
        *out = draw_by_weight(o, now, c->key);
        return *out < 0 ? sn_end(err) : SNUG_OK;
    }
    snug_element e = {0};
    int64_t i = 0;
    SNUG_TRY(sn_cursor_next(c->before[o->n], &e, err));
    memcpy(&i, e.part[0].data, sizeof i);
    snug_element_drop(&e);
    if (i < 0 || i >= o->n)
        return sn_fail(err, SNUG_E_DATA, "choice %" PRId64 " is dataset %" PRId64 " of %d",
                       now->draws, i, o->n);
    now->draws++;
    *out = (int)i;
    return SNUG_OK;
}

static snug_status next_chosen(sn_cursor *c, snug_element *out, snug_error *err) {
    const choice *o = c->stage->ctx;
    choosing *now = c->ctx;
    while (!now->over && now->n_ended < o->n) {
        int i = 0;
        SNUG_TRY(draw_choice(c, &i, err));
        const snug_status status =
            now->ended[i] ? SNUG_E_END : sn_cursor_next(c->before[i], out, err);
        if (status != SNUG_E_END)
            return status;
        now->n_ended += !now->ended[i];
        now->ended[i] = true;
        now->over = o->stop_on_empty;
    }
    return sn_end(err);
}

static const sn_stage_class choose_class = {
    .name = "choose", .open = open_choose, .next = next_chosen};

static snug_status check_choice(const snug_choice *o, int n, snug_error *err) {
    if (!o->choices == !o->weights)
        return sn_fail(err, SNUG_E_INVALID, "choose: give choices or weights");
    if (o->choices && (o->choices->spec.n != 1 || o->choices->spec.is_text[0] ||
                       o->choices->spec.type[0].dtype != SNUG_I64))
        return sn_fail(err, SNUG_E_INVALID, "choose: choices must be single i64 numbers");
    double sum = 0;
    for (int i = 0; o->weights && i < n; i++) {
        if (!(o->weights[i] >= 0))
            return sn_fail(err, SNUG_E_INVALID, "choose: weight %d is %g; give 0 or more", i,
                           o->weights[i]);
        sum += o->weights[i];
    }
    return o->choices || sum > 0
               ? SNUG_OK
               : sn_fail(err, SNUG_E_INVALID, "choose: all weights are 0; one must be larger");
}

static snug_status create_choose(snug_dataset *const *all, int n, const snug_choice *o,
                                 snug_dataset **out, snug_error *err) {
    snug_dataset *made = NULL;
    SNUG_TRY(
        sn_stage_create(&choose_class, all[0]->engine, all, n + (o->choices != NULL), &made, err));
    snug_status status = sn_stage_ctx(made, sizeof(choice) + (size_t)n * sizeof(double), err);
    for (int i = 1; i < n && status == SNUG_OK; i++)
        status = sn_spec_merge(&made->spec, &all[i]->spec, "choose", err);
    if (status != SNUG_OK) {
        snug_dataset_drop(made);
        return status;
    }
    choice *c = made->ctx;
    *c = (choice){n, o->weights != NULL, o->stop_on_empty != 0, o->seed};
    if (o->weights)
        memcpy(c->weights, o->weights, (size_t)n * sizeof *o->weights);
    made->cardinality = SNUG_UNKNOWN;
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = sn_cardinality_sum(sum, all[i]->cardinality);
    if (!o->choices && !o->stop_on_empty)
        made->cardinality = sum;
    *out = made;
    return SNUG_OK;
}

snug_status snug_dataset_choose(snug_dataset *const *d, int n, const snug_choice *o,
                                snug_dataset **out, snug_error *err) {
    void *all = NULL;
    snug_status status = SNUG_OK;
    if (!all_there(d, n) || !o || !out || n == INT_MAX)
        status = sn_fail(err, SNUG_E_INVALID, "choose: an argument is NULL");
    const size_t bytes = status == SNUG_OK ? ((size_t)n + 1) * sizeof *d : 0;
    if (status == SNUG_OK)
        status = check_choice(o, n, err);
    if (status == SNUG_OK)
        status = sn_alloc(d[0]->engine, SN_MEM_INPUT, bytes, &all, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(o ? o->choices : NULL);
        return drop_given(d, n, status);
    }
    snug_engine *e = d[0]->engine;
    memcpy(all, d, (size_t)n * sizeof *d);
    ((snug_dataset **)all)[n] = o->choices;
    status = create_choose(all, n, o, out, err);
    sn_free(e, SN_MEM_INPUT, all, bytes);
    return status;
}
