/* library.cu: a library found when a plan first names one of its kernels, and never linked; and
 * what it answered, so that a planner may ask for the same thing as often as it likes: a heuristic
 * takes milliseconds.
 *
 * 1. What is missing is not looked for again; its table says why.
 * 2. Answers are of a key alone. Refusals are answers, too. There is room for so many: newer ones
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

static void load(const sn_gpu *g, void *table, const sn_library_kind *kind) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    sn_library *l = (sn_library *)table;
    if (host->fault && host->fault(host->ctx)) {
        snprintf(l->why, sizeof l->why, "no %s handle (a fault was asked for)", kind->title);
        return;
    }
    for (int i = 0; i < SN_LIBRARY_FILES && kind->files[i] && !l->file; i++)
        l->file = dlopen(kind->files[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->file) {
        snprintf(l->why, sizeof l->why, "no %s: %.100s", kind->files[0], dlerror());
        return;
    }
    const bool whole = find_symbols(table, kind);
    if (whole && kind->start(table))
        return;
    snprintf(l->why, sizeof l->why, "%s %s", kind->title,
             whole ? "gives no handle" : "lacks a function");
    dlclose(l->file);
    l->file = NULL;
}

void *sn_library_table(const sn_gpu *g, const sn_library_kind *kind) {
    void **slot = sn_gpu_library_slot(g, kind->which);
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    if (!*slot) {
        void *table = host->alloc(host->ctx, kind->bytes);
        if (!table)
            return NULL;
        memset(table, 0, kind->bytes);
        load(g, table, kind);
        *slot = table;
    }
    return *slot;
}

snug_status sn_library_want(const sn_gpu *g, const sn_library_kind *kind, void **table,
                            snug_error *err) {
    void *found = sn_library_table(g, kind);
    if (!found)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for %s's table", kind->title);
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
    const sn_library *l = (const sn_library *)sn_library_table(g, kind);
    const size_t v = l && l->file ? kind->version(l) : 0;
    if (v > 0)
        snprintf(text, size, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    else if (size > 0)
        text[0] = 0;
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

const sn_choice *sn_answers_find(const sn_answers *a, const sn_answer_key *key) {
    uint64_t hash;
    const size_t first = first_place(key, &hash);
    for (size_t i = first; i < first + PLACES; i++)
        if (a->known[i] && memcmp(&a->key[i], key, sizeof *key) == 0)
            return &a->choice[i];
    return NULL;
}

void sn_answers_keep(sn_answers *a, const sn_answer_key *key, const sn_choice *choice) {
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
