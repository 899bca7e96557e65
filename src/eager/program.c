/* program.c: writing a program down. Each call is tried on stand-ins within a trace, once with each
 * of two sizes for extents that are not known: what comes out equal is known of the result.
 *
 * 1. A call that fails with both sizes although all extents are known is refused at once; one with
 *    unknown extents is taken, and nothing but its dtype is said of its result.
 * 2. Integers that follow from extents alone (tf.shape) are kept as values, so that sizes made of
 *    them are known too. */
#include "eager/program.h"

#include <snug/layer.h>

#include "base/size.h"
#include "tensor/type.h"

#include <string.h>

static const int64_t unknown_size[SN_PROGRAM_TRIES] = {1021, 1033};

/* --- making one ------------------------------------------------------------------------------- */
static snug_status add_slot(snug_program *p, int *slot, snug_error *err) {
    SNUG_TRY(sn_grow(p->engine, SN_MEM_INPUT, &p->slots, sizeof *p->slots, &p->slot_cap,
                     (size_t)p->n_slots + 1, err));
    *slot = p->n_slots++;
    p->slots[*slot] = (sn_program_slot){.last = -1, .constant = -1};
    return SNUG_OK;
}

/* The type with each size for what it does not know; a rank that is not known is 1, then 3. */
static void set_type(sn_program_slot *s, const snug_type *type, int is_text) {
    s->is_text = is_text;
    s->no_rank = type->rank < 0;
    for (int k = 0; k < SN_PROGRAM_TRIES; k++) {
        s->type[k] = *type;
        if (s->no_rank)
            s->type[k] = (snug_type){type->dtype, k ? 3 : 1, {-1, -1, 3}};
        for (int i = 0; i < s->type[k].rank; i++)
            if (s->type[k].dims[i] < 0)
                s->type[k].dims[i] = unknown_size[k];
    }
}

snug_status snug_program_create(snug_engine *engine, const snug_spec *inputs, uint64_t seed,
                                snug_program **out, snug_error *err) {
    SNUG_NEEDS(err, engine && inputs && out);
    sn_zone *zone;
    void *memory;
    SNUG_TRY(sn_zone_create_for(engine, SN_MEM_INPUT, 4096, &zone, err));
    snug_status status = sn_zone_alloc(zone, sizeof(snug_program), &memory, err);
    if (status != SNUG_OK) {
        sn_zone_destroy(zone);
        return status;
    }
    snug_program *p = memory;
    p->engine = engine;
    p->zone = zone;
    p->seed = seed;
    p->in = *inputs;
    atomic_init(&p->holds, 1);
    status = snug_recorder_create(engine, &p->tries, err);
    for (int i = 0; i < inputs->n && status == SNUG_OK; i++) {
        int slot;
        status = add_slot(p, &slot, err);
        if (status == SNUG_OK)
            set_type(&p->slots[slot], &inputs->type[i], inputs->is_text[i]);
    }
    if (status != SNUG_OK) {
        snug_program_drop(p);
        return status;
    }
    *out = p;
    return SNUG_OK;
}

void snug_program_hold(snug_program *p) {
    if (!p)
        return;
    atomic_fetch_add(&p->holds, 1);
}

/* The stand-ins are not needed any more. */
static void end_tries(snug_program *p) {
    for (int i = 0; i < p->n_slots; i++)
        for (int k = 0; k < SN_PROGRAM_TRIES; k++) {
            snug_tensor_drop(p->slots[i].known[k]);
            p->slots[i].known[k] = NULL;
        }
    if (p->tries)
        snug_recorder_destroy(p->tries);
    p->tries = NULL;
}

void snug_program_drop(snug_program *p) {
    if (!p || atomic_fetch_sub(&p->holds, 1) != 1)
        return;
    end_tries(p);
    for (int i = 0; i < p->n_steps; i++)
        snug_data_op_destroy(p->steps[i].op);
    for (int i = 0; i < p->n_constants; i++)
        snug_datum_drop(&p->constants[i]);
    snug_engine *e = p->engine;
    sn_free(e, SN_MEM_INPUT, p->slots, p->slot_cap * sizeof *p->slots);
    sn_free(e, SN_MEM_INPUT, p->steps, p->step_cap * sizeof *p->steps);
    sn_free(e, SN_MEM_INPUT, p->constants, p->constant_cap * sizeof *p->constants);
    sn_zone_destroy(p->zone);
}

snug_status snug_program_constant(snug_program *p, const snug_datum *value, int *slot,
                                  snug_error *err) {
    SNUG_NEEDS(err, p && value && slot);
    SNUG_TRY(sn_grow(p->engine, SN_MEM_INPUT, &p->constants, sizeof *p->constants, &p->constant_cap,
                     (size_t)p->n_constants + 1, err));
    SNUG_TRY(add_slot(p, slot, err));
    set_type(&p->slots[*slot], &value->type, value->is_text);
    p->slots[*slot].constant = p->n_constants;
    snug_datum_hold(value);
    p->constants[p->n_constants++] = *value;
    return SNUG_OK;
}

snug_status snug_program_blank(snug_program *p, const snug_type *type, int is_text, int *slot,
                               snug_error *err) {
    SNUG_NEEDS(err, p && type && slot);
    SNUG_TRY(add_slot(p, slot, err));
    set_type(&p->slots[*slot], type, is_text);
    return SNUG_OK;
}

/* --- what is known of slots ------------------------------------------------------------------- */
void snug_program_slot(const snug_program *p, int slot, snug_type *type, int *is_text) {
    if (!type || !is_text)
        return;
    *type = (snug_type){.rank = -1};
    *is_text = 0;
    if (!p || slot < 0 || slot >= p->n_slots)
        return;
    const sn_program_slot *s = &p->slots[slot];
    const snug_type *a = &s->type[0], *b = &s->type[1];
    *is_text = s->is_text;
    *type = *a;
    if (s->no_rank || a->rank != b->rank)
        type->rank = -1;
    for (int i = 0; i < type->rank; i++)
        type->dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
}

snug_status snug_program_refine(snug_program *p, int slot, const snug_type *shape,
                                snug_error *err) {
    SNUG_NEEDS(err, p && shape && slot >= 0 && slot < p->n_slots);
    snug_type type;
    int is_text;
    char is[192], wanted[192];
    if (shape->rank < 0)
        return SNUG_OK;
    snug_program_slot(p, slot, &type, &is_text);
    int fits = type.rank < 0 || type.rank == shape->rank;
    for (int i = 0; fits && i < type.rank; i++)
        fits = type.dims[i] < 0 || shape->dims[i] < 0 || type.dims[i] == shape->dims[i];
    if (!fits)
        return sn_fail(err, SNUG_E_SHAPE, "%s is not of the shape of %s",
                       snug_type_print(&type, is, sizeof is),
                       snug_type_print(shape, wanted, sizeof wanted));
    const snug_dtype dtype = type.dtype;
    for (int i = 0; i < shape->rank; i++)
        if (type.rank < 0 || shape->dims[i] >= 0)
            type.dims[i] = shape->dims[i];
    type.rank = shape->rank;
    type.dtype = dtype;
    set_type(&p->slots[slot], &type, is_text);
    return SNUG_OK;
}

/* --- arguments -------------------------------------------------------------------------------- */
int sn_program_items(const snug_argument *args, int n) {
    int all = n;
    for (int i = 0; i < n; i++)
        if (args[i].kind == SNUG_ARG_LIST)
            all += sn_program_items(args[i].list.items, args[i].list.n);
    return all;
}

static snug_status check_slot(const snug_program *p, int64_t slot, bool may_be_text,
                              snug_error *err) {
    if (slot < 0 || slot >= p->n_slots)
        return sn_fail(err, SNUG_E_INVALID, "slot %lld of a program of %d", (long long)slot,
                       p->n_slots);
    if (p->slots[slot].is_text && !may_be_text)
        return sn_fail(err, SNUG_E_SHAPE, "a text stands where numbers are needed");
    return SNUG_OK;
}

/* A copy that lives as long as the program. Tensors are slots here. */
static snug_status copy_args(snug_program *p, const snug_argument *from, int n,
                             const snug_argument **out, snug_error *err) {
    void *memory;
    SNUG_TRY(sn_zone_alloc(p->zone, (size_t)n * sizeof *from + 1, &memory, err));
    snug_argument *to = memory;
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        if (from[i].kind == SNUG_ARG_LIST)
            SNUG_TRY(copy_args(p, from[i].list.items, from[i].list.n, &to[i].list.items, err));
        else if (from[i].kind == SNUG_ARG_TEXT)
            SNUG_TRY(sn_zone_text(p->zone, from[i].text, &to[i].text, err));
        else if (from[i].kind == SNUG_ARG_SLOT)
            SNUG_TRY(check_slot(p, from[i].integer, false, err));
        else if (from[i].kind == SNUG_ARG_TENSOR)
            return sn_fail(err, SNUG_E_INVALID, "tensors of a program are slots and constants");
    }
    *out = to;
    return SNUG_OK;
}

static void mark_used(snug_program *p, const snug_argument *args, int n, int step) {
    for (int i = 0; i < n; i++)
        if (args[i].kind == SNUG_ARG_LIST)
            mark_used(p, args[i].list.items, args[i].list.n, step);
        else if (args[i].kind == SNUG_ARG_SLOT)
            p->slots[args[i].integer].last = step;
}

static snug_status add_step(snug_program *p, const sn_program_step *s, snug_error *err) {
    SNUG_TRY(sn_grow(p->engine, SN_MEM_INPUT, &p->steps, sizeof *p->steps, &p->step_cap,
                     (size_t)p->n_steps + 1, err));
    mark_used(p, s->args, s->n_args, p->n_steps);
    p->steps[p->n_steps++] = *s;
    return SNUG_OK;
}

/* --- trying a call ---------------------------------------------------------------------------- */
enum { MAX_OUT = 96, MAX_IN = 64 };

typedef struct {
    snug_program *p;
    int k;                /* which size */
    snug_argument *items; /* room for all arguments */
    int slot[MAX_IN];     /* slots that need a stand-in */
    snug_tensor *tensor[MAX_IN];
    int n_in;
    bool vague; /* some extent is not known */
} attempt;

static void gather_slots(attempt *t, const snug_argument *args, int n) {
    for (int i = 0; i < n; i++) {
        if (args[i].kind == SNUG_ARG_LIST)
            gather_slots(t, args[i].list.items, args[i].list.n);
        if (args[i].kind != SNUG_ARG_SLOT)
            continue;
        const sn_program_slot *s = &t->p->slots[args[i].integer];
        snug_type type;
        int is_text, seen = 0;
        snug_program_slot(t->p, (int)args[i].integer, &type, &is_text);
        t->vague = t->vague || type.rank < 0;
        for (int d = 0; d < type.rank; d++)
            t->vague = t->vague || type.dims[d] < 0;
        for (int j = 0; j < t->n_in; j++)
            seen = seen || t->slot[j] == (int)args[i].integer;
        if (!seen && !s->known[t->k] && t->n_in < MAX_IN)
            t->slot[t->n_in++] = (int)args[i].integer;
    }
}

static snug_tensor *tensor_of(const attempt *t, int slot) {
    for (int j = 0; j < t->n_in; j++)
        if (t->slot[j] == slot)
            return t->tensor[j];
    return t->p->slots[slot].known[t->k];
}

/* The arguments with tensors for slots. */
static snug_argument *with_tensors(attempt *t, const snug_argument *args, int n) {
    snug_argument *const to = t->items;
    t->items += n;
    for (int i = 0; i < n; i++) {
        to[i] = args[i];
        if (args[i].kind == SNUG_ARG_LIST)
            to[i].list.items = with_tensors(t, args[i].list.items, args[i].list.n);
        if (args[i].kind == SNUG_ARG_SLOT)
            to[i] = (snug_argument){.kind = SNUG_ARG_TENSOR,
                                    .tensor = tensor_of(t, (int)args[i].integer)};
    }
    return to;
}

typedef struct {
    snug_type type[MAX_OUT];
    snug_tensor *known[MAX_OUT];
    int n;
} outcome;

/* A layer that is made for this call alone. */
static snug_status try_layer(snug_program *p, const snug_program_layer *wanted, snug_tensor *in,
                             snug_tensor **out, snug_error *err) {
    snug_recorder *r = p->tries;
    snug_layer *layer;
    int n_out;
    SNUG_TRY(snug_layer_create(r, wanted->class_name, wanted->config_json, &layer, err));
    const snug_layer_arguments a = {.inputs = &in, .n_inputs = 1, .training = wanted->training};
    const snug_status status = snug_layer_call(layer, &a, out, 1, &n_out, NULL, err);
    p->has_weights = p->has_weights || snug_layer_n_variables(layer) > 0;
    snug_layer_destroy(layer);
    return status;
}

static snug_status try_call(attempt *t, const sn_program_step *s, outcome *o, snug_error *err) {
    snug_recorder *r = t->p->tries;
    snug_type types[MAX_IN];
    snug_tensor *out[MAX_OUT];
    snug_trace *trace;
    for (int i = 0; i < t->n_in; i++)
        types[i] = t->p->slots[t->slot[i]].type[t->k];
    SNUG_TRY(snug_trace_begin(r, types, t->n_in, t->tensor, &trace, err));
    const snug_argument *args = with_tensors(t, s->args, s->n_args);
    o->n = s->layer ? 1 : 0;
    const snug_status status =
        s->layer ? try_layer(t->p, s->layer, args[0].tensor, out, err)
                 : snug_function_call(r, s->function, args, s->n_args, out, MAX_OUT, &o->n, err);
    for (int i = 0; status == SNUG_OK && i < o->n; i++) {
        const bool keep = snug_tensor_is_ready(out[i]) && !snug_tensor_is_traced(out[i]);
        o->type[i] = *snug_tensor_type(out[i]);
        o->known[i] = keep ? out[i] : NULL;
        if (!keep)
            snug_tensor_drop(out[i]);
    }
    for (int i = 0; i < t->n_in; i++)
        snug_tensor_drop(t->tensor[i]);
    snug_trace_drop(trace);
    return status;
}

static bool says_shape(int function) {
    return snug_function_at(function)->traits & SNUG_FUNCTION_SHAPED;
}

/* Extents of two tensors against each other: one that is not known is as the other, unless that is
 * 1. false: a rank is not known, or they cannot be. */
static bool broadcast(const snug_type *a, const snug_type *b, snug_type *out) {
    if (a->rank < 0 || b->rank < 0)
        return false;
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < out->rank; i++) {
        const int ia = i - (out->rank - a->rank), ib = i - (out->rank - b->rank);
        const int64_t x = ia < 0 ? 1 : a->dims[ia], y = ib < 0 ? 1 : b->dims[ib];
        if (x > 1 && y > 1 && x != y)
            return false;
        out->dims[i] = x > 1 ? x : y > 1 ? y : x < 0 || y < 0 ? -1 : x;
    }
    return true;
}

/* Shapes of functions whose result follows from their tensors' even where extents are not known. */
static void guess_shape(const snug_program *p, const sn_program_step *s, snug_type *type) {
    const unsigned traits = snug_function_at(s->function)->traits;
    snug_type in[2];
    int is_text, n = 0;
    for (; n < 2 && n < s->n_args && s->args[n].kind == SNUG_ARG_SLOT; n++)
        snug_program_slot(p, (int)s->args[n].integer, &in[n], &is_text);
    if (n == 2 && traits & SNUG_FUNCTION_BROADCASTS && !broadcast(&in[0], &in[1], type))
        type->rank = -1;
    if (n > 0 && traits & SNUG_FUNCTION_RANK) {
        type->rank = in[0].rank;
        for (int i = 0; i < type->rank; i++)
            type->dims[i] = -1;
    }
}

/* What can be said where both attempts failed: a dtype that is given, or that of the first tensor;
 * the shape where it stands in the call, or follows from the tensors'. */
static void guess(const snug_program *p, const sn_program_step *s, sn_program_slot *out) {
    snug_type type = {.dtype = SNUG_F32, .rank = -1};
    for (int i = s->n_args - 1; i >= 0; i--) {
        int is_text;
        if (s->args[i].kind == SNUG_ARG_SLOT)
            snug_program_slot(p, (int)s->args[i].integer, &type, &is_text);
    }
    type.rank = -1;
    for (int i = 0; i < s->n_args; i++)
        if (s->args[i].kind == SNUG_ARG_DTYPE)
            type.dtype = s->args[i].dtype;
    if (s->function >= 0)
        guess_shape(p, s, &type);
    const snug_argument *shape = s->n_args > 1 ? &s->args[1] : NULL;
    if (shape && s->function >= 0 && says_shape(s->function) && shape->kind == SNUG_ARG_LIST &&
        shape->list.n <= SNUG_MAX_RANK) {
        type.rank = shape->list.n;
        for (int i = 0; i < type.rank; i++)
            type.dims[i] =
                shape->list.items[i].kind == SNUG_ARG_INTEGER ? shape->list.items[i].integer : -1;
    }
    set_type(out, &type, 0);
}

static void drop_known(outcome *o) {
    for (int i = 0; i < o->n; i++)
        snug_tensor_drop(o->known[i]);
}

/* New slots for what the attempts gave; ok[k]: attempt k went well. */
static snug_status take_outcomes(snug_program *p, sn_program_step *s, outcome *o, const bool *ok,
                                 snug_error *err) {
    const int any = ok[0] ? 0 : 1;
    const bool same = ok[0] && ok[1] && o[0].n == o[1].n;
    s->n_out = ok[0] || ok[1] ? o[any].n : 1;
    for (int i = 0; i < s->n_out; i++) {
        int slot;
        SNUG_TRY(add_slot(p, &slot, err));
        sn_program_slot *out = &p->slots[slot];
        if (i == 0)
            s->first_out = slot;
        if (!ok[0] && !ok[1]) {
            guess(p, s, out);
            continue;
        }
        for (int k = 0; k < SN_PROGRAM_TRIES; k++) {
            out->type[k] = o[same ? k : any].type[i];
            out->known[k] = same ? o[k].known[i] : NULL;
            if (same)
                o[k].known[i] = NULL;
        }
        out->no_rank = !same || o[0].type[i].rank != o[1].type[i].rank;
    }
    return SNUG_OK;
}

static snug_status try_twice(snug_program *p, sn_program_step *s, snug_argument *room,
                             snug_error *err) {
    outcome o[SN_PROGRAM_TRIES] = {{.n = 0}, {.n = 0}};
    bool ok[SN_PROGRAM_TRIES], vague = false;
    for (int k = 0; k < SN_PROGRAM_TRIES; k++) {
        attempt t = {.p = p, .k = k, .items = room};
        gather_slots(&t, s->args, s->n_args);
        const snug_status status = try_call(&t, s, &o[k], err);
        ok[k] = status == SNUG_OK;
        vague = t.vague || status == SNUG_E_UNSUPPORTED; /* it reads a value */
        if (!ok[k])
            o[k].n = 0;
        if (!ok[k] && !vague)
            return status;
    }
    const snug_status status = take_outcomes(p, s, o, ok, err);
    drop_known(&o[0]);
    drop_known(&o[1]);
    return status;
}

snug_status snug_program_call(snug_program *p, int function, const snug_argument *args, int n_args,
                              int *slots, int max, int *n_out, snug_error *err) {
    SNUG_NEEDS(err, p && (args || n_args == 0));
    if (!p->tries || function < 0 || function >= snug_function_count())
        return sn_fail(err, SNUG_E_INVALID, "the program is closed, or there is no such function");
    sn_program_step s = {.function = function, .n_args = n_args};
    s.n_items = sn_program_items(args, n_args);
    void *room;
    const size_t bytes = (size_t)s.n_items * sizeof *args;
    SNUG_TRY(copy_args(p, args, n_args, &s.args, err));
    SNUG_TRY(sn_alloc(p->engine, SN_MEM_INPUT, bytes, &room, err));
    snug_status status = try_twice(p, &s, room, err);
    sn_free(p->engine, SN_MEM_INPUT, room, bytes);
    SNUG_TRY(status);
    if (s.n_out > max)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%d results; at most %d are possible", s.n_out,
                       max);
    SNUG_TRY(add_step(p, &s, err));
    for (int i = 0; i < s.n_out; i++)
        slots[i] = s.first_out + i;
    *n_out = s.n_out;
    return SNUG_OK;
}

/* --- layers ----------------------------------------------------------------------------------- */
static snug_status copy_layer(snug_program *p, const snug_program_layer *from,
                              const snug_program_layer **out, snug_error *err) {
    void *memory;
    SNUG_TRY(sn_zone_alloc(p->zone, sizeof *from, &memory, err));
    snug_program_layer *to = memory;
    *to = *from;
    SNUG_TRY(sn_zone_text(p->zone, from->class_name, &to->class_name, err));
    SNUG_TRY(sn_zone_text(p->zone, from->config_json, &to->config_json, err));
    *out = to;
    return SNUG_OK;
}

snug_status snug_program_add_layer(snug_program *p, const snug_program_layer *layer, int in,
                                   int *slot, snug_error *err) {
    SNUG_NEEDS(err, p && layer && layer->class_name && layer->config_json && slot && in >= 0 &&
                        in < p->n_slots);
    const snug_argument arg = {.kind = SNUG_ARG_SLOT, .integer = in};
    snug_argument room;
    sn_program_step s = {.function = -1, .n_args = 1, .n_items = 1};
    if (!p->tries)
        return sn_fail(err, SNUG_E_INVALID, "the program is closed");
    SNUG_TRY(copy_args(p, &arg, 1, &s.args, err));
    SNUG_TRY(copy_layer(p, layer, &s.layer, err));
    SNUG_TRY(try_twice(p, &s, &room, err));
    if (p->has_weights)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a program has no place for the weights of %s",
                       layer->class_name);
    SNUG_TRY(add_step(p, &s, err));
    *slot = s.first_out;
    return SNUG_OK;
}

/* --- functions on texts and files ------------------------------------------------------------- */
static snug_status data_step(snug_program *p, sn_program_step *s, const int *in, int n_in,
                             snug_error *err) {
    snug_spec from = {.n = n_in}, to;
    void *memory;
    if (!p->tries || n_in > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_INVALID, "the program is closed, or more than %d parts",
                       SNUG_MAX_PARTS);
    SNUG_TRY(sn_zone_alloc(p->zone, (size_t)n_in * sizeof *s->args + 1, &memory, err));
    snug_argument *args = memory;
    for (int i = 0; i < n_in; i++) {
        SNUG_TRY(check_slot(p, in[i], true, err));
        args[i] = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = in[i]};
        snug_program_slot(p, in[i], &from.type[i], &from.is_text[i]);
    }
    SNUG_TRY(snug_data_op_spec(s->op, &from, &to, err));
    s->args = args;
    s->n_args = s->n_items = n_in;
    s->n_out = to.n;
    s->first_out = p->n_slots;
    for (int i = 0; i < to.n; i++) {
        int slot;
        SNUG_TRY(add_slot(p, &slot, err));
        set_type(&p->slots[slot], &to.type[i], to.is_text[i]);
    }
    return add_step(p, s, err);
}

snug_status snug_program_data(snug_program *p, snug_data_op *op, const int *in, int n_in,
                              int *slots, int max, int *n_out, snug_error *err) {
    SNUG_NEEDS(err, p && op && (in || n_in == 0) && n_in >= 0 && (slots || max == 0) && max >= 0 &&
                        n_out);
    sn_program_step s = {.function = -1, .op = op};
    snug_status status = data_step(p, &s, in, n_in, err);
    if (status != SNUG_OK) {
        snug_data_op_destroy(op);
        return status;
    }
    if (s.n_out > max)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%d results; at most %d are possible", s.n_out,
                       max);
    for (int i = 0; i < s.n_out; i++)
        slots[i] = s.first_out + i;
    *n_out = s.n_out;
    return SNUG_OK;
}

/* --- the result ------------------------------------------------------------------------------- */
snug_status snug_program_give(snug_program *p, const int *slots, int n, snug_error *err) {
    SNUG_NEEDS(err, p && (slots || n == 0));
    if (!p->tries || n > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_INVALID, "the program is closed, or more than %d results",
                       SNUG_MAX_PARTS);
    for (int i = 0; i < n; i++)
        SNUG_TRY(check_slot(p, slots[i], true, err));
    p->out.n = n;
    for (int i = 0; i < n; i++) {
        p->outputs[i] = slots[i];
        p->slots[slots[i]].last = p->n_steps;
        snug_program_slot(p, slots[i], &p->out.type[i], &p->out.is_text[i]);
    }
    end_tries(p);
    return SNUG_OK;
}

static snug_status spec(void *program, const snug_spec *in, snug_spec *out, snug_error *err) {
    const snug_program *p = program;
    if (in->n != p->in.n)
        return sn_fail(err, SNUG_E_SHAPE, "elements of %d parts for a function of %d", in->n,
                       p->in.n);
    *out = p->out;
    return SNUG_OK;
}

static void release(void *program) {
    snug_program_drop(program);
}

void snug_program_mapper(snug_program *p, snug_mapper *out) {
    if (!(p && out))
        return;
    snug_program_hold(p);
    *out = (snug_mapper){.ctx = p,
                         .release = release,
                         .spec = spec,
                         .open = sn_program_open,
                         .close = sn_program_close,
                         .call = sn_program_run};
}
