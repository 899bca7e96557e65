/* py_constant.c: tf.constant, tf.convert_to_tensor, and tensors that are made without values. */
#include "py.h"

/* The value of a call with these arguments. A temporary is held by the interpreter's stack and by
 * their tuple alone; from Python 3.14 on names may not count. */
static snug_tensor *convert_argument(PyObject *o, int dtype, py_wish wish, PyObject *args,
                                     PyObject *keywords) {
    const Py_ssize_t n = PyTuple_Size(args) + (keywords ? PyDict_Size(keywords) : 0);
    if (Py_REFCNT(o) == 2 && py.counts_names && !py_is_tensor(o) && py_is_array(o) &&
        py_enter() == 0) {
        snug_tensor *t = py_adopt_array(o, dtype, n);
        if (t || PyErr_Occurred())
            return t;
    }
    return py_convert(o, dtype, wish);
}

/* adopt(array): a tensor of the bytes of an array that nobody will write any more. */
static PyObject *adopt(PyObject *self, PyObject *o) {
    (void)self;
    if (py_enter() < 0)
        return NULL;
    snug_tensor *t = py_is_array(o) ? py_adopt_array(o, PY_ANY, -1) : NULL;
    if (!t && !PyErr_Occurred())
        t = py_convert(o, PY_ANY, PY_MUST);
    return t ? py_tensor_new(t) : NULL;
}

static int wished(PyObject *o, int *dtype) {
    snug_dtype d;
    *dtype = PY_ANY;
    if (!o || o == Py_None)
        return 0;
    if (py_dtype(o, &d) < 0)
        return -1;
    *dtype = (int)d;
    return 0;
}

/* Whether a value, or the first one of a nested list, is text. */
static int is_text(PyObject *o) {
    for (int depth = 0; depth < 16 && py_is_list(o); depth++) {
        if (py_list_size(o) == 0)
            return 0;
        o = py_list_item(o, 0);
    }
    return PyUnicode_Check(o) || PyBytes_Check(o);
}

static int may_be_text(PyObject *dtype) {
    return !dtype || dtype == Py_None || PyObject_RichCompareBool(dtype, py.string, Py_EQ) == 1;
}

/* Tensors of text are Python's. */
static PyObject *make_text(PyObject *value, PyObject *shape) {
    PyObject *module = PyImport_ImportModule("snug._strings");
    PyObject *made =
        module ? PyObject_CallMethod(module, "StringTensor", "OO", value, shape ? shape : Py_None)
               : NULL;
    Py_XDECREF(module);
    return made;
}

/* Complex numbers are pairs of tensors, Python's too; so are NumPy's arrays of text: asked for only
 * where a conversion has failed. NULL with the old exception where the value is none of them. */
static PyObject *make_complex(PyObject *value, PyObject *dtype, PyObject *shape) {
    PyObject *type, *old, *trace;
    if (PyErr_ExceptionMatches(PyExc_MemoryError))
        return NULL;
    PyErr_Fetch(&type, &old, &trace);
    PyObject *module = PyImport_ImportModule("snug._complex");
    PyObject *made = module ? PyObject_CallMethod(module, "constant", "OOO", value,
                                                  dtype ? dtype : Py_None, shape ? shape : Py_None)
                            : NULL;
    Py_XDECREF(module);
    if (made == Py_None) {
        Py_DECREF(made);
        PyErr_Restore(type, old, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(old);
    Py_XDECREF(trace);
    return made;
}

static PyObject *convert_to_tensor(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)self;
    static char *names[] = {"value",  "dtype",           "dtype_hint", "name",
                            "as_ref", "preferred_dtype", NULL};
    PyObject *value, *dtype = NULL, *ignored = NULL, *hint = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOOOO", names, &value, &dtype, &hint,
                                     &ignored, &ignored, &hint))
        return NULL;
    int d, h;
    if (is_text(value) && may_be_text(dtype))
        return make_text(value, NULL);
    if (wished(dtype, &d) < 0 || wished(hint, &h) < 0)
        return make_complex(value, dtype, NULL);
    if ((PyObject_TypeCheck(value, py.tensor) && d == PY_ANY) || py_is_symbol(value)) {
        Py_INCREF(value);
        return value;
    }
    snug_tensor *t = convert_argument(value, d == PY_ANY ? h : d, d == PY_ANY ? PY_FOLLOW : PY_MUST,
                                      args, keywords);
    return t ? py_tensor_new(t) : make_complex(value, dtype, NULL);
}

/* The tensor in another shape; a single element fills it. */
static snug_tensor *in_shape(snug_tensor *t, PyObject *shape) {
    snug_type type = {.dtype = SNUG_F32};
    if (py_dims(shape, &type) < 0)
        return NULL;
    int64_t have = 1, want = 1;
    const snug_type *is = snug_tensor_type(t);
    for (int i = 0; i < is->rank; i++)
        have *= is->dims[i];
    for (int i = 0; i < type.rank; i++)
        want *= type.dims[i];
    if (have != want && have != 1) {
        PyErr_Format(PyExc_TypeError,
                     "Eager execution of tf.constant with unsupported shape. Tensor has %lld "
                     "elements, but got `shape` with %lld elements).",
                     (long long)have, (long long)want);
        return NULL;
    }
    snug_argument dims[SNUG_MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        dims[i] = (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = type.dims[i]};
    snug_argument list = {.kind = SNUG_ARG_LIST, .list = {dims, type.rank}};
    snug_tensor *flat = t, *made;
    if (have != want && is->rank) {
        const snug_argument none = {.kind = SNUG_ARG_LIST, .list = {dims, 0}};
        flat = py_call("tf.reshape",
                       (snug_argument[]){{.kind = SNUG_ARG_TENSOR, .tensor = t}, none}, 2);
    }
    if (!flat)
        return NULL;
    made = py_call(have == want ? "tf.reshape" : "tf.broadcast_to",
                   (snug_argument[]){{.kind = SNUG_ARG_TENSOR, .tensor = flat}, list}, 2);
    if (flat != t)
        py_drop(flat);
    return made;
}

static PyObject *constant(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)self;
    static char *names[] = {"value", "dtype", "shape", "name", NULL};
    PyObject *value, *dtype = NULL, *shape = Py_None, *ignored = NULL;
    int d;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOO", names, &value, &dtype, &shape,
                                     &ignored))
        return NULL;
    if (is_text(value) && may_be_text(dtype))
        return make_text(value, shape);
    if (wished(dtype, &d) < 0)
        return make_complex(value, dtype, shape);
    if (d != PY_ANY && py_is_tensor(value)) {
        snug_tensor *t = py_convert(value, PY_ANY, PY_MUST);
        int other = t && (int)snug_tensor_type(t)->dtype != d;
        py_drop(t);
        if (other)
            return PyErr_Format(PyExc_TypeError, "Expected tensor with dtype %R.", dtype);
    }
    snug_tensor *t = convert_argument(value, d, PY_MUST, args, keywords);
    if (!t)
        return make_complex(value, dtype, shape);
    if (shape != Py_None) {
        snug_tensor *shaped = in_shape(t, shape);
        py_drop(t);
        t = shaped;
    }
    return t ? py_tensor_new(t) : NULL;
}

/* full(shape, value, dtype): one number everywhere, without bytes. random(kind, shape, a, b,
 * dtype): drawn now, made when needed. */
static PyObject *full(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *shape, *dtype;
    double value;
    snug_type type;
    snug_tensor *t;
    snug_error err;
    if (!PyArg_ParseTuple(args, "OdO", &shape, &value, &dtype) ||
        py_dtype(dtype, &type.dtype) < 0 || py_dims(shape, &type) < 0 || py_enter() < 0)
        return NULL;
    py_mark_site();
    if (snug_tensor_full(py.recorder, &type, value, &t, &err) != SNUG_OK)
        return py_raise(&err);
    return py_tensor_new(t);
}

static PyObject *random_tensor(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *shape, *dtype;
    int kind;
    double a, b;
    snug_type type;
    snug_tensor *t;
    snug_error err;
    if (!PyArg_ParseTuple(args, "iOddO", &kind, &shape, &a, &b, &dtype) ||
        py_dtype(dtype, &type.dtype) < 0 || py_dims(shape, &type) < 0 || py_enter() < 0)
        return NULL;
    py_mark_site();
    if (snug_tensor_random(py.recorder, &type, (snug_init_kind)kind, a, b, &t, &err) != SNUG_OK)
        return py_raise(&err);
    return py_tensor_new(t);
}

static PyObject *is_tensor(PyObject *self, PyObject *o) {
    (void)self;
    return PyBool_FromLong(py_is_tensor(o));
}

PyMethodDef py_constant_methods[] = {
    {"adopt", adopt, METH_O, "The array as a tensor, without a copy: it is given away."},
    {"convert_to_tensor", (PyCFunction)(void (*)(void))convert_to_tensor,
     METH_VARARGS | METH_KEYWORDS,
     "convert_to_tensor(value, dtype=None, dtype_hint=None, name=None)\n--\n\n"
     "The value as a tensor."},
    {"constant", (PyCFunction)(void (*)(void))constant, METH_VARARGS | METH_KEYWORDS,
     "constant(value, dtype=None, shape=None, name='Const')\n--\n\nA tensor of numbers."},
    {"full", full, METH_VARARGS, "full(shape, value, dtype): without bytes until needed."},
    {"random", random_tensor, METH_VARARGS, "random(kind, shape, a, b, dtype)"},
    {"is_tensor", is_tensor, METH_O, "Whether it is a Tensor or a Variable."},
    {NULL, NULL, 0, NULL},
};
