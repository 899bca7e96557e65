/* record.h: recordings, for rooms that append to them: functions, layers, optimizers. A recording
 * is an open graph with, per value, the handle that wants it and the tapes that see it.
 *
 *     sn_record_call c;
 *     SNUG_TRY(sn_record_begin(r, &c, err));
 *     sn_value x = sn_record_use(&c, tensor);      // its value in the graph
 *     sn_value w = sn_record_read(&c, variable);   // its newest version
 *     sn_value y = sn_build_matmul(&c.b, x, w, SN_NO_VALUE);   // any builder calls on c.b
 *     snug_tensor *out = sn_record_give(&c, y);    // a new handle, held once
 *     return sn_record_end(&c, err);               // on error all of it is undone, handles dropped
 *
 * Between begin and end no other call of the recorder is made. Errors stick in c.b. */
#ifndef SN_RECORD_RECORD_H
#define SN_RECORD_RECORD_H

#include "graph/build.h"

#include <snug/record.h>

typedef struct {
    snug_recorder *r;
    sn_builder b;
    /* inside */
    sn_graph_mark mark; /* where to go back to */
    size_t n_asked;
    uint64_t n_draws;
} sn_record_call;

/* The recorder of a thread of a pipeline: kernels run on that thread alone, and values take buffers
 * of the engine's pool, which elements are made of. */
SNUG_CHECKED snug_status sn_recorder_create_worker(snug_engine *engine, snug_recorder **out,
                                                   snug_error *err);
/* The bytes of a value of such a recorder, which has run and which nobody else uses: they are the
 * caller's then, to be given to sn_pool_give(*data, *taken). false: there are none to take. The
 * handle may only be dropped. */
bool sn_tensor_take_bytes(snug_tensor *t, void **data, size_t *taken);

SNUG_CHECKED snug_status sn_record_begin(snug_recorder *r, sn_record_call *c, snug_error *err);
sn_value sn_record_use(sn_record_call *c, snug_tensor *t);
/* The newest version; active tapes watch it where it is trainable. */
sn_value sn_record_read(sn_record_call *c, snug_variable *v);
/* The newest version for an update: input k of a STATE row. */
sn_value sn_record_version(sn_record_call *c, snug_variable *v);
/* NULL after an error, and gone after an end that fails. A value may be given several times; each
 * handle is its own. */
snug_tensor *sn_record_give(sn_record_call *c, sn_value v);
SNUG_CHECKED snug_status sn_record_end(sn_record_call *c, snug_error *err);
/* A parameter slot for this occurrence of a number; never shared. As attributes hold it. */
int64_t sn_record_number(sn_record_call *c, double value);
int64_t sn_record_key(sn_record_call *c, int64_t value);
/* A key that differs from draw to draw; a trace draws again at each call. */
int64_t sn_record_draw(sn_record_call *c);
/* Numbers that the host knows, such as a learning rate by step: asked for now, or, in a trace, at
 * each call of it. A host is told (which -1) where its next step begins, as often as a call of the
 * trace has steps of it, and asked in between. */
typedef struct {
    void *ctx;
    double (*ask)(void *ctx, int which);
    void (*hold)(void *ctx); /* the trace keeps the host; may be NULL, as drop */
    void (*drop)(void *ctx);
} sn_host;
int64_t sn_record_ask(sn_record_call *c, const sn_host *host, int which);
/* A key that follows from a seed other than 0 and from how often the host was asked. In a trace the
 * host is asked how often that was (which -1), for a key that stands in for those of the calls; it
 * is told where a call failed and what it asked for last does not count (which -2). */
int64_t sn_record_own_key(sn_record_call *c, const sn_host *host, int64_t seed);
void sn_record_tell(sn_record_call *c, const sn_host *host);
/* The next key of an operation with a seed of its own: of a sequence that follows from operation,
 * seed and the recorder's seed. In a trace each occurrence counts for itself, by its place; a call
 * of the trace draws at it. */
int64_t sn_record_seeded(sn_record_call *c, const char *op, int64_t seed);
int64_t sn_record_seeded_at(sn_record_call *c, uint64_t sequence, uint64_t place);
/* The next operation with a seed begins its sequence, whoever drew of it before. */
void sn_record_new_place(snug_recorder *r);
/* For the end of a call that failed: all that it drew goes back. */
void sn_record_give_back(sn_record_call *c);

/* A variable that starts from a recipe, without bytes until it is read. */
SNUG_CHECKED snug_status sn_record_variable(snug_recorder *r, const snug_type *type,
                                            const sn_recipe *init,
                                            const snug_record_variable_options *options,
                                            snug_variable **out, snug_error *err);

#endif
