/* engine.c: making and ending an engine: the allocator, the I/O table and the thread count it was
 * given or the system's own.
 *
 * Invariants:
 * 1. Tables given by the caller are copied; a table with a missing function is refused at once, not
 *    called. */
#include "memory/private.h"

#include "base/file.h"
#include "memory/limits.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *system_alloc(void *ctx, size_t bytes, size_t align) {
    (void)ctx;
    void *p = NULL;
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

static void system_free(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    free(block);
}

/* Cores this process may run on: taskset or a cpuset often allows fewer than the machine has. */
static int count_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    /* More cores than cpu_set_t has bits. */
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 65536 ? (int)n : 1;
}

static snug_status check_options(const snug_engine_options *o, snug_error *err) {
    if (o->n_threads < 0)
        return sn_fail(err, SNUG_E_INVALID, "n_threads is %d; use 0 for one per core",
                       o->n_threads);
    if (o->allocator && (!o->allocator->alloc || !o->allocator->free))
        return sn_fail(err, SNUG_E_INVALID,
                       "the allocator lacks alloc or free; give both or no allocator");
    const snug_io *io = o->io;
    if (io && (!io->open || !io->pread || !io->pwrite || !io->size || !io->sync || !io->close ||
               !io->rename || !io->unlink || !io->mkdir))
        return sn_fail(err, SNUG_E_INVALID,
                       "the I/O table lacks a function; fill all of it or give none");
    if (io && (!io->folder != !io->reserve || !io->reserve != !io->forget))
        return sn_fail(err, SNUG_E_INVALID,
                       "the I/O table has some of folder, reserve and forget; give all or none");
    return SNUG_OK;
}

snug_status snug_engine_create(const snug_engine_options *options, snug_engine **out,
                               snug_error *err) {
    static const snug_engine_options defaults;
    static const snug_allocator system_allocator = {NULL, system_alloc, system_free};
    if (!out)
        return sn_fail(err, SNUG_E_INVALID, "snug_engine_create: out must not be NULL");
    const snug_engine_options *o = options ? options : &defaults;
    SNUG_TRY(check_options(o, err));
    const snug_allocator allocator = o->allocator ? *o->allocator : system_allocator;
    snug_engine *e = allocator.alloc(allocator.ctx, sizeof *e, SN_ALLOC_ALIGN);
    if (!e)
        return sn_fail(err, SNUG_E_MEMORY,
                       "the allocator has no %zu bytes for an engine; free memory", sizeof *e);
    *e = (snug_engine){
        .allocator = allocator,
        .foreign = o->allocator != NULL,
        .io = o->io ? *o->io : sn_io_system,
        .n_threads =
            o->n_threads > 0 ? o->n_threads : sn_limits_threads(&sn_io_system, count_cores()),
        .budget_bytes = o->budget_bytes,
    };
    if (pthread_mutex_init(&e->ledger_mutex, NULL) != 0 ||
        pthread_mutex_init(&e->team_mutex, NULL) != 0 ||
        pthread_mutex_init(&e->idle_mutex, NULL) != 0 ||
        pthread_mutex_init(&e->pool.mutex, NULL) != 0) {
        allocator.free(allocator.ctx, e, sizeof *e);
        return sn_fail(err, SNUG_E_MEMORY, "the system has no mutex for an engine; free memory");
    }
    sn_fault_wrap_io(e);
    *out = e;
    return SNUG_OK;
}

void snug_engine_destroy(snug_engine *engine) {
    if (!engine)
        return;
    sn_engine_attach(engine, NULL, NULL);
    const snug_allocator allocator = engine->allocator;
    pthread_mutex_destroy(&engine->ledger_mutex);
    pthread_mutex_destroy(&engine->team_mutex);
    pthread_mutex_destroy(&engine->idle_mutex);
    pthread_mutex_destroy(&engine->pool.mutex);
    allocator.free(allocator.ctx, engine, sizeof *engine);
}

void sn_engine_attach(snug_engine *e, void *object, void (*destroy)(void *object)) {
    if (e->attached)
        e->destroy_attached(e->attached);
    e->attached = object;
    e->destroy_attached = destroy;
}

void *sn_engine_attached(const snug_engine *e) {
    return e->attached;
}

const sn_rates *sn_engine_rates(const snug_engine *e) {
    return e->measured ? &e->rates : NULL;
}

void sn_engine_set_rates(snug_engine *e, const sn_rates *r) {
    e->rates = *r;
    e->measured = true;
}

snug_status snug_budget(snug_engine *engine, size_t bytes, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_budget: engine must not be NULL");
    sn_ledger_lock(engine);
    engine->process_budget_bytes = bytes;
    sn_gate_set(engine);
    sn_ledger_unlock(engine);
    return SNUG_OK;
}

size_t snug_budget_bytes(const snug_engine *engine) {
    if (!engine)
        return 0;
    return engine->process_budget_bytes;
}

int snug_engine_threads(const snug_engine *engine) {
    if (!engine)
        return 0;
    return engine->n_threads;
}

const snug_io *sn_engine_io(const snug_engine *e) {
    return &e->guarded_io;
}

snug_status snug_spill(snug_engine *engine, const char *folder, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_spill: engine must not be NULL");
    if (!folder) {
        engine->spill_folder[0] = '\0';
        return SNUG_OK;
    }
    if (!folder[0] || strlen(folder) >= sizeof engine->spill_folder)
        return sn_fail(err, SNUG_E_INVALID,
                       "a folder to spill to has 1 to %zu letters in its name, not %zu",
                       sizeof engine->spill_folder - 1, strlen(folder));
    SNUG_TRY(sn_file_check_folder(&engine->guarded_io, folder, 0, err));
    memcpy(engine->spill_folder, folder, strlen(folder) + 1);
    return SNUG_OK;
}

const char *sn_engine_spill_folder(const snug_engine *e) {
    return e->spill_folder[0] ? e->spill_folder : NULL;
}

/* In the order in which they are taken one within another. */
void snug_engine_before_fork(snug_engine *engine) {
    if (!engine)
        return;
    pthread_mutex_lock(&engine->idle_mutex);
    pthread_mutex_lock(&engine->team_mutex);
    pthread_mutex_lock(&engine->pool.mutex);
    pthread_mutex_lock(&engine->ledger_mutex);
}

void snug_engine_after_fork(snug_engine *engine) {
    if (!engine)
        return;
    pthread_mutex_unlock(&engine->ledger_mutex);
    pthread_mutex_unlock(&engine->pool.mutex);
    pthread_mutex_unlock(&engine->team_mutex);
    pthread_mutex_unlock(&engine->idle_mutex);
}
