/* model_file.h: a network from a file of either kind: Keras' JSON, or graphs as text. */
#ifndef SN_MODEL_MODEL_FILE_H
#define SN_MODEL_MODEL_FILE_H

#include "model/keras_json.h"

/* Whether a file that begins so holds graphs. */
bool sn_is_graph_text(const void *head, size_t n);
/* shapes as in keras_json.h; of graphs, which say them, NULL. Compile settings are "" where the
 * file has none, as in files of graphs. */
SNUG_CHECKED snug_status sn_model_file_load(snug_engine *e, const char *path, const char *shapes,
                                            sn_network **out, sn_keras_compile *compile,
                                            snug_error *err);

#endif
