/* Under a language whose numbers have commas and whose system errors are translated (German, as
 * Debian's package `locales` describes it): what is behind an error is said by its cause, and
 * numbers and JSON have points. Each test is a process of its own: the C library reads the place of
 * locales once. */
#include "support/support.h"

#include "base/file.h"
#include "base/real.h"
#include "data/augment.h"

#include <snug/engine.h>
#include <snug/graph.h>
#include <snug/model.h>
#include <snug/train.h>

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_LOCALE = 77 };

static int begin_group(void **state) {
    static sn_test_dir dir;
    char command[600];
    sn_test_dir_begin(&dir);
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             dir.path, dir.path);
    *state = &dir;
    return system(command) == -1;
}

static int end_group(void **state) {
    const sn_test_dir *dir = *state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s/*", dir->path);
    const int status = system(command);
    sn_test_dir_end(*state);
    return status;
}

/* The C library's own words and numbers are German: else nothing would be proven. */
static bool speak_german(const sn_test_dir *dir) {
    char half[8];
    setenv("LOCPATH", dir->path, 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    unsetenv("LANGUAGE");
    if (!setlocale(LC_ALL, ""))
        return false;
    snprintf(half, sizeof half, "%.1f", 0.5);
    return strcmp(half, "0,5") == 0 &&
           strcmp(strerror(ENOENT), "Datei oder Verzeichnis nicht gefunden") == 0;
}

/* `look` gives 0 where everything is right, else the number of what is not. */
static void in_german(void **state, int (*look)(const sn_test_dir *dir)) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(speak_german(*state) ? look(*state) : NO_LOCALE);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_LOCALE) {
        print_message("skipped: there is no de_DE here; install the package locales\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- errors ----------------------------------------------------------------------------------- */
static snug_cause cause_of(int code, snug_error *err) {
    return sn_file_fail("a file", "open", -1, code, err) == SNUG_E_IO ? err->cause
                                                                      : SNUG_CAUSE_NONE;
}

static int look_at_causes(const sn_test_dir *dir) {
    snug_error err;
    sn_file f;
    char path[512];
    if (sn_file_open(&f, &sn_io_system, sn_test_path(dir, "nowhere", path), &err) != SNUG_E_IO ||
        err.cause != SNUG_CAUSE_MISSING || !strstr(err.text, "Datei oder Verzeichnis nicht"))
        return 1;
    if (sn_file_create(&f, &sn_io_system, dir->path, &err) != SNUG_E_IO ||
        err.cause != SNUG_CAUSE_FOLDER)
        return 2;
    if (cause_of(EACCES, &err) != SNUG_CAUSE_DENIED || cause_of(EPERM, &err) != SNUG_CAUSE_DENIED ||
        cause_of(EROFS, &err) != SNUG_CAUSE_DENIED)
        return 3;
    if (cause_of(ENOSPC, &err) != SNUG_CAUSE_DISK_FULL ||
        cause_of(EDQUOT, &err) != SNUG_CAUSE_DISK_FULL || cause_of(EIO, &err) != SNUG_CAUSE_NONE)
        return 4;
    (void)cause_of(ENOENT, &err);
    if (sn_fail_in(&err, SNUG_E_DATA, "model") != SNUG_E_IO || err.cause != SNUG_CAUSE_MISSING)
        return 5;
    (void)sn_fail(&err, SNUG_E_DATA, "a rate of %g", 0.5);
    return err.cause == SNUG_CAUSE_NONE && strcmp(err.text, "a rate of 0.5") == 0 ? 0 : 6;
}

static void test_causes_do_not_depend_on_the_language(void **state) {
    in_german(state, look_at_causes);
}

/* --- numbers ---------------------------------------------------------------------------------- */
static int look_at_numbers(const sn_test_dir *dir) {
    (void)dir;
    char text[64];
    snug_error err;
    sn_augment a;
    sn_print(text, sizeof text, "%g %.2f %.1e", 0.5, 1234.25, 0.125);
    if (strcmp(text, "0.5 1234.25 1.2e-01") != 0)
        return 1;
    snprintf(text, sizeof text, "%.1f", 0.5); /* the process keeps its language */
    if (strcmp(text, "0,5") != 0)
        return 2;
    if (sn_augment_parse("brightness:0.25", (sn_picture_size){8, 8, 3}, &a, &err) != SNUG_OK)
        return 3;
    return a.brightness == 0.25 ? 0 : 4;
}

static void test_numbers_have_points(void **state) {
    in_german(state, look_at_numbers);
}

static bool is_json(const char *text, size_t n) {
    json_error_t error;
    json_t *const found = json_loadb(text, n, 0, &error);
    json_decref(found);
    return found != NULL;
}

static int look_at_layers(const sn_test_dir *dir) {
    (void)dir;
    snug_error err;
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    if (snug_report_layers(SNUG_REPORT_JSON, &w, &err) != SNUG_OK || !is_json(t.text, t.n))
        return 1;
    const int status = strstr(t.text, "momentum=0.99") && !strstr(t.text, "momentum=0,99") ? 0 : 2;
    sn_text_end(&t);
    return status;
}

static void test_lists_of_layers_are_json_with_points(void **state) {
    in_german(state, look_at_layers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes_do_not_depend_on_the_language),
        cmocka_unit_test(test_numbers_have_points),
        cmocka_unit_test(test_lists_of_layers_are_json_with_points),
    };
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
