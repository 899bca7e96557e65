/* spill_files.c: what the plans of an executor keep in files: memories that are files, one for all
 * plans as an arena is, and the homes of variables that plans have there.
 *
 * Invariants:
 * 1. Before anything is made, the folder was asked whether it has room for all of it.
 * 2. All plans have a variable at the same place: a home is moved before the first run, not between
 * two. */
#include "exec/inside.h"

#include "base/size.h"

enum { ANYWHERE, IN_MEMORY, IN_FILE }; /* where plans want a home */

bool sn_files_fit(const sn_session *s) {
    const sn_executor *x = s->executor;
    const sn_graph *g = s->plan->graph;
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < s->plan->n_memories; m++) {
        const sn_runner *r = sn_runner_of_memory(s, m);
        if (s->plan->memories[m].kind == SN_MEMORY_FILE &&
            r->kind->file_bytes(r, m) < s->plan->memories[m].bytes)
            return false;
    }
    for (uint32_t i = 0; !s->sources && i < sn_graph_n_vars(g); i++) {
        const uint32_t home = sn_graph_var_at(g, (sn_var){i})->home;
        if (sn_state_is_spilled(x->state, home) != sn_plan_spills(s->plan, (sn_var){i}))
            return false;
    }
    return true;
}

/* wanted: one per home. */
static snug_status ask_plans(const sn_executor *x, unsigned char *wanted, snug_error *err) {
    for (const sn_session *s = x->first; s; s = s->next)
        for (uint32_t i = 0; !s->sources && i < sn_graph_n_vars(s->plan->graph); i++) {
            const sn_variable *var = sn_graph_var_at(s->plan->graph, (sn_var){i});
            const unsigned char where = sn_plan_spills(s->plan, (sn_var){i}) ? IN_FILE : IN_MEMORY;
            if (wanted[var->home] != ANYWHERE && wanted[var->home] != where)
                return sn_fail(err, SNUG_E_INVALID,
                               "one plan has variable '%s' in the spill file, another in memory; "
                               "make all plans of a training with one choice",
                               var->name);
            wanted[var->home] = where;
        }
    return SNUG_OK;
}

/* Bytes of memory m that are to be made as a file; 0: what there is will do. */
static size_t file_to_make(const sn_runner *r, uint32_t m) {
    size_t bytes;
    const char *name;
    const bool wanted = sn_runner_largest(r, m, SN_MEMORY_FILE, &bytes, &name);
    return wanted && r->kind->file_bytes(r, m) < bytes ? bytes : 0;
}

/* Of homes that are to be moved into the file. */
static snug_status add_homes(const sn_executor *x, const unsigned char *wanted, size_t *sum,
                             snug_error *err) {
    for (uint32_t i = 0; i < sn_state_count(x->state); i++) {
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&sn_state_home(x->state, i)->type, &bytes, err));
        if (wanted[i] == IN_FILE && !sn_state_is_spilled(x->state, i) &&
            sn_state_on_disk(x->state) && !sn_size_add(*sum, bytes, sum))
            return sn_fail(err, SNUG_E_OVERFLOW, "the plans spill more than any disk has");
    }
    return SNUG_OK;
}

static snug_status add_files(const sn_runner *r, size_t *sum, snug_error *err) {
    for (uint32_t m = SN_MEM_FIRST_ARENA; r->kind->on_disk && m < SN_MAX_MEMORIES; m++)
        if (!sn_size_add(*sum, file_to_make(r, m), sum))
            return sn_fail(err, SNUG_E_OVERFLOW, "the plans spill more than any disk has");
    return SNUG_OK;
}

static snug_status check_room(const sn_executor *x, const unsigned char *wanted, snug_error *err) {
    const char *folder = x->options.spill_folder;
    size_t sum = 0;
    SNUG_TRY(add_homes(x, wanted, &sum, err));
    for (uint32_t k = 0; k < x->n_runners; k++)
        SNUG_TRY(add_files(&x->runners[k], &sum, err));
    if (sum == 0)
        return SNUG_OK;
    if (!folder)
        return sn_fail_by(err, SNUG_E_INVALID, SNUG_CAUSE_NO_SPILL_FOLDER,
                          "the plans spill %zu bytes to files; name a folder for them", sum);
    return sn_file_check_folder(sn_engine_io(x->engine), folder,
                                sum < INT64_MAX ? (int64_t)sum : INT64_MAX, err);
}

/* What a file held is of no use after a run: a larger one replaces it. */
static snug_status make_file(sn_runner *r, uint32_t m, snug_error *err) {
    const size_t bytes = file_to_make(r, m);
    if (bytes == 0)
        return SNUG_OK;
    sn_executor_make_unready(r->executor);
    return r->kind->make_file(r, m, bytes, err);
}

static snug_status move_home(sn_executor *x, uint32_t id, unsigned char wanted, snug_error *err) {
    const bool in_file = sn_state_is_spilled(x->state, id);
    if (wanted == ANYWHERE || in_file == (wanted == IN_FILE))
        return SNUG_OK;
    sn_executor_make_unready(x);
    return in_file ? sn_state_unspill(x->state, id, err)
                   : sn_state_spill(x->state, id, x->options.spill_folder, err);
}

static snug_status make_all(sn_executor *x, unsigned char *wanted, snug_error *err) {
    SNUG_TRY(ask_plans(x, wanted, err));
    SNUG_TRY(check_room(x, wanted, err));
    for (uint32_t k = 0; k < x->n_runners; k++)
        for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
            SNUG_TRY(make_file(&x->runners[k], m, err));
    for (uint32_t i = 0; i < sn_state_count(x->state); i++)
        SNUG_TRY(move_home(x, i, wanted[i], err));
    return SNUG_OK;
}

void sn_executor_spill_to(sn_executor *x, const char *folder) {
    x->options.spill_folder = folder;
}

snug_status sn_files_make(sn_executor *x, snug_error *err) {
    const size_t n = sn_state_count(x->state);
    void *wanted;
    SNUG_TRY(sn_alloc_zero(x->engine, SN_MEM_PLAN, n, &wanted, err));
    const snug_status status = make_all(x, wanted, err);
    sn_free(x->engine, SN_MEM_PLAN, wanted, n);
    return status;
}
