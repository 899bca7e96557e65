/* record_draw.c: numbers and random keys of recordings (record.h).
 *
 * 1. A key is the next of the recorder's sequence, or of one that follows from a seed: a layer's,
 * which counts itself, or an operation's, counted here by its place: all that is not traced has one
 * place, or those that the caller tells, each occurrence in a trace has its own.
 * 2. A trace takes no number: each of its calls does.
 * 3. A call that fails gives back what it took. */
#include "record/recording.h"

#include "base/rng.h"

int64_t sn_record_number(sn_record_call *c, double value) {
    return (int64_t)sn_build_param(&c->b, "", value).i;
}

int64_t sn_record_key(sn_record_call *c, int64_t value) {
    return (int64_t)sn_build_key(&c->b, "", value).i;
}

static void note_asked(sn_record_call *c, sn_asked a) {
    sn_recording *rec = c->r->now;
    if (c->b.error.code != SNUG_OK || !rec->outer ||
        sn_grow(rec->r->engine, SN_MEM_GRAPH, &rec->asked, sizeof *rec->asked, &rec->cap_asked,
                rec->n_asked + 1, &c->b.error) != SNUG_OK)
        return;
    rec->asked[rec->n_asked++] = a;
}

int64_t snug_recorder_draw(snug_recorder *r) {
    return r ? (int64_t)(sn_rng_key(r->seed, ++r->n_draws) >> 1) : 0;
}

/* In a trace the key only stands in for those that its calls will draw: it uses up none of the
 * sequence, so that a run that goes on in another process, and traces again, draws the same
 * keys. */
int64_t sn_record_draw(sn_record_call *c) {
    const uint64_t n_draws = c->r->n_draws;
    const int64_t slot = sn_record_key(c, snug_recorder_draw(c->r));
    if (c->r->now->outer)
        c->r->n_draws = n_draws;
    note_asked(c, (sn_asked){.slot = (uint32_t)slot, .host = UINT32_MAX});
    return slot;
}

static uint32_t host_index(sn_record_call *c, const sn_host *host) {
    sn_recording *rec = c->r->now;
    for (size_t i = 0; i < rec->n_hosts; i++)
        if (rec->hosts[i].ctx == host->ctx && rec->hosts[i].ask == host->ask)
            return (uint32_t)i;
    if (sn_grow(rec->r->engine, SN_MEM_GRAPH, &rec->hosts, sizeof *rec->hosts, &rec->cap_hosts,
                rec->n_hosts + 1, &c->b.error) != SNUG_OK)
        return 0;
    if (host->hold)
        host->hold(host->ctx);
    rec->hosts[rec->n_hosts] = *host;
    return (uint32_t)rec->n_hosts++;
}

int64_t sn_record_ask(sn_record_call *c, const sn_host *host, int which) {
    const int64_t slot = sn_record_number(c, host->ask(host->ctx, which));
    if (c->b.error.code == SNUG_OK && c->r->now->outer)
        note_asked(c,
                   (sn_asked){.slot = (uint32_t)slot, .host = host_index(c, host), .which = which});
    return slot;
}

/* So that the number goes back where the call fails. */
static bool note_taken(sn_record_call *c, sn_taken t) {
    snug_recorder *const r = c->r;
    if (c->b.error.code != SNUG_OK ||
        sn_grow(r->engine, SN_MEM_OTHER, &r->taken, sizeof *r->taken, &r->cap_taken, r->n_taken + 1,
                &c->b.error) != SNUG_OK)
        return false;
    r->taken[r->n_taken++] = t;
    return true;
}

int64_t sn_record_own_key(sn_record_call *c, const sn_host *host, int64_t seed) {
    const bool traced = c->r->now->outer != NULL;
    if (!traced && !note_taken(c, (sn_taken){.host = *host}))
        return 0;
    const uint64_t times = (uint64_t)host->ask(host->ctx, traced ? -1 : 0);
    const int64_t slot = sn_record_key(c, (int64_t)(sn_rng_key((uint64_t)seed, times) >> 1));
    if (c->b.error.code == SNUG_OK && traced)
        note_asked(c, (sn_asked){.slot = (uint32_t)slot, .host = host_index(c, host), .own = seed});
    return slot;
}

void sn_record_tell(sn_record_call *c, const sn_host *host) {
    if (!c->r->now->outer)
        (void)host->ask(host->ctx, -1);
    else if (c->b.error.code == SNUG_OK)
        note_asked(c, (sn_asked){.slot = UINT32_MAX, .host = host_index(c, host), .which = -1});
}

void sn_record_give_back(sn_record_call *c) {
    snug_recorder *const r = c->r;
    while (r->n_taken > 0) {
        const sn_taken *t = &r->taken[--r->n_taken];
        uint32_t n = 0;
        if (t->host.ask)
            (void)t->host.ask(t->host.ctx, -2);
        else if (sn_numbers_find(&r->sequences, t->place, &n))
            sn_numbers_put(&r->sequences, t->place, n - 1);
    }
    r->n_draws = c->n_draws;
}

/* --- seeds of operations ---------------------------------------------------------------------- */
/* What an operation draws with this seed, whatever the recorder's is. */
static uint64_t sequence_of(const char *op, int64_t seed) {
    uint64_t word = 0;
    for (const char *p = op; *p; p++)
        word = word * 31 + (unsigned char)*p;
    return sn_rng_key(word, (uint64_t)seed);
}

static int64_t key_of(const snug_recorder *r, uint64_t sequence, uint32_t n) {
    return (int64_t)(sn_rng_key(sn_rng_key(r->seed, sequence), n) >> 1);
}

int64_t sn_record_seeded_at(sn_record_call *c, uint64_t sequence, uint64_t place) {
    snug_recorder *const r = c->r;
    uint32_t n = 0;
    (void)sn_numbers_find(&r->sequences, place, &n);
    if (!r->now->outer) {
        if (sn_numbers_reserve(&r->sequences, &c->b.error) != SNUG_OK ||
            !note_taken(c, (sn_taken){.place = place}))
            return 0;
        sn_numbers_put(&r->sequences, place, n + 1);
    }
    const int64_t slot = sn_record_key(c, key_of(r, sequence, n));
    note_asked(c, (sn_asked){.slot = (uint32_t)slot,
                             .host = UINT32_MAX,
                             .own = (int64_t)sequence,
                             .place = place});
    return slot;
}

/* Numbers of places come from two sides: odd ones are of traces. */
static uint64_t place_of(const snug_recorder *r, uint64_t sequence) {
    return r->place ? sn_rng_key(sequence, r->place << 1) : sequence;
}

int64_t sn_record_seeded(sn_record_call *c, const char *op, int64_t seed) {
    snug_recorder *const r = c->r;
    const uint64_t sequence = sequence_of(op, seed);
    return sn_record_seeded_at(c, sequence,
                               r->now->outer ? sn_rng_key(sequence, r->n_places++ << 1 | 1)
                                             : place_of(r, sequence));
}

void snug_recorder_set_place(snug_recorder *r, uint64_t place) {
    if (r)
        r->place = place;
}

uint64_t snug_recorder_tell_places(const snug_recorder *r) {
    return r ? r->n_places : 0;
}

void snug_recorder_set_places(snug_recorder *r, uint64_t n_places) {
    if (r)
        r->n_places = n_places;
}

void sn_record_new_place(snug_recorder *r) {
    if (r->sequences.n > 0)
        sn_numbers_forget(&r->sequences);
}

snug_status snug_recorder_draw_seeded(snug_recorder *r, const char *op, int64_t seed, int64_t *out,
                                      snug_error *err) {
    SNUG_NEEDS(err, r && op && out);
    const uint64_t sequence = sequence_of(op, seed), place = place_of(r, sequence);
    uint32_t n = 0;
    SNUG_TRY(sn_numbers_reserve(&r->sequences, err));
    (void)sn_numbers_find(&r->sequences, place, &n);
    sn_numbers_put(&r->sequences, place, n + 1);
    *out = key_of(r, sequence, n);
    return SNUG_OK;
}

size_t snug_recorder_tell_sequences(const snug_recorder *r, uint64_t *pairs, size_t max) {
    if (!r)
        return 0;
    const sn_numbers *const t = &r->sequences;
    size_t n = 0;
    for (size_t i = 0; pairs && i < t->cap && n < max; i++)
        if (t->entries[i].used) {
            pairs[2 * n] = t->entries[i].key;
            pairs[2 * n++ + 1] = t->entries[i].id;
        }
    return t->n;
}

snug_status snug_recorder_set_sequences(snug_recorder *r, const uint64_t *pairs, size_t n,
                                        snug_error *err) {
    SNUG_NEEDS(err, r && (pairs || n == 0));
    for (size_t i = 0; i < n; i++)
        if (pairs[2 * i + 1] > UINT32_MAX)
            return sn_fail(err, SNUG_E_INVALID,
                           "sequence %zu was drawn from %llu times; at most %u", i,
                           (unsigned long long)pairs[2 * i + 1], UINT32_MAX);
    sn_numbers made = {.engine = r->engine, .category = SN_MEM_OTHER};
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < n && status == SNUG_OK; i++) {
        status = sn_numbers_reserve(&made, err);
        if (status == SNUG_OK)
            sn_numbers_put(&made, pairs[2 * i], (uint32_t)pairs[2 * i + 1]);
    }
    sn_numbers *const old = status == SNUG_OK ? &r->sequences : &made;
    sn_numbers_clear(old);
    if (status == SNUG_OK)
        r->sequences = made;
    return status;
}

/* --- where it stands -------------------------------------------------------------------------- */
void snug_recorder_tell_random(const snug_recorder *r, uint64_t *seed, uint64_t *n_draws) {
    if (!(r && seed && n_draws))
        return;
    *seed = r->seed;
    *n_draws = r->n_draws;
}

void snug_recorder_set_random(snug_recorder *r, uint64_t seed, uint64_t n_draws) {
    if (!r)
        return;
    r->seed = seed;
    r->n_draws = n_draws;
}

void snug_recorder_seed(snug_recorder *r, uint64_t seed) {
    if (!r)
        return;
    snug_recorder_set_random(r, seed, 0);
    sn_record_new_place(r);
}
