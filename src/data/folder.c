/* folder.c: folders of pictures by class, as keras.utils.image_dataset_from_directory reads them:
 * the same files in the same order, the same shuffle, the same split.
 *
 * Order: classes; in a class its folders by path; in a folder its files by name. A folder is listed
 * once; what stays is the name of each file (file_list.h) and its label. */
#include <snug/data_files.h>

#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/file_list.h"
#include "data/file_source.h"
#include "data/mersenne.h"
#include "data/stage.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_PATH    4096
#define MAX_FOLDERS ((size_t)1 << 20)

typedef struct {
    sn_file_list files;
    int32_t *labels; /* NULL: none */
    size_t labels_cap;
    size_t first; /* of the subset */
} folder_source;

/* What listing needs. */
typedef struct {
    const snug_folder *o;
    sn_file_list *files, folders, classes;
    const char *root; /* of the folder being listed */
} lister;

/* --- listing ---------------------------------------------------------------------------------- */
static bool ends_right(const snug_folder *o, const char *name) {
    const char *words = o->endings ? o->endings : ".bmp .gif .jpeg .jpg .png";
    const size_t n = strlen(name);
    for (const char *at = words; *at; at += *at == ' ') {
        const size_t k = strcspn(at, " ");
        if (k > 0 && k <= n && strncasecmp(name + n - k, at, k) == 0)
            return true;
        at += k;
    }
    return false;
}

static snug_status join(char path[MAX_PATH], const char *folder, const char *name,
                        snug_error *err) {
    const size_t n = strlen(folder);
    const char *slash = n > 0 && folder[n - 1] != '/' && *name ? "/" : "";
    const int k = snprintf(path, MAX_PATH, "%s%s%s", folder, slash, name);
    return k >= 0 && k < MAX_PATH
               ? SNUG_OK
               : sn_fail(err, SNUG_E_INVALID, "a path in '%.300s' is longer than %d bytes", folder,
                         MAX_PATH);
}

/* A folder goes to the list of folders, a file to that of files. */
static snug_status take_entry(void *ctx, const char *name, snug_io_kind kind, snug_error *err) {
    lister *l = ctx;
    char path[MAX_PATH];
    const bool link = kind == SNUG_IO_LINK;
    SNUG_TRY(join(path, l->root, name, err));
    if (link)
        SNUG_TRY(sn_path_kind(l->files->engine, path, &kind, err));
    if (kind != SNUG_IO_FOLDER)
        return ends_right(l->o, name) ? sn_file_list_add(l->files, path, err) : SNUG_OK;
    if (link && !l->o->follow_links)
        return SNUG_OK;
    if (l->folders.n >= MAX_FOLDERS)
        return sn_fail(err, SNUG_E_DATA,
                       "'%.300s' has more than %zu folders; do links lead back to it?", l->o->path,
                       MAX_FOLDERS);
    return sn_file_list_add(&l->folders, path, err);
}

/* All files below a folder, in Keras' order. Folders found join the list that is gone through. */
static snug_status list_below(lister *l, const char *root, snug_error *err) {
    const size_t first = l->files->n;
    char path[MAX_PATH];
    sn_file_list_clear(&l->folders);
    SNUG_TRY(sn_file_list_add(&l->folders, root, err));
    for (size_t i = 0; i < l->folders.n; i++) {
        snprintf(path, sizeof path, "%s", sn_file_list_at(&l->folders, i));
        l->root = path;
        SNUG_TRY(sn_folder_each(l->files->engine, path, take_entry, l, err));
    }
    sn_file_list_sort_by_folder(l->files, first);
    return SNUG_OK;
}

/* --- classes ---------------------------------------------------------------------------------- */
static snug_status take_class(void *ctx, const char *name, snug_io_kind kind, snug_error *err) {
    lister *l = ctx;
    char path[MAX_PATH];
    SNUG_TRY(join(path, l->o->path, name, err));
    if (kind == SNUG_IO_LINK)
        SNUG_TRY(sn_path_kind(l->files->engine, path, &kind, err));
    return *name != '.' && kind == SNUG_IO_FOLDER ? sn_file_list_add(&l->classes, name, err)
                                                  : SNUG_OK;
}

static snug_status find_classes(lister *l, snug_error *err) {
    char path[MAX_PATH];
    if (!l->o->classes) {
        SNUG_TRY(sn_folder_each(l->files->engine, l->o->path, take_class, l, err));
        sn_file_list_sort(&l->classes, 0);
    }
    for (int i = 0; l->o->classes && i < l->o->n_classes; i++) {
        SNUG_TRY(join(path, l->o->path, l->o->classes[i], err));
        snug_io_kind kind;
        SNUG_TRY(sn_path_kind(l->files->engine, path, &kind, err));
        if (kind != SNUG_IO_FOLDER)
            return sn_fail(err, SNUG_E_INVALID, "class '%.100s' is no folder in '%.300s'",
                           l->o->classes[i], l->o->path);
        SNUG_TRY(sn_file_list_add(&l->classes, l->o->classes[i], err));
    }
    return SNUG_OK;
}

static snug_status room_for_labels(folder_source *s, size_t n, snug_error *err) {
    return sn_grow(s->files.engine, SN_MEM_INPUT, &s->labels, sizeof *s->labels, &s->labels_cap, n,
                   err);
}

static snug_status list_classes(lister *l, folder_source *s, snug_error *err) {
    char path[MAX_PATH];
    SNUG_TRY(find_classes(l, err));
    for (size_t k = 0; k < l->classes.n; k++) {
        const size_t first = s->files.n;
        SNUG_TRY(join(path, l->o->path, sn_file_list_at(&l->classes, k), err));
        SNUG_TRY(list_below(l, path, err));
        SNUG_TRY(room_for_labels(s, s->files.n, err));
        for (size_t i = first; i < s->files.n; i++)
            s->labels[i] = (int32_t)k;
    }
    return SNUG_OK;
}

static snug_status take_labels(const snug_folder *o, folder_source *s, snug_error *err) {
    if ((size_t)o->n_labels != s->files.n)
        return sn_fail(err, SNUG_E_DATA, "%lld labels are given for the %zu files of '%.300s'",
                       (long long)o->n_labels, s->files.n, o->path);
    SNUG_TRY(room_for_labels(s, s->files.n, err));
    memcpy(s->labels, o->labels, s->files.n * sizeof *s->labels);
    return SNUG_OK;
}

static snug_status list_folder(lister *l, folder_source *s, snug_error *err) {
    char path[MAX_PATH];
    if (l->o->kind == SNUG_LABELS_CLASSES) {
        SNUG_TRY(list_classes(l, s, err));
    } else {
        SNUG_TRY(join(path, l->o->path, "", err));
        SNUG_TRY(list_below(l, path, err));
        if (l->o->kind == SNUG_LABELS_GIVEN)
            SNUG_TRY(take_labels(l->o, s, err));
    }
    if (s->files.n > 0 && s->files.n <= UINT32_MAX)
        return SNUG_OK;
    return sn_fail_by(
        err, SNUG_E_DATA, SNUG_CAUSE_NO_PICTURES,
        "no pictures in '%.300s'%s: names must end in %s; pictures of a class stand in "
        "a folder of their own",
        l->o->path,
        l->o->kind == SNUG_LABELS_CLASSES && l->classes.n == 0 ? ", which has no folders" : "",
        l->o->endings ? l->o->endings : ".bmp, .gif, .jpeg, .jpg or .png");
}

/* --- order and subset ------------------------------------------------------------------------- */
static void shuffle(folder_source *s, uint32_t seed) {
    sn_mersenne m;
    sn_mersenne_init(&m, seed);
    for (size_t i = s->files.n - 1; i > 0; i--) {
        const size_t j = sn_mersenne_below(&m, (uint32_t)i);
        const uint64_t name = s->files.first[i];
        s->files.first[i] = s->files.first[j];
        s->files.first[j] = name;
        if (s->labels) {
            const int32_t label = s->labels[i];
            s->labels[i] = s->labels[j];
            s->labels[j] = label;
        }
    }
}

static snug_status choose_subset(const snug_folder *o, folder_source *s, int64_t *n,
                                 snug_error *err) {
    *n = (int64_t)s->files.n;
    if (o->subset == SNUG_SUBSET_ALL)
        return SNUG_OK;
    if (!(o->validation_split > 0 && o->validation_split < 1))
        return sn_fail(err, SNUG_E_INVALID, "validation_split=%g must lie between 0 and 1",
                       o->validation_split);
    const int64_t checked = (int64_t)(o->validation_split * (double)*n);
    if (checked == 0)
        return sn_fail(err, SNUG_E_DATA, "validation_split=%g of %lld files is none",
                       o->validation_split, (long long)*n);
    s->first = o->subset == SNUG_SUBSET_VALIDATION ? (size_t)(*n - checked) : 0;
    *n = o->subset == SNUG_SUBSET_VALIDATION ? checked : *n - checked;
    return SNUG_OK;
}

/* --- the stage -------------------------------------------------------------------------------- */
static snug_status file_at(const snug_dataset *d, int64_t index, snug_element *out,
                           snug_error *err) {
    const folder_source *s = d->ctx;
    const size_t i = s->first + (size_t)index;
    SNUG_TRY(sn_text_element(d->engine, sn_file_list_at(&s->files, i), out, err));
    if (!s->labels)
        return SNUG_OK;
    const snug_status status = snug_datum_create(d->engine, &d->spec.type[1], &out->part[1], err);
    if (status != SNUG_OK) {
        snug_element_drop(out);
        return status;
    }
    memcpy(out->part[1].data, &s->labels[i], sizeof *s->labels);
    out->n = 2;
    return SNUG_OK;
}

static snug_status next_file(sn_cursor *c, snug_element *out, snug_error *err) {
    if (c->given >= c->stage->cardinality)
        return sn_end(err);
    return file_at(c->stage, c->given, out, err);
}

static snug_status seek_file(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    (void)err;
    const int64_t left = c->stage->cardinality - c->given;
    *done = n < left ? n : left;
    return SNUG_OK;
}

static void release_files(snug_dataset *d) {
    folder_source *s = d->ctx;
    sn_free(d->engine, SN_MEM_INPUT, s->labels, s->labels_cap * sizeof *s->labels);
    sn_file_list_clear(&s->files);
}

static const sn_stage_class folder_class = {.name = "folder",
                                            .next = next_file,
                                            .seek = seek_file,
                                            .release = release_files,
                                            .at = file_at};

/* Names of the classes as texts. */
static snug_status describe(const lister *l, const folder_source *s, snug_folder_info *info,
                            snug_error *err) {
    const snug_type shape = {.dtype = SNUG_OPAQUE, .rank = 1, .dims = {(int64_t)l->classes.n}};
    snug_datum names;
    char *room;
    SNUG_TRY(sn_texts_create(s->files.engine, &shape, l->classes.n_bytes, &names, &room, err));
    for (size_t i = 0; i < l->classes.n; i++) {
        const char *name = sn_file_list_at(&l->classes, i);
        const size_t n = strlen(name);
        memcpy(room, name, n);
        ((snug_text *)names.data)[i] = (snug_text){room, n};
        room += n;
    }
    *info = (snug_folder_info){(int)l->classes.n, (int64_t)s->files.n, names};
    return SNUG_OK;
}

static snug_status fill_source(const snug_folder *o, snug_dataset *d, snug_folder_info *info,
                               snug_error *err) {
    folder_source *s = d->ctx;
    lister l = {.o = o, .files = &s->files};
    l.folders.engine = l.classes.engine = s->files.engine = d->engine;
    s->files.asked = o->progress;
    s->files.ctx = o->ctx;
    s->files.tells = true;
    snug_status status = list_folder(&l, s, err);
    s->files.asked = NULL;
    sn_advance_end(d->engine, &s->files.pass);
    if (status == SNUG_OK && o->shuffle)
        shuffle(s, o->seed);
    if (status == SNUG_OK)
        status = choose_subset(o, s, &d->cardinality, err);
    if (status == SNUG_OK && info)
        status = describe(&l, s, info, err);
    sn_file_list_clear(&l.folders);
    sn_file_list_clear(&l.classes);
    return status;
}

snug_status snug_dataset_from_folder(snug_engine *engine, const snug_folder *folder,
                                     snug_dataset **out, snug_folder_info *info, snug_error *err) {
    if (!engine || !folder || !folder->path || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_dataset_from_folder: an argument is NULL");
    snug_dataset *d = NULL;
    SNUG_TRY(sn_stage_create(&folder_class, engine, NULL, 0, &d, err));
    snug_status status = sn_stage_ctx(d, sizeof(folder_source), err);
    if (status == SNUG_OK)
        status = fill_source(folder, d, info, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    d->spec = (snug_spec){.n = folder->kind == SNUG_LABELS_NONE ? 1 : 2,
                          .is_text = {1},
                          .type = {{.dtype = SNUG_OPAQUE}, {.dtype = SNUG_I32}}};
    d->random = true;
    *out = d;
    return SNUG_OK;
}
