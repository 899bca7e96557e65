/* record_tensor.c: storages, handles of tensors, variables: who holds what. Dropping never fails
 * and never runs anything. */
#include "record/recording.h"

#include "base/rng.h"
#include "memory/pool.h"
#include "memory/team.h"

#include <assert.h>
#include <string.h>

#define LEAST_LEFT ((size_t)1 << 20) /* bytes of one that waits for the next run's results */
#define MOST_LEFT  ((size_t)1 << 24) /* of all that wait */
#define MAX_FREE   256               /* structs of tensors that wait to be used again */

/* --- numbers ---------------------------------------------------------------------------------- */
#define CHUNK ((int64_t)1 << 16) /* elements that a thread makes at a time */

typedef struct {
    const sn_recipe *recipe;
    snug_dtype dtype;
    size_t count, element;
    unsigned char *to;
} numbers;

/* The recipe was tried before: it cannot fail here. */
static void fill_chunks(const void *ctx, int64_t first, int64_t end) {
    const numbers *n = ctx;
    for (int64_t i = first; i < end; i++) {
        const size_t at = (size_t)(i * CHUNK), left = n->count - at;
        const snug_status filled =
            sn_recipe_fill(n->recipe, at, left < (size_t)CHUNK ? left : (size_t)CHUNK, n->dtype,
                           n->to + at * n->element, NULL);
        (void)filled;
    }
}

/* All threads together, where elements can be made one by one. */
static snug_status fill(snug_engine *e, const sn_recipe *recipe, const snug_type *type, void *to,
                        snug_error *err) {
    const size_t count = (size_t)sn_type_count(type);
    const numbers n = {recipe, type->dtype, count, snug_dtype_bytes(type->dtype), to};
    sn_team *team;
    if (count < 4 * (size_t)CHUNK || recipe->kind > SN_RECIPE_TRUNCATED)
        return sn_recipe_fill(recipe, 0, count, type->dtype, to, err);
    SNUG_TRY(sn_recipe_fill(recipe, 0, 0, type->dtype, to, err));
    SNUG_TRY(sn_team_hold(e, &team, err));
    sn_team_run(team, ((int64_t)count + CHUNK - 1) / CHUNK, fill_chunks, &n);
    sn_team_drop(e);
    return SNUG_OK;
}

/* --- storage ---------------------------------------------------------------------------------- */
snug_status sn_storage_like(snug_recorder *r, const sn_storage *like, sn_storage **out,
                            snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(r->engine, SN_MEM_TENSORS, sizeof **out, &block, err));
    *out = block;
    **out = *like;
    (*out)->refs = 1;
    return SNUG_OK;
}

/* A loop lets go of a step's results and makes others as large: where their pages came from the
 * system again, it would clear them for longer than it takes to fill them. Under a budget, which
 * counts each byte, nothing waits. */
static bool leave_for_run(snug_recorder *r, sn_storage *s) {
    if (r->running || r->closed || r->worker || !r->side->keeps || s->foreign ||
        s->bytes < LEAST_LEFT || s->category != SN_MEM_TENSORS || r->n_left == SN_MAX_LEFT ||
        s->bytes > MOST_LEFT - r->left_bytes || snug_budget_bytes(r->engine) > 0)
        return false;
    r->left[r->n_left++] = (sn_left){s->data, s->bytes};
    r->left_bytes += s->bytes;
    s->data = NULL;
    return true;
}

static bool take_left(snug_recorder *r, size_t bytes, void **out) {
    for (size_t i = 0; i < r->n_left; i++)
        if (r->left[i].bytes == bytes) {
            *out = r->left[i].data;
            r->left[i] = r->left[--r->n_left];
            r->left_bytes -= bytes;
            return true;
        }
    return false;
}

void sn_storage_free_left(snug_recorder *r) {
    while (r->n_left > 0) {
        const sn_left *l = &r->left[--r->n_left];
        sn_free(r->engine, SN_MEM_TENSORS, l->data, l->bytes);
    }
    r->left_bytes = 0;
}

/* The arena waits for the next run only: where there is no room else, that makes it anew. And slots
 * may wait in a file. */
static snug_status take_bytes(snug_recorder *r, sn_category cat, size_t bytes, void **out,
                              snug_error *err) {
    const snug_status status = sn_alloc(r->engine, cat, bytes, out, err);
    if (status != SNUG_E_BUDGET || r->running)
        return status;
    sn_storage_free_left(r);
    sn_executor_forget(r->executor);
    const snug_status again = sn_alloc(r->engine, cat, bytes, out, err);
    return again == SNUG_E_BUDGET && sn_slots_make_way(r)
               ? sn_alloc(r->engine, cat, bytes, out, err)
               : again;
}

snug_status sn_storage_create(snug_recorder *r, sn_category cat, size_t bytes, sn_storage **out,
                              snug_error *err) {
    sn_storage s = {.bytes = bytes, .category = cat};
    if (r->worker && cat == SN_MEM_TENSORS)
        SNUG_TRY(sn_pool_take(r->engine, bytes, &s.data, &s.taken, err));
    else if (cat != SN_MEM_TENSORS || !take_left(r, bytes, &s.data))
        SNUG_TRY(take_bytes(r, cat, bytes, &s.data, err));
    const snug_status status = sn_storage_like(r, &s, out, err);
    if (status != SNUG_OK)
        sn_storage_leave_host(r, &s);
    else
        sn_storage_count(r, *out);
    return status;
}

snug_status sn_storage_adopt(snug_recorder *r, const void *data, size_t bytes,
                             void (*release)(void *ctx), void *ctx, sn_storage **out,
                             snug_error *err) {
    const sn_storage s = {.data = (void *)data,
                          .bytes = bytes,
                          .category = SN_MEM_TENSORS,
                          .release = release,
                          .ctx = ctx,
                          .foreign = true};
    return sn_storage_like(r, &s, out, err);
}

void sn_storage_hold(sn_storage *s) {
    s->refs++;
}

void sn_storage_drop(snug_recorder *r, sn_storage *s) {
    if (!s || --s->refs > 0)
        return;
    sn_storage_uncount(r, s);
    if (!leave_for_run(r, s))
        sn_storage_leave_host(r, s);
    sn_storage_leave_card(r, s);
    sn_storage_leave_slots(r, s);
    sn_free(r->engine, SN_MEM_TENSORS, s, sizeof *s);
}

bool sn_tensor_take_bytes(snug_tensor *t, void **data, size_t *taken) {
    sn_storage *s = t->state == SN_READY && t->offset == 0 && t->pins == 0 ? t->storage : NULL;
    if (!s || s->refs != 1 || !s->taken)
        return false;
    *data = s->data;
    *taken = s->taken;
    sn_storage_uncount(t->r, s);
    s->foreign = true;
    s->taken = 0;
    return true;
}

sn_poison *sn_poison_create(snug_recorder *r, const snug_error *why) {
    void *block;
    snug_error none;
    if (sn_alloc(r->engine, SN_MEM_OTHER, sizeof(sn_poison), &block, &none) != SNUG_OK)
        return NULL;
    sn_poison *p = block;
    *p = (sn_poison){.refs = 1, .error = *why};
    return p;
}

static void drop_poison(snug_recorder *r, sn_poison *p) {
    if (p && --p->refs == 0)
        sn_free(r->engine, SN_MEM_OTHER, p, sizeof *p);
}

/* --- handles ---------------------------------------------------------------------------------- */
snug_status sn_tensor_create(snug_recorder *r, const snug_type *type, snug_tensor **out,
                             snug_error *err) {
    void *block = r->free_tensors;
    if (block) {
        r->free_tensors = r->free_tensors->twin;
        r->n_free_tensors--;
    } else {
        SNUG_TRY(sn_alloc(r->engine, SN_MEM_TENSORS, sizeof **out, &block, err));
    }
    *out = block;
    **out = (snug_tensor){.r = r,
                          .refs = 1,
                          .type = *type,
                          .state = SN_PENDING,
                          .on_host = r->on_host,
                          .born = r->serial};
    r->live_tensors++;
    return SNUG_OK;
}

/* Lets go of what its state holds. */
static void leave_state(snug_tensor *t) {
    if (t->state == SN_PENDING && t->rec)
        sn_recording_unlink(t);
    if (t->state == SN_VERSION) {
        *t->reader_link = t->next_reader;
        if (t->next_reader)
            t->next_reader->reader_link = t->reader_link;
        snug_variable *v = t->variable;
        t->variable = NULL;
        sn_variable_unuse(v);
    }
    sn_storage_drop(t->r, t->storage);
    drop_poison(t->r, t->poison);
    t->storage = NULL;
    t->poison = NULL;
    t->rec = NULL;
}

void sn_tensor_make_ready(snug_tensor *t, sn_storage *s, size_t offset) {
    leave_state(t);
    t->state = SN_READY;
    t->storage = s;
    t->offset = offset;
}

void sn_tensor_make_version(snug_tensor *t, snug_variable *v) {
    sn_variable_use(v);
    leave_state(t);
    t->state = SN_VERSION;
    t->variable = v;
    t->next_reader = v->readers;
    t->reader_link = &v->readers;
    if (v->readers)
        v->readers->reader_link = &t->next_reader;
    v->readers = t;
}

void sn_tensor_make_recipe(snug_tensor *t, const sn_recipe *recipe) {
    leave_state(t);
    t->state = SN_RECIPE;
    t->recipe = *recipe;
}

void sn_tensor_poison(snug_tensor *t, sn_poison *p) {
    leave_state(t);
    t->state = SN_POISONED;
    t->poison = p;
    if (p)
        p->refs++;
}

uint32_t sn_tensor_tapes(const snug_tensor *t) {
    uint32_t mask = t->tapes;
    if (mask & SN_MANY) /* who forgets leaves it */
        return mask;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t k = (uint32_t)__builtin_ctz(rest);
        if (!t->r->tape[k] || t->r->tape[k]->born > t->marked)
            mask &= ~(1u << k);
    }
    return mask;
}

void snug_tensor_hold(snug_tensor *t) {
    if (!t)
        return;
    t->refs++;
}

void snug_tensor_drop(snug_tensor *t) {
    if (!t || --t->refs > 0)
        return;
    snug_recorder *r = t->r;
    leave_state(t);
    if (t->tapes & SN_MANY)
        sn_tensor_see(t, 0);
    if (r->n_free_tensors < MAX_FREE) {
        t->twin = r->free_tensors;
        r->free_tensors = t;
        r->n_free_tensors++;
    } else {
        sn_free(r->engine, SN_MEM_TENSORS, t, sizeof *t);
    }
    r->live_tensors--;
    sn_recorder_let_go(r);
}

const snug_type *snug_tensor_type(const snug_tensor *t) {
    return t ? &t->type : NULL;
}

snug_recorder *snug_tensor_recorder(const snug_tensor *t) {
    if (!t)
        return NULL;
    return t->r;
}

int snug_tensor_is_ready(const snug_tensor *t) {
    if (!t)
        return 0;
    return t->state != SN_PENDING;
}

int snug_tensor_is_traced(const snug_tensor *t) {
    if (!t)
        return 0;
    return t->state == SN_PENDING && t->rec && t->rec->outer;
}

/* --- tensors with bytes ----------------------------------------------------------------------- */
snug_status snug_tensor_fresh(snug_recorder *r, const snug_type *type, snug_tensor **out,
                              void **data, snug_error *err) {
    SNUG_NEEDS(err, r && type && out && data);
    size_t bytes;
    sn_storage *s;
    snug_tensor *t;
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    SNUG_TRY(sn_storage_create(r, SN_MEM_TENSORS, bytes, &s, err));
    const snug_status status = sn_tensor_create(r, type, &t, err);
    if (status != SNUG_OK) {
        sn_storage_drop(r, s);
        return status;
    }
    sn_tensor_make_ready(t, s, 0);
    *out = t;
    *data = s->data;
    return SNUG_OK;
}

snug_status snug_tensor_copy(snug_recorder *r, const snug_type *type, const void *data,
                             snug_tensor **out, snug_error *err) {
    SNUG_NEEDS(err, r && type && data && out);
    void *to;
    if (r->side->copy(r, type, data, out))
        return SNUG_OK;
    SNUG_TRY(snug_tensor_fresh(r, type, out, &to, err));
    sn_team_copy(sn_team_of(r->engine), to, data, (*out)->storage->bytes);
    return SNUG_OK;
}

snug_status snug_tensor_borrow(snug_recorder *r, const snug_type *type, const void *data,
                               void (*release)(void *ctx), void *ctx, snug_tensor **out,
                               snug_error *err) {
    SNUG_NEEDS(err, r && type && out);
    size_t bytes;
    sn_storage *s;
    snug_tensor *t;
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    SNUG_TRY(sn_tensor_create(r, type, &t, err));
    const snug_status status = sn_storage_adopt(r, data, bytes, release, ctx, &s, err);
    if (status != SNUG_OK) {
        snug_tensor_drop(t);
        return status;
    }
    sn_tensor_make_ready(t, s, 0);
    *out = t;
    return SNUG_OK;
}

snug_status snug_tensor_adopt(snug_recorder *r, const snug_type *type, const void *data,
                              void (*release)(void *ctx), void *ctx, snug_tensor **out,
                              snug_error *err) {
    SNUG_NEEDS(err, r && out);
    size_t bytes;
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    SNUG_TRY(sn_claim(r->engine, SN_MEM_TENSORS, bytes, err));
    const snug_status status = snug_tensor_borrow(r, type, data, release, ctx, out, err);
    if (status != SNUG_OK) {
        sn_unclaim(r->engine, SN_MEM_TENSORS, bytes);
        return status;
    }
    (*out)->storage->claimed = true;
    sn_storage_count(r, (*out)->storage);
    return SNUG_OK;
}

/* --- looking at bytes ------------------------------------------------------------------------- */
static snug_status check_traced(const snug_tensor *t, snug_error *err) {
    if (snug_tensor_is_traced(t))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a tensor of a function that is being traced has no value yet");
    return SNUG_OK;
}

/* Numbers are made without a run. */
static snug_status make_numbers(snug_tensor *t, snug_error *err) {
    sn_storage *s;
    size_t bytes;
    SNUG_TRY(snug_type_bytes(&t->type, &bytes, err));
    SNUG_TRY(sn_storage_create(t->r, SN_MEM_TENSORS, bytes, &s, err));
    const snug_status status = fill(t->r->engine, &t->recipe, &t->type, s->data, err);
    if (status != SNUG_OK)
        sn_storage_drop(t->r, s);
    else
        sn_tensor_make_ready(t, s, 0);
    return status;
}

/* The same where a tape has the node: bytes stand in for it. */
static snug_status make_watched_numbers(snug_tensor *t, snug_error *err) {
    sn_recording *rec = t->rec;
    const sn_value value = t->value;
    sn_storage *s;
    sn_value leaf;
    size_t bytes;
    sn_recipe recipe = {0};
    (void)sn_recording_recipe(rec, value, &recipe);
    SNUG_TRY(snug_type_bytes(&t->type, &bytes, err));
    SNUG_TRY(sn_storage_create(t->r, SN_MEM_TENSORS, bytes, &s, err));
    snug_status status = fill(t->r->engine, &recipe, &t->type, s->data, err);
    if (status == SNUG_OK)
        status = sn_recording_stand_in(rec, value, s, 0, &leaf, err);
    for (snug_tensor *h; status == SNUG_OK && (h = rec->handle[value.i]);) {
        sn_storage_hold(s);
        sn_tensor_make_ready(h, s, 0);
        h->stamp = rec->serial;
        h->leaf = leaf;
        h->id = rec->leaf[rec->n_leaf - 1].id;
        sn_tensor_see(h, rec->tapes[value.i]);
        h->marked = t->r->serial;
    }
    sn_storage_drop(t->r, s);
    return status;
}

/* Bytes there are, after running what is recorded where there were none: from *offset on. */
static snug_status settle(snug_tensor *t, sn_storage **in, size_t *offset, snug_error *err) {
    SNUG_TRY(check_traced(t, err));
    if (t->state == SN_PENDING)
        SNUG_TRY(sn_seat_flush(t->r, t->rec, err));
    else if (t->state == SN_VERSION && t->r->main->has_effects)
        SNUG_TRY(sn_flush(t->r, err));
    if (t->state == SN_RECIPE)
        SNUG_TRY(make_numbers(t, err));
    if (t->state == SN_PENDING)
        SNUG_TRY(make_watched_numbers(t, err));
    if (t->state == SN_POISONED) {
        if (err && t->poison)
            *err = t->poison->error;
        return t->poison ? t->poison->error.code
                         : sn_fail(err, SNUG_E_MEMORY, "the run that makes it failed");
    }
    if (t->state == SN_VERSION) {
        SNUG_TRY(sn_variable_storage(t->variable, err));
        *in = t->variable->storage;
        *offset = 0;
        return SNUG_OK;
    }
    assert(t->state == SN_READY);
    *in = t->storage;
    *offset = t->offset;
    return SNUG_OK;
}

/* Whether each of its numbers can be made without the others. */
static bool is_open_recipe(const snug_tensor *t) {
    return t->state == SN_RECIPE && t->recipe.kind <= SN_RECIPE_TRUNCATED;
}

snug_status snug_tensor_read(snug_tensor *t, void *to, size_t bytes, snug_error *err) {
    SNUG_NEEDS(err, t);
    sn_storage *in;
    size_t have, offset;
    SNUG_TRY(snug_type_bytes(&t->type, &have, err));
    if (bytes != have)
        return sn_fail(err, SNUG_E_INVALID, "a tensor of %zu bytes is read into %zu", have, bytes);
    const snug_status status = settle(t, &in, &offset, err);
    if (status == SNUG_E_BUDGET && is_open_recipe(t)) /* no room for bytes of its own */
        return fill(t->r->engine, &t->recipe, &t->type, to, err);
    if (status != SNUG_OK)
        return status;
    return sn_storage_read(t->r, in, offset, to, bytes, err);
}

snug_status snug_tensor_read_part(snug_tensor *t, int64_t first, int64_t n, void *to,
                                  snug_error *err) {
    SNUG_NEEDS(err, t && to);
    const int64_t count = sn_type_count(&t->type);
    const size_t element = snug_dtype_bytes(t->type.dtype);
    sn_storage *in;
    size_t offset;
    if (first < 0 || n < 0 || first > count || n > count - first)
        return sn_fail(err, SNUG_E_INVALID,
                       "%lld elements from %lld on are read of a tensor that has %lld",
                       (long long)n, (long long)first, (long long)count);
    SNUG_TRY(check_traced(t, err));
    if (t->state == SN_PENDING)
        SNUG_TRY(sn_seat_flush(t->r, t->rec, err));
    if (is_open_recipe(t))
        return sn_recipe_fill(&t->recipe, (size_t)first, (size_t)n, t->type.dtype, to, err);
    SNUG_TRY(settle(t, &in, &offset, err));
    return sn_storage_read(t->r, in, offset + (size_t)first * element, to, (size_t)n * element,
                           err);
}

/* Bytes of its own: a variable's may be written. */
static snug_status copy_version(snug_tensor *t, snug_error *err) {
    snug_variable *v = t->variable;
    sn_storage *s;
    SNUG_TRY(sn_storage_create(t->r, SN_MEM_TENSORS, v->storage->bytes, &s, err));
    snug_status status = sn_storage_read(t->r, v->storage, 0, s->data, s->bytes, err);
    if (status == SNUG_OK && sn_tensor_tapes(t) != 0)
        status = sn_recording_version(t->r->main, t, s, err);
    if (status == SNUG_OK)
        sn_tensor_make_ready(t, s, 0);
    else
        sn_storage_drop(t->r, s);
    return status;
}

snug_status snug_tensor_pin(snug_tensor *t, snug_view *out, snug_error *err) {
    SNUG_NEEDS(err, t && out);
    sn_storage *in;
    size_t offset;
    SNUG_TRY(settle(t, &in, &offset, err));
    if (t->state == SN_VERSION)
        SNUG_TRY(copy_version(t, err));
    SNUG_TRY(sn_storage_to_host(t->r, t->storage, err));
    *out = (snug_view){.data = (char *)t->storage->data + t->offset, .type = t->type};
    SNUG_TRY(snug_type_bytes(&t->type, &out->bytes, err));
    t->storage->pins++;
    t->pins++;
    t->refs++;
    return SNUG_OK;
}

void snug_tensor_unpin(snug_tensor *t) {
    if (!t)
        return;
    t->pins--;
    sn_storage_unpin(t->r, t->storage);
    snug_tensor_drop(t);
}

/* --- variables -------------------------------------------------------------------------------- */
/* What an optimizer would keep a slot of. */
static size_t weight_bytes(const snug_variable *v) {
    size_t bytes;
    const bool counts = v->trainable && !v->slot;
    return counts && snug_type_bytes(&v->type, &bytes, NULL) == SNUG_OK ? bytes : 0;
}

static void free_variable(snug_variable *v) {
    snug_recorder *r = v->r;
    r->weight_bytes -= weight_bytes(v);
    sn_storage_drop(r, v->storage);
    sn_source_drop(sn_recipe_source(&v->init));
    sn_free(r->engine, SN_MEM_MODEL, v->name, v->name_bytes);
    sn_free(r->engine, SN_MEM_MODEL, v, sizeof *v);
    r->live_tensors--;
    sn_recorder_let_go(r);
}

void sn_variable_use(snug_variable *v) {
    v->uses++;
}

void sn_variable_unuse(snug_variable *v) {
    if (--v->uses == 0 && v->refs == 0)
        free_variable(v);
}

void snug_variable_hold(snug_variable *v) {
    if (!v)
        return;
    v->refs++;
}

void snug_variable_drop(snug_variable *v) {
    if (v && --v->refs == 0 && v->uses == 0)
        free_variable(v);
}

snug_status sn_record_variable(snug_recorder *r, const snug_type *type, const sn_recipe *init,
                               const snug_record_variable_options *o, snug_variable **out,
                               snug_error *err) {
    void *block, *name;
    const char *text = o && o->name ? o->name : "variable";
    const size_t bytes = strlen(text) + 1;
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(sn_alloc(r->engine, SN_MEM_MODEL, sizeof **out, &block, err));
    const snug_status status = sn_alloc(r->engine, SN_MEM_MODEL, bytes, &name, err);
    if (status != SNUG_OK) {
        sn_free(r->engine, SN_MEM_MODEL, block, sizeof **out);
        return status;
    }
    memcpy(name, text, bytes);
    *out = block;
    **out = (snug_variable){.r = r,
                            .refs = 1,
                            .id = r->n_variables++,
                            .type = *type,
                            .name = name,
                            .name_bytes = bytes,
                            .trainable = !(o && o->not_trainable),
                            .slot = o && o->is_slot,
                            .on_host = r->on_host,
                            .init = *init};
    sn_source_hold(sn_recipe_source(init));
    r->weight_bytes += weight_bytes(*out);
    r->live_tensors++;
    return SNUG_OK;
}

snug_status sn_variable_torn(const snug_variable *v, snug_error *err) {
    return sn_fail(err, SNUG_E_TORN,
                   "variable '%s' was being written when a run stopped; assign it to go on",
                   v->name);
}

snug_status sn_variable_storage(snug_variable *v, snug_error *err) {
    if (v->torn && !v->mended)
        return sn_variable_torn(v, err);
    if (v->storage)
        return SNUG_OK;
    size_t bytes;
    sn_storage *s;
    SNUG_TRY(snug_type_bytes(&v->type, &bytes, err));
    SNUG_TRY(sn_storage_create(v->r, v->slot ? SN_MEM_SLOTS : SN_MEM_WEIGHTS, bytes, &s, err));
    snug_status status = SNUG_OK;
    if (v->type.dtype == SNUG_BOOL)
        memset(s->data, v->init.a != 0, bytes);
    else
        status = fill(v->r->engine, &v->init, &v->type, s->data, err);
    if (status != SNUG_OK)
        sn_storage_drop(v->r, s);
    else
        v->storage = s;
    if (status == SNUG_OK && v->slot)
        sn_storage_enter_slots(v->r, s);
    return status;
}

/* What they had is lost. */
static void poison_readers(snug_variable *v) {
    snug_error why;
    (void)sn_variable_torn(v, &why);
    sn_poison *p = sn_poison_create(v->r, &why);
    sn_variable_use(v);
    while (v->readers)
        sn_tensor_poison(v->readers, p);
    sn_variable_unuse(v);
    drop_poison(v->r, p);
}

snug_status sn_variable_mark(const snug_variable *v, sn_recording *rec, sn_value version,
                             snug_error *err) {
    for (const snug_tensor *t = v->readers; t; t = t->next_reader)
        SNUG_TRY(sn_marks_add(rec->r, &rec->tapes[version.i], sn_tensor_tapes(t), err));
    return SNUG_OK;
}

void sn_variable_detach(snug_variable *v, sn_recording *rec, sn_value version) {
    if (v->torn && !v->mended)
        poison_readers(v);
    while (v->readers) {
        snug_tensor *t = v->readers;
        sn_variable_use(v); /* until the handle is in the recording, which holds it, too */
        leave_state(t);
        t->state = SN_PENDING;
        sn_recording_link(rec, t, version);
        sn_variable_unuse(v);
    }
}

const snug_type *snug_variable_type(const snug_variable *v) {
    return v ? &v->type : NULL;
}

const char *snug_variable_name(const snug_variable *v) {
    if (!v)
        return NULL;
    return v->name;
}

int snug_variable_is_trainable(const snug_variable *v) {
    if (!v)
        return 0;
    return v->trainable;
}

void snug_variable_set_trainable(snug_variable *v, int trainable) {
    if (!v)
        return;
    v->r->weight_bytes -= weight_bytes(v);
    v->trainable = trainable != 0;
    v->r->weight_bytes += weight_bytes(v);
}
