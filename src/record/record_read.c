/* record_read.c: reading variables. What a variable holds is one value of the recording, for all
 * who read it; a tape that watches marks it. Where handles have that value that the tape must not
 * see (they were read before it, or while it was stopped), the reader gets an *echo* instead: the
 * same number in a value of its own, through which no gradient goes on. Gradients by a variable are
 * asked of its versions and its echoes. */
#include "record/recording.h"

sn_value sn_record_version(sn_record_call *c, snug_variable *v) {
    sn_var var;
    if (c->b.error.code != SNUG_OK ||
        sn_recording_variable(c->r->now, v, &var, &c->b.error) != SNUG_OK)
        return SN_NO_VALUE;
    return sn_graph_var_at(c->r->now->graph, var)->last;
}

snug_status sn_record_watch(snug_recorder *r, snug_variable *v, snug_error *err) {
    for (uint32_t rest = v->trainable ? r->active_tapes & r->watching_tapes : 0; rest;
         rest &= rest - 1)
        SNUG_TRY(sn_tape_note(r->tape[__builtin_ctz(rest)], v, err));
    for (snug_tape *t = v->trainable ? r->seat->active_more : NULL; t; t = t->next_active)
        if (t->watches)
            SNUG_TRY(sn_tape_note(t, v, err));
    return SNUG_OK;
}

/* --- echoes ----------------------------------------------------------------------------------- */
static sn_value find_echo(const sn_recording *rec, sn_value of, uint32_t mask) {
    for (size_t i = rec->n_echo; i-- > 0;)
        if (rec->echo[i].of.i == of.i && rec->tapes[rec->echo[i].value.i] == mask)
            return rec->echo[i].value;
    return SN_NO_VALUE;
}

snug_status sn_recording_echo(sn_recording *rec, const sn_echo *echo, snug_error *err) {
    SNUG_TRY(sn_grow(rec->r->engine, SN_MEM_GRAPH, &rec->echo, sizeof *rec->echo, &rec->cap_echo,
                     rec->n_echo + 1, err));
    sn_variable_use(echo->variable);
    rec->echo[rec->n_echo++] = *echo;
    return SNUG_OK;
}

void sn_recording_drop_echoes(sn_recording *rec, size_t n_values) {
    while (rec->n_echo > 0 && rec->echo[rec->n_echo - 1].value.i >= n_values)
        sn_variable_unuse(rec->echo[--rec->n_echo].variable);
}

static sn_value echo_of(sn_record_call *c, snug_variable *v, sn_value of, uint32_t mask) {
    sn_recording *rec = c->r->now;
    sn_value made = find_echo(rec, of, mask);
    if (sn_value_ok(made))
        return made;
    made = sn_build(&c->b, SN_OP_stop_gradient, NULL, &of, 1);
    if (!sn_value_ok(made) || sn_recording_cover(rec, &c->b.error) != SNUG_OK ||
        sn_recording_echo(rec, &(sn_echo){made, of, v}, &c->b.error) != SNUG_OK)
        return SN_NO_VALUE;
    rec->tapes[made.i] = mask;
    return made;
}

/* --- reading ---------------------------------------------------------------------------------- */
/* Whether somebody has the value whom these tapes must not see. */
static bool is_held(const sn_recording *rec, const snug_variable *v, sn_value value,
                    uint32_t mask) {
    if (rec->handle[value.i])
        return true;
    if (sn_graph_value_at(rec->graph, value)->node.i != UINT32_MAX)
        return false;
    for (const snug_tensor *t = v->readers; t; t = t->next_reader)
        if (sn_sets_open_beside(rec->r, mask, sn_tensor_tapes(t)))
            return true;
    return false;
}

static snug_status check_torn(const sn_recording *rec, const snug_variable *v, sn_value value,
                              snug_error *err) {
    return v->torn && sn_graph_value_at(rec->graph, value)->node.i == UINT32_MAX
               ? sn_variable_torn(v, err)
               : SNUG_OK;
}

static sn_value read_as(sn_record_call *c, snug_variable *v, bool for_handle) {
    sn_recording *rec = c->r->now;
    const sn_value value = sn_record_version(c, v);
    if (!sn_value_ok(value) || check_torn(rec, v, value, &c->b.error) != SNUG_OK ||
        sn_record_watch(c->r, v, &c->b.error) != SNUG_OK ||
        sn_recording_cover(rec, &c->b.error) != SNUG_OK) /* this call may have written it */
        return SN_NO_VALUE;
    uint32_t mask;
    if (sn_tapes_of_variable(c->r, v, &mask, &c->b.error) != SNUG_OK)
        return SN_NO_VALUE;
    const bool more = sn_sets_open_beside(c->r, mask, rec->tapes[value.i]),
               other = sn_sets_open_beside(c->r, rec->tapes[value.i], mask);
    if ((more && is_held(rec, v, value, mask)) || (other && for_handle))
        return echo_of(c, v, value, mask);
    return sn_marks_add(c->r, &rec->tapes[value.i], mask, &c->b.error) == SNUG_OK ? value
                                                                                  : SN_NO_VALUE;
}

sn_value sn_record_read(sn_record_call *c, snug_variable *v) {
    return read_as(c, v, false);
}

snug_status snug_variable_read(snug_variable *v, snug_tensor **out, snug_error *err) {
    SNUG_NEEDS(err, v && out);
    sn_record_call c;
    SNUG_TRY(sn_record_begin(v->r, &c, err));
    *out = sn_record_give(&c, read_as(&c, v, true));
    const snug_status status = sn_record_end(&c, err);
    if (status != SNUG_OK)
        *out = NULL;
    return status;
}
