/* program_replay.c: a program on one element, by one worker. Steps run in order: those of the
 * function table are recorded by the worker's own recorder, which runs when bytes are needed: by a
 * function on texts, by an argument that decides a shape, by the result.
 *
 * 1. A slot holds bytes, a tensor of the recorder, or both: the second is made from the first when
 *    it is needed. It is let go of after the step that uses it last.
 * 2. Nothing of an element is left in a worker when it is done with it, but constants.
 * 3. Random draws start anew at each element: element k draws the same whichever worker has it. */
#include "data/stage.h"
#include "base/rng.h"
#include "eager/eager_call.h"
#include "eager/layer.h"
#include "eager/program.h"
#include "memory/pool.h"

#include <string.h>

typedef struct {
    snug_datum bytes;
    snug_tensor *tensor;
    bool has_bytes, lent;
} value;

typedef struct {
    const snug_program *p;
    snug_recorder *r; /* made by the first step that needs it */
    value *slots;
    snug_layer **layers;  /* of steps that are one; made with the recorder */
    snug_argument *items; /* room for the arguments of any step */
    size_t n_items;
    int64_t index;
} worker;

/* --- workers ---------------------------------------------------------------------------------- */
static size_t most_items(const snug_program *p) {
    size_t most = 1;
    for (int i = 0; i < p->n_steps; i++)
        if ((size_t)p->steps[i].n_items > most)
            most = (size_t)p->steps[i].n_items;
    return most;
}

static size_t layers_bytes(const snug_program *p) {
    return ((size_t)p->n_steps + 1) * sizeof(snug_layer *);
}

snug_status sn_program_open(void *program, snug_engine *e, void **out, snug_error *err) {
    const snug_program *p = program;
    void *memory;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_INPUT, sizeof(worker), &memory, err));
    worker *w = memory;
    w->p = p;
    w->n_items = most_items(p);
    snug_status status =
        sn_alloc_zero(e, SN_MEM_INPUT, ((size_t)p->n_slots + 1) * sizeof(value), &memory, err);
    if (status == SNUG_OK) {
        w->slots = memory;
        status = sn_alloc_zero(e, SN_MEM_INPUT, layers_bytes(p), &memory, err);
    }
    if (status == SNUG_OK) {
        w->layers = memory;
        status = sn_alloc_zero(e, SN_MEM_INPUT, w->n_items * sizeof *w->items, &memory, err);
    }
    if (status != SNUG_OK) {
        sn_program_close(program, w);
        return status;
    }
    w->items = memory;
    *out = w;
    return SNUG_OK;
}

static void let_go(value *v) {
    snug_tensor_drop(v->tensor);
    if (v->has_bytes && !v->lent)
        snug_datum_drop(&v->bytes);
    *v = (value){.tensor = NULL};
}

void sn_program_close(void *program, void *opened) {
    worker *w = opened;
    snug_engine *e = ((snug_program *)program)->engine;
    if (!w)
        return;
    for (int i = 0; w->slots && i < w->p->n_slots; i++)
        let_go(&w->slots[i]);
    for (int i = 0; w->layers && i < w->p->n_steps; i++)
        snug_layer_destroy(w->layers[i]);
    if (w->r)
        snug_recorder_destroy(w->r);
    sn_free(e, SN_MEM_INPUT, w->slots, ((size_t)w->p->n_slots + 1) * sizeof(value));
    sn_free(e, SN_MEM_INPUT, w->layers, layers_bytes(w->p));
    sn_free(e, SN_MEM_INPUT, w->items, w->n_items * sizeof *w->items);
    sn_free(e, SN_MEM_INPUT, w, sizeof *w);
}

/* --- slots ------------------------------------------------------------------------------------ */
/* The keeper of bytes that a tensor borrows. */
static void release_bytes(void *keep) {
    snug_datum d = {.keep = keep};
    snug_datum_drop(&d);
}

static snug_status need_tensor(worker *w, int slot, snug_error *err) {
    value *v = &w->slots[slot];
    if (v->tensor)
        return SNUG_OK;
    if (v->bytes.is_text)
        return sn_fail(err, SNUG_E_SHAPE, "a text stands where numbers are needed");
    snug_datum_hold(&v->bytes);
    const snug_status status =
        snug_tensor_borrow(w->r, &v->bytes.type, v->bytes.data,
                           v->bytes.keep ? release_bytes : NULL, v->bytes.keep, &v->tensor, err);
    if (status != SNUG_OK && v->bytes.keep)
        release_bytes(v->bytes.keep);
    return status;
}

/* A buffer of the pool that was a tensor's. */
typedef struct {
    snug_engine *engine;
    void *data;
    size_t taken;
} buffer;

static void release_buffer(void *ctx) {
    const buffer b = *(buffer *)ctx;
    sn_pool_give(b.engine, b.data, b.taken);
    sn_free(b.engine, SN_MEM_INPUT, ctx, sizeof b);
}

/* The tensor's own bytes as those of the slot, where nobody else uses them. */
static snug_status move_bytes(worker *w, value *v, snug_error *err) {
    snug_view view;
    void *memory;
    const snug_type type = *snug_tensor_type(v->tensor);
    snug_engine *e = w->p->engine;
    SNUG_TRY(snug_tensor_pin(v->tensor, &view, err)); /* it runs now */
    snug_tensor_unpin(v->tensor);
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, sizeof(buffer), &memory, err));
    buffer *b = memory;
    *b = (buffer){.engine = e};
    if (!sn_tensor_take_bytes(v->tensor, &b->data, &b->taken)) {
        sn_free(e, SN_MEM_INPUT, b, sizeof *b);
        return SNUG_OK;
    }
    snug_tensor_drop(v->tensor);
    v->tensor = NULL;
    view.type = type;
    view.data = b->data;
    const snug_status status = snug_datum_borrow(e, &view, release_buffer, b, &v->bytes, err);
    v->has_bytes = status == SNUG_OK;
    if (status == SNUG_OK)
        sn_datum_is_own(&v->bytes);
    else
        release_buffer(b);
    return status;
}

/* From this size on moving costs less than copying. */
#define MOVED_BYTES 4096

static snug_status need_bytes(worker *w, int slot, snug_error *err) {
    value *v = &w->slots[slot];
    size_t bytes;
    if (v->has_bytes)
        return SNUG_OK;
    SNUG_TRY(snug_type_bytes(snug_tensor_type(v->tensor), &bytes, err));
    if (bytes >= MOVED_BYTES)
        SNUG_TRY(move_bytes(w, v, err));
    if (v->has_bytes)
        return SNUG_OK;
    SNUG_TRY(snug_datum_create(w->p->engine, snug_tensor_type(v->tensor), &v->bytes, err));
    v->has_bytes = true;
    v->lent = false;
    return snug_tensor_read(v->tensor, v->bytes.data, v->bytes.bytes, err);
}

/* What is not used any more after step i. */
static void forget(worker *w, int step) {
    const sn_program_slot *s = w->p->slots;
    for (int i = 0; i < w->p->n_slots; i++)
        if (s[i].last <= step && s[i].constant < 0)
            let_go(&w->slots[i]);
}

/* --- steps ------------------------------------------------------------------------------------ */
static snug_status with_tensors(worker *w, const snug_argument *args, int n, snug_argument **room,
                                snug_error *err) {
    snug_argument *const to = *room;
    *room += n;
    for (int i = 0; i < n; i++) {
        to[i] = args[i];
        if (args[i].kind == SNUG_ARG_LIST) {
            to[i].list.items = *room;
            SNUG_TRY(with_tensors(w, args[i].list.items, args[i].list.n, room, err));
        } else if (args[i].kind == SNUG_ARG_SLOT) {
            SNUG_TRY(need_tensor(w, (int)args[i].integer, err));
            to[i] = (snug_argument){.kind = SNUG_ARG_TENSOR,
                                    .tensor = w->slots[args[i].integer].tensor};
        }
    }
    return SNUG_OK;
}

/* Draws of an element follow from its place alone, whatever the worker did before. */
static snug_status need_recorder(worker *w, snug_error *err) {
    if (w->r)
        return SNUG_OK;
    SNUG_TRY(sn_recorder_create_worker(w->p->engine, &w->r, err));
    snug_recorder_seed(w->r, sn_rng_key(w->p->seed, (uint64_t)w->index));
    return SNUG_OK;
}

/* Making the layer draws once: from then on all workers have drawn as often. */
static snug_status make_layer(worker *w, int step, snug_error *err) {
    const snug_program_layer *l = w->p->steps[step].layer;
    return w->layers[step]
               ? SNUG_OK
               : snug_layer_create(w->r, l->class_name, l->config_json, &w->layers[step], err);
}

static snug_status call_layer(worker *w, int step, snug_error *err) {
    const sn_program_step *s = &w->p->steps[step];
    const int slot = (int)s->args[0].integer;
    const uint64_t element = sn_rng_key(w->p->seed, (uint64_t)w->index);
    int n_out;
    SNUG_TRY(need_recorder(w, err));
    SNUG_TRY(make_layer(w, step, err));
    SNUG_TRY(need_tensor(w, slot, err));
    snug_recorder_seed(w->r, sn_rng_key(element, (uint64_t)step));
    sn_layer_set_element(w->layers[step], sn_rng_key(element, (uint64_t)s->layer->times));
    const snug_layer_arguments a = {
        .inputs = &w->slots[slot].tensor, .n_inputs = 1, .training = s->layer->training};
    return snug_layer_call(w->layers[step], &a, &w->slots[s->first_out].tensor, 1, &n_out, NULL,
                           err);
}

static snug_status call_function(worker *w, const sn_program_step *s, snug_error *err) {
    enum { MAX_OUT = 96 };
    snug_tensor *out[MAX_OUT];
    snug_argument *room = w->items;
    int n_out;
    SNUG_TRY(need_recorder(w, err));
    sn_record_new_place(w->r);
    SNUG_TRY(with_tensors(w, s->args, s->n_args, &room, err));
    SNUG_TRY(sn_function_record(w->r, s->function, w->items, s->n_args, out, MAX_OUT, &n_out, err));
    for (int i = 0; i < n_out; i++)
        if (i < s->n_out)
            w->slots[s->first_out + i].tensor = out[i];
        else
            snug_tensor_drop(out[i]);
    if (n_out >= s->n_out)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "%.*s gave %d results where %d were expected",
                   (int)strcspn(snug_function_at(s->function)->names, " "),
                   snug_function_at(s->function)->names, n_out, s->n_out);
}

static snug_status call_data(worker *w, int step, snug_error *err) {
    const sn_program_step *s = &w->p->steps[step];
    snug_datum in[SNUG_MAX_PARTS], out[SNUG_MAX_PARTS];
    int n_out = 0;
    for (int i = 0; i < s->n_args; i++) {
        const int slot = (int)s->args[i].integer;
        SNUG_TRY(need_bytes(w, slot, err));
        in[i] = w->slots[slot].bytes;
    }
    const uint64_t key =
        sn_rng_key(sn_rng_key(w->p->seed, (uint64_t)w->index), (uint64_t)step + UINT32_MAX);
    SNUG_TRY(snug_data_op_call(s->op, key, in, s->n_args, out, SNUG_MAX_PARTS, &n_out, err));
    for (int i = 0; i < n_out; i++)
        if (i < s->n_out)
            w->slots[s->first_out + i] = (value){.bytes = out[i], .has_bytes = true};
        else
            snug_datum_drop(&out[i]);
    return SNUG_OK;
}

static snug_status run_steps(worker *w, snug_error *err) {
    for (int i = 0; i < w->p->n_steps; i++) {
        const sn_program_step *s = &w->p->steps[i];
        SNUG_TRY(s->op      ? call_data(w, i, err)
                 : s->layer ? call_layer(w, i, err)
                            : call_function(w, s, err));
        forget(w, i);
    }
    return SNUG_OK;
}

/* --- an element ------------------------------------------------------------------------------- */
static void put_inputs(worker *w, const snug_element *in) {
    const snug_program *p = w->p;
    for (int i = 0; i < p->in.n; i++)
        w->slots[i] = (value){.bytes = in->part[i], .has_bytes = true, .lent = true};
    for (int i = p->in.n; i < p->n_slots; i++)
        if (p->slots[i].constant >= 0 && !w->slots[i].has_bytes)
            w->slots[i] = (value){
                .bytes = p->constants[p->slots[i].constant], .has_bytes = true, .lent = true};
}

/* Bytes that were lent for the call alone are copied. */
static snug_status give_part(snug_engine *e, const snug_datum *part, snug_datum *out,
                             snug_error *err) {
    if (part->keep) {
        snug_datum_hold(part);
        *out = *part;
        return SNUG_OK;
    }
    if (part->is_text)
        return snug_datum_texts(e, &part->type, part->data, out, err);
    SNUG_TRY(snug_datum_create(e, &part->type, out, err));
    if (out->bytes > 0)
        memcpy(out->data, part->data, out->bytes);
    return SNUG_OK;
}

/* Outputs one by one: the first reading runs all that is recorded. */
static snug_status take_outputs(worker *w, snug_element *out, snug_error *err) {
    const snug_program *p = w->p;
    for (int i = 0; i < p->out.n; i++)
        SNUG_TRY(need_bytes(w, p->outputs[i], err));
    snug_status status = SNUG_OK;
    out->n = 0;
    out->index = w->index;
    for (int i = 0; i < p->out.n && status == SNUG_OK; i++) {
        status = give_part(p->engine, &w->slots[p->outputs[i]].bytes, &out->part[i], err);
        out->n += status == SNUG_OK;
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

snug_status sn_program_run(void *program, void *opened, const snug_element *in, snug_element *out,
                           snug_error *err) {
    const snug_program *p = program;
    worker *w = opened;
    if (in->n != p->in.n)
        return sn_fail(err, SNUG_E_SHAPE, "an element of %d parts for a function of %d", in->n,
                       p->in.n);
    w->index = in->index;
    if (w->r)
        snug_recorder_seed(w->r, sn_rng_key(p->seed, (uint64_t)w->index));
    put_inputs(w, in);
    snug_status status = run_steps(w, err);
    if (status == SNUG_OK)
        status = take_outputs(w, out, err);
    forget(w, p->n_steps);
    return status;
}
