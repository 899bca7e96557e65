/* py_convert.c: Python values as tensors: numbers, NumPy arrays and what looks like them. Arrays
 * are read through the buffer protocol and copied once, straight into the tensor, whatever their
 * strides and dtype. */
#include "py.h"

#include <string.h>

enum { FLOAT, SIGNED, COUNT, TRUTH, NONE };

static const struct {
    int kind;
    const char *word;
} dtypes[SNUG_N_DTYPES] = {
#define ROW(name, lower, bytes, kind, computed, sums, word, ...) {kind, word},
    SNUG_DTYPE_MAP(ROW)
#undef ROW
};

int py_is_float(snug_dtype d) {
    return dtypes[d].kind == FLOAT;
}

int py_is_integer(snug_dtype d) {
    return dtypes[d].kind == SIGNED || dtypes[d].kind == COUNT;
}

const char *py_dtype_word(snug_dtype d) {
    return dtypes[d].word;
}

PyObject *py_dtype_object(snug_dtype dtype) {
    PyObject *o = dtype < SNUG_OPAQUE ? py.dtypes[dtype] : Py_None;
    Py_INCREF(o);
    return o;
}

int py_dtype(PyObject *o, snug_dtype *out) {
    PyObject *made = NULL;
    if ((PyObject *)Py_TYPE(o) != py.dtype_class) {
        PyObject *types = PyImport_ImportModule("snug._types");
        made = types ? PyObject_CallMethod(types, "as_dtype", "(O)", o) : NULL;
        Py_XDECREF(types);
        if (!made)
            return -1;
        o = made;
    }
    PyObject *code = PyObject_GetAttr(o, py.str_code);
    long n = code ? PyLong_AsLong(code) : -1;
    Py_XDECREF(code);
    if (n < 0 && !PyErr_Occurred())
        py_error("UnimplementedError", "Snug has no tensors of dtype %S", o);
    Py_XDECREF(made);
    *out = n < 0 ? SNUG_F32 : (snug_dtype)n;
    return n < 0 ? -1 : 0;
}

PyObject *py_shape(const snug_type *type) {
    PyObject *dims = PyTuple_New(type->rank);
    for (int i = 0; dims && i < type->rank; i++) {
        PyObject *n = PyLong_FromLongLong(type->dims[i]);
        if (!n || PyTuple_SetItem(dims, i, n) < 0)
            Py_CLEAR(dims);
    }
    PyObject *shape = dims ? PyObject_CallFunctionObjArgs(py.shape_class, dims, NULL) : NULL;
    Py_XDECREF(dims);
    return shape;
}

static int put_dim(snug_type *type, PyObject *o) {
    PyObject *n = PyNumber_Index(o);
    if (!n)
        return -1;
    long long dim = PyLong_AsLongLong(n);
    Py_DECREF(n);
    if (dim == -1 && PyErr_Occurred())
        return -1;
    if (type->rank == SNUG_MAX_RANK) {
        py_error("UnimplementedError", "Snug has tensors of at most %d axes", SNUG_MAX_RANK);
        return -1;
    }
    type->dims[type->rank++] = dim;
    return 0;
}

int py_dims(PyObject *o, snug_type *type) {
    type->rank = 0;
    if (PyLong_Check(o))
        return put_dim(type, o);
    PyObject *all = PySequence_Tuple(o);
    if (!all && PyIndex_Check(o)) {
        PyErr_Clear();
        return put_dim(type, o);
    }
    Py_ssize_t n = all ? PyTuple_Size(all) : 0;
    int bad = !all;
    for (Py_ssize_t i = 0; i < n && !bad; i++)
        bad = put_dim(type, PyTuple_GetItem(all, i)) < 0;
    Py_XDECREF(all);
    return bad ? -1 : 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */
int py_is_number(PyObject *o) {
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o);
}

static void put_real(double v, snug_dtype dtype, void *to) {
    if (dtype == SNUG_F64)
        memcpy(to, &v, 8);
    float f = (float)v;
    if (dtype == SNUG_F32)
        memcpy(to, &f, 4);
    SN_HALF h = (SN_HALF)v;
    if (dtype == SNUG_F16)
        memcpy(to, &h, 2);
    uint16_t b = py_bf16_of(f);
    if (dtype == SNUG_BF16)
        memcpy(to, &b, 2);
}

static void put_whole(long long v, snug_dtype dtype, void *to) {
    if (dtype == SNUG_BOOL)
        *(uint8_t *)to = v != 0;
    else
        memcpy(to, &v, snug_dtype_bytes(dtype)); /* little endian: the low bytes */
}

static int no_place(PyObject *o, snug_dtype dtype) {
    PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", o,
                 py_dtype_word(dtype));
    return -1;
}

int py_put_number(PyObject *o, snug_dtype dtype, void *to) {
    if (py_is_float(dtype)) {
        double v = PyFloat_AsDouble(o);
        if (v == -1 && PyErr_Occurred())
            return -1;
        put_real(v, dtype, to);
        return 0;
    }
    if (PyFloat_Check(o) || (dtype == SNUG_BOOL && !PyBool_Check(o)))
        return no_place(o, dtype);
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
        PyErr_SetString(PyExc_ValueError,
                        "Can't convert Python sequence with out-of-range integer to Tensor.");
        return -1;
    }
    if (v == -1 && PyErr_Occurred())
        return -1;
    put_whole(v, dtype, to);
    return 0;
}

/* --- arrays ----------------------------------------------------------------------------------- */
static int array_type(const Py_buffer *b, int dtype, snug_type *type, int *from) {
    *from = py_array_dtype(b->format, b->itemsize);
    if (*from < 0 || (*from >= SNUG_N_DTYPES && dtype == PY_ANY)) {
        py_error("UnimplementedError", "Snug has no tensors of elements '%s'", b->format);
        return -1;
    }
    if (b->ndim > SNUG_MAX_RANK) {
        py_error("UnimplementedError", "Snug has tensors of at most %d axes", SNUG_MAX_RANK);
        return -1;
    }
    type->dtype = dtype == PY_ANY ? (snug_dtype)*from : (snug_dtype)dtype;
    type->rank = b->ndim;
    for (int i = 0; i < b->ndim; i++)
        type->dims[i] = b->shape[i];
    return 0;
}

/* Elements as they are may go to a GPU without a copy on the host. */
static snug_status copy_array(const Py_buffer *b, int from, const snug_type *type, snug_tensor **t,
                              snug_error *err) {
    void *to;
    if (from == (int)type->dtype && !snug_recorder_is_on_host(py.recorder) &&
        PyBuffer_IsContiguous(b, 'C'))
        return snug_tensor_copy(py.recorder, type, b->buf, t, err);
    const snug_status status = snug_tensor_fresh(py.recorder, type, t, &to, err);
    if (status == SNUG_OK)
        py_put_array(b, from, type->dtype, to);
    return status;
}

/* An array of objects that are numbers. */
static snug_tensor *convert_objects(PyObject *o, int dtype) {
    PyObject *module = PyImport_ImportModule("snug._arrays");
    PyObject *made = module ? PyObject_CallMethod(module, "numbers", "O", o) : NULL;
    snug_tensor *t = NULL;
    if (made == o)
        PyErr_SetString(PyExc_ValueError,
                        "Failed to convert a NumPy array to a Tensor (Unsupported object type).");
    else if (made)
        t = py_convert(made, dtype, PY_MUST);
    Py_XDECREF(made);
    Py_XDECREF(module);
    return t;
}

static snug_tensor *convert_array(PyObject *o, int dtype) {
    Py_buffer b;
    snug_error err;
    snug_tensor *t = NULL;
    snug_type type;
    int from;
    if (py_array_buffer(o, &b) < 0)
        return NULL;
    if (b.format && strcmp(b.format, "O") == 0) {
        PyBuffer_Release(&b);
        return convert_objects(o, dtype);
    }
    if (array_type(&b, dtype, &type, &from) == 0 &&
        copy_array(&b, from, &type, &t, &err) != SNUG_OK)
        py_raise(&err);
    PyBuffer_Release(&b);
    return t;
}

/* --- arrays that nobody else has -------------------------------------------------------------- */
#define LEAST_BORROWED ((Py_ssize_t)1 << 20) /* bytes; fewer are copied faster than asked about */

static void give_back(void *ctx) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyBuffer_Release(ctx);
    PyMem_Free(ctx);
    PyErr_Restore(type, value, trace);
}

/* Whether the interpreter called this function itself, with so many arguments, one of them this. */
static int is_own(PyObject *o, Py_ssize_t n_args) {
    long lasti = 0;
    PyObject *code = py_caller(&lasti);
    PyObject *module = code ? py_helper(&py.text, "snug._text") : NULL;
    PyObject *answer =
        module ? PyObject_CallMethod(module, "is_own", "OOln", o, code, lasti, n_args) : NULL;
    const int yes = answer && PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return yes;
}

snug_tensor *py_adopt_array(PyObject *o, int dtype, Py_ssize_t n_args) {
    snug_error err;
    snug_tensor *t = NULL;
    snug_type type;
    int from;
    Py_buffer *b = PyMem_Malloc(sizeof *b);
    if (!b || py_array_buffer(o, b) < 0) {
        PyErr_Clear();
        PyMem_Free(b);
        return NULL;
    }
    if (b->len < (n_args < 0 ? 1 : LEAST_BORROWED) || !PyBuffer_IsContiguous(b, 'C') ||
        array_type(b, dtype, &type, &from) < 0 || from != (int)type.dtype ||
        (n_args >= 0 && !is_own(o, n_args))) {
        PyErr_Clear();
        give_back(b);
        return NULL;
    }
    /* Within a budget NumPy's bytes are booked already. */
    const snug_status status = (py.guarded ? snug_tensor_borrow : snug_tensor_adopt)(
        py.recorder, &type, b->buf, give_back, b, &t, &err);
    if (status != SNUG_OK) {
        py_raise(&err);
        give_back(b);
        return NULL;
    }
    return t;
}

/* --- everything ------------------------------------------------------------------------------- */
int py_is_tensor(PyObject *o) {
    return Py_IS_TYPE(o, py.tensor) || PyObject_TypeCheck(o, py.variable);
}

/* A variable as the layer that is called reads it. Takes the tensor. */
static snug_tensor *autocast(PyObject *o, snug_tensor *t) {
    const snug_dtype has = snug_tensor_type(t)->dtype;
    const int real = has == SNUG_F32 || has == SNUG_F64 || has == SNUG_F16 || has == SNUG_BF16;
    if (!py.autocasts || has == py.autocast || !real)
        return t;
    PyObject *wish = PyObject_GetAttrString(o, "_autocast"); /* only Keras' variables have it */
    if (!wish)
        PyErr_Clear();
    const int is_cast = wish == Py_True;
    Py_XDECREF(wish);
    if (!is_cast)
        return t;
    snug_tensor *cast = py_call("tf.cast",
                                (snug_argument[]){{.kind = SNUG_ARG_TENSOR, .tensor = t},
                                                  {.kind = SNUG_ARG_DTYPE, .dtype = py.autocast}},
                                2);
    py_drop(t);
    return cast;
}

snug_tensor *py_lend(PyObject *o, snug_tensor **to_drop) {
    snug_error err;
    if (Py_IS_TYPE(o, py.tensor))
        return ((py_tensor *)o)->t;
    snug_variable *v = py_variable_of(o);
    if (!v)
        return NULL;
    if (snug_variable_read(v, to_drop, &err) != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    *to_drop = autocast(o, *to_drop);
    return *to_drop;
}

static snug_tensor *convert_tensor(PyObject *o, int dtype, py_wish wish) {
    snug_tensor *read = NULL, *t = py_lend(o, &read);
    if (!t)
        return NULL;
    snug_dtype has = snug_tensor_type(t)->dtype;
    if (dtype != PY_ANY && wish == PY_MUST && (int)has != dtype) {
        PyErr_Format(PyExc_ValueError,
                     "Tensor conversion requested dtype %s for Tensor with dtype %s",
                     py_dtype_word((snug_dtype)dtype), py_dtype_word(has));
        py_drop(read);
        return NULL;
    }
    if (!read)
        snug_tensor_hold(t);
    return t;
}

static snug_dtype dtype_of_number(PyObject *o) {
    if (PyBool_Check(o))
        return SNUG_BOOL;
    if (PyFloat_Check(o))
        return SNUG_F32;
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow || v != (int32_t)v ? SNUG_I64 : SNUG_I32;
}

static snug_tensor *convert_number(PyObject *o, int dtype) {
    snug_error err;
    snug_tensor *t;
    snug_type type = {.dtype = dtype == PY_ANY ? dtype_of_number(o) : (snug_dtype)dtype};
    int64_t bytes;
    if (py_put_number(o, type.dtype, &bytes) < 0)
        return NULL;
    /* Bytes, not a number of the recorder: a tape that watches it finds it by them. */
    snug_status s = snug_tensor_copy(py.recorder, &type, &bytes, &t, &err);
    if (s != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    return t;
}

/* Tensors that are only described: what they are an argument of asks them. */
int py_is_symbol(PyObject *o) {
    return !py_is_tensor(o) && !py_is_number(o) && PyObject_HasAttrString(o, "__snug_function__");
}

/* What __array__ gives is an array, as NumPy demands, or a tensor or number: never another object
 * that is to be asked, so that nothing is asked for ever. */
static PyObject *array_of(PyObject *o) {
    PyObject *array = PyObject_CallMethod(o, "__array__", NULL);
    if (array && !py_is_array(array) && !py_is_tensor(array) && !py_is_number(array)) {
        PyErr_Format(PyExc_ValueError,
                     "object __array__ method not producing an array: %R gives %R", Py_TYPE(o),
                     Py_TYPE(array));
        Py_CLEAR(array);
    }
    return array;
}

static snug_tensor *convert_other(PyObject *o, int dtype, py_wish wish) {
    if (o == Py_None) {
        PyErr_Format(PyExc_ValueError,
                     "Attempt to convert a value (%R) with an unsupported type (%R) to a Tensor.",
                     o, Py_TYPE(o));
        return NULL;
    }
    if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        if (dtype == PY_ANY)
            py_error("UnimplementedError", "Snug has no tensors of text yet: %R", o);
        else
            no_place(o, (snug_dtype)dtype);
        return NULL;
    }
    PyObject *array = NULL;
    if (PyObject_HasAttrString(o, "__tf_tensor__")) {
        PyObject *made = PyObject_CallMethod(o, "__tf_tensor__", NULL);
        snug_tensor *t = made && py_is_tensor(made) ? convert_tensor(made, dtype, wish) : NULL;
        if (made && !t && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "__tf_tensor__ of %R gives no tensor", o);
        Py_XDECREF(made);
        return t;
    }
    if (py_is_symbol(o))
        PyErr_Format(PyExc_TypeError, "%R has no value yet", o);
    else if (PyObject_HasAttr(o, py.str_array))
        array = array_of(o);
    else if (PySequence_Check(o) && !PyDict_Check(o))
        array = PySequence_List(o);
    else
        PyErr_Format(PyExc_ValueError,
                     "Attempt to convert a value (%R) with an unsupported type (%R) to a Tensor.",
                     o, Py_TYPE(o));
    snug_tensor *t = NULL;
    if (array && !Py_EnterRecursiveCall(" while a value was converted to a tensor")) {
        t = py_convert(array, dtype, wish);
        Py_LeaveRecursiveCall();
    }
    Py_XDECREF(array);
    return t;
}

snug_tensor *py_convert(PyObject *o, int dtype, py_wish wish) {
    if (py_enter() < 0)
        return NULL;
    if (py_is_tensor(o))
        return convert_tensor(o, dtype, wish);
    if (py_is_number(o))
        return convert_number(o, dtype);
    if (PyList_Check(o) || PyTuple_Check(o))
        return py_convert_list(o, dtype, wish);
    if (py_is_array(o))
        return convert_array(o, dtype);
    return convert_other(o, dtype, wish);
}
