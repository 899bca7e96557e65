/* real.c: real numbers as text, the same under every locale: the C library prints them in its
 * locale "C"; to read one, the locale's decimal point is put in the place of '.'. */
#include "base/real.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHARACTERS = 100, POINT_BYTES = 16 };

/* What numbers are written with. A locale's point is none of it, or it is '.' itself. */
static const char parts[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* The locale "C" is the C library's own: it is there, and asking for it allocates nothing. */
int sn_print_list(char *text, size_t size, const char *format, va_list args) {
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = plain ? uselocale(plain) : (locale_t)0;
    const int n = vsnprintf(text, size, format, args);
    if (before)
        uselocale(before);
    if (plain)
        freelocale(plain);
    return n;
}

int sn_print(char *text, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(text, size, format, args);
    va_end(args);
    return n;
}

const char *sn_real_print(double v, int digits, char text[SN_REAL_TEXT]) {
    sn_print(text, SN_REAL_TEXT, "%.*g", digits, v);
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
