/* py_tape.c: the type Tape, base of tf.GradientTape: flat lists of tensors in and out; structures
 * and the with statement are Python's. */
#include "py.h"

typedef struct {
    PyObject_HEAD snug_tape *tape;
} py_tape;

static snug_tape *tape_of(PyObject *self) {
    snug_tape *t = ((py_tape *)self)->tape;
    if (!t)
        PyErr_SetString(PyExc_RuntimeError, "the tape has not recorded anything yet");
    return t;
}

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    if (((py_tape *)o)->tape)
        snug_tape_drop(((py_tape *)o)->tape);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

/* start(persistent, watch_accessed_variables) */
static PyObject *start(PyObject *self, PyObject *args) {
    int persistent, watch;
    snug_error err;
    if (!PyArg_ParseTuple(args, "pp", &persistent, &watch) || py_enter() < 0)
        return NULL;
    py_tape *t = (py_tape *)self;
    if (t->tape)
        snug_tape_drop(t->tape);
    t->tape = NULL;
    snug_tape_options options = {.persistent = persistent, .not_watching = !watch};
    py_mark_site();
    if (snug_tape_create(py.recorder, &options, &t->tape, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *self, PyObject *none) {
    (void)none;
    if (py_enter() < 0 || !tape_of(self))
        return NULL;
    snug_tape_stop(((py_tape *)self)->tape);
    Py_RETURN_NONE;
}

static PyObject *resume(PyObject *self, PyObject *none) {
    (void)none;
    snug_error err;
    if (py_enter() < 0 || !tape_of(self))
        return NULL;
    if (snug_tape_resume(((py_tape *)self)->tape, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *reset(PyObject *self, PyObject *none) {
    (void)none;
    if (py_enter() < 0 || !tape_of(self))
        return NULL;
    snug_tape_reset(((py_tape *)self)->tape);
    Py_RETURN_NONE;
}

static PyObject *release(PyObject *self, PyObject *none) {
    (void)none;
    py_tape *t = (py_tape *)self;
    if (t->tape)
        snug_tape_drop(t->tape);
    t->tape = NULL;
    Py_RETURN_NONE;
}

static PyObject *watch(PyObject *self, PyObject *x) {
    snug_error err;
    if (py_enter() < 0 || !tape_of(self))
        return NULL;
    snug_tape *tape = ((py_tape *)self)->tape;
    if (PyObject_TypeCheck(x, py.variable)) {
        if (snug_tape_watch_variable(tape, ((py_variable *)x)->v, &err) != SNUG_OK)
            return py_raise(&err);
        Py_RETURN_NONE;
    }
    if (!PyObject_TypeCheck(x, py.tensor))
        return PyErr_Format(PyExc_ValueError,
                            "Passed in object %R of type %R, not tf.Tensor or "
                            "tf.Variable or ExtensionType.",
                            x, Py_TYPE(x));
    if (snug_tape_watch(tape, ((py_tensor *)x)->t, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *watched(PyObject *self, PyObject *none) {
    (void)none;
    if (!tape_of(self))
        return NULL;
    size_t n = snug_tape_watched(((py_tape *)self)->tape, NULL, 0);
    snug_variable **all = PyMem_Calloc(n + 1, sizeof *all);
    PyObject *list = all ? PyList_New(0) : PyErr_NoMemory();
    if (all)
        snug_tape_watched(((py_tape *)self)->tape, all, n);
    for (size_t i = 0; list && i < n; i++) {
        snug_variable_hold(all[i]);
        PyObject *v = py_variable_wrap(all[i], py.variable);
        if (!v || PyList_Append(list, v) < 0)
            Py_CLEAR(list);
        Py_XDECREF(v);
    }
    PyMem_Free(all);
    return list;
}

/* --- gradient --------------------------------------------------------------------------------- */
typedef struct {
    int n_targets, n_sources;
    snug_tensor **targets, **seeds, **grads, **to_drop;
    snug_source *sources;
    int n_drop;
} request;

static int is_new(request *q, int n, int m) {
    const size_t all = (size_t)(3 * n + m + m + n) + 4;
    snug_tensor **block = PyMem_Calloc(all, sizeof *block);
    q->sources = PyMem_Calloc((size_t)m + 1, sizeof *q->sources);
    q->n_targets = n;
    q->n_sources = m;
    q->n_drop = 0;
    q->targets = block;
    if (!block || !q->sources) {
        PyErr_NoMemory();
        return -1;
    }
    q->seeds = block + n;
    q->grads = q->seeds + n;
    q->to_drop = q->grads + m;
    return 0;
}

static int fill_targets(request *q, PyObject *targets, PyObject *seeds) {
    for (int i = 0; i < q->n_targets; i++) {
        snug_tensor *read = NULL;
        q->targets[i] = py_lend(PyList_GetItem(targets, i), &read);
        if (!q->targets[i])
            return -1;
        if (read)
            q->to_drop[q->n_drop++] = read;
        PyObject *seed =
            seeds == Py_None ? Py_NewRef(Py_None) : PySequence_GetItem(seeds, i); /* held */
        if (seed && seed != Py_None)
            q->seeds[i] = py_convert(seed, (int)snug_tensor_type(q->targets[i])->dtype, PY_FOLLOW);
        const int none = seed == Py_None;
        Py_XDECREF(seed);
        if (none)
            continue;
        if (!q->seeds[i])
            return -1;
        q->to_drop[q->n_drop++] = q->seeds[i];
    }
    return 0;
}

static int fill_sources(request *q, PyObject *sources) {
    for (int i = 0; i < q->n_sources; i++) {
        PyObject *o = PyList_GetItem(sources, i);
        if (PyObject_TypeCheck(o, py.tensor))
            q->sources[i].tensor = ((py_tensor *)o)->t;
        else if (!(q->sources[i].variable = py_variable_of(o)))
            return -1;
    }
    return 0;
}

static PyObject *as_list(const request *q) {
    PyObject *list = PyList_New(q->n_sources);
    for (int i = 0; i < q->n_sources; i++) {
        PyObject *g = Py_None;
        if (q->grads[i])
            g = py_tensor_new(q->grads[i]);
        else
            Py_INCREF(g);
        if (!list || !g || PyList_SetItem(list, i, g) < 0) {
            Py_XDECREF(list ? NULL : g);
            Py_CLEAR(list);
        }
    }
    return list;
}

/* gradient(targets, seeds or None, sources): lists in, a list of tensors or None out. */
static PyObject *gradient(PyObject *self, PyObject *args) {
    PyObject *targets, *seeds, *sources, *list = NULL;
    snug_error err;
    request q = {0};
    if (!PyArg_ParseTuple(args, "O!OO!", &PyList_Type, &targets, &seeds, &PyList_Type, &sources) ||
        py_enter() < 0 || !tape_of(self))
        return NULL;
    if (is_new(&q, (int)PyList_Size(targets), (int)PyList_Size(sources)) == 0 &&
        fill_targets(&q, targets, seeds) == 0 && fill_sources(&q, sources) == 0) {
        py_mark_site();
        if (snug_tape_gradient(((py_tape *)self)->tape, q.targets, q.seeds, q.n_targets, q.sources,
                               q.n_sources, q.grads, &err) != SNUG_OK)
            py_raise(&err);
        else
            list = as_list(&q);
    }
    for (int i = 0; i < q.n_drop; i++)
        py_drop(q.to_drop[i]);
    PyMem_Free(q.targets);
    PyMem_Free(q.sources);
    return list;
}

/* slices(gradient): [(values, indices)] of the lookups that it is made of; empty: of others. */
static PyObject *slices(PyObject *self, PyObject *o) {
    (void)self;
    enum { MOST = 16 };
    snug_tensor *values[MOST], *indices[MOST];
    snug_error err;
    int n = 0;
    if (!PyObject_TypeCheck(o, py.tensor) || py_enter() < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a tensor is wanted");
    py_mark_site();
    if (snug_tensor_slices(((py_tensor *)o)->t, values, indices, MOST, &n, &err) != SNUG_OK)
        return py_raise(&err);
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *v = py_tensor_new(values[i]), *k = py_tensor_new(indices[i]);
        PyObject *pair = v && k && list ? PyTuple_Pack(2, v, k) : NULL;
        Py_XDECREF(v);
        Py_XDECREF(k);
        if (!pair || PyList_SetItem(list, i, pair) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"_slices", slices, METH_O, NULL},
    {"_start", start, METH_VARARGS, NULL},
    {"_stop", stop, METH_NOARGS, NULL},
    {"_resume", resume, METH_NOARGS, NULL},
    {"_reset", reset, METH_NOARGS, NULL},
    {"_release", release, METH_NOARGS, NULL},
    {"_watch", watch, METH_O, NULL},
    {"_watched", watched, METH_NOARGS, NULL},
    {"_gradient", gradient, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_tape_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Tape",
                        .basicsize = sizeof(py_tape),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
