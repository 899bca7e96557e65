/* py_iterator.c: the type Iterator: elements of a dataset one by one, as tensors or arrays, in the
 * structure that its owner gives. The interpreter lock is given up while the library works. */
#include "py_dataset.h"

#include <string.h>
#include <time.h>

typedef struct {
    PyObject_HEAD snug_iterator *it;
    PyObject *dataset; /* its _C.Dataset */
    PyObject *pack;    /* from a list to a structure */
    int kind;          /* 0 one value, 1 a tuple, 2 by pack */
    int busy;          /* a thread is in it */
    double asked;      /* when signals were looked at */
} py_iterator;

static void dealloc(PyObject *o) {
    py_iterator *me = (py_iterator *)o;
    PyTypeObject *type = Py_TYPE(o);
    PyObject_GC_UnTrack(o);
    if (me->it) {
        PyThreadState *thread = PyEval_SaveThread();
        snug_iterator_destroy(me->it);
        PyEval_RestoreThread(thread);
    }
    Py_XDECREF(me->pack);
    Py_XDECREF(me->dataset);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static int traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(((py_iterator *)o)->pack);
    return 0;
}

/* Asked on the thread that waits; its lock is given up. */
static int interrupted(void *ctx) {
    py_iterator *me = ctx;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const double s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (s - me->asked < 0.02)
        return 0;
    me->asked = s;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const int stop = PyErr_CheckSignals() < 0;
    if (stop)
        (void)py_keep_exception(NULL);
    PyGILState_Release(gil);
    return stop;
}

static int open_iterator(py_iterator *me, snug_dataset *d, snug_iterator **out) {
    snug_error err;
    snug_iterator *it;
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_iterator_create(d, &it, &err);
    PyEval_RestoreThread(thread);
    if (status != SNUG_OK) {
        py_raise_kept(&err);
        return -1;
    }
    snug_iterator_set_interrupt(it, interrupted, me);
    *out = it;
    return 0;
}

/* Iterator(dataset, kind, pack) */
static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *dataset, *pack;
    int kind;
    if (!PyArg_ParseTuple(args, "OiO", &dataset, &kind, &pack) || py_enter() < 0)
        return NULL;
    snug_dataset *d = py_dataset_of(dataset);
    if (!d)
        return NULL;
    py_release_waiting();
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_iterator *me = (py_iterator *)alloc(type, 0);
    if (!me)
        return NULL;
    me->pack = Py_NewRef(pack);
    me->dataset = Py_NewRef(dataset);
    me->kind = kind;
    if (open_iterator(me, d, &me->it) < 0)
        Py_CLEAR(me);
    return (PyObject *)me;
}

static void enter(py_iterator *me) {
    while (me->busy) {
        PyThreadState *thread = PyEval_SaveThread();
        nanosleep(&(struct timespec){0, 100000}, NULL);
        PyEval_RestoreThread(thread);
    }
    me->busy = 1;
}

/* 1: an element; 0: the end; -1 with an exception. */
static int next_element(py_iterator *me, snug_element *out) {
    snug_error err;
    if (py_enter() < 0)
        return -1;
    if (snug_is_tracing(py.recorder)) { /* each call has elements of its own: no trace holds them */
        PyErr_SetNone(py.peek);
        return -1;
    }
    if (snug_boundary(py.recorder, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    py_release_waiting();
    enter(me);
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_iterator_next(me->it, out, &err);
    PyEval_RestoreThread(thread);
    me->busy = 0;
    if (status == SNUG_OK) {
        if (py_enter() == 0) /* another thread may have been in */
            return 1;
        snug_element_drop(out);
        return -1;
    }
    if (status == SNUG_E_END)
        return 0;
    py_raise_kept(&err);
    return -1;
}

typedef PyObject *(*part_fn)(snug_datum *part);

/* Takes the element's parts. */
static PyObject *packed(const py_iterator *me, snug_element *e, part_fn value_of) {
    if (me->kind == 0 && e->n == 1)
        return value_of(&e->part[0]);
    PyObject *all = me->kind == 1 ? PyTuple_New(e->n) : PyList_New(e->n);
    for (int i = 0; i < e->n; i++) {
        PyObject *value = all ? value_of(&e->part[i]) : NULL;
        if (!all)
            snug_datum_drop(&e->part[i]);
        else if (!value ||
                 (me->kind == 1 ? PyTuple_SetItem(all, i, value) : PyList_SetItem(all, i, value)))
            Py_CLEAR(all);
    }
    if (!all || me->kind == 1)
        return all;
    PyObject *structure = PyObject_CallFunctionObjArgs(me->pack, all, NULL);
    Py_DECREF(all);
    return structure;
}

static PyObject *give(PyObject *self, part_fn value_of) {
    snug_element e;
    if (next_element((py_iterator *)self, &e) <= 0)
        return NULL;
    return packed((py_iterator *)self, &e, value_of);
}

static PyObject *iternext(PyObject *self) {
    return give(self, py_part_tensor);
}

/* next_numpy(): as arrays; StopIteration at the end. */
static PyObject *next_numpy(PyObject *self, PyObject *none) {
    (void)none;
    PyObject *made = give(self, py_part_numpy);
    if (!made && !PyErr_Occurred())
        PyErr_SetNone(PyExc_StopIteration);
    return made;
}

static PyObject *itself(PyObject *self) {
    return Py_NewRef(self);
}

/* --- positions and figures -------------------------------------------------------------------- */
static snug_status append(void *ctx, const char *bytes, size_t n, snug_error *err) {
    PyObject **all = ctx;
    PyObject *more = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
    PyObject *both = more && *all ? PySequence_Concat(*all, more) : NULL;
    Py_XDECREF(more);
    Py_XDECREF(*all);
    *all = both;
    return both ? SNUG_OK : py_keep_exception(err);
}

/* save(): the position, as bytes. */
static PyObject *save(PyObject *self, PyObject *none) {
    (void)none;
    py_iterator *me = (py_iterator *)self;
    snug_error err;
    PyObject *all = PyBytes_FromStringAndSize("", 0);
    const snug_writer w = {.ctx = &all, .write = append};
    enter(me);
    const snug_status status = all ? snug_iterator_save(me->it, &w, &err) : SNUG_E_MEMORY;
    me->busy = 0;
    if (status == SNUG_OK && all)
        return all;
    Py_XDECREF(all);
    return PyErr_Occurred() ? NULL : py_raise_kept(&err);
}

static PyObject *restore(PyObject *self, PyObject *bytes) {
    py_iterator *me = (py_iterator *)self;
    char *data;
    Py_ssize_t n;
    snug_error err;
    snug_iterator *fresh;
    if (PyBytes_AsStringAndSize(bytes, &data, &n) < 0 ||
        open_iterator(me, py_dataset_of(me->dataset), &fresh) < 0)
        return NULL;
    enter(me);
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_iterator_restore(fresh, data, (size_t)n, &err);
    snug_iterator_destroy(status == SNUG_OK ? me->it : fresh);
    PyEval_RestoreThread(thread);
    if (status == SNUG_OK)
        me->it = fresh;
    me->busy = 0;
    if (status != SNUG_OK)
        return py_raise_kept(&err);
    Py_RETURN_NONE;
}

/* stages(): a dict for each stage, the source first. */
static PyObject *stages(PyObject *self, PyObject *none) {
    (void)none;
    enum { MAX = 64 };
    snug_stage_row rows[MAX];
    const int n = snug_iterator_stages(((py_iterator *)self)->it, rows, MAX);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n && i < MAX; i++) {
        PyObject *row = Py_BuildValue(
            "{s:s,s:L,s:d,s:d,s:i,s:L,s:n,s:n}", "stage", rows[i].stage, "elements",
            (long long)rows[i].elements, "busy_seconds", rows[i].busy_seconds, "wait_seconds",
            rows[i].wait_seconds, "workers", rows[i].workers, "depth", (long long)rows[i].depth,
            "bytes", (Py_ssize_t)rows[i].bytes, "peak_bytes", (Py_ssize_t)rows[i].peak_bytes);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"next_numpy", next_numpy, METH_NOARGS, "The next element as arrays."},
    {"save", save, METH_NOARGS, "The position, as bytes."},
    {"restore", restore, METH_O, "Goes to a position, forth or back."},
    {"stages", stages, METH_NOARGS, "What each stage did so far."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_iterator_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                           {Py_tp_traverse, traverse},
                           {Py_tp_methods, methods},
                           {Py_tp_new, new},
                           {Py_tp_iternext, iternext},
                           {Py_tp_iter, itself},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Iterator",
                        .basicsize = sizeof(py_iterator),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --- what pipelines may take ------------------------------------------------------------------ */
/* rest_pipelines(on): nothing is made ahead of who asks. */
static PyObject *rest(PyObject *self, PyObject *on) {
    (void)self;
    const int rests = PyObject_IsTrue(on);
    if (rests < 0 || py_enter() < 0)
        return NULL;
    snug_pipeline_rest(py.engine, rests);
    Py_RETURN_NONE;
}

/* limit_pipelines(bytes, left): that, and half of what the budget has beyond `left`; left -1: that
 * alone. Plans leave it to them. 0: what pipelines have under a budget outside of loops. The
 * limit. */
static PyObject *limit(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t bytes, left;
    if (!PyArg_ParseTuple(args, "nn", &bytes, &left) || py_enter() < 0)
        return NULL;
    const size_t room = left < 0 ? 0 : snug_room(py.engine);
    size_t most = (size_t)bytes + (room > (size_t)left ? (room - (size_t)left) / 2 : 0);
    snug_recorder_await(py.recorder, most > 0);
    most = most > 0 ? most : PY_PIPELINES(snug_budget_bytes(py.engine));
    snug_pipeline_limit(py.engine, most);
    return PyLong_FromSize_t(most);
}

PyMethodDef py_pipeline_methods[] = {
    {"rest_pipelines", rest, METH_O, "Whether nothing is made ahead of who asks."},
    {"limit_pipelines", limit, METH_VARARGS,
     "limit_pipelines(bytes, left): the most they may hold."},
    {NULL, NULL, 0, NULL},
};
