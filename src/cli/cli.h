/* cli.h: the command `snug`, on public headers only. Data go to stdout, messages to stderr.
 *
 * options.def lists the options, commands.c the commands with the options each takes; help texts,
 * completions and man pages (tools/cli_words) come from both. */
#ifndef CLI_H
#define CLI_H

#include <snug/device.h>
#include <snug/train.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum {
#define OPTION(id, name, argument, help) OPT_##id,
#include "options.def"
#undef OPTION
    N_OPTIONS
} option_id;

typedef struct {
    const char *name, *argument, *help;
} cli_option;

extern const cli_option cli_options[N_OPTIONS];

#define CLI_MAX_REPEAT 16

/* What was typed. text[id] is the last argument, or "" for a flag that was given; NULL: not given.
 * all[id] has every argument of an option that was given more than once. */
typedef struct {
    const char *text[N_OPTIONS];
    const char *all[N_OPTIONS][CLI_MAX_REPEAT];
    int n_all[N_OPTIONS];
    const char *operand[4];
    int n_operands;
} cli_args;

typedef struct {
    cli_args args;
    snug_engine *engine;
    bool color_out, color_err; /* whether stdout / stderr take colours */
    int style;                 /* SNUG_REPORT_ bits for stdout */
    double pass_printed;       /* second of a long pass that was printed last */
} cli;

typedef struct {
    const char *name;
    const char *operands; /* "MODEL" */
    int min_operands, max_operands;
    const char *help;
    const char *more;    /* further lines of its help: what it reads and writes */
    const char *example; /* a line to type, less the "snug " */
    uint64_t options;    /* bit set of option ids, besides the common ones */
    snug_status (*run)(cli *c, snug_error *err);
} cli_command;

extern const cli_command cli_commands[];
extern const int cli_n_commands;
/* NULL when there is none of that name; *near is then the name most like it, or NULL. */
const cli_command *cli_find_command(const char *name, const char **near);

/* options.c */
bool cli_takes(const cli_command *command, int option); /* NULL: whether all commands do */
snug_status cli_parse(const cli_command *command, int argc, char **argv, cli_args *out,
                      snug_error *err);
void cli_print_help(const cli_command *command, FILE *out); /* NULL: the overview */
bool cli_given(const cli *c, option_id id);
/* The option's value as a number in [low, high]; left alone when not given. */
snug_status cli_integer(const cli *c, option_id id, int64_t low, int64_t high, int64_t *inout,
                        snug_error *err);
snug_status cli_real(const cli *c, option_id id, double low, double high, double *inout,
                     snug_error *err);

/* cli_text.c: errors, and text for terminals and JSON. */
snug_status cli_fail(snug_error *err, snug_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cli_print_plain(FILE *out, const char *text); /* control characters but newlines as '?' */
void cli_print_json_string(FILE *out, const char *text);
void cli_print_json_number(FILE *out, double v); /* what JSON has no number for, as null */
double cli_shown(double v);                      /* v; a NaN without its sign, which says nothing */
/* How many letters must change to make one from the other: for "did you mean", which is asked of
 * names that are nearer than cli_near. */
int cli_distance(const char *a, const char *b);
int cli_near(const char *name);

/* cli_process.c: before anything else of a command. */
void cli_settle_heap(void);
/* Set by the first Ctrl-C (or SIGTERM); the second one ends the process as usual. */
void cli_catch_interrupt(void);
int cli_interrupted(void *ctx); /* the signal's number; 0: none */

/* Writers. */
extern const snug_writer cli_stdout, cli_stderr;

/* rates_cache.c: $XDG_CACHE_HOME/snug or ~/.cache/snug; false when neither is known. */
bool cli_cache_folder(char *folder, size_t size);
/* Measured rates of this machine, where there are some; a broken file is a warning. */
void cli_load_rates(const cli *c);

/* progress.c: Keras' bar on a terminal, one line per epoch elsewhere. */
typedef struct progress progress;
struct progress {
    FILE *out;
    bool terminal, color;
    bool open;         /* a bar was drawn and its line has not ended */
    const char *title; /* "Epoch", or NULL for evaluate and predict */
    double started, first_step, last_drawn;
    int width; /* columns drawn last */
};
void progress_init(progress *p, const cli *c, const char *title);
snug_callback progress_callback(progress *p);
/* Ends the line of a bar that was left in the middle. */
void progress_end(progress *p);
/* Long passes of pipelines: one line on a terminal, drawn over; elsewhere one each ten seconds. */
void progress_tell_passes(cli *c);

/* commands */
snug_status cmd_plan(cli *c, snug_error *err);
snug_status cmd_summary(cli *c, snug_error *err);
snug_status cmd_fit(cli *c, snug_error *err);
snug_status cmd_evaluate(cli *c, snug_error *err);
snug_status cmd_predict(cli *c, snug_error *err);
snug_status cmd_inspect(cli *c, snug_error *err);
snug_status cmd_ops(cli *c, snug_error *err);
snug_status cmd_layers(cli *c, snug_error *err);
snug_status cmd_doctor(cli *c, snug_error *err);
snug_status cmd_make_data(cli *c, snug_error *err);
snug_status cmd_data(cli *c, snug_error *err);

/* model_args.c: a model with its compile flags, seed, dtype and weights, as the options say. Where
 * no loss will be asked for (`asks` is false) one in the file that Snug does not know is no
 * error. */
snug_status cli_load_model(cli *c, bool asks, snug_model **out, snug_error *err);
/* A line on stderr where results will be those of weights that nobody trained. */
void cli_note_weights(const cli *c, const snug_model *m);
/* The feeds of a run; data points into them. Zeros are legal to close. */
typedef struct {
    snug_feed *x[CLI_MAX_REPEAT], *y[CLI_MAX_REPEAT], *weight[CLI_MAX_REPEAT];
    snug_data data;
} cli_data;
typedef struct {
    option_id x, y, weight; /* N_OPTIONS: the command has none */
} cli_data_options;
/* "NAME=FILE" goes to the input or output of that name, others to the next free one. */
snug_status cli_open_data(cli *c, const snug_model *m, cli_data_options ids, cli_data *out,
                          snug_error *err);
void cli_close_data(cli_data *d);
/* The input (or output) that an argument names in front of '=', else -1; *value is what follows. */
int cli_named(const snug_model *m, bool input, const char *argument, const char **value);
/* Whether a file of so many bytes can be made at a path, or at the option's: better refused before
 * training than after. */
snug_status cli_check_file(const cli *c, const char *path, size_t bytes, snug_error *err);
snug_status cli_check_output(const cli *c, option_id id, size_t bytes, snug_error *err);
/* After a command's results: the memory report where --memory was given; in JSON as a member. */
snug_status cli_print_memory(const cli *c, snug_error *err);

/* data_args.c: pipelines from --data, --map, --shuffle, --augment and --batch. */
typedef struct {
    const char *const *sources; /* folders, files, recipes */
    int n_sources;
    int64_t batch;
    int64_t size[3];         /* of pictures: height, width, channels */
    double validation_split; /* of a folder */
    bool validation;         /* the part for it: neither shuffled nor augmented */
    bool unlabelled;         /* of a folder all pictures, by name: no classes */
} cli_pipeline;
bool cli_is_folder(const char *path);
/* Sources of --data, pictures of the size of the model's first input. */
snug_status cli_size_pipeline(const cli *c, const snug_model *m, cli_pipeline *p, snug_error *err);
/* The source alone: names and labels of a folder, records, or rows. */
snug_status cli_open_source(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err);
/* All of it, with batch and prefetch. */
snug_status cli_open_pipeline(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err);

#endif
