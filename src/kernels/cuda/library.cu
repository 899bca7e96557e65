/* library.cu: a library found when a plan first names one of its kernels, and never linked; and
 * what it answered, so that a planner may ask for the same thing as often as it likes: a heuristic
 * takes milliseconds.
 *
 * 1. What is missing is not looked for again; its table says why. What had no memory is.
 * 2. Answers are of a key alone, whatever was asked before. Refusals are answers, too; a failure
 * for want of memory is none: it goes up, and is asked again. There is room for so many: newer ones
 * take the places of older ones. */
#include "kernels/cuda/lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* --- loading --------------------------------------------------------------------------------- */
static bool find_symbols(void *table, const sn_library_kind *kind) {
    const sn_library *l = (const sn_library *)table;
    for (size_t i = 0; i < kind->n_symbols; i++) {
        void *f = dlsym(l->file, kind->symbols[i].name);
        if (!f)
            return false;
        memcpy((char *)table + kind->symbols[i].at, &f, sizeof f);
    }
    return true;
}

static snug_status fail_start(const sn_library_kind *kind, snug_error *err) {
    return sn_fail(err, SNUG_E_MEMORY,
                   "%s has no memory for its handle; give the GPU or the host more room",
                   kind->title);
}

/* SNUG_OK also where it is missing. */
static snug_status load(const sn_gpu *g, void *table, const sn_library_kind *kind,
                        snug_error *err) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    sn_library *l = (sn_library *)table;
    if (host->fault && host->fault(host->ctx))
        return fail_start(kind, err);
    SNUG_TRY(sn_gpu_enter(g, err));
    for (int i = 0; i < SN_LIBRARY_FILES && kind->files[i] && !l->file; i++)
        l->file = dlopen(kind->files[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->file) {
        snprintf(l->why, sizeof l->why, "no %s: %.100s", kind->files[0], dlerror());
        return SNUG_OK;
    }
    const bool whole = find_symbols(table, kind);
    const snug_status status = whole ? kind->start(table) : SNUG_E_UNSUPPORTED;
    if (status == SNUG_OK)
        return SNUG_OK;
    snprintf(l->why, sizeof l->why, "%s %s", kind->title,
             whole ? "gives no handle" : "lacks a function");
    dlclose(l->file);
    l->file = NULL;
    return status == SNUG_E_MEMORY ? fail_start(kind, err) : SNUG_OK;
}

void *sn_library_table(const sn_gpu *g, const sn_library_kind *kind) {
    return *sn_gpu_library_slot(g, kind->which);
}

static snug_status open_table(const sn_gpu *g, const sn_library_kind *kind, void **table,
                              snug_error *err) {
    void **slot = sn_gpu_library_slot(g, kind->which);
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    if (!*slot) {
        void *block = host->alloc(host->ctx, kind->bytes);
        if (!block)
            return sn_fail(err, SNUG_E_MEMORY, "no host memory for %s's table", kind->title);
        memset(block, 0, kind->bytes);
        const snug_status status = load(g, block, kind, err);
        if (status != SNUG_OK) {
            host->free(host->ctx, block, kind->bytes);
            return status;
        }
        *slot = block;
    }
    *table = *slot;
    return SNUG_OK;
}

snug_status sn_library_want(const sn_gpu *g, const sn_library_kind *kind, void **table,
                            snug_error *err) {
    void *found = NULL;
    snug_error why;
    const snug_status status = open_table(g, kind, &found, &why);
    if (status != SNUG_OK) {
        sn_gpu_starve(g, &why);
        return sn_fail(err, status, "%s", why.text);
    }
    if (!((const sn_library *)found)->file)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s", ((const sn_library *)found)->why);
    *table = found;
    return SNUG_OK;
}

void sn_library_close(sn_gpu *g, const sn_library_kind *kind) {
    void **slot = sn_gpu_library_slot(g, kind->which);
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    sn_library *l = (sn_library *)*slot;
    if (!l)
        return;
    if (l->file) {
        kind->stop(l);
        dlclose(l->file);
    }
    host->free(host->ctx, l, kind->bytes);
    *slot = NULL;
}

void sn_library_version(const sn_gpu *g, const sn_library_kind *kind, char *text, size_t size) {
    void *table = NULL;
    const size_t v = sn_library_want(g, kind, &table, NULL) == SNUG_OK ? kind->version(table) : 0;
    if (v > 0)
        snprintf(text, size, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    else if (size > 0)
        text[0] = 0;
}

/* --- ways of libraries ------------------------------------------------------------------------ */
snug_status sn_scratch_check(const sn_call *call, size_t bytes, snug_error *err) {
    return bytes <= call->workspace_bytes
               ? SNUG_OK
               : sn_fail(err, SNUG_E_INTERNAL,
                         "a library wants %zu bytes of scratch, the plan has %zu", bytes,
                         call->workspace_bytes);
}

/* --- answers --------------------------------------------------------------------------------- */
enum { PLACES = 8 }; /* one key may be at any of so many */

static size_t first_place(const sn_answer_key *key, uint64_t *hash) {
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < SN_KEY_WORDS; i++)
        h = (h ^ (uint64_t)key->word[i]) * 1099511628211u;
    *hash = h ^ h >> 32;
    return (size_t)(*hash % (SN_ANSWERS / PLACES)) * PLACES;
}

static const sn_choice *find(const sn_answers *a, const sn_answer_key *key) {
    uint64_t hash;
    const size_t first = first_place(key, &hash);
    for (size_t i = first; i < first + PLACES; i++)
        if (a->known[i] && memcmp(&a->key[i], key, sizeof *key) == 0)
            return &a->choice[i];
    return NULL;
}

static void keep(sn_answers *a, const sn_answer_key *key, const sn_choice *choice) {
    uint64_t hash;
    const size_t first = first_place(key, &hash);
    size_t at = first;
    while (at < first + PLACES && a->known[at])
        at++;
    if (at == first + PLACES)
        at = first + (size_t)(hash >> 40) % PLACES;
    a->known[at] = true;
    a->key[at] = *key;
    a->choice[at] = *choice;
}

snug_status sn_choice_absent(const sn_gpu *g, const char *impl, snug_status missing,
                             sn_choice *out) {
    if (missing != SNUG_E_UNSUPPORTED || !sn_gpu_pretends(g))
        return missing;
    memset(out, 0, sizeof *out);
    snprintf(out->impl, sizeof out->impl, "%s", impl);
    out->bias = out->relu = true;
    return SNUG_OK;
}

snug_status sn_answers_get(const sn_gpu *g, sn_answers *a, const sn_answer_key *key, sn_asker ask,
                           void *table, const void *what, sn_choice *out, snug_error *err) {
    const sn_choice *known = find(a, key);
    sn_choice made = {};
    snug_error why;
    if (known) {
        made = *known;
    } else {
        snug_status status = sn_gpu_enter(g, &why);
        if (status == SNUG_OK)
            status = ask(g, table, what, &made, &why);
        if (status != SNUG_OK && status != SNUG_E_UNSUPPORTED) {
            sn_gpu_starve(g, &why);
            return sn_fail(err, status, "%s", why.text);
        }
        if (status != SNUG_OK)
            memset(&made, 0, sizeof made);
        keep(a, key, &made);
    }
    if (!made.impl[0])
        return SNUG_E_UNSUPPORTED;
    *out = made;
    return SNUG_OK;
}
