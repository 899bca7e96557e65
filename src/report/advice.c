/* advice.c: why a step does not fit, and what would: the layers that hold the arena where it is
 * fullest, then remedies, each tried, with its number. */
#include "report/advice.h"

#include "base/say.h"
#include "model/json.h"

#include <stdio.h>
#include <string.h>

#define N_LARGEST 3

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

/* Batches are looked for on a ladder: 1 to 32 and then in steps of a sixteenth (34, 36, ... 64, 68,
 * ...), so that a few plans tell the one rung that fits from the next, which does not. */
static int64_t batch_at(int64_t rung) {
    return rung < 32 ? rung : (16 + rung % 16) << (rung / 16 - 1);
}

/* The last rung that is not above the batch. */
static int64_t rung_of(int64_t batch) {
    int shift = 0;
    while (batch >> shift >= 32)
        shift++;
    return 16 * shift + (batch >> shift);
}

/* Where the line through both meets the budget; low.bytes <= budget < high.bytes. */
static int64_t guess_rung(batch_floor low, batch_floor high, size_t budget) {
    const double part = (double)(budget - low.bytes) / (double)(high.bytes - low.bytes);
    return rung_of(low.batch + (int64_t)(part * (double)(high.batch - low.batch)));
}

static snug_status floor_of(snug_model *m, const snug_plan_request *request, sn_look look,
                            batch_floor *at, snug_error *err) {
    snug_plan_request r = *request;
    r.batch = at->batch;
    r.best = 0;
    return sn_model_floor(m, &r, look, &at->bytes, err);
}

/* The rung whose floor is within the budget while the next one's is not; 0 when not even one row
 * is. `high` does not fit. The first guesses lie on the line, as floors grow about evenly with the
 * batch; from there on in strides that double, so that it ends. Floors wander by a few percent from
 * batch to batch: a rung further up may fit again. */
static snug_status largest_batch(snug_model *m, const snug_plan_request *request, sn_look look,
                                 batch_floor high, int64_t *out, snug_error *err) {
    const size_t budget = request->budget_bytes;
    int64_t below = 0, above = rung_of(high.batch - 1) + 1, stride = 1, rung = 1;
    batch_floor low = {.batch = 0};
    bool fitted = false;
    for (int i = 0; below + 1 < above; i++) {
        batch_floor at = {.batch = batch_at(rung)};
        SNUG_TRY(floor_of(m, request, look, &at, err));
        const bool fits = at.bytes <= budget;
        *(fits ? &below : &above) = rung;
        *(fits ? &low : &high) = at;
        stride = i > 2 && fits == fitted ? 2 * stride : 1;
        fitted = fits;
        rung = below == 0 ? 0
               : i < 2    ? guess_rung(low, high, budget)
               : fits     ? below + stride
                          : above - stride;
        if (rung <= below || rung >= above)
            rung = below + (above - below) / 2;
    }
    *out = batch_at(below);
    return SNUG_OK;
}

/* The next rung; the batch that was asked for is known not to fit. */
static int64_t next_batch(int64_t batch, int64_t asked) {
    const int64_t next = batch_at(rung_of(batch) + 1);
    return next < asked ? next : asked;
}

snug_status sn_advice_find(snug_model *m, const snug_plan_request *request, size_t floor_bytes,
                           sn_advice *out, snug_error *err) {
    const batch_floor asked = {request->batch, floor_bytes};
    out->asked = request->batch;
    out->spill_floor = 0;
    if (!sn_engine_spill_folder(m->engine))
        SNUG_TRY(sn_model_floor(m, request, SN_LOOK_SPILLING, &out->spill_floor, err));
    SNUG_TRY(largest_batch(m, request, SN_LOOK_PLAIN, asked, &out->batch, err));
    const batch_floor more = {next_batch(out->batch, request->batch), request->budget_bytes + 1};
    return largest_batch(m, request, SN_LOOK_WHOLE, more, &out->whole_batch, err);
}

static snug_status say_batches(const sn_advice *a, const snug_writer *w, snug_error *err) {
    const bool whole = a->whole_batch == a->batch;
    if (a->batch > 0)
        SNUG_TRY(sn_say(w, err, "    --batch %-13lld fits this budget%s; %lld does not\n",
                        (long long)a->batch, whole ? ", without slices" : "",
                        (long long)next_batch(a->batch, a->asked)));
    if (a->whole_batch > 0 && !whole)
        SNUG_TRY(sn_say(w, err, "    --batch %-13lld can do without slices; %lld cannot\n",
                        (long long)a->whole_batch,
                        (long long)next_batch(a->whole_batch, a->asked)));
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
    if (m->network->policy.compute != SNUG_F64)
        return SNUG_OK;
    return sn_say(
        w, err, "    --precision f32       saves %s: half of weights and slots\n",
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
