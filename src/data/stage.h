/* stage.h: the inside of pipelines. A dataset is a chain of stages (descriptions); an iterator is a
 * chain of cursors over them. Elements are pulled: a cursor asks the one before it.
 *
 * One stage kind = one sn_stage_class and the file it stands in. Everything the tree has to know of
 * it is in the class: what it gives (spec, cardinality), how it runs (open, next, close), how it is
 * saved (save, restore), what it can do at random access.
 *
 * Invariants
 * 1. Threads live in two kinds of cursor only: map with workers, and prefetch. All others run on
 * the thread that asks them.
 * 2. A cursor that runs on a worker never calls a `serial` function: such stages, and all before
 * them, are asked from the iterator's own thread (prefetch of a serial pipeline is filled by who
 * asks, between elements).
 * 3. After close no thread of the cursor runs and it holds no byte.
 * 4. next gives elements in the stream's order, index counting from 0. */
#ifndef SN_DATA_STAGE_H
#define SN_DATA_STAGE_H

#include <snug/dataset.h>

#include "memory/engine.h"
#include "tensor/feed.h"

typedef struct sn_cursor sn_cursor;
typedef struct sn_stage_class sn_stage_class;

struct snug_dataset {
    const sn_stage_class *kind;
    snug_engine *engine;
    uint32_t holds; /* atomic */
    int n_before;
    snug_dataset **before; /* held */
    snug_spec spec;
    int64_t cardinality;
    void *ctx; /* the kind's own, made with it */
};

struct sn_cursor {
    const snug_dataset *stage;
    snug_iterator *iterator;
    sn_cursor **before; /* one per stage before it */
    void *ctx;          /* the kind's own */
    int64_t given;
    snug_stage_row row; /* figures; written by who runs it */
};

struct sn_stage_class {
    const char *name;
    snug_status (*open)(sn_cursor *c, snug_error *err);
    /* SNUG_E_END at the end, also when asked again. */
    snug_status (*next)(sn_cursor *c, snug_element *out, snug_error *err);
    void (*close)(sn_cursor *c);
    /* Appends the position to bytes, and reads it again; cursors before it are the caller's work.
     */
    snug_status (*save)(sn_cursor *c, const snug_writer *w, snug_error *err);
    snug_status (*restore)(sn_cursor *c, const unsigned char **bytes, size_t *n, snug_error *err);
    void (*release)(snug_dataset *d); /* of ctx; NULL: there is none */
    /* NULL: no random access. Any thread; `cardinality` elements. */
    snug_status (*at)(const snug_dataset *d, int64_t index, snug_element *out, snug_error *err);
};

/* A stage over others, whose references it takes over, dropping them when it fails. */
SNUG_CHECKED snug_status sn_stage_create(const sn_stage_class *kind, snug_engine *e,
                                         snug_dataset *const *before, int n_before,
                                         snug_dataset **out, snug_error *err);
SNUG_CHECKED snug_status sn_cursor_next(sn_cursor *c, snug_element *out, snug_error *err);

#endif
