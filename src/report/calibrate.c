/* calibrate.c: measures the rates of this machine and keeps them in a small text file, one per
 * processor, instruction set and number of threads, in a folder the caller names; of an engine
 * with a GPU those of the card (calibrate_gpu.c), one file per card.
 *
 * Kernel rates come from probes: a rate becomes the built-in one times how much faster than
 * expected its probe ran. A probe finds its operands warm, which a step does not; `fit` is what
 * that was worth on the machine of the built-in numbers.
 *
 *     # snug rates, AMD EPYC 9654, avx512-2
 *     product 1.07e+11
 *     ...                                          every rate of base/rates.h, once */
#include "base/file.h"
#include "base/say.h"
#include "base/real.h"
#include "base/system.h"
#include "report/calibrate.h"
#include "report/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <snug/train.h>
#include <stdio.h>
#include <string.h>

/* --- what is measured ------------------------------------------------------------------------ */
typedef struct {
    sn_rate rate;
    sn_op op;
    snug_dtype dtype;
    int n_in;
    int64_t a[2], b[2]; /* dims of the inputs; b[1] 0: of rank 1 */
    double fit;         /* expected / measured, where the built-in numbers are right */
    bool all_threads;
} probe_row;

static const probe_row probes[] = {
    {SN_RATE_product, SN_OP_matmul, SNUG_F32, 2, {480, 480}, {480, 480}, 1.07, false},
    {SN_RATE_product_memory, SN_OP_matmul, SNUG_F32, 2, {16, 400000}, {400000, 16}, 1.7, false},
    {SN_RATE_loop, SN_OP_neg, SNUG_F32, 1, {2048, 1}, {0, 0}, 5.3, false},
    {SN_RATE_cache, SN_OP_add, SNUG_F32, 2, {1024, 128}, {1024, 128}, 1.13, false},
    {SN_RATE_memory, SN_OP_add, SNUG_F32, 2, {32768, 128}, {32768, 128}, 0.56, false},
    {SN_RATE_memory_all, SN_OP_add, SNUG_F32, 2, {32768, 128}, {32768, 128}, 0.56, true},
    {SN_RATE_math, SN_OP_gelu, SNUG_F32, 1, {32768, 1}, {0, 0}, 1.03, false},
    {SN_RATE_scalar, SN_OP_tan, SNUG_F32, 1, {8192, 1}, {0, 0}, 1.1, false},
    {SN_RATE_reference, SN_OP_matmul, SNUG_F64, 2, {64, 64}, {64, 64}, 1.13, false},
    {SN_RATE_call, SN_OP_neg, SNUG_F32, 1, {1, 1}, {0, 0}, 22, false},
};
enum { N_PROBES = sizeof probes / sizeof probes[0] };

static snug_status describe_probe(const probe_row *p, sn_opdesc *d, snug_error *err) {
    *d = (sn_opdesc){.op = p->op, .n_in = p->n_in};
    for (int i = 0; i < p->n_in; i++) {
        const int64_t *dims = i == 0 ? p->a : p->b;
        d->in[i] = (snug_type){.dtype = p->dtype, .rank = 2, .dims = {dims[0], dims[1]}};
    }
    sn_attrs_default(p->op, &d->attrs);
    return sn_op_infer(d, err);
}

static snug_status run_probe(snug_engine *e, const probe_row *p, sn_rates *r, snug_error *err) {
    const int n_threads = p->all_threads ? snug_engine_threads(e) : 1;
    sn_cpu_device cpu;
    sn_opdesc d;
    sn_variant v;
    double seconds = 0;
    sn_cpu_device_init(&cpu, n_threads, false);
    SNUG_TRY(describe_probe(p, &d, err));
    SNUG_TRY(cpu.device.describe(&cpu.device, &d, &v, err));
    SNUG_TRY(sn_probe_run(e, &d, n_threads, &seconds, err));
    const double faster = sn_cost_seconds(&cpu.device, &d, &v) / (p->fit * (seconds + 1e-12));
    double *rate = sn_rate_at(r, p->rate);
    *rate = p->rate == SN_RATE_call ? *rate / faster : *rate * faster;
    return SNUG_OK;
}

static void no_items(const void *ctx, int64_t first, int64_t end) {
    (void)ctx, (void)first, (void)end;
}

/* What it takes to share a loop; one thread never does. */
static snug_status measure_handoff(snug_engine *e, sn_rates *r, snug_error *err) {
    enum { RUNS = 200 };
    const int n = snug_engine_threads(e);
    sn_team *team;
    if (n < 2)
        return SNUG_OK;
    SNUG_TRY(sn_team_hold(e, &team, err));
    double least = 1;
    for (int i = 0; i < RUNS; i++) {
        const double start = sn_probe_now();
        sn_team_run(team, n, no_items, NULL);
        const double took = sn_probe_now() - start;
        least = took < least ? took : least;
    }
    sn_team_drop(e);
    r->handoff = least + 1e-6; /* and the worker's first look at its part */
    return SNUG_OK;
}

/* --- the spill file -------------------------------------------------------------------------- */
#define SPILL_PIECE ((size_t)4 << 20)
enum { SPILL_PIECES = 16 };

typedef snug_status (*move_piece)(sn_file *f, unsigned char *piece, int64_t at, snug_error *err);

static snug_status write_piece(sn_file *f, unsigned char *piece, int64_t at, snug_error *err) {
    SNUG_TRY(sn_file_write(f, piece, SPILL_PIECE, at, err));
    return sn_file_forget(f, SPILL_PIECE, at, err);
}

static snug_status read_piece(sn_file *f, unsigned char *piece, int64_t at, snug_error *err) {
    return sn_file_read(f, piece, SPILL_PIECE, at, err);
}

static snug_status move_pieces(sn_file *f, unsigned char *piece, move_piece move, double *rate,
                               snug_error *err) {
    const double start = sn_probe_now();
    for (int i = 0; i < SPILL_PIECES; i++)
        SNUG_TRY(move(f, piece, (int64_t)SPILL_PIECE * i, err));
    *rate = (double)SPILL_PIECE * SPILL_PIECES / (sn_probe_now() - start + 1e-9);
    return SNUG_OK;
}

static snug_status measure_spill(snug_engine *e, const char *folder, sn_rates *r, snug_error *err) {
    sn_file f;
    sn_block block;
    SNUG_TRY(
        sn_file_scratch(&f, sn_engine_io(e), folder, (int64_t)SPILL_PIECE * SPILL_PIECES, err));
    const sn_block_options populated = {.populate = true};
    snug_status status =
        sn_block_init(e, SN_MEM_OTHER, "calibration", SPILL_PIECE, &populated, &block, err);
    if (status == SNUG_OK) {
        status = move_pieces(&f, block.data, write_piece, &r->spill_write, err);
        if (status == SNUG_OK)
            status = move_pieces(&f, block.data, read_piece, &r->spill_read, err);
        sn_block_clear(&block);
    }
    sn_file_close(&f);
    return status;
}

/* --- the file -------------------------------------------------------------------------------- */
static void cpu_model(const snug_io *io, char *model, size_t size) {
    char text[4096];
    const char *at = strstr(sn_system_text(io, "/proc/cpuinfo", text, sizeof text), "model name");
    at = at ? strchr(at, ':') : NULL;
    snprintf(model, size, "%s", at ? at + 2 : "unknown");
    model[strcspn(model, "\n")] = 0;
}

static snug_status cpu_describe(const snug_engine *e, char *title, size_t size, char *kind,
                                size_t kind_size, snug_error *err) {
    (void)err;
    cpu_model(sn_engine_io(e), title, size);
    snprintf(kind, kind_size, "%s-%d", sn_cpu_isa(), snug_engine_threads(e));
    return SNUG_OK;
}

/* Of whom the rates are. */
static snug_status describe_machine(const snug_engine *e, char *title, size_t size, char *kind,
                                    size_t kind_size, snug_error *err) {
    return sn_calibration_of(e)->describe(e, title, size, kind, kind_size, err);
}

/* FOLDER/rates-ISA-THREADS-CPU.txt, FOLDER/rates-gpu-CARD.txt; processor and card by the hash of
 * their names. */
static snug_status file_of(const snug_engine *e, const char *folder, char *path, size_t size,
                           snug_error *err) {
    char title[128], kind[32];
    uint32_t h = 2166136261u;
    SNUG_TRY(describe_machine(e, title, sizeof title, kind, sizeof kind, err));
    for (const char *c = title; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    const int n = snprintf(path, size, "%s/rates-%s-%08" PRIx32 ".txt", folder, kind, h);
    if (n < 0 || (size_t)n >= size)
        return sn_fail(err, SNUG_E_INVALID,
                       "the folder of rates has a name of more than %zu bytes; name a nearer one",
                       size);
    return SNUG_OK;
}

static snug_status make_folder(const snug_io *io, const char *folder, snug_error *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s", folder);
    for (char *c = path + 1;; c++) {
        const char was = *c;
        if (was != '/' && was != 0)
            continue;
        *c = 0;
        const int made = io->mkdir(io->ctx, path, 0777);
        if (made < 0 && made != -EEXIST && was == 0)
            return sn_file_fail(path, "make the folder", -1, -made, err);
        *c = was;
        if (was == 0)
            return SNUG_OK;
    }
}

static snug_status write_rates(const snug_engine *e, const char *path, const sn_rates *r,
                               snug_error *err) {
    char text[4096], title[128], kind[32], number[SN_REAL_TEXT];
    sn_rates copy = *r;
    sn_file f;
    SNUG_TRY(describe_machine(e, title, sizeof title, kind, sizeof kind, err));
    int n = snprintf(text, sizeof text, "# snug rates, %s, %s\n", title, kind);
    for (sn_rate i = 0; i < SN_N_RATES; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %s\n", sn_rate_name(i),
                      sn_real_print(*sn_rate_at(&copy, i), 4, number));
    SNUG_TRY(sn_file_create(&f, sn_engine_io(e), path, err));
    snug_status status = sn_file_write(&f, text, (size_t)n, 0, err);
    if (status == SNUG_OK)
        status = sn_file_commit(&f, err);
    sn_file_close(&f);
    return status;
}

snug_status snug_rates_load(snug_engine *engine, const char *folder, int *found, snug_error *err) {
    char path[1024], text[4096];
    sn_rates r;
    if (!engine || !folder || !found)
        return sn_fail(err, SNUG_E_INVALID, "snug_rates_load: engine, folder or found is NULL");
    SNUG_TRY(file_of(engine, folder, path, sizeof path, err));
    *found = 0;
    if (sn_system_text(sn_engine_io(engine), path, text, sizeof text)[0] == 0)
        return SNUG_OK;
    SNUG_TRY(sn_rates_parse(text, path, &r, err));
    sn_calibration_of(engine)->set(engine, &r);
    *found = 1;
    return SNUG_OK;
}

/* --- all of it ------------------------------------------------------------------------------- */
snug_status sn_say_rate(const snug_writer *w, sn_rate rate, double now, double before,
                        snug_error *err) {
    return sn_say(w, err, "%-16s %10.3g   built in %10.3g   %s\n", sn_rate_name(rate), now, before,
                  sn_rate_what(rate));
}

static snug_status cpu_measure(snug_engine *e, const char *folder, const snug_writer *w,
                               sn_rates *r, snug_error *err) {
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, snug_engine_threads(e), false);
    sn_rates built_in = *r = cpu.device.rates;
    for (int i = 0; i < N_PROBES; i++) {
        const sn_rate rate = probes[i].rate;
        SNUG_TRY(run_probe(e, &probes[i], r, err));
        SNUG_TRY(sn_say_rate(w, rate, *sn_rate_at(r, rate), *sn_rate_at(&built_in, rate), err));
    }
    if (r->memory_all < r->memory)
        r->memory_all = r->memory;
    SNUG_TRY(measure_handoff(e, r, err));
    SNUG_TRY(sn_say_rate(w, SN_RATE_handoff, r->handoff, built_in.handoff, err));
    snug_error why;
    if (measure_spill(e, folder, r, &why) != SNUG_OK)
        return sn_say(w, err, "spill rates stay as built in: %s\n", why.text);
    SNUG_TRY(sn_say_rate(w, SN_RATE_spill_read, r->spill_read, built_in.spill_read, err));
    return sn_say_rate(w, SN_RATE_spill_write, r->spill_write, built_in.spill_write, err);
}

const sn_calibration sn_calibration_of_cpu = {cpu_describe, cpu_measure, sn_engine_set_rates};

snug_status snug_calibrate(snug_engine *engine, const char *folder, const snug_writer *out,
                           snug_error *err) {
    char path[1024];
    sn_rates r;
    if (!engine || !folder || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_calibrate: engine, folder or out is NULL");
    SNUG_TRY(file_of(engine, folder, path, sizeof path, err));
    SNUG_TRY(make_folder(sn_engine_io(engine), folder, err));
    SNUG_TRY(sn_calibration_of(engine)->measure(engine, folder, out, &r, err));
    SNUG_TRY(write_rates(engine, path, &r, err));
    int found = 0;
    SNUG_TRY(snug_rates_load(engine, folder, &found, err)); /* what later runs will read */
    return sn_say(out, err, "wrote %s\n", path);
}
