/* fuzz.h: what the fuzz targets share. A target is one file target_NAME.c with
 *
 *     FUZZ_TARGET(npz) {
 *         fuzz f;
 *         fuzz_begin(&f, bytes, n);                       // the input is the file FUZZ_FILE
 *         if (fuzz_ok(&f, snug_feed_open(f.engine, FUZZ_FILE, &feed, &f.err))) ...
 *         fuzz_end(&f, 4 * FUZZ_MIB);                     // all given back, never held more
 *     }
 *
 * libFuzzer takes one such file at a time (cmake/fuzz.cmake); test_fuzz_corpus.c has them all and
 * replays tests/fuzz/corpus. What is wrong ends in abort(), with a line that says what.
 *
 * Rules for every target: an error has a text and a code that an input can cause; nothing stays on
 * the ledger or open; no file is made but those that the target makes itself; the engine's peak
 * stays below a bound that the target tells. */
#ifndef SN_TESTS_FUZZ_H
#define SN_TESTS_FUZZ_H

#include "memory/engine.h"

#include <snug/data_ops.h>
#include <snug/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*fuzz_run)(const uint8_t *bytes, size_t n);
#ifdef SN_FUZZ_ALONE
#define FUZZ_TARGET(name)                                                                          \
    static void fuzz_##name(const uint8_t *bytes, size_t n);                                       \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);                                    \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {                                   \
        fuzz_##name(bytes, n);                                                                     \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz_##name(const uint8_t *bytes, size_t n)
#else
#define FUZZ_TARGET(name)                                                                          \
    void fuzz_##name(const uint8_t *bytes, size_t n);                                              \
    void fuzz_##name(const uint8_t *bytes, size_t n)
#endif

#define FUZZ_MIB    ((size_t)1 << 20)
#define FUZZ_BUDGET (64 * FUZZ_MIB)

/* Files in memory, the engine's only ones. Reads are short now and then. */
#define FUZZ_FILE  "/fuzz/f"
#define FUZZ_OTHER "/fuzz/other" /* for what a target writes */
#define FUZZ_FILES 24

typedef struct {
    char path[128]; /* "": free */
    uint8_t *bytes;
    size_t n, room;
} fuzz_file;

typedef struct {
    snug_engine *engine;
    snug_error err;
    size_t empty_bytes; /* on the ledger before the target did anything */
    snug_io io;
    fuzz_file files[FUZZ_FILES];
    int n_open;
    bool names_files; /* the input does, so a file may be missing */
} fuzz;

/* An engine with a budget and one thread; the input as FUZZ_FILE. f must stay where it is. */
void fuzz_begin(fuzz *f, const uint8_t *bytes, size_t n);
/* The input as several files, for readers of the system's files: parts in turn, which lines "---"
 * separate. */
void fuzz_begin_files(fuzz *f, const uint8_t *bytes, size_t n, const char *const *paths, int count);
void fuzz_end(fuzz *f, size_t most_bytes);
const fuzz_file *fuzz_find(const fuzz *f, const char *path);

/* Whether it was SNUG_OK; if not, that the error is one that an input can cause, with a text. */
bool fuzz_ok(const fuzz *f, snug_status status);
/* SNUG_OK, or the bug is ours: for what the target does itself. */
void fuzz_must(const fuzz *f, snug_status status);
/* fuzz_true(a == b, "what was read back"): else the target fails. */
#define fuzz_true(holds, what) fuzz_expect((holds), (what), __FILE__, __LINE__)
void fuzz_expect(bool holds, const char *what, const char *file, int line);

/* The bytes with a zero behind them, in a block of exactly that size; free() it. */
char *fuzz_text(const uint8_t *bytes, size_t n);
/* The next of the lines of a text, which is cut there; "" behind the last one. */
char *fuzz_line(char **at);

/* Text that something prints. */
typedef struct {
    char *text; /* ends with a zero; free() it */
    size_t n, room;
} fuzz_print;
snug_writer fuzz_writer(fuzz_print *p);

/* A function of data_ops.h: attrs are pairs of name and value, NULL ends them. How many parts came
 * out, which the target drops; 0: it failed. */
int fuzz_call(fuzz *f, const char *op, const char *const *attrs, const snug_datum *in, int n_in,
              snug_datum *out);
/* The same on a text, of which nothing is wanted. */
void fuzz_call_text(fuzz *f, const char *op, const char *const *attrs, const void *bytes, size_t n);
/* A text part: lent bytes. *text must stay where it is. */
snug_datum fuzz_text_part(snug_text *text, const void *bytes, size_t n);
void fuzz_drop(snug_datum *parts, int n);

#endif
