/* py_array.c: foreign arrays by the buffer protocol and by DLPack: their elements, also those of
 * bfloat16, for which neither Python's buffers nor NumPy have a name. */
#include "py.h"

#include <string.h>

/* --- elements --------------------------------------------------------------------------------- */
uint16_t py_bf16_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if (f != f)
        return (uint16_t)((u >> 16) | 64);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static float of_bf16(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, 4);
    return f;
}

int py_is_array(PyObject *o) {
    return PyObject_CheckBuffer(o) && !PyBytes_Check(o) && !PyByteArray_Check(o);
}

/* ml_dtypes' bfloat16 has no format of buffers; as NumPy calls it, that of its bits is BITS. */
static char BITS[] = "E";

int py_array_buffer(PyObject *o, Py_buffer *b) {
    PyObject *type, *value, *trace;
    if (PyObject_GetBuffer(o, b, PyBUF_FULL_RO) == 0)
        return 0;
    if (PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *module = PyImport_ImportModule("snug._arrays");
    PyObject *bits = module ? PyObject_CallMethod(module, "bits", "O", o) : NULL;
    int bad = -1;
    if (bits == Py_None)
        PyErr_Restore(type, value, trace);
    else if (bits)
        bad = PyObject_GetBuffer(bits, b, PyBUF_FULL_RO);
    if (bits != Py_None)
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    if (bad == 0)
        b->format = BITS;
    Py_XDECREF(bits);
    Py_XDECREF(module);
    return bad;
}

/* The elements of foreign arrays: those of tensors and one more. */
enum { FROM_U64 = SNUG_N_DTYPES };

int py_array_dtype(const char *format, Py_ssize_t itemsize) {
    char c = 'B';
    if (format) {
        while (*format == '@' || *format == '=' || *format == '<')
            format++;
        c = format[0] && !format[1] ? *format : 0;
    }
    if (strchr("efd", c) && c)
        return c == 'e' ? SNUG_F16 : c == 'f' ? SNUG_F32 : SNUG_F64;
    if (c == '?' || c == BITS[0])
        return c == '?' ? SNUG_BOOL : SNUG_BF16;
    static const int whole[4][2] = {
        {SNUG_I8, SNUG_U8}, {SNUG_I16, SNUG_U16}, {SNUG_I32, SNUG_U32}, {SNUG_I64, FROM_U64}};
    const char *letters = "bBhHiIlLqQnN";
    const char *at = c ? strchr(letters, c) : NULL;
    int size = itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : itemsize == 8 ? 3 : -1;
    return at && size >= 0 ? whole[size][(at - letters) & 1] : -1;
}

/* n elements that lie stride bytes apart, as dense ones of the dtype. */
#define TO(D, EXPRESSION)                                                                          \
    for (Py_ssize_t i = 0; i < n; i++, s += stride) {                                              \
        memcpy(&v, s, sizeof v);                                                                   \
        ((D *)to)[i] = (D)(EXPRESSION);                                                            \
    }                                                                                              \
    return
#define FROM(name, S, VALUE)                                                                       \
    static void from_##name(const char *s, Py_ssize_t stride, Py_ssize_t n, snug_dtype dtype,      \
                            void *to) {                                                            \
        S v;                                                                                       \
        switch (dtype) {                                                                           \
        case SNUG_F32:                                                                             \
            TO(float, VALUE);                                                                      \
        case SNUG_F64:                                                                             \
            TO(double, VALUE);                                                                     \
        case SNUG_F16:                                                                             \
            TO(SN_HALF, VALUE);                                                                    \
        case SNUG_BF16:                                                                            \
            TO(uint16_t, py_bf16_of((float)(VALUE)));                                              \
        case SNUG_I8:                                                                              \
            TO(int8_t, VALUE);                                                                     \
        case SNUG_U8:                                                                              \
            TO(uint8_t, VALUE);                                                                    \
        case SNUG_I16:                                                                             \
            TO(int16_t, VALUE);                                                                    \
        case SNUG_U16:                                                                             \
            TO(uint16_t, VALUE);                                                                   \
        case SNUG_U32:                                                                             \
            TO(uint32_t, VALUE);                                                                   \
        case SNUG_I32:                                                                             \
            TO(int32_t, VALUE);                                                                    \
        case SNUG_I64:                                                                             \
            TO(int64_t, VALUE);                                                                    \
        case SNUG_BOOL:                                                                            \
            TO(uint8_t, (VALUE) != 0);                                                             \
        default:                                                                                   \
            return;                                                                                \
        }                                                                                          \
    }
FROM(f32, float, v)
FROM(f64, double, v)
FROM(f16, SN_HALF, v)
FROM(i8, int8_t, v)
FROM(u8, uint8_t, v)
FROM(i16, int16_t, v)
FROM(u16, uint16_t, v)
FROM(i32, int32_t, v)
FROM(u32, uint32_t, v)
FROM(i64, int64_t, v)
FROM(u64, uint64_t, v)
FROM(bf16, uint16_t, of_bf16(v))

typedef void (*run_fn)(const char *, Py_ssize_t, Py_ssize_t, snug_dtype, void *);

static run_fn run_of(int from) {
    static const run_fn runs[] = {
        [SNUG_F32] = from_f32, [SNUG_F64] = from_f64, [SNUG_F16] = from_f16,
        [SNUG_I8] = from_i8,   [SNUG_U8] = from_u8,   [SNUG_I32] = from_i32,
        [SNUG_I64] = from_i64, [SNUG_BOOL] = from_u8, [SNUG_BF16] = from_bf16,
        [SNUG_I16] = from_i16, [SNUG_U16] = from_u16, [SNUG_U32] = from_u32,
        [FROM_U64] = from_u64,
    };
    return runs[from];
}

static char *put_axis(const Py_buffer *b, int axis, const char *s, run_fn run, snug_dtype dtype,
                      char *to) {
    size_t item = snug_dtype_bytes(dtype);
    if (axis == b->ndim) {
        run(s, 0, 1, dtype, to);
        return to + item;
    }
    if (axis == b->ndim - 1) {
        run(s, b->strides[axis], b->shape[axis], dtype, to);
        return to + item * (size_t)b->shape[axis];
    }
    for (Py_ssize_t i = 0; i < b->shape[axis]; i++)
        to = put_axis(b, axis + 1, s + i * b->strides[axis], run, dtype, to);
    return to;
}

int py_put_array(const Py_buffer *from, int from_dtype, snug_dtype dtype, void *to) {
    if (from_dtype == (int)dtype && PyBuffer_IsContiguous(from, 'C'))
        memcpy(to, from->buf, (size_t)from->len);
    else
        put_axis(from, 0, from->buf, run_of(from_dtype), dtype, to);
    return 0;
}

/* --- DLPack ----------------------------------------------------------------------------------- */
/* How DLManagedTensor of DLPack's dlpack.h begins. */
typedef struct {
    void *data;
    int32_t device[2], ndim;
    uint8_t code, bits;
    uint16_t lanes;
} dl_tensor;

/* retype_dlpack(capsule, from, to): numbers of two bytes of the one kind are of the other now;
 * whether they were. */
PyObject *py_retype_dlpack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    int from, to;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &from, &to))
        return NULL;
    if (!PyCapsule_IsValid(capsule, "dltensor")) /* of a later version, or no capsule: NumPy says */
        Py_RETURN_FALSE;
    dl_tensor *t = PyCapsule_GetPointer(capsule, "dltensor");
    if (t->code != from || t->bits != 16 || t->lanes != 1)
        Py_RETURN_FALSE;
    t->code = (uint8_t)to;
    Py_RETURN_TRUE;
}
