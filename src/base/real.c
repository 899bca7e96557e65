/* real.c: real numbers as text, the same under every locale: the C library converts, its decimal
 * point is put in the place of '.' before and taken out after. */
#include "base/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHARACTERS = 100, POINT_BYTES = 16 };

/* What numbers are written with. A locale's point is none of it, or it is '.' itself. */
static const char parts[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

const char *sn_real_print(double v, int digits, char text[SN_REAL_TEXT]) {
    snprintf(text, SN_REAL_TEXT, "%.*g", digits, v);
    char *point = text + strspn(text, parts);
    const char *rest = strpbrk(point, parts);
    if (rest) {
        memmove(point + 1, rest, strlen(rest) + 1);
        *point = '.';
    }
    return text;
}

/* n characters of text with the locale's decimal point in the place of '.'; returns by how many it
 * grew. */
static size_t localise(const char *text, size_t n, char *out) {
    char half[POINT_BYTES + 3]; /* "0.5" in the locale: the point is what is between the digits */
    snprintf(half, sizeof half, "%.1f", 0.5);
    const size_t before = strcspn(text, "."), n_point = strlen(half) - 2;
    const bool has_point = before < n;
    memcpy(out, text, n);
    if (has_point) {
        memcpy(out + before, half + 1, n_point);
        memcpy(out + before + n_point, text + before + 1, n - before - 1);
    }
    const size_t grown = has_point ? n_point - 1 : 0;
    out[n + grown] = '\0';
    return grown;
}

bool sn_real_parse(const char *text, const char **end, double *out) {
    char local[MOST_CHARACTERS + POINT_BYTES];
    const size_t n = strspn(text, parts);
    if (n == 0 || n > MOST_CHARACTERS)
        return false;
    const size_t grown = localise(text, n, local);
    char *stop;
    const double v = strtod(local, &stop);
    if (stop == local)
        return false;
    /* A number that ends before its point ends where the text has no point either. */
    const size_t used = (size_t)(stop - local);
    *out = v;
    *end = text + (used > strcspn(text, ".") ? used - grown : used);
    return true;
}
