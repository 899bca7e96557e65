/* summary.c: model.summary() as Keras prints it, to the character; as JSON on request. */
#include "base/say.h"
#include "model/json.h"

#include <snug/train.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 36, SHAPE_WIDTH = 27, COUNT_WIDTH = 15 };

/* 81930 -> "81,930" */
static const char *with_commas(int64_t n, char *text, size_t size) {
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t k = 0;
    for (int i = 0; i < len && k + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            text[k++] = ',';
        text[k++] = digits[i];
    }
    text[k] = 0;
    return text;
}

/* Keras' sizes: 1024 steps under the names B, KB, MB, GB. */
static const char *keras_bytes(double bytes, char *text, size_t size) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t u = 0;
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    snprintf(text, size, "%.2f %s", bytes, units[u]);
    return text;
}

static const char *keras_shape(const snug_type *t, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "(None");
    for (int i = 1; i < t->rank; i++)
        n += (size_t)snprintf(text + n, size - n, ", %lld", (long long)t->dims[i]);
    snprintf(text + n, size - n, t->rank == 1 ? ",)" : ")");
    return text;
}

/* left, line, middle, line, middle, line, right */
static snug_status rule(const snug_writer *w, const char *const *marks, snug_error *err) {
    static const int widths[3] = {NAME_WIDTH + 2, SHAPE_WIDTH + 2, COUNT_WIDTH + 2};
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", marks[0]);
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < widths[c]; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", marks[1]);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", marks[c < 2 ? 2 : 3]);
    }
    return sn_say(w, err, "%s\n", text);
}

static snug_status row(const snug_writer *w, const snug_layer_info *l, snug_error *err) {
    char plain[192], name[256], shape[224], count[32];
    sn_plain_text(l->name, plain, sizeof plain);
    const int n = snprintf(name, sizeof name, "%s (%s)", plain, l->type);
    keras_shape(&l->output, shape, sizeof shape);
    with_commas(l->n_params, count, sizeof count);
    if (n <= NAME_WIDTH)
        return sn_say(w, err, "│ %-*s │ %-*s │ %*s │\n", NAME_WIDTH, name, SHAPE_WIDTH, shape,
                      COUNT_WIDTH, count);
    const bool cut = strlen(plain) > NAME_WIDTH;
    SNUG_TRY(sn_say(w, err, "│ %-*.*s%s │ %-*s │ %*s │\n", cut ? NAME_WIDTH - 1 : NAME_WIDTH,
                    cut ? NAME_WIDTH - 1 : NAME_WIDTH, l->name, cut ? "…" : "", SHAPE_WIDTH, shape,
                    COUNT_WIDTH, count));
    snprintf(name, sizeof name, "(%s)", l->type);
    return sn_say(w, err, "│ %-*s │ %-*s │ %*s │\n", NAME_WIDTH, name, SHAPE_WIDTH, "", COUNT_WIDTH,
                  "");
}

static snug_status total(const snug_writer *w, const char *what, int64_t n, snug_error *err) {
    char count[32], bytes[32];
    return sn_say(w, err, " %s params: %s (%s)\n", what, with_commas(n, count, sizeof count),
                  keras_bytes(4.0 * (double)n, bytes, sizeof bytes));
}

static snug_status print_table(snug_model *m, const snug_writer *w, snug_error *err) {
    static const char *const top[] = {"┏", "━", "┳", "┓"}, *const head[] = {"┡", "━", "╇", "┩"};
    static const char *const line[] = {"├", "─", "┼", "┤"}, *const bottom[] = {"└", "─", "┴", "┘"};
    const size_t n = snug_model_n_layers(m);
    SNUG_TRY(sn_say(w, err, "Model: \"%s\"\n", snug_model_name(m)));
    SNUG_TRY(rule(w, top, err));
    SNUG_TRY(sn_say(w, err, "┃ %-*s ┃ %-*s ┃ %*s ┃\n", NAME_WIDTH, "Layer (type)", SHAPE_WIDTH,
                    "Output Shape", COUNT_WIDTH, "Param #"));
    SNUG_TRY(rule(w, head, err));
    for (size_t i = 0; i < n; i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        SNUG_TRY(row(w, &l, err));
        SNUG_TRY(rule(w, i + 1 < n ? line : bottom, err));
    }
    return SNUG_OK;
}

static snug_status layer_json(const snug_layer_info *l, const snug_writer *w, snug_error *err) {
    SNUG_TRY(sn_say(w, err, "{\"name\":"));
    SNUG_TRY(sn_json_string(w, l->name, err));
    SNUG_TRY(sn_say(w, err, ",\"type\":\"%s\",\"output\":[null", l->type));
    for (int d = 1; d < l->output.rank; d++)
        SNUG_TRY(sn_say(w, err, ",%lld", (long long)l->output.dims[d]));
    return sn_say(w, err, "],\"params\":%lld,\"trainable_params\":%lld}", (long long)l->n_params,
                  (long long)l->n_trainable);
}

static snug_status print_json(snug_model *m, int64_t all, int64_t trainable, const snug_writer *w,
                              snug_error *err) {
    SNUG_TRY(sn_say(w, err, "{\"name\":"));
    SNUG_TRY(sn_json_string(w, snug_model_name(m), err));
    SNUG_TRY(sn_say(w, err, ",\"layers\":["));
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        if (i)
            SNUG_TRY(sn_say(w, err, ","));
        SNUG_TRY(layer_json(&l, w, err));
    }
    return sn_say(w, err, "],\"params\":%lld,\"trainable_params\":%lld}\n", (long long)all,
                  (long long)trainable);
}

snug_status snug_report_summary(snug_model *model, int style, const snug_writer *out,
                                snug_error *err) {
    int64_t all = 0, trainable = 0;
    for (size_t i = 0; i < snug_model_n_layers(model); i++) {
        snug_layer_info l;
        snug_model_layer(model, i, &l);
        all += l.n_params;
        trainable += l.n_trainable;
    }
    if (style & SNUG_REPORT_JSON)
        return print_json(model, all, trainable, out, err);
    SNUG_TRY(print_table(model, out, err));
    SNUG_TRY(total(out, "Total", all, err));
    SNUG_TRY(total(out, "Trainable", trainable, err));
    return total(out, "Non-trainable", all - trainable, err);
}
