/* cast.c: every dtype to every other. Integers wrap among themselves; a float becomes an integer by
 * cutting its fraction, NaN gives 0 and what is out of range the nearest end; anything but 0 is
 * true. */
#include "kernels/cpu/half_floats.h"
#include "kernels/cpu/loops.h"

/* clang-format off */
/*      dtype      type     of which kind */
#define TYPE_MAP(X, ...)                      \
    X(SNUG_F32, float, REAL, __VA_ARGS__)     \
    X(SNUG_F64, double, REAL, __VA_ARGS__)    \
    X(SNUG_F16, sn_f16, REAL, __VA_ARGS__)      \
    X(SNUG_BF16, sn_bf16, BRAIN, __VA_ARGS__)    \
    X(SNUG_I8, int8_t, WHOLE, __VA_ARGS__)    \
    X(SNUG_U8, uint8_t, WHOLE, __VA_ARGS__)   \
    X(SNUG_I16, int16_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_U16, uint16_t, WHOLE, __VA_ARGS__) \
    X(SNUG_I32, int32_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_U32, uint32_t, WHOLE, __VA_ARGS__) \
    X(SNUG_I64, int64_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_BOOL, bool, TRUTH, __VA_ARGS__)
/* clang-format on */

/* Smallest and largest double that a value may have so that the cast to T is defined. */
#define LOW_int8_t    -128.0
#define HIGH_int8_t   127.0
#define LOW_uint8_t   0.0
#define HIGH_uint8_t  255.0
#define LOW_int16_t   -32768.0
#define HIGH_int16_t  32767.0
#define LOW_uint16_t  0.0
#define HIGH_uint16_t 65535.0
#define LOW_int32_t   -2147483648.0
#define HIGH_int32_t  2147483647.0
#define LOW_uint32_t  0.0
#define HIGH_uint32_t 4294967295.0
#define LOW_int64_t   -9223372036854775808.0
#define HIGH_int64_t  9223372036854774784.0

static inline double within(double v, double low, double high) {
    const double below = v > high ? high : v;
    const double inside = below < low ? low : below;
    return v != v ? 0 : inside;
}

#define CAST_REAL_REAL(T, x)   (T)(x)
#define CAST_REAL_WHOLE(T, x)  (T) within((double)(x), LOW_##T, HIGH_##T)
#define CAST_REAL_TRUTH(T, x)  ((x) != 0)
#define CAST_WHOLE_REAL(T, x)  (T)(x)
#define CAST_WHOLE_WHOLE(T, x) (T)(x)
#define CAST_WHOLE_TRUTH(T, x) ((x) != 0)
#define CAST_TRUTH_REAL(T, x)  (T)(x)
#define CAST_TRUTH_WHOLE(T, x) (T)(x)
#define CAST_TRUTH_TRUTH(T, x) (x)
#define CAST_BRAIN_REAL(T, x)  (T) sn_bf16_wide(x)
#define CAST_BRAIN_WHOLE(T, x) CAST_REAL_WHOLE(T, sn_bf16_wide(x))
#define CAST_BRAIN_TRUTH(T, x) (sn_bf16_wide(x) != 0)
#define CAST_BRAIN_BRAIN(T, x) (x)
#define CAST_REAL_BRAIN(T, x)  sn_bf16_of((float)(x))
#define CAST_WHOLE_BRAIN(T, x) sn_bf16_of((float)(x))
#define CAST_TRUTH_BRAIN(T, x) sn_bf16_of((float)(x))

#define CAST_SPAN(name, From, To, convert)                                                         \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const From *in = (const From *)c->in[0].data + first;                                      \
        To *out = (To *)c->out[0].data + first;                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = convert(To, in[i]);                                                           \
    }

/* clang-format off */
/* The 144 spans: TYPE_MAP inside TYPE_MAP needs a second name for the inner one. */
#define TYPE_MAP_TO(X, ...)                   \
    X(SNUG_F32, float, REAL, __VA_ARGS__)     \
    X(SNUG_F64, double, REAL, __VA_ARGS__)    \
    X(SNUG_F16, sn_f16, REAL, __VA_ARGS__)      \
    X(SNUG_BF16, sn_bf16, BRAIN, __VA_ARGS__)    \
    X(SNUG_I8, int8_t, WHOLE, __VA_ARGS__)    \
    X(SNUG_U8, uint8_t, WHOLE, __VA_ARGS__)   \
    X(SNUG_I16, int16_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_U16, uint16_t, WHOLE, __VA_ARGS__) \
    X(SNUG_I32, int32_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_U32, uint32_t, WHOLE, __VA_ARGS__) \
    X(SNUG_I64, int64_t, WHOLE, __VA_ARGS__)  \
    X(SNUG_BOOL, bool, TRUTH, __VA_ARGS__)
/* clang-format on */

#define SPAN_TO(dtype, To, to_kind, From, from_kind, ...)                                          \
    CAST_SPAN(From##_to_##To, From, To, CAST_##from_kind##_##to_kind)
#define SPANS_FROM(dtype, From, from_kind, ...) TYPE_MAP_TO(SPAN_TO, From, from_kind, 0)
TYPE_MAP(SPANS_FROM, 0)

static const sn_span spans[SNUG_N_DTYPES][SNUG_N_DTYPES] = {
#define ENTRY_TO(dtype, To, to_kind, From, ...)   [dtype] = From##_to_##To,
#define ENTRIES_FROM(dtype, From, from_kind, ...) [dtype] = {TYPE_MAP_TO(ENTRY_TO, From, 0)},
    TYPE_MAP(ENTRIES_FROM, 0)};

static snug_status run_cast(const sn_call *c, snug_error *err) {
    const snug_dtype from = c->in[0].type.dtype, to = c->out[0].type.dtype;
    if (!spans[from][to])
        return sn_no_kernel(spans[from][SNUG_F32] ? to : from, err);
    sn_spans(c, sn_type_count(&c->out[0].type), spans[from][to]);
    return SNUG_OK;
}

SN_CPU_FAMILY(cast, .reference = run_cast, .run = run_cast, .takes_stored = SN_STORED_DTYPES)
