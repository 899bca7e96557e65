/* record_seat.c: threads. Each thread that uses a recorder has a *seat*: its own open recording,
 * its own open traces and active tapes. Tensors, variables, plans and the executor are common.
 *
 * Invariants:
 * 1. Calls come one at a time, from the thread that sits (its seat's fields are the recorder's own
 *    main, now, ...); a lock of the caller's, such as an interpreter's, sees to it.
 * 2. A pending value is of the seat whose recording it stands in. Who needs it from another seat
 *    runs that recording first.
 * 3. A variable with a pending write stands in one open recording only: who writes it first lets
 *    others that have it run, and who brings it in lets the writer run. */
#include "record/recording.h"

/* --- the one that sits ------------------------------------------------------------------------ */
static void stand_up(snug_recorder *r) {
    sn_seat *s = r->seat;
    s->main = r->main;
    s->now = r->now;
    s->active_tapes = r->active_tapes;
    s->given = r->given;
    s->n_given = r->n_given;
    s->cap_given = r->cap_given;
    s->taken = r->taken;
    s->n_taken = r->n_taken;
    s->cap_taken = r->cap_taken;
    s->place = r->place;
    s->site = r->site;
    s->on_host = r->on_host;
}

/* Variables know their place in the recording that is appended to. */
static void sit_down(snug_recorder *r, sn_seat *s) {
    r->seat = s;
    r->main = s->main;
    r->now = s->now;
    r->active_tapes = s->active_tapes;
    r->given = s->given;
    r->n_given = s->n_given;
    r->cap_given = s->cap_given;
    r->taken = s->taken;
    r->n_taken = s->n_taken;
    r->cap_taken = s->cap_taken;
    r->place = s->place;
    r->site = s->site;
    r->on_host = s->on_host;
    sn_recording_stamp(r->now);
}

sn_seat *sn_seat_take(snug_recorder *r, sn_seat *s) {
    sn_seat *before = r->seat;
    if (s != before) {
        stand_up(r);
        sit_down(r, s);
    }
    return before;
}

snug_status sn_seat_add(snug_recorder *r, uint64_t thread, sn_seat **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_OTHER, sizeof **out, &block, err));
    sn_seat *s = block;
    const snug_status status = sn_recording_create(r, &s->main, err);
    if (status != SNUG_OK) {
        sn_free(r->engine, SN_MEM_OTHER, s, sizeof *s);
        return status;
    }
    s->now = s->main;
    s->thread = thread;
    s->next = r->seats;
    r->seats = s;
    *out = s;
    return SNUG_OK;
}

static sn_seat *seat_of_thread(const snug_recorder *r, uint64_t thread) {
    sn_seat *s = r->seats;
    while (s && s->thread != thread)
        s = s->next;
    return s;
}

snug_status snug_recorder_enter(snug_recorder *r, uint64_t thread, snug_error *err) {
    SNUG_NEEDS(err, r);
    sn_seat *s = seat_of_thread(r, thread);
    if (!s && !r->seat->thread) { /* the first thread that says who it is */
        s = r->seat;
        s->thread = thread;
    }
    if (!s)
        SNUG_TRY(sn_seat_add(r, thread, &s, err));
    (void)sn_seat_take(r, s);
    return SNUG_OK;
}

/* --- other seats ------------------------------------------------------------------------------ */
sn_recording *sn_seat_main(const snug_recorder *r, const sn_seat *s) {
    return s == r->seat ? r->main : s->main;
}

sn_recording *sn_seat_now(const snug_recorder *r, const sn_seat *s) {
    return s == r->seat ? r->now : s->now;
}

static sn_seat *seat_of_recording(const snug_recorder *r, const sn_recording *rec) {
    sn_seat *s = r->seats;
    while (s && sn_seat_main(r, s) != rec)
        s = s->next;
    return s;
}

static snug_status flush_seat(snug_recorder *r, sn_seat *s, snug_error *err) {
    sn_seat *before = sn_seat_take(r, s);
    const snug_status status = sn_flush(r, err);
    (void)sn_seat_take(r, before);
    return status;
}

snug_status sn_seat_flush(snug_recorder *r, const sn_recording *rec, snug_error *err) {
    sn_seat *s = seat_of_recording(r, rec);
    return s ? flush_seat(r, s, err) : sn_flush(r, err);
}

snug_status sn_seat_flush_all(snug_recorder *r, snug_error *err) {
    snug_status first = SNUG_OK;
    snug_error why;
    for (sn_seat *s = r->seats; s; s = s->next) {
        const snug_status status = flush_seat(r, s, &why);
        if (status != SNUG_OK && first == SNUG_OK) {
            first = status;
            if (err)
                *err = why;
        }
    }
    return first;
}

/* The variable as the recording has it; NULL: it has not. Stamps say it of one recording alone. */
static const sn_variable *find_variable(const sn_recording *rec, const snug_variable *v) {
    for (uint32_t i = 0; i < rec->n_variable; i++)
        if (rec->variable[i] == v)
            return sn_graph_var_at(rec->graph, (sn_var){i});
    return NULL;
}

/* What fails there is told to who holds it. */
void sn_seat_settle(snug_recorder *r, const snug_variable *v, bool writers_only) {
    snug_error theirs;
    for (sn_seat *s = r->seats; s && !r->running; s = s->next) {
        const sn_variable *there = s == r->seat ? NULL : find_variable(s->main, v);
        if (!there || (writers_only && there->first.i == there->last.i))
            continue;
        const snug_status status = flush_seat(r, s, &theirs);
        (void)status;
    }
}

/* --- leaving ---------------------------------------------------------------------------------- */
static bool has_tapes(const snug_recorder *r, const sn_seat *s) {
    for (const snug_tape *t = r->tapes; t; t = t->next)
        if (!t->used && t->seat == s)
            return true;
    return false;
}

static void free_seat(snug_recorder *r, sn_seat *s) {
    while (s->active_more)
        snug_tape_stop(s->active_more);
    for (snug_tape *t = r->tapes; t; t = t->next)
        if (t->seat == s)
            t->seat = NULL;
    sn_free(r->engine, SN_MEM_OTHER, s->given, s->cap_given * sizeof *s->given);
    sn_free(r->engine, SN_MEM_OTHER, s->taken, s->cap_taken * sizeof *s->taken);
    sn_free(r->engine, SN_MEM_OTHER, s, sizeof *s);
}

/* Effects happen; values that are held get their bytes. An open trace or tape keeps the seat. */
int snug_recorder_leave(snug_recorder *r, uint64_t thread) {
    if (!r)
        return 0;
    sn_seat *s = seat_of_thread(r, thread), **link = &r->seats;
    snug_error theirs;
    if (!s || r->running || sn_seat_now(r, s) != sn_seat_main(r, s))
        return !s;
    const snug_status status = flush_seat(r, s, &theirs);
    (void)status;
    if (has_tapes(r, s))
        return 0;
    if (s == r->seat) { /* free for another thread */
        s->thread = 0;
        return 1;
    }
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    sn_recording_destroy(s->main);
    free_seat(r, s);
    return 1;
}

void sn_seat_clear(snug_recorder *r) {
    if (r->seat)
        stand_up(r);
    r->main = r->now = NULL; /* theirs go: tapes that stop have no recording to end in */
    while (r->seats) {
        sn_seat *s = r->seats;
        r->seats = s->next;
        sn_recording_destroy(s->main);
        free_seat(r, s);
    }
    r->seat = NULL;
    r->given = NULL;
    r->n_given = r->cap_given = 0;
    r->taken = NULL;
    r->n_taken = r->cap_taken = 0;
}
