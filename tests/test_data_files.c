/* test_data_files.c: sources over files: records and lines packed or not, lists of files, folders
 * of pictures by class; what is damaged or missing is said with its place; every failed request. */
#include "base/file.h"
#include "codec/crc32c.h"
#include "support/files.h"
#include "support/support.h"

#include <snug/data_files.h>
#include <snug/data_ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a folder with folders in it -------------------------------------------------------------- */
typedef struct {
    char path[64];
} tree;

static void tree_begin(tree *t) {
    snprintf(t->path, sizeof t->path, "/tmp/snug-files-XXXXXX");
    assert_non_null(mkdtemp(t->path));
}

static void tree_end(const tree *t) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", t->path);
    assert_int_equal(system(command), 0);
}

static const char *in_tree(const tree *t, const char *name, char path[256]) {
    snprintf(path, 256, "%s/%s", t->path, name);
    return path;
}

static void put_file(const tree *t, const char *name, const void *bytes, size_t n) {
    char path[256];
    in_tree(t, name, path);
    for (char *at = path + strlen(t->path) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        (void)mkdir(path, 0777);
        *at = '/';
    }
    sn_test_write_file(path, bytes, n);
}

/* --- datasets --------------------------------------------------------------------------------- */
static snug_status list(snug_engine *e, const char *pattern, snug_dataset **out, snug_error *err) {
    const snug_text t = {pattern, strlen(pattern)};
    return snug_dataset_list_files(e, &t, 1, out, err);
}

static snug_status records_of(snug_engine *e, const char *path, snug_records kind,
                              snug_compression packed, snug_dataset **out, snug_error *err) {
    snug_text t = {path, strlen(path)};
    snug_element name = {.n = 1};
    const snug_type scalar = {.dtype = SNUG_OPAQUE};
    SNUG_TRY(snug_datum_texts(e, &scalar, &t, &name.part[0], err));
    const snug_status status = snug_dataset_from_element(e, &name, 0, out, err);
    snug_element_drop(&name);
    SNUG_TRY(status);
    return snug_dataset_records(*out, kind, packed, out, err);
}

/* All texts of a dataset with '|' behind each; *err has what ended it. Takes d over. */
static snug_status read_all(snug_dataset *d, char *text, size_t size, snug_error *err) {
    snug_iterator *it;
    size_t n = 0;
    snug_status status = snug_iterator_create(d, &it, err);
    snug_dataset_drop(d);
    SNUG_TRY(status);
    for (snug_element x = {.n = 0}; (status = snug_iterator_next(it, &x, err)) == SNUG_OK;) {
        const snug_text *t = x.part[0].data;
        n += (size_t)snprintf(text + n, size - n, "%.*s|", (int)t->bytes, t->data);
        snug_element_drop(&x);
    }
    text[n] = 0;
    snug_iterator_destroy(it);
    return status == SNUG_E_END ? SNUG_OK : status;
}

static void expect_records(snug_engine *e, const char *path, snug_records kind,
                           snug_compression packed, const char *wanted) {
    char text[4096];
    snug_error err;
    snug_dataset *d;
    expect_ok(records_of(e, path, kind, packed, &d, &err), &err);
    expect_ok(read_all(d, text, sizeof text, &err), &err);
    assert_string_equal(text, wanted);
}

static void expect_refused(snug_engine *e, const char *path, snug_records kind,
                           snug_compression packed, const char *say) {
    static char text[1 << 20];
    snug_error err;
    snug_dataset *d;
    expect_ok(records_of(e, path, kind, packed, &d, &err), &err);
    const snug_status status = read_all(d, text, sizeof text, &err);
    if (status != SNUG_E_FORMAT && status != SNUG_E_IO)
        fail_msg("%s, not a refusal: %s", snug_status_name(status), err.text);
    expect_text(err.text, say);
}

/* --- TFRecord --------------------------------------------------------------------------------- */
static void write_records(snug_engine *e, const char *path, snug_compression packed) {
    snug_error err;
    snug_record_writer *w;
    expect_ok(snug_record_writer_create(e, path, packed, &w, &err), &err);
    expect_ok(snug_record_write(w, "one", 3, &err), &err);
    expect_ok(snug_record_write(w, "", 0, &err), &err);
    expect_ok(snug_record_write(w, "three", 5, &err), &err);
    assert_int_not_equal(access(path, F_OK), 0); /* nobody sees half of it */
    expect_ok(snug_record_writer_close(w, &err), &err);
}

static void test_records_written_are_read(void **state) {
    tree t;
    char path[256];
    tree_begin(&t);
    in_tree(&t, "a.tfrecord", path);
    for (int packed = SNUG_PLAIN; packed <= SNUG_ZLIB; packed++) {
        write_records(*state, path, (snug_compression)packed);
        expect_records(*state, path, SNUG_RECORDS, (snug_compression)packed, "one||three|");
        remove(path);
    }
    tree_end(&t);
}

static void test_records_are_tensorflows(void **state) {
    static const unsigned char event[] = "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\0\0\0\0\0"
                                         "\x1a\x0d"
                                         "brain.Event:2\xee\xdf\x28\xa3";
    tree t;
    char path[256], text[64];
    snug_error err;
    snug_dataset *d;
    snug_iterator *it;
    snug_element x = {.n = 0};
    tree_begin(&t);
    put_file(&t, "e", event, sizeof event - 1);
    expect_ok(records_of(*state, in_tree(&t, "e", path), SNUG_RECORDS, SNUG_PLAIN, &d, &err), &err);
    expect_ok(snug_iterator_create(d, &it, &err), &err);
    expect_ok(snug_iterator_next(it, &x, &err), &err);
    const snug_text *got = x.part[0].data;
    assert_int_equal(got->bytes, 24);
    memcpy(text, got->data + 11, 13);
    text[13] = 0;
    assert_string_equal(text, "brain.Event:2");
    snug_element_drop(&x);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    tree_end(&t);
}

static size_t read_back(const char *path, unsigned char *bytes, size_t size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, size, f);
    fclose(f);
    return n;
}

static void test_damaged_records_are_refused_with_their_place(void **state) {
    tree t;
    char path[256];
    unsigned char bytes[256];
    tree_begin(&t);
    in_tree(&t, "a.tfrecord", path);
    write_records(*state, path, SNUG_PLAIN);
    const size_t n = read_back(path, bytes, sizeof bytes);
    assert_int_equal(n, 3 * 16 + 8);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 4;
        put_file(&t, "bad", bytes, n);
        expect_refused(*state, in_tree(&t, "bad", path), SNUG_RECORDS, SNUG_PLAIN, "bad'");
        bytes[i] ^= 4;
    }
    bytes[13] ^= 1; /* in the bytes of the first */
    put_file(&t, "bad", bytes, n);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_PLAIN,
                   "record 0 at byte 0: the checksum of its bytes is wrong");
    bytes[13] ^= 1;
    bytes[20] ^= 1; /* in the length of the second */
    put_file(&t, "bad", bytes, n);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_PLAIN,
                   "record 1 at byte 19: the checksum of its length is wrong");
    bytes[20] ^= 1;
    put_file(&t, "bad", bytes, n - 2);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_PLAIN, "is truncated: record 2");
    tree_end(&t);
}

static void test_packed_records_cut_anywhere_are_refused(void **state) {
    tree t;
    char path[256];
    unsigned char bytes[256];
    tree_begin(&t);
    in_tree(&t, "a.gz", path);
    write_records(*state, path, SNUG_GZIP);
    const size_t n = read_back(path, bytes, sizeof bytes);
    in_tree(&t, "cut.gz", path);
    for (size_t cut = 1; cut < n; cut++) {
        put_file(&t, "cut.gz", bytes, cut);
        expect_refused(*state, path, SNUG_RECORDS, SNUG_GZIP, "truncated");
    }
    put_file(&t, "cut.gz", bytes, n);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_PLAIN, "packed (compression_type)");
    tree_end(&t);
}

/* A packed file whose first record claims so many bytes, with a right checksum, and has n, of which
 * no packer makes less. */
static void claim(const char *path, uint64_t length, size_t n) {
    unsigned char *bytes = malloc(12 + n);
    size_t n_packed;
    uint32_t draw = 1;
    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    const uint32_t sum = sn_crc32c_masked(bytes, 8);
    memcpy(bytes + 8, &sum, 4);
    for (size_t i = 0; i < n; i++) {
        draw = draw * 1664525 + 1013904223;
        bytes[12 + i] = (unsigned char)(draw >> 24);
    }
    unsigned char *packed = sn_test_gzip(bytes, 12 + n, &n_packed);
    sn_test_write_file(path, packed, n_packed);
    free(packed), free(bytes);
}

/* A length is held against what is left of the file before room is asked for. */
static void test_packed_records_are_no_longer_than_what_can_follow(void **state) {
    tree t;
    char path[256];
    tree_begin(&t);
    in_tree(&t, "a.gz", path);
    claim(path, (1u << 31) + 1, 3);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_GZIP, "more than the limit of 2147483648");
    claim(path, 1u << 30, 3);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_GZIP,
                   "record 0 has 1073741824 bytes, and what is left of the file unpacks to 3");
    claim(path, 1u << 30, 300000);
    expect_refused(*state, path, SNUG_RECORDS, SNUG_GZIP,
                   "record 0 has 1073741824 bytes, and what is left of the file unpacks to 17");
    claim(path, 1u << 20, 300000); /* which may be: all of it is read */
    expect_refused(*state, path, SNUG_RECORDS, SNUG_GZIP, "record 0 ends at byte 300012");
    tree_end(&t);
}

/* Nothing packs better than equal bytes do. */
static void test_records_that_pack_as_well_as_any_are_read(void **state) {
    static char zeros[(8 << 20) + 1];
    tree t;
    char path[256];
    snug_error err;
    snug_record_writer *w;
    snug_dataset *d;
    snug_iterator *it;
    snug_element x = {.n = 0};
    tree_begin(&t);
    in_tree(&t, "a.gz", path);
    expect_ok(snug_record_writer_create(*state, path, SNUG_GZIP, &w, &err), &err);
    for (int i = 0; i < 3; i++)
        expect_ok(snug_record_write(w, zeros, sizeof zeros, &err), &err);
    expect_ok(snug_record_writer_close(w, &err), &err);
    expect_ok(records_of(*state, path, SNUG_RECORDS, SNUG_GZIP, &d, &err), &err);
    expect_ok(snug_iterator_create(d, &it, &err), &err);
    for (int i = 0; i < 3; i++) {
        expect_ok(snug_iterator_next(it, &x, &err), &err);
        assert_int_equal(((const snug_text *)x.part[0].data)->bytes, sizeof zeros);
        snug_element_drop(&x);
    }
    expect_status(snug_iterator_next(it, &x, &err), SNUG_E_END, &err);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    tree_end(&t);
}

static void test_missing_files_are_named(void **state) {
    expect_refused(*state, "/nowhere/a.tfrecord", SNUG_RECORDS, SNUG_PLAIN, "/nowhere/a.tfrecord");
}

static void test_records_are_left_out_without_reading_them(void **state) {
    tree t;
    char path[256], text[64];
    snug_error err;
    snug_dataset *d;
    tree_begin(&t);
    in_tree(&t, "a", path);
    for (int packed = SNUG_PLAIN; packed <= SNUG_GZIP; packed++) {
        write_records(*state, path, (snug_compression)packed);
        for (int skip = 0; skip < 5; skip++) {
            static const char *const rest[] = {"one||three|", "|three|", "three|", "", ""};
            expect_ok(records_of(*state, path, SNUG_RECORDS, (snug_compression)packed, &d, &err),
                      &err);
            expect_ok(snug_dataset_skip(d, skip, &d, &err), &err);
            expect_ok(read_all(d, text, sizeof text, &err), &err);
            assert_string_equal(text, rest[skip]);
        }
        remove(path);
    }
    tree_end(&t);
}

/* --- lines ------------------------------------------------------------------------------------ */
static void test_lines_are_tensorflows(void **state) {
    static const char text[] = "one\ntwo\r\n\nfo\rur\nlast";
    tree t;
    char path[256];
    tree_begin(&t);
    put_file(&t, "a.txt", text, sizeof text - 1);
    expect_records(*state, in_tree(&t, "a.txt", path), SNUG_LINES, SNUG_PLAIN,
                   "one|two||four|last|");
    put_file(&t, "a.txt", text, 4);
    expect_records(*state, path, SNUG_LINES, SNUG_PLAIN, "one|");
    put_file(&t, "a.txt", text, 0);
    expect_records(*state, path, SNUG_LINES, SNUG_PLAIN, "");
    tree_end(&t);
}

static void test_lines_longer_than_the_window_are_whole(void **state) {
    enum { LONG = 300000 };
    tree t;
    char path[256], *text = malloc(2 * LONG + 2), *got = malloc(2 * LONG + 16);
    snug_error err;
    snug_dataset *d;
    memset(text, 'a', LONG);
    memset(text + LONG + 1, 'b', LONG);
    text[LONG] = '\n';
    tree_begin(&t);
    put_file(&t, "long", text, 2 * LONG + 1);
    expect_ok(records_of(*state, in_tree(&t, "long", path), SNUG_LINES, SNUG_PLAIN, &d, &err),
              &err);
    expect_ok(read_all(d, got, 2 * LONG + 16, &err), &err);
    assert_int_equal(strlen(got), 2 * LONG + 2);
    assert_int_equal(got[LONG], '|');
    assert_int_equal(got[LONG + 1], 'b');
    free(text);
    free(got);
    tree_end(&t);
}

/* --- lists of files --------------------------------------------------------------------------- */
static void expect_list(snug_engine *e, const tree *t, const char *pattern, const char *wanted) {
    char path[256], text[2048], all[2048] = "";
    snug_error err;
    snug_dataset *d;
    expect_ok(list(e, in_tree(t, pattern, path), &d, &err), &err);
    expect_ok(read_all(d, text, sizeof text, &err), &err);
    size_t n = 0;
    for (const char *at = text; *at; at = strchr(at, '|') + 1)
        n += (size_t)snprintf(all + n, sizeof all - n, "%.*s ",
                              (int)(strchr(at, '|') - at - (long)strlen(t->path) - 1),
                              at + strlen(t->path) + 1);
    assert_string_equal(all, wanted);
}

static void test_patterns_find_sorted_files(void **state) {
    tree t;
    tree_begin(&t);
    const char *const names[] = {"b/2.jpg", "a/10.jpg", "a/9.jpg", "a/x.txt", ".h/1.jpg", "a[1]"};
    for (int i = 0; i < 6; i++)
        put_file(&t, names[i], "", 0);
    expect_list(*state, &t, "*/*.jpg", "a/10.jpg a/9.jpg b/2.jpg ");
    expect_list(*state, &t, "a/[0-9]*", "a/10.jpg a/9.jpg ");
    expect_list(*state, &t, "?/[!x]?jpg", "a/9.jpg b/2.jpg ");
    expect_list(*state, &t, ".h/*", ".h/1.jpg ");
    expect_list(*state, &t, "a//x.txt", "a/x.txt ");
    expect_list(*state, &t, "a[[]1]", "a[1] ");
    snug_error err;
    snug_dataset *d;
    char path[256];
    expect_status(list(*state, in_tree(&t, "*.png", path), &d, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "no file matches");
    tree_end(&t);
}

/* --- folders by class ------------------------------------------------------------------------- */
/* "name:label " of each element, names without the folder. */
static void describe(snug_engine *e, const tree *t, snug_folder o, char *text, size_t size) {
    snug_error err;
    snug_dataset *d;
    snug_iterator *it;
    snug_element x = {.n = 0};
    size_t n = 0;
    text[0] = 0;
    o.path = t->path;
    expect_ok(snug_dataset_from_folder(e, &o, &d, NULL, &err), &err);
    expect_ok(snug_iterator_create(d, &it, &err), &err);
    while (snug_iterator_next(it, &x, &err) == SNUG_OK) {
        const snug_text *name = x.part[0].data;
        const int skip = (int)strlen(t->path) + 1;
        n += (size_t)snprintf(text + n, size - n, "%.*s", (int)name->bytes - skip,
                              name->data + skip);
        if (x.n == 2)
            n += (size_t)snprintf(text + n, size - n, ":%d", *(int32_t *)x.part[1].data);
        n += (size_t)snprintf(text + n, size - n, " ");
        snug_element_drop(&x);
    }
    assert_int_equal(err.code, SNUG_E_END);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
}

static void put_classes(const tree *t) {
    const char *const names[] = {"dog/b.png",     "dog/a.JPG",      "dog/notes.txt", "cat/z.gif",
                                 "cat/sub/y.bmp", "cat/a.jpeg",     "cat-2/q.jpg",   ".git/h.jpg",
                                 "top.jpg",       "cat/sub-1/k.jpg"};
    for (int i = 0; i < 10; i++)
        put_file(t, names[i], "", 0);
}

static void test_classes_are_folders_in_keras_order(void **state) {
    tree t;
    char text[1024];
    tree_begin(&t);
    put_classes(&t);
    describe(*state, &t, (snug_folder){0}, text, sizeof text);
    assert_string_equal(text, "cat/a.jpeg:0 cat/z.gif:0 cat/sub/y.bmp:0 cat/sub-1/k.jpg:0 "
                              "cat-2/q.jpg:1 dog/a.JPG:2 dog/b.png:2 ");
    describe(*state, &t,
             (snug_folder){.classes = (const char *const[]){"dog", "cat"}, .n_classes = 2}, text,
             sizeof text);
    assert_string_equal(text, "dog/a.JPG:0 dog/b.png:0 cat/a.jpeg:1 cat/z.gif:1 cat/sub/y.bmp:1 "
                              "cat/sub-1/k.jpg:1 ");
    describe(*state, &t, (snug_folder){.kind = SNUG_LABELS_NONE, .endings = ".txt .bmp"}, text,
             sizeof text);
    assert_string_equal(text, "cat/sub/y.bmp dog/notes.txt ");
    tree_end(&t);
}

static void test_shuffle_and_split_are_numpys(void **state) {
    tree t;
    char text[1024], name[16];
    tree_begin(&t);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "c%d/%d.png", i / 5, i);
        put_file(&t, name, "", 0);
    }
    snug_folder o = {.shuffle = 1, .seed = 7, .validation_split = 0.35};
    o.subset = SNUG_SUBSET_TRAINING;
    describe(*state, &t, o, text, sizeof text);
    assert_string_equal(text, "c1/8.png:1 c1/5.png:1 c0/0.png:0 c0/2.png:0 c0/1.png:0 c1/9.png:1 "
                              "c1/7.png:1 ");
    o.subset = SNUG_SUBSET_VALIDATION;
    describe(*state, &t, o, text, sizeof text);
    assert_string_equal(text, "c0/3.png:0 c1/6.png:1 c0/4.png:0 ");
    tree_end(&t);
}

static void test_folders_without_pictures_are_refused(void **state) {
    tree t;
    snug_error err;
    snug_dataset *d;
    tree_begin(&t);
    snug_folder o = {.path = t.path};
    expect_status(snug_dataset_from_folder(*state, &o, &d, NULL, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "which has no folders");
    put_file(&t, "a/b.txt", "", 0);
    expect_status(snug_dataset_from_folder(*state, &o, &d, NULL, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "names must end in .bmp, .gif, .jpeg, .jpg or .png");
    o.path = "/nowhere";
    expect_status(snug_dataset_from_folder(*state, &o, &d, NULL, &err), SNUG_E_IO, &err);
    expect_text(err.text, "/nowhere");
    tree_end(&t);
}

static int stop_after(void *ctx, int64_t files) {
    *(int64_t *)ctx = files;
    return files >= 2048;
}

typedef struct {
    int told, over;
    snug_pass last;
} pass_diary;

static void write_down(void *ctx, const snug_pass *pass) {
    pass_diary *d = ctx;
    d->told += !pass->over;
    d->over += pass->over;
    d->last = *pass;
}

static void test_many_files_take_few_bytes_and_listing_can_be_stopped(void **state) {
    snug_engine *e = *state;
    tree t;
    char name[32];
    snug_error err;
    snug_dataset *d;
    snug_folder_info info;
    int64_t seen = 0;
    tree_begin(&t);
    for (int i = 0; i < 2100; i++) {
        snprintf(name, sizeof name, "only/%06d.jpg", i);
        put_file(&t, name, "", 0);
    }
    snug_folder o = {.path = t.path, .shuffle = 1, .progress = stop_after, .ctx = &seen};
    expect_status(snug_dataset_from_folder(e, &o, &d, &info, &err), SNUG_E_INTERRUPTED, &err);
    assert_int_equal(seen, 2048);
    o.progress = NULL;
    pass_diary passes = {0};
    snug_pipeline_progress(e, 0, write_down, &passes);
    expect_ok(snug_dataset_from_folder(e, &o, &d, &info, &err), &err);
    snug_pipeline_progress(e, 0, NULL, NULL);
    assert_true(passes.told > 0);
    assert_int_equal(passes.over, 1);
    assert_string_equal(passes.last.what, "listing");
    assert_int_equal(passes.last.done, 2100);
    assert_int_equal(info.n_files, 2100);
    assert_int_equal(info.n_classes, 1);
    assert_memory_equal(((snug_text *)info.classes.data)[0].data, "only", 4);
    assert_true(snug_engine_bytes(e) < 2100 * 150);
    snug_datum_drop(&info.classes);
    snug_dataset_drop(d);
    tree_end(&t);
}

/* A folder of ten folders with 10,000 files each, of an I/O table: no disk has to hold them. */
static int many_entries(void *ctx, const char *path, int (*each)(void *, const char *, int),
                        void *to) {
    char name[32];
    int stopped = 0;
    (void)ctx;
    const bool top = strcmp(path, "many") == 0;
    for (int i = 0; i < (top ? 10 : 10000) && !stopped; i++) {
        snprintf(name, sizeof name, top ? "class%d" : "%05d.jpg", top ? i : (i * 7919) % 10000);
        stopped = each(to, name, top ? SNUG_IO_FOLDER : SNUG_IO_FILE);
    }
    return stopped;
}

static void test_a_hundred_thousand_files_take_67_bytes_each(void **state) {
    (void)state;
    snug_io io = sn_io_system;
    io.list = many_entries;
    snug_engine *e;
    snug_error err;
    snug_dataset *d;
    snug_folder_info info;
    snug_element element;
    snug_iterator *it;
    expect_ok(snug_engine_create(&(snug_engine_options){.io = &io}, &e, &err), &err);
    const snug_folder o = {.path = "many"};
    expect_ok(snug_dataset_from_folder(e, &o, &d, &info, &err), &err);
    assert_int_equal(info.n_files, 100000);
    assert_int_equal(info.n_classes, 10);
    assert_true(snug_engine_bytes(e) < 67 * 100000);
    assert_true(snug_engine_peak_bytes(e) < 100 * 100000);
    expect_ok(snug_dataset_skip(d, 99999, &d, &err), &err);
    expect_ok(snug_iterator_create(d, &it, &err), &err);
    expect_ok(snug_iterator_next(it, &element, &err), &err);
    const snug_text *name = element.part[0].data;
    assert_int_equal(name->bytes, strlen("many/class9/09999.jpg"));
    assert_memory_equal(name->data, "many/class9/09999.jpg", name->bytes);
    assert_int_equal(*(int32_t *)element.part[1].data, 9);
    snug_element_drop(&element);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    snug_datum_drop(&info.classes);
    sn_test_engine_end(e);
}

/* --- Examples written
 * ----------------------------------------------------------------------------- */
static void test_examples_written_are_parsed(void **state) {
    snug_engine *e = *state;
    snug_error err;
    const float x[2] = {1.5f, -2};
    const int64_t label = -7;
    const snug_text words[2] = {{"a", 1}, {"", 0}};
    const snug_feature features[] = {{"x", SNUG_F32, 2, x},
                                     {"label", SNUG_I64, 1, &label},
                                     {"words", SNUG_OPAQUE, 2, words},
                                     {"empty", SNUG_I64, 0, NULL}};
    static const char lines[] = "fixed f32 [2] - x\nfixed i64 [] - label\nfixed text [2] - words\n"
                                "var i64 [] - empty";
    const snug_data_attr a = {"features", {lines, sizeof lines - 1}};
    snug_datum example, out[SNUG_MAX_PARTS];
    snug_data_op *op;
    int n;
    expect_ok(snug_example_encode(e, features, 4, &example, &err), &err);
    expect_ok(snug_data_op_create(e, "tf.io.parse_single_example", &a, 1, &op, &err), &err);
    expect_ok(snug_data_op_call(op, 0, &example, 1, out, SNUG_MAX_PARTS, &n, &err), &err);
    assert_int_equal(n, 6);
    assert_memory_equal(out[0].data, x, sizeof x);
    assert_int_equal(*(int64_t *)out[1].data, -7);
    assert_int_equal(((snug_text *)out[2].data)[0].bytes, 1);
    assert_int_equal(((snug_text *)out[2].data)[1].bytes, 0);
    assert_int_equal(out[4].type.dims[0], 0);
    while (n > 0)
        snug_datum_drop(&out[--n]);
    snug_data_op_destroy(op);
    snug_datum_drop(&example);
}

/* --- faults
 * ---------------------------------------------------------------------------------------- */
typedef struct {
    char path[256];
    snug_records kind;
    snug_compression packed;
} file_case;

static snug_status read_case(snug_engine *e, void *ctx, snug_error *err) {
    const file_case *f = ctx;
    char text[256];
    snug_dataset *d;
    SNUG_TRY(records_of(e, f->path, f->kind, f->packed, &d, err));
    return read_all(d, text, sizeof text, err);
}

static snug_status write_case(snug_engine *e, void *ctx, snug_error *err) {
    const file_case *f = ctx;
    snug_record_writer *w;
    SNUG_TRY(snug_record_writer_create(e, f->path, f->packed, &w, err));
    const snug_status status = snug_record_write(w, "bytes", 5, err);
    if (status != SNUG_OK) {
        snug_record_writer_destroy(w);
        return status;
    }
    return snug_record_writer_close(w, err);
}

static void test_files_survive_any_failed_request(void **state) {
    tree t;
    file_case f = {.packed = SNUG_PLAIN};
    tree_begin(&t);
    for (f.packed = SNUG_PLAIN; f.packed <= SNUG_ZLIB; f.packed++) {
        in_tree(&t, "records", f.path);
        write_records(*state, f.path, f.packed);
        for (f.kind = SNUG_LINES; f.kind <= SNUG_RECORDS; f.kind++) {
            sn_fault_sweep(read_case, &f);
            sn_fault_sweep_io(read_case, &f);
        }
        remove(f.path);
        sn_fault_sweep(write_case, &f);
        sn_fault_sweep_io(write_case, &f);
        remove(f.path);
    }
    tree_end(&t);
}

static snug_status list_case(snug_engine *e, void *ctx, snug_error *err) {
    const tree *t = ctx;
    snug_dataset *d;
    snug_folder_info info;
    const snug_folder o = {.path = t->path, .shuffle = 1};
    SNUG_TRY(snug_dataset_from_folder(e, &o, &d, &info, err));
    snug_datum_drop(&info.classes);
    char text[1024];
    return read_all(d, text, sizeof text, err);
}

static snug_status match_case(snug_engine *e, void *ctx, snug_error *err) {
    char path[512], text[1024];
    const int n = snprintf(path, sizeof path, "%s/*/*.jpg", ((const tree *)ctx)->path);
    snug_dataset *d;
    SNUG_TRY(snug_dataset_list_files(e, &(snug_text){path, (size_t)n}, 1, &d, err));
    return read_all(d, text, sizeof text, err);
}

static void test_folders_survive_any_failed_request(void **state) {
    (void)state;
    tree t;
    tree_begin(&t);
    put_classes(&t);
    sn_fault_sweep(list_case, &t);
    sn_fault_sweep_io(list_case, &t);
    sn_fault_sweep_io(match_case, &t);
    tree_end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_records_written_are_read),
        engine_test(test_records_are_tensorflows),
        engine_test(test_damaged_records_are_refused_with_their_place),
        engine_test(test_packed_records_cut_anywhere_are_refused),
        engine_test(test_packed_records_are_no_longer_than_what_can_follow),
        engine_test(test_records_that_pack_as_well_as_any_are_read),
        engine_test(test_missing_files_are_named),
        engine_test(test_records_are_left_out_without_reading_them),
        engine_test(test_lines_are_tensorflows),
        engine_test(test_lines_longer_than_the_window_are_whole),
        engine_test(test_patterns_find_sorted_files),
        engine_test(test_classes_are_folders_in_keras_order),
        engine_test(test_shuffle_and_split_are_numpys),
        engine_test(test_folders_without_pictures_are_refused),
        engine_test(test_many_files_take_few_bytes_and_listing_can_be_stopped),
        cmocka_unit_test(test_a_hundred_thousand_files_take_67_bytes_each),
        engine_test(test_examples_written_are_parsed),
        engine_test(test_files_survive_any_failed_request),
        engine_test(test_folders_survive_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
