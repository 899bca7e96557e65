/* cli_process.c: what belongs to the process: its C heap, its signals and its standard output. */
#include "cli.h"

#include <malloc.h>
#include <signal.h>

/* One heap for all threads (each would get another, up to 64 MiB wide), and thresholds that stay
 * where they are (the C library moves them up with what it sees freed): what is freed goes back, so
 * that the same command takes the same bytes. The process's to choose, not the library's. */
void cli_settle_heap(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

/* The one global: a signal handler has no other way to speak. */
static volatile sig_atomic_t interrupted_by; /* the signal's number; 0: none */

static void on_interrupt(int signal_number) {
    interrupted_by = signal_number;
}

void cli_catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int cli_interrupted(void *ctx) {
    (void)ctx;
    return interrupted_by;
}

static snug_status write_stdout(void *ctx, const char *text, size_t n, snug_error *err) {
    snug_error unheard;
    (void)ctx;
    if (fwrite(text, 1, n, stdout) == n)
        return SNUG_OK;
    return cli_fail(err ? err : &unheard, SNUG_E_IO, "standard output cannot be written");
}

const snug_writer cli_stdout = {NULL, write_stdout};

/* Progress; that nobody reads it stops nothing. */
static snug_status write_stderr(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)ctx;
    (void)err;
    fwrite(text, 1, n, stderr);
    return SNUG_OK;
}

const snug_writer cli_stderr = {NULL, write_stderr};
