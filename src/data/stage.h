/* stage.h: the inside of pipelines. A dataset is a tree of stages (descriptions); an iterator is a
 * tree of places over them, each with a cursor while it runs. Elements are pulled: a cursor asks
 * the one before it.
 *
 * One stage kind = one sn_stage_class and the file it stands in. Everything the tree has to know of
 * it is in the class: how it runs (open, next, close), how it goes forward fast (seek, fill), what
 * it can do at random access.
 *
 * Invariants
 * 1. Threads live in two kinds of cursor only: map with workers, and prefetch. All others run on
 * the thread that asks them.
 * 2. A stage with `serial` set, and all after it, are asked from the iterator's own thread: a
 *    prefetch over it has no thread. Workers of a map see elements, never cursors.
 * 3. After close no thread of the cursor runs and it holds no byte.
 * 4. next gives elements in the stream's order. The stream is a function of the dataset and the
 *    iteration alone; so a position is a number, and going on from it is asking that far (seek).
 * 5. Iterations: an iterator's place has an ordinal (how many iterators its stage had before), and
 *    counts how often it was opened (repeat). The two are the iteration: what is random is keyed by
 *    it. */
#ifndef SN_DATA_STAGE_H
#define SN_DATA_STAGE_H

#include <snug/dataset.h>

#include "memory/engine.h"
#include "tensor/feed.h"

#include <stdatomic.h>

typedef struct sn_cursor sn_cursor;
typedef struct sn_stage_class sn_stage_class;
typedef struct sn_station sn_station;

struct snug_dataset {
    const sn_stage_class *kind;
    snug_engine *engine;
    _Atomic uint32_t holds;
    _Atomic uint64_t iterators; /* made over it so far */
    int n_before;
    int depth;             /* stages one behind another, it among them */
    int64_t places;        /* that an iterator over it has: stages, one for each way to them */
    snug_dataset **before; /* held */
    snug_spec spec;
    int64_t cardinality;
    bool serial;  /* it or one before it goes back to an interpreter */
    bool random;  /* kind->at can be asked */
    bool hoards;  /* its iterators keep elements in memory (element_store.h) */
    bool grows;   /* and more of them with each that they give */
    void *ctx;    /* the kind's own, made with it (sn_stage_ctx) */
    size_t n_ctx; /* its bytes: freed after kind->release */
};

/* Figures of a place; written by who runs it, read by any. */
typedef struct {
    _Atomic int64_t elements, asked_ns, worker_ns, bytes, peak_bytes, depth;
    _Atomic int workers;
} sn_figures;

/* A stage's occurrence in an iterator's tree. */
struct sn_station {
    const snug_dataset *stage; /* held */
    snug_iterator *iterator;
    sn_station **before; /* one per stage before it */
    uint64_t ordinal, opens;
    _Atomic int64_t
        fact; /* what a kind learned of the stream and saves with the position; 0: nothing */
    sn_figures figures;
};

struct sn_cursor {
    const snug_dataset *stage;
    snug_iterator *iterator;
    sn_station *place;
    sn_cursor **before; /* one per stage before it; NULLs where the kind opens them itself */
    void *ctx;          /* the kind's own (sn_cursor_ctx) */
    size_t n_ctx;
    int64_t given;
    uint64_t iteration; /* for indices: 11 bits of the ordinal, 11 of the opens */
    uint64_t key;       /* of all bits of both: for what is random in the stage itself */
    bool slow;          /* its last call was worth timing */
};

/* Rows of arrays to be filled by elements: part p of the i-th goes to data[p] + i *
 * row_bytes[p]. */
typedef struct {
    int n;
    struct {
        char *data;
        size_t row_bytes; /* of type */
        snug_type type;   /* of a row; its dtype may differ from the element's (sn_convert) */
    } part[SNUG_MAX_PARTS];
} sn_target;

struct sn_stage_class {
    const char *name;
    snug_status (*open)(sn_cursor *c, snug_error *err); /* NULL: nothing to do */
    /* SNUG_E_END (sn_end) at the end, also when asked again. */
    snug_status (*next)(sn_cursor *c, snug_element *out, snug_error *err);
    void (*close)(sn_cursor *c); /* also after an open that failed; NULL: nothing to do */
    /* Leaves out the next n elements; *done: how many there were. NULL: asks for them. */
    snug_status (*seek)(sn_cursor *c, int64_t n, int64_t *done, snug_error *err);
    /* The next elements, up to n, into rows from `first` on; *done 0 at the end. NULL: by next. */
    snug_status (*fill)(sn_cursor *c, const sn_target *to, int64_t first, int64_t n, int64_t *done,
                        snug_error *err);
    void (*release)(snug_dataset *d); /* of what ctx holds; NULL: nothing */
    /* NULL: no random access. Any thread; `cardinality` elements. */
    snug_status (*at)(const snug_dataset *d, int64_t index, snug_element *out, snug_error *err);
    /* The elements of these indices into rows from `first` on, but for parts of the target without
     * data; NULL: by at. */
    snug_status (*gather)(const snug_dataset *d, const int64_t *index, int64_t n,
                          const sn_target *to, int64_t first, snug_error *err);
    /* Over random access: the numbers of the next elements, up to n, instead of the elements
     * (sn_stage_drawn_from says whose); *done 0 at the end. NULL: not by number. */
    snug_status (*draw)(sn_cursor *c, int64_t *index, int64_t n, int64_t *done, snug_error *err);
    bool reorders;     /* draw gives numbers of elements of the stage before it */
    bool opens_before; /* the kind opens and closes the cursors before it */
    bool hands_on;     /* elements leave it as they came, in their order */
    bool waits;        /* for threads: every call is timed, sampling would miss the long ones */
};

/* Cursors ask the one before them, so a pipeline is as deep as the stack lets it: what is left is
 * looked at (sn_stack_is_low) wherever one cursor asks another. */
enum { SN_MOST_STAGES = 10000, SN_MOST_PLACES = 1000000, SN_STAGE_STACK = 192 << 10 };

/* A stage over others, whose references it takes over, dropping them when it fails. spec and
 * cardinality are those of the first before it (none: SNUG_UNKNOWN). */
SNUG_CHECKED snug_status sn_stage_create(const sn_stage_class *kind, snug_engine *e,
                                         snug_dataset *const *before, int n_before,
                                         snug_dataset **out, snug_error *err);
/* Endless where one is, else unknown where one is (concatenate.c). */
int64_t sn_cardinality_sum(int64_t a, int64_t b);
/* Zeroed bytes of category INPUT as ctx. */
SNUG_CHECKED snug_status sn_stage_ctx(snug_dataset *d, size_t bytes, snug_error *err);
/* The two together over one stage, for transformations: checks d and out, drops d when it fails. */
SNUG_CHECKED snug_status sn_stage_after(const sn_stage_class *kind, snug_dataset *d,
                                        size_t ctx_bytes, snug_dataset **out, snug_error *err);

/* The first line of a transformation: drops d, which it takes over, where there is no out. */
SNUG_CHECKED snug_status sn_stage_wants(snug_dataset *d, snug_dataset **out, snug_error *err);

SNUG_CHECKED snug_status sn_station_create(snug_iterator *it, const snug_dataset *d,
                                           uint64_t ordinal, sn_station **out, snug_error *err);
void sn_station_destroy(sn_station *p); /* NULL is legal */
SNUG_CHECKED snug_status sn_cursor_open(sn_station *p, sn_cursor **out, snug_error *err);
void sn_cursor_close(sn_cursor *c); /* NULL is legal */
SNUG_CHECKED snug_status sn_cursor_next(sn_cursor *c, snug_element *out, snug_error *err);
SNUG_CHECKED snug_status sn_cursor_seek(sn_cursor *c, int64_t n, int64_t *done, snug_error *err);
SNUG_CHECKED snug_status sn_cursor_fill(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                        int64_t *done, snug_error *err);
SNUG_CHECKED snug_status sn_cursor_draw(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                                        snug_error *err);
/* The stage with random access whose elements a cursor of d can draw by number; NULL: none. */
const snug_dataset *sn_stage_drawn_from(const snug_dataset *d);
/* The cursor's own memory: c->ctx, zeroed; freed after close. */
SNUG_CHECKED snug_status sn_cursor_ctx(sn_cursor *c, size_t bytes, snug_error *err);
SNUG_CHECKED snug_status sn_stage_gather(const snug_dataset *d, const int64_t *index, int64_t n,
                                         const sn_target *to, int64_t first, snug_error *err);

/* Whether the iterator's caller wants it to stop; always false on other threads. */
bool sn_iterator_interrupted(snug_iterator *it);

snug_status sn_end(snug_error *err);
int64_t sn_now_ns(void);
/* Buffers: n more (or fewer) bytes are held by a place. */
void sn_station_hold(sn_station *p, int64_t bytes);

/* --- elements --------------------------------------------------------------------------------- */
/* Moves n parts; from has none then. */
void sn_element_move(snug_element *to, snug_element *from);
/* Row i of a part; another hold on its bytes. */
snug_datum sn_datum_row(const snug_datum *d, int64_t i);
/* Bytes of an element that are its own, not slices of something larger. */
int64_t sn_element_bytes(const snug_element *e);
/* Borrowed bytes that the engine's pool has given: they are the element's own. */
void sn_datum_is_own(snug_datum *borrowed);
/* Part of an element into row i of a target. SNUG_E_SHAPE where it is of another shape. */
SNUG_CHECKED snug_status sn_target_put(const sn_target *to, int part, int64_t i,
                                       const snug_datum *d, snug_error *err);
SNUG_CHECKED snug_status sn_target_put_all(const sn_target *to, int64_t i, const snug_element *e,
                                           snug_error *err);
/* Whether elements of the spec have one size and no texts. */
bool sn_spec_is_fixed(const snug_spec *s);
/* Dims that differ become -1, ranks that differ an unknown rank. SNUG_E_SHAPE: other types. */
SNUG_CHECKED snug_status sn_spec_merge(snug_spec *s, const snug_spec *other, const char *who,
                                       snug_error *err);
/* Whether an element is what the spec promised; who: "the generator". */
SNUG_CHECKED snug_status sn_spec_check(const snug_spec *s, const snug_element *e, const char *who,
                                       snug_error *err);

#endif
