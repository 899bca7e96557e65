/* inspect.c: what is in a file, for people and for scripts. The kind is told by the first bytes, not by the name. */
#include "base/file.h"
#include "base/say.h"
#include "model/array_file.h"
#include "model/keras_json.h"
#include "model/safetensors.h"

#include <snug/model.h>
#include <stdio.h>
#include <string.h>

/* [32,10] as JSON; the batch, -1, as null. */
static const char *dims_json(const snug_type *t, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank; i++) {
        const char *comma = i ? "," : "";
        n += t->dims[i] < 0 ? (size_t)snprintf(text + n, size - n, "%snull", comma)
                            : (size_t)snprintf(text + n, size - n, "%s%lld", comma, (long long)t->dims[i]);
    }
    snprintf(text + n, size - n, "]");
    return text;
}

static snug_status inspect_array(snug_engine *e, const char *path, bool json, const snug_writer *w, snug_error *err) {
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
        return sn_say(w, err, "{\"kind\":\"array\",\"format\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"bytes\":%zu,\"packed\":%s}\n",
                   format, snug_dtype_name(h.type.dtype), dims_json(&h.type, dims, sizeof dims), bytes,
                   packed ? "true" : "false");
    return sn_say(w, err, "%s array%s, %s, %lld rows, %s\n", format, packed ? " (gzip)" : "",
               snug_type_print(&h.type, type, sizeof type), (long long)h.type.dims[0],
               snug_bytes_print(bytes, bytes_text, sizeof bytes_text));
}

static snug_status list_tensors(const sn_safetensors *s, bool json, const snug_writer *w, snug_error *err) {
    char type[192], bytes_text[32];
    size_t total = 0;
    const size_t n = sn_safetensors_count(s);
    if (json)
        SNUG_TRY(sn_say(w, err, "{\"kind\":\"safetensors\",\"tensors\":["));
    for (size_t i = 0; i < n; i++) {
        const sn_st_entry *t = sn_safetensors_at(s, i);
        total += t->bytes;
        if (json)
            SNUG_TRY(sn_say(w, err, "%s{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"bytes\":%zu}", i ? "," : "", t->name,
                         snug_dtype_name(t->type.dtype), dims_json(&t->type, type, sizeof type), t->bytes));
        else
            SNUG_TRY(sn_say(w, err, "%-40s %-24s %12s\n", t->name, snug_type_print(&t->type, type, sizeof type),
                         snug_bytes_print(t->bytes, bytes_text, sizeof bytes_text)));
    }
    if (json)
        return sn_say(w, err, "],\"bytes\":%zu}\n", total);
    return sn_say(w, err, "safetensors, %zu tensors, %s\n", n, snug_bytes_print(total, bytes_text, sizeof bytes_text));
}

static snug_status inspect_safetensors(snug_engine *e, const char *path, bool json, const snug_writer *w,
                                       snug_error *err) {
    sn_safetensors *s;
    SNUG_TRY(sn_safetensors_open(e, path, &s, err));
    const snug_status status = list_tensors(s, json, w, err);
    sn_safetensors_close(s);
    return status;
}

static snug_status list_layers(const sn_network *n, const sn_keras_compile *c, bool json, const snug_writer *w,
                               snug_error *err) {
    char type[192];
    if (json)
        SNUG_TRY(sn_say(w, err, "{\"kind\":\"model\",\"name\":\"%s\",\"input\":%s,\"layers\":[", n->name,
                     dims_json(&n->input, type, sizeof type)));
    else
        SNUG_TRY(sn_say(w, err, "Keras Sequential model \"%s\", input %s\n", n->name,
                     snug_type_print(&n->input, type, sizeof type)));
    for (size_t i = 0; i < n->n_layers; i++) {
        const sn_layer *l = &n->layers[i];
        if (json)
            SNUG_TRY(sn_say(w, err, "%s{\"name\":\"%s\",\"type\":\"%s\",\"output\":%s}", i ? "," : "", l->name,
                         l->cls->class_name, dims_json(&l->output, type, sizeof type)));
        else
            SNUG_TRY(sn_say(w, err, "  %-28s %-24s %s\n", l->name, l->cls->class_name,
                         snug_type_print(&l->output, type, sizeof type)));
    }
    if (json)
        return sn_say(w, err, "],\"optimizer\":\"%s\",\"loss\":\"%s\",\"metrics\":\"%s\"}\n", c->optimizer, c->loss,
                   c->metrics);
    if (c->optimizer[0] || c->loss[0])
        return sn_say(w, err, "compiled with optimizer %s, loss %s, metrics %s\n", c->optimizer, c->loss,
                   c->metrics[0] ? c->metrics : "none");
    return sn_say(w, err, "no compile settings in the file\n");
}

static snug_status inspect_model(snug_engine *e, const char *path, bool json, const snug_writer *w, snug_error *err) {
    sn_network *n;
    sn_keras_compile compile;
    SNUG_TRY(sn_keras_load(e, path, &n, &compile, err));
    const snug_status status = list_layers(n, &compile, json, w, err);
    sn_network_destroy(n);
    return status;
}

snug_status snug_inspect(snug_engine *engine, const char *path, int as_json, const snug_writer *out, snug_error *err) {
    unsigned char head[16] = {0};
    sn_file f = {.fd = -1};
    SNUG_TRY(sn_file_open(&f, sn_engine_io(engine), path, err));
    const size_t n = f.size < (int64_t)sizeof head ? (size_t)f.size : sizeof head;
    const snug_status status = sn_file_read(&f, head, n, 0, err);
    sn_file_close(&f);
    SNUG_TRY(status);
    size_t space = 0;
    while (space < n && strchr(" \t\r\n", head[space]) && head[space])
        space++;
    if (space < n && (head[space] == '{' || head[space] == '['))
        return inspect_model(engine, path, as_json, out, err);
    if (n > 8 && head[8] == '{')
        return inspect_safetensors(engine, path, as_json, out, err);
    return inspect_array(engine, path, as_json, out, err);
}
