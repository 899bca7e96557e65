/* features.h: the features wanted of an Example, as the attribute "features" lists them
 * (include/snug/data_ops.h), and where they lie in the bytes of one. */
#ifndef SN_CODEC_FEATURES_H
#define SN_CODEC_FEATURES_H

#include "codec/data_ops.h"
#include "codec/protobuf.h"

typedef enum { SN_FEATURE_FIXED, SN_FEATURE_VAR, SN_FEATURE_SEQUENCE } sn_feature_kind;

typedef struct {
    const char *name;
    size_t name_bytes;
    sn_feature_kind kind;
    snug_dtype dtype;   /* F32, I64, OPAQUE: text */
    snug_type shape;    /* of a value: dims of FixedLen, of a step of a sequence */
    int64_t count;      /* elements of shape */
    int64_t n_default;  /* 0: none. 1: for every element */
    const void *values; /* floats, int64_t or snug_texts */
} sn_feature;

typedef struct {
    int n, n_out;
    sn_feature *feature;
} sn_features;

/* A feature in the bytes of an Example: list is the bytes of its list, of a dtype. */
typedef struct {
    bool there;
    snug_dtype dtype;
    sn_proto list;
    int64_t n; /* values in it */
} sn_found;

/* Finds all features in an Example; found has room for f->n. The last of equal names counts. */
SNUG_CHECKED snug_status sn_features_find(const sn_features *f, const snug_text *example,
                                          sn_found *found, snug_error *err);
/* The values of a list; to has room for found->n of its dtype. Texts point into the Example. */
void sn_found_copy(const sn_found *found, void *to);

#endif
