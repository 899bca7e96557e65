/* loan.c: inputs that are read where they lie. Rows that a caller has in memory, in order and in
 * the input's dtype, are not copied into the arena: the steps that read them get their address for
 * this run. The place in the arena stays booked: which it will be is known only at the run.
 *
 * Invariants:
 * 1. Only an input that is fed whole, once, outside of blocks, and that no step writes afterwards
 *    in any place of its bytes, can be a loan, where the device reads what a caller has; in a graph
 *    that has its inputs outside anyway none is.
 * 2. Before each run every reader's pointer is set: to the caller's memory, or to the arena, where
 *    the FEED step then brings the rows. */
#include "exec/inside.h"

/* Whether the place has bytes in common with the input's while the input is there. */
static bool overlaps(const sn_plan *p, const sn_place *a, const sn_place *fed) {
    return a->memory == fed->memory && a->offset < fed->offset + p->value_bytes[fed->value.i] &&
           fed->offset < a->offset + p->value_bytes[a->value.i];
}

static bool is_same(const sn_plan *p, const sn_place *a, const sn_place *fed) {
    return p->root[a->value.i] == p->root[fed->value.i];
}

static bool reads(const sn_plan *p, const sn_step *step, const sn_place *fed) {
    for (uint32_t j = 0; j < step->n_in; j++)
        if (is_same(p, &step->in[j], fed))
            return true;
    return false;
}

/* A reader that may write over the input wants to find it there. */
static bool writes(const sn_plan *p, const sn_step *step, const sn_place *fed) {
    const bool reader = reads(p, step, fed);
    for (uint32_t j = 0; j < step->n_out; j++)
        if (is_same(p, &step->out[j], fed) || (reader && overlaps(p, &step->out[j], fed)))
            return true;
    return false;
}

static bool can_be_lent(const sn_session *s, uint32_t feed) {
    const sn_plan *p = s->plan;
    const sn_place *fed = &p->steps[feed].out[0];
    if (!sn_runner_of_step(s, &s->bound[feed])->kind->lends ||
        s->bound[feed].block != SN_NO_BLOCK || fed->rows >= 0)
        return false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (i != feed && s->bound[i].base && writes(p, &p->steps[i], fed))
            return false;
    for (uint32_t k = 0; k < sn_graph_n_outputs(p->graph); k++)
        if (is_same(p, &p->outputs[k], fed))
            return false;
    return true;
}

/* Readers of the input from slot n on; returns what is behind them. slots NULL: they are
 * counted. */
static size_t list_readers(sn_session *s, uint32_t feed, size_t n) {
    const sn_plan *p = s->plan;
    const sn_place *fed = &p->steps[feed].out[0];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *step = &p->steps[i];
        for (uint32_t j = 0; s->bound[i].base && j < step->n_in; j++) {
            if (!is_same(p, &step->in[j], fed))
                continue;
            if (s->loans)
                s->loans[n] = (sn_fixup){.slot = &s->bound[i].base[j],
                                         .source = feed,
                                         .offset = step->in[j].offset - fed->offset};
            n++;
        }
    }
    return n;
}

static size_t list_loans(sn_session *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->plan->n_steps; i++)
        if (s->plan->steps[i].kind == SN_STEP_FEED && can_be_lent(s, i))
            n = list_readers(s, i, n);
    return n;
}

snug_status sn_loans_find(sn_session *s, snug_error *err) {
    if (!s->plan->root || sn_graph_is_outside(s->plan->graph))
        return SNUG_OK;
    const size_t n = list_loans(s);
    SNUG_TRY(sn_session_take(s, n, sizeof *s->loans, &s->loans, err));
    s->n_loans = list_loans(s);
    return SNUG_OK;
}

/* Where the caller has what the step would bring; NULL: nowhere as it is wanted. */
static unsigned char *find_rows(const sn_session *s, const sn_step *feed) {
    const sn_input_binding *input = &s->inputs[feed->input];
    const snug_type *type = sn_graph_type(s->plan->graph, feed->out[0].value);
    sn_recipe recipe;
    uint64_t first;
    if (!input->fill || !input->recipe || !input->recipe(input->ctx, 0, &recipe, &first))
        return NULL;
    const sn_source *source = sn_recipe_source(&recipe);
    return source ? sn_source_lend(source, (uint64_t)recipe.a + first,
                                   (uint64_t)sn_type_count(type), type->dtype)
                  : NULL;
}

void sn_loans_take(sn_session *s) {
    unsigned char *at = NULL;
    for (size_t i = 0; i < s->n_loans; i++) {
        const sn_fixup *f = &s->loans[i];
        sn_bound *feed = &s->bound[f->source];
        if (i == 0 || f->source != s->loans[i - 1].source) {
            at = find_rows(s, feed->step);
            feed->lent = at != NULL;
        }
        *f->slot = (at ? at : feed->base[0]) + f->offset;
    }
}
