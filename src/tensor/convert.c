/* convert.c: element conversions. Each goes through a chunk of a wide type on the stack: integers
 * (and bool) through int64_t, floats through double, so that n dtypes need n loads and n stores,
 * not n * n loops.
 *
 * Invariants:
 * 1. Rounding is to nearest, ties to even, once: the way over wider types loses nothing on the way
 *    in, and the functions *_to_odd keep what the second rounding must know.
 * 2. Integers (and bool) that the destination cannot hold are refused, never wrapped. Float to
 *    integer is not allowed: whether to round or to cut is the caller's to say.
 * 3. A chunk is read whole before it is written, and chunks go upwards: a dst that neither starts
 *    nor ends behind src overwrites only what was read. */
#include "tensor/feed.h"

#include <inttypes.h>
#include <string.h>

enum { CHUNK = 256 };

/* --- 16-bit floats ---------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float from_bf16(uint16_t h) {
    return float_of((uint32_t)h << 16);
}

static uint16_t to_bf16(float f) {
    const uint32_t bits = bits_of(f), quiet = bits >> 16 | 0x40u; /* a NaN whose payload is cut */
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static float from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(h & 0x7fffu) << 13;
    if ((h & 0x7c00u) == 0x7c00u) /* infinity, NaN */
        return float_of(sign | 0x7f800000u | rest);
    /* Read as f32 the exponent is 112 too small; the product also makes subnormals right. */
    return float_of(sign | bits_of(float_of(rest) * 0x1p112f));
}

/* Every case is computed and one taken: so loops over it are loops over vectors. */
static uint16_t to_f16(float f) {
    const uint32_t bits = bits_of(f), abs_bits = bits & 0x7fffffffu;
    /* below 2^-14 adding 1/2 makes the hardware round at 2^-24 */
    const uint32_t small = bits_of(float_of(abs_bits) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (abs_bits - 0x38000000u + 0xfffu + (abs_bits >> 13 & 1u)) >> 13;
    uint32_t h = abs_bits < 0x38800000u ? small : normal;
    h = abs_bits >= 0x477ff000u ? 0x7c00u : h; /* 65520, half way to 2^16, and above */
    h = abs_bits > 0x7f800000u ? 0x7e00u : h;
    return (uint16_t)(h | (bits >> 16 & 0x8000u));
}

/* f64 to f32 rounded to odd: an inexact result gets its last bit set, so that rounding it once more
 * to fewer bits equals rounding d directly. */
static float f64_to_odd(double d) {
    const float f = (float)d;
    const double back = (double)f;
    if (back == d || d != d)
        return f;
    uint32_t bits = bits_of(f);
    if ((back > d) == (d > 0)) /* rounded away from zero */
        bits--;
    return float_of(bits | 1u);
}

/* The same from integers to f64, which holds 53 bits of them: cut ones set the last bit kept. */
static double i64_to_odd(int64_t v) {
    const int64_t limit = (int64_t)1 << 53, cut = 0x3ff;
    if (v >= -limit && v <= limit)
        return (double)v;
    return (double)((v & ~cut) | ((v & cut) != 0 ? cut + 1 : 0));
}

/* --- loads and stores of one chunk ------------------------------------------------------------ */

typedef void (*load_float_fn)(const void *src, size_t n, double *out);
typedef void (*load_int_fn)(const void *src, size_t n, int64_t *out);
typedef void (*store_float_fn)(const double *in, size_t n, void *dst);
typedef void (*store_int_fn)(const int64_t *in, size_t n, void *dst);

/* Elements are moved with memcpy: files put them at any address. `in` is one element as stored. */
#define LOAD(name, type, wide, expression)                                                         \
    static void name(const void *src, size_t n, wide *out) {                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            type in;                                                                               \
            memcpy(&in, (const char *)src + i * sizeof in, sizeof in);                             \
            out[i] = (wide)(expression);                                                           \
        }                                                                                          \
    }
#define STORE(name, type, wide, expression)                                                        \
    static void name(const wide *from, size_t n, void *dst) {                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            const wide in = from[i];                                                               \
            const type out = (type)(expression);                                                   \
            memcpy((char *)dst + i * sizeof out, &out, sizeof out);                                \
        }                                                                                          \
    }

LOAD(load_f32, float, double, in)
LOAD(load_f64, double, double, in)
LOAD(load_f16, uint16_t, double, from_f16(in))
LOAD(load_bf16, uint16_t, double, from_bf16(in))
LOAD(load_i8, int8_t, int64_t, in)
LOAD(load_u8, uint8_t, int64_t, in)
LOAD(load_i16, int16_t, int64_t, in)
LOAD(load_u16, uint16_t, int64_t, in)
LOAD(load_i32, int32_t, int64_t, in)
LOAD(load_u32, uint32_t, int64_t, in)
LOAD(load_i64, int64_t, int64_t, in)
LOAD(load_bool, uint8_t, int64_t, in != 0)

STORE(store_f32, float, double, in)
STORE(store_f64, double, double, in)
STORE(store_f16, uint16_t, double, to_f16(f64_to_odd(in)))
STORE(store_bf16, uint16_t, double, to_bf16(f64_to_odd(in)))
STORE(int_to_f32, float, int64_t, in)
STORE(int_to_f64, double, int64_t, in)
STORE(int_to_f16, uint16_t, int64_t, to_f16(f64_to_odd(i64_to_odd(in))))
STORE(int_to_bf16, uint16_t, int64_t, to_bf16(f64_to_odd(i64_to_odd(in))))
STORE(store_i8, int8_t, int64_t, in)
STORE(store_u8, uint8_t, int64_t, in)
STORE(store_i16, int16_t, int64_t, in)
STORE(store_u16, uint16_t, int64_t, in)
STORE(store_i32, int32_t, int64_t, in)
STORE(store_u32, uint32_t, int64_t, in)
STORE(store_i64, int64_t, int64_t, in)

typedef struct {
    load_float_fn load_float;   /* NULL: not a float */
    load_int_fn load_int;       /* NULL: not an integer */
    store_float_fn store_float; /* NULL: takes no floats */
    store_int_fn store_int;
    int64_t min, max; /* of integers */
} convert_row;

static const convert_row rows[SNUG_N_DTYPES] = {
    [SNUG_F32] = {load_f32, NULL, store_f32, int_to_f32, INT64_MIN, INT64_MAX},
    [SNUG_F64] = {load_f64, NULL, store_f64, int_to_f64, INT64_MIN, INT64_MAX},
    [SNUG_F16] = {load_f16, NULL, store_f16, int_to_f16, INT64_MIN, INT64_MAX},
    [SNUG_BF16] = {load_bf16, NULL, store_bf16, int_to_bf16, INT64_MIN, INT64_MAX},
    [SNUG_I8] = {NULL, load_i8, NULL, store_i8, INT8_MIN, INT8_MAX},
    [SNUG_U8] = {NULL, load_u8, NULL, store_u8, 0, UINT8_MAX},
    [SNUG_I16] = {NULL, load_i16, NULL, store_i16, INT16_MIN, INT16_MAX},
    [SNUG_U16] = {NULL, load_u16, NULL, store_u16, 0, UINT16_MAX},
    [SNUG_I32] = {NULL, load_i32, NULL, store_i32, INT32_MIN, INT32_MAX},
    [SNUG_U32] = {NULL, load_u32, NULL, store_u32, 0, UINT32_MAX},
    [SNUG_I64] = {NULL, load_i64, NULL, store_i64, INT64_MIN, INT64_MAX},
    [SNUG_BOOL] = {NULL, load_bool, NULL, store_u8, 0, 1},
};

static snug_status check_range(const int64_t *v, size_t n, size_t first, snug_dtype to,
                               snug_error *err) {
    if (rows[to].min == INT64_MIN)
        return SNUG_OK;
    for (size_t i = 0; i < n; i++) {
        if (v[i] < rows[to].min || v[i] > rows[to].max)
            return sn_fail(err, SNUG_E_DATA,
                           "element %zu is %" PRId64 ", which %s cannot hold; use a wider dtype",
                           first + i, v[i], snug_dtype_name(to));
    }
    return SNUG_OK;
}

static void convert_floats(const convert_row *from, const void *src, const convert_row *to,
                           void *dst, size_t n) {
    double chunk[CHUNK];
    from->load_float(src, n, chunk);
    to->store_float(chunk, n, dst);
}

/* What rows of f32 are fed as, under a policy of halves: at once. */
static void halve(const void *src, snug_dtype to, void *dst, size_t n) {
    float in[CHUNK];
    uint16_t out[CHUNK];
    memcpy(in, src, n * sizeof *in);
    if (to == SNUG_BF16)
        for (size_t i = 0; i < n; i++)
            out[i] = to_bf16(in[i]);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = to_f16(in[i]);
    memcpy(dst, out, n * sizeof *out);
}

snug_status sn_convert(snug_dtype from, const void *src, snug_dtype to, void *dst, size_t n,
                       snug_error *err) {
    const size_t from_bytes = snug_dtype_bytes(from), to_bytes = snug_dtype_bytes(to);
    if (from_bytes == 0 || to_bytes == 0)
        return sn_fail(err, SNUG_E_DATA,
                       "cannot convert %s to %s: opaque bytes have no meaning outside their device",
                       snug_dtype_name(from), snug_dtype_name(to));
    const bool floats = sn_dtype_is_float(from);
    if (floats && !sn_dtype_is_float(to))
        return sn_fail(err, SNUG_E_DATA,
                       "cannot convert %s to %s without losing fractions; cast the data first",
                       snug_dtype_name(from), snug_dtype_name(to));
    if (from == to) {
        memmove(dst, src, n * from_bytes);
        return SNUG_OK;
    }
    for (size_t done = 0; done < n;) {
        const size_t k = n - done < CHUNK ? n - done : CHUNK;
        const char *in = (const char *)src + done * from_bytes;
        char *out = (char *)dst + done * to_bytes;
        if (from == SNUG_F32 && sn_dtype_is_half(to)) {
            halve(in, to, out, k);
        } else if (floats) {
            convert_floats(&rows[from], in, &rows[to], out, k);
        } else {
            int64_t chunk[CHUNK];
            rows[from].load_int(in, k, chunk);
            SNUG_TRY(check_range(chunk, k, done, to, err));
            rows[to].store_int(chunk, k, out);
        }
        done += k;
    }
    return SNUG_OK;
}
