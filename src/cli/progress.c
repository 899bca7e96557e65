/* progress.c: the progress bar Keras' users know, with memory behind it; one plain line per epoch
 * where stderr is no terminal. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define CELLS          20
#define REDRAW_SECONDS 0.05

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int print_seconds(char *text, size_t size, double seconds) {
    const long s = lround(seconds);
    if (s >= 3600)
        return snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    if (s >= 60)
        return snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
    return snprintf(text, size, "%lds", s);
}

static int print_step_time(char *text, size_t size, double seconds) {
    if (seconds >= 1)
        return snprintf(text, size, "%.0fs/step", seconds);
    if (seconds >= 1e-3)
        return snprintf(text, size, "%.0fms/step", seconds * 1e3);
    return snprintf(text, size, "%.0fus/step", seconds * 1e6);
}

/* Appends to text what fits. */
static void add_value(char *text, size_t size, const char *prefix, const char *name, double v) {
    const size_t n = strlen(text);
    snprintf(text + n, size - n, fabs(v) > 1e-3 || v == 0 ? " - %s%s: %.4f" : " - %s%s: %.4e",
             prefix, name, cli_shown(v));
}

/* The process's peak as the system counts it, in MB; 0 where it does not say. Not by getrusage: its
 * peak is that of the process which started this one, where that was larger. */
static long peak_megabytes(void) {
    char line[256];
    long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %ld", &kilobytes) != 1)
        ;
    if (f)
        fclose(f);
    return kilobytes / 1000;
}

/* loss and metrics, then memory. Returns their length. */
static int print_values(char *text, size_t size, const snug_progress *s) {
    text[0] = 0;
    for (int i = 0; i < s->n_values; i++)
        add_value(text, size, "", s->names[i], s->values[i]);
    for (int i = 0; i < s->n_values && s->has_validation; i++)
        add_value(text, size, "val_", s->names[i], s->val_values[i]);
    const size_t n = strlen(text);
    snprintf(text + n, size - n, " - mem: %ld MB", peak_megabytes());
    return (int)strlen(text);
}

/* Without the first step, which warms caches. */
static double step_seconds(const progress *p, const snug_progress *s) {
    if (s->step > 1 && p->first_step > 0)
        return (now() - p->first_step) / (double)(s->step - 1);
    return s->step ? (now() - p->started) / (double)s->step : 0;
}

static int digits(int64_t n) {
    int d = 1;
    for (; n >= 10; n /= 10)
        d++;
    return d;
}

static int columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 1000;
}

/* A line longer than the terminal would wrap and could not be drawn over: values are cut. Spaces
 * cover what was drawn before and is longer. */
static void draw_bar(progress *p, const snug_progress *s, bool last) {
    char values[2048], count[48], time_text[32], rate[32];
    const char *bold = p->color ? "\x1b[1m" : "", *off = p->color ? "\x1b[0m" : "";
    const char *green = p->color ? "\x1b[32m" : "", *grey = p->color ? "\x1b[37m" : "";
    const bool known = s->n_steps > 0; /* of a dataset's first pass it may not be */
    const int done = known ? (int)(CELLS * s->step / s->n_steps) : last ? CELLS : 0;
    const double rate_seconds = step_seconds(p, s);
    const double seconds =
        last || !known ? now() - p->started : rate_seconds * (double)(s->n_steps - s->step);
    int width = known ? snprintf(count, sizeof count, "%*lld/%lld", digits(s->n_steps),
                                 (long long)s->step, (long long)s->n_steps)
                      : snprintf(count, sizeof count, "%lld/?", (long long)s->step);
    width += 1 + CELLS + 1 + print_seconds(time_text, sizeof time_text, seconds);
    width += 1 + print_step_time(rate, sizeof rate, rate_seconds);
    int n_values = print_values(values, sizeof values, s);
    const int room = columns() - 1 - width;
    if (!last && n_values > room)
        n_values = room > 0 ? room : 0;
    width += n_values;
    fprintf(p->out, "\r%s%s%s %s", bold, count, off, green);
    for (int i = 0; i < CELLS; i++)
        fprintf(p->out, "%s%s", i == done ? grey : "", p->color || i < done ? "━" : " ");
    fprintf(p->out, "%s %s%s%s %s%.*s%*s%s", off, bold, time_text, off, rate, n_values, values,
            p->width > width ? p->width - width : 0, "", last ? "\n" : "");
    p->width = last ? 0 : width;
    p->open = !last;
    fflush(p->out);
}

static void print_line(const progress *p, const snug_progress *s) {
    char values[2048], time_text[32], rate[32];
    print_values(values, sizeof values, s);
    print_seconds(time_text, sizeof time_text, now() - p->started);
    print_step_time(rate, sizeof rate, step_seconds(p, s));
    fprintf(p->out, "%lld/%lld - %s - %s%s\n", (long long)s->step, (long long)s->n_steps, time_text,
            rate, values);
}

static snug_status begin_epoch(void *ctx, const snug_progress *s, snug_error *err) {
    progress *p = ctx;
    (void)err;
    p->started = now();
    p->first_step = 0;
    p->last_drawn = 0;
    if (p->title)
        fprintf(p->out, "%s %d/%d\n", p->title, s->epoch + 1, s->n_epochs);
    return SNUG_OK;
}

static snug_status end_step(void *ctx, const snug_progress *s, snug_error *err) {
    progress *p = ctx;
    (void)err;
    const double t = now();
    const bool last = !p->title && s->step == s->n_steps; /* no end of an epoch will follow */
    if (p->first_step == 0)
        p->first_step = t;
    if (p->terminal && (last || t - p->last_drawn >= REDRAW_SECONDS)) {
        draw_bar(p, s, last);
        p->last_drawn = t;
    }
    return SNUG_OK;
}

static snug_status end_epoch(void *ctx, const snug_progress *s, snug_error *err) {
    progress *p = ctx;
    (void)err;
    if (p->terminal)
        draw_bar(p, s, true);
    else
        print_line(p, s);
    return SNUG_OK;
}

void progress_end(progress *p) {
    if (p->open)
        fputc('\n', p->out);
    p->open = false;
}

/* A terminal that cannot go back to the start of a line gets plain lines. */
static bool is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void progress_init(progress *p, const cli *c, const char *title) {
    *p =
        (progress){.out = stderr, .terminal = is_terminal(), .color = c->color_err, .title = title};
    p->started = now();
}

static void print_pass(const snug_pass *p, const char *before, const char *behind) {
    char all[32] = "";
    if (p->all > 0)
        snprintf(all, sizeof all, " of %lld", (long long)p->all);
    fprintf(stderr, "%s%s: %lld%s%s", before, p->what, (long long)p->done, all, behind);
    fflush(stderr);
}

static void draw_pass(void *ctx, const snug_pass *p) {
    (void)ctx;
    if (p->over)
        fputs("\r\x1b[K", stderr);
    else
        print_pass(p, "\r\x1b[K", "");
}

static void log_pass(void *ctx, const snug_pass *p) {
    double *printed = ctx;
    if (!p->over && p->seconds >= *printed + 10)
        print_pass(p, "", "\n");
    *printed = p->over ? 0 : p->seconds >= *printed + 10 ? p->seconds : *printed;
}

void progress_tell_passes(cli *c) {
    const bool terminal = is_terminal();
    const char *after = getenv("SNUG_PROGRESS_AFTER"); /* seconds */
    snug_pipeline_progress(c->engine,
                           after      ? atof(after)
                           : terminal ? 0.5
                                      : 10,
                           terminal ? draw_pass : log_pass, &c->pass_printed);
}

snug_callback progress_callback(progress *p) {
    return (snug_callback){.ctx = p,
                           .on_epoch_begin = begin_epoch,
                           .on_step_end = end_step,
                           .on_epoch_end = end_epoch};
}
