/* memory.c: where the memory went: the ledger's rows and those of the process beside it, each
 * measured on its own. What is left of the system's count has no name; it is a row, too, so that
 * the column adds up. */
#include "base/file.h"
#include "base/say.h"
#include "memory/process.h"
#include "model/json.h"

#include <snug/device.h>
#include <snug/train.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 256, SHOWN_OWNERS = 8 };

/* What is known of the process and of its GPU (total 0: none), measured once. */
typedef struct {
    sn_process process;
    sn_process_table table;
    snug_device_info device;
} measured;

/* peak 0: nobody knows. */
static snug_status print_row(const snug_writer *w, const char *name, int64_t bytes, size_t peak,
                             snug_error *err) {
    char now_text[32], peak_text[32];
    const size_t size = (size_t)(bytes < 0 ? -bytes : bytes);
    snug_bytes_print(size, now_text, sizeof now_text);
    snug_bytes_print(peak, peak_text, sizeof peak_text);
    return sn_say(w, err, "  %-44.44s %s%*s %12s\n", name, bytes < 0 ? "-" : "",
                  bytes < 0 ? 11 : 12, now_text, peak ? peak_text : "");
}

/* The most a category ever held. */
static size_t peak_of(const snug_memory_row *rows, size_t n, const char *category) {
    for (size_t i = 0; i < n; i++)
        if (!rows[i].owner[0] && strcmp(rows[i].category, category) == 0)
            return rows[i].peak_bytes;
    return 0;
}

/* The ledger's categories first: they are what a user can change. */
static snug_status print_table(const snug_memory_row *rows, size_t n, const measured *m,
                               const snug_writer *w, snug_error *err) {
    const sn_process_table *t = &m->table;
    for (size_t k = 0; k < t->n; k++) {
        const sn_process_row *r = &t->rows[(k + SN_N_PROCESS) % t->n];
        const size_t peak = k < SN_N_CATEGORIES ? peak_of(rows, n, r->name) : 0;
        if (r->bytes > 0 || peak > 0)
            SNUG_TRY(print_row(w, r->name, (int64_t)r->bytes, peak, err));
    }
    SNUG_TRY(print_row(w, "without a name", t->residual_bytes, 0, err));
    return print_row(w, "process, as the system counts it", (int64_t)t->counted_bytes,
                     sn_process_counted_peak(&m->process), err);
}

/* Device memory is not the process's: a table of its own. */
static snug_status print_device(const snug_device_info *d, const snug_writer *w, snug_error *err) {
    const size_t ours = d->context_bytes + d->held_bytes;
    const size_t others = d->total_bytes - d->free_bytes - ours;
    SNUG_TRY(sn_say(w, err, "%s, %s\n", d->name, d->model));
    SNUG_TRY(print_row(w, d->watched ? "context" : "context, as it usually is",
                       (int64_t)d->context_bytes, 0, err));
    SNUG_TRY(print_row(w, "variables, arena, buffers", (int64_t)d->held_bytes, 0, err));
    SNUG_TRY(print_row(w, "this process", (int64_t)ours, 0, err));
    SNUG_TRY(print_row(w, "others", (int64_t)others, 0, err));
    return print_row(w, "free", (int64_t)d->free_bytes, 0, err);
}

static snug_status print_text(const snug_memory_row *rows, size_t n, const measured *m,
                              const snug_writer *w, snug_error *err) {
    int owners = 0;
    SNUG_TRY(sn_say(w, err, "Where the memory went\n  %-44.44s %12s %12s\n", "", "now", "peak"));
    SNUG_TRY(print_table(rows, n, m, w, err));
    for (size_t i = 0; i < n; i++) {
        char name[160];
        if (!rows[i].owner[0] || !rows[i].bytes || owners == SHOWN_OWNERS)
            continue;
        if (owners++ == 0)
            SNUG_TRY(sn_say(w, err, "Largest owners\n"));
        snprintf(name, sizeof name, "%s: %s", rows[i].category, rows[i].owner);
        SNUG_TRY(print_row(w, name, (int64_t)rows[i].bytes, rows[i].peak_bytes, err));
    }
    return m->device.total_bytes > 0 ? print_device(&m->device, w, err) : SNUG_OK;
}

static snug_status print_json(const snug_memory_row *rows, size_t n, const measured *m,
                              const snug_writer *w, snug_error *err) {
    const sn_process_table *t = &m->table;
    SNUG_TRY(sn_say(w, err,
                    "{\"process_bytes\":%zu,\"process_peak_bytes\":%zu,\"counted_bytes\":%zu,"
                    "\"counted_peak_bytes\":%zu,\"residual_bytes\":%lld,\"parts\":[",
                    m->process.resident_bytes, m->process.peak_bytes, t->counted_bytes,
                    sn_process_counted_peak(&m->process), (long long)t->residual_bytes));
    for (size_t i = 0; i < t->n; i++)
        SNUG_TRY(sn_say(w, err, "%s{\"name\":\"%s\",\"bytes\":%zu}", i ? "," : "", t->rows[i].name,
                        t->rows[i].bytes));
    SNUG_TRY(sn_say(w, err, "],\"rows\":["));
    for (size_t i = 0; i < n; i++) {
        SNUG_TRY(
            sn_say(w, err, "%s{\"category\":\"%s\",\"owner\":", i ? "," : "", rows[i].category));
        SNUG_TRY(sn_json_string(w, rows[i].owner, err));
        SNUG_TRY(sn_say(w, err, ",\"bytes\":%zu,\"peak_bytes\":%zu}", rows[i].bytes,
                        rows[i].peak_bytes));
    }
    SNUG_TRY(sn_say(w, err, "]"));
    if (m->device.total_bytes > 0)
        SNUG_TRY(sn_say(w, err,
                        ",\"device\":{\"name\":\"%s\",\"model\":\"%s\",\"total_bytes\":%zu,"
                        "\"free_bytes\":%zu,\"context_bytes\":%zu,\"held_bytes\":%zu,"
                        "\"budget_bytes\":%zu,\"watched\":%s}",
                        m->device.name, m->device.model, m->device.total_bytes,
                        m->device.free_bytes, m->device.context_bytes, m->device.held_bytes,
                        m->device.budget_bytes, m->device.watched ? "true" : "false"));
    return sn_say(w, err, "}\n");
}

snug_status snug_report_memory(snug_engine *engine, int style, const snug_writer *out,
                               snug_error *err) {
    SNUG_NEEDS(err, out);
    snug_memory_row rows[MAX_ROWS];
    measured m = {.device = {.total_bytes = 0}};
    SNUG_TRY(snug_device_look(engine, &m.device, err));
    size_t n = snug_engine_memory(engine, rows, MAX_ROWS);
    sn_process_measure(&sn_io_system, engine, &m.table);
    sn_process_read(&sn_io_system, &m.process);
    if (n > MAX_ROWS)
        n = MAX_ROWS;
    if (style & SNUG_REPORT_JSON)
        return print_json(rows, n, &m, out, err);
    return print_text(rows, n, &m, out, err);
}
