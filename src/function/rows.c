/* rows.c: the table of functions, and what is asked of it by name. A row's build function stands in
 * the room whose builders it is made of: here, or beside the layers in nn. */
#include "function/function_call.h"

#include "base/setting_text.h"

#include <string.h>

#define STRICT        SNUG_FUNCTION_STRICT
#define PROMOTES      SNUG_FUNCTION_PROMOTES
#define ROUNDS        (SNUG_FUNCTION_PROMOTES | SNUG_FUNCTION_ROUNDS)
#define DRAWS         SNUG_FUNCTION_DRAWS
#define SEEDED        SNUG_FUNCTION_SEEDED
#define PLACES        SNUG_FUNCTION_PLACES
#define PLACES_BEHIND SNUG_FUNCTION_PLACES_BEHIND
#define SUMS          SNUG_FUNCTION_SUMS
#define EXTENTS       SNUG_FUNCTION_EXTENTS
#define SCALES        SNUG_FUNCTION_SCALES
#define BROADCASTS    SNUG_FUNCTION_BROADCASTS
#define SHAPED        SNUG_FUNCTION_SHAPED
#define RANK          SNUG_FUNCTION_RANK

#define SNUG_FN(build, traits, names, signature, about) void sn_fn_##build(sn_fn_call *c);
#include "function/functions.def"
#undef SNUG_FN

static const sn_fn_row rows[] = {
#define SNUG_FN(build, traits, names, signature, about)                                            \
    {{names, signature, about, traits}, sn_fn_##build},
#include "function/functions.def"
#undef SNUG_FN
};
#define N_ROWS ((int)(sizeof rows / sizeof *rows))

int snug_function_count(void) {
    return N_ROWS;
}

const snug_function_info *snug_function_at(int function) {
    return function >= 0 && function < N_ROWS ? &rows[function].info : NULL;
}

const sn_fn_row *sn_function_row(int function) {
    return &rows[function];
}

int snug_function_find(const char *name, int *function) {
    if (!name)
        return 0;
    for (int i = 0; i < N_ROWS; i++)
        if (sn_text_has(rows[i].info.names, name)) {
            *function = i;
            return 1;
        }
    return 0;
}

bool sn_signature_at(const char *signature, int i, sn_fn_entry *out) {
    for (; i > 0 && *signature; i--) {
        signature += strcspn(signature, " ");
        signature += strspn(signature, " ");
    }
    if (!*signature)
        return false;
    const size_t n = strcspn(signature, ":");
    out->takes_rest = *signature == '*';
    out->name = signature + out->takes_rest;
    out->n = (int)n - out->takes_rest;
    out->kind = signature[n] ? signature[n + 1] : 0;
    out->has_default = memchr(signature, '=', strcspn(signature, " ")) != NULL;
    return true;
}
