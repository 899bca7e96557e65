/* inspect.c: what is in a file, for people and for scripts. The kind is seen by the first bytes,
 * not by the name. */
#include "base/file.h"
#include "base/say.h"
#include "model/array_file.h"
#include "model/json.h"
#include "model/model_file.h"
#include "model/safetensors.h"

#include <snug/model.h>
#include <stdio.h>
#include <string.h>

/* [32,10] as JSON; the batch, -1, as null. */
static const char *dims_json(const snug_type *t, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank; i++) {
        const char *comma = i ? "," : "";
        n += t->dims[i] < 0
                 ? (size_t)snprintf(text + n, size - n, "%snull", comma)
                 : (size_t)snprintf(text + n, size - n, "%s%lld", comma, (long long)t->dims[i]);
    }
    snprintf(text + n, size - n, "]");
    return text;
}

static snug_status inspect_array(snug_engine *e, const char *path, bool json, const snug_writer *w,
                                 snug_error *err) {
    sn_array_file *a;
    char type[192], dims[192], bytes_text[32];
    size_t bytes = 0;
    SNUG_TRY(sn_array_file_open(e, path, &a, err));
    const sn_array_header h = *sn_array_file_header(a);
    const bool packed = sn_array_file_packed(a);
    sn_array_file_close(a);
    SNUG_TRY(snug_type_bytes(&h.type, &bytes, err));
    const char *format = h.format == SN_ARRAY_NPY ? "npy" : "idx";
    if (json)
        return sn_say(w, err,
                      "{\"kind\":\"array\",\"format\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,"
                      "\"bytes\":%zu,\"packed\":%s}\n",
                      format, snug_dtype_name(h.type.dtype), dims_json(&h.type, dims, sizeof dims),
                      bytes, packed ? "true" : "false");
    return sn_say(w, err, "%s array%s, %s, %lld rows, %s\n", format, packed ? " (gzip)" : "",
                  snug_type_print(&h.type, type, sizeof type), (long long)h.type.dims[0],
                  snug_bytes_print(bytes, bytes_text, sizeof bytes_text));
}

static snug_status tensor_json(const sn_st_entry *t, const snug_writer *w, snug_error *err) {
    char dims[192];
    SNUG_TRY(sn_say(w, err, "{\"name\":"));
    SNUG_TRY(sn_json_string(w, t->name, err));
    return sn_say(w, err, ",\"dtype\":\"%s\",\"shape\":%s,\"bytes\":%zu}",
                  snug_dtype_name(t->type.dtype), dims_json(&t->type, dims, sizeof dims), t->bytes);
}

static snug_status tensor_line(const sn_st_entry *t, const snug_writer *w, snug_error *err) {
    char name[512], type[192], bytes_text[32];
    return sn_say(w, err, "%-40s %-24s %12s\n", sn_plain_text(t->name, name, sizeof name),
                  snug_type_print(&t->type, type, sizeof type),
                  snug_bytes_print(t->bytes, bytes_text, sizeof bytes_text));
}

static snug_status list_tensors(const sn_safetensors *s, bool json, const snug_writer *w,
                                snug_error *err) {
    char bytes_text[32];
    size_t total = 0;
    const size_t n = sn_safetensors_count(s);
    if (json)
        SNUG_TRY(sn_say(w, err, "{\"kind\":\"safetensors\",\"tensors\":["));
    for (size_t i = 0; i < n; i++) {
        const sn_st_entry *t = sn_safetensors_at(s, i);
        total += t->bytes;
        if (json && i)
            SNUG_TRY(sn_say(w, err, ","));
        SNUG_TRY(json ? tensor_json(t, w, err) : tensor_line(t, w, err));
    }
    if (json)
        return sn_say(w, err, "],\"bytes\":%zu}\n", total);
    return sn_say(w, err, "safetensors, %zu tensor%s, %s\n", n, n == 1 ? "" : "s",
                  snug_bytes_print(total, bytes_text, sizeof bytes_text));
}

static snug_status inspect_safetensors(snug_engine *e, const char *path, bool json,
                                       const snug_writer *w, snug_error *err) {
    sn_safetensors *s;
    SNUG_TRY(sn_safetensors_open(e, path, 0, &s, err));
    const snug_status status = list_tensors(s, json, w, err);
    sn_safetensors_close(s);
    return status;
}

static const char *end_name(const sn_network *n, bool input, uint32_t i) {
    return input ? n->input_names[i] : sn_network_output_name(n, i);
}

/* Inputs or outputs: names and shapes. */
static snug_status ends_json(const sn_network *n, bool input, const snug_writer *w,
                             snug_error *err) {
    char dims[192];
    SNUG_TRY(sn_say(w, err, ",\"%s\":[", input ? "inputs" : "outputs"));
    for (uint32_t i = 0; i < (input ? n->n_inputs : n->n_outputs); i++) {
        SNUG_TRY(sn_say(w, err, "%s{\"name\":", i ? "," : ""));
        SNUG_TRY(sn_json_string(w, end_name(n, input, i), err));
        SNUG_TRY(
            sn_say(w, err, ",\"shape\":%s}",
                   dims_json(sn_network_type(n, input ? i : n->outputs[i]), dims, sizeof dims)));
    }
    return sn_say(w, err, "]");
}

static snug_status ends_text(const sn_network *n, bool input, const snug_writer *w,
                             snug_error *err) {
    char name[256], type[192];
    const uint32_t count = input ? n->n_inputs : n->n_outputs;
    for (uint32_t i = 0; i < count && count > 1; i++)
        SNUG_TRY(sn_say(
            w, err, "%s %u is %s, %s\n", input ? "input" : "output", i,
            sn_plain_text(end_name(n, input, i), name, sizeof name),
            snug_type_print(sn_network_type(n, input ? i : n->outputs[i]), type, sizeof type)));
    return SNUG_OK;
}

static snug_status model_json(const sn_network *n, const sn_keras_compile *c, const snug_writer *w,
                              snug_error *err) {
    char dims[192];
    SNUG_TRY(sn_say(w, err, "{\"kind\":\"model\",\"name\":"));
    SNUG_TRY(sn_json_string(w, n->name, err));
    SNUG_TRY(sn_say(w, err, ",\"input\":%s,\"layers\":[",
                    dims_json(sn_network_type(n, 0), dims, sizeof dims)));
    for (size_t i = 0; i < n->n_layers; i++) {
        const sn_layer *l = &n->layers[i];
        SNUG_TRY(sn_say(w, err, "%s{\"name\":", i ? "," : ""));
        SNUG_TRY(sn_json_string(w, l->name, err));
        SNUG_TRY(sn_say(w, err, ",\"type\":\"%s\",\"output\":%s}", l->cls->class_name,
                        dims_json(&l->output, dims, sizeof dims)));
    }
    SNUG_TRY(sn_say(w, err, "]"));
    SNUG_TRY(ends_json(n, true, w, err));
    SNUG_TRY(ends_json(n, false, w, err));
    SNUG_TRY(sn_say(w, err, ",\"optimizer\":"));
    SNUG_TRY(sn_json_string(w, c->optimizer, err));
    SNUG_TRY(sn_say(w, err, ",\"loss\":"));
    SNUG_TRY(sn_json_string(w, c->loss, err));
    SNUG_TRY(sn_say(w, err, ",\"metrics\":"));
    SNUG_TRY(sn_json_string(w, c->metrics, err));
    return sn_say(w, err, "}\n");
}

static snug_status model_text(const sn_network *n, const sn_keras_compile *c, const snug_writer *w,
                              snug_error *err) {
    char name[256], type[192], optimizer[160], loss[96], metrics[256];
    SNUG_TRY(sn_say(w, err, "%s \"%s\", input %s\n", n->graph ? "graph" : "Keras model",
                    sn_plain_text(n->name, name, sizeof name),
                    snug_type_print(sn_network_type(n, 0), type, sizeof type)));
    for (size_t i = 0; i < n->n_layers; i++) {
        const sn_layer *l = &n->layers[i];
        SNUG_TRY(sn_say(w, err, "  %-28s %-24s %s\n", sn_plain_text(l->name, name, sizeof name),
                        l->cls->class_name, snug_type_print(&l->output, type, sizeof type)));
    }
    SNUG_TRY(ends_text(n, true, w, err));
    SNUG_TRY(ends_text(n, false, w, err));
    if (!c->optimizer[0] && !c->loss[0] && !c->metrics[0])
        return sn_say(w, err, "no compile settings in the file\n");
    return sn_say(w, err, "compiled with optimizer %s, loss %s, metrics %s\n",
                  c->optimizer[0] ? sn_plain_text(c->optimizer, optimizer, sizeof optimizer)
                                  : "none",
                  c->loss[0] ? sn_plain_text(c->loss, loss, sizeof loss) : "none",
                  c->metrics[0] ? sn_plain_text(c->metrics, metrics, sizeof metrics) : "none");
}

static snug_status inspect_model(snug_engine *e, const char *path, bool json, const snug_writer *w,
                                 snug_error *err) {
    sn_network *n;
    sn_keras_compile compile;
    SNUG_TRY(sn_model_file_load(e, path, NULL, &n, &compile, err));
    const snug_status status =
        json ? model_json(n, &compile, w, err) : model_text(n, &compile, w, err);
    sn_network_destroy(n);
    return status;
}

typedef enum { KIND_ARRAY, KIND_MODEL, KIND_SAFETENSORS } file_kind;

/* The length of a safetensors header fits the file; the first 8 letters of a text, read as a
 * number, never do. */
static file_kind tell_kind(const unsigned char *head, size_t n, int64_t size) {
    uint64_t length = 0;
    size_t space = 0;
    for (int i = 7; i >= 0 && n > 8; i--)
        length = length << 8 | head[i];
    if (n > 8 && head[8] == '{' && length <= (uint64_t)size - 8)
        return KIND_SAFETENSORS;
    while (space < n && (head[space] == ' ' || head[space] == '\t' || head[space] == '\r' ||
                         head[space] == '\n'))
        space++;
    const bool json = space < n && (head[space] == '{' || head[space] == '[');
    const bool archive =
        n >= 4 && (memcmp(head, "PK\x03\x04", 4) == 0 || memcmp(head, "\x89HDF", 4) == 0);
    const bool model = json || archive || sn_is_graph_text(head, n);
    return model ? KIND_MODEL : KIND_ARRAY; /* the model's reader says what to do with archives */
}

snug_status snug_inspect(snug_engine *engine, const char *path, int as_json, const snug_writer *out,
                         snug_error *err) {
    SNUG_NEEDS(err, engine && path && out);
    unsigned char head[64] = {0};
    sn_file f = {.fd = -1};
    SNUG_TRY(sn_file_open(&f, sn_engine_io(engine), path, err));
    const size_t n = f.size < (int64_t)sizeof head ? (size_t)f.size : sizeof head;
    const snug_status status = sn_file_read(&f, head, n, 0, err);
    const file_kind kind = status == SNUG_OK ? tell_kind(head, n, f.size) : KIND_ARRAY;
    sn_file_close(&f);
    SNUG_TRY(status);
    if (kind == KIND_MODEL)
        return inspect_model(engine, path, as_json, out, err);
    if (kind == KIND_SAFETENSORS)
        return inspect_safetensors(engine, path, as_json, out, err);
    return inspect_array(engine, path, as_json, out, err);
}
