/* dataset.c: stages as descriptions: made over others, counted, dropped.
 *
 * Invariants:
 * 1. Immutable once handed out, but for the counts, which are atomic.
 * 2. A transformation takes over the reference it is given, also when it fails. */
#include "data/stage.h"

#include "memory/pool.h"

static void drop_all(snug_dataset *const *d, int n) {
    for (int i = 0; i < n; i++)
        snug_dataset_drop(d[i]);
}

/* How deep and how wide a stage over others is; refused where no iterator could be over it. */
static snug_status measure(const sn_stage_class *kind, snug_dataset *const *before, int n,
                           int *depth, int64_t *places, snug_error *err) {
    *depth = 1;
    *places = 1;
    for (int i = 0; i < n; i++) {
        *depth = before[i]->depth >= *depth ? before[i]->depth + 1 : *depth;
        *places += before[i]->places;
    }
    if (*depth > SN_MOST_STAGES)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s: a pipeline of %d stages one behind another; at most %d: do in one "
                       "stage what several do",
                       kind->name, *depth, SN_MOST_STAGES);
    if (*places > SN_MOST_PLACES)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s: an iterator over it would go through %lld stages; at most %d: a "
                       "dataset that is used twice counts twice, cache() it",
                       kind->name, (long long)*places, SN_MOST_PLACES);
    return SNUG_OK;
}

snug_status sn_stage_create(const sn_stage_class *kind, snug_engine *e, snug_dataset *const *before,
                            int n_before, snug_dataset **out, snug_error *err) {
    void *block = NULL, *list = NULL;
    int depth;
    int64_t places;
    const size_t list_bytes = (size_t)n_before * sizeof *before;
    snug_status status = measure(kind, before, n_before, &depth, &places, err);
    if (status == SNUG_OK)
        status = sn_alloc_zero(e, SN_MEM_INPUT, sizeof(snug_dataset), &block, err);
    if (status == SNUG_OK && n_before > 0)
        status = sn_alloc_zero(e, SN_MEM_INPUT, list_bytes, &list, err);
    if (status != SNUG_OK) {
        sn_free(e, SN_MEM_INPUT, block, sizeof(snug_dataset));
        drop_all(before, n_before);
        return status;
    }
    snug_dataset *d = block;
    d->kind = kind;
    d->engine = e;
    d->holds = 1;
    d->n_before = n_before;
    d->depth = depth;
    d->places = places;
    d->before = list;
    d->cardinality = SNUG_UNKNOWN;
    for (int i = 0; i < n_before; i++) {
        d->before[i] = before[i];
        d->serial = d->serial || before[i]->serial;
    }
    if (n_before > 0) {
        d->spec = before[0]->spec;
        d->cardinality = before[0]->cardinality;
    }
    *out = d;
    return SNUG_OK;
}

snug_status sn_stage_ctx(snug_dataset *d, size_t bytes, snug_error *err) {
    SNUG_TRY(sn_alloc_zero(d->engine, SN_MEM_INPUT, bytes, &d->ctx, err));
    d->n_ctx = bytes;
    return SNUG_OK;
}

snug_status sn_stage_after(const sn_stage_class *kind, snug_dataset *d, size_t ctx_bytes,
                           snug_dataset **out, snug_error *err) {
    snug_dataset *made = NULL;
    if (!d || !out) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID, "%s: the dataset or out is NULL", kind->name);
    }
    SNUG_TRY(sn_stage_create(kind, d->engine, &d, 1, &made, err));
    const snug_status status = ctx_bytes ? sn_stage_ctx(made, ctx_bytes, err) : SNUG_OK;
    if (status == SNUG_OK)
        *out = made;
    else
        snug_dataset_drop(made);
    return status;
}

snug_status sn_stage_wants(snug_dataset *d, snug_dataset **out, snug_error *err) {
    if (d && out)
        return SNUG_OK;
    snug_dataset_drop(d);
    return sn_fail(err, SNUG_E_INVALID,
                   "a transformation needs a dataset and a place for the new "
                   "one; %s is NULL",
                   d ? "out" : "the dataset");
}

void snug_dataset_hold(snug_dataset *dataset) {
    if (!dataset)
        return;
    atomic_fetch_add_explicit(&dataset->holds, 1, memory_order_relaxed);
}

/* Chains may be long: the first stage before a dropped one goes by the loop, not by the stack. */
void snug_dataset_drop(snug_dataset *dataset) {
    while (dataset && atomic_fetch_sub_explicit(&dataset->holds, 1, memory_order_acq_rel) == 1) {
        snug_engine *e = dataset->engine;
        snug_dataset *first = dataset->n_before > 0 ? dataset->before[0] : NULL;
        if (dataset->kind->release && dataset->ctx)
            dataset->kind->release(dataset);
        sn_free(e, SN_MEM_INPUT, dataset->ctx, dataset->n_ctx);
        if (dataset->n_before > 1)
            drop_all(dataset->before + 1, dataset->n_before - 1);
        sn_free(e, SN_MEM_INPUT, dataset->before,
                (size_t)dataset->n_before * sizeof *dataset->before);
        sn_free(e, SN_MEM_INPUT, dataset, sizeof *dataset);
        dataset = first;
    }
}

const snug_spec *snug_dataset_spec(const snug_dataset *dataset) {
    return dataset ? &dataset->spec : NULL;
}

int64_t snug_dataset_cardinality(const snug_dataset *dataset) {
    if (!dataset)
        return 0;
    return dataset->cardinality;
}

const snug_dataset *sn_stage_drawn_from(const snug_dataset *d) {
    while (d->kind->draw && d->n_before > 0 && !d->kind->reorders)
        d = d->before[0];
    if (d->kind->draw && d->n_before > 0)
        d = d->before[0];
    else if (!d->kind->draw)
        return NULL;
    return d->random ? d : NULL;
}

snug_status sn_stage_gather(const snug_dataset *d, const int64_t *index, int64_t n,
                            const sn_target *to, int64_t first, snug_error *err) {
    if (d->kind->gather)
        return d->kind->gather(d, index, n, to, first, err);
    for (int64_t i = 0; i < n; i++) {
        snug_element e = {0};
        SNUG_TRY(d->kind->at(d, index[i], &e, err));
        const snug_status status = sn_target_put_all(to, first + i, &e, err);
        snug_element_drop(&e);
        SNUG_TRY(status);
    }
    return SNUG_OK;
}

void snug_pipeline_limit(snug_engine *engine, size_t bytes) {
    if (!engine)
        return;
    sn_pool_set_limit(engine, bytes);
}

void snug_pipeline_rest(snug_engine *engine, int rests) {
    if (!engine)
        return;
    sn_pool_set_rest(engine, rests != 0);
    if (rests)
        sn_pool_forget_peak(engine);
}

void snug_pipeline_stores(snug_engine *engine, size_t bytes) {
    if (!engine)
        return;
    sn_pool_set_store(engine, bytes);
}
