/* say.c: printf to a writer, through a buffer on the stack. */
#include "base/real.h"
#include "base/say.h"

#include <stdarg.h>
#include <stdio.h>

snug_status sn_say(const snug_writer *w, snug_error *err, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        return sn_fail(err, SNUG_E_INTERNAL, "a text could not be formatted");
    return w->write(w->ctx, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, err);
}
