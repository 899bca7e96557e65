/* summary.c: model.summary() as Keras prints it, to the character; as JSON on request.
 *
 * A chain of layers has three columns; any other model a fourth, what each layer is connected to.
 * Layers of models within stand in the table themselves. Cells break between words, as Keras' do; a
 * word that is too long is cut. */
#include "base/real.h"
#include "base/say.h"
#include "model/json.h"
#include "train/model.h"

#include <snug/train.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 4, CELL_BYTES = 1024 };

typedef struct {
    snug_model *model;
    const snug_writer *w;
    int n_columns;
    const int *widths;
} table;

static const int chain_widths[MAX_COLUMNS] = {36, 27, 15},
                 graph_widths[MAX_COLUMNS] = {29, 25, 15, 26};

typedef struct {
    char text[MAX_COLUMNS][CELL_BYTES];
} cells;

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
    sn_print(text, size, "%.2f %s", bytes, units[u]);
    return text;
}

static const char *keras_shape(const snug_type *t, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < t->rank; i++) {
        const char *comma = i ? ", " : "";
        n += t->dims[i] < 0
                 ? (size_t)snprintf(text + n, size - n, "%sNone", comma)
                 : (size_t)snprintf(text + n, size - n, "%s%lld", comma, (long long)t->dims[i]);
    }
    snprintf(text + n, size - n, t->rank == 1 ? ",)" : ")");
    return text;
}

/* --- what layers are connected to ------------------------------------------------------------- */
/* "name[use][output]" of a tensor; inputs of the model have names of their own. */
static int print_tensor(const sn_network *n, uint32_t tensor, char *text, size_t size) {
    for (size_t i = 0; i < n->n_applications; i++) {
        const sn_application *a = &n->applications[i];
        if (tensor >= a->first && tensor < a->first + (uint32_t)a->n_out)
            return snprintf(text, size, "%s[%d][%u]", n->layers[a->layer].name, a->use,
                            tensor - a->first);
    }
    return snprintf(text, size, "%s[0][0]", n->input_names[tensor]);
}

/* Calls `say` with each connection of a layer. */
typedef snug_status (*connection_fn)(void *ctx, const char *text, snug_error *err);
static snug_status each_connection(const sn_network *n, uint32_t layer, connection_fn say,
                                   void *ctx, snug_error *err) {
    for (size_t i = 0; i < n->n_applications; i++) {
        const sn_application *a = &n->applications[i];
        for (int k = 0; k < a->n_in && a->layer == layer; k++) {
            char text[192];
            print_tensor(n, a->in[k], text, sizeof text);
            SNUG_TRY(say(ctx, text, err));
        }
    }
    return SNUG_OK;
}

static snug_status add_connection(void *ctx, const char *text, snug_error *err) {
    char *const cell = ctx;
    const size_t n = strlen(cell);
    (void)err;
    snprintf(cell + n, CELL_BYTES - n, "%s%s", n ? ", " : "", text);
    return SNUG_OK;
}

/* Each layer once, on the one before. */
static bool is_chain(const sn_network *n) {
    bool chain = n->n_inputs == 1 && n->n_outputs == 1 && n->n_applications == n->n_layers;
    if (n->graph) /* parts of a graph read what they like: nothing is said of that */
        return true;
    for (size_t i = 0; i < n->n_applications && chain; i++) {
        const sn_application *a = &n->applications[i];
        chain = a->n_in == 1 && a->n_out == 1 && a->in[0] == (uint32_t)i;
    }
    return chain;
}

/* --- the table -------------------------------------------------------------------------------- */
/* left, line, middle, line, middle, line, right */
static snug_status rule(const table *t, const char *const *marks, snug_error *err) {
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", marks[0]);
    for (int c = 0; c < t->n_columns; c++) {
        for (int i = 0; i < t->widths[c] + 2; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", marks[1]);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", marks[c + 1 < t->n_columns ? 2 : 3]);
    }
    return sn_say(t->w, err, "%s\n", text);
}

/* Takes the words that fit a line off the text. */
static const char *take_line(const char *text, int width, const char **line, int *length) {
    const int all = (int)strlen(text);
    int n = all;
    *line = text;
    if (all > width) {
        n = width;
        while (n > 0 && text[n] != ' ')
            n--;
        if (n == 0)
            n = (int)strcspn(text, " ");
    }
    *length = n;
    return text + n + strspn(text + n, " ");
}

static snug_status say_cell(const table *t, int column, const char *line, int length,
                            snug_error *err) {
    const int width = t->widths[column];
    if (length > width)
        return sn_say(t->w, err, " %.*s… │", width - 1, line);
    if (column == 2)
        return sn_say(t->w, err, " %*.*s │", width, length, line);
    return sn_say(t->w, err, " %-*.*s │", width, length, line);
}

static snug_status row(const table *t, const cells *c, snug_error *err) {
    const char *left[MAX_COLUMNS];
    bool more = true;
    for (int i = 0; i < t->n_columns; i++)
        left[i] = c->text[i];
    while (more) {
        more = false;
        SNUG_TRY(sn_say(t->w, err, "│"));
        for (int i = 0; i < t->n_columns; i++) {
            const char *line;
            int length;
            left[i] = take_line(left[i], t->widths[i], &line, &length);
            SNUG_TRY(say_cell(t, i, line, length, err));
            more = more || left[i][0];
        }
        SNUG_TRY(sn_say(t->w, err, "\n"));
    }
    return SNUG_OK;
}

/* One shape, or "[(None, 4), (None, 4)]" of a layer with several outputs. */
static void print_shapes(const sn_network *n, uint32_t layer, char *text, size_t size) {
    const sn_application *a = n->applications;
    char one[224];
    if (n->graph) {
        keras_shape(&n->layers[layer].output, text, size);
        return;
    }
    while (a->layer != layer)
        a++;
    size_t at = (size_t)snprintf(text, size, a->n_out > 1 ? "[" : "");
    for (int i = 0; i < a->n_out && at < size; i++)
        at += (size_t)snprintf(
            text + at, size - at, "%s%s", i ? ", " : "",
            keras_shape(sn_network_type(n, a->first + (uint32_t)i), one, sizeof one));
    if (a->n_out > 1 && at < size)
        snprintf(text + at, size - at, "]");
}

static snug_status layer_row(const table *t, uint32_t i, snug_error *err) {
    const sn_network *n = t->model->network;
    cells c = {.text = {{0}}};
    snug_layer_info l;
    char plain[192];
    snug_model_layer(t->model, i, &l);
    snprintf(c.text[0], CELL_BYTES, "%s (%s)", sn_plain_text(l.name, plain, sizeof plain), l.type);
    print_shapes(n, i, c.text[1], CELL_BYTES);
    with_commas(l.n_params, c.text[2], CELL_BYTES);
    SNUG_TRY(each_connection(n, i, add_connection, c.text[3], err));
    return row(t, &c, err);
}

static snug_status input_row(const table *t, uint32_t i, snug_error *err) {
    const sn_network *n = t->model->network;
    cells c = {.text = {"", "", "0", "-"}};
    char plain[192];
    snprintf(c.text[0], CELL_BYTES, "%s (InputLayer)",
             sn_plain_text(n->input_names[i], plain, sizeof plain));
    keras_shape(sn_network_type(n, i), c.text[1], CELL_BYTES);
    return row(t, &c, err);
}

static snug_status total(const snug_writer *w, const char *what, int64_t n, snug_error *err) {
    char count[32], bytes[32];
    return sn_say(w, err, " %s params: %s (%s)\n", what, with_commas(n, count, sizeof count),
                  keras_bytes(4.0 * (double)n, bytes, sizeof bytes));
}

static snug_status print_head(const table *t, snug_error *err) {
    static const char *const top[] = {"┏", "━", "┳", "┓"}, *const head[] = {"┡", "━", "╇", "┩"};
    static const char *const names[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
    SNUG_TRY(sn_say(t->w, err, "Model: \"%s\"\n", snug_model_name(t->model)));
    SNUG_TRY(rule(t, top, err));
    SNUG_TRY(sn_say(t->w, err, "┃"));
    for (int i = 0; i < t->n_columns; i++)
        SNUG_TRY(sn_say(t->w, err, i == 2 ? " %*s ┃" : " %-*s ┃", t->widths[i], names[i]));
    SNUG_TRY(sn_say(t->w, err, "\n"));
    return rule(t, head, err);
}

/* Inputs with names are rows; the one of a Sequential model has none. */
static snug_status print_table(snug_model *m, const snug_writer *w, snug_error *err) {
    static const char *const line[] = {"├", "─", "┼", "┤"}, *const bottom[] = {"└", "─", "┴", "┘"};
    const sn_network *n = m->network;
    const bool chain = is_chain(n);
    const table t = {m, w, chain ? 3 : 4, chain ? chain_widths : graph_widths};
    SNUG_TRY(print_head(&t, err));
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!n->input_names[i][0])
            continue;
        SNUG_TRY(input_row(&t, i, err));
        SNUG_TRY(rule(&t, n->n_layers ? line : bottom, err));
    }
    for (uint32_t i = 0; i < n->n_layers; i++) {
        SNUG_TRY(layer_row(&t, i, err));
        SNUG_TRY(rule(&t, i + 1 < n->n_layers ? line : bottom, err));
    }
    return SNUG_OK;
}

/* --- JSON ------------------------------------------------------------------------------------- */
typedef struct {
    const snug_writer *w;
    bool more;
} json_list;

static snug_status say_connection(void *ctx, const char *text, snug_error *err) {
    json_list *const list = ctx;
    if (list->more)
        SNUG_TRY(sn_say(list->w, err, ","));
    list->more = true;
    return sn_json_string(list->w, text, err);
}

static snug_status say_ends(const snug_model *m, const char *what, bool input, const snug_writer *w,
                            snug_error *err) {
    const size_t n = input ? snug_model_n_inputs(m) : snug_model_n_outputs(m);
    SNUG_TRY(sn_say(w, err, ",\"%s\":[", what));
    for (size_t i = 0; i < n; i++) {
        const snug_type *t = input ? snug_model_input_at(m, i) : snug_model_output_at(m, i);
        SNUG_TRY(sn_say(w, err, "%s{\"name\":", i ? "," : ""));
        SNUG_TRY(sn_json_string(
            w, input ? snug_model_input_name(m, i) : snug_model_output_name(m, i), err));
        SNUG_TRY(sn_say(w, err, ",\"shape\":[null"));
        for (int d = 1; d < t->rank; d++)
            SNUG_TRY(sn_say(w, err, ",%lld", (long long)t->dims[d]));
        SNUG_TRY(sn_say(w, err, "]}"));
    }
    return sn_say(w, err, "]");
}

static snug_status layer_json(const snug_model *m, uint32_t i, const snug_writer *w,
                              snug_error *err) {
    snug_layer_info info, *const l = &info;
    json_list list = {w, false};
    snug_model_layer(m, i, l);
    SNUG_TRY(sn_say(w, err, "{\"name\":"));
    SNUG_TRY(sn_json_string(w, l->name, err));
    SNUG_TRY(sn_say(w, err, ",\"type\":\"%s\",\"output\":[null", l->type));
    for (int d = 1; d < l->output.rank; d++)
        SNUG_TRY(sn_say(w, err, ",%lld", (long long)l->output.dims[d]));
    SNUG_TRY(sn_say(w, err, "],\"params\":%lld,\"trainable_params\":%lld,\"connected_to\":[",
                    (long long)l->n_params, (long long)l->n_trainable));
    SNUG_TRY(each_connection(m->network, i, say_connection, &list, err));
    return sn_say(w, err, "]}");
}

static snug_status print_json(snug_model *m, int64_t all, int64_t trainable, const snug_writer *w,
                              snug_error *err) {
    SNUG_TRY(sn_say(w, err, "{\"name\":"));
    SNUG_TRY(sn_json_string(w, snug_model_name(m), err));
    SNUG_TRY(sn_say(w, err, ",\"layers\":["));
    for (uint32_t i = 0; i < snug_model_n_layers(m); i++) {
        if (i)
            SNUG_TRY(sn_say(w, err, ","));
        SNUG_TRY(layer_json(m, i, w, err));
    }
    SNUG_TRY(sn_say(w, err, "]"));
    SNUG_TRY(say_ends(m, "inputs", true, w, err));
    SNUG_TRY(say_ends(m, "outputs", false, w, err));
    return sn_say(w, err, ",\"params\":%lld,\"trainable_params\":%lld}\n", (long long)all,
                  (long long)trainable);
}

snug_status snug_report_summary(snug_model *model, int style, const snug_writer *out,
                                snug_error *err) {
    SNUG_NEEDS(err, model && out);
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
