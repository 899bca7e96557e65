/* interleave.c: a dataset for each element: one after another (flat_map), or some of several in
 * turn.
 *
 *     lanes   [ a0 a1 a2 ... ][ b0 b1 ... ][ c0 ... ]      cycle = 3, block = 2:
 *     gives   a0 a1 b0 b1 c0 c1 a2 a3 b2 b3 ...
 *
 * A lane that ends ends its turn; when it comes again the lane takes the next element's dataset.
 *
 * Invariants:
 * 1. Lanes are opened in the order of elements, when their turn comes: the order of the stream is
 *    fixed.
 * 2. With workers the first lanes are prefetched, each by a thread; what they give is the same.
 * 3. What is random in a lane is keyed by the element it was made of. */
#include "data/iterator.h"

#include <inttypes.h>

typedef struct {
    snug_expander f;
    snug_interleave options;
} interleave_stage;

typedef struct {
    snug_dataset *dataset;
    sn_station *place;
    sn_cursor *cursor;
} lane;

typedef struct {
    int64_t now, in_block, n_open;
    bool ended;
    lane lanes[]; /* cycle */
} interleaving;

static int64_t cycle_of(const sn_cursor *c) {
    return ((const interleave_stage *)c->stage->ctx)->options.cycle;
}

static snug_status open_interleave(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(interleaving) + (size_t)cycle_of(c) * sizeof(lane), err);
}

static void close_lane(interleaving *s, lane *l) {
    if (!l->dataset)
        return;
    sn_cursor_close(l->cursor);
    sn_station_destroy(l->place);
    snug_dataset_drop(l->dataset);
    *l = (lane){0};
    s->n_open--;
}

static void close_interleave(sn_cursor *c) {
    interleaving *s = c->ctx;
    for (int64_t i = 0; i < cycle_of(c); i++)
        close_lane(s, &s->lanes[i]);
}

static snug_status check_made(const sn_cursor *c, const snug_dataset *d, snug_error *err) {
    snug_spec merged = c->stage->spec;
    SNUG_TRY(sn_spec_merge(&merged, &d->spec, "interleave", err));
    if (!d->serial || c->stage->serial)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "interleave: a dataset made here goes back to an interpreter; say so (serial)");
}

/* The first lanes may read ahead; what is serial cannot. */
static snug_status read_ahead(const sn_cursor *c, const interleaving *s, lane *l, snug_error *err) {
    const interleave_stage *o = c->stage->ctx;
    const int asked = o->options.workers;
    const int workers = asked < 0 ? snug_engine_threads(c->stage->engine) : asked;
    if (workers < 2 || l - s->lanes >= workers || l->dataset->serial)
        return SNUG_OK;
    snug_dataset *d = l->dataset;
    l->dataset = NULL;
    return snug_dataset_prefetch(d, o->options.block + 1, &l->dataset, err);
}

/* The next element's dataset into a lane; *opened false when there is no element. */
static snug_status open_lane(sn_cursor *c, lane *l, bool *opened, snug_error *err) {
    const interleave_stage *o = c->stage->ctx;
    interleaving *s = c->ctx;
    snug_element e;
    *opened = false;
    if (s->ended)
        return SNUG_OK;
    snug_status status = sn_cursor_next(c->before[0], &e, err);
    s->ended = status == SNUG_E_END;
    if (status != SNUG_OK)
        return s->ended ? SNUG_OK : status;
    const uint64_t ordinal = (uint64_t)e.index;
    status = o->f.make(o->f.ctx, &e, &l->dataset, err);
    snug_element_drop(&e);
    if (status != SNUG_OK) {
        l->dataset = NULL;
        return status;
    }
    status = read_ahead(c, s, l, err);
    if (status != SNUG_OK)
        return status;
    s->n_open++;
    status = check_made(c, l->dataset, err);
    if (status == SNUG_OK)
        status = sn_station_create(c->iterator, l->dataset, ordinal, &l->place, err);
    if (status == SNUG_OK)
        status = sn_cursor_open(l->place, &l->cursor, err);
    if (status != SNUG_OK)
        close_lane(s, l);
    *opened = status == SNUG_OK;
    return status;
}

static void next_turn(sn_cursor *c, interleaving *s) {
    s->now = (s->now + 1) % cycle_of(c);
    s->in_block = 0;
}

static snug_status next_interleaved(sn_cursor *c, snug_element *out, snug_error *err) {
    const interleave_stage *o = c->stage->ctx;
    interleaving *s = c->ctx;
    while (!s->ended || s->n_open > 0) {
        lane *l = &s->lanes[s->now];
        bool opened = l->dataset != NULL;
        if (!opened)
            SNUG_TRY(open_lane(c, l, &opened, err));
        if (!opened) {
            next_turn(c, s);
            continue;
        }
        const snug_status status = sn_cursor_next(l->cursor, out, err);
        if (status == SNUG_E_END) {
            close_lane(s, l);
            next_turn(c, s);
            continue;
        }
        if (++s->in_block >= o->options.block)
            next_turn(c, s);
        return status;
    }
    return sn_end(err);
}

static void release_interleave(snug_dataset *d) {
    const interleave_stage *o = d->ctx;
    if (o->f.release)
        o->f.release(o->f.ctx);
}

static const sn_stage_class interleave_class = {.name = "interleave",
                                                .open = open_interleave,
                                                .next = next_interleaved,
                                                .close = close_interleave,
                                                .release = release_interleave};

enum { MOST_LANES = 4096 };

snug_status snug_dataset_interleave(snug_dataset *d, const snug_expander *f,
                                    const snug_interleave *o, snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    const int64_t cycle = o && o->cycle > 0 ? o->cycle : 1;
    const int64_t block = o && o->block > 0 ? o->block : 1;
    if (!f || !f->make || cycle > MOST_LANES) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID,
                       "interleave: there is no function, or %" PRId64 " datasets at once; at most "
                       "%d can be open",
                       cycle, MOST_LANES);
    }
    SNUG_TRY(sn_stage_after(&interleave_class, d, sizeof(interleave_stage), &made, err));
    *(interleave_stage *)made->ctx =
        (interleave_stage){*f, {.cycle = cycle, .block = block, .workers = o ? o->workers : 0}};
    made->spec = f->spec;
    made->serial = made->serial || f->serial;
    if (made->cardinality != 0)
        made->cardinality = SNUG_UNKNOWN;
    *out = made;
    return SNUG_OK;
}
