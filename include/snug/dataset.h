/* dataset.h: input pipelines: data of any size through a fixed number of bytes.
 *
 *     snug_dataset *d;
 *     snug_dataset_from_feeds(engine, feeds, 2, &d, &err);          // rows of x and y
 *     snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 10000, .seed = 7}, &d, &err);
 *     snug_dataset_map(d, &augment, &(snug_map_options){.workers = 4}, &d, &err);   // threads
 *     snug_dataset_batch(d, 64, 0, &d, &err);
 *     snug_dataset_prefetch(d, SNUG_AUTOTUNE, &d, &err);
 *     snug_iterator *it;
 *     snug_iterator_create(d, &it, &err);
 *     while (snug_iterator_next(it, &element, &err) == SNUG_OK) ... // SNUG_E_END at the end
 *
 * A dataset is a description: immutable, counted, cheap. A transformation takes over the reference
 * it is given and returns a new dataset, also when *out is the same pointer; when it fails, the one
 * given is dropped. An iterator goes through it once; its threads and buffers are its own, named
 * rows of the engine's ledger (category "input"), and gone with it.
 *
 * An element is a flat list of parts; structure (tuples, names) is the caller's. A part is an array
 * of known type, or of texts (bytes of any length). Parts are counted references: slices of arrays
 * are not copied until a batch is assembled, straight into its place.
 *
 * The stream of elements does not depend on the number of workers, on timing or on the budget:
 * order is that of the source, random numbers are keyed by seed and element index. */
#ifndef SNUG_DATASET_H
#define SNUG_DATASET_H

#include <snug/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_dataset snug_dataset;
typedef struct snug_iterator snug_iterator;

#define SNUG_MAX_PARTS 128  /* of an element: the columns of a table are one each */
#define SNUG_AUTOTUNE  (-1) /* depth, threads: measured while it runs */
#define SNUG_ENDLESS   (-1) /* cardinalities */
#define SNUG_UNKNOWN   (-2)

typedef struct {
    const char *data;
    size_t bytes;
} snug_text;

/* One part of an element. Text parts: dtype OPAQUE in type, data points to snug_texts, one per
 * position of the shape. */
typedef struct {
    snug_type type;
    int is_text;
    void *data;
    size_t bytes;             /* of data; texts: of the snug_texts and what they point to */
    struct snug_keeper *keep; /* whose bytes these are; counted; NULL: lent for the call */
} snug_datum;

typedef struct {
    int n;
    int64_t index; /* position in the stream of the stage that gave it, in the lower 40 bits; which
                      iteration it is above them: 0 for the first */
    snug_datum part[SNUG_MAX_PARTS];
} snug_element;

/* What elements will be, known before the first: dims -1 differ from element to element; rank -1
 * in a type: not even the rank is known. */
typedef struct {
    int n;
    snug_type type[SNUG_MAX_PARTS];
    int is_text[SNUG_MAX_PARTS];
} snug_spec;

/* New bytes from the pool of the engine's pipelines; any thread. */
SNUG_API SNUG_CHECKED snug_status snug_datum_create(snug_engine *engine, const snug_type *type,
                                                    snug_datum *out, snug_error *err);
/* Copies the texts. */
SNUG_API SNUG_CHECKED snug_status snug_datum_texts(snug_engine *engine, const snug_type *shape,
                                                   const snug_text *texts, snug_datum *out,
                                                   snug_error *err);
/* The caller's bytes, lent until release(ctx) is called, once, from any thread. */
SNUG_API SNUG_CHECKED snug_status snug_datum_borrow(snug_engine *engine, const snug_view *view,
                                                    void (*release)(void *ctx), void *ctx,
                                                    snug_datum *out, snug_error *err);
SNUG_API void snug_datum_hold(const snug_datum *datum);
SNUG_API void snug_datum_drop(snug_datum *datum);
SNUG_API void snug_element_drop(snug_element *element); /* all parts; it has none then */

SNUG_API void snug_dataset_hold(snug_dataset *dataset);
SNUG_API void snug_dataset_drop(snug_dataset *dataset);
SNUG_API const snug_spec *snug_dataset_spec(const snug_dataset *dataset);
SNUG_API int64_t snug_dataset_cardinality(const snug_dataset *dataset);

/* --- sources ---------------------------------------------------------------------------------- */
/* Rows of arrays, equally many in each; feeds are taken over. Random access: a shuffle keeps
 * indices only. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_from_feeds(snug_engine *engine,
                                                          snug_feed *const *feeds, int n,
                                                          snug_dataset **out, snug_error *err);
/* Rows (slices = 1) of the parts, or the parts as the one element. Held. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_from_element(snug_engine *engine,
                                                            const snug_element *element, int slices,
                                                            snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_range(snug_engine *engine, int64_t start,
                                                     int64_t stop, int64_t step, snug_dataset **out,
                                                     snug_error *err);
/* Files whose names match (*, ?, [abc] in the last names), sorted. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_list_files(snug_engine *engine,
                                                          const snug_text *patterns, int n,
                                                          snug_dataset **out, snug_error *err);
typedef enum { SNUG_PLAIN, SNUG_GZIP, SNUG_ZLIB } snug_compression;
typedef enum { SNUG_LINES, SNUG_RECORDS } snug_records; /* text lines; TFRecord, CRC checked */
/* The records of files, whose names are the one text part of `files` (taken over). */
SNUG_API SNUG_CHECKED snug_status snug_dataset_records(snug_dataset *files, snug_records kind,
                                                       snug_compression compression,
                                                       snug_dataset **out, snug_error *err);

/* The caller's own source. open is called once per iterator; next gives SNUG_E_END at the end. */
typedef struct {
    void *ctx;
    void (*release)(void *ctx);
    snug_spec spec;
    int64_t cardinality;
    snug_status (*open)(void *ctx, void **cursor, snug_error *err);
    snug_status (*next)(void *cursor, snug_element *out, snug_error *err);
    void (*close)(void *cursor);
    /* NULL: no random access. Element `index`, from several threads at once. */
    snug_status (*at)(void *ctx, int64_t index, snug_element *out, snug_error *err);
    int serial; /* calls go back to one interpreter: next runs on the iterator's caller's thread */
} snug_generator;
SNUG_API SNUG_CHECKED snug_status snug_dataset_from_generator(snug_engine *engine,
                                                              const snug_generator *generator,
                                                              snug_dataset **out, snug_error *err);

/* --- transformations -------------------------------------------------------------------------- */
/* A function on elements. Each worker thread has an object of its own (open, close). The input is
 * lent; the output's parts are the caller's. An index that is the element's place in the stream
 * keys what is random. */
typedef struct {
    void *ctx;
    void (*release)(void *ctx);
    snug_status (*spec)(void *ctx, const snug_spec *in, snug_spec *out, snug_error *err);
    snug_status (*open)(void *ctx, snug_engine *engine, void **worker, snug_error *err);
    void (*close)(void *ctx, void *worker);
    snug_status (*call)(void *ctx, void *worker, const snug_element *in, snug_element *out,
                        snug_error *err);
    int serial; /* one call at a time, on the thread that asks the iterator (an interpreter's) */
} snug_mapper;

typedef struct {
    int workers;       /* 0, 1: the asking thread; SNUG_AUTOTUNE */
    int unordered;     /* the caller does not mind another order (deterministic=False): allowed to
                          be ordered all the same */
    int ignore_errors; /* elements that fail are left out */
} snug_map_options;
SNUG_API SNUG_CHECKED snug_status snug_dataset_map(snug_dataset *d, const snug_mapper *f,
                                                   const snug_map_options *o, snug_dataset **out,
                                                   snug_error *err);
/* Part 0 becomes a picture, f32[height,width,channels]: from a file's name (read, decoded,
 * resized), or from numbers of that shape. augment: words with commas between them, each once per
 * element at random: flip, flip_up_down, rot90 (square pictures), crop:N (moved by up to N pixels,
 * default an eighth), brightness:D, contrast:D (default 0.1 of the scale); NULL: none. */
typedef struct {
    int64_t height, width, channels; /* 0: 3 channels */
    double scale;                    /* 255 becomes this; 0: 1 */
    const char *augment;
    uint64_t seed;
    snug_map_options map;
} snug_pictures;
SNUG_API SNUG_CHECKED snug_status snug_dataset_pictures(snug_dataset *d, const snug_pictures *o,
                                                        snug_dataset **out, snug_error *err);
/* Keeps elements for which f gives a true number as its only part. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_filter(snug_dataset *d, const snug_mapper *f,
                                                      snug_dataset **out, snug_error *err);
/* A dataset for each element, one after another; cycle > 1: `block` elements of each of `cycle`
 * open ones in turn. */
typedef struct {
    void *ctx;
    void (*release)(void *ctx);
    snug_spec spec; /* of the elements of the datasets made */
    snug_status (*make)(void *ctx, const snug_element *in, snug_dataset **out, snug_error *err);
    int serial;
} snug_expander;
typedef struct {
    int64_t cycle, block;
    int workers; /* so many of the open ones read ahead, a thread each; SNUG_AUTOTUNE */
} snug_interleave;
SNUG_API SNUG_CHECKED snug_status snug_dataset_interleave(snug_dataset *d, const snug_expander *f,
                                                          const snug_interleave *o,
                                                          snug_dataset **out, snug_error *err);

typedef struct {
    int64_t buffer; /* elements to draw from */
    uint64_t seed;
    int keep_order;           /* every iteration the same order: reshuffle_each_iteration=False */
    const char *spill_folder; /* for records that do not fit the pipeline's bytes; NULL: the
                                 engine's, or none */
} snug_shuffle;
SNUG_API SNUG_CHECKED snug_status snug_dataset_shuffle(snug_dataset *d, const snug_shuffle *o,
                                                       snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_batch(snug_dataset *d, int64_t size,
                                                     int drop_remainder, snug_dataset **out,
                                                     snug_error *err);
/* Shapes to pad to (dims -1: the longest of the batch); values: one number or text per part. */
typedef struct {
    int64_t size;
    int drop_remainder;
    const snug_type *shapes;  /* NULL: the longest */
    const snug_datum *values; /* NULL: 0 and "" */
} snug_padding;
SNUG_API SNUG_CHECKED snug_status snug_dataset_padded_batch(snug_dataset *d, const snug_padding *o,
                                                            snug_dataset **out, snug_error *err);
/* Rows that overlap: `size` elements, each `stride`-th, as arrays; the next window begins `shift`
 * elements later (0: size). The dataset of one window: snug_dataset_from_element with slices. */
typedef struct {
    int64_t size, shift, stride; /* stride 0: 1 */
    int drop_remainder;
} snug_window;
SNUG_API SNUG_CHECKED snug_status snug_dataset_window(snug_dataset *d, const snug_window *o,
                                                      snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_unbatch(snug_dataset *d, snug_dataset **out,
                                                       snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_repeat(snug_dataset *d, int64_t times,
                                                      snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_take(snug_dataset *d, int64_t n, snug_dataset **out,
                                                    snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_skip(snug_dataset *d, int64_t n, snug_dataset **out,
                                                    snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_shard(snug_dataset *d, int64_t n, int64_t index,
                                                     snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_enumerate(snug_dataset *d, int64_t start,
                                                         snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_concatenate(snug_dataset *a, snug_dataset *b,
                                                           snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_zip(snug_dataset *const *d, int n,
                                                   snug_dataset **out, snug_error *err);
/* Which of d the next element comes from: choices gives i64 numbers; or weights, drawn with
 * seed. */
typedef struct {
    snug_dataset *choices;
    const double *weights;
    uint64_t seed;
    int stop_on_empty;
} snug_choice;
SNUG_API SNUG_CHECKED snug_status snug_dataset_choose(snug_dataset *const *d, int n,
                                                      const snug_choice *o, snug_dataset **out,
                                                      snug_error *err);
/* path NULL: in memory; else a file, whole and renamed into place after the first full pass. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_cache(snug_dataset *d, const char *path,
                                                     snug_dataset **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_dataset_prefetch(snug_dataset *d, int64_t depth,
                                                        snug_dataset **out, snug_error *err);

/* --- iterators -------------------------------------------------------------------------------- */
SNUG_API SNUG_CHECKED snug_status snug_iterator_create(snug_dataset *d, snug_iterator **out,
                                                       snug_error *err);
/* Stops the threads and waits for them; gives every byte back. */
SNUG_API void snug_iterator_destroy(snug_iterator *it);
/* SNUG_E_END when there are no more. The element is the caller's (snug_element_drop). */
SNUG_API SNUG_CHECKED snug_status snug_iterator_next(snug_iterator *it, snug_element *out,
                                                     snug_error *err);
/* The next batch straight into the caller's buffers, converting as feeds do (views of the spec's
 * shapes with room for a batch's rows); *rows: how many came, 0 at the end. */
SNUG_API SNUG_CHECKED snug_status snug_iterator_fill(snug_iterator *it, const snug_view *views,
                                                     int n, int64_t *rows, snug_error *err);
/* Asked while waiting for other threads; true: SNUG_E_INTERRUPTED. */
SNUG_API void snug_iterator_set_interrupt(snug_iterator *it, int (*asked)(void *ctx), void *ctx);
/* The position (epoch, index, shuffle state) as bytes for a writer, and back into a new iterator
 * of an equal dataset: the stream goes on exactly. */
SNUG_API SNUG_CHECKED snug_status snug_iterator_save(snug_iterator *it, const snug_writer *w,
                                                     snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_iterator_restore(snug_iterator *it, const void *bytes,
                                                        size_t n, snug_error *err);

/* One row per stage, the source first. */
typedef struct {
    const char *stage;   /* "shuffle" */
    int64_t elements;    /* given so far */
    double busy_seconds; /* of its own work, all workers together */
    double wait_seconds; /* that who asks it waited for it */
    int workers;         /* now */
    int64_t depth;       /* of its buffer, now */
    size_t bytes;        /* held, and the most it held */
    size_t peak_bytes;
} snug_stage_row;
SNUG_API int snug_iterator_stages(const snug_iterator *it, snug_stage_row *rows, int max);

/* The most all pipelines of the engine may hold together; 0: no limit but the budget's. Depths,
 * workers and what a shuffle keeps in memory follow it. */
SNUG_API void snug_pipeline_limit(snug_engine *engine, size_t bytes);
/* The most that shuffles and caches keep in memory together; 0: a part of the limit above. SIZE_MAX:
 * of what the budget has left when they begin; half of that where there is a folder for the rest. */
SNUG_API void snug_pipeline_stores(snug_engine *engine, size_t bytes);
/* For who judges a step by its first batch: while pipelines rest (1) nothing is made ahead of who
 * asks. Then, what this one will take beside all that they hold (*held): to make another element,
 * as much as it took at most since it rested, and in caches, where it is known how much comes. */
SNUG_API void snug_pipeline_rest(snug_engine *engine, int rests);
SNUG_API size_t snug_pipeline_to_come(const snug_dataset *d, size_t *held);

/* Passes that take long before an element comes: "listing" files, filling the "shuffle buffer",
 * a first pass into a "cache". Those longer than after_seconds are reported, ten times a second at
 * most, by the thread that does the work, and once when they are over; NULL: nobody. Set before
 * pipelines run. */
typedef enum { SNUG_PASS_LISTING, SNUG_PASS_SHUFFLE, SNUG_PASS_CACHE } snug_pass_kind;
typedef struct snug_pass {
    snug_pass_kind kind;
    const char *what;  /* the kind in words */
    int64_t done, all; /* elements or files; all may be SNUG_UNKNOWN */
    double seconds;    /* so far */
    int over;          /* it has ended, well or not */
} snug_pass;
SNUG_API void snug_pipeline_progress(snug_engine *engine, double after_seconds,
                                     void (*each)(void *ctx, const snug_pass *pass), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
