/* page.c: a plan to look at: one HTML file without anything from elsewhere. Three pictures:
 *
 *     the trade     step time against budget, with the asked budget marked
 *     the budget    its categories as one bar
 *     the step      bytes live in the arena from step to step, by category
 *
 * Colours follow the reader's light or dark setting. */
#include "base/say.h"
#include "model/json.h"
#include "report/curve.h"
#include "train/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH   860.0
#define HEIGHT  240.0
#define LEFT    70.0
#define BOTTOM  34.0
#define COLUMNS 430

typedef struct {
    snug_model *model;
    const snug_plan_request *request;
    snug_model_plan_info info;
    sn_curve curve;
    const sn_plan_categories *timeline; /* per step of the plan */
    const snug_writer *w;
} page;

#define SAY(...) SNUG_TRY(sn_say(p->w, err, __VA_ARGS__))

/* --- text ------------------------------------------------------------------------------------- */
static snug_status say_escaped(const page *p, const char *text, snug_error *err) {
    for (; *text; text++) {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '&' ? "&amp;"
                                            : NULL;
        SAY("%s%.*s", entity ? entity : "", entity ? 0 : 1, text);
    }
    return SNUG_OK;
}

/* Longer than one sn_say takes. */
static snug_status say_style(const page *p, snug_error *err) {
    static const char style[] =
        "<style>:root{color-scheme:light dark;--bg:#fbfaf7;--ink:#1f2328;--dim:#6b7280;--line:"
        "#d9d6cf;--a:#2f6f9f;--b:#c26a2e;--c:#3f8a5b;--d:#8a5a9e;--e:#a3a3a3;--f:#c9b458;--g:#"
        "c77d94;--mark:#b3261e}@media(prefers-color-scheme:dark){:root{--bg:#15171a;--ink:#e6e"
        "4df;--dim:#9aa0a6;--line:#33373c;--a:#6fb1e0;--b:#e59a5f;--c:#74c493;--d:#c193d6;--e:"
        "#777;--f:#d8c675;--g:#e3a3b7;--mark:#ff8a80}}body{background:var(--bg);color:var(--in"
        "k);font:15px/1.5 system-ui,sans-serif;margin:2.5rem auto;max-width:900px;padding:0 1r"
        "em}h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2.2rem 0 .4rem}p{margin:."
        "3rem 0;color:var(--dim)}p b{color:var(--ink)}svg{width:100%;height:auto;display:block"
        "}text{fill:var(--dim);font-size:12px}.axis{stroke:var(--line)}.line{fill:none;stroke:"
        "var(--a);stroke-width:2}.dot{fill:var(--a)}.mark{stroke:var(--mark);stroke-dasharray:"
        "4 3}.marktext{fill:var(--mark)}ul{list-style:none;padding:0;margin:.6rem 0;display:fl"
        "ex;flex-wrap:wrap;gap:.3rem 1.2rem;color:var(--dim);font-size:13px}li span{display:in"
        "line-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}</style>\n";
    return p->w->write(p->w->ctx, style, sizeof style - 1, err);
}

/* --- the trade -------------------------------------------------------------------------------- */
typedef struct {
    double low, high; /* of the budget, as logarithms */
    double most;      /* seconds at the top */
} scale;

static double x_of(const scale *s, double bytes) {
    const double at = s->high > s->low ? (log2(bytes) - s->low) / (s->high - s->low) : 0.5;
    return LEFT + fmin(fmax(at, 0), 1) * (WIDTH - LEFT - 20);
}

static double y_of(const scale *s, double seconds) {
    return HEIGHT - BOTTOM - seconds / s->most * (HEIGHT - BOTTOM - 24);
}

/* Around the points and the budget that was asked for. */
static scale scale_of(const page *p) {
    const sn_curve *c = &p->curve;
    double low = (double)c->points[c->n - 1].budget_bytes, high = (double)c->points[0].budget_bytes;
    scale s = {.most = 0};
    if (p->info.budget_bytes > 0) {
        low = fmin(low, (double)p->info.budget_bytes);
        high = fmax(high, (double)p->info.budget_bytes);
    }
    for (size_t i = 0; i < c->n; i++)
        s.most = fmax(s.most, c->points[i].step_seconds);
    s.low = log2(low) - 0.05;
    s.high = log2(high) + 0.05;
    s.most *= 1.08;
    return s;
}

/* 1, 2 or 5 of some power of ten: at most four of them are up to `most`. */
static double round_step(double most) {
    const double unit = most > 0 ? pow(10, floor(log10(most / 4))) : 1;
    return unit * (most <= 4 * unit ? 1 : most <= 8 * unit ? 2 : most <= 20 * unit ? 5 : 10);
}

/* Powers of two and, between them, one and a half of each. */
static double tick_at(int k) {
    return ldexp(k % 2 ? 1.5 : 1, k / 2);
}

static snug_status say_tick(const page *p, const scale *s, double bytes, snug_error *err) {
    char text[32];
    const double x = x_of(s, bytes);
    return sn_say(p->w, err,
                  "<line class=axis x1=%.1f y1=%g x2=%.1f y2=%g /><text x=%.1f y=%g "
                  "text-anchor=middle>%s</text>",
                  x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5, fmin(x, WIDTH - 32),
                  HEIGHT - BOTTOM + 18, snug_bytes_print((size_t)bytes, text, sizeof text));
}

static snug_status say_budgets(const page *p, const scale *s, snug_error *err) {
    const double octaves = s->high - s->low, low = exp2(s->low), high = exp2(s->high);
    const int every = octaves > 7 ? 4 : octaves > 3 ? 2 : 1;
    int first = 2 * (int)s->low / every * every, n = 0;
    while (tick_at(first) < low)
        first += every;
    while (tick_at(first + n * every) <= high)
        n++;
    for (int i = 0; i < n && n > 1; i++)
        SNUG_TRY(say_tick(p, s, tick_at(first + i * every), err));
    if (n > 1)
        return SNUG_OK;
    SNUG_TRY(say_tick(p, s, low, err)); /* too few to read a scale by: its ends */
    return say_tick(p, s, high, err);
}

static snug_status say_axes(const page *p, const scale *s, snug_error *err) {
    char text[32];
    const double step = round_step(s->most);
    for (int i = 0; i * step <= s->most; i++)
        SAY("<line class=axis x1=%g y1=%.1f x2=%g y2=%.1f /><text x=%g y=%.1f "
            "text-anchor=end>%s</text>",
            LEFT, y_of(s, i * step), WIDTH - 10, y_of(s, i * step), LEFT - 8, y_of(s, i * step) + 4,
            i == 0 ? "0" : sn_seconds_print(i * step, text, sizeof text));
    return say_budgets(p, s, err);
}

static snug_status say_trade(const page *p, snug_error *err) {
    const scale s = scale_of(p);
    const sn_curve *c = &p->curve;
    char text[32], seconds[32];
    SAY("<h2>Time against memory</h2><p>Expected time of a step (up) for a budget of the whole "
        "process (right). Each point is a plan; left of them nothing fits.</p>");
    SAY("<svg viewBox=\"0 0 %g %g\" role=img aria-label=\"step time against budget\">", WIDTH,
        HEIGHT);
    SNUG_TRY(say_axes(p, &s, err));
    SAY("<polyline class=line points=\"");
    for (size_t i = 0; i < c->n; i++) /* a budget keeps its plan until the next one fits */
        SAY("%.1f,%.1f %.1f,%.1f ",
            x_of(&s, i ? (double)c->points[i - 1].budget_bytes : exp2(s.high)),
            y_of(&s, c->points[i].step_seconds), x_of(&s, (double)c->points[i].budget_bytes),
            y_of(&s, c->points[i].step_seconds));
    SAY("\"/>");
    for (size_t i = 0; i < c->n; i++)
        SAY("<circle class=dot cx=%.1f cy=%.1f r=3.5><title>%s: %s a step, %lld "
            "slices</title></circle>",
            x_of(&s, (double)c->points[i].budget_bytes), y_of(&s, c->points[i].step_seconds),
            snug_bytes_print(c->points[i].budget_bytes, text, sizeof text),
            sn_seconds_print(c->points[i].step_seconds, seconds, sizeof seconds),
            (long long)c->points[i].slices);
    if (p->info.budget_bytes > 0) {
        const double x = x_of(&s, (double)p->info.budget_bytes);
        SAY("<line class=mark x1=%.1f y1=17 x2=%.1f y2=%g /><text class=marktext x=%.1f y=12 "
            "text-anchor=middle>%s</text>",
            x, x, HEIGHT - BOTTOM, fmin(x, WIDTH - 32),
            snug_bytes_print(p->info.budget_bytes, text, sizeof text));
    }
    return sn_say(p->w, err, "</svg>\n");
}

/* --- the budget ------------------------------------------------------------------------------- */
typedef struct {
    const char *name, *color;
    size_t bytes;
} part;

static snug_status say_parts(const page *p, const part *parts, size_t n, size_t whole,
                             snug_error *err) {
    double x = 0;
    char text[32];
    SAY("<svg viewBox=\"0 0 %g 40\" role=img aria-label=\"categories\">", WIDTH);
    for (size_t i = 0; i < n; i++) {
        const double width = WIDTH * (double)parts[i].bytes / (double)whole;
        SAY("<rect x=%.2f y=4 width=%.2f height=32 style=\"fill:var(--%s)\"><title>%s "
            "%s</title></rect>",
            x, width, parts[i].color, parts[i].name,
            snug_bytes_print(parts[i].bytes, text, sizeof text));
        x += width;
    }
    SAY("</svg><ul>");
    for (size_t i = 0; i < n; i++)
        if (parts[i].bytes > 0)
            SAY("<li><span style=\"background:var(--%s)\"></span>%s %s</li>", parts[i].color,
                parts[i].name, snug_bytes_print(parts[i].bytes, text, sizeof text));
    return sn_say(p->w, err, "</ul>\n");
}

static snug_status say_budget(const page *p, snug_error *err) {
    const snug_model_plan_info *i = &p->info;
    const size_t limit = i->fits ? i->budget_bytes : i->floor_bytes;
    const size_t taken = i->peak_bytes + (limit ? i->reserve_bytes + i->later_bytes : 0);
    const part parts[] = {
        {"weights", "a", i->weights_bytes},
        {"optimizer", "d", i->optimizer_bytes},
        {"arena", "c", i->arena_bytes},
        {"graph, plan, names", "f", i->books_bytes},
        {"process", "b", i->process_bytes},
        {"reserve", "e", i->budget_bytes ? i->reserve_bytes : 0},
        {"validation, remainder", "g", i->budget_bytes ? i->later_bytes : 0},
        {"spare", "line", limit > taken ? limit - taken : 0},
    };
    SAY("<h2>Where the bytes go</h2>");
    return say_parts(p, parts, sizeof parts / sizeof *parts, limit > taken ? limit : taken, err);
}

/* --- the step --------------------------------------------------------------------------------- */
enum { N_LAYERS = 5 };
static const char *const layer_names[N_LAYERS] = {"inputs", "activations", "gradients", "workspace",
                                                  "outputs"};
static const char *const layer_colors[N_LAYERS] = {"a", "c", "b", "e", "d"};

static size_t layer_bytes(const sn_plan_categories *c, int layer) {
    const size_t bytes[N_LAYERS] = {c->inputs, c->activations, c->gradients, c->workspace,
                                    c->outputs};
    return bytes[layer];
}

static size_t live_bytes(const sn_plan_categories *c) {
    return c->inputs + c->activations + c->gradients + c->workspace + c->outputs;
}

static bool is_used(const page *p, int layer) {
    bool any = false;
    for (uint32_t t = 0; t < p->model->looked.plan->n_steps; t++)
        any = any || layer_bytes(&p->timeline[t], layer) > 0;
    return any;
}

/* The fullest step of a column. */
static const sn_plan_categories *column_at(const page *p, uint32_t column, uint32_t n_columns) {
    const uint32_t n = p->model->looked.plan->n_steps;
    const uint32_t first = (uint32_t)((uint64_t)column * n / n_columns),
                   end = (uint32_t)(((uint64_t)column + 1) * n / n_columns);
    const sn_plan_categories *best = &p->timeline[first];
    for (uint32_t t = first + 1; t < end; t++)
        if (live_bytes(&p->timeline[t]) > live_bytes(best))
            best = &p->timeline[t];
    return best;
}

static double height_of(const page *p, size_t bytes) {
    return (double)bytes / (double)p->info.arena_bytes * (HEIGHT - BOTTOM - 24);
}

/* One area per category, from the sum of those below it to its own top. */
static snug_status say_layer(const page *p, int layer, uint32_t n, snug_error *err) {
    const double step = (WIDTH - LEFT - 10) / n;
    SAY("<path style=\"fill:var(--%s)\" d=\"", layer_colors[layer]);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t i = pass ? n - 1 - k : k;
            const sn_plan_categories *c = column_at(p, i, n);
            size_t sum = pass ? 0 : layer_bytes(c, layer);
            for (int below = 0; below < layer; below++)
                sum += layer_bytes(c, below);
            const double y = HEIGHT - BOTTOM - height_of(p, sum), x = LEFT + i * step;
            SAY("%s%.1f %.1f L%.1f %.1f ", pass || k ? "L" : "M", pass ? x + step : x, y,
                pass ? x : x + step, y);
        }
    return sn_say(p->w, err, "Z\"/>");
}

/* A bracket above each block of slices; there may be hundreds, which must not hide the picture. */
static snug_status say_blocks(const page *p, snug_error *err) {
    const sn_plan *plan = p->model->looked.plan;
    const double step = (WIDTH - LEFT - 10) / plan->n_steps;
    uint32_t first = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == SN_STEP_REPEAT)
            first = i;
        if (plan->steps[i].kind != SN_STEP_END)
            continue;
        SAY("<path style=\"fill:none;stroke:var(--mark)\" d=\"M%.1f 20 V14 H%.1f V20\"/>",
            LEFT + first * step, LEFT + (i + 1) * step);
        if ((i - first) * step > 60)
            SAY("<text class=marktext x=%.1f y=11 text-anchor=middle>%lld times</text>",
                LEFT + (first + i + 1) * step / 2, (long long)plan->steps[first].repeat);
    }
    return SNUG_OK;
}

static snug_status say_step(const page *p, snug_error *err) {
    const uint32_t n_steps = p->model->looked.plan->n_steps,
                   n = n_steps < COLUMNS ? n_steps : COLUMNS;
    char text[32];
    SAY("<h2>The arena during a step</h2><p>Bytes in use (up) from the first operator to the last "
        "(right)");
    SAY("%s.</p>", p->info.slices > 1 ? "; what is under a bracket runs once for each slice" : "");
    SAY("<svg viewBox=\"0 0 %g %g\" role=img aria-label=\"arena over time\">", WIDTH, HEIGHT);
    for (int layer = 0; layer < N_LAYERS && n > 0; layer++)
        SNUG_TRY(say_layer(p, layer, n, err));
    SAY("<line class=axis x1=%g y1=%g x2=%g y2=%g /><line class=axis x1=%g y1=24 x2=%g y2=24 />",
        LEFT, HEIGHT - BOTTOM, WIDTH - 10, HEIGHT - BOTTOM, LEFT, WIDTH - 10);
    SAY("<text x=%g y=28 text-anchor=end>%s</text><text x=%g y=%g text-anchor=end>0</text>",
        LEFT - 8, snug_bytes_print(p->info.arena_bytes, text, sizeof text), LEFT - 8,
        HEIGHT - BOTTOM + 4);
    SNUG_TRY(say_blocks(p, err));
    SAY("<text x=%g y=%g text-anchor=end>%u steps of the plan</text></svg><ul>", WIDTH - 10,
        HEIGHT - 8, n_steps);
    for (int layer = 0; layer < N_LAYERS; layer++)
        if (is_used(p, layer))
            SAY("<li><span style=\"background:var(--%s)\"></span>%s</li>", layer_colors[layer],
                layer_names[layer]);
    return sn_say(p->w, err, "</ul>\n");
}

/* --- the page --------------------------------------------------------------------------------- */
static snug_status say_head(const page *p, snug_error *err) {
    const snug_model_plan_info *i = &p->info;
    char a[32], b[32], c[32];
    SAY("<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
        "content=\"width=device-width,initial-scale=1\"><title>Plan of ");
    SNUG_TRY(say_escaped(p, snug_model_name(p->model), err));
    SAY("</title>\n");
    SNUG_TRY(say_style(p, err));
    SAY("<h1>");
    SNUG_TRY(say_escaped(p, snug_model_name(p->model), err));
    SAY("</h1><p>%s, batch %lld</p><p><b>", p->request->train ? "A training step" : "Prediction",
        (long long)p->request->batch);
    if (i->budget_bytes == 0)
        SAY("Peak %s</b>, ", snug_bytes_print(i->peak_bytes, a, sizeof a));
    else if (i->fits)
        SAY("Fits %s</b> with a peak of %s, ", snug_bytes_print(i->budget_bytes, a, sizeof a),
            snug_bytes_print(i->peak_bytes, b, sizeof b));
    else
        SAY("Does not fit %s</b>; the smallest budget is %s. There: ",
            snug_bytes_print(i->budget_bytes, a, sizeof a),
            snug_bytes_print(i->floor_bytes, b, sizeof b));
    SAY("%s a step expected", sn_seconds_print(i->step_seconds, c, sizeof c));
    if (i->slices > 1)
        SAY(", in %lld slices", (long long)i->slices);
    if (i->recomputed > 0)
        SAY(", %zu operator%s run again", i->recomputed, i->recomputed == 1 ? "" : "s");
    return sn_say(p->w, err, ".</p>\n");
}

static snug_status say_page(page *p, snug_error *err) {
    const sn_plan *plan = p->model->looked.plan;
    const size_t bytes = (plan->n_steps + 1) * sizeof(sn_plan_categories);
    void *rows;
    SNUG_TRY(sn_alloc_zero(p->model->engine, SN_MEM_OTHER, bytes, &rows, err));
    p->timeline = rows;
    snug_status status = sn_plan_timeline(plan, p->model->engine, rows, err);
    if (status == SNUG_OK)
        status = say_head(p, err);
    if (status == SNUG_OK)
        status = say_trade(p, err);
    if (status == SNUG_OK)
        status = say_budget(p, err);
    if (status == SNUG_OK)
        status = say_step(p, err);
    sn_free(p->model->engine, SN_MEM_OTHER, rows, bytes);
    return status;
}

snug_status snug_report_page(snug_model *model, const snug_plan_request *request,
                             const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, out);
    page p = {.model = model, .request = request, .w = out};
    SNUG_TRY(sn_curve_find(model, request, &p.curve, err));
    SNUG_TRY(sn_model_verdict(model, request, &p.info, err));
    return say_page(&p, err);
}
