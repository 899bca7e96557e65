/* cli_text.c: errors, and text for terminals and JSON. Text may come from files: it is tamed before
 * it reaches a terminal. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

snug_status cli_fail(snug_error *err, snug_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->code = code;
    err->cause = SNUG_CAUSE_NONE;
    err->number = 0;
    return code;
}

void cli_print_plain(FILE *out, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        fputc((c < 0x20 && c != '\n') || c == 0x7f ? '?' : c, out);
    }
}

void cli_print_json_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

void cli_print_json_number(FILE *out, double v) {
    if (isfinite(v))
        fprintf(out, "%.9g", v);
    else
        fprintf(out, "null");
}

double cli_shown(double v) {
    return isnan(v) ? fabs(v) : v;
}

/* Of one or two letters nearly every short name could be made. */
int cli_near(const char *name) {
    return strlen(name) < 3 ? 2 : 3;
}

int cli_distance(const char *a, const char *b) {
    int row[32];
    const size_t n = strlen(b);
    if (n >= sizeof row / sizeof *row)
        return 99;
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int corner = row[0];
        row[0]++;
        for (size_t j = 0; j < n; j++) {
            const int change = corner + (a[i] != b[j]);
            const int one = 1 + (row[j] < row[j + 1] ? row[j] : row[j + 1]);
            corner = row[j + 1];
            row[j + 1] = change < one ? change : one;
        }
    }
    return row[n];
}
