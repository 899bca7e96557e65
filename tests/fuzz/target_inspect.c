/* Any file that `snug inspect` is given: a report, whose JSON form is JSON, or a reason. */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <snug/model.h>
#include <stdlib.h>

FUZZ_TARGET(inspect) {
    fuzz f;
    fuzz_begin(&f, bytes, n);
    for (int as_json = 0; as_json < 2; as_json++) {
        fuzz_print p;
        const snug_writer w = fuzz_writer(&p);
        if (fuzz_ok(&f, snug_inspect(f.engine, FUZZ_FILE, as_json, &w, &f.err)) && as_json) {
            json_t *tree = json_loadb(p.text, p.n, JSON_REJECT_DUPLICATES, NULL);
            fuzz_true(tree != NULL, "a report that is no JSON");
            json_decref(tree);
        }
        for (size_t i = 0; i < p.n && !as_json; i++)
            fuzz_true((unsigned char)p.text[i] >= ' ' || p.text[i] == '\n' || p.text[i] == '\t',
                      "a control character for the terminal");
        free(p.text);
    }
    fuzz_end(&f, 16 * FUZZ_MIB);
}
