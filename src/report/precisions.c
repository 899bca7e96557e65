/* precisions.c: what a step takes and costs in each precision, beside f32; and what the loss scale
 * of mixed_f16 costs beside mixed_bf16, which has none. */
#include "report/precisions.h"

#include "base/real.h"
#include "base/say.h"
#include "model/json.h"
#include "nn/policy.h"
#include "report/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    snug_model_plan_info info;
    bool is_models;
    char refused[256]; /* why there is no such step; "": there is */
} precision_row;

typedef struct {
    snug_model *model;
    const snug_plan_request *request;
    snug_plan_request quick; /* it, where the smallest budget is looked for in need alone */
    precision_row rows[SN_N_POLICIES]; /* by their places in sn_policy_names */
    const snug_writer *w;
} precision_report;

enum { F32, MIXED_BF16, MIXED_F16 };

/* --- the rows --------------------------------------------------------------------------------- */
static bool is_refusal(snug_status status) {
    return status == SNUG_E_UNSUPPORTED || status == SNUG_E_INVALID;
}

static snug_status find_row(precision_report *r, int i, const char *models, snug_error *err) {
    precision_row *const row = &r->rows[i];
    snug_error why;
    row->is_models = strcmp(sn_policy_names[i], models) == 0;
    snug_status status = snug_model_set_precision(r->model, sn_policy_names[i], &why);
    if (status == SNUG_OK)
        status = sn_model_verdict(r->model, &r->quick, &row->info, &why);
    if (is_refusal(status))
        sn_print(row->refused, sizeof row->refused, "%s", why.text);
    else if (status != SNUG_OK && err)
        *err = why;
    return is_refusal(status) ? SNUG_OK : status;
}

static snug_status find_rows(precision_report *r, snug_error *err) {
    const char *const models = sn_policy_name(&r->model->network->policy);
    snug_error unused;
    snug_status status = SNUG_OK;
    for (int i = 0; i < SN_N_POLICIES && status == SNUG_OK; i++)
        status = find_row(r, i, models, err);
    if (snug_model_set_precision(r->model, models, status == SNUG_OK ? err : &unused) != SNUG_OK &&
        status == SNUG_OK)
        status = SNUG_E_INVALID;
    return status;
}

snug_status sn_precision_f32(snug_model *m, const snug_plan_request *request,
                             snug_model_plan_info *out, bool *found, snug_error *err) {
    const sn_policy own = m->network->policy;
    snug_plan_request quick = *request;
    snug_error unused;
    quick.quick = 1;
    *found = sn_dtype_computed(own.compute) != own.compute &&
             snug_model_set_precision(m, sn_policy_names[F32], &unused) == SNUG_OK;
    if (!*found)
        return SNUG_OK;
    const snug_status status = sn_model_verdict(m, &quick, out, err);
    *found = status == SNUG_OK && out->fits;
    const snug_status back = snug_model_set_precision(m, sn_policy_name(&own), &unused);
    return status == SNUG_OK && back != SNUG_OK ? sn_fail(err, back, "%s", unused.text) : status;
}

static size_t state_of(const snug_model_plan_info *p) {
    return p->weights_bytes + p->optimizer_bytes;
}

/* --- as a table ------------------------------------------------------------------------------- */
static bool runs(const precision_row *row) {
    return !row->refused[0] && row->info.fits;
}

/* Times f32's; NaN where one of the two does not run. */
static double beside_f32(const precision_report *r, const precision_row *row) {
    const double f32 = r->rows[F32].info.step_seconds;
    return !runs(&r->rows[F32]) || !runs(row) || !(f32 > 0) ? NAN : row->info.step_seconds / f32;
}

static snug_status say_row(const precision_report *r, int i, snug_error *err) {
    const precision_row *row = &r->rows[i];
    const snug_model_plan_info *p = &row->info;
    const double times = beside_f32(r, row);
    char peak[32], arena[32], state[32], floor[32], seconds[32];
    if (row->refused[0])
        return sn_say(r->w, err, "  %-11s %s\n", sn_policy_names[i], row->refused);
    SNUG_TRY(sn_say(r->w, err, "  %-11s %11s %11s %11s %11s", sn_policy_names[i],
                    snug_bytes_print(p->peak_bytes, peak, sizeof peak),
                    snug_bytes_print(p->arena_bytes, arena, sizeof arena),
                    snug_bytes_print(state_of(p), state, sizeof state),
                    sn_seconds_print(p->step_seconds, seconds, sizeof seconds)));
    if (!isnan(times))
        SNUG_TRY(sn_say(r->w, err, " %7.2fx%s", times, times > SN_SLOWER ? "  slower" : ""));
    if (!p->fits)
        SNUG_TRY(sn_say(r->w, err, "  does not fit: the smallest budget is %s",
                        snug_bytes_print(p->floor_bytes, floor, sizeof floor)));
    return sn_say(r->w, err, "%s\n", row->is_models ? "  <- the model's" : "");
}

static bool has_scale_price(const precision_report *r) {
    return r->request->train && runs(&r->rows[MIXED_F16]) && runs(&r->rows[MIXED_BF16]);
}

static snug_status say_scale_price(const precision_report *r, snug_error *err) {
    const snug_model_plan_info *f16 = &r->rows[MIXED_F16].info, *bf16 = &r->rows[MIXED_BF16].info;
    const bool more = f16->arena_bytes >= bf16->arena_bytes;
    char bytes[32];
    snug_bytes_print(more ? f16->arena_bytes - bf16->arena_bytes
                          : bf16->arena_bytes - f16->arena_bytes,
                     bytes, sizeof bytes);
    return sn_say(r->w, err,
                  "  mixed_f16 has a loss scale, and keeps all gradients until each was looked at: "
                  "beside mixed_bf16\n  the arena takes %s %s, and a step %.1f %% %s.\n",
                  bytes, more ? "more" : "less",
                  100 * fabs(f16->step_seconds / bf16->step_seconds - 1),
                  f16->step_seconds >= bf16->step_seconds ? "longer" : "less");
}

static snug_status say_table(const precision_report *r, snug_error *err) {
    const size_t budget = r->rows[F32].info.budget_bytes;
    char name[96], bytes[32];
    SNUG_TRY(sn_say(r->w, err, "Precisions of \"%s\", batch %lld, %s",
                    sn_plain_text(snug_model_name(r->model), name, sizeof name),
                    (long long)r->request->batch,
                    r->request->train ? "a training step" : "prediction"));
    if (budget > 0)
        SNUG_TRY(sn_say(r->w, err, ", in %s", snug_bytes_print(budget, bytes, sizeof bytes)));
    SNUG_TRY(sn_say(r->w, err, "\n\n  %-11s %11s %11s %11s %11s %8s\n", "", "peak", "arena",
                    "state", "step time", "of f32's"));
    for (int i = 0; i < SN_N_POLICIES; i++)
        SNUG_TRY(say_row(r, i, err));
    SNUG_TRY(sn_say(r->w, err,
                    "\n  State: weights and optimizer slots. Layers with a policy of "
                    "their own in the file keep it.\n"));
    return has_scale_price(r) ? say_scale_price(r, err) : SNUG_OK;
}

/* --- as JSON ---------------------------------------------------------------------------------- */
static snug_status json_row(const precision_report *r, int i, snug_error *err) {
    const precision_row *row = &r->rows[i];
    const snug_model_plan_info *p = &row->info;
    const double times = beside_f32(r, row);
    char seconds[SN_REAL_TEXT], factor[SN_REAL_TEXT];
    SNUG_TRY(sn_say(r->w, err, "%s{\"precision\":\"%s\",\"models\":%s", i ? "," : "",
                    sn_policy_names[i], row->is_models ? "true" : "false"));
    if (row->refused[0]) {
        SNUG_TRY(sn_say(r->w, err, ",\"refused\":"));
        SNUG_TRY(sn_json_string(r->w, row->refused, err));
        return sn_say(r->w, err, "}");
    }
    SNUG_TRY(sn_say(r->w, err,
                    ",\"fits\":%s,\"peak_bytes\":%zu,\"arena_bytes\":%zu,\"state_bytes\":%zu,"
                    "\"floor_bytes\":%zu,\"step_seconds\":%s",
                    p->fits ? "true" : "false", p->peak_bytes, p->arena_bytes, state_of(p),
                    p->floor_bytes, sn_real_print(p->step_seconds, 6, seconds)));
    if (!isnan(times))
        SNUG_TRY(sn_say(r->w, err, ",\"of_f32\":%s,\"slower\":%s", sn_real_print(times, 6, factor),
                        times > SN_SLOWER ? "true" : "false"));
    return sn_say(r->w, err, "}");
}

static snug_status say_json(const precision_report *r, snug_error *err) {
    char seconds[SN_REAL_TEXT];
    SNUG_TRY(sn_say(r->w, err, "{\"model\":"));
    SNUG_TRY(sn_json_string(r->w, snug_model_name(r->model), err));
    SNUG_TRY(sn_say(r->w, err, ",\"batch\":%lld,\"train\":%s,\"budget_bytes\":%zu,\"precisions\":[",
                    (long long)r->request->batch, r->request->train ? "true" : "false",
                    r->rows[F32].info.budget_bytes));
    for (int i = 0; i < SN_N_POLICIES; i++)
        SNUG_TRY(json_row(r, i, err));
    SNUG_TRY(sn_say(r->w, err, "]"));
    if (has_scale_price(r)) {
        const snug_model_plan_info *f16 = &r->rows[MIXED_F16].info,
                                   *bf16 = &r->rows[MIXED_BF16].info;
        SNUG_TRY(sn_say(r->w, err, ",\"loss_scale\":{\"arena_bytes\":%lld,\"step_seconds\":%s}",
                        (long long)f16->arena_bytes - (long long)bf16->arena_bytes,
                        sn_real_print(f16->step_seconds - bf16->step_seconds, 6, seconds)));
    }
    return sn_say(r->w, err, "}\n");
}

snug_status snug_report_precisions(snug_model *model, const snug_plan_request *request, int style,
                                   const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, model && request && out);
    void *block;
    SNUG_TRY(sn_alloc_zero(model->engine, SN_MEM_OTHER, sizeof(precision_report), &block, err));
    precision_report *const r = block;
    r->model = model;
    r->request = request;
    r->quick = *request;
    r->quick.quick = 1;
    r->w = out;
    snug_status status = find_rows(r, err);
    if (status == SNUG_OK)
        status = style & SNUG_REPORT_JSON ? say_json(r, err) : say_table(r, err);
    sn_free(model->engine, SN_MEM_OTHER, block, sizeof *r);
    return status;
}
