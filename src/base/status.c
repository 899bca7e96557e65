/* status.c: status names, exit codes, and the filling of error objects.
 *
 * Invariants:
 * 1. Text never passes the end of err->text and always ends in NUL; too long a text is cut.
 * 2. err may be NULL everywhere; nothing here allocates. */
#include "base/real.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *meaning;
    int exit_code;
} status_row;

static const status_row rows[] = {
#define STATUS_ROW(name, exit_code, meaning) {"SNUG_" #name, meaning, exit_code},
    SNUG_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

/* A number that is no status (a caller's bug) is answered as if it were ours. */
static const status_row *find_row(snug_status status) {
    const size_t n = sizeof rows / sizeof rows[0];
    const size_t i = (size_t)status;
    return i < n ? &rows[i] : &rows[SNUG_E_INTERNAL];
}

const char *snug_status_name(snug_status status) {
    return find_row(status)->name;
}

const char *snug_status_meaning(snug_status status) {
    return find_row(status)->meaning;
}

int snug_status_exit_code(snug_status status) {
    return find_row(status)->exit_code;
}

const char *snug_version(void) {
    return SNUG_VERSION_TEXT;
}

static void fill(snug_error *err, snug_status code, snug_cause cause, const char *format,
                 va_list args) {
    err->code = code;
    err->cause = cause;
    err->number = 0;
    if (sn_print_list(err->text, sizeof err->text, format, args) < 0)
        err->text[0] = '\0';
}

snug_status sn_fail(snug_error *err, snug_status code, const char *format, ...) {
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    fill(err, code, SNUG_CAUSE_NONE, format, args);
    va_end(args);
    return code;
}

snug_status sn_fail_by(snug_error *err, snug_status code, snug_cause by, const char *format, ...) {
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    fill(err, code, by, format, args);
    va_end(args);
    return code;
}

snug_status sn_fail_in(snug_error *err, snug_status code, const char *format, ...) {
    if (!err)
        return code;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    old[sizeof old - 1] = '\0';
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(err->text, sizeof err->text, format, args);
    va_end(args);
    const size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - used, "%s%s", used > 0 ? ": " : "", old);
    /* err->code is only trusted to say more than `code` when it holds an error at all. */
    if (err->code == SNUG_OK) {
        err->code = code;
        err->cause = SNUG_CAUSE_NONE;
        err->number = 0;
    }
    return err->code;
}
