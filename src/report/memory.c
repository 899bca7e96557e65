/* memory.c: where the memory went: the ledger's rows, and the process as the system counts it.
 *
 * What the system counts and the ledger does not hold is code, libraries, stacks and the C heap of
 * the libraries; it is shown as one row, so that the column adds up to the measured total. */
#include "base/say.h"
#include "model/json.h"
#include "report/process.h"

#include <snug/train.h>
#include <stdio.h>

enum { MAX_ROWS = 256, SHOWN_OWNERS = 8 };

static snug_status print_row(const snug_writer *w, const char *name, size_t bytes, size_t peak,
                             snug_error *err) {
    char now_text[32], peak_text[32];
    return sn_say(w, err, "  %-44.44s %12s %12s\n", name,
                  snug_bytes_print(bytes, now_text, sizeof now_text),
                  snug_bytes_print(peak, peak_text, sizeof peak_text));
}

static snug_status print_text(snug_engine *e, const snug_memory_row *rows, size_t n,
                              const sn_process *p, const snug_writer *w, snug_error *err) {
    int owners = 0;
    const size_t held = snug_engine_bytes(e), peak = snug_engine_peak_bytes(e);
    SNUG_TRY(sn_say(w, err, "Where the memory went\n  %-44.44s %12s %12s\n", "", "now", "peak"));
    for (size_t i = 0; i < n; i++)
        if (!rows[i].owner[0] && rows[i].peak_bytes)
            SNUG_TRY(print_row(w, rows[i].category, rows[i].bytes, rows[i].peak_bytes, err));
    SNUG_TRY(print_row(w, "code, libraries, stacks, their heap",
                       p->resident_bytes > held ? p->resident_bytes - held : 0,
                       p->peak_bytes > peak ? p->peak_bytes - peak : 0, err));
    SNUG_TRY(
        print_row(w, "process, as the system counts it", p->resident_bytes, p->peak_bytes, err));
    for (size_t i = 0; i < n; i++) {
        char name[160];
        if (!rows[i].owner[0] || !rows[i].bytes || owners == SHOWN_OWNERS)
            continue;
        if (owners++ == 0)
            SNUG_TRY(sn_say(w, err, "Largest owners\n"));
        snprintf(name, sizeof name, "%s: %s", rows[i].category, rows[i].owner);
        SNUG_TRY(print_row(w, name, rows[i].bytes, rows[i].peak_bytes, err));
    }
    return SNUG_OK;
}

static snug_status print_json(const snug_memory_row *rows, size_t n, const sn_process *p,
                              const snug_writer *w, snug_error *err) {
    SNUG_TRY(sn_say(w, err, "{\"process_bytes\":%zu,\"process_peak_bytes\":%zu,\"rows\":[",
                    p->resident_bytes, p->peak_bytes));
    for (size_t i = 0; i < n; i++) {
        SNUG_TRY(
            sn_say(w, err, "%s{\"category\":\"%s\",\"owner\":", i ? "," : "", rows[i].category));
        SNUG_TRY(sn_json_string(w, rows[i].owner, err));
        SNUG_TRY(sn_say(w, err, ",\"bytes\":%zu,\"peak_bytes\":%zu}", rows[i].bytes,
                        rows[i].peak_bytes));
    }
    return sn_say(w, err, "]}\n");
}

snug_status snug_report_memory(snug_engine *engine, int style, const snug_writer *out,
                               snug_error *err) {
    snug_memory_row rows[MAX_ROWS];
    sn_process process;
    size_t n = snug_engine_memory(engine, rows, MAX_ROWS);
    sn_process_read(sn_engine_io(engine), &process);
    if (n > MAX_ROWS)
        n = MAX_ROWS;
    if (style & SNUG_REPORT_JSON)
        return print_json(rows, n, &process, out, err);
    return print_text(engine, rows, n, &process, out, err);
}
