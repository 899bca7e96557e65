/* text.c: the growing string of the tests; it may use malloc, as the library's own memory may be
 * set to fail. */
#include "support/text.h"

#include <stdlib.h>
#include <string.h>

static snug_status append(void *ctx, const char *text, size_t n, snug_error *err) {
    sn_test_text *t = ctx;
    (void)err;
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * (t->n + n + 1);
        char *grown = realloc(t->data, t->cap);
        if (!grown)
            abort();
        t->data = grown;
    }
    memcpy(t->data + t->n, text, n);
    t->n += n;
    t->data[t->n] = '\0';
    return SNUG_OK;
}

snug_writer sn_test_text_writer(sn_test_text *t) {
    return (snug_writer){.ctx = t, .write = append};
}

void sn_test_text_clear(sn_test_text *t) {
    free(t->data);
    *t = (sn_test_text){0};
}
