/* support.h: what all tests share: an engine that must end empty, statuses that fail with their
 * text, and sweeps that fail each request in turn.
 *
 *     static void test_graph_survives_any_failed_request(void **state) {
 *         sn_fault_sweep(build_small_graph, NULL);       // snug_status build_small_graph(engine,
 *         ctx, err)
 *     } */
#ifndef SN_TESTS_SUPPORT_H
#define SN_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory/engine.h"

/* Setup and teardown for cmocka_unit_test_setup_teardown: *state is a snug_engine without a budget.
 * The teardown fails the test when any byte is still on the ledger. */
int sn_engine_setup(void **state);
int sn_engine_teardown(void **state);
#define engine_test(f) cmocka_unit_test_setup_teardown(f, sn_engine_setup, sn_engine_teardown)

/* An engine of the test's own, and its end with the same check. */
snug_engine *sn_test_engine(size_t budget_bytes);
void sn_test_engine_end(snug_engine *e);

/* Fail the test, at the caller's line, with err's text when the status is another. err is passed as
 * it was given to the call. */
#define expect_ok(status, err) sn_expect_status((status), SNUG_OK, (err), __FILE__, __LINE__)
#define expect_status(status, wanted, err)                                                         \
    sn_expect_status((status), (wanted), (err), __FILE__, __LINE__)
void sn_expect_status(snug_status got, snug_status wanted, const snug_error *err, const char *file,
                      int line);

/* Within the tolerance, else the test fails and shows both. */
#define expect_real(got, wanted, tolerance)                                                        \
    sn_expect_real((got), (wanted), (tolerance), __FILE__, __LINE__)
void sn_expect_real(double got, double wanted, double tolerance, const char *file, int line);

/* The text contains the piece, else the test fails and shows both. */
#define expect_text(text, piece) sn_expect_text((text), (piece), __FILE__, __LINE__)
void sn_expect_text(const char *text, const char *piece, const char *file, int line);

/* A scenario makes, uses and destroys everything it needs, and gives back the first status that is
 * not OK. */
typedef snug_status (*sn_scenario)(snug_engine *e, void *ctx, snug_error *err);

/* Runs the scenario with memory request N = 0, 1, 2, ... failing, once and for good, until none
 * fails. A run in which one did must end in SNUG_E_MEMORY, with the ledger at zero; in SNUG_OK only
 * where a row of support/faults.c says why. The last, without a fault, ends in SNUG_OK. */
#define sn_fault_sweep(scenario, ...)                                                              \
    sn_fault_sweep_memory_of(__FILE_NAME__, #scenario, (scenario), __VA_ARGS__)

/* The same with the calls of the I/O table: errors (EIO, ENOSPC, EROFS) must end in SNUG_E_IO or
 * SNUG_E_FORMAT, or have a row; short transfers must end in SNUG_OK. */
#define sn_fault_sweep_io(scenario, ...)                                                           \
    sn_fault_sweep_io_of(__FILE_NAME__, #scenario, (scenario), __VA_ARGS__)

/* For a loop of a test's own, before it disarms: the same about a run that ended in this status. */
#define sn_fault_expect_told(e, name, status) sn_fault_told_of(__FILE_NAME__, (name), (e), (status))

void sn_fault_sweep_memory_of(const char *file, const char *name, sn_scenario scenario, void *ctx);
void sn_fault_sweep_io_of(const char *file, const char *name, sn_scenario scenario, void *ctx);
void sn_fault_told_of(const char *file, const char *name, const snug_engine *e, snug_status status);

/* Text that grows, and the writer that fills it; release with sn_text_end. text is never NULL. */
typedef struct {
    char *text;
    size_t n;
} sn_text;
sn_text sn_text_begin(void);
snug_writer sn_text_writer(sn_text *t); /* t must stay where it is */
void sn_text_end(sn_text *t);

/* A fresh directory for files, removed with the files in it (one level) by sn_test_dir_end. */
typedef struct {
    char path[64];
} sn_test_dir;
void sn_test_dir_begin(sn_test_dir *d);
void sn_test_dir_end(const sn_test_dir *d);
/* Entries of a folder; of /proc/self/fd and /proc/self/task: open files and threads, to compare. */
int sn_test_entries(const char *folder);
/* "DIR/name"; text holds >= 256. */
const char *sn_test_path(const sn_test_dir *d, const char *name, char *text);
void sn_test_write_file(const char *path, const void *bytes, size_t n);
/* How many entries the directory has. */
int sn_test_dir_count(const sn_test_dir *d);

#endif
