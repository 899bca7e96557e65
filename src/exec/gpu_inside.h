/* gpu_inside.h: what the files of the GPU's runner share (gpu_bind.c, gpu_run.c); nobody else
 * includes it. */
#ifndef SN_EXEC_GPU_INSIDE_H
#define SN_EXEC_GPU_INSIDE_H

#include "exec/gpu.h"
#include "exec/inside.h"

/* Bytes of the buffers that a run on a GPU needs, each a multiple of 256. */
typedef struct {
    size_t params;  /* on the device, and pinned to fill them */
    size_t outputs; /* pinned: what the caller reads */
    size_t stage;   /* pinned: feeds on their way */
    size_t scratch; /* pinned: operands of rows that run on the host */
} sn_gpu_sizes;

/* A run that was captured, or may be when it comes again. Addresses are part of it: of a graph with
 * inputs and outputs outside, where those were. */
typedef struct {
    void **sources; /* those that steps touch */
    uint32_t n_runs;
    sn_gpu_graph *graph; /* NULL: not captured */
    bool guarded;        /* from the first state write on, it runs where nothing was refused */
} sn_gpu_captured_run;

/* Results that a program still holds lie elsewhere than the next ones: addresses take turns. */
#define SN_GPU_CAPTURES 4

/* What a session has for a GPU: of its steps there. */
typedef struct {
    sn_gpu_sizes sizes;
    bool whole;         /* all feeds of a run are staged before it begins */
    size_t piece_bytes; /* else: of one slot of the ring */
    uint32_t next_slot;
    uint32_t queues; /* bit set of queues with steps */
    bool has_host_rows;
    bool checks, writes;       /* a row may refuse values; writes state */
    bool passes;               /* its captures are of runs that may pass the update over */
    unsigned char **output_at; /* on the device, one per output */
    bool never;                /* it could not be captured */
    sn_gpu_captured_run captures[SN_GPU_CAPTURES];
    sn_gpu_captured_run *now; /* of the run under way */
    uint32_t next_capture;
    size_t staged_bytes; /* of feeds that are staged whole */
} sn_gpu_part;

/* A block of device or pinned memory. */
typedef struct {
    void *data;
    size_t bytes;
} sn_gpu_piece;

/* What a runner has: arenas, files, and buffers for all sessions. */
typedef struct {
    sn_gpu_device *card;
    sn_gpu_piece arenas[SN_MAX_MEMORIES];
    sn_gpu_piece files[SN_MAX_MEMORIES]; /* pinned */
    sn_gpu_sizes sizes;
    void *params;        /* on the device */
    sn_gpu_piece pinned; /* params, outputs, stage, scratch */
    sn_gpu_piece feeds;  /* on the device, two halves: feeds of this run, and of the next */
    const struct sn_session *ahead; /* whose next feeds are there; NULL: nobody's */
    const void *ahead_ctx;          /* and who bound them */
} sn_gpu_side;

static inline sn_gpu_side *sn_gpu_side_of(const sn_runner *r) {
    return r->own;
}

static inline sn_gpu_device *sn_gpu_card(const sn_runner *r) {
    return sn_gpu_side_of(r)->card;
}

/* NULL: the session was not measured. */
static inline sn_gpu_part *sn_gpu_part_of(const sn_runner *r, const sn_session *s) {
    return s->parts[r->index];
}

/* Whether the steps of a run are all on this device: only then is it captured, and do the next
 * run's feeds come ahead. */
static inline bool sn_gpu_is_alone(const sn_runner *r, const sn_session *s) {
    return s->runners == 1u << r->index;
}

/* --- gpu_bind.c: what the sessions of a runner need ------------------------------------------- */
extern const sn_runner_class sn_gpu_runner;
int64_t sn_gpu_iterations(const sn_session *s, const sn_bound *bound);
void sn_gpu_drop_graphs(const sn_runner *r, sn_session *s);
/* `now` becomes that of the addresses of this run. */
void sn_gpu_choose_capture(const sn_runner *r, sn_session *s);
/* Where a part of the pinned block begins. */
unsigned char *sn_gpu_pinned_outputs(const sn_runner *r);
unsigned char *sn_gpu_pinned_stage(const sn_runner *r);
unsigned char *sn_gpu_pinned_scratch(const sn_runner *r);
/* What so many bytes take of them. */
size_t sn_gpu_units(size_t bytes);
bool sn_gpu_has_capture_room(sn_gpu_device *d, const sn_plan *plan);
/* What a captured run may take there, beside what every one takes. */
size_t sn_gpu_capture_room(sn_gpu_device *d, const sn_plan *plan);
void sn_gpu_note_capture(sn_gpu_device *d); /* one was made, after that */

/* --- gpu_run.c: steps enqueued ---------------------------------------------------------------- */
/* Slots of feeds that are not staged whole; moments of these numbers are theirs. */
#define SN_GPU_RING 4
/* As runner_class.h has them. */
SNUG_CHECKED snug_status sn_gpu_begin(sn_runner *r, sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_drive(sn_runner *r, sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_start(sn_runner *r, sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_wait(sn_runner *r, sn_session *s, const sn_step *step,
                                     snug_error *err);
SNUG_CHECKED snug_status sn_gpu_reach(sn_runner *r, sn_session *s, sn_queue queue, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_join(sn_runner *r, sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_before_writes(sn_runner *r, sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_call(sn_runner *r, sn_session *s, const sn_bound *bound,
                                     const sn_call *call, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_feed(sn_runner *r, sn_session *s, const sn_bound *bound,
                                     int64_t iteration, int64_t first_row, const snug_view *to,
                                     snug_error *err);
SNUG_CHECKED snug_status sn_gpu_copy_step(sn_runner *r, sn_session *s, const sn_bound *bound,
                                          int64_t iteration, const sn_bound_shape *shape,
                                          snug_error *err);
SNUG_CHECKED snug_status sn_gpu_fetch(sn_runner *r, sn_queue queue, void *to, const void *from,
                                      size_t bytes, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_store(sn_runner *r, sn_queue queue, void *to, const void *from,
                                      size_t bytes, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_end(sn_runner *r, sn_session *s, snug_error *err);
void sn_gpu_give_up(sn_runner *r, sn_session *s);
bool sn_gpu_takes_next(const sn_runner *r, const sn_session *s);
bool sn_gpu_has_next(const sn_runner *r, const sn_session *s);

/* --- gpu_once.c: a call without a plan -------------------------------------------------------- */
SNUG_CHECKED snug_status sn_gpu_call_once(snug_engine *e, const sn_device *d, const sn_opdesc *desc,
                                          const sn_call *call, snug_error *err);

#endif
