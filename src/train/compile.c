/* compile.c: a model's compile settings. Texts name what each output is trained for:
 *
 *     "mse"                       for every output
 *     "mse;none"                  output by output, in the model's order; none: nothing
 *     "a=mse;b=huber:delta=2"     by the outputs' names
 *
 * Everything is parsed before anything changes. Names of values are Keras': "loss", then "a_loss"
 * where several outputs have one, then the metrics, "a_accuracy" where there are several
 * outputs. */
#include "train/compile.h"

#include "base/setting_text.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

/* --- the entry of an output ------------------------------------------------------------------- */
/* The length of the name in front of '='; 0 when the entry has none ("huber:delta=2"). */
static size_t name_length(const char *entry) {
    const size_t n = strcspn(entry, "=:;,[(");
    return entry[n] == '=' ? n : 0;
}

static bool is_output(const sn_network *n, uint32_t i, const char *name, size_t length) {
    const char *own = sn_network_output_name(n, i);
    return strlen(own) == length && strncmp(own, name, length) == 0;
}

/* Every name must be an output's, and a list must have an entry for each. */
static snug_status check_entries(const sn_network *n, const char *text, const char *what,
                                 snug_error *err) {
    uint32_t entries = 0, named = 0;
    for (const char *at = text; *at;) {
        const size_t length = name_length(at), whole = sn_text_span(at, ";");
        uint32_t i = 0;
        while (i < n->n_outputs && !is_output(n, i, at, length))
            i++;
        if (length > 0 && i == n->n_outputs)
            return sn_fail(err, SNUG_E_INVALID,
                           "%s: the model has no output '%.*s'; its first is '%s'", what,
                           (int)length, at, sn_network_output_name(n, 0));
        named += length > 0;
        entries++;
        at += whole + (at[whole] == ';');
    }
    if (named == 0 && entries > 1 && entries != n->n_outputs)
        return sn_fail(err, SNUG_E_INVALID, "%s has %u entries, the model %u outputs", what,
                       entries, n->n_outputs);
    return SNUG_OK;
}

/* The part of the text for output i, cut off at ';'. */
static const char *entry_of(const sn_network *n, const char *text, uint32_t i, size_t *length) {
    const char *at = text;
    uint32_t k = 0;
    *length = 0;
    if (!strchr(text, ';') && name_length(text) == 0) {
        *length = strlen(text);
        return text;
    }
    for (; *at; k++) {
        const size_t name = name_length(at), whole = sn_text_span(at, ";");
        if (name > 0 ? is_output(n, i, at, name) : k == i) {
            const size_t skip = name ? name + 1 : 0;
            *length = whole - skip;
            return at + skip;
        }
        at += whole + (at[whole] == ';');
    }
    return at;
}

/* Copies the entry; "" where there is none, or it says so. */
static snug_status take_entry(const sn_network *n, const char *text, uint32_t i, char *out,
                              size_t size, snug_error *err) {
    size_t length;
    const char *entry = entry_of(n, text, i, &length);
    if (length >= size)
        return sn_fail(err, SNUG_E_INVALID, "'%.40s...' is longer than %zu letters", entry,
                       size - 1);
    memcpy(out, entry, length);
    out[length] = 0;
    if (strcmp(out, "none") == 0)
        out[0] = 0;
    return SNUG_OK;
}

/* --- losses ----------------------------------------------------------------------------------- */
static snug_status parse_losses(const sn_network *n, sn_compiled *c, snug_error *err) {
    char text[192];
    SNUG_TRY(check_entries(n, c->loss, "loss", err));
    SNUG_TRY(check_entries(n, c->loss_weights, "loss_weights", err));
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        sn_objective *const o = &c->objectives[i];
        *o = (sn_objective){.weight = 1};
        SNUG_TRY(take_entry(n, c->loss, i, text, sizeof text, err));
        o->used = text[0] != 0;
        if (o->used)
            SNUG_TRY(sn_loss_parse(text, &o->loss, err));
        SNUG_TRY(take_entry(n, c->loss_weights, i, text, sizeof text, err));
        if (text[0] && !sn_text_real(text, &o->weight))
            return sn_fail(err, SNUG_E_INVALID, "loss_weights: '%.40s' is no number", text);
    }
    return SNUG_OK;
}

/* --- metrics ---------------------------------------------------------------------------------- */
/* The length of the first metric of a list: up to a comma or space, but "key=value" behind a comma
 * still belongs to it. */
static size_t metric_length(const char *p) {
    size_t n = sn_text_span(p, ", ");
    while (p[n] == ',') {
        const char *next = p + n + 1;
        if (next[strcspn(next, "=:, ")] != '=')
            break;
        n += 1 + sn_text_span(next, ", ");
    }
    return n;
}

static snug_status add_metrics(sn_compiled *c, const char *text, uint32_t output, bool weighted,
                               snug_error *err) {
    for (const char *p = text + strspn(text, ", "); *p;) {
        const size_t length = metric_length(p);
        sn_metric *const m = &c->metrics[c->n_metrics];
        if (c->n_metrics == SNUG_MAX_METRICS)
            return sn_fail(err, SNUG_E_INVALID, "more than %d metrics", SNUG_MAX_METRICS);
        if (length >= sizeof m->text)
            return sn_fail(err, SNUG_E_INVALID, "metric '%.40s...' is not known", p);
        *m = (sn_metric){.output = output, .weighted = weighted};
        memcpy(m->text, p, length);
        SNUG_TRY(sn_option_name(m->text, m->name, sizeof m->name, err));
        c->n_metrics++;
        p += length;
        p += strspn(p, ", ");
    }
    return SNUG_OK;
}

static snug_status parse_metrics(const sn_network *n, sn_compiled *c, snug_error *err) {
    const char *const texts[2] = {c->metrics_text, c->weighted_metrics};
    static const char *const what[2] = {"metrics", "weighted_metrics"};
    char text[sizeof c->metrics_text];
    c->n_metrics = 0;
    for (int weighted = 0; weighted < 2; weighted++) {
        SNUG_TRY(check_entries(n, texts[weighted], what[weighted], err));
        for (uint32_t i = 0; i < n->n_outputs; i++) {
            SNUG_TRY(take_entry(n, texts[weighted], i, text, sizeof text, err));
            SNUG_TRY(add_metrics(c, text, i, weighted, err));
        }
    }
    return SNUG_OK;
}

/* A name that no earlier metric has, as Keras makes it. */
static void set_unique_name(sn_compiled *c, int i, const char *prefix, const char *base) {
    sn_metric *const m = &c->metrics[i];
    int again = 0, others = 0;
    snprintf(m->name, sizeof m->name, "%.40s%.40s", prefix, base);
    for (int k = 0; k < i; k++)
        again += strcmp(c->metrics[k].name, m->name) == 0;
    for (int k = 0; k < i; k++)
        others += c->metrics[k].output == m->output && c->metrics[k].weighted == m->weighted &&
                  sn_same_name(c->metrics[k].text, m->text);
    if (again && m->weighted && others == 0)
        snprintf(m->name, sizeof m->name, "%.40sweighted_%.40s", prefix, base);
    else if (again)
        snprintf(m->name, sizeof m->name, "%.40s%.40s_%d", prefix, base, others ? others : again);
}

/* What the names mean with the losses and outputs. */
static snug_status resolve(const sn_network *n, sn_compiled *c, snug_error *err) {
    for (int i = 0; i < c->n_metrics; i++) {
        sn_metric *const m = &c->metrics[i];
        const uint32_t output = m->output;
        const bool weighted = m->weighted;
        char text[sizeof m->text], base[sizeof m->name], prefix[64] = "";
        memcpy(text, m->text, sizeof text);
        if (!c->objectives[output].used)
            return sn_fail(err, SNUG_E_INVALID, "output '%s' has the metric %s, but no loss",
                           sn_network_output_name(n, output), text);
        SNUG_TRY(sn_metric_parse(text, &c->objectives[output].loss,
                                 sn_network_type(n, n->outputs[output]), m, err));
        m->output = output;
        m->weighted = weighted;
        memcpy(base, m->name, sizeof base);
        if (n->n_outputs > 1)
            snprintf(prefix, sizeof prefix, "%.60s_", sn_network_output_name(n, output));
        set_unique_name(c, i, prefix, base);
    }
    return SNUG_OK;
}

/* Where several outputs have a loss, each one's is a value of its own. */
static snug_status name_losses(const sn_network *n, sn_compiled *c, snug_error *err) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        used += c->objectives[i].used;
    c->n_losses = 0;
    for (uint32_t i = 0; i < n->n_outputs && used > 1; i++)
        if (c->objectives[i].used) {
            snprintf(c->loss_names[c->n_losses], sizeof *c->loss_names, "%.80s_loss",
                     sn_network_output_name(n, i));
            c->loss_outputs[c->n_losses++] = i;
        }
    if (c->n_losses + c->n_metrics > SNUG_MAX_METRICS)
        return sn_fail(err, SNUG_E_INVALID, "%d losses and %d metrics; at most %d are possible",
                       c->n_losses, c->n_metrics, SNUG_MAX_METRICS);
    return SNUG_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */
/* Keeps the text there is when none is given; `what` is its name. */
static snug_status keep_text(char *to, size_t size, const char *from, const char *what,
                             snug_error *err) {
    if (!from || sn_text_copy(to, size, from))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "the text of the %s has more than %zu letters", what,
                   size - 1);
}

snug_status sn_compiled_set(const sn_network *n, const snug_compile *s, sn_compiled *inout,
                            snug_error *err) {
    sn_compiled *const c = inout;
    SNUG_TRY(keep_text(c->loss, sizeof c->loss, s->loss, "loss", err));
    SNUG_TRY(
        keep_text(c->loss_weights, sizeof c->loss_weights, s->loss_weights, "loss weights", err));
    SNUG_TRY(keep_text(c->metrics_text, sizeof c->metrics_text, s->metrics, "metrics", err));
    SNUG_TRY(keep_text(c->weighted_metrics, sizeof c->weighted_metrics, s->weighted_metrics,
                       "weighted metrics", err));
    if (s->optimizer)
        SNUG_TRY(sn_optimizer_parse(s->optimizer, &c->optimizer, err));
    SNUG_TRY(parse_losses(n, c, err));
    SNUG_TRY(parse_metrics(n, c, err));
    return sn_compiled_resolve(n, c, err);
}

snug_status sn_compiled_resolve(const sn_network *n, sn_compiled *c, snug_error *err) {
    if (n->n_layers > 0)
        SNUG_TRY(resolve(n, c, err));
    return name_losses(n, c, err);
}

const char *sn_compiled_value_name(const sn_compiled *c, int i) {
    return i == 0             ? "loss"
           : i <= c->n_losses ? c->loss_names[i - 1]
                              : c->metrics[i - 1 - c->n_losses].name;
}

/* --- class weights ---------------------------------------------------------------------------- */
snug_status sn_class_weights_parse(const char *text, sn_class_weight *out, int *n,
                                   snug_error *err) {
    *n = 0;
    for (const char *at = text; *at;) {
        char label[32], weight[32];
        const size_t mark = strcspn(at, "=:"), end = strcspn(at, ",");
        double values[2];
        if (mark >= sizeof label || mark >= end || end - mark > sizeof weight)
            return sn_fail(err, SNUG_E_INVALID,
                           "class_weight '%.40s' is not understood; it is like 0=1,1=3.5", at);
        memcpy(label, at, mark);
        label[mark] = 0;
        memcpy(weight, at + mark + 1, end - mark - 1);
        weight[end - mark - 1] = 0;
        if (*n == SN_MAX_CLASS_WEIGHTS || !sn_text_real(label, &values[0]) ||
            !sn_text_real(weight, &values[1]) || !(fabs(values[0]) <= INT32_MAX) ||
            values[0] != floor(values[0]))
            return sn_fail(err, SNUG_E_INVALID,
                           "class_weight: '%s=%s' is no class and its weight, or there are more "
                           "than %d",
                           label, weight, SN_MAX_CLASS_WEIGHTS);
        out[(*n)++] = (sn_class_weight){(int64_t)values[0], values[1]};
        at += end + (at[end] == ',');
    }
    return SNUG_OK;
}
