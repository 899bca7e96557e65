/* fuzz.c: see fuzz.h. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_expect(bool holds, const char *what, const char *file, int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: fuzz target failed: %s\n", file, line, what);
    abort();
}

/* --- files in memory ------------------------------------------------------------------------ */
/* A descriptor is a place among the files; the folder is behind them. */
enum { FOLDER = FUZZ_FILES };
#define GONE "(gone)"

static fuzz_file *file_at(fuzz *f, const char *path) {
    for (int i = 0; i < FUZZ_FILES; i++) {
        if (strcmp(f->files[i].path, path) == 0)
            return &f->files[i];
    }
    return NULL;
}

const fuzz_file *fuzz_find(const fuzz *f, const char *path) {
    for (int i = 0; i < FUZZ_FILES; i++) {
        if (strcmp(f->files[i].path, path) == 0)
            return &f->files[i];
    }
    return NULL;
}

/* By the target, or to unpack something into. */
static bool may_be_made(const char *path) {
    const size_t n = strlen(path);
    return strncmp(path, FUZZ_OTHER, strlen(FUZZ_OTHER)) == 0 ||
           (n > 4 && strcmp(path + n - 4, ".tmp") == 0);
}

static int open_file(void *ctx, const char *path, int flags, int mode) {
    fuzz *f = ctx;
    (void)mode;
    if (strcmp(path, "/fuzz") == 0 || strcmp(path, "/fuzz/") == 0) {
        f->n_open++;
        return flags & O_CREAT ? -EISDIR : FOLDER;
    }
    fuzz_file *file = path[0] && strlen(path) < sizeof file->path ? file_at(f, path) : NULL;
    if (file && flags & O_EXCL)
        return -EEXIST;
    if (!file && !(flags & O_CREAT))
        return -ENOENT;
    fuzz_true(file || may_be_made(path), "made another file");
    if (!file) {
        file = file_at(f, "");
        fuzz_true(file && strlen(path) < sizeof file->path, "made too many files");
        snprintf(file->path, sizeof file->path, "%s", path);
    }
    f->n_open++;
    return (int)(file - f->files);
}

/* Short now and then, as reads of the system are. */
static int64_t read_file(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    const fuzz *f = ctx;
    fuzz_true(offset >= 0 && fd >= 0 && fd < FUZZ_FILES, "read at a wrong place");
    const fuzz_file *file = &f->files[fd];
    if ((uint64_t)offset >= file->n)
        return 0;
    size_t some = file->n - (size_t)offset;
    if (some > bytes)
        some = bytes;
    if (some > 1021)
        some = 1021;
    memcpy(buffer, file->bytes + offset, some);
    return (int64_t)some;
}

static int64_t write_file(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset) {
    fuzz *f = ctx;
    fuzz_true(offset >= 0 && fd >= 0 && fd < FUZZ_FILES, "wrote at a wrong place");
    fuzz_file *file = &f->files[fd];
    const size_t end = (size_t)offset + bytes;
    if (end > FUZZ_BUDGET)
        return -ENOSPC;
    if (end > file->room) {
        file->room = 2 * end;
        file->bytes = realloc(file->bytes, file->room);
        fuzz_true(file->bytes != NULL, "no memory");
    }
    if ((size_t)offset > file->n)
        memset(file->bytes + file->n, 0, (size_t)offset - file->n);
    memcpy(file->bytes + offset, buffer, bytes);
    file->n = end > file->n ? end : file->n;
    return (int64_t)bytes;
}

static int64_t size_file(void *ctx, int fd) {
    const fuzz *f = ctx;
    return fd < FUZZ_FILES ? (int64_t)f->files[fd].n : 0;
}

static int sync_file(void *ctx, int fd) {
    (void)ctx, (void)fd;
    return 0;
}

static int close_file(void *ctx, int fd) {
    fuzz *f = ctx;
    (void)fd;
    f->n_open--;
    return 0;
}

static int unlink_file(void *ctx, const char *path) {
    fuzz_file *file = file_at(ctx, path);
    if (!file)
        return -ENOENT;
    snprintf(file->path, sizeof file->path, GONE); /* but who has it open can still read it */
    return 0;
}

static int rename_file(void *ctx, const char *from, const char *to) {
    fuzz_file *file = file_at(ctx, from);
    if (!file)
        return -ENOENT;
    (void)unlink_file(ctx, to);
    snprintf(file->path, sizeof file->path, "%s", to);
    return 0;
}

static int make_folder(void *ctx, const char *path, int mode) {
    (void)ctx, (void)path, (void)mode;
    return -EACCES;
}

static void add_file(fuzz *f, const char *path, const uint8_t *bytes, size_t n) {
    fuzz_file *file = file_at(f, "");
    *file = (fuzz_file){.bytes = malloc(n ? n : 1), .n = n, .room = n};
    fuzz_true(file->bytes != NULL, "no memory");
    snprintf(file->path, sizeof file->path, "%s", path);
    if (n > 0)
        memcpy(file->bytes, bytes, n);
}

/* --- begin and end -------------------------------------------------------------------------- */
static void make_engine(fuzz *f) {
    f->io = (snug_io){.ctx = f,
                      .open = open_file,
                      .pread = read_file,
                      .pwrite = write_file,
                      .size = size_file,
                      .sync = sync_file,
                      .close = close_file,
                      .rename = rename_file,
                      .unlink = unlink_file,
                      .mkdir = make_folder};
    const snug_engine_options o = {.budget_bytes = FUZZ_BUDGET, .n_threads = 1, .io = &f->io};
    fuzz_must(f, snug_engine_create(&o, &f->engine, &f->err));
    f->empty_bytes = snug_engine_bytes(f->engine);
}

void fuzz_begin(fuzz *f, const uint8_t *bytes, size_t n) {
    *f = (fuzz){0};
    add_file(f, FUZZ_FILE, bytes, n);
    make_engine(f);
}

void fuzz_begin_files(fuzz *f, const uint8_t *bytes, size_t n, const char *const *paths,
                      int count) {
    static const char mark[] = "\n---\n";
    *f = (fuzz){0};
    for (int i = 0; i < count && n > 0; i++) {
        const uint8_t *end = memmem(bytes, n, mark, sizeof mark - 1);
        const size_t part = end && i + 1 < count ? (size_t)(end - bytes) + 1 : n;
        const size_t past = end && i + 1 < count ? part + sizeof mark - 2 : n;
        add_file(f, paths[i], bytes, part);
        bytes += past, n -= past;
    }
    make_engine(f);
}

void fuzz_end(fuzz *f, size_t most_bytes) {
    const size_t held = snug_engine_bytes(f->engine), peak = snug_engine_peak_bytes(f->engine);
    if (held != f->empty_bytes)
        fprintf(stderr, "%zu bytes are still on the ledger\n", held - f->empty_bytes);
    fuzz_true(held == f->empty_bytes, "the ledger is not as it was before");
    if (peak > most_bytes)
        fprintf(stderr, "held %zu bytes, %zu are allowed\n", peak, most_bytes);
    fuzz_true(peak <= most_bytes, "took too much memory");
    snug_engine_destroy(f->engine);
    fuzz_true(f->n_open == 0, "a file is still open");
    for (int i = 0; i < FUZZ_FILES; i++) {
        const size_t n = strlen(f->files[i].path);
        fuzz_true(n < 4 || strcmp(f->files[i].path + n - 4, ".tmp") != 0, "left a file");
        free(f->files[i].bytes);
    }
}

/* --- statuses ------------------------------------------------------------------------------- */
bool fuzz_ok(const fuzz *f, snug_status status) {
    if (status == SNUG_OK)
        return true;
    const bool caused = status == SNUG_E_INVALID || status == SNUG_E_SHAPE ||
                        status == SNUG_E_UNSUPPORTED || status == SNUG_E_BUDGET ||
                        status == SNUG_E_OVERFLOW || status == SNUG_E_FORMAT ||
                        status == SNUG_E_DATA || status == SNUG_E_NUMERIC || status == SNUG_E_END ||
                        (status == SNUG_E_IO && f->names_files);
    if (!caused)
        fprintf(stderr, "%s: %s\n", snug_status_name(status), f->err.text);
    fuzz_true(caused, "a status that no input may cause");
    fuzz_true(status == SNUG_E_END || (f->err.code == status && f->err.text[0]),
              "an error without a text");
    fuzz_true(memchr(f->err.text, 0, sizeof f->err.text) != NULL, "a text without an end");
    return false;
}

void fuzz_must(const fuzz *f, snug_status status) {
    if (status != SNUG_OK)
        fprintf(stderr, "%s: %s\n", snug_status_name(status), f->err.text);
    fuzz_true(status == SNUG_OK, "what must not fail");
}

/* --- texts ---------------------------------------------------------------------------------- */
char *fuzz_text(const uint8_t *bytes, size_t n) {
    char *text = malloc(n + 1);
    fuzz_true(text != NULL, "no memory");
    if (n > 0)
        memcpy(text, bytes, n);
    text[n] = 0;
    return text;
}

char *fuzz_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = 0;
    return line;
}

static snug_status print_piece(void *ctx, const char *text, size_t n, snug_error *err) {
    fuzz_print *p = ctx;
    (void)err;
    if (p->n + n + 1 > p->room) {
        p->room = 2 * (p->n + n + 1);
        p->text = realloc(p->text, p->room);
        fuzz_true(p->text != NULL, "no memory");
    }
    memcpy(p->text + p->n, text, n);
    p->n += n;
    p->text[p->n] = 0;
    return SNUG_OK;
}

snug_writer fuzz_writer(fuzz_print *p) {
    snug_error err;
    *p = (fuzz_print){0};
    (void)print_piece(p, "", 0, &err);
    return (snug_writer){p, print_piece};
}

/* --- functions on texts --------------------------------------------------------------------- */
snug_datum fuzz_text_part(snug_text *text, const void *bytes, size_t n) {
    *text = (snug_text){bytes, n};
    return (snug_datum){
        .type = {.dtype = SNUG_OPAQUE}, .is_text = 1, .data = text, .bytes = sizeof *text};
}

void fuzz_drop(snug_datum *parts, int n) {
    for (int i = 0; i < n; i++)
        snug_datum_drop(&parts[i]);
}

int fuzz_call(fuzz *f, const char *name, const char *const *attrs, const snug_datum *in, int n_in,
              snug_datum *out) {
    snug_data_attr list[8];
    snug_data_op *op;
    int n_attrs = 0, n_out = 0;
    for (; attrs && attrs[2 * n_attrs]; n_attrs++) {
        const char *value = attrs[2 * n_attrs + 1];
        list[n_attrs] = (snug_data_attr){attrs[2 * n_attrs], {value, strlen(value)}};
    }
    if (!fuzz_ok(f, snug_data_op_create(f->engine, name, list, n_attrs, &op, &f->err)))
        return 0;
    if (!fuzz_ok(f, snug_data_op_call(op, 5, in, n_in, out, SNUG_MAX_PARTS, &n_out, &f->err)))
        n_out = 0;
    snug_data_op_destroy(op);
    return n_out;
}

void fuzz_call_text(fuzz *f, const char *op, const char *const *attrs, const void *bytes,
                    size_t n) {
    snug_datum out[SNUG_MAX_PARTS];
    snug_text text;
    uint8_t *copy = malloc(n ? n : 1); /* exact, so that reading on is seen */
    fuzz_true(copy != NULL, "no memory");
    if (n > 0)
        memcpy(copy, bytes, n);
    const snug_datum in = fuzz_text_part(&text, copy, n);
    fuzz_drop(out, fuzz_call(f, op, attrs, &in, 1, out));
    free(copy);
}
