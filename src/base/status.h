/* status.h: making errors. SNUG_TRY returns early; use it only while the function owns nothing. */
#ifndef SN_BASE_STATUS_H
#define SN_BASE_STATUS_H

#include <snug/status.h>

/* Fills err (may be NULL) with code and printf-style text; returns code. */
snug_status sn_fail(snug_error *err, snug_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with what is behind it. */
snug_status sn_fail_by(snug_error *err, snug_status code, snug_cause by, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "prefix: " before the text already in err (cut at the end when full); its code, cause and
 * number stay. Returns err's code or `code`. */
snug_status sn_fail_in(snug_error *err, snug_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define SNUG_TRY(call)                                                                             \
    do {                                                                                           \
        const snug_status try_status = (call);                                                     \
        if (try_status != SNUG_OK)                                                                 \
            return try_status;                                                                     \
    } while (0)

/* The first line of a public function: what a caller must give, pointers above all. */
#define SNUG_NEEDS(err, given)                                                                     \
    do {                                                                                           \
        if (!(given))                                                                              \
            return sn_fail(err, SNUG_E_INVALID, "%s: give what it needs: %s", __func__, #given);   \
    } while (0)

#endif
