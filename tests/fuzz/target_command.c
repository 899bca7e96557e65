/* The command's arguments, one a line, after the command's name: taken apart or refused. Nothing
 * is run. */
#include "cli.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>

enum { MOST = 24 };

FUZZ_TARGET(command) {
    static cli c;
    char *argv[MOST + 1] = {NULL};
    const char *near = NULL;
    int argc = 0;
    fuzz f;
    c = (cli){0};
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n), *at = text;
    const cli_command *command = cli_find_command(fuzz_line(&at), &near);
    while (argc < MOST && *at)
        argv[argc++] = fuzz_line(&at);
    if (!command)
        command = &cli_commands[n % (size_t)cli_n_commands];
    if (fuzz_ok(&f, cli_parse(command, argc, argv, &c.args, &f.err))) {
        int64_t whole = 1;
        double real = 1;
        for (int id = 0; id < N_OPTIONS; id++) {
            if (!cli_given(&c, (option_id)id))
                continue;
            (void)fuzz_ok(&f, cli_integer(&c, (option_id)id, 0, 100, &whole, &f.err));
            (void)fuzz_ok(&f, cli_real(&c, (option_id)id, 0, 100, &real, &f.err));
        }
        fuzz_true(whole >= 0 && whole <= 100 && real >= 0 && real <= 100, "numbers in the range");
        fuzz_true((cli_given(&c, OPT_help) || c.args.n_operands >= command->min_operands) &&
                      c.args.n_operands <= command->max_operands,
                  "as many operands as the command takes");
    }
    free(text);
    fuzz_end(&f, FUZZ_MIB);
}
