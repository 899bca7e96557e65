/* feed.h: the inside of a feed, and recipes: values without storage until someone needs their
 * bytes. */
#ifndef SN_TENSOR_FEED_H
#define SN_TENSOR_FEED_H

#include "memory/engine.h"
#include "tensor/source.h"
#include "tensor/type.h"

struct snug_feed {
    snug_engine *engine;
    snug_type type;
    void *ctx;
    snug_feed_fill_fn fill;     /* is asked for rows inside [0, dims[0]) only */
    void (*release)(void *ctx); /* may be NULL */
    /* Makes what a fill in this dtype needs, once; NULL: nothing ever does. */
    snug_status (*prepare)(void *ctx, snug_dtype to, snug_error *err);
};

/* A feed of any kind; on failure release is not called. */
SNUG_CHECKED snug_status sn_feed_create(snug_engine *e, const snug_type *type, void *ctx,
                                        snug_feed_fill_fn fill, void (*release)(void *ctx),
                                        snug_feed **out, snug_error *err);

/* Makes now what snug_feed_fill would make at the first fill in this dtype: for who binds a feed to
 * an input, so that the run loop allocates nothing. */
SNUG_CHECKED snug_status sn_feed_prepare(snug_feed *feed, snug_dtype to, snug_error *err);

/* Copies n elements, converting; SNUG_E_DATA when src -> dst is not allowed (float to integer) or
 * an integer does not fit. Any addresses; the two may overlap where dst neither starts nor ends
 * behind src. After a failure dst holds anything. */
SNUG_CHECKED snug_status sn_convert(snug_dtype from, const void *src, snug_dtype to, void *dst,
                                    size_t n, snug_error *err);

/*      kind        meaning */
typedef enum {
    SN_RECIPE_CONSTANT,   /* a everywhere (zeros: a = 0) */
    SN_RECIPE_UNIFORM,    /* [a, b) */
    SN_RECIPE_NORMAL,     /* mean a, deviation b */
    SN_RECIPE_TRUNCATED,  /* mean a, deviation b, cut at 2 b */
    SN_RECIPE_LABELS,     /* integers in [0, b) */
    SN_RECIPE_FORGET,     /* a, but 1 for elements [b, 2 b): biases of an LSTM of b units */
    SN_RECIPE_EYE,        /* of a matrix of b columns: a on the diagonal, else 0 */
    SN_RECIPE_ORTHOGONAL, /* of a matrix of b columns: rows or columns of length a, at right
                             angles; f32 or f64; made whole, never in slices */
    SN_RECIPE_FILE,       /* elements of a source from a on; key is the source's address */
    SN_RECIPE_MEMORY      /* the same of foreign memory */
} sn_recipe_kind;

/* 32 bytes that stand for a tensor of any size. */
typedef struct {
    sn_recipe_kind kind;
    uint64_t key;
    double a, b;
} sn_recipe;

/* The source's elements from `first` on, first < 2^53. The recipe lends the source: feeds and homes
 * made from it hold it themselves. */
sn_recipe sn_source_recipe(const sn_source *s, uint64_t first);
/* NULL for a recipe of another kind. */
sn_source *sn_recipe_source(const sn_recipe *r);

/* Whether its elements are made all at once only: a matrix with orthonormal rows or columns. */
bool sn_recipe_is_whole(const sn_recipe *r);
/* Elements [first, first + n) of the recipe into dst of a float or integer dtype. */
SNUG_CHECKED snug_status sn_recipe_fill(const sn_recipe *r, uint64_t first, size_t n,
                                        snug_dtype dtype, void *dst, snug_error *err);
SNUG_CHECKED snug_status sn_feed_from_recipe(snug_engine *e, const snug_type *type,
                                             const sn_recipe *r, snug_feed **out, snug_error *err);
/* NULL for a feed of another kind. Lent. */
const sn_recipe *sn_feed_recipe(const snug_feed *feed);

#endif
