/* py_checkpoint.c: snug_checkpoint for Python: _C.CheckpointWriter and _C.Checkpoint. */
#include "py.h"

#include <snug/checkpoint.h>

/* --- writing ---------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_checkpoint_writer *w;
} py_writer;

static void dealloc_writer(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_checkpoint_writer_destroy(((py_writer *)o)->w);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* CheckpointWriter(path) */
static PyObject *new_writer(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *path;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    py_writer *me = py_enter() < 0 ? NULL : PyObject_New(py_writer, type);
    if (me) {
        me->w = NULL;
        if (snug_checkpoint_create(py.engine, PyBytes_AsString(path), &me->w, &err) != SNUG_OK) {
            Py_CLEAR(me);
            (void)py_raise(&err);
        }
    }
    Py_DECREF(path);
    return (PyObject *)me;
}

static int dims_of(PyObject *dims, snug_type *out) {
    const Py_ssize_t n = PyTuple_Size(dims);
    if (n < 0 || n > SNUG_MAX_RANK) {
        if (n >= 0)
            PyErr_Format(PyExc_ValueError, "%zd axes; at most %d are kept", n, SNUG_MAX_RANK);
        return -1;
    }
    out->rank = (int)n;
    for (Py_ssize_t i = 0; i < n; i++)
        out->dims[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
    return PyErr_Occurred() ? -1 : 0;
}

/* begin(name, dtype, dims) */
static PyObject *begin_array(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *dtype, *dims;
    snug_type type = {.rank = 0};
    snug_error err;
    if (!PyArg_ParseTuple(args, "sOO!", &name, &dtype, &PyTuple_Type, &dims) ||
        py_dtype(dtype, &type.dtype) < 0 || dims_of(dims, &type) < 0)
        return NULL;
    if (snug_checkpoint_begin(((py_writer *)self)->w, name, &type, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *append_bytes(PyObject *self, PyObject *bytes) {
    Py_buffer b;
    snug_error err;
    if (PyObject_GetBuffer(bytes, &b, PyBUF_SIMPLE) < 0)
        return NULL;
    const snug_status status =
        snug_checkpoint_append(((py_writer *)self)->w, b.buf, (size_t)b.len, &err);
    PyBuffer_Release(&b);
    if (status != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *commit_writer(PyObject *self, PyObject *none) {
    (void)none;
    snug_error err;
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_checkpoint_commit(((py_writer *)self)->w, &err);
    PyEval_RestoreThread(thread);
    if (status != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef writer_methods[] = {
    {"begin", begin_array, METH_VARARGS, "The next array: (name, dtype, dims)."},
    {"append", append_bytes, METH_O, "Bytes of it."},
    {"commit", commit_writer, METH_NOARGS, "The file is there then."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_checkpoint_writer_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc_writer},
                           {Py_tp_methods, writer_methods},
                           {Py_tp_new, new_writer},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.CheckpointWriter",
                        .basicsize = sizeof(py_writer),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --- reading ---------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_checkpoint *c;
} py_checkpoint;

static void dealloc_checkpoint(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_checkpoint_close(((py_checkpoint *)o)->c);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* Checkpoint(path, most) */
static PyObject *new_checkpoint(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *path;
    Py_ssize_t most;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O&n", PyUnicode_FSConverter, &path, &most))
        return NULL;
    py_checkpoint *me = py_enter() < 0 ? NULL : PyObject_New(py_checkpoint, type);
    if (me) {
        me->c = NULL;
        if (snug_checkpoint_open(py.engine, PyBytes_AsString(path), (size_t)most, &me->c, &err) !=
            SNUG_OK) {
            Py_CLEAR(me);
            (void)py_raise(&err);
        }
    }
    Py_DECREF(path);
    return (PyObject *)me;
}

/* rows(): [(name, dtype, dims)] */
static PyObject *checkpoint_rows(PyObject *self, PyObject *none) {
    (void)none;
    const snug_checkpoint *c = ((py_checkpoint *)self)->c;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snug_checkpoint_count(c); i++) {
        const char *name = NULL;
        snug_type type = {.rank = 0};
        snug_error err;
        PyObject *row = snug_checkpoint_at(c, i, &name, &type, &err) == SNUG_OK
                            ? py_named_type(name, &type)
                            : py_raise(&err);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* read(number, array): into an array of as many bytes, which is contiguous. */
static PyObject *read_array(PyObject *self, PyObject *args) {
    snug_checkpoint *c = ((py_checkpoint *)self)->c;
    Py_ssize_t i;
    PyObject *array;
    Py_buffer b;
    snug_view view = {.data = NULL};
    snug_error err;
    if (!PyArg_ParseTuple(args, "nO", &i, &array))
        return NULL;
    if (snug_checkpoint_at(c, i < 0 ? SIZE_MAX : (size_t)i, NULL, &view.type, &err) != SNUG_OK ||
        snug_type_bytes(&view.type, &view.bytes, &err) != SNUG_OK)
        return py_raise(&err);
    if (PyObject_GetBuffer(array, &b, PyBUF_WRITABLE) < 0)
        return NULL;
    const Py_ssize_t n = b.len;
    view.data = b.buf;
    const int fits = (size_t)n == view.bytes;
    const snug_status status = fits ? snug_checkpoint_read(c, (size_t)i, &view, &err) : SNUG_OK;
    PyBuffer_Release(&b);
    if (status != SNUG_OK)
        return py_raise(&err);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "an array of %zd bytes for one of %zu", n,
                            view.bytes);
    Py_RETURN_NONE;
}

static PyMethodDef checkpoint_methods[] = {
    {"rows", checkpoint_rows, METH_NOARGS, "[(name, dtype, dims)]"},
    {"read", read_array, METH_VARARGS, "Into an array: (number, array)."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_checkpoint_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc_checkpoint},
                           {Py_tp_methods, checkpoint_methods},
                           {Py_tp_new, new_checkpoint},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Checkpoint",
                        .basicsize = sizeof(py_checkpoint),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
