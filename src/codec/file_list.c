/* file_list.c: names of files: found by patterns, packed, sorted (file_list.h). */
#include "codec/file_list.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH  4096
#define ASK_EVERY 1024 /* names */

/* --- the list --------------------------------------------------------------------------------- */
snug_status sn_file_list_add(sn_file_list *l, const char *name, snug_error *err) {
    const size_t n = strlen(name) + 1;
    SNUG_TRY(sn_grow(l->engine, SN_MEM_INPUT, &l->bytes, 1, &l->bytes_cap, l->n_bytes + n, err));
    SNUG_TRY(sn_grow(l->engine, SN_MEM_INPUT, &l->first, sizeof *l->first, &l->first_cap, l->n + 1,
                     err));
    memcpy(l->bytes + l->n_bytes, name, n);
    l->first[l->n++] = l->n_bytes;
    l->n_bytes += n;
    if (l->tells)
        sn_advance_step(l->engine, &l->pass, SNUG_PASS_LISTING, (int64_t)l->n, SNUG_UNKNOWN);
    if (l->asked && l->n % ASK_EVERY == 0 && l->asked(l->ctx, (int64_t)l->n))
        return sn_fail(err, SNUG_E_INTERRUPTED, "listing was stopped after %zu files", l->n);
    return SNUG_OK;
}

const char *sn_file_list_at(const sn_file_list *l, size_t i) {
    return l->bytes + l->first[i];
}

static int by_name(const void *a, const void *b, void *bytes) {
    return strcmp((const char *)bytes + *(const uint64_t *)a,
                  (const char *)bytes + *(const uint64_t *)b);
}

void sn_file_list_sort(sn_file_list *l, size_t from) {
    if (l->n > from)
        qsort_r(l->first + from, l->n - from, sizeof *l->first, by_name, l->bytes);
}

static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static int by_folder(const void *a, const void *b, void *bytes) {
    const char *x = (const char *)bytes + *(const uint64_t *)a,
               *y = (const char *)bytes + *(const uint64_t *)b;
    const size_t m = folder_bytes(x), n = folder_bytes(y);
    const int order = memcmp(x, y, m < n ? m : n);
    if (order != 0 || m != n)
        return order != 0 ? order : m < n ? -1 : 1;
    return strcmp(x + m, y + n);
}

void sn_file_list_sort_by_folder(sn_file_list *l, size_t from) {
    if (l->n > from)
        qsort_r(l->first + from, l->n - from, sizeof *l->first, by_folder, l->bytes);
}

void sn_file_list_clear(sn_file_list *l) {
    sn_advance_end(l->engine, &l->pass);
    sn_free(l->engine, SN_MEM_INPUT, l->bytes, l->bytes_cap);
    sn_free(l->engine, SN_MEM_INPUT, l->first, l->first_cap * sizeof *l->first);
    *l = (sn_file_list){.engine = l->engine};
}

/* --- folders ---------------------------------------------------------------------------------- */
static snug_status find_io(const snug_engine *e, const snug_io **out, snug_error *err) {
    *out = sn_engine_io(e);
    return (*out)->list ? SNUG_OK
                        : sn_fail(err, SNUG_E_UNSUPPORTED,
                                  "the engine's I/O table lists no folders; give it list and kind");
}

/* A link that leads nowhere and a folder that is locked are nothing to list, not errors. */
snug_status sn_path_kind(snug_engine *e, const char *path, snug_io_kind *out, snug_error *err) {
    static const int nothing[] = {ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG};
    const snug_io *io;
    SNUG_TRY(find_io(e, &io, err));
    const int rc = io->kind(io->ctx, path);
    bool absent = false;
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        absent = absent || rc == -nothing[i];
    if (rc < 0 && !absent)
        return sn_file_fail(path, "look at", -1, -rc, err);
    *out = absent ? SNUG_IO_OTHER : (snug_io_kind)rc;
    return SNUG_OK;
}

typedef struct {
    sn_entry_fn each;
    void *ctx;
    snug_error *err;
    snug_status status;
} listing;

static int take_one(void *to, const char *name, int kind) {
    listing *l = to;
    l->status = l->each(l->ctx, name, (snug_io_kind)kind, l->err);
    return l->status != SNUG_OK;
}

snug_status sn_folder_each(snug_engine *e, const char *folder, sn_entry_fn each, void *ctx,
                           snug_error *err) {
    const snug_io *io;
    listing l = {each, ctx, err, SNUG_OK};
    SNUG_TRY(find_io(e, &io, err));
    const int rc = io->list(io->ctx, folder, take_one, &l);
    return rc < 0 ? sn_file_fail(folder, "list the folder", -1, -rc, err) : l.status;
}

/* --- patterns --------------------------------------------------------------------------------- */
/* Behind the set that starts at p ("[a-z]"), and whether it has c; NULL: the bracket is one. */
static const char *match_set(const char *p, char c, bool *has) {
    const bool negated = p[1] == '!' || p[1] == '^';
    const char *at = p + 1 + negated;
    *has = negated;
    for (bool first = true; *at && (*at != ']' || first); first = false) {
        const char low = *at++;
        const bool range = at[0] == '-' && at[1] && at[1] != ']';
        const char high = range ? at[1] : low;
        at += range ? 2 : 0;
        if ((unsigned char)c >= (unsigned char)low && (unsigned char)c <= (unsigned char)high)
            *has = !negated;
    }
    return *at == ']' ? at + 1 : NULL;
}

bool sn_name_matches(const char *pattern, const char *name) {
    const char *star = NULL, *star_name = NULL;
    if (*name == '.' && *pattern != '.')
        return false;
    while (*name) {
        bool has = *pattern && (*pattern == '?' || *pattern == *name);
        const char *next = pattern + 1;
        if (*pattern == '[') {
            const char *behind = match_set(pattern, *name, &has);
            next = behind ? behind : pattern + 1;
            has = behind ? has : *name == '[';
        }
        if (*pattern == '*') { /* as little as possible first; back to here when that fails */
            star = ++pattern;
            star_name = name;
        } else if (has) {
            pattern = next;
            name++;
        } else if (star) {
            pattern = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == 0;
}

typedef struct {
    sn_file_list *list;
    char path[MAX_PATH]; /* the folder, with a slash at its end; "" is here */
    size_t n;
    char pattern[256]; /* of names in it */
    const char *rest;  /* what follows its slash; NULL: none does */
} matcher;

static snug_status match_in(const matcher *parent, const char *name, const char *rest,
                            snug_error *err);

static snug_status match_entry(void *ctx, const char *name, snug_io_kind kind, snug_error *err) {
    const matcher *m = ctx;
    (void)kind;
    return sn_name_matches(m->pattern, name) ? match_in(m, name, m->rest, err) : SNUG_OK;
}

/* The first name of a pattern in the folder of m. */
static snug_status match_rest(matcher *m, const char *pattern, snug_error *err) {
    const char *slash = strchr(pattern, '/');
    const size_t part = slash ? (size_t)(slash - pattern) : strlen(pattern);
    if (part >= sizeof m->pattern)
        return sn_fail(err, SNUG_E_INVALID, "a name of %zu bytes in a pattern is too long", part);
    memcpy(m->pattern, pattern, part);
    m->rest = slash ? slash + strspn(slash, "/") : NULL;
    if (strcspn(m->pattern, "*?[") == part)
        return match_in(m, m->pattern, m->rest, err);
    snug_engine *e = m->list->engine;
    const char *folder = m->n > 0 ? m->path : ".";
    snug_io_kind kind;
    SNUG_TRY(sn_path_kind(e, folder, &kind, err));
    return kind == SNUG_IO_FOLDER ? sn_folder_each(e, folder, match_entry, m, err) : SNUG_OK;
}

/* Goes on in the folder of `parent` with an entry that is there. */
static snug_status match_in(const matcher *parent, const char *name, const char *rest,
                            snug_error *err) {
    matcher m = {.list = parent->list};
    const int n = snprintf(m.path, sizeof m.path, "%.*s%s%s", (int)parent->n, parent->path, name,
                           rest ? "/" : "");
    if (n < 0 || (size_t)n >= sizeof m.path)
        return sn_fail(err, SNUG_E_INVALID, "a path is longer than %d bytes", MAX_PATH);
    m.n = (size_t)n;
    if (rest)
        return match_rest(&m, rest, err);
    snug_io_kind kind;
    SNUG_TRY(sn_path_kind(m.list->engine, m.path, &kind, err));
    return kind == SNUG_IO_FILE ? sn_file_list_add(m.list, m.path, err) : SNUG_OK;
}

snug_status sn_file_list_match(sn_file_list *l, const char *pattern, snug_error *err) {
    matcher top = {.list = l};
    if (*pattern == '/')
        return match_in(&top, "", pattern + strspn(pattern, "/"), err);
    return match_rest(&top, pattern, err); /* names relative to here, without "./" */
}
