/* budget.c: "512MiB", "50%", "auto" -> bytes that this process may have.
 *
 * What there is: the smallest limit of the cgroups this process is in, or the machine's memory
 * where no group sets one.
 *
 * Invariants:
 * 1. The answer is above 0 and at most what there is: more would end in a kill.
 * 2. "auto" moves in steps (bands of a group, sixty-fourths of a machine), so that the same command
 *    on the same machine gets the same budget while others breathe. */
#include "memory/budget.h"

#include "base/bytes.h"
#include "base/file.h"
#include "memory/limits.h"
#include "memory/process.h"

#include <stdint.h>
#include <string.h>

/* Of the free memory, auto leaves this part to others. */
#define MARGIN_PART 16
#define STEP_PART   64
#define STEP_BYTES  ((size_t)4 << 20)

static size_t round_down(size_t n, size_t step) {
    return step > 0 ? n / step * step : n;
}

/* What the process may take in all, with what it holds already. */
static snug_status choose_auto(const snug_io *io, const sn_limits *l, size_t *bytes,
                               snug_error *err) {
    sn_process p;
    sn_process_read(io, &p);
    size_t free_bytes = SIZE_MAX;
    if (l->group_bytes < l->machine_bytes) {
        const size_t others =
            l->group_used > p.resident_bytes ? l->group_used - p.resident_bytes : 0;
        const size_t taken = round_down(others, STEP_BYTES);
        free_bytes = l->group_bytes > taken ? l->group_bytes - taken : 0;
    }
    if (l->available_bytes != SIZE_MAX) {
        const size_t margin = l->available_bytes / MARGIN_PART;
        size_t step = l->machine_bytes == SIZE_MAX ? 0 : l->machine_bytes / STEP_PART;
        step = round_down(step, STEP_BYTES);
        const size_t room = l->available_bytes - margin + p.resident_bytes;
        if (room < free_bytes) /* of a group on a machine that others have filled, too */
            free_bytes = room >= step ? round_down(room, step) : room;
    }
    if (free_bytes == SIZE_MAX)
        return sn_fail(err, SNUG_E_INVALID,
                       "budget auto: the system does not say how much memory is free (no "
                       "MemAvailable in /proc/meminfo); give a size like 512MiB");
    *bytes = free_bytes;
    return SNUG_OK;
}

static snug_status read_amount(const char *text, size_t have, size_t *bytes, snug_error *err) {
    if (!sn_bytes_share(text, have, bytes)) {
        const snug_status status = snug_bytes_parse(text, bytes, err);
        return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "budget");
    }
    if (have == SIZE_MAX)
        return sn_fail(err, SNUG_E_INVALID,
                       "budget %.32s: the system does not say how much memory there is; give a "
                       "size like 512MiB",
                       text);
    return SNUG_OK;
}

snug_status sn_budget_parse(const snug_io *io, const char *text, size_t *bytes, snug_error *err) {
    char have_text[32];
    const sn_limits l = sn_limits_read(io);
    const size_t have = l.group_bytes < l.machine_bytes ? l.group_bytes : l.machine_bytes;
    const char *whose = have == l.group_bytes ? "this cgroup may use" : "this machine has";
    size_t n = 0;
    snug_bytes_print(have, have_text, sizeof have_text);
    if (strcmp(text, "auto") == 0)
        SNUG_TRY(choose_auto(io, &l, &n, err));
    else
        SNUG_TRY(read_amount(text, have, &n, err));
    if (n == 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "budget %.32s is no byte of the %zu (%s) that %s; give a size like 512MiB",
                       text, have, have_text, whose);
    if (n > have || n == SIZE_MAX)
        return sn_fail(err, SNUG_E_INVALID,
                       "budget %.32s is more than the %zu bytes (%s) that %s; give at most that, "
                       "or auto",
                       text, have, have_text, whose);
    *bytes = n;
    return SNUG_OK;
}

snug_status snug_budget_parse(const char *text, size_t *bytes, snug_error *err) {
    if (!text || !bytes)
        return sn_fail(err, SNUG_E_INVALID, "snug_budget_parse: text and bytes must not be NULL");
    return sn_budget_parse(&sn_io_system, text, bytes, err);
}
