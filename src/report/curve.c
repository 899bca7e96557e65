/* curve.c: the trade of memory for time: what a step costs at which budget, from the plan without a
 * limit down to the smallest there is; as a table or as JSON. */
#include "base/real.h"
#include "base/say.h"
#include "model/json.h"
#include "nn/policy.h"
#include "report/curve.h"
#include "train/step_budget.h"

#include <stdio.h>

const char *sn_seconds_print(double seconds, char *text, size_t size) {
    sn_print(text, size,
             seconds < 0.9995e-3 ? "%.3g us"
             : seconds < 0.9995  ? "%.3g ms"
                                 : "%.3g s",
             seconds * (seconds < 0.9995e-3 ? 1e6
                        : seconds < 0.9995  ? 1e3
                                            : 1));
    return text;
}

static bool spills(const sn_curve *c) {
    bool any = false;
    for (size_t i = 0; i < c->n; i++)
        any = any || c->points[i].spilled_bytes > 0;
    return any;
}

/* Of two rows that look alike the slower one says nothing, unless it is the floor. */
static bool is_shown(const sn_curve *c, size_t i, size_t before) {
    const size_t above = c->points[before].budget_bytes, here = c->points[i].budget_bytes;
    return i == 0 || i + 1 == c->n || above - here > above / 1000;
}

/* The budget that was asked for beside the curve, 0: none. A card's is what it has free. */
static size_t budget_of(const snug_model *m, const snug_plan_request *r) {
    if (!m->kind->of_process)
        return 0;
    return r->budget_bytes ? r->budget_bytes : m->kind->asked(m);
}

static snug_status say_point(const snug_curve_point *p, const sn_curve *c, const snug_writer *w,
                             snug_error *err) {
    char bytes[32], seconds[32];
    SNUG_TRY(sn_say(w, err, "  %12s %8lld %8zu %12s %9.2fx",
                    snug_bytes_print(p->budget_bytes, bytes, sizeof bytes), (long long)p->slices,
                    p->n_steps, sn_seconds_print(p->step_seconds, seconds, sizeof seconds),
                    p->step_seconds / c->points[0].step_seconds));
    if (p->spilled_bytes > 0)
        return sn_say(w, err, " %14s", snug_bytes_print(p->spilled_bytes, bytes, sizeof bytes));
    return SNUG_OK;
}

/* Behind the rows: what the budget that was given takes of them. */
static snug_status say_end(const sn_curve *c, size_t budget, const snug_writer *w,
                           snug_error *err) {
    char bytes[32];
    SNUG_TRY(sn_say(w, err,
                    "\n  The first row is the step without a limit; below the last one "
                    "nothing fits.\n"));
    if (budget == 0 || c->points[c->n - 1].budget_bytes <= budget)
        return SNUG_OK;
    return sn_say(w, err, "  %s are less: the step does not fit there.\n",
                  snug_bytes_print(budget, bytes, sizeof bytes));
}

static snug_status say_table(const snug_model *m, const snug_plan_request *r, const sn_curve *c,
                             const snug_writer *w, snug_error *err) {
    const char *const where = m->kind->waits_column;
    const size_t budget = budget_of(m, r);
    size_t shown = 0;
    bool marked = budget == 0;
    char name[96], bytes[32];
    SNUG_TRY(sn_say(w, err, "Budgets for \"%s\", batch %lld, %s in %s\n\n",
                    sn_plain_text(snug_model_name(m), name, sizeof name), (long long)r->batch,
                    r->train ? "a training step" : "prediction",
                    sn_policy_name(&m->network->policy)));
    SNUG_TRY(sn_say(w, err, "  %12s %8s %8s %12s %10s%s\n", "budget", "slices", "steps",
                    "step time", "slowdown", spills(c) ? where : ""));
    for (size_t i = 0; i < c->n; i++) {
        const bool takes = !marked && c->points[i].budget_bytes <= budget;
        if (!takes && !is_shown(c, i, shown))
            continue;
        SNUG_TRY(say_point(&c->points[i], c, w, err));
        if (takes)
            SNUG_TRY(sn_say(w, err, "  <- fits %s", snug_bytes_print(budget, bytes, sizeof bytes)));
        SNUG_TRY(sn_say(w, err, "\n"));
        marked = marked || takes;
        shown = i;
    }
    return say_end(c, budget, w, err);
}

static snug_status say_json(const snug_model *m, const snug_plan_request *r, const sn_curve *c,
                            const snug_writer *w, snug_error *err) {
    char seconds[SN_REAL_TEXT];
    SNUG_TRY(sn_say(w, err, "{\"model\":"));
    SNUG_TRY(sn_json_string(w, snug_model_name(m), err));
    SNUG_TRY(sn_say(w, err, ",\"batch\":%lld,\"train\":%s,\"precision\":\"%s\",\"points\":[",
                    (long long)r->batch, r->train ? "true" : "false",
                    sn_policy_name(&m->network->policy)));
    for (size_t i = 0; i < c->n; i++) {
        const snug_curve_point *p = &c->points[i];
        SNUG_TRY(sn_say(w, err,
                        "%s{\"budget_bytes\":%zu,\"slices\":%lld,\"steps\":%zu,"
                        "\"spilled_bytes\":%zu,\"step_seconds\":%s}",
                        i ? "," : "", p->budget_bytes, (long long)p->slices, p->n_steps,
                        p->spilled_bytes, sn_real_print(p->step_seconds, 6, seconds)));
    }
    return sn_say(w, err, "]}\n");
}

snug_status sn_curve_find(snug_model *m, const snug_plan_request *request, sn_curve *out,
                          snug_error *err) {
    return snug_model_curve(m, request, out->points, SN_CURVE_POINTS, &out->n, err);
}

snug_status snug_report_curve(snug_model *model, const snug_plan_request *request, int style,
                              const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, out);
    sn_curve curve;
    SNUG_TRY(sn_curve_find(model, request, &curve, err));
    return style & SNUG_REPORT_JSON ? say_json(model, request, &curve, out, err)
                                    : say_table(model, request, &curve, out, err);
}
