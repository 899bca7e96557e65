/* py_tensor.c: the type Tensor: a handle of the recorder as a Python object. Reading it (numpy,
 * float, print, the buffer protocol) runs what is recorded; within an open trace it raises Peek,
 * which tf.function catches.
 *
 * Freeing one drops the handle: it never runs anything, and never touches a set exception. */
#include "py.h"

#include <string.h>
#include <structmember.h>

PyObject *py_tensor_new(snug_tensor *t) {
    py_tensor *self = py.spare;
    py.spare = NULL;
    if (self)
        PyObject_Init((PyObject *)self, py.tensor);
    else
        self = PyObject_New(py_tensor, py.tensor);
    if (!self) {
        py_drop(t);
        return NULL;
    }
    self->t = t;
    self->mask = self->part = self->weak = NULL;
    return (PyObject *)self;
}

static void dealloc(PyObject *o) {
    py_tensor *self = (py_tensor *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (self->weak)
        PyObject_ClearWeakRefs(o);
    Py_XDECREF(self->mask);
    Py_XDECREF(self->part);
    py_drop(self->t);
    if (py.spare)
        PyObject_Free(o);
    else
        py.spare = self;
    Py_DECREF(type);
}

/* --- reading ---------------------------------------------------------------------------------- */
/* In a trace: it is described only, or follows from an extent that is open. */
static int has_no_value(const snug_tensor *t) {
    return snug_tensor_is_traced(t) ||
           (!py.indexing && snug_is_tracing(py.recorder) && snug_tensor_is_open(t));
}

/* tf.function asks for it otherwise, or the tensor has left the function that it belongs to. */
static int no_value(void) {
    if (snug_is_tracing(py.recorder))
        PyErr_SetNone(py.peek);
    else
        py_error("InaccessibleTensorError",
                 "a tensor of a tf.function is out of scope and cannot be used here; return it"
                 " from the function");
    return -1;
}

int py_read(snug_tensor *t, void *to, size_t bytes) {
    snug_error err;
    if (py_enter() < 0)
        return -1;
    if (has_no_value(t))
        return no_value();
    py_mark_site();
    if (snug_tensor_read(t, to, bytes, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    return 0;
}

/* What is recorded runs before a copy of so many bytes is made, and leaves room for it: a refusal
 * names a budget for both. */
int py_settle(snug_tensor *t, size_t bytes) {
    enum { LARGE = 1 << 20 };
    snug_error err;
    char nothing;
    if (py_enter() < 0)
        return -1;
    if (bytes < LARGE || snug_budget_bytes(py.engine) == 0 || has_no_value(t) ||
        snug_tensor_is_ready(t))
        return 0;
    const size_t before = snug_recorder_reserve(py.recorder, 0, -1);
    (void)snug_recorder_reserve(py.recorder, before + bytes + LARGE, -1);
    const snug_status status = snug_tensor_read_part(t, 0, 0, &nothing, &err);
    (void)snug_recorder_reserve(py.recorder, before, -1);
    if (status == SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

PyObject *py_empty_array(const snug_type *type) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    const snug_dtype bits = type->dtype == SNUG_BF16 ? SNUG_U16 : type->dtype;
    PyObject *dtype = numpy ? PyObject_GetAttrString(py.dtypes[bits], "as_numpy_dtype") : NULL;
    PyObject *dims = dtype ? PyTuple_New(type->rank) : NULL, *array = NULL;
    for (int i = 0; dims && i < type->rank; i++) {
        PyObject *n = PyLong_FromLongLong(type->dims[i]);
        if (!n || PyTuple_SetItem(dims, i, n) < 0)
            Py_CLEAR(dims);
    }
    if (dims)
        array = PyObject_CallMethod(numpy, "empty", "OO", dims, dtype);
    Py_XDECREF(numpy);
    Py_XDECREF(dtype);
    Py_XDECREF(dims);
    return array;
}

/* Takes the array. */
PyObject *py_filled_array(PyObject *array, const snug_type *type) {
    if (type->dtype == SNUG_BF16) {
        PyObject *module = PyImport_ImportModule("snug._arrays");
        PyObject *made = module ? PyObject_CallMethod(module, "of_bits", "O", array) : NULL;
        Py_XDECREF(module);
        Py_DECREF(array);
        array = made;
    }
    if (!array || type->rank > 0)
        return array;
    PyObject *key = PyTuple_New(0), *scalar = key ? PyObject_GetItem(array, key) : NULL;
    Py_XDECREF(key);
    Py_DECREF(array);
    return scalar;
}

/* An array for a tensor, which is computed then. */
static PyObject *array_for(snug_tensor *t, const snug_type *type) {
    size_t bytes;
    snug_error err;
    if (snug_type_bytes(type, &bytes, &err) != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    PyObject *code = PyImport_ImportModule("numpy"); /* before room is measured */
    Py_XDECREF(code);
    if (!code || py_settle(t, bytes) < 0)
        return NULL;
    PyObject *array = py_empty_array(type);
    if (!array && PyErr_ExceptionMatches(PyExc_MemoryError)) { /* NumPy's own class of it */
        char said[512];
        PyErr_Clear();
        return py_error("ResourceExhaustedError", "%s",
                        py_refusal(said, sizeof said) ? said
                                                      : "there is no memory for an array of this "
                                                        "tensor's shape; look at a part");
    }
    return array;
}

/* A writable copy; NumPy's scalar for a scalar. */
PyObject *py_numpy(snug_tensor *t) {
    const snug_type *type = snug_tensor_type(t);
    PyObject *array = array_for(t, type);
    Py_buffer b;
    if (!array || PyObject_GetBuffer(array, &b, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_ND) < 0) {
        Py_XDECREF(array);
        return NULL;
    }
    int bad = py_read(t, b.buf, (size_t)b.len) < 0;
    PyBuffer_Release(&b);
    if (!bad)
        return py_filled_array(array, type);
    Py_DECREF(array);
    return NULL;
}

typedef struct {
    Py_ssize_t shape[SNUG_MAX_RANK], strides[SNUG_MAX_RANK];
    snug_tensor *t;
} exported;

static const char *format_of(snug_dtype d) {
    static const char *const formats[] = {"f", "d", "e", "H", "b", "B", "i",
                                          "l", "?", "h", "H", "I", "B"};
    return formats[d];
}

static int get_buffer(PyObject *o, Py_buffer *b, int flags) {
    snug_tensor *t = ((py_tensor *)o)->t;
    snug_view view;
    snug_error err;
    b->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "the bytes of a tensor cannot be written");
        return -1;
    }
    if ((flags & PyBUF_FORMAT) &&
        snug_tensor_type(t)->dtype == SNUG_BF16) { /* NumPy then asks __array__ */
        PyErr_SetString(PyExc_BufferError,
                        "buffers have no format for bfloat16; use numpy(), or cast to float32");
        return -1;
    }
    if (py_enter() < 0)
        return -1;
    if (has_no_value(t))
        return no_value();
    exported *e = PyMem_Malloc(sizeof *e);
    if (!e) {
        PyErr_NoMemory();
        return -1;
    }
    py_mark_site();
    if (snug_tensor_pin(t, &view, &err) != SNUG_OK) {
        PyMem_Free(e);
        py_raise(&err);
        return -1;
    }
    const snug_type *type = snug_tensor_type(t);
    Py_ssize_t item = (Py_ssize_t)snug_dtype_bytes(type->dtype), stride = item;
    for (int i = type->rank - 1; i >= 0; i--) {
        e->shape[i] = (Py_ssize_t)type->dims[i];
        e->strides[i] = stride;
        stride *= e->shape[i];
    }
    e->t = t;
    *b = (Py_buffer){.buf = view.data,
                     .len = (Py_ssize_t)view.bytes,
                     .itemsize = item,
                     .readonly = 1,
                     .ndim = type->rank,
                     .internal = e,
                     .format =
                         flags & PyBUF_FORMAT ? (char *)(uintptr_t)format_of(type->dtype) : NULL,
                     .shape = flags & PyBUF_ND ? e->shape : NULL,
                     .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->strides : NULL};
    Py_INCREF(o);
    b->obj = o;
    return 0;
}

static void release_buffer(PyObject *o, Py_buffer *b) {
    (void)o;
    exported *e = b->internal;
    snug_tensor_unpin(e->t);
    PyMem_Free(e);
}

/* A number that an open trace only describes, as tf.function has found it out; else Peek. */
static int ask(snug_tensor *t, double *real, long long *whole) {
    PyObject *module = py_helper(&py.function, "snug._function"), *o = NULL;
    if (module) {
        snug_tensor_hold(t);
        o = py_tensor_new(t);
    }
    PyObject *number = o ? PyObject_CallMethod(module, "answer", "O", o) : NULL;
    int is_real = number ? PyFloat_Check(number) : -1;
    if (is_real > 0)
        *real = PyFloat_AsDouble(number);
    else if (is_real == 0)
        *real = (double)(*whole = PyLong_AsLongLong(number));
    Py_XDECREF(o);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : is_real;
}

/* The single element as a double or an integer; -1 with an exception where there are more. */
static int element(PyObject *o, double *real, long long *whole) {
    snug_tensor *read = NULL, *t = py_enter() < 0 ? NULL : py_lend(o, &read);
    if (!t)
        return -1;
    const snug_type *type = snug_tensor_type(t);
    int64_t n = 1;
    for (int i = 0; i < type->rank; i++)
        n *= type->dims[i];
    union {
        float f;
        double d;
        SN_HALF h;
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        int32_t i;
        uint32_t u;
        int64_t l;
        uint16_t b;
    } v;
    int bad = n != 1;
    if (bad)
        PyErr_SetString(PyExc_TypeError,
                        "only 0-dimensional arrays can be converted to Python scalars");
    if (!bad && snug_tensor_is_traced(t)) {
        const int is_real = ask(t, real, whole);
        py_drop(read);
        return is_real;
    }
    bad = bad || py_read(t, &v, snug_dtype_bytes(type->dtype)) < 0;
    const snug_dtype dtype = type->dtype;
    py_drop(read);
    if (bad)
        return -1;
    uint32_t wide = (uint32_t)v.b << 16;
    float of_bf16;
    memcpy(&of_bf16, &wide, 4);
    *real = dtype == SNUG_F32   ? (double)v.f
            : dtype == SNUG_F64 ? v.d
            : dtype == SNUG_F16 ? (double)v.h
                                : (double)of_bf16;
    *whole = dtype == SNUG_I64   ? v.l
             : dtype == SNUG_I32 ? v.i
             : dtype == SNUG_U32 ? (long long)v.u
             : dtype == SNUG_I16 ? v.i16
             : dtype == SNUG_U16 ? v.b
             : dtype == SNUG_I8  ? v.i8
                                 : v.u8;
    if (py_is_float(dtype))
        *whole = 0;
    else
        *real = (double)*whole;
    return py_is_float(dtype);
}

PyObject *py_float(PyObject *self) {
    double real;
    long long whole;
    return element(self, &real, &whole) < 0 ? NULL : PyFloat_FromDouble(real);
}

PyObject *py_int(PyObject *self) {
    double real;
    long long whole;
    int is_real = element(self, &real, &whole);
    return is_real < 0 ? NULL : is_real ? PyLong_FromDouble(real) : PyLong_FromLongLong(whole);
}

static PyObject *as_index(PyObject *self) {
    double real;
    long long whole;
    int is_real = element(self, &real, &whole);
    if (is_real > 0)
        return PyErr_Format(PyExc_TypeError, "only integer tensors can be an index");
    return is_real < 0 ? NULL : PyLong_FromLongLong(whole);
}

int py_bool(PyObject *self) {
    double real;
    long long whole;
    if (element(self, &real, &whole) < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_SetString(PyExc_ValueError,
                            "The truth value of an array with more than one element is ambiguous. "
                            "Use a.any() or a.all()");
        }
        return -1;
    }
    return real != 0;
}

/* --- text ------------------------------------------------------------------------------------- */
static PyObject *say(PyObject *self, const char *how) {
    PyObject *text = py_helper(&py.text, "snug._text");
    return text ? PyObject_CallMethod(text, how, "(O)", self) : NULL;
}

static PyObject *repr(PyObject *self) {
    return say(self, "tensor_repr");
}
static PyObject *str(PyObject *self) {
    return say(self, "tensor_str");
}

static Py_hash_t hash(PyObject *self) {
    (void)self;
    PyErr_SetString(PyExc_TypeError, "Tensor is unhashable. Instead, use tensor.ref() as the key.");
    return -1;
}

/* --- attributes ------------------------------------------------------------------------------- */
/* Of a Tensor or a Variable. */
static const snug_type *type_of(PyObject *self) {
    return PyObject_TypeCheck(self, py.variable) ? snug_variable_type(((py_variable *)self)->v)
                                                 : snug_tensor_type(((py_tensor *)self)->t);
}

static uint32_t open_axes(PyObject *self) {
    return PyObject_TypeCheck(self, py.tensor) && py.recorder
               ? snug_tensor_open_axes(((py_tensor *)self)->t)
               : 0;
}

/* Open extents are None. */
PyObject *py_get_shape(PyObject *self, void *c) {
    (void)c;
    const uint32_t open = open_axes(self);
    if (!open)
        return py_shape(type_of(self));
    PyObject *dims = PyTuple_New(type_of(self)->rank);
    for (int i = 0; dims && i < type_of(self)->rank; i++) {
        PyObject *n = Py_None;
        if (open >> i & 1)
            Py_INCREF(n);
        else
            n = PyLong_FromLongLong(type_of(self)->dims[i]);
        if (!n || PyTuple_SetItem(dims, i, n) < 0)
            Py_CLEAR(dims);
    }
    PyObject *shape = dims ? PyObject_CallFunctionObjArgs(py.shape_class, dims, NULL) : NULL;
    Py_XDECREF(dims);
    return shape;
}
PyObject *py_get_dtype(PyObject *self, void *c) {
    (void)c;
    return py_dtype_object(type_of(self)->dtype);
}
PyObject *py_get_ndim(PyObject *self, void *c) {
    (void)c;
    return PyLong_FromLong(type_of(self)->rank);
}
static PyObject *get_device(PyObject *self, void *c) {
    (void)c;
    const snug_tensor *t = ((py_tensor *)self)->t;
    return py.recorder && snug_tensor_is_traced(t) ? PyUnicode_FromString("")
                                                   : py_device_text(snug_tensor_is_on_host(t));
}
static PyObject *get_name(PyObject *self, void *c) {
    if (py.recorder && snug_tensor_is_traced(((py_tensor *)self)->t))
        return PyUnicode_FromString("Tensor:0");
    return PyErr_Format(PyExc_AttributeError,
                        "Tensor.%s is undefined when eager execution is enabled.", (char *)c);
}
static PyObject *get_mask(PyObject *self, void *c) {
    (void)c;
    PyObject *mask = ((py_tensor *)self)->mask;
    if (!mask)
        return PyErr_Format(PyExc_AttributeError, "'Tensor' object has no attribute '_keras_mask'");
    Py_INCREF(mask);
    return mask;
}
static int set_mask(PyObject *self, PyObject *mask, void *c) {
    (void)c;
    PyObject *old = ((py_tensor *)self)->mask;
    Py_XINCREF(mask);
    ((py_tensor *)self)->mask = mask;
    Py_XDECREF(old);
    return 0;
}
/* assign and its like, of a part of a variable alone. */
static PyObject *get_assign(PyObject *self, void *c) {
    PyObject *part = ((py_tensor *)self)->part;
    if (!part)
        return PyErr_Format(PyExc_AttributeError, "'Tensor' object has no attribute '%s'",
                            (char *)c);
    PyObject *module = PyImport_ImportModule("snug._variable");
    PyObject *made = module ? PyObject_CallMethod(module, "part", "Os", part, (char *)c) : NULL;
    Py_XDECREF(module);
    return made;
}
static PyObject *get_priority(PyObject *self, void *c) {
    (void)self, (void)c;
    return PyLong_FromLong(100);
}
static PyObject *get_is_traced(PyObject *self, void *c) {
    (void)c;
    return PyBool_FromLong(py.recorder && snug_tensor_is_traced(((py_tensor *)self)->t));
}
static PyObject *get_is_ready(PyObject *self, void *c) {
    (void)c;
    return PyBool_FromLong(snug_tensor_is_ready(((py_tensor *)self)->t));
}

static PyGetSetDef getset[] = {
    {"shape", py_get_shape, NULL, "Extents, a TensorShape.", NULL},
    {"dtype", py_get_dtype, NULL, "Element type.", NULL},
    {"ndim", py_get_ndim, NULL, "How many axes there are.", NULL},
    {"device", get_device, NULL, "Where it lives.", NULL},
    {"name", get_name, NULL, "In a trace; else an AttributeError.", "name"},
    {"op", get_name, NULL, NULL, "op"},
    {"graph", get_name, NULL, NULL, "graph"},
    {"_keras_mask", get_mask, set_mask, "The mask that travels with it.", NULL},
    {"assign", get_assign, NULL, NULL, "assign"},
    {"assign_add", get_assign, NULL, NULL, "assign_add"},
    {"assign_sub", get_assign, NULL, NULL, "assign_sub"},
    {"__array_priority__", get_priority, NULL, NULL, NULL},
    {"_is_traced", get_is_traced, NULL, "Whether an open trace describes it.", NULL},
    {"_is_ready", get_is_ready, NULL, "Whether reading it runs nothing.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- methods ---------------------------------------------------------------------------------- */
static PyObject *numpy(PyObject *self, PyObject *none) {
    (void)none;
    return py_numpy(((py_tensor *)self)->t);
}

static PyObject *array(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO", names, &dtype, &copy))
        return NULL;
    PyObject *made = py_numpy(((py_tensor *)self)->t);
    PyObject *module = made ? PyImport_ImportModule("numpy") : NULL;
    PyObject *out = NULL;
    if (module && dtype == Py_None)
        out = PyObject_CallMethod(module, "asarray", "O", made);
    else if (module)
        out = PyObject_CallMethod(module, "asarray", "OO", made, dtype);
    Py_XDECREF(made);
    Py_XDECREF(module);
    return out;
}

static PyObject *shape_method(PyObject *self, PyObject *none) {
    return py_get_shape(self, none);
}

static PyObject *set_shape(PyObject *self, PyObject *shape) {
    PyObject *mine = py_get_shape(self, NULL);
    PyObject *ok = mine ? PyObject_CallMethod(mine, "is_compatible_with", "(O)", shape) : NULL;
    int fits = ok ? PyObject_IsTrue(ok) : -1;
    if (fits == 0)
        PyErr_Format(PyExc_ValueError,
                     "Tensor's shape %S is not compatible with supplied shape %S.", mine, shape);
    Py_XDECREF(ok);
    Py_XDECREF(mine);
    if (fits <= 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *ref(PyObject *self, PyObject *none) {
    (void)none;
    return say(self, "Reference");
}

static PyObject *itself(PyObject *self, PyObject *ignored) {
    (void)ignored;
    Py_INCREF(self);
    return self;
}

/* As NumPy formats arrays: a scalar as a Python number. */
static PyObject *format(PyObject *self, PyObject *spec) {
    snug_tensor *t = ((py_tensor *)self)->t;
    if (py.recorder && snug_tensor_is_traced(t) && PyUnicode_GetLength(spec) == 0)
        return str(self);
    PyObject *value = py_numpy(t);
    if (value && type_of(self)->rank == 0) {
        PyObject *number = py_is_float(type_of(self)->dtype)
                               ? PyNumber_Float(value) /* item() of bfloat16 is no number */
                               : PyObject_CallMethod(value, "item", NULL);
        Py_DECREF(value);
        value = number;
    }
    PyObject *text = value ? PyObject_Format(value, spec) : NULL;
    Py_XDECREF(value);
    return text;
}

static PyObject *reduce(PyObject *self, PyObject *none) {
    (void)none;
    PyObject *module = PyImport_ImportModule("snug._C");
    PyObject *make = module ? PyObject_GetAttrString(module, "convert_to_tensor") : NULL;
    PyObject *value = make ? py_numpy(((py_tensor *)self)->t) : NULL;
    PyObject *dtype = value ? py_dtype_object(type_of(self)->dtype) : NULL;
    PyObject *out = dtype ? Py_BuildValue("O(OO)", make, value, dtype) : NULL;
    Py_XDECREF(dtype);
    Py_XDECREF(value);
    Py_XDECREF(make);
    Py_XDECREF(module);
    return out;
}

static PyMethodDef methods[] = {
    {"numpy", numpy, METH_NOARGS, "The value as a NumPy array; a copy."},
    {"__array__", (PyCFunction)(void (*)(void))array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"get_shape", shape_method, METH_NOARGS, "Extents, a TensorShape."},
    {"set_shape", set_shape, METH_O, "Checks that the shape is compatible."},
    {"ref", ref, METH_NOARGS, "A hashable reference."},
    {"experimental_ref", ref, METH_NOARGS, "A hashable reference."},
    {"cpu", itself, METH_NOARGS, "Itself."},
    {"gpu", itself, METH_VARARGS, "Itself."},
    {"__copy__", itself, METH_NOARGS, NULL},
    {"__deepcopy__", itself, METH_O, NULL},
    {"__format__", format, METH_O, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* read_part(tensor or variable, first, n): the bytes of n elements. */
PyObject *py_read_part(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *o, *bytes = NULL;
    long long first, n;
    char *to;
    Py_ssize_t size;
    snug_error err;
    snug_tensor *read = NULL, *t;
    if (!PyArg_ParseTuple(args, "OLL", &o, &first, &n) || py_enter() < 0 ||
        !(t = py_lend(o, &read)))
        return NULL;
    const size_t element = snug_dtype_bytes(snug_tensor_type(t)->dtype);
    if (has_no_value(t))
        no_value();
    else if (n >= 0 && n < PY_SSIZE_T_MAX / 8)
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)element * (Py_ssize_t)n);
    else
        PyErr_SetString(PyExc_ValueError, "so many elements are in no tensor");
    if (bytes) {
        py_mark_site();
        PyBytes_AsStringAndSize(bytes, &to, &size);
        if (snug_tensor_read_part(t, first, n, to, &err) != SNUG_OK) {
            Py_CLEAR(bytes);
            py_raise(&err);
        }
    }
    py_drop(read);
    return bytes;
}

/* --- as a sequence ---------------------------------------------------------------------------- */
static Py_ssize_t length(PyObject *self) {
    if (type_of(self)->rank == 0) {
        PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
        return -1;
    }
    if (open_axes(self) & 1) {
        PyErr_SetNone(py.peek);
        return -1;
    }
    return (Py_ssize_t)type_of(self)->dims[0];
}

static PyObject *item(PyObject *self, Py_ssize_t i) {
    if (type_of(self)->rank == 0 || i < 0 || i >= type_of(self)->dims[0])
        return PyErr_Format(PyExc_IndexError, "row %zd of a tensor", i);
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *row = key ? py_index(self, key) : NULL;
    Py_XDECREF(key);
    return row;
}

static PyObject *iter(PyObject *self) {
    if (type_of(self)->rank == 0)
        return PyErr_Format(PyExc_TypeError, "Cannot iterate over a scalar tensor.");
    if (open_axes(self) & 1) {
        PyErr_SetNone(py.peek);
        return NULL;
    }
    PyObject *rows = PySeqIter_New(self), *flow, *rounds;
    if (!rows || !snug_is_tracing(py.recorder))
        return rows;
    flow = PyImport_ImportModule("snug._flow"); /* a loop of a trace */
    rounds = flow ? PyObject_CallMethod(flow, "rounds", "O", rows) : NULL;
    Py_XDECREF(flow);
    Py_DECREF(rows);
    return rounds;
}

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_tensor, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject *py_make_tensor_type(PyObject *module) {
    PyType_Slot own[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_repr, repr},
        {Py_tp_str, str},
        {Py_tp_hash, hash},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_iter, iter},
        {Py_sq_length, length},
        {Py_sq_item, item},
        {Py_mp_length, length},
        {Py_bf_getbuffer, get_buffer},
        {Py_bf_releasebuffer, release_buffer},
        {Py_nb_index, as_index},
        {Py_tp_doc, "A tensor: what is recorded, or its bytes."},
    };
    PyType_Slot all[64] = {{0, NULL}};
    size_t n = sizeof own / sizeof *own;
    memcpy(all, own, sizeof own);
    for (int i = 0; py_number_slots[i].slot; i++)
        all[n++] = py_number_slots[i];
    PyType_Spec spec = {.name = "snug._C.Tensor",
                        .basicsize = sizeof(py_tensor),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = all};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
