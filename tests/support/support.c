/* support.c: engines, expectations and temporary directories for the tests. */
#include "support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SN_REDZONES
/* Read by AddressSanitizer at start: a request that is too large is an answer to test, not a reason
 * to stop. */
SNUG_API const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
#endif

snug_engine *sn_test_engine(size_t budget_bytes) {
    const snug_engine_options options = {.budget_bytes = budget_bytes, .n_threads = 1};
    snug_engine *e = NULL;
    snug_error err = {0};
    expect_ok(snug_engine_create(&options, &e, &err), &err);
    return e;
}

/* "graph 120 bytes, plan 64 bytes": what a test that leaks wants to know. */
static void print_holders(const snug_engine *e, char *text, size_t size) {
    snug_memory_row rows[32];
    const size_t all = snug_engine_memory(e, rows, 32);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < all && i < 32 && used < size; i++) {
        if (rows[i].bytes > 0)
            used += (size_t)snprintf(text + used, size - used, " %s%s%s %zu", rows[i].category,
                                     rows[i].owner[0] ? " " : "", rows[i].owner, rows[i].bytes);
    }
}

void sn_test_engine_end(snug_engine *e) {
    if (snug_engine_bytes(e) != 0) {
        char text[1024];
        print_holders(e, text, sizeof text);
        fail_msg("%zu bytes left on the ledger:%s", snug_engine_bytes(e), text);
    }
    snug_engine_destroy(e);
}

int sn_engine_setup(void **state) {
    *state = sn_test_engine(0);
    return 0;
}

int sn_engine_teardown(void **state) {
    sn_test_engine_end(*state);
    return 0;
}

void sn_expect_status(snug_status got, snug_status wanted, const snug_error *err, const char *file,
                      int line) {
    if (got == wanted)
        return;
    print_error("%s, not %s: %s\n", snug_status_name(got), snug_status_name(wanted),
                err && got != SNUG_OK ? err->text : "");
    _fail(file, line);
}

void sn_expect_real(double got, double wanted, double tolerance, const char *file, int line) {
    if (fabs(got - wanted) <= tolerance)
        return;
    print_error("%.17g is not %.17g\n", got, wanted);
    _fail(file, line);
}

void sn_expect_text(const char *text, const char *piece, const char *file, int line) {
    if (strstr(text, piece))
        return;
    print_error("'%s' is not in '%s'\n", piece, text);
    _fail(file, line);
}

/* --- text ----------------------------------------------------------------------------------- */

sn_text sn_text_begin(void) {
    sn_text t = {.text = calloc(1, 1)};
    assert_non_null(t.text);
    return t;
}

static snug_status add_text(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)err;
    sn_text *t = ctx;
    t->text = realloc(t->text, t->n + n + 1);
    assert_non_null(t->text);
    memcpy(t->text + t->n, text, n);
    t->n += n;
    t->text[t->n] = '\0';
    return SNUG_OK;
}

snug_writer sn_text_writer(sn_text *t) {
    return (snug_writer){t, add_text};
}

void sn_text_end(sn_text *t) {
    free(t->text);
    *t = (sn_text){NULL, 0};
}

/* --- files ---------------------------------------------------------------------------------- */

void sn_test_dir_begin(sn_test_dir *d) {
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(d->path, sizeof d->path, "%s/snug-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_true(n > 0 && (size_t)n < sizeof d->path);
    assert_non_null(mkdtemp(d->path));
}

static bool is_dot(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

void sn_test_dir_end(const sn_test_dir *d) {
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!is_dot(entry->d_name))
            assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(d->path), 0);
}

int sn_test_dir_count(const sn_test_dir *d) {
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += !is_dot(entry->d_name);
    closedir(dir);
    return n;
}

const char *sn_test_path(const sn_test_dir *d, const char *name, char *text) {
    snprintf(text, 256, "%s/%s", d->path, name);
    return text;
}

void sn_test_write_file(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

int sn_test_entries(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
