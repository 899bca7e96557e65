/* real.h: real numbers in files and settings. printf and strtod write and want a comma where the
 * host program's locale says so; these never do. */
#ifndef SN_BASE_REAL_H
#define SN_BASE_REAL_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define SN_REAL_TEXT 32 /* bytes that hold any number */

/* As %.*g does: 17 digits are exact, sn_real_parse gives the same bits back. Returns text. */
const char *sn_real_print(double v, int digits, char text[SN_REAL_TEXT]);

/* snprintf and vsnprintf with a decimal point under every locale: what prints real numbers anywhere
 * in the library. */
int sn_print(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int sn_print_list(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* A number ("1.5", "-2e-3", "inf", "nan") at the very start of text; *end is set behind it. False
 * when there is none, or one of more than 100 characters. */
bool sn_real_parse(const char *text, const char **end, double *out);

/* v as texts show it: a NaN's sign depends on the processor and says nothing, so it goes. */
static inline double sn_shown(double v) {
    return isnan(v) ? fabs(v) : v;
}

#endif
