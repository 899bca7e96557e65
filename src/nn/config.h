/* config.h: the classes of layers, rows of layers.def, and their configurations: for who fills them
 * (files, texts, Python) and who reads them (build functions). A layer class is one row of
 * layers.def and the build function it names. */
#ifndef SN_NN_CONFIG_H
#define SN_NN_CONFIG_H

#include "nn/init.h"

#define SN_MAX_INNER 8
#define SN_MAX_REALS 256 /* entries of the longest list of numbers in a configuration */

/* Defaults that say "not given"; none of them can be given (sn_conf_set_number). Of sides and other
 * numbers whose default depends on the layer; of lists of axes, which may be negative; of shapes:
 * the list ends here. */
#define SN_UNSET    (-9007199254740992)
#define SN_NO_AXIS  (-9007199254740991)
#define SN_NO_ENTRY (-2)

typedef struct {
    char text[96];
} sn_conf_text;

/* Layers inside a layer: the cells of an RNN, what a TimeDistributed applies. */
typedef struct sn_layer sn_layer;
typedef struct {
    sn_layer *at[SN_MAX_INNER];
    int64_t n;
} sn_layer_list;

/* A call of a row of the function table (nn/operation.h). */
typedef struct sn_operation sn_operation;

/* An array of any length; the numbers lie in the network's zone. */
typedef struct {
    int64_t n;
    const double *v;
} sn_conf_array;

#define INT(key, value)     int64_t key;
#define INTS(key, n, value) int64_t key[n];
#define REAL(key, value)    double key;
#define FLAG(key, value)    int64_t key;
#define TEXT(key, value)    sn_conf_text key;
#define INIT(key, value)    sn_init key;
#define LAYER(key)          sn_layer *key;
#define LAYERS(key)         sn_layer_list key;
#define CALL(key)           const sn_operation *key;
#define REALS(key, most)                                                                           \
    struct {                                                                                       \
        int64_t n;                                                                                 \
        double v[most];                                                                            \
    } key;
#define SNUG_LAYER(name, snake, inputs, mask, traits, arguments, about, fields)                    \
    typedef struct {                                                                               \
        fields                                                                                     \
    } sn_conf_##snake;
#include "nn/layers.def"
#undef SNUG_LAYER
#undef INT
#undef INTS
#undef REAL
#undef REALS
#undef FLAG
#undef TEXT
#undef INIT
#undef LAYER
#undef LAYERS
#undef CALL

typedef enum {
    SN_CONF_INT,
    SN_CONF_INTS,
    SN_CONF_REAL,
    SN_CONF_REALS, /* how many, then they; a plain number is a list of one */
    SN_CONF_FLAG,
    SN_CONF_TEXT,
    SN_CONF_INIT,
    SN_CONF_LAYER,
    SN_CONF_LAYERS,
    SN_CONF_CALL /* of a function; only readers of files make one */
} sn_conf_kind;
typedef struct {
    const char *key;
    sn_conf_kind kind;
    size_t offset; /* in the sn_conf_ struct */
    int n; /* INTS, REALS: capacity. Unset tail entries hold the default; -2 in shapes: no entry */
    double number;    /* default of INT, INTS, REAL, FLAG */
    const char *text; /* default of TEXT, INIT */
} sn_conf_field;

typedef struct sn_network sn_network;

/* What a layer's output says of the time steps that its input masks. */
typedef enum {
    SN_MASK_KEEP, /* the output is masked as the inputs are (of several: all must be valid) */
    SN_MASK_DROP, /* the output has no mask */
    SN_MASK_OWN   /* the build function sets out_mask */
} sn_mask_rule;

typedef struct sn_layer_call sn_layer_call; /* layer_call.h */
typedef struct {
    const char *class_name, *snake;
    unsigned traits;               /* a set of snug_layer_trait */
    const char *arguments, *about; /* as snug_layer_row has them */
    int min_in, max_in;            /* how many tensors it is applied to */
    sn_mask_rule mask;
    size_t conf_bytes;
    int n_fields;
    const sn_conf_field *(*fields)(void); /* n_fields of them */
    void (*build)(sn_layer_call *c);
} sn_layer_class;

extern const sn_layer_class sn_layer_classes[];
/* Rows of layers.def: SN_LAYER_Dense is the place of Dense in sn_layer_classes. */
typedef enum {
#define SNUG_LAYER(name, snake, inputs, mask, traits, arguments, about, list) SN_LAYER_##name,
#include "nn/layers.def"
#undef SNUG_LAYER
} sn_layer_kind;
bool sn_class_is(const sn_layer_class *cls, sn_layer_kind kind);
extern const int sn_n_layer_classes;
/* Unknown: SNUG_E_UNSUPPORTED, names it, the known ones most like it, and what it would need. */
SNUG_CHECKED snug_status sn_layer_class_find(const char *name, const sn_layer_class **out,
                                             snug_error *err);

/* The field of a class, or NULL. */
const sn_conf_field *sn_conf_find(const sn_layer_class *cls, const char *key);
SNUG_CHECKED snug_status sn_conf_defaults(const sn_layer_class *cls, void *conf, snug_error *err);
/* Sets one field from its JSON-like parts; used by the JSON reader and the text form. index < 0: a
 * plain number, which fills all entries of an INTS that is not a shape (kernel_size = 3). */
SNUG_CHECKED snug_status sn_conf_set_number(const sn_conf_field *f, void *conf, int index,
                                            double value, snug_error *err);
/* That a list of n entries is one that Keras takes: strides of a Conv2D are two. */
SNUG_CHECKED snug_status sn_conf_check_count(const sn_conf_field *f, int n, snug_error *err);
/* A list that is given and has no entries: a REALS of SN_EMPTY_LIST, while one that is not given
 * has 0. */
#define SN_EMPTY_LIST (-1)
SNUG_CHECKED snug_status sn_conf_set_empty(const sn_conf_field *f, void *conf, snug_error *err);
SNUG_CHECKED snug_status sn_conf_set_text(const sn_conf_field *f, void *conf, const char *value,
                                          snug_error *err);
/* Fills a defaulted configuration. */
typedef snug_status (*sn_conf_fill)(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                                    snug_error *err);
/* "units=64 activation=relu kernel_size=3,3" as a sn_conf_fill; ctx is the text. Layers inside:
 * "layer=LSTM(units=8)", lists with spaces between. Unknown keys are errors. */
snug_status sn_conf_fill_text(void *ctx, sn_network *n, const sn_layer_class *cls, void *conf,
                              snug_error *err);
/* The value of a key of such a text, "" when it is not there. sn_conf_fill_text skips "name" and
 * "trainable", which every layer has: who adds the layer reads them with this. */
SNUG_CHECKED snug_status sn_conf_text_get(const char *text, const char *key, char *value,
                                          size_t size, snug_error *err);

#endif
