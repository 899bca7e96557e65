/* advice.c: why a step does not fit, and what would: the layers that hold the arena where it is
 * fullest, then remedies, each tried, with its number. */
#include "report/advice.h"

#include "base/say.h"
#include "model/json.h"

#include <stdio.h>
#include <string.h>

#define N_LARGEST    3
#define MOST_GUESSES 6 /* of a batch: each takes as long as a plan */

/* --- what binds ------------------------------------------------------------------------------- */
static uint32_t take_largest(const sn_plan_owner_row *rows, uint32_t n, bool *taken) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (!taken[i] && rows[i].at_peak_bytes > 0 &&
            (best == UINT32_MAX || rows[i].at_peak_bytes > rows[best].at_peak_bytes))
            best = i;
    if (best != UINT32_MAX)
        taken[best] = true;
    return best;
}

static snug_status say_largest(const snug_model *m, const sn_plan_owner_row *rows, bool *taken,
                               const snug_writer *w, snug_error *err) {
    const sn_graph *g = m->looked.graph;
    for (int k = 0; k < N_LARGEST; k++) {
        const uint32_t i = take_largest(rows, sn_graph_n_owners(g), taken);
        char bytes[32], name[96];
        if (i == UINT32_MAX)
            break;
        const char *owner = sn_graph_owner_name(g, i);
        SNUG_TRY(sn_say(w, err, "%s %s of %s", k ? "," : "",
                        snug_bytes_print(rows[i].at_peak_bytes, bytes, sizeof bytes),
                        owner[0] ? sn_plain_text(owner, name, sizeof name) : "inputs"));
    }
    return sn_say(w, err, "\n");
}

static snug_status say_binding(snug_model *m, const snug_model_plan_info *info,
                               const snug_writer *w, snug_error *err) {
    const uint32_t n = sn_graph_n_owners(m->looked.graph);
    const size_t bytes = n * (sizeof(sn_plan_owner_row) + sizeof(bool));
    char arena[32], layer[96];
    void *block;
    SNUG_TRY(sn_say(w, err, "  even the smallest plan has an arena of %s, full in %s%s (%s), of:",
                    snug_bytes_print(info->arena_bytes, arena, sizeof arena),
                    info->peak_layer[0] ? "layer " : "the model",
                    sn_plain_text(info->peak_layer, layer, sizeof layer),
                    info->peak_operator[0] ? info->peak_operator : "its inputs"));
    SNUG_TRY(sn_alloc_zero(m->engine, SN_MEM_OTHER, bytes, &block, err));
    sn_plan_owner_row *const rows = block;
    snug_status status = sn_plan_owner_rows(m->looked.plan, m->engine, rows, err);
    if (status == SNUG_OK)
        status = say_largest(m, rows, (bool *)(rows + n), w, err);
    sn_free(m->engine, SN_MEM_OTHER, block, bytes);
    return status;
}

/* --- what would help -------------------------------------------------------------------------- */
typedef struct {
    int64_t batch;
    size_t bytes; /* the budget it needs */
} batch_floor;

/* On the line, but never at its ends; after a guess that failed in the middle, so that it ends. */
static int64_t between(batch_floor low, batch_floor high, size_t budget, bool fits) {
    const int64_t apart = high.batch - low.batch;
    const double part = (double)(budget - low.bytes) / (double)(high.bytes - low.bytes);
    const int64_t step = fits ? (int64_t)(part * (double)apart) : apart / 2;
    return low.batch + (step < 1 ? 1 : step >= apart ? apart - 1 : step);
}

static snug_status floor_of(snug_model *m, const snug_plan_request *request, sn_look look,
                            batch_floor *at, snug_error *err) {
    snug_plan_request r = *request;
    r.batch = at->batch;
    r.best = 0;
    return sn_model_floor(m, &r, look, &at->bytes, err);
}

/* Not within the budget, but so little above that a larger batch may be: the search for the
 * smallest plan ends a few percent higher or lower from batch to batch. */
static bool is_near(batch_floor at, size_t budget) {
    return at.bytes > budget && at.bytes - budget <= budget / 16;
}

/* The largest batch whose floor is within the budget, or nearly; 0 when not even 1 is. `high` is
 * one that is not, with its floor. Floors grow about evenly with the batch, so guesses lie on the
 * line between two that are known; once, behind one that was near, between that and high. */
static snug_status largest_batch(snug_model *m, const snug_plan_request *request, sn_look look,
                                 batch_floor high, int64_t *out, snug_error *err) {
    const size_t budget = request->budget_bytes;
    batch_floor low = {.batch = 0}, at = {.batch = 1};
    bool looked_behind = false;
    for (int i = 0; i < MOST_GUESSES && low.batch + 1 < high.batch; i++) {
        SNUG_TRY(floor_of(m, request, look, &at, err));
        if (is_near(at, budget) && !looked_behind && high.batch - at.batch > 1) {
            batch_floor behind = {.batch = at.batch + (high.batch - at.batch) / 2};
            looked_behind = true;
            i++;
            SNUG_TRY(floor_of(m, request, look, &behind, err));
            at = behind.bytes <= budget ? behind : at;
        }
        const bool fits = at.bytes <= budget;
        *(fits ? &low : &high) = at;
        if (low.batch == 0 || high.batch - low.batch <= low.batch / 16)
            break; /* near enough */
        at.batch = between(low, high, budget, fits);
    }
    *out = low.batch;
    return SNUG_OK;
}

snug_status sn_advice_find(snug_model *m, const snug_plan_request *request, size_t floor_bytes,
                           sn_advice *out, snug_error *err) {
    const batch_floor asked = {request->batch, floor_bytes};
    out->spill_floor = 0;
    if (!sn_engine_spill_folder(m->engine))
        SNUG_TRY(sn_model_floor(m, request, SN_LOOK_SPILLING, &out->spill_floor, err));
    SNUG_TRY(largest_batch(m, request, SN_LOOK_PLAIN, asked, &out->batch, err));
    const batch_floor more = {out->batch + 1, request->budget_bytes + 1};
    return largest_batch(m, request, SN_LOOK_WHOLE, more, &out->whole_batch, err);
}

static snug_status say_batches(const sn_advice *a, const snug_writer *w, snug_error *err) {
    if (a->batch > 0)
        SNUG_TRY(sn_say(w, err, "    --batch %-13lld about the largest that fits this budget%s\n",
                        (long long)a->batch,
                        a->whole_batch == a->batch ? "; it can do without slices" : ""));
    if (a->whole_batch > 0 && a->whole_batch != a->batch)
        SNUG_TRY(sn_say(w, err,
                        "    --batch %-13lld about the largest that can do without slices\n",
                        (long long)a->whole_batch));
    return SNUG_OK;
}

/* What the slots of the optimizer take. */
static snug_status say_slots(const snug_model *m, const snug_model_plan_info *info,
                             const snug_writer *w, snug_error *err) {
    char bytes[32];
    if (info->optimizer_bytes == 0)
        return SNUG_OK;
    return sn_say(w, err, "    --optimizer sgd       saves %s: %s keeps that beside the weights\n",
                  snug_bytes_print(info->optimizer_bytes, bytes, sizeof bytes),
                  m->compiled.optimizer.name);
}

/* Only where it is worth a file. */
static snug_status say_spill(const snug_model_plan_info *info, const sn_advice *a,
                             const snug_writer *w, snug_error *err) {
    char floor[32];
    if (a->spill_floor == 0 || a->spill_floor > info->floor_bytes - info->floor_bytes / 16)
        return SNUG_OK;
    return sn_say(w, err, "    --spill DIR           from %s on: slots and values wait in a file\n",
                  snug_bytes_print(a->spill_floor, floor, sizeof floor));
}

static snug_status say_precision(const snug_model *m, const snug_model_plan_info *info,
                                 const snug_writer *w, snug_error *err) {
    char bytes[32];
    if (m->network->compute_dtype != SNUG_F64)
        return SNUG_OK;
    return sn_say(
        w, err, "    --dtype f32           saves %s: half of weights and slots\n",
        snug_bytes_print((info->weights_bytes + info->optimizer_bytes) / 2, bytes, sizeof bytes));
}

snug_status sn_advice_say(snug_model *m, const snug_model_plan_info *info, const sn_advice *a,
                          const snug_writer *w, snug_error *err) {
    char floor[32];
    SNUG_TRY(say_binding(m, info, w, err));
    SNUG_TRY(sn_say(w, err, "  what would fit:\n    --budget %-12zu %s\n", info->floor_bytes,
                    snug_bytes_print(info->floor_bytes, floor, sizeof floor)));
    SNUG_TRY(say_batches(a, w, err));
    SNUG_TRY(say_spill(info, a, w, err));
    SNUG_TRY(say_precision(m, info, w, err));
    SNUG_TRY(say_slots(m, info, w, err));
    return sn_say(w, err, "  the smallest plan:\n\n");
}
