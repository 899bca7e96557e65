/* commands.c: the table of commands. */
#include "cli.h"

#define O(id)         (1ull << OPT_##id)
#define MODEL_OPTIONS (O(optimizer) | O(loss) | O(metrics) | O(seed) | O(dtype) | O(weights))

const cli_command cli_commands[] = {
    {"plan", "MODEL", 1, 1, "what a step will use, before it runs: peak, by category, by layer",
     O(batch) | O(train) | O(verbose) | MODEL_OPTIONS, cmd_plan},
    {"fit", "MODEL", 1, 1, "train",
     O(x) | O(y) | O(val_x) | O(val_y) | O(epochs) | O(batch) | O(validation_split) | O(shuffle) |
         O(save) | O(best) | O(patience) | O(csv) | O(memory) | MODEL_OPTIONS,
     cmd_fit},
    {"evaluate", "MODEL", 1, 1, "loss and metrics on data",
     O(x) | O(y) | O(batch) | O(memory) | MODEL_OPTIONS, cmd_evaluate},
    {"predict", "MODEL", 1, 1, "outputs for inputs",
     O(x) | O(out) | O(batch) | O(memory) | MODEL_OPTIONS, cmd_predict},
    {"summary", "MODEL", 1, 1, "the layers, as Keras prints them", MODEL_OPTIONS, cmd_summary},
    {"inspect", "FILE", 1, 1, "what is in a model, weights or array file", 0, cmd_inspect},
    {"ops", "", 0, 0, "the operator table", 0, cmd_ops},
    {"doctor", "", 0, 0, "limits, memory, CPU features, library versions", 0, cmd_doctor},
    {"make-data", "shapes|blobs DIR", 2, 2, "generate a data set for trying things",
     O(train_rows) | O(test_rows) | O(seed), cmd_make_data},
};
const int cli_n_commands = sizeof cli_commands / sizeof *cli_commands;
