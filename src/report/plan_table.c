/* plan_table.c: `snug plan`: what a step will use, before it runs: by category, by layer, and how
 * near the packing is to the lower bound; as text or JSON.
 *
 * Invariants:
 * 1. The rows that are not indented add up to the peak; with a budget to that, or to the floor
 * where the step does not fit; the indented ones to the row above them.
 * 2. "at the peak" of all layers, inputs and loss adds up to the arena's lower bound: the step's
 *    workspace counts for its layer. */
#include "base/real.h"
#include "base/say.h"
#include "model/json.h"
#include "report/advice.h"
#include "report/curve.h"
#include "report/precisions.h"
#include "train/model.h"
#include "train/step_budget.h"

#include <stdio.h>
#include <string.h>

/* What both forms are made from. */
typedef struct {
    snug_model *model;
    const snug_plan_request *request;
    const sn_model_step *step;
    snug_model_plan_info info;
    sn_advice advice;                /* where it does not fit, in text */
    snug_model_plan_info f32;        /* where it computes in halves, the same step in f32 */
    bool has_f32;                    /* and that fits */
    const sn_plan_owner_row *owners; /* one per owner of the graph */
    const snug_writer *w;
    int style;
    char missing[96]; /* libraries; "": none */
} plan_report;

/* --- by category ------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    size_t bytes;
    bool inside;   /* a part of the row above */
    bool may_lack; /* most steps have none: then it is not shown */
} category_row;

enum { N_ROWS = 17, N_BUDGET_ROWS = 4 };

/* What the rows add up to. */
static size_t whole_of(const snug_model_plan_info *p) {
    const size_t limit = p->fits ? p->budget_bytes : p->floor_bytes;
    return limit > p->peak_bytes ? limit : p->peak_bytes;
}

/* The part of `bytes` that is left of the whole beside `taken`. */
static size_t within(size_t bytes, size_t taken, size_t whole) {
    const size_t left = whole > taken ? whole - taken : 0;
    return bytes < left ? bytes : left;
}

/* Every byte of the peak, once; with a budget every byte of that. */
static int make_rows(const plan_report *r, category_row rows[N_ROWS]) {
    const snug_model_plan_info *p = &r->info;
    const sn_budget_class *of = r->model->kind;
    const size_t live = p->input_bytes + p->activation_bytes + p->gradient_bytes +
                        p->workspace_bytes + p->output_bytes;
    const size_t known = p->process_bytes + p->weights_bytes + p->optimizer_bytes + p->arena_bytes +
                         p->graph_bytes + p->plan_bytes + p->pipeline_bytes;
    const size_t whole = whole_of(p), booked = p->peak_bytes + p->reserve_bytes;
    const size_t later = within(p->later_bytes, booked + p->next_batch_bytes, whole);
    const size_t taken = booked + p->next_batch_bytes + later;
    int n = 0;
    const category_row made[N_ROWS] = {
        {"weights", p->weights_bytes, false, false},
        {"optimizer", p->optimizer_bytes, false, false},
        {"arena", p->arena_bytes, false, false},
        {"inputs", p->input_bytes, true, false},
        {"activations", p->activation_bytes, true, false},
        {"gradients", p->gradient_bytes, true, false},
        {"workspace", p->workspace_bytes, true, false},
        {"outputs", p->output_bytes, true, false},
        {"packing gap", p->arena_bytes > live ? p->arena_bytes - live : 0, true, false},
        {"graph and plan", p->graph_bytes + p->plan_bytes, false, false},
        {"input pipeline", p->pipeline_bytes, false, true},
        {of->books, p->peak_bytes > known ? p->peak_bytes - known : 0, false, false},
        {of->process, p->process_bytes, false, false},
        {of->reserve, p->budget_bytes ? p->reserve_bytes : 0, false, false},
        {"next batch", p->next_batch_bytes, false, true},
        {"validation, remainder", later, false, true},
        {"spare", within(SIZE_MAX, taken, whole), false, false},
    };
    for (int i = 0; i < (p->budget_bytes > 0 ? N_ROWS : N_ROWS - N_BUDGET_ROWS); i++)
        if (made[i].bytes > 0 || !made[i].may_lack)
            rows[n++] = made[i];
    return n;
}

/* 20 cells of eighths: the row's part of the peak. */
static const char *bar(size_t bytes, size_t of, char text[64]) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t n = of ? (size_t)(160.0 * (double)bytes / (double)of + 0.5) : 0;
    text[0] = 0;
    if (n == 0 && bytes > 0)
        n = 1;
    for (size_t i = 0; i < n / 8 && i < 20; i++)
        strcat(text, "█");
    return strcat(text, n < 160 ? eighths[n % 8] : "");
}

static snug_status say_category(const plan_report *r, const category_row *c, snug_error *err) {
    char bytes[32], cells[64];
    const bool color = r->style & SNUG_REPORT_COLOR;
    const size_t of = whole_of(&r->info);
    const double percent = 100.0 * (double)c->bytes / (double)of;
    return sn_say(r->w, err, "  %s%-*s %12s %6.1f %%  %s%s%s\n", c->inside ? "  " : "",
                  c->inside ? 26 : 28, c->name, snug_bytes_print(c->bytes, bytes, sizeof bytes),
                  percent, color ? (c->inside ? "\x1b[36m" : "\x1b[32m") : "",
                  bar(c->bytes, of, cells), color ? "\x1b[0m" : "");
}

/* --- by layer --------------------------------------------------------------------------------- */

/* 1234567 -> "1.23 M" */
static const char *print_flops(double flops, char *text, size_t size) {
    static const char *const units[] = {"", " K", " M", " G", " T", " P"};
    size_t u = 0;
    for (; flops >= 1000 && u < 5; u++)
        flops /= 1000;
    sn_print(text, size,
             flops < 10 && u    ? "%.2f%s"
             : flops < 100 && u ? "%.1f%s"
                                : "%.0f%s",
             flops, units[u]);
    return text;
}

static const char *print_shape(const snug_type *t, int64_t batch, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "(%lld", (long long)batch);
    for (int i = 1; i < t->rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, ", %lld", (long long)t->dims[i]);
    if (n < size)
        snprintf(text + n, size - n, "%s)", t->rank == 1 ? "," : "");
    return text;
}

/* The row of the layer of that name; zeros for a layer without nodes of its own. Owners stand about
 * in the order of layers: the search goes on at *at, where the last one ended. */
static sn_plan_owner_row row_of(const plan_report *r, const char *layer, uint32_t *at) {
    const uint32_t n = sn_graph_n_owners(r->step->graph);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = (*at + k) % n;
        if (strcmp(sn_graph_owner_name(r->step->graph, i), layer) == 0) {
            *at = i;
            return r->owners[i];
        }
    }
    return (sn_plan_owner_row){0, 0, 0, 0};
}

static snug_status say_layer(const plan_report *r, const char *name, const char *shape,
                             const sn_plan_owner_row *o, snug_error *err) {
    char cut[25], weights[32], peak[32], own[32], flops[32];
    return sn_say(
        r->w, err, "  %-24s %-20s %11s %11s %11s %8s\n", sn_plain_text(name, cut, sizeof cut),
        shape, o->weight_bytes ? snug_bytes_print(o->weight_bytes, weights, sizeof weights) : "-",
        o->at_peak_bytes ? snug_bytes_print(o->at_peak_bytes, peak, sizeof peak) : "-",
        o->own_peak_bytes ? snug_bytes_print(o->own_peak_bytes, own, sizeof own) : "-",
        o->flops > 0 ? print_flops(o->flops, flops, sizeof flops) : "-");
}

static snug_status say_layers(const plan_report *r, snug_error *err) {
    const char *bold = r->style & SNUG_REPORT_COLOR ? "\x1b[1m" : "";
    const char *off = r->style & SNUG_REPORT_COLOR ? "\x1b[0m" : "";
    uint32_t at = 0;
    const sn_plan_owner_row inputs = row_of(r, "", &at), loss = row_of(r, "loss", &at);
    SNUG_TRY(sn_say(r->w, err, "  %s%-24s %-20s %11s %11s %11s %8s%s\n", bold, "layer",
                    "output shape", "weights", "at the peak", "own peak", "FLOPs", off));
    SNUG_TRY(say_layer(r, "(inputs)", "", &inputs, err));
    for (size_t i = 0; i < snug_model_n_layers(r->model); i++) {
        snug_layer_info l;
        char shape[192];
        snug_model_layer(r->model, i, &l);
        const sn_plan_owner_row row = row_of(r, l.name, &at);
        print_shape(&l.output, r->request->batch, shape, sizeof shape);
        SNUG_TRY(say_layer(r, l.name, shape, &row, err));
    }
    return r->request->train ? say_layer(r, "(loss)", "", &loss, err) : SNUG_OK;
}

/* --- text ------------------------------------------------------------------------------------- */

static double gap_of(const snug_model_plan_info *p) {
    if (p->lower_bound_bytes == 0)
        return 0;
    return (double)p->arena_bytes / (double)p->lower_bound_bytes - 1;
}

/* Of one output Keras' name, of several the text that was given. */
static const char *loss_name(const snug_model *m) {
    return m->network->n_outputs > 1 ? m->compiled.loss : m->compiled.objectives[0].loss.name;
}

/* "0.36 s a step, 4 % slower than without a limit" */
static snug_status say_time(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    const double slower = p->plain_seconds > 0 ? p->step_seconds / p->plain_seconds - 1 : 0;
    char seconds[32];
    sn_seconds_print(p->step_seconds, seconds, sizeof seconds);
    if (slower < 0.005)
        return sn_say(r->w, err, "%s a step expected, as without a limit\n", seconds);
    return sn_say(r->w, err, "%s a step expected, %.*f %% slower than without a limit\n", seconds,
                  slower < 0.1 ? 1 : 0, 100 * slower);
}

/* What slices and copies of values to a file take together. Rates are rough: what seems to gain
 * costs nothing. */
static double price_of_rest(const snug_model_plan_info *p) {
    const double price = p->step_seconds - p->plain_seconds - p->again_seconds - p->spill_seconds;
    return price > 0 ? price : 0;
}

/* Values go to a file only where nothing runs in slices. */
static double price_of_spill(const snug_model_plan_info *p) {
    return p->spill_seconds + (p->slices > 1 ? 0 : price_of_rest(p));
}

/* How many operators the plan runs; `in_slices`: of those in blocks, where only a part of the step
 * may be sliced. */
static uint32_t count_runs(const sn_plan *p, bool in_slices) {
    uint32_t n = 0;
    bool inside = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step_kind kind = p->steps[i].kind;
        inside = kind == SN_STEP_REPEAT || (inside && kind != SN_STEP_END);
        n += kind == SN_STEP_RUN && (inside || !in_slices);
    }
    return n;
}

/* What the planner did to make it fit, each with its price. */
static snug_status say_means(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    const double slicing = price_of_rest(p);
    char seconds[32], bytes[32];
    if (p->slices > 1)
        SNUG_TRY(sn_say(r->w, err, "  %u of %u operators in %lld slices of the batch: +%s a step\n",
                        count_runs(r->step->plan, true), count_runs(r->step->plan, false),
                        (long long)p->slices, sn_seconds_print(slicing, seconds, sizeof seconds)));
    if (p->recomputed > 0)
        SNUG_TRY(sn_say(r->w, err, "  %zu operator%s run again: +%s a step\n", p->recomputed,
                        p->recomputed == 1 ? " is" : "s are",
                        sn_seconds_print(p->again_seconds, seconds, sizeof seconds)));
    if (p->spilled_bytes > 0)
        SNUG_TRY(sn_say(r->w, err, "  %s wait in %s: +%s a step\n",
                        snug_bytes_print(p->spilled_bytes, bytes, sizeof bytes),
                        r->model->kind->waits,
                        sn_seconds_print(price_of_spill(p), seconds, sizeof seconds)));
    if (p->slices <= 1 && p->recomputed == 0 && p->spilled_bytes == 0)
        return sn_say(r->w, err, "  nothing had to be done for it\n");
    return SNUG_OK;
}

/* Where others hold a part of what was asked for. */
static snug_status say_left(const plan_report *r, snug_error *err) {
    const size_t bytes = r->model->kind->asked(r->model);
    char asked[32];
    if (r->model->kind->of_process || bytes <= r->info.budget_bytes)
        return SNUG_OK;
    return sn_say(r->w, err, "  that is what is free on %s of the budget of %s\n",
                  r->model->target->name, snug_bytes_print(bytes, asked, sizeof asked));
}

static snug_status say_verdict(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    const bool color = r->style & SNUG_REPORT_COLOR;
    const char *on = !color ? "" : p->fits ? "\x1b[1;32m" : "\x1b[1;31m";
    char budget[32], peak[32], floor[32], seconds[32];
    snug_bytes_print(p->budget_bytes, budget, sizeof budget);
    snug_bytes_print(p->peak_bytes, peak, sizeof peak);
    snug_bytes_print(p->floor_bytes, floor, sizeof floor);
    if (!p->fits) {
        SNUG_TRY(sn_say(r->w, err,
                        "%sdoes not fit %s%s: the smallest budget is %s, with %s a step\n", on,
                        budget, color ? "\x1b[0m" : "", floor,
                        sn_seconds_print(p->floor_seconds, seconds, sizeof seconds)));
        SNUG_TRY(say_left(r, err));
        return sn_advice_say(r->model, p, &r->advice, r->w, err);
    }
    SNUG_TRY(sn_say(r->w, err, "%sfits %s%s: peak %s; ", on, budget, color ? "\x1b[0m" : "", peak));
    SNUG_TRY(say_time(r, err));
    SNUG_TRY(say_left(r, err));
    SNUG_TRY(say_means(r, err));
    if (p->floor_bytes > 0)
        SNUG_TRY(sn_say(r->w, err, "  the smallest budget for this batch is %s, with %s a step\n",
                        floor, sn_seconds_print(p->floor_seconds, seconds, sizeof seconds)));
    return sn_say(r->w, err, "\n");
}

static snug_status say_head(const plan_report *r, snug_error *err) {
    const bool color = r->style & SNUG_REPORT_COLOR;
    const char *bold = color ? "\x1b[1m" : "", *off = color ? "\x1b[0m" : "";
    const bool named = !r->model->kind->of_process;
    char name[96], type[192], peak[32];
    SNUG_TRY(sn_say(r->w, err, "Plan of \"%s\", input %s, batch %lld%s%s: ",
                    sn_plain_text(snug_model_name(r->model), name, sizeof name),
                    snug_type_print(snug_model_input(r->model), type, sizeof type),
                    (long long)r->request->batch, named ? ", on " : "",
                    named ? r->model->target->name : ""));
    if (r->request->train)
        SNUG_TRY(sn_say(r->w, err, "a training step with %s and %s\n",
                        r->model->compiled.optimizer.name, loss_name(r->model)));
    else
        SNUG_TRY(sn_say(r->w, err, "prediction (--train plans a training step)\n"));
    if (r->missing[0])
        SNUG_TRY(sn_say(r->w, err, "%s%s%s\n", bold, r->missing, off));
    if (r->info.budget_bytes > 0)
        return say_verdict(r, err);
    return sn_say(r->w, err, "%speak %s%s\n\n", bold,
                  snug_bytes_print(r->info.peak_bytes, peak, sizeof peak), off);
}

static size_t host_bytes_of(const snug_model_plan_info *p) {
    return p->host_process_bytes + p->host_pinned_bytes + p->host_spilled_bytes;
}

/* Of a step on a GPU: its part of the host, and the host's budget. */
static snug_status say_host(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    const bool color = r->style & SNUG_REPORT_COLOR;
    const char *on = !color ? "" : p->host_fits ? "\x1b[1;32m" : "\x1b[1;31m";
    char all[32], process[32], pinned[32], spilled[32], budget[32];
    if (r->model->kind->of_process)
        return SNUG_OK;
    SNUG_TRY(sn_say(r->w, err, "  host %s", snug_bytes_print(host_bytes_of(p), all, sizeof all)));
    if (p->host_budget_bytes > 0)
        SNUG_TRY(sn_say(r->w, err, ", which %s%s %s%s", on, p->host_fits ? "fits" : "does not fit",
                        snug_bytes_print(p->host_budget_bytes, budget, sizeof budget),
                        color ? "\x1b[0m" : ""));
    SNUG_TRY(sn_say(r->w, err,
                    ": process and plan %s, pinned for feeds and outputs %s, for what waits there "
                    "%s\n",
                    snug_bytes_print(p->host_process_bytes, process, sizeof process),
                    snug_bytes_print(p->host_pinned_bytes, pinned, sizeof pinned),
                    snug_bytes_print(p->host_spilled_bytes, spilled, sizeof spilled)));
    return sn_say(r->w, err, "  batches from the host come %s\n",
                  p->next_batch_bytes > 0 ? "while the step before them runs"
                                          : "between steps: there is no room for two of them");
}

/* Of a step in halves: what they gain beside f32, or cost. */
static snug_status say_beside_f32(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info, *f = &r->f32;
    const double times = p->step_seconds / f->step_seconds;
    char own[32], arena[32], seconds[32];
    if (!r->has_f32 || !r->info.fits)
        return SNUG_OK;
    SNUG_TRY(sn_say(r->w, err, "  %s beside f32: the arena takes %s instead of %s, a step ",
                    sn_policy_name(&r->model->network->policy),
                    snug_bytes_print(p->arena_bytes, own, sizeof own),
                    snug_bytes_print(f->arena_bytes, arena, sizeof arena)));
    SNUG_TRY(sn_say(r->w, err, "%s instead of ",
                    sn_seconds_print(p->step_seconds, seconds, sizeof seconds)));
    return sn_say(r->w, err, "%s%s\n", sn_seconds_print(f->step_seconds, seconds, sizeof seconds),
                  times > SN_SLOWER ? ": f32 is faster here" : "");
}

static snug_status say_facts(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    char arena[32], bound[32], flops[32], layer[96];
    SNUG_TRY(sn_say(r->w, err, "\n  arena %s, lower bound %s: packing gap %.2f %%\n",
                    snug_bytes_print(p->arena_bytes, arena, sizeof arena),
                    snug_bytes_print(p->lower_bound_bytes, bound, sizeof bound), 100 * gap_of(p)));
    if (p->peak_operator[0])
        SNUG_TRY(sn_say(r->w, err, "  the arena is fullest in %s%s, operator %s\n",
                        p->peak_layer[0] ? "layer " : "the model",
                        sn_plain_text(p->peak_layer, layer, sizeof layer), p->peak_operator));
    SNUG_TRY(sn_say(r->w, err, "  %sFLOP a step, %zu nodes, %zu steps\n",
                    print_flops(p->flops, flops, sizeof flops), p->n_nodes, p->n_steps));
    SNUG_TRY(say_beside_f32(r, err));
    SNUG_TRY(say_host(r, err));
    return sn_say(r->w, err, "\n");
}

static snug_status say_text(const plan_report *r, snug_error *err) {
    category_row rows[N_ROWS];
    const int n = make_rows(r, rows);
    SNUG_TRY(say_head(r, err));
    for (int i = 0; i < n; i++)
        SNUG_TRY(say_category(r, &rows[i], err));
    SNUG_TRY(say_facts(r, err));
    SNUG_TRY(say_layers(r, err));
    if (!(r->style & SNUG_REPORT_STEPS))
        return SNUG_OK;
    SNUG_TRY(sn_say(r->w, err, "\n"));
    return sn_plan_print(r->step->plan, r->w, err);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static snug_status json_rows(const plan_report *r, snug_error *err) {
    category_row rows[N_ROWS];
    const int n = make_rows(r, rows);
    SNUG_TRY(sn_say(r->w, err, ",\"rows\":["));
    for (int i = 0; i < n; i++)
        SNUG_TRY(sn_say(r->w, err, "%s{\"name\":\"%s\",\"bytes\":%zu,\"in_arena\":%s}",
                        i ? "," : "", rows[i].name, rows[i].bytes,
                        rows[i].inside ? "true" : "false"));
    return sn_say(r->w, err, "]");
}

static snug_status json_means(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    const double slicing = price_of_rest(p);
    const char *comma = "";
    char seconds[SN_REAL_TEXT];
    SNUG_TRY(sn_say(r->w, err, ",\"means\":["));
    if (p->slices > 1) {
        SNUG_TRY(sn_say(r->w, err,
                        "{\"name\":\"slices\",\"count\":%lld,\"operators\":%u,\"seconds\":%s}",
                        (long long)p->slices, count_runs(r->step->plan, true),
                        sn_real_print(slicing, 6, seconds)));
        comma = ",";
    }
    if (p->recomputed > 0) {
        SNUG_TRY(sn_say(r->w, err, "%s{\"name\":\"recompute\",\"count\":%zu,\"seconds\":%s}", comma,
                        p->recomputed, sn_real_print(p->again_seconds, 6, seconds)));
        comma = ",";
    }
    if (p->spilled_bytes > 0)
        SNUG_TRY(sn_say(r->w, err, "%s{\"name\":\"spill\",\"bytes\":%zu,\"seconds\":%s}", comma,
                        p->spilled_bytes, sn_real_print(price_of_spill(p), 6, seconds)));
    return sn_say(r->w, err, "]");
}

static snug_status json_owner(const plan_report *r, const sn_plan_owner_row *o, snug_error *err) {
    return sn_say(r->w, err,
                  "\"weight_bytes\":%zu,\"at_peak_bytes\":%zu,\"own_peak_bytes\":%zu,"
                  "\"flops\":%.0f}",
                  o->weight_bytes, o->at_peak_bytes, o->own_peak_bytes, o->flops);
}

static snug_status json_layers(const plan_report *r, snug_error *err) {
    uint32_t at = 0;
    const sn_plan_owner_row inputs = row_of(r, "", &at), loss = row_of(r, "loss", &at);
    SNUG_TRY(sn_say(r->w, err, ",\"inputs\":{"));
    SNUG_TRY(json_owner(r, &inputs, err));
    SNUG_TRY(sn_say(r->w, err, ",\"loss\":{"));
    SNUG_TRY(json_owner(r, &loss, err));
    SNUG_TRY(sn_say(r->w, err, ",\"layers\":["));
    for (size_t i = 0; i < snug_model_n_layers(r->model); i++) {
        snug_layer_info l;
        snug_model_layer(r->model, i, &l);
        const sn_plan_owner_row o = row_of(r, l.name, &at);
        SNUG_TRY(sn_say(r->w, err, "%s{\"name\":", i ? "," : ""));
        SNUG_TRY(sn_json_string(r->w, l.name, err));
        SNUG_TRY(sn_say(r->w, err, ",\"type\":\"%s\",\"output\":[%lld", l.type,
                        (long long)r->request->batch));
        for (int d = 1; d < l.output.rank; d++)
            SNUG_TRY(sn_say(r->w, err, ",%lld", (long long)l.output.dims[d]));
        SNUG_TRY(sn_say(r->w, err, "],"));
        SNUG_TRY(json_owner(r, &o, err));
    }
    return sn_say(r->w, err, "]");
}

static snug_status escape_piece(void *ctx, const char *text, size_t n, snug_error *err) {
    return sn_json_escape(ctx, text, n, err);
}

static snug_status json_steps(const plan_report *r, snug_error *err) {
    const snug_writer escaped = {(void *)r->w, escape_piece};
    SNUG_TRY(sn_say(r->w, err, ",\"plan\":\""));
    SNUG_TRY(sn_plan_print(r->step->plan, &escaped, err));
    return sn_say(r->w, err, "\"");
}

static snug_status json_verdict(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    char seconds[SN_REAL_TEXT], plain[SN_REAL_TEXT];
    return sn_say(r->w, err,
                  ",\"fits\":%s,\"budget_bytes\":%zu,\"floor_bytes\":%zu,\"slices\":%lld,"
                  "\"recomputed\":%zu,\"spilled_bytes\":%zu,\"step_seconds\":%s,"
                  "\"plain_seconds\":%s",
                  p->fits ? "true" : "false", p->budget_bytes, p->floor_bytes, (long long)p->slices,
                  p->recomputed, p->spilled_bytes, sn_real_print(p->step_seconds, 6, seconds),
                  sn_real_print(p->plain_seconds, 6, plain));
}

static snug_status json_precision(const plan_report *r, snug_error *err) {
    char seconds[SN_REAL_TEXT];
    SNUG_TRY(
        sn_say(r->w, err, ",\"precision\":\"%s\"", sn_policy_name(&r->model->network->policy)));
    if (!r->has_f32 || !r->info.fits)
        return SNUG_OK;
    return sn_say(r->w, err, ",\"in_f32\":{\"arena_bytes\":%zu,\"step_seconds\":%s,\"faster\":%s}",
                  r->f32.arena_bytes, sn_real_print(r->f32.step_seconds, 6, seconds),
                  r->info.step_seconds > SN_SLOWER * r->f32.step_seconds ? "true" : "false");
}

static snug_status json_host(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    if (r->model->kind->of_process)
        return SNUG_OK;
    if (r->missing[0])
        SNUG_TRY(sn_say(r->w, err, ",\"missing\":\"%s\"", r->missing));
    return sn_say(r->w, err,
                  ",\"host\":{\"fits\":%s,\"budget_bytes\":%zu,\"peak_bytes\":%zu,"
                  "\"process_bytes\":%zu,\"pinned_bytes\":%zu,\"spilled_bytes\":%zu},"
                  "\"next_batch_bytes\":%zu",
                  p->host_fits ? "true" : "false", p->host_budget_bytes, host_bytes_of(p),
                  p->host_process_bytes, p->host_pinned_bytes, p->host_spilled_bytes,
                  p->next_batch_bytes);
}

static snug_status say_json(const plan_report *r, snug_error *err) {
    const snug_model_plan_info *p = &r->info;
    char gap[SN_REAL_TEXT];
    SNUG_TRY(sn_say(r->w, err, "{\"model\":"));
    SNUG_TRY(sn_json_string(r->w, snug_model_name(r->model), err));
    SNUG_TRY(sn_say(r->w, err, ",\"batch\":%lld,\"train\":%s,\"peak_bytes\":%zu",
                    (long long)r->request->batch, r->request->train ? "true" : "false",
                    p->peak_bytes));
    SNUG_TRY(json_verdict(r, err));
    SNUG_TRY(sn_say(r->w, err,
                    ",\"state_bytes\":%zu,\"arena_bytes\":%zu,\"lower_bound_bytes\":%zu,"
                    "\"gap\":%s,\"flops\":%.0f,\"nodes\":%zu,\"steps\":%zu",
                    p->weights_bytes + p->optimizer_bytes, p->arena_bytes, p->lower_bound_bytes,
                    sn_real_print(gap_of(p), 6, gap), p->flops, p->n_nodes, p->n_steps));
    SNUG_TRY(sn_say(r->w, err, ",\"peak_layer\":"));
    SNUG_TRY(sn_json_string(r->w, p->peak_layer, err));
    SNUG_TRY(sn_say(r->w, err, ",\"peak_operator\":\"%s\"", p->peak_operator));
    SNUG_TRY(json_precision(r, err));
    SNUG_TRY(json_means(r, err));
    SNUG_TRY(json_rows(r, err));
    SNUG_TRY(json_host(r, err));
    SNUG_TRY(json_layers(r, err));
    if (r->style & SNUG_REPORT_STEPS)
        SNUG_TRY(json_steps(r, err));
    return sn_say(r->w, err, "}\n");
}

/* --- the report ------------------------------------------------------------------------------- */

/* The workspace of the fullest step belongs to the step's layer. */
static void add_workspace(const plan_report *r, sn_plan_owner_row *rows) {
    const sn_plan *p = r->step->plan;
    if (p->peak_step >= p->n_steps || p->steps[p->peak_step].kind != SN_STEP_RUN)
        return;
    const sn_node_info *node = sn_graph_node_at(r->step->graph, p->steps[p->peak_step].node);
    rows[node->owner].at_peak_bytes += r->info.workspace_bytes;
}

static snug_status fail_verdict(const snug_model_plan_info *p, snug_error *err) {
    char budget[32], floor[32], host[32];
    if (p->fits)
        return sn_fail(err, SNUG_E_BUDGET, "the step needs %s of the host, and its budget is %s",
                       snug_bytes_print(host_bytes_of(p), host, sizeof host),
                       snug_bytes_print(p->host_budget_bytes, budget, sizeof budget));
    return sn_fail(err, SNUG_E_BUDGET, "does not fit %s; the smallest budget for this batch is %s",
                   snug_bytes_print(p->budget_bytes, budget, sizeof budget),
                   snug_bytes_print(p->floor_bytes, floor, sizeof floor));
}

snug_status snug_report_plan(snug_model *model, const snug_plan_request *request, int style,
                             const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, model && request && out);
    plan_report r = {.model = model, .request = request, .w = out, .style = style};
    void *rows;
    SNUG_TRY(sn_precision_f32(model, request, &r.f32, &r.has_f32, err));
    SNUG_TRY(sn_model_verdict(model, request, &r.info, err));
    if (!r.info.fits && !(style & SNUG_REPORT_JSON)) {
        snug_plan_request asked = *request;
        asked.budget_bytes = r.info.budget_bytes;
        SNUG_TRY(sn_advice_find(model, &asked, r.info.floor_bytes, &r.advice, err));
        SNUG_TRY(sn_model_verdict_again(model, request, &r.info, err));
    }
    SNUG_TRY(snug_model_missing(model, r.missing, sizeof r.missing, err));
    const sn_model_step *const step = r.step = &model->looked;
    const size_t bytes = sn_graph_n_owners(step->graph) * sizeof(sn_plan_owner_row);
    SNUG_TRY(sn_alloc(model->engine, SN_MEM_OTHER, bytes, &rows, err));
    snug_status status = sn_plan_owner_rows(step->plan, model->engine, rows, err);
    r.owners = rows;
    if (status == SNUG_OK)
        add_workspace(&r, rows);
    if (status == SNUG_OK)
        status = style & SNUG_REPORT_JSON ? say_json(&r, err) : say_text(&r, err);
    sn_free(model->engine, SN_MEM_OTHER, rows, bytes);
    const bool fits = r.info.fits && r.info.host_fits;
    return status == SNUG_OK && !fits ? fail_verdict(&r.info, err) : status;
}
