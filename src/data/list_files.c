/* list_files.c: the source of names of files that match patterns: listed when the dataset is made,
 * sorted, each once; random access. */
#include "codec/data_ops.h"
#include "codec/file_list.h"
#include "data/file_source.h"
#include "data/stage.h"

#include <string.h>

snug_status sn_text_element(snug_engine *e, const char *text, snug_element *out, snug_error *err) {
    const snug_type scalar = {.dtype = SNUG_OPAQUE, .rank = 0};
    const snug_text t = {text, strlen(text)};
    SNUG_TRY(snug_datum_texts(e, &scalar, &t, &out->part[0], err));
    out->n = 1;
    return SNUG_OK;
}

static snug_status name_at(const snug_dataset *d, int64_t index, snug_element *out,
                           snug_error *err) {
    return sn_text_element(d->engine, sn_file_list_at(d->ctx, (size_t)index), out, err);
}

static snug_status next_name(sn_cursor *c, snug_element *out, snug_error *err) {
    if (c->given >= c->stage->cardinality)
        return sn_end(err);
    return name_at(c->stage, c->given, out, err);
}

static snug_status seek_names(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    (void)err;
    const int64_t left = c->stage->cardinality - c->given;
    *done = n < left ? n : left;
    return SNUG_OK;
}

static void release_names(snug_dataset *d) {
    sn_file_list_clear(d->ctx);
}

static const sn_stage_class files_class = {.name = "files",
                                           .next = next_name,
                                           .seek = seek_names,
                                           .release = release_names,
                                           .at = name_at};

/* A file that several patterns match is one file. */
static void drop_doubles(sn_file_list *l) {
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++)
        if (i == 0 || strcmp(sn_file_list_at(l, i), l->bytes + l->first[kept - 1]) != 0)
            l->first[kept++] = l->first[i];
    l->n = kept;
}

static snug_status list_all(sn_file_list *l, const snug_text *patterns, int n, snug_error *err) {
    char pattern[4096];
    for (int i = 0; i < n; i++) {
        if (patterns[i].bytes == 0 || patterns[i].bytes >= sizeof pattern)
            return sn_fail(err, SNUG_E_INVALID, "a pattern of %zu bytes", patterns[i].bytes);
        memcpy(pattern, patterns[i].data, patterns[i].bytes);
        pattern[patterns[i].bytes] = 0;
        const size_t before = l->n;
        SNUG_TRY(sn_file_list_match(l, pattern, err));
        if (l->n == before)
            return sn_fail(err, SNUG_E_DATA,
                           "no file matches '%.400s'; look for the folder, and for capitals",
                           pattern);
    }
    sn_file_list_sort(l, 0);
    drop_doubles(l);
    return SNUG_OK;
}

snug_status snug_dataset_list_files(snug_engine *engine, const snug_text *patterns, int n,
                                    snug_dataset **out, snug_error *err) {
    if (!engine || !patterns || !out || n < 1)
        return sn_fail(err, SNUG_E_INVALID, "snug_dataset_list_files: an argument is NULL");
    snug_dataset *d = NULL;
    SNUG_TRY(sn_stage_create(&files_class, engine, NULL, 0, &d, err));
    snug_status status = sn_stage_ctx(d, sizeof(sn_file_list), err);
    if (status == SNUG_OK) {
        sn_file_list *l = d->ctx;
        l->engine = engine;
        l->tells = true;
        status = list_all(l, patterns, n, err);
        sn_advance_end(engine, &l->pass);
        d->cardinality = (int64_t)l->n;
    }
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    d->spec = (snug_spec){.n = 1, .is_text = {1}, .type = {{.dtype = SNUG_OPAQUE}}};
    d->random = true;
    *out = d;
    return SNUG_OK;
}
