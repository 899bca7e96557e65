/* files.h: files for tests of readers: their bytes, damaged copies, and rows of "this file is
 * refused" as tests of their own.
 *
 *     const struct CMUnitTest tests[] = {
 *         refused_test("gap", open_it, &(my_row){...}),        // test_refuses_gap
 *     }; */
#ifndef SN_TESTS_FILES_H
#define SN_TESTS_FILES_H

#include "support/support.h"

/* A row of a table as a test of its own: f gets the row as *state. */
#define row_test(name, f, row)                                                                     \
    { name, f, NULL, NULL, (void *)(row) }

/* The whole file; free() it. Never NULL. */
unsigned char *sn_test_read_file(const char *path, size_t *n);

/* FNV-1a of bytes, for golden files too large to list. */
uint64_t sn_test_hash(const void *bytes, size_t n);

/* The file packed as one gzip member; free() it. */
unsigned char *sn_test_gzip(const void *bytes, size_t n, size_t *packed);

/* Opens, reads everything, closes: what a reader does with a file. Gives back the first status that
 * is not OK. */
typedef snug_status (*sn_test_reader)(snug_engine *e, const char *path, snug_error *err);

/* Each true prefix of the bytes must end in SNUG_E_FORMAT (with a text), and leave the ledger
 * empty. */
void sn_test_truncations(sn_test_reader read, const unsigned char *bytes, size_t n);

/* Random damage to one of the seeds, n_tries times: bytes changed, cut out, doubled, swapped in
 * from elsewhere, numbers replaced. Any status will do, but a failure has a text, and the ledger
 * ends empty. With SNUG_TEST_FULL set, 20 times as many. */
typedef struct {
    const unsigned char *bytes;
    size_t n;
} sn_test_seed;
void sn_test_mutations(sn_test_reader read, const sn_test_seed *seeds, size_t n_seeds, int n_tries);

#endif
