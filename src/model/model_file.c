/* model_file.c: the kind of a model's file is seen by its first bytes, not by its name. A file of
 * graphs holds one in its text form (graph/graph_text.c), or two: what the model computes, and,
 * from the next line "snug graph 1" on, what it computes in steps that train. */
#include "model/model_file.h"

#include "base/file.h"
#include "model/text_file.h"

#include <stdio.h>
#include <string.h>

#define HEAD "snug graph "

bool sn_is_graph_text(const void *head, size_t n) {
    return n >= strlen(HEAD) && memcmp(head, HEAD, strlen(HEAD)) == 0;
}

/* The model is called as its file is, without folder and ending. */
static void name_of_file(const char *path, char *name, size_t size) {
    const char *const slash = strrchr(path, '/'), *const base = slash ? slash + 1 : path;
    const char *const dot = strrchr(base, '.');
    snprintf(name, size, "%.*s", (int)(dot && dot > base ? (size_t)(dot - base) : strlen(base)),
             base);
}

/* Cuts the text where its second graph begins. */
static const char *cut_second(char *text) {
    char *const at = strstr(text, "\n" HEAD);
    if (!at)
        return NULL;
    *at = 0;
    return at + 1;
}

static snug_status parse_graphs(snug_engine *e, const sn_text_file *f, const char *name,
                                sn_network **out, snug_error *err) {
    const char *const second = cut_second(f->text);
    sn_graph *graph, *training = NULL;
    SNUG_TRY(sn_graph_parse(e, f->text, &graph, err));
    const snug_status status = second ? sn_graph_parse(e, second, &training, err) : SNUG_OK;
    if (status != SNUG_OK) {
        sn_graph_destroy(graph);
        return sn_fail_in(err, status, "the second graph");
    }
    return sn_network_from_graph(graph, training, name, out, err);
}

static snug_status load_graphs(snug_engine *e, const char *path, sn_network **out,
                               snug_error *err) {
    sn_text_file f;
    char name[128];
    name_of_file(path, name, sizeof name);
    SNUG_TRY(sn_text_file_read(e, path, "a graph", SN_MEM_GRAPH, &f, err));
    snug_status status = sn_text_file_check(&f, path, err);
    if (status == SNUG_OK && (status = parse_graphs(e, &f, name, out, err)) != SNUG_OK) {
        status = status == SNUG_E_INVALID ? SNUG_E_FORMAT : status; /* nobody typed it */
        (void)sn_fail_in(err, status, "%s", path);
        if (err)
            err->code = status;
    }
    sn_text_file_free(&f);
    return status;
}

static snug_status holds_graphs(snug_engine *e, const char *path, bool *out, snug_error *err) {
    char head[sizeof HEAD];
    sn_file f = {.fd = -1};
    SNUG_TRY(sn_file_open(&f, sn_engine_io(e), path, err));
    const size_t n = f.size < (int64_t)sizeof head ? (size_t)f.size : sizeof head;
    const snug_status status = sn_file_read(&f, head, n, 0, err);
    sn_file_close(&f);
    *out = status == SNUG_OK && sn_is_graph_text(head, n);
    return status;
}

snug_status sn_model_file_load(snug_engine *e, const char *path, const char *shapes,
                               sn_network **out, sn_keras_compile *compile, snug_error *err) {
    bool is_graph;
    SNUG_TRY(holds_graphs(e, path, &is_graph, err));
    if (!is_graph)
        return sn_keras_load(e, path, shapes, out, compile, err);
    if (shapes)
        return sn_fail(err, SNUG_E_INVALID,
                       "%s holds a graph, which says the shapes of its inputs itself; give none, "
                       "or write %.40s into the file",
                       path, shapes);
    *compile = (sn_keras_compile){.loss = ""};
    return load_graphs(e, path, out, err);
}
