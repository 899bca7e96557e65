/* py_trace.c: the type Trace: one recording that is kept and applied many times; tf.function in
 * Python decides when. */
#include "py.h"

typedef struct {
    PyObject_HEAD snug_trace *trace;
    int n_out;
} py_trace;

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    if (((py_trace *)o)->trace)
        snug_trace_drop(((py_trace *)o)->trace);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* The tensors of a list, lent, those of variables as they are now; n of them. */
typedef struct {
    int n;
    snug_tensor **t, **to_drop;
} lent;

static void give_back(lent *l) {
    for (int i = 0; l->t && i < l->n; i++)
        py_drop(l->to_drop[i]);
    PyMem_Free(l->t);
}

static int lend_all(PyObject *list, lent *l) {
    l->n = (int)PyList_Size(list);
    l->t = PyMem_Calloc((size_t)(2 * l->n + 1), sizeof *l->t);
    if (!l->t) {
        PyErr_NoMemory();
        return -1;
    }
    l->to_drop = l->t + l->n;
    for (int i = 0; i < l->n; i++)
        if (!(l->t[i] = py_lend(PyList_GetItem(list, i), &l->to_drop[i])))
            return -1;
    return 0;
}

static PyObject *wrap_all(snug_tensor **t, int n) {
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *o = py_tensor_new(t[i]);
        if (!list)
            Py_XDECREF(o);
        else if (!o || PyList_SetItem(list, i, o) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Per example a tuple: per axis which open extent it has, from 1 on; 0: its own. */
static int read_axes(PyObject *list, int n, snug_open_axes *out) {
    for (int i = 0; i < n; i++) {
        PyObject *axes = PyList_GetItem(list, i);
        for (Py_ssize_t k = 0; axes && k < PyTuple_Size(axes) && k < SNUG_MAX_RANK; k++)
            out[i].of[k] = (unsigned char)PyLong_AsLong(PyTuple_GetItem(axes, k));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* begin(examples, axes=None): opens the trace; tensors that stand for the arguments. */
static PyObject *begin(PyObject *self, PyObject *args) {
    PyObject *list, *open = Py_None;
    snug_open_axes *axes = NULL;
    if (!PyArg_ParseTuple(args, "O|O", &list, &open))
        return NULL;
    py_trace *me = (py_trace *)self;
    snug_error err;
    lent l = {0};
    PyObject *out = NULL;
    if (!PyList_Check(list) || me->trace)
        return PyErr_Format(PyExc_TypeError, "begin(list of tensors), once");
    snug_type *types = NULL;
    snug_tensor **made = NULL;
    if (py_enter() == 0 && lend_all(list, &l) == 0) {
        types = PyMem_Calloc((size_t)l.n + 1, sizeof *types);
        made = PyMem_Calloc((size_t)l.n + 1, sizeof *made);
        for (int i = 0; types && i < l.n; i++)
            types[i] = *snug_tensor_type(l.t[i]);
        if (open != Py_None)
            axes = PyMem_Calloc((size_t)l.n + 1, sizeof *axes);
        if (!types || !made || (open != Py_None && !axes))
            PyErr_NoMemory();
        else if (axes && read_axes(open, l.n, axes) < 0)
            out = NULL;
        else if (snug_trace_begin_open(py.recorder, types, axes, l.n, made, &me->trace, &err) !=
                 SNUG_OK)
            py_raise(&err);
        else
            out = wrap_all(made, l.n);
    }
    PyMem_Free(axes);
    PyMem_Free(types);
    PyMem_Free(made);
    give_back(&l);
    return out;
}

static PyObject *end(PyObject *self, PyObject *list) {
    py_trace *me = (py_trace *)self;
    snug_error err;
    lent l = {0};
    int ok = 0;
    if (!PyList_Check(list) || !me->trace)
        return PyErr_Format(PyExc_TypeError, "end(list of tensors), after begin");
    if (py_enter() == 0 && lend_all(list, &l) == 0) {
        if (snug_trace_end(me->trace, l.t, l.n, &err) != SNUG_OK)
            py_raise(&err);
        else
            ok = 1;
    }
    me->n_out = l.n;
    give_back(&l);
    if (!ok)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *call(PyObject *self, PyObject *list) {
    py_trace *me = (py_trace *)self;
    snug_error err;
    lent l = {0};
    PyObject *out = NULL;
    if (!PyList_Check(list) || !me->trace)
        return PyErr_Format(PyExc_TypeError, "call(list of tensors), after end");
    snug_tensor **made = PyMem_Calloc((size_t)me->n_out + 1, sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    if (py_enter() == 0 && lend_all(list, &l) == 0) {
        py_mark_site();
        if (snug_trace_call(me->trace, l.t, l.n, made, me->n_out, &err) != SNUG_OK)
            py_raise(&err);
        else
            out = wrap_all(made, me->n_out);
    }
    PyMem_Free(made);
    give_back(&l);
    return out;
}

/* Drops it, open or not. */
static PyObject *drop(PyObject *self, PyObject *none) {
    (void)none;
    py_trace *me = (py_trace *)self;
    if (me->trace)
        snug_trace_drop(me->trace);
    me->trace = NULL;
    Py_RETURN_NONE;
}

static PyObject *has_effects(PyObject *self, void *c) {
    (void)c;
    py_trace *me = (py_trace *)self;
    return PyBool_FromLong(me->trace && snug_trace_has_effects(me->trace));
}

static PyObject *is_light(PyObject *self, void *c) {
    (void)c;
    py_trace *me = (py_trace *)self;
    return PyBool_FromLong(me->trace && snug_trace_is_light(me->trace));
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    py_trace *me = PyObject_New(py_trace, type);
    if (me) {
        me->trace = NULL;
        me->n_out = 0;
    }
    return (PyObject *)me;
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_VARARGS, "begin(examples, axes=None): what stands for the arguments."},
    {"end", end, METH_O, "end(outputs): closes the trace."},
    {"call", call, METH_O, "call(arguments): the outputs, recorded."},
    {"drop", drop, METH_NOARGS, "Lets go of it, open or not."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"has_effects", has_effects, NULL, "Whether a call writes variables.", NULL},
    {"is_light", is_light, NULL, "Whether it may be called only to see what it gives.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject *py_make_trace_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, getset},
                           {Py_tp_new, new},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Trace",
                        .basicsize = sizeof(py_trace),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
