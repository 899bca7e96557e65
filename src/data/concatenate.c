/* concatenate.c: the elements of one dataset, then those of another, which is opened when its turn
 * comes. */
#include "data/stage.h"

#include "base/size.h"

/* What stands one behind another. A concatenation of concatenations goes through the parts of all
 * of them itself: asking from one to the next would cost as many calls per element as there are. */
typedef struct {
    sn_station **part;
    size_t n, cap;
} station_list;

typedef struct {
    station_list parts; /* the last first */
    bool is_open;       /* the last of them, by the first cursor before this one */
} concatenated;

static const sn_stage_class concatenate_class;

static snug_status push(snug_engine *e, station_list *l, sn_station *s, snug_error *err) {
    SNUG_TRY(sn_grow(e, SN_MEM_INPUT, &l->part, sizeof *l->part, &l->cap, l->n + 1, err));
    l->part[l->n++] = s;
    return SNUG_OK;
}

static void clear_list(snug_engine *e, station_list *l) {
    sn_free(e, SN_MEM_INPUT, l->part, l->cap * sizeof *l->part);
    *l = (station_list){0};
}

/* From the last part to the first; `open` holds what is not looked into yet. */
static snug_status find_parts(snug_engine *e, station_list *open, station_list *parts,
                              snug_error *err) {
    while (open->n > 0) {
        sn_station *const s = open->part[--open->n];
        if (s->stage->kind != &concatenate_class) {
            SNUG_TRY(push(e, parts, s, err));
            continue;
        }
        for (int i = 0; i < s->stage->n_before; i++)
            SNUG_TRY(push(e, open, s->before[i], err));
    }
    return SNUG_OK;
}

static snug_status open_concatenate(sn_cursor *c, snug_error *err) {
    SNUG_TRY(sn_cursor_ctx(c, sizeof(concatenated), err));
    concatenated *const all = c->ctx;
    snug_engine *const e = c->stage->engine;
    station_list open = {0};
    snug_status status = SNUG_OK;
    for (int i = 0; status == SNUG_OK && i < c->stage->n_before; i++)
        status = push(e, &open, c->place->before[i], err);
    if (status == SNUG_OK)
        status = find_parts(e, &open, &all->parts, err);
    clear_list(e, &open);
    return status;
}

static void close_concatenate(sn_cursor *c) {
    concatenated *const all = c->ctx;
    if (all)
        clear_list(c->stage->engine, &all->parts);
}

/* The cursor over the part whose turn it is. */
static snug_status open_part(sn_cursor *c, snug_error *err) {
    concatenated *const all = c->ctx;
    if (all->is_open)
        return SNUG_OK;
    SNUG_TRY(sn_cursor_open(all->parts.part[all->parts.n - 1], &c->before[0], err));
    all->is_open = true;
    return SNUG_OK;
}

static void end_part(sn_cursor *c) {
    concatenated *const all = c->ctx;
    sn_cursor_close(c->before[0]);
    c->before[0] = NULL;
    all->is_open = false;
    all->parts.n--;
}

static snug_status next_concatenated(sn_cursor *c, snug_element *out, snug_error *err) {
    const concatenated *const all = c->ctx;
    while (all->parts.n > 0) {
        SNUG_TRY(open_part(c, err));
        const snug_status status = sn_cursor_next(c->before[0], out, err);
        if (status != SNUG_E_END)
            return status;
        end_part(c);
    }
    return sn_end(err);
}

static snug_status seek_concatenated(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    const concatenated *const all = c->ctx;
    *done = 0;
    while (*done < n && all->parts.n > 0) {
        int64_t got;
        SNUG_TRY(open_part(c, err));
        SNUG_TRY(sn_cursor_seek(c->before[0], n - *done, &got, err));
        *done += got;
        if (*done == n)
            break;
        end_part(c);
    }
    return SNUG_OK;
}

static const sn_stage_class concatenate_class = {.name = "concatenate",
                                                 .open = open_concatenate,
                                                 .close = close_concatenate,
                                                 .next = next_concatenated,
                                                 .seek = seek_concatenated,
                                                 .opens_before = true};

int64_t sn_cardinality_sum(int64_t a, int64_t b) {
    int64_t sum;
    if (a == SNUG_ENDLESS || b == SNUG_ENDLESS)
        return SNUG_ENDLESS;
    if (a == SNUG_UNKNOWN || b == SNUG_UNKNOWN)
        return SNUG_UNKNOWN;
    return sn_i64_add(a, b, &sum) ? sum : INT64_MAX;
}

snug_status snug_dataset_concatenate(snug_dataset *a, snug_dataset *b, snug_dataset **out,
                                     snug_error *err) {
    snug_dataset *const both[2] = {a, b};
    snug_dataset *made = NULL;
    if (!a || !b || !out) {
        snug_dataset_drop(a);
        snug_dataset_drop(b);
        return sn_fail(err, SNUG_E_INVALID, "concatenate: a dataset or out is NULL");
    }
    SNUG_TRY(sn_stage_create(&concatenate_class, a->engine, both, 2, &made, err));
    const snug_status status = sn_spec_merge(&made->spec, &b->spec, "concatenate", err);
    if (status != SNUG_OK) {
        snug_dataset_drop(made);
        return status;
    }
    made->cardinality = sn_cardinality_sum(a->cardinality, b->cardinality);
    *out = made;
    return SNUG_OK;
}
