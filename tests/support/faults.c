/* faults.c: sweeps that make each request of a scenario fail in turn, and the list of those that
 * may fail without the scenario failing.
 *
 * Invariants:
 * 1. A sweep uses a fresh engine per run, so that one run's leak cannot hide in the next.
 * 2. What struck and was not told is a fault that was swallowed, unless a row says why not. */
#include "support/support.h"

#include <string.h>

/* A scenario with more requests than this is no small scenario: the sweep is quadratic. */
enum { MOST_FAULTS = 20000 };

/* Success is right although `what` (a call of the I/O table, or a category of memory) failed. Where
 * a category is also asked for what is needed, so many requests of the program's sweeps at most. */
typedef struct {
    const char *file, *scenario, *what;
    const char *reason;
    int most; /* 0: any number */
} forgiven_row;

#define READ "what was read is there already"
#define NO_FOLDER                                                                                  \
    "some folders cannot be opened (no right to read): the file is in place, and whole"
#define FOLDER_READ "a folder is only synced: its close has nothing to lose"
#define NAMELESS    "what is in a file without a name is gone with it anyway"
#define SPARE                                                                                      \
    "a recording that ended is kept for the next one; where it cannot be, a new one is made"
#define PRUNE   "what no tape needs goes with the recording, if not before"
#define CAPTURE "a run that cannot be captured is run call by call"
#define AGAIN                                                                                      \
    "what the card or the plans at hand have no room for is tried once more with this plan alone"

static const forgiven_row forgiven[] = {
    {"test_checkpoint.c", "read_some", "close of a file only read", READ, 0},
    {"test_checkpoint.c", "write_some", "open of a folder", NO_FOLDER, 0},
    {"test_checkpoint.c", "write_some", "close of a folder", FOLDER_READ, 0},
    {"test_data_files.c", "read_case", "close of a file only read", READ, 0},
    {"test_data_ops.c", "read_it", "close of a file only read", READ, 0},
    {"test_files.c", "write_and_read", "close of a file only read", READ, 0},
    {"test_model_arrays.c", "read_backward", "close of a file only read", READ, 0},
    {"test_model_arrays.c", "read_scenario", "close of a file only read", READ, 0},
    {"test_model_keras.c", "load_scenario", "close of a file only read", READ, 0},
    {"test_model_npz.c", "read_source", "close of a file only read", READ, 0},
    {"test_model_safetensors.c", "read_scenario", "close of a file only read", READ, 0},
    {"test_model_tools.c", "inspect_scenario", "close of a file only read", READ, 0},
    {"test_source.c", "use_sources", "close of a file only read", READ, 0},
    {"test_train.c", "live", "close of a file only read", READ, 0},
    {"test_train_model.c", "snug_model_load_weights", "close of a file only read", READ, 0},
    {"test_data_files.c", "write_case", "open of a folder", NO_FOLDER, 0},
    {"test_data_files.c", "write_case", "close of a folder", FOLDER_READ, 0},
    {"test_files.c", "write_and_read", "open of a folder", NO_FOLDER, 0},
    {"test_files.c", "write_and_read", "close of a folder", FOLDER_READ, 0},
    {"test_model_arrays.c", "write_scenario", "open of a folder", NO_FOLDER, 0},
    {"test_model_arrays.c", "write_scenario", "close of a folder", FOLDER_READ, 0},
    {"test_model_safetensors.c", "save_scenario", "open of a folder", NO_FOLDER, 0},
    {"test_model_safetensors.c", "save_scenario", "close of a folder", FOLDER_READ, 0},
    {"test_model_safetensors.c", "sn_safetensors_save", "open of a folder", NO_FOLDER, 0},
    {"test_model_tools.c", "make_scenario", "open of a folder", NO_FOLDER, 0},
    {"test_model_tools.c", "make_scenario", "close of a folder", FOLDER_READ, 0},
    {"test_train.c", "live", "open of a folder", NO_FOLDER, 0},
    {"test_train.c", "live", "close of a folder", FOLDER_READ, 0},
    {"test_train_memory.c", "train_in_company", "open of a folder", NO_FOLDER, 0},
    {"test_train_memory.c", "train_in_company", "close of a folder", FOLDER_READ, 0},
    {"test_model_arrays.c", "read_backward", "close", NAMELESS, 0},
    {"test_model_arrays.c", "read_backward", "unlink",
     "the unpacked rows are right; a name in the folder for temporary files is left", 0},
    {"test_spill.c", "use_a_file", "close", NAMELESS, 0},
    {"test_train_memory.c", "train_in_company", "close",
     "each line of the log was synced when it was written", 0},
    {"test_eager_memory.c", "train_small", "graph", SPARE, 2},
    {"test_eager_memory.c", "call_seeded", "graph", SPARE, 2},
    {"test_function_calls.c", "many_calls", "graph", SPARE, 5},
    {"test_gpu_record.c", "whole_recording", "graph", SPARE, 6},
    {"test_program.c", "all_of_it", "graph", SPARE, 3},
    {"test_record.c", "small_program", "graph", SPARE, 3},
    {"test_record_direct.c", "long_chain", "graph", SPARE, 2},
    {"test_record_direct.c", "taped_chain", "graph", SPARE, 4},
    {"test_record_direct.c", "taped_chain", "tapes", PRUNE, 1},
    {"test_record_life.c", "long_program", "graph", SPARE, 5},
    {"test_record_sets.c", "crowded_program", "graph", SPARE, 4},
    {"test_record_window.c", "go_on", "graph", SPARE, 6},
    {"test_record.c", "small_program", "tapes", PRUNE, 1},
    {"test_record_life.c", "long_program", "tapes", PRUNE, 2},
    {"test_record_window.c", "go_on", "tapes", PRUNE, 1},
    {"test_gpu.c", "whole_training", "device", CAPTURE, 2},
    {"test_gpu.c", "whole_training", "kernels", CAPTURE, 2},
    {"test_gpu_record.c", "whole_recording", "device", AGAIN, 5},
    {"test_gpu_record.c", "whole_recording", "kernels", AGAIN, 6},
    {"test_gpu_record.c", "whole_recording", "plan", AGAIN, 2},
    {"test_data_streams.c", "threads", "stacks", "a map goes on with the workers it has", 0},
    {"test_data_streams.c", "threads", "input",
     "what had no memory beside others is done once more when nobody is beside it", 0},
};

static bool is_forgiven(const char *file, const char *scenario, const char *what) {
    static int seen[sizeof forgiven / sizeof forgiven[0]];
    for (size_t i = 0; i < sizeof forgiven / sizeof forgiven[0]; i++) {
        const forgiven_row *r = &forgiven[i];
        if (strcmp(r->file, file) == 0 && strcmp(r->scenario, scenario) == 0 &&
            strcmp(r->what, what) == 0)
            return ++seen[i] <= r->most || r->most == 0;
    }
    return false;
}

void sn_fault_told_of(const char *file, const char *name, const snug_engine *e,
                      snug_status status) {
    if (status != SNUG_OK || !sn_fault_fired(e) || is_forgiven(file, name, sn_fault_struck(e)))
        return;
    fail_msg("%s of %s: '%s' failed, and the run succeeded; tell the failure, or say in "
             "support/faults.c why it (and how often) needs no telling",
             name, file, sn_fault_struck(e));
}

/* One fault to arm. */
typedef struct {
    const char *file, *name; /* of the scenario */
    bool io;
    sn_fault_kind kind;
    bool for_good;
} fault;

static void arm(snug_engine *e, const fault *f, int64_t n) {
    if (f->io)
        sn_fault_io(e, n, f->kind, f->for_good);
    else
        sn_fault_memory(e, n, f->for_good);
}

static bool is_allowed(const fault *f, bool fired, snug_status status) {
    if (status == SNUG_OK)
        return true;
    if (!fired || (f->io && f->kind == SN_FAULT_SHORT))
        return false;
    return f->io ? status == SNUG_E_IO || status == SNUG_E_FORMAT : status == SNUG_E_MEMORY;
}

/* True when the fault struck, so that a later one may, too. */
static bool run_once(sn_scenario scenario, void *ctx, const fault *f, int64_t n) {
    snug_engine *e = sn_test_engine(0);
    arm(e, f, n);
    snug_error err = {0};
    const snug_status status = scenario(e, ctx, &err);
    const bool fired = sn_fault_fired(e);
    if (!is_allowed(f, fired, status))
        fail_msg("%s fault %lld (kind %d, %s) gave %s: %s", f->io ? "I/O" : "memory", (long long)n,
                 (int)f->kind, f->for_good ? "for good" : "once", snug_status_name(status),
                 err.text);
    if (!f->io || f->kind != SN_FAULT_SHORT)
        sn_fault_told_of(f->file, f->name, e, status);
    if (status != SNUG_OK && (err.code != status || err.text[0] == '\0'))
        fail_msg("%s without a text, or with the text of %s", snug_status_name(status),
                 snug_status_name(err.code));
    if (snug_engine_bytes(e) != 0)
        print_error("after %s fault %lld, %s:\n", f->io ? "I/O" : "memory", (long long)n,
                    f->for_good ? "for good" : "once");
    sn_test_engine_end(e);
    return fired;
}

/* Under sanitizers, where each run takes long, every fourth behind the first 100. */
static int64_t next_fault(int64_t n) {
#ifdef SN_REDZONES
    return n < 100 ? n + 1 : n + 4;
#else
    return n + 1;
#endif
}

static void sweep(sn_scenario scenario, void *ctx, const fault *f) {
    int64_t n = 0;
    while (run_once(scenario, ctx, f, n)) {
        n = next_fault(n);
        if (n > MOST_FAULTS)
            fail_msg("more than %d requests; use a smaller scenario", (int)MOST_FAULTS);
    }
    if (n == 0)
        fail_msg("the scenario makes no %s request: the sweep tests nothing",
                 f->io ? "I/O" : "memory");
}

void sn_fault_sweep_memory_of(const char *file, const char *name, sn_scenario scenario, void *ctx) {
    for (int good = 0; good < 2; good++)
        sweep(scenario, ctx, &(fault){file, name, .io = false, .for_good = good});
}

void sn_fault_sweep_io_of(const char *file, const char *name, sn_scenario scenario, void *ctx) {
    for (int kind = SN_FAULT_EIO; kind <= SN_FAULT_SHORT; kind++) {
        for (int good = 0; good < 2; good++)
            sweep(scenario, ctx, &(fault){file, name, true, (sn_fault_kind)kind, good});
    }
}
