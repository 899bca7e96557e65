/* record_tape.c: tapes. A tape is a bit: values that depend on what it watches, through nodes
 * recorded while it was active, carry it (record_sets.c: how, of any number of tapes). A gradient
 * is appended to the recording, graph to graph, along nodes that carry the bit. What becomes of
 * them in a run: record_keep.c. */
#include "record/recording.h"

#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */
static uint32_t *active_of(snug_recorder *r, sn_seat *s) {
    return s == r->seat ? &r->active_tapes : &s->active_tapes;
}

static void leave_seat(snug_tape *t) {
    sn_seat *in = t->active_in;
    if (!in)
        return;
    *t->active_link = t->next_active;
    if (t->next_active)
        t->next_active->active_link = t->active_link;
    if (!in->active_more)
        *active_of(t->r, in) &= ~SN_MANY;
    t->active_in = NULL;
}

static void activate(snug_tape *t) {
    snug_recorder *r = t->r;
    t->end_in = 0;
    if (t->bit < SN_FEW_TAPES) {
        r->active_tapes |= 1u << t->bit;
        return;
    }
    leave_seat(t); /* another one */
    sn_seat *s = t->active_in = r->seat;
    r->active_tapes |= SN_MANY;
    t->next_active = s->active_more;
    t->active_link = &s->active_more;
    if (s->active_more)
        s->active_more->active_link = &t->next_active;
    s->active_more = t;
}

static void enlist(snug_tape *t) {
    snug_recorder *r = t->r;
    t->next = r->tapes;
    t->link = &r->tapes;
    if (t->next)
        t->next->link = &t->next;
    r->tapes = t;
    if (t->bit < SN_FEW_TAPES)
        r->tape[t->bit] = t;
    r->live_tensors++;
    t->born = ++r->serial;
    sn_tape_set_open(t, true);
    activate(t);
    if (t->watches && t->bit < SN_FEW_TAPES)
        r->watching_tapes |= 1u << t->bit;
}

/* That no live tape has and no mark; SN_FEW_TAPES: there is none. */
static uint32_t free_bit(snug_recorder *r) {
    uint32_t taken = r->gone_tapes;
    for (uint32_t bit = 0; bit < SN_FEW_TAPES; bit++)
        taken |= r->tape[bit] ? 1u << bit : 0;
    if (taken == SN_MANY - 1 && r->gone_tapes) {
        taken &= ~r->gone_tapes;
        sn_sets_forget_gone(r);
        taken |= r->gone_tapes; /* a plan runs */
    }
    return (uint32_t)__builtin_ctz(~taken);
}

snug_status snug_tape_create(snug_recorder *r, const snug_tape_options *o, snug_tape **out,
                             snug_error *err) {
    SNUG_NEEDS(err, r && out);
    uint32_t bit = free_bit(r);
    void *block;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_TAPES, sizeof **out, &block, err));
    snug_tape *t = block;
    const snug_status status = bit == SN_FEW_TAPES ? sn_sets_take_number(r, &bit, err) : SNUG_OK;
    if (status != SNUG_OK) {
        sn_free(r->engine, SN_MEM_TAPES, t, sizeof *t);
        return status;
    }
    *t = (snug_tape){.r = r,
                     .seat = r->seat,
                     .bit = bit,
                     .persistent = o && o->persistent,
                     .watches = !(o && o->not_watching),
                     .places = {.engine = r->engine, .category = SN_MEM_TAPES}};
    enlist(t);
    t->born_in = r->now->serial;
    t->first_node = (uint32_t)r->now->n_nodes;
    t->first_value = (uint32_t)r->now->n_values;
    *out = t;
    return SNUG_OK;
}

static void forget_marks(sn_recording *rec, uint32_t bit) {
    for (size_t v = 0; bit < SN_FEW_TAPES && v < rec->n_values; v++)
        if (!(rec->tapes[v] & SN_MANY))
            rec->tapes[v] &= ~(1u << bit);
}

/* Without memory for it the bytes stay until the next run. */
static void prune(const snug_recorder *r) {
    snug_error none;
    for (const sn_seat *s = r->running ? NULL : r->seats; s; s = s->next) {
        sn_recording *rec = sn_seat_main(r, s);
        const snug_status status = rec->n_brought > 0 ? sn_tape_prune(rec, &none) : SNUG_OK;
        (void)status;
    }
}

static void forget_watched(snug_tape *t) {
    for (size_t i = 0; i < t->n_watched; i++)
        sn_variable_unuse(t->watched[i]);
    t->n_watched = 0;
    sn_numbers_forget(&t->places);
    t->born = ++t->r->serial;
}

static void forget(snug_tape *t) {
    const snug_recorder *r = t->r;
    sn_sets_forget(t->r, t->bit);
    for (const sn_seat *s = r->seats; s; s = s->next)
        for (sn_recording *rec = sn_seat_now(r, s); rec; rec = rec->outer)
            forget_marks(rec, t->bit);
    prune(r);
    forget_watched(t);
}

void snug_tape_drop(snug_tape *t) {
    if (!t)
        return;
    snug_recorder *r = t->r;
    snug_tape_stop(t);
    sn_tape_set_open(t, false);
    if (!t->used)
        prune(r);
    forget_watched(t);
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    if (t->bit < SN_FEW_TAPES) {
        r->watching_tapes &= ~(1u << t->bit);
        r->explicit_tapes &= ~(1u << t->bit);
        r->tape[t->bit] = NULL;
        r->gone_tapes |= 1u << t->bit;
    } else {
        sn_sets_give_number(r, t->bit);
    }
    sn_free(r->engine, SN_MEM_TAPES, t->watched, t->cap_watched * sizeof *t->watched);
    sn_numbers_clear(&t->places);
    sn_free(r->engine, SN_MEM_TAPES, t, sizeof *t);
    r->live_tensors--;
    sn_recorder_let_go(r);
}

static bool is_active(const snug_tape *t) {
    bool active = t->active_in || (t->bit < SN_FEW_TAPES && (t->r->active_tapes >> t->bit & 1));
    for (const sn_seat *s = t->r->seats; s && t->bit < SN_FEW_TAPES; s = s->next)
        active = active || (s != t->r->seat && (s->active_tapes >> t->bit & 1));
    return active;
}

/* Of the recording that it was active in, if it is the one that is open. */
static void note_end(snug_tape *t) {
    const sn_recording *rec = t->r->now;
    if (!rec || !is_active(t))
        return;
    t->end_in = rec->serial;
    t->end_node = (uint32_t)rec->n_nodes;
    t->end_value = (uint32_t)rec->n_values;
}

void snug_tape_stop(snug_tape *t) {
    if (!t)
        return;
    note_end(t);
    leave_seat(t);
    t->r->active_tapes &= t->bit < SN_FEW_TAPES ? ~(1u << t->bit) : UINT32_MAX;
    for (sn_seat *s = t->bit < SN_FEW_TAPES ? t->r->seats : NULL; s; s = s->next)
        s->active_tapes &= ~(1u << t->bit);
}

snug_status snug_tape_resume(snug_tape *t, snug_error *err) {
    SNUG_NEEDS(err, t);
    if (t->used)
        return sn_fail(err, SNUG_E_INVALID, "the tape is used up; make another one");
    activate(t);
    return SNUG_OK;
}

void snug_tape_reset(snug_tape *t) {
    if (!t)
        return;
    forget(t);
    t->used = false;
    sn_tape_set_open(t, true);
}

/* --- watching --------------------------------------------------------------------------------- */
static bool has_noted(const snug_tape *t, const snug_variable *v) {
    uint32_t place;
    return sn_numbers_find(&t->places, (uintptr_t)v, &place);
}

snug_status sn_tape_note(snug_tape *t, snug_variable *v, snug_error *err) {
    if (v->seen_by == t && v->seen_at == t->born)
        return SNUG_OK;
    if (!has_noted(t, v)) {
        SNUG_TRY(sn_grow(t->r->engine, SN_MEM_TAPES, &t->watched, sizeof *t->watched,
                         &t->cap_watched, t->n_watched + 1, err));
        SNUG_TRY(sn_numbers_reserve(&t->places, err));
        sn_numbers_put(&t->places, (uintptr_t)v, (uint32_t)t->n_watched);
        t->watched[t->n_watched++] = v;
        sn_variable_use(v);
    }
    v->seen_by = t;
    v->seen_at = t->born;
    return SNUG_OK;
}

static bool reads(const snug_tape *t, const void *variable) {
    const snug_variable *v = variable;
    return (v->trainable && t->watches) || (t->explicit && has_noted(t, v));
}

snug_status sn_tapes_of_variable(snug_recorder *r, const snug_variable *v, uint32_t *out,
                                 snug_error *err) {
    uint32_t mask = v->trainable ? r->active_tapes & r->watching_tapes : 0;
    for (uint32_t rest = r->active_tapes & r->explicit_tapes; rest; rest &= rest - 1) {
        const uint32_t k = (uint32_t)__builtin_ctz(rest);
        mask |= has_noted(r->tape[k], v) ? 1u << k : 0;
    }
    *out = mask;
    return r->active_tapes & SN_MANY ? sn_sets_of_active(r, mask, reads, v, out, err) : SNUG_OK;
}

snug_status snug_tape_watch(snug_tape *t, snug_tensor *x, snug_error *err) {
    SNUG_NEEDS(err, t && x);
    uint32_t bit;
    if (!sn_dtype_is_float(x->type.dtype) || t->r->active_tapes == 0)
        return SNUG_OK; /* as TensorFlow, where no tape records */
    if (x->state == SN_POISONED && x->poison) {
        if (err)
            *err = x->poison->error;
        return x->poison->error.code;
    }
    SNUG_TRY(sn_sets_of_tape(t, &bit, err));
    uint32_t mark = sn_tensor_tapes(x);
    SNUG_TRY(sn_marks_add(t->r, &mark, bit, err));
    t->end_in = 0;
    if (x->state == SN_PENDING)
        SNUG_TRY(sn_marks_add(t->r, &x->rec->tapes[x->value.i], bit, err));
    else if (x->stamp == t->r->now->serial && x->leaf.i < t->r->now->n_values)
        SNUG_TRY(sn_marks_add(t->r, &t->r->now->tapes[x->leaf.i], bit, err)); /* at worst one more
                                                                                 is followed */
    sn_tensor_see(x, mark);
    x->marked = ++t->r->serial;
    return SNUG_OK;
}

snug_status snug_tape_watch_variable(snug_tape *t, snug_variable *v, snug_error *err) {
    SNUG_NEEDS(err, t && v);
    t->explicit = true;
    if (t->bit < SN_FEW_TAPES)
        t->r->explicit_tapes |= 1u << t->bit;
    return sn_tape_note(t, v, err);
}

size_t snug_tape_watched(const snug_tape *t, snug_variable **out, size_t max) {
    if (!t)
        return 0;
    for (size_t i = 0; i < t->n_watched && i < max; i++)
        out[i] = t->watched[i];
    return t->n_watched;
}

/* --- gradients -------------------------------------------------------------------------------- */
/* The sum of the target's elements, each by its seed. */
static sn_value weigh(sn_record_call *c, snug_tensor *target, snug_tensor *seed) {
    sn_value v = sn_record_use(c, target);
    if (c->b.error.code != SNUG_OK)
        return SN_NO_VALUE;
    if (seed)
        v = sn_build_mul(&c->b, v, sn_record_use(c, seed));
    if (c->b.error.code == SNUG_OK && sn_graph_type(c->b.graph, v)->rank > 0)
        v = sn_build_sum(&c->b, v, 0, false);
    return v;
}

static sn_value total(sn_record_call *c, snug_tensor *const *targets, snug_tensor *const *seeds,
                      int n) {
    sn_value sum = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        const sn_value part = weigh(c, targets[i], seeds ? seeds[i] : NULL);
        sum = sn_value_ok(sum) ? sn_build_add(&c->b, sum, part) : part;
    }
    return sum;
}

/* The values of the recording that a source is; SN_NO_VALUE: it is in none. Every version of a
 * variable that the tape has seen counts. */
typedef struct {
    sn_value *value;
    int *source;
    int n;
    size_t cap_value, cap_source;
} wanted_list;

static snug_status want(snug_recorder *r, wanted_list *w, sn_value v, int source, snug_error *err) {
    SNUG_TRY(sn_grow(r->engine, SN_MEM_TAPES, &w->value, sizeof *w->value, &w->cap_value,
                     (size_t)w->n + 1, err));
    SNUG_TRY(sn_grow(r->engine, SN_MEM_TAPES, &w->source, sizeof *w->source, &w->cap_source,
                     (size_t)w->n + 1, err));
    w->value[w->n] = v;
    w->source[w->n++] = source;
    return SNUG_OK;
}

static snug_status want_variable(const snug_tape *t, const snug_variable *v, int source,
                                 wanted_list *w, snug_error *err) {
    const sn_recording *rec = t->r->now;
    for (uint32_t i = 0; rec->has_versions && i < rec->n_leaf; i++) {
        const sn_value old = sn_graph_input_at(rec->graph, i);
        if (rec->leaf[i].variable == v && sn_marks_have(t->r, rec->tapes[old.i], t->bit))
            SNUG_TRY(want(t->r, w, old, source, err));
    }
    for (size_t i = 0; i < rec->n_echo; i++)
        if (rec->echo[i].variable == v &&
            sn_marks_have(t->r, rec->tapes[rec->echo[i].value.i], t->bit))
            SNUG_TRY(want(t->r, w, rec->echo[i].value, source, err));
    if (v->stamp != rec->serial || v->var.i >= rec->n_variable || rec->variable[v->var.i] != v)
        return SNUG_OK;
    sn_value at = sn_graph_var_at(rec->graph, v->var)->last;
    for (;;) {
        if (sn_marks_have(t->r, rec->tapes[at.i], t->bit))
            SNUG_TRY(want(t->r, w, at, source, err));
        const sn_value_info *info = sn_graph_value_at(rec->graph, at);
        if (info->node.i == UINT32_MAX)
            return SNUG_OK;
        at = sn_graph_node_at(rec->graph, info->node)->in[info->index];
    }
}

/* What a stand-in stands for: nodes read that. */
static sn_value behind(const sn_recording *rec, sn_value v) {
    const sn_value made = sn_recording_kept_value(rec, v);
    return sn_value_ok(made) ? made : v;
}

static snug_status want_value(const snug_tape *t, sn_value v, int source, wanted_list *w,
                              snug_error *err) {
    const sn_recording *rec = t->r->now;
    v = behind(rec, v);
    if (!sn_marks_have(t->r, rec->tapes[v.i], t->bit) ||
        !sn_dtype_is_float(sn_graph_type(rec->graph, v)->dtype))
        return SNUG_OK;
    for (int i = w->n; i-- > 0 && w->source[i] == source;)
        if (w->value[i].i == v.i)
            return SNUG_OK;
    return want(t->r, w, v, source, err);
}

/* All leaves of the value: a run, or a trace, makes more of them. */
static snug_status want_leaves(const snug_tape *t, const snug_tensor *x, int source, wanted_list *w,
                               snug_error *err) {
    const sn_recording *rec = t->r->now;
    for (uint32_t i = 0; x->id != 0 && i < rec->n_leaf; i++)
        if (rec->leaf[i].id == x->id)
            SNUG_TRY(want_value(t, sn_graph_input_at(rec->graph, i), source, w, err));
    return SNUG_OK;
}

static snug_status want_source(const snug_tape *t, const snug_source *s, int source, wanted_list *w,
                               snug_error *err) {
    const sn_recording *rec = t->r->now;
    const snug_tensor *x = s->tensor;
    if (!s->variable && x->state == SN_VERSION && !sn_marks_have(t->r, sn_tensor_tapes(x), t->bit))
        return SNUG_OK; /* read where the tape did not see it */
    if (s->variable || x->state == SN_VERSION)
        return want_variable(t, s->variable ? s->variable : x->variable, source, w, err);
    if (x->state == SN_PENDING && x->rec == rec)
        return want_value(t, x->value, source, w, err);
    if (x->state == SN_READY && !rec->outer)
        return want_leaves(t, x, source, w, err);
    sn_value v = x->leaf; /* captured by the trace; or numbers to come that are a target */
    return sn_recording_stands(rec, x) || sn_record_given(t->r, x, &v)
               ? want_value(t, v, source, w, err)
               : SNUG_OK;
}

/* What a gradient may see of the recording. */
typedef struct {
    const snug_tape *tape;
    const sn_recording *rec;
    size_t first, end; /* values that were made while the tape was active */
    size_t newest;     /* from there on they are the question's own */
} sight;

/* Marks of the newest values are not in the recording's array yet: the sum of targets is seen. */
static bool sees(const void *ctx, sn_value v) {
    const sight *s = ctx;
    if (v.i >= s->newest)
        return true;
    return v.i >= s->first && v.i < s->end &&
           sn_marks_have(s->rec->r, s->rec->tapes[v.i], s->tape->bit);
}

static sn_value stand_in(const void *ctx, sn_value v) {
    return sn_recording_kept_leaf(((const sight *)ctx)->rec, v);
}

static sn_value stands_for(const void *ctx, sn_value v) {
    return behind(((const sight *)ctx)->rec, v);
}

static snug_status differentiate(sn_record_call *c, const snug_tape *t, sn_value loss,
                                 const wanted_list *w, sn_value *grads, snug_error *err) {
    const sn_recording *rec = t->r->now;
    const bool mine = rec->serial == t->born_in, ended = rec->serial == t->end_in;
    const uint32_t newest = (uint32_t)c->mark.n_nodes;
    const sight s = {.tape = t,
                     .rec = rec,
                     .first = mine ? t->first_value : 0,
                     .end = ended ? t->end_value : rec->n_values,
                     .newest = c->mark.n_values};
    const sn_gradient_paths paths = {.ctx = &s,
                                     .sees = sees,
                                     .stand_in = rec->n_kept > 0 ? stand_in : NULL,
                                     .stands_for = rec->n_kept > 0 ? stands_for : NULL,
                                     .first_node = mine ? t->first_node : 0,
                                     .skip_from = ended ? t->end_node : newest,
                                     .skip_to = newest};
    return sn_graph_gradients_along(c->b.graph, loss, w->value, w->n, &paths, grads, err);
}

/* Gradients of one source's values, added. */
static void give(sn_record_call *c, const wanted_list *w, const sn_value *grads, int n_sources,
                 snug_tensor **out) {
    for (int s = 0, i = 0; s < n_sources; s++) { /* values stand in the order of their sources */
        sn_value sum = SN_NO_VALUE;
        for (; i < w->n && w->source[i] == s; i++)
            if (sn_value_ok(grads[i]))
                sum = sn_value_ok(sum) ? sn_build_add(&c->b, sum, grads[i]) : grads[i];
        out[s] = sn_value_ok(sum) ? sn_record_give(c, sum) : NULL;
    }
}

/* What is asked of a tape. */
typedef struct {
    snug_tensor *const *targets, *const *seeds;
    int n_targets;
    const snug_source *sources;
    int n_sources;
} question;

/* Targets first: what comes in with them may be a source. */
static snug_status answer(sn_record_call *c, const snug_tape *t, const question *q, wanted_list *w,
                          snug_tensor **out) {
    snug_error *err = &c->b.error;
    void *grads;
    const sn_value loss = total(c, q->targets, q->seeds, q->n_targets);
    SNUG_TRY(c->b.error.code);
    for (int i = 0; i < q->n_sources; i++)
        SNUG_TRY(want_source(t, &q->sources[i], i, w, err));
    if (w->n == 0 || !sn_value_ok(loss))
        return SNUG_OK;
    const size_t bytes = (size_t)w->n * sizeof(sn_value);
    SNUG_TRY(sn_alloc(t->r->engine, SN_MEM_TAPES, bytes, &grads, err));
    memset(grads, 0xff, bytes);
    const snug_status status = differentiate(c, t, loss, w, grads, err);
    if (status == SNUG_OK)
        give(c, w, grads, q->n_sources, out);
    sn_free(t->r->engine, SN_MEM_TAPES, grads, bytes);
    return status;
}

static snug_status append_gradient(const snug_tape *t, const question *q, snug_tensor **out,
                                   snug_error *err) {
    sn_record_call c;
    wanted_list w = {0};
    SNUG_TRY(sn_record_begin(t->r, &c, err));
    const snug_status answered = answer(&c, t, q, &w, out);
    (void)answered; /* sticks in the call */
    sn_free(t->r->engine, SN_MEM_TAPES, w.value, w.cap_value * sizeof *w.value);
    sn_free(t->r->engine, SN_MEM_TAPES, w.source, w.cap_source * sizeof *w.source);
    const snug_status status = sn_record_end(&c, err);
    for (int i = 0; status != SNUG_OK && i < q->n_sources; i++)
        out[i] = NULL;
    return status;
}

static void use_up(snug_tape *t) {
    if (t->persistent)
        return;
    snug_tape_stop(t);
    t->used = true;
    sn_tape_set_open(t, false);
    prune(t->r);
    forget_watched(t);
}

snug_status snug_tape_gradient(snug_tape *t, snug_tensor *const *targets, snug_tensor *const *seeds,
                               int n_targets, const snug_source *sources, int n_sources,
                               snug_tensor **grads, snug_error *err) {
    SNUG_NEEDS(err, t && (targets || n_targets == 0) && n_targets >= 0 && n_sources >= 0);
    SNUG_NEEDS(err, (sources && grads) || n_sources == 0);
    for (int i = 0; i < n_targets; i++)
        SNUG_NEEDS(err, targets[i]);
    for (int i = 0; i < n_sources; i++)
        SNUG_NEEDS(err, sources[i].tensor || sources[i].variable);
    const question q = {targets, seeds, n_targets, sources, n_sources};
    if (t->used)
        return sn_fail(err, SNUG_E_INVALID,
                       "the tape is used up: only a persistent one gives gradients more than once");
    for (int i = 0; i < n_sources; i++)
        grads[i] = NULL;
    sn_seat *mine = t->seat ? sn_seat_take(t->r, t->seat) : t->r->seat; /* its nodes are there */
    const snug_status status = append_gradient(t, &q, grads, err);
    (void)sn_seat_take(t->r, mine);
    use_up(t);
    return status;
}

/* --- gradients of lookups --------------------------------------------------------------------- */
/* Finds the scatters that a sum consists of; -1: of something else, too, or of more than max. */
static int find_slices(const sn_graph *g, sn_value v, sn_value (*parts)[2], int max, int n) {
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (info->node.i == SN_NO_NODE.i || n < 0)
        return -1;
    const sn_node_info *node = sn_graph_node_at(g, info->node);
    if (node->op == SN_OP_add && max > 1)
        return find_slices(g, node->in[1], parts, max,
                           find_slices(g, node->in[0], parts, max - 1, n));
    if (node->op != SN_OP_scatter_add || node->attrs.scatter.axis != 0 || n >= max ||
        sn_graph_type(g, node->in[0])->rank == 0)
        return -1;
    parts[n][0] = node->in[1];
    parts[n][1] = node->in[0];
    return n + 1;
}

snug_status snug_tensor_slices(snug_tensor *t, snug_tensor **values, snug_tensor **indices, int max,
                               int *n, snug_error *err) {
    SNUG_NEEDS(err, t && n);
    enum { MOST = 16 };
    sn_value parts[MOST][2];
    sn_record_call c;
    *n = 0;
    if (t->state != SN_PENDING || t->rec != t->r->now)
        return SNUG_OK;
    const int found = find_slices(t->rec->graph, t->value, parts, max < MOST ? max : MOST, 0);
    if (found <= 0)
        return SNUG_OK;
    SNUG_TRY(sn_record_begin(t->r, &c, err));
    if (t->state != SN_PENDING) /* the recording was full and has run */
        return sn_record_end(&c, err);
    for (int i = 0; i < found; i++) {
        values[i] = sn_record_give(&c, parts[i][0]);
        indices[i] = sn_record_give(&c, parts[i][1]);
    }
    SNUG_TRY(sn_record_end(&c, err));
    *n = found;
    return SNUG_OK;
}
