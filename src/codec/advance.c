/* advance.c: how far long passes are (advance.h). */
#include "codec/advance.h"

#include "memory/pool.h"

#include <time.h>

#define EVERY_NS 100000000

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void report(const snug_engine *e, const sn_advance *p, int64_t now, int over) {
    const sn_reporter *t = sn_pool_reporter(e);
    static const char *const words[] = {[SNUG_PASS_LISTING] = "listing",
                                        [SNUG_PASS_SHUFFLE] = "shuffle buffer",
                                        [SNUG_PASS_CACHE] = "cache"};
    const double seconds = 1e-9 * (double)(now - p->began_ns);
    const snug_pass pass = {p->kind, words[p->kind], p->done, p->all, seconds, over};
    t->report(t->ctx, &pass);
}

void sn_advance_step(const snug_engine *e, sn_advance *p, snug_pass_kind kind, int64_t done,
                     int64_t all) {
    const sn_reporter *t = sn_pool_reporter(e);
    if (!t->report)
        return;
    const int64_t now = now_ns();
    if (!p->began_ns)
        p->began_ns = now;
    p->kind = kind;
    p->done = done;
    p->all = all;
    if (1e-9 * (double)(now - p->began_ns) < t->after_seconds || now - p->reported_ns < EVERY_NS)
        return;
    p->reported_ns = now;
    report(e, p, now, 0);
}

void sn_advance_end(const snug_engine *e, sn_advance *p) {
    if (p->reported_ns && sn_pool_reporter(e)->report)
        report(e, p, now_ns(), 1);
    *p = (sn_advance){0};
}

void snug_pipeline_progress(snug_engine *e, double after_seconds,
                            void (*each)(void *ctx, const snug_pass *pass), void *ctx) {
    if (!e)
        return;
    sn_pool_set_reporter(e, (sn_reporter){each, ctx, after_seconds});
}
