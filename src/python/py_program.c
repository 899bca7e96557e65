/* py_program.c: the type Program: a function that a pipeline repeats without the interpreter.
 * snug._capture calls the user's function once with Slots, which stand for parts of an element;
 * functions of the tables that get one end here and are written down. */
#include "py_dataset.h"

#include <string.h>

typedef struct {
    PyObject_HEAD snug_program *p;
} py_program;

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_program_drop(((py_program *)o)->p);
    PyObject_Free(o);
    Py_DECREF(type);
}

snug_program *py_program_of(PyObject *o) {
    if (PyObject_TypeCheck(o, py.program))
        return ((py_program *)o)->p;
    PyErr_Format(PyExc_TypeError, "%R is no Program", o);
    return NULL;
}

/* Program(spec, seed) */
static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *list;
    unsigned long long seed;
    snug_spec spec;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O!K", &PyList_Type, &list, &seed) || py_enter() < 0 ||
        py_spec(list, &spec) < 0)
        return NULL;
    py_program *me = PyObject_New(py_program, type);
    if (!me)
        return NULL;
    me->p = NULL;
    if (snug_program_create(py.engine, &spec, seed, &me->p, &err) != SNUG_OK) {
        Py_DECREF(me);
        return py_raise(&err);
    }
    return (PyObject *)me;
}

/* --- slots ------------------------------------------------------------------------------------ */
int py_slot_number(PyObject *slot) {
    PyObject *n = PyObject_GetAttrString(slot, "_slot");
    const long number = n ? PyLong_AsLong(n) : -1;
    Py_XDECREF(n);
    return (int)number;
}

int py_slot_dtype(PyObject *slot) {
    snug_dtype d;
    PyObject *dtype = PyObject_GetAttrString(slot, "dtype");
    const int known = dtype && dtype != py.string && py_dtype(dtype, &d) == 0;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return known ? (int)d : PY_ANY;
}

static PyObject *slot(PyObject *self, PyObject *number) {
    snug_spec spec = {.n = 1};
    const long i = PyLong_AsLong(number);
    if (i < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "slot %ld", i);
    snug_program_slot(((py_program *)self)->p, (int)i, &spec.type[0], &spec.is_text[0]);
    return py_spec_list(&spec);
}

/* refine(slot, [(dtype, dims)]) */
static PyObject *refine(PyObject *self, PyObject *args) {
    int i;
    PyObject *list;
    snug_spec spec;
    snug_error err;
    if (!PyArg_ParseTuple(args, "iO!", &i, &PyList_Type, &list) || py_spec(list, &spec) < 0)
        return NULL;
    if (snug_program_refine(((py_program *)self)->p, i, &spec.type[0], &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *constant(PyObject *self, PyObject *value) {
    snug_datum d;
    snug_error err;
    int made;
    if (py_datum(value, PY_ANY, 0, &d) < 0)
        return NULL;
    const snug_status status = snug_program_constant(((py_program *)self)->p, &d, &made, &err);
    snug_datum_drop(&d);
    return status == SNUG_OK ? PyLong_FromLong(made) : py_raise(&err);
}

/* blank([(dtype, dims)]): a slot that Python gives. */
static PyObject *blank(PyObject *self, PyObject *list) {
    snug_spec spec;
    snug_error err;
    int made;
    if (py_spec(list, &spec) < 0)
        return NULL;
    if (snug_program_blank(((py_program *)self)->p, &spec.type[0], spec.is_text[0], &made, &err) !=
        SNUG_OK)
        return py_raise(&err);
    return PyLong_FromLong(made);
}

/* --- calls ------------------------------------------------------------------------------------ */
typedef struct {
    snug_program *p;
    void *lists[64]; /* made here */
    int n_lists;
    PyObject *result;
} writing;

static int as_constant(writing *w, snug_tensor *t, snug_argument *out) {
    snug_datum d;
    snug_error err;
    int made;
    if (snug_datum_create(py.engine, snug_tensor_type(t), &d, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    int bad = py_read(t, d.data, d.bytes) < 0;
    if (!bad && snug_program_constant(w->p, &d, &made, &err) != SNUG_OK) {
        py_raise(&err);
        bad = 1;
    }
    snug_datum_drop(&d);
    *out = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = bad ? 0 : made};
    return bad ? -1 : 0;
}

/* The arguments with constants for tensors. */
static snug_argument *rewrite(writing *w, const snug_argument *args, int n) {
    snug_argument *to = w->n_lists < 64 ? PyMem_Calloc((size_t)n + 1, sizeof *to) : NULL;
    if (!to) {
        PyErr_NoMemory();
        return NULL;
    }
    w->lists[w->n_lists++] = to;
    for (int i = 0; i < n; i++) {
        to[i] = args[i];
        if (args[i].kind == SNUG_ARG_TENSOR && as_constant(w, args[i].tensor, &to[i]) < 0)
            return NULL;
        if (args[i].kind == SNUG_ARG_LIST &&
            !(to[i].list.items = rewrite(w, args[i].list.items, args[i].list.n)))
            return NULL;
    }
    return to;
}

static PyObject *numbers(const int *slots, int n) {
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *number = PyLong_FromLong(slots[i]);
        if (!number || PyList_SetItem(list, i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static int write_down(void *ctx, int row, const snug_argument *args, int n, int to_list) {
    enum { MAX = 96 };
    writing *w = ctx;
    int slots[MAX], n_out = 0;
    snug_error err;
    const snug_argument *own = rewrite(w, args, n);
    if (own && snug_program_call(w->p, row, own, n, slots, MAX, &n_out, &err) != SNUG_OK)
        py_raise(&err);
    else if (own) {
        PyObject *list = numbers(slots, n_out);
        w->result = list ? Py_BuildValue("(Ni)", list, to_list || n_out > 1) : NULL;
    }
    for (int i = 0; i < w->n_lists; i++)
        PyMem_Free(w->lists[i]);
    return w->result ? 0 : -1;
}

/* call(function, args, kwargs): ([slots], whether they are a list). */
static PyObject *call(PyObject *self, PyObject *args) {
    enum { MAX = 64 };
    PyObject *function, *tuple, *keywords, *all[MAX], *names = NULL, *key, *value;
    writing w = {.p = ((py_program *)self)->p};
    if (!PyArg_ParseTuple(args, "OO!O!", &function, &PyTuple_Type, &tuple, &PyDict_Type, &keywords))
        return NULL;
    const Py_ssize_t n = PyTuple_Size(tuple), n_names = PyDict_Size(keywords);
    if (n + n_names > MAX || !PyCFunction_Check(function))
        return PyErr_Format(PyExc_TypeError, "not a call of a function of the table");
    for (Py_ssize_t i = 0; i < n; i++)
        all[i] = PyTuple_GetItem(tuple, i);
    names = PyTuple_New(n_names);
    Py_ssize_t at = 0, k = 0;
    while (names && PyDict_Next(keywords, &at, &key, &value)) {
        PyTuple_SetItem(names, k, Py_NewRef(key));
        all[n + k++] = value;
    }
    if (names)
        py_row_arguments(function, all, n, n_names ? names : NULL, write_down, &w);
    Py_XDECREF(names);
    return w.result;
}

/* {name: bytes} as attributes; the texts are lent by the dict. */
static int attributes(PyObject *dict, snug_data_attr *out, int max) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int n = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        char *data;
        Py_ssize_t bytes;
        if (n == max) {
            PyErr_Format(PyExc_ValueError, "more than %d attributes", max);
            return -1;
        }
        out[n].name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!out[n].name || PyBytes_AsStringAndSize(value, &data, &bytes) < 0)
            return -1;
        out[n++].value = (snug_text){data, (size_t)bytes};
    }
    return n;
}

static snug_data_op *make_op(const char *name, PyObject *dict) {
    enum { MAX = 32 };
    snug_data_attr attrs[MAX];
    snug_data_op *op;
    snug_error err;
    const int n = py_enter() < 0 ? -1 : attributes(dict, attrs, MAX);
    if (n < 0)
        return NULL;
    if (snug_data_op_create(py.engine, name, attrs, n, &op, &err) == SNUG_OK)
        return op;
    py_raise(&err);
    return NULL;
}

/* data(name, attributes, [slots]): [slots] */
static PyObject *data(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *dict, *list;
    int in[SNUG_MAX_PARTS], out[SNUG_MAX_PARTS], n_out = 0;
    snug_error err;
    if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyDict_Type, &dict, &PyList_Type, &list))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    if (n > SNUG_MAX_PARTS)
        return PyErr_Format(PyExc_ValueError, "more than %d parts", SNUG_MAX_PARTS);
    for (Py_ssize_t i = 0; i < n; i++)
        in[i] = (int)PyLong_AsLong(PyList_GetItem(list, i));
    snug_data_op *op = PyErr_Occurred() ? NULL : make_op(name, dict);
    if (!op)
        return NULL;
    if (snug_program_data(((py_program *)self)->p, op, in, (int)n, out, SNUG_MAX_PARTS, &n_out,
                          &err) != SNUG_OK)
        return py_raise(&err);
    return numbers(out, n_out);
}

/* layer(class, config, training, times, slot): the slot of its result. */
static PyObject *layer(PyObject *self, PyObject *args) {
    snug_program_layer l;
    int in, out;
    snug_error err;
    if (!PyArg_ParseTuple(args, "ssiii", &l.class_name, &l.config_json, &l.training, &l.times, &in))
        return NULL;
    if (snug_program_add_layer(((py_program *)self)->p, &l, in, &out, &err) != SNUG_OK)
        return py_raise(&err);
    return PyLong_FromLong(out);
}

static PyObject *give(PyObject *self, PyObject *list) {
    int slots[SNUG_MAX_PARTS];
    snug_error err;
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0 || n > SNUG_MAX_PARTS)
        return PyErr_Format(PyExc_ValueError, "%zd results; at most %d", n, SNUG_MAX_PARTS);
    for (Py_ssize_t i = 0; i < n; i++)
        slots[i] = (int)PyLong_AsLong(PyList_GetItem(list, i));
    if (PyErr_Occurred())
        return NULL;
    if (snug_program_give(((py_program *)self)->p, slots, (int)n, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"call", call, METH_VARARGS, "call(function, args, kwargs): ([slots], whether a list)."},
    {"data", data, METH_VARARGS, "data(name, attributes, slots): [slots]."},
    {"layer", layer, METH_VARARGS, "layer(class, config, training, times, slot): slot."},
    {"constant", constant, METH_O, "The slot of a value that is always the same."},
    {"blank", blank, METH_O, "The slot of what Python gives: [(dtype, dims)]."},
    {"slot", slot, METH_O, "[(dtype, dims)] of a slot."},
    {"refine", refine, METH_VARARGS, "refine(slot, [(dtype, dims)]): says more of its shape."},
    {"give", give, METH_O, "Says which slots are the result; closes the program."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_program_type(PyObject *module) {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {Py_tp_new, new}, {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Program",
                        .basicsize = sizeof(py_program),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --- functions on texts and files, called now ------------------------------------------------- */
/* data_call(name, attributes, [values]): [values] */
PyObject *py_data_call(PyObject *self, PyObject *args) {
    (void)self;
    const char *name;
    PyObject *dict, *list, *result = NULL;
    snug_datum in[SNUG_MAX_PARTS], out[SNUG_MAX_PARTS];
    snug_error err;
    int n_in = 0, n_out = 0, bad = 0;
    if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyDict_Type, &dict, &PyList_Type, &list))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    snug_data_op *op = n > SNUG_MAX_PARTS ? NULL : make_op(name, dict);
    if (!op)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "%zd parts", n);
    for (; n_in < n && !bad; n_in += !bad) {
        PyObject *value = PySequence_GetItem(list, n_in);
        bad = !value || py_datum(value, PY_ANY, 1, &in[n_in]) < 0;
        Py_XDECREF(value);
    }
    if (!bad) {
        const uint64_t key = (uint64_t)snug_recorder_draw(py.recorder);
        PyThreadState *me = PyEval_SaveThread();
        const snug_status s =
            snug_data_op_call(op, key, in, n_in, out, SNUG_MAX_PARTS, &n_out, &err);
        PyEval_RestoreThread(me);
        if (s != SNUG_OK)
            py_raise(&err);
        else
            result = PyList_New(n_out);
    }
    for (int i = 0; i < n_out; i++) {
        PyObject *value = result ? py_part_tensor(&out[i]) : NULL;
        if (result && (!value || PyList_SetItem(result, i, value) < 0))
            Py_CLEAR(result);
    }
    for (int i = 0; i < n_in; i++)
        snug_datum_drop(&in[i]);
    snug_data_op_destroy(op);
    py_release_waiting();
    return result;
}

/* data_functions(): [(names, signature, about)] of all rows. */
PyObject *py_data_functions(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < snug_data_op_count(); i++) {
        const snug_data_op_info *f = snug_data_op_at(i);
        PyObject *row = Py_BuildValue("(sss)", f->names, f->signature, f->about);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* use_slots(class): what stands for parts of elements. */
PyObject *py_use_slots(PyObject *self, PyObject *class) {
    (void)self;
    if (!PyType_Check(class))
        return PyErr_Format(PyExc_TypeError, "a class");
    PyObject *old = py.slot;
    py.slot = Py_NewRef(class);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

/* capture(what calls that draw are given to, or None) */
PyObject *py_set_capture(PyObject *self, PyObject *capture) {
    (void)self;
    PyObject *old = py.capture;
    py.capture = capture == Py_None ? NULL : Py_NewRef(capture);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyObject *py_is_capturing(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyBool_FromLong(py.capture != NULL);
}
