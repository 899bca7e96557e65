/* tensor.h: element types, shapes, views of memory, and feeds: how bytes reach a plan.
 *
 *     float x[4][2] = {...};
 *     snug_type type = {.dtype = SNUG_F32, .rank = 2, .dims = {4, 2}};
 *     snug_feed *feed;
 *     snug_feed_from_memory(engine, &type, x, NULL, NULL, &feed, &err);   // borrowed: x must stay
 *     snug_feed_open(engine, "images.npy", &feed, &err);  // read in windows, never whole
 *     snug_feed_open(engine, "normal:256x1024x1024x3@7", &feed, &err);  // a recipe: 32 bytes */
#ifndef SNUG_TENSOR_H
#define SNUG_TENSOR_H

#include <snug/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNUG_MAX_RANK 8

/* clang-format off */
/* THE TABLE of element types; the order is part of the text formats.
 *   kind      FLOAT, SIGNED, COUNT (whole numbers without a sign), TRUTH, or NONE
 *   computed  the type that functions compute in where this one is given: half floats and narrow whole numbers are widened
 *   sums      the type that sums over parts of a batch are kept in
 *   word      NumPy's and TensorFlow's name
 *   largest   finite value, as a double; of i64 the largest that a double has
 *     name    text    bytes kind    computed sums    word        largest                 npy    safetensors */
#define SNUG_DTYPE_MAP(X)                                                                                \
    X(F32,    f32,    4,    FLOAT,  F32,     F32,    "float32",  0x1.fffffep127,         "<f4", "F32")   \
    X(F64,    f64,    8,    FLOAT,  F64,     F64,    "float64",  0x1.fffffffffffffp1023, "<f8", "F64")   \
    X(F16,    f16,    2,    FLOAT,  F32,     F32,    "float16",  65504.0,                "<f2", "F16")   \
    X(BF16,   bf16,   2,    FLOAT,  F32,     F32,    "bfloat16", 0x1.fep127,             "",    "BF16")  \
    X(I8,     i8,     1,    SIGNED, I8,      I8,     "int8",     127.0,                  "|i1", "I8")    \
    X(U8,     u8,     1,    COUNT,  U8,      U8,     "uint8",    255.0,                  "|u1", "U8")    \
    X(I32,    i32,    4,    SIGNED, I32,     I32,    "int32",    2147483647.0,           "<i4", "I32")   \
    X(I64,    i64,    8,    SIGNED, I64,     I64,    "int64",    9223372036854774784.0,  "<i8", "I64")   \
    X(BOOL,   bool,   1,    TRUTH,  BOOL,    BOOL,   "bool",     1.0,                    "|b1", "BOOL")  \
    X(I16,    i16,    2,    SIGNED, I32,     I16,    "int16",    32767.0,                "<i2", "I16")   \
    X(U16,    u16,    2,    COUNT,  I32,     U16,    "uint16",   65535.0,                "<u2", "U16")   \
    X(U32,    u32,    4,    COUNT,  I64,     U32,    "uint32",   4294967295.0,           "<u4", "U32")   \
    X(OPAQUE, opaque, 0,    NONE,   OPAQUE,  OPAQUE, "opaque",   0.0,                    "",    "") /* bytes are the device's business, e.g. argmax codes */
/* clang-format on */

typedef enum {
#define SNUG_DTYPE_ENUM(name, ...) SNUG_##name,
    SNUG_DTYPE_MAP(SNUG_DTYPE_ENUM)
#undef SNUG_DTYPE_ENUM
        SNUG_N_DTYPES
} snug_dtype;

/* Element type and extents; dense, row major. In a template a dim may be -1: unknown until
 * instantiation. */
typedef struct {
    snug_dtype dtype;
    int rank;
    int64_t dims[SNUG_MAX_RANK];
} snug_type;

/* Lent memory of a type. data is never NULL, not even for zero elements. */
typedef struct {
    void *data;
    size_t bytes;
    snug_type type;
} snug_view;

SNUG_API const char *snug_dtype_name(snug_dtype dtype); /* "f32" */
SNUG_API size_t snug_dtype_bytes(snug_dtype dtype);     /* 0 for opaque */
/* Bytes of a fully known type; SNUG_E_OVERFLOW beyond the address space. */
SNUG_API SNUG_CHECKED snug_status snug_type_bytes(const snug_type *type, size_t *bytes,
                                                  snug_error *err);
/* "f32[32,10]"; text holds >= 192 bytes. */
SNUG_API const char *snug_type_print(const snug_type *type, char *text, size_t size);

/* A source of rows (row = index along axis 0). */
typedef struct snug_feed snug_feed;

/* type->dims[0] is the number of rows there are. */
SNUG_API const snug_type *snug_feed_type(const snug_feed *feed);
/* Writes rows [first, first + n) into dst (dst->type.dims[0] == n), converting to its dtype where
 * that loses nothing unexpected: u8 -> f32, f64 -> f32, i64 -> i32; never float -> integer. */
SNUG_API SNUG_CHECKED snug_status snug_feed_fill(snug_feed *feed, int64_t first_row, int64_t n_rows,
                                                 const snug_view *dst, snug_error *err);
SNUG_API void snug_feed_destroy(snug_feed *feed);

/* Borrow or adopt memory: release(ctx) is called on destroy when not NULL. */
SNUG_API SNUG_CHECKED snug_status snug_feed_from_memory(snug_engine *engine, const snug_type *type,
                                                        const void *data,
                                                        void (*release)(void *ctx), void *ctx,
                                                        snug_feed **out, snug_error *err);
/* The caller's own source; fill may be asked for any rows, any number of times. */
typedef snug_status (*snug_feed_fill_fn)(void *ctx, int64_t first_row, int64_t n_rows,
                                         const snug_view *dst, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_feed_from_callback(snug_engine *engine,
                                                          const snug_type *type,
                                                          snug_feed_fill_fn fill,
                                                          void (*release)(void *ctx), void *ctx,
                                                          snug_feed **out, snug_error *err);
/* An .npy or idx file (also .gz), an array of an .npz file that is not compressed
 * ("mnist.npz:x_train"), CIFAR's binary files ("cifar10:data_batch_1.bin" u8[n,32,32,3],
 * "cifar10-labels:...", "cifar100:...", "cifar100-labels:...", "cifar100-coarse:..."), or a recipe:
 * zeros:SHAPE, constant:SHAPE@V, normal:SHAPE@SEED,
 * uniform:SHAPE@SEED, truncated:SHAPE@SEED, labels:SHAPE@SEED@CLASSES (i32). */
SNUG_API SNUG_CHECKED snug_status snug_feed_open(snug_engine *engine, const char *source,
                                                 snug_feed **out, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
