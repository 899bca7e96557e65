/* commands.c: the table of commands. */
#include "cli.h"

#include <string.h>

#define O(id) (1ull << OPT_##id)
#define COMPILE_OPTIONS                                                                            \
    (O(optimizer) | O(loss) | O(loss_weights) | O(metrics) | O(weighted_metrics))
#define MODEL_OPTIONS (O(seed) | O(dtype) | O(precision) | O(weights) | O(input_shape))
#define RUN_OPTIONS   (MODEL_OPTIONS | O(budget) | O(spill) | O(device) | O(host_budget) | O(exact))

#define RECIPES                                                                                    \
    "Recipes are data that cost no file: zeros:SHAPE, constant:SHAPE@VALUE, normal:SHAPE@SEED,\n"  \
    "uniform:SHAPE@SEED, truncated:SHAPE@SEED, labels:SHAPE@SEED@CLASSES; SHAPE is 256x32x32x3.\n"
#define MODELS                                                                                     \
    "MODEL is the JSON that Keras' model.to_json() writes, or the text of a graph of operators.\n"
#define PIPELINES                                                                                  \
    "--data DIR reads pictures of any size, resizes them to the model's input and labels them "    \
    "by\n"                                                                                         \
    "folder; --data X --data Y reads rows; with --budget their buffers are part of the plan.\n"
#define SEVERAL                                                                                    \
    "Several inputs: --x once each, in the model's order or as --x NAME=FILE; outputs likewise.\n"

const cli_command cli_commands[] = {
    {"plan", "MODEL", 1, 1, "what a step will use, before it runs: peak, by category, by layer",
     MODELS, "plan model.json --batch 64 --train --budget 512MiB",
     O(batch) | O(train) | O(data) | O(map) | O(augment) | O(buffer) | O(shuffle) |
         O(sample_weight) | O(class_weight) | O(verbose) | O(curve) | O(precisions) | O(quick) |
         O(best) | O(html) | O(save_plan) | COMPILE_OPTIONS | RUN_OPTIONS,
     cmd_plan},
    {"fit", "MODEL", 1, 1, "train a model on data", MODELS SEVERAL PIPELINES RECIPES,
     "fit model.json --x x_train.npy --y y_train.npy --epochs 5 --save w.safetensors",
     O(x) | O(y) | O(val_x) | O(val_y) | O(sample_weight) | O(val_sample_weight) | O(class_weight) |
         O(data) | O(map) | O(augment) | O(buffer) | O(epochs) | O(batch) | O(validation_split) |
         O(shuffle) | O(save) | O(save_best) | O(patience) | O(reduce_rate) | O(csv) | O(memory) |
         O(plan) | COMPILE_OPTIONS | RUN_OPTIONS,
     cmd_fit},
    {"evaluate", "MODEL", 1, 1, "loss and metrics on data", MODELS SEVERAL RECIPES,
     "evaluate model.json --weights w.safetensors --x x_test.npy --y y_test.npy",
     O(x) | O(y) | O(data) | O(map) | O(sample_weight) | O(batch) | O(memory) | COMPILE_OPTIONS |
         RUN_OPTIONS,
     cmd_evaluate},
    {"predict", "MODEL", 1, 1, "outputs for inputs",
     MODELS SEVERAL
     "--data DIR predicts all pictures in it and below, sorted by name; --data X rows.\n" RECIPES,
     "predict model.json --weights w.safetensors --x x_test.npy --out y.npy",
     O(x) | O(data) | O(map) | O(out) | O(batch) | O(memory) | RUN_OPTIONS, cmd_predict},
    {"summary", "MODEL", 1, 1, "the layers, as Keras prints them", MODELS, "summary model.json",
     MODEL_OPTIONS, cmd_summary},
    {"inspect", "FILE", 1, 1, "what is in a model, weights or array file",
     "FILE is a model (JSON or graph), .safetensors, .npy or idx, the latter two also packed\n"
     "with gzip.\n",
     "inspect w.safetensors", 0, cmd_inspect},
    {"ops", "", 0, 0, "the operator table", "", "ops --json", 0, cmd_ops},
    {"layers", "", 0, 0, "the layers a model may have, with their settings", "", "layers", 0,
     cmd_layers},
    {"doctor", "", 0, 0, "limits, memory, CPU features, GPU, library versions, rates",
     "Rates say what plans may expect of this machine. --calibrate measures them into a file in\n"
     "$XDG_CACHE_HOME/snug, or ~/.cache/snug, which later commands read; with --device gpu\n"
     "those of the card.\n",
     "doctor --calibrate", O(calibrate) | O(device) | O(exact), cmd_doctor},
    {"data", "inspect|bench FILE|DIR", 2, 2, "what a data set holds; how fast a pipeline is",
     "inspect: elements, classes and the first element of a folder of pictures, .tfrecord, .npy "
     "or\n"
     "idx files, or a recipe. bench: runs the pipeline that fit --data would run, for five "
     "seconds,\n"
     "and prints what each stage did; pictures get the size --input-shape (default 224,224,3).\n",
     "data bench photos --shuffle --batch 32",
     O(batch) | O(data) | O(map) | O(augment) | O(shuffle) | O(buffer) | O(input_shape) | O(seed) |
         O(budget) | O(spill),
     cmd_data},
    {"make-data", "shapes|blobs DIR", 2, 2, "generate a data set for trying things",
     "Writes x_train.npy, y_train.npy, x_test.npy and y_test.npy; the same seed, the same bytes.\n"
     "shapes: 32x32 RGB pictures of 8 classes. blobs: points of 16 numbers around 6 centres.\n",
     "make-data shapes data --train-rows 10000", O(train_rows) | O(test_rows) | O(seed),
     cmd_make_data},
};
const int cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

const cli_command *cli_find_command(const char *name, const char **near) {
    int best = cli_near(name);
    *near = NULL;
    for (int i = 0; i < cli_n_commands; i++) {
        const int d = cli_distance(name, cli_commands[i].name);
        if (d == 0)
            return &cli_commands[i];
        if (d < best) {
            best = d;
            *near = cli_commands[i].name;
        }
    }
    return NULL;
}
