/* text.h: a string that grows, as a writer of the library's text.
 *
 *     sn_test_text t = {0};
 *     const snug_writer w = sn_test_text_writer(&t);
 *     expect_ok(sn_graph_print(g, &w, &err), &err);
 *     expect_text(t.data, "matmul");
 *     sn_test_text_clear(&t); */
#ifndef SN_TESTS_TEXT_H
#define SN_TESTS_TEXT_H

#include <snug/engine.h>

typedef struct {
    char *data; /* ends with 0; NULL while nothing was written */
    size_t n, cap;
} sn_test_text;

snug_writer sn_test_text_writer(sn_test_text *t);
void sn_test_text_clear(sn_test_text *t);

#endif
