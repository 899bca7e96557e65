/* py_dataset.c: the type Dataset: a pipeline of the library; snug.data gives it TensorFlow's face.
 * Elements are flat lists of parts here; structure is Python's.
 *
 * 1. What calls Python back (generators, functions that cannot be written down, datasets made by
 *    functions) is `serial`: the library calls it on the thread that asks an iterator, which has
 *    given its interpreter lock up and takes it again for the call.
 * 2. An exception of such a call is kept until the error it became reaches the one who asks
 *    (py_kept.c). */
#include "py_dataset.h"

#include <limits.h>
#include <string.h>

typedef struct {
    PyObject_HEAD snug_dataset *d;
} py_dataset;

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    if (((py_dataset *)o)->d)
        snug_dataset_drop(((py_dataset *)o)->d);
    PyObject_Free(o);
    Py_DECREF(type);
}

snug_dataset *py_dataset_of(PyObject *o) {
    if (PyObject_TypeCheck(o, py.dataset))
        return ((py_dataset *)o)->d;
    PyErr_Format(PyExc_TypeError, "%R is no dataset", o);
    return NULL;
}

/* A reference for a transformation, which takes it over. */
static snug_dataset *hold(PyObject *o) {
    snug_dataset *d = py_dataset_of(o);
    if (d)
        snug_dataset_hold(d);
    return d;
}

PyObject *py_dataset_wrap(snug_dataset *d) {
    py_dataset *me = PyObject_New(py_dataset, py.dataset);
    if (me)
        me->d = d;
    else
        snug_dataset_drop(d);
    return (PyObject *)me;
}

/* made is read after the call that is the first argument. */
static PyObject *wrap(snug_status status, snug_dataset *const *made, const snug_error *err) {
    return status == SNUG_OK ? py_dataset_wrap(*made) : py_raise(err);
}

/* The same where a failure leaves a function with the caller. */
static PyObject *wrap_or(snug_status status, snug_dataset *const *made, const snug_error *err,
                         void (*release)(void *ctx), void *ctx) {
    if (status != SNUG_OK)
        release(ctx);
    return wrap(status, made, err);
}

/* --- calling Python back ---------------------------------------------------------------------- */
typedef struct {
    PyObject *call;
    snug_spec spec;
    int kind; /* of what a generator gives: 0 one value, 1 a flat tuple, 2 by flatten */
    PyObject *flatten;
    int is_generator;
} callback;

static void release_callback(void *ctx) {
    callback *c = ctx;
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(c->call);
    Py_XDECREF(c->flatten);
    PyMem_Free(c);
    PyGILState_Release(gil);
}

static callback *make_callback(PyObject *call, PyObject *spec, PyObject *flatten, int kind) {
    callback *c = PyMem_Calloc(1, sizeof *c);
    if (!c)
        return (callback *)PyErr_NoMemory();
    if (py_spec(spec, &c->spec) < 0) {
        PyMem_Free(c);
        return NULL;
    }
    c->call = Py_NewRef(call);
    c->flatten = flatten == Py_None ? NULL : Py_NewRef(flatten);
    c->kind = kind;
    return c;
}

/* Parts as a list of tensors; they are lent, so each is held or copied. */
static PyObject *list_of_parts(const snug_element *in) {
    PyObject *list = PyList_New(in->n);
    for (int i = 0; list && i < in->n; i++) {
        snug_datum part = in->part[i];
        snug_error err;
        if (part.keep || part.is_text) {
            snug_datum_hold(&part);
        } else if (snug_datum_create(py.engine, &in->part[i].type, &part, &err) == SNUG_OK) {
            memcpy(part.data, in->part[i].data, part.bytes);
        } else {
            py_raise(&err);
            Py_CLEAR(list);
            break;
        }
        PyObject *value = py_part_tensor(&part);
        if (!value || PyList_SetItem(list, i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static int wanted_dtype(const snug_spec *spec, int i) {
    return spec->is_text[i] ? PY_TEXT : (int)spec->type[i].dtype;
}

/* The exception of a generator whose value cannot be a part. */
static int not_convertible(const snug_spec *spec, int i, PyObject *value) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "`generator` yielded an element that could not be converted to the expected type. "
                 "The expected type was %s, but the yielded element was %S.",
                 spec->is_text[i] ? "string" : py_dtype_word(spec->type[i].dtype), value);
    return -1;
}

static int check_shape(const snug_type *want, const snug_type *is) {
    int fits = want->rank < 0 || want->rank == is->rank;
    for (int k = 0; fits && k < want->rank; k++)
        fits = want->dims[k] < 0 || want->dims[k] == is->dims[k];
    if (fits)
        return 0;
    PyObject *expected = py_shape_of(want), *got = py_shape_of(is);
    PyErr_Format(PyExc_TypeError,
                 "`generator` yielded an element of shape %S where an element of shape %S was "
                 "expected.",
                 got, expected);
    Py_XDECREF(expected);
    Py_XDECREF(got);
    return -1;
}

static int put_part(const callback *c, PyObject *value, snug_element *out) {
    const int i = out->n;
    if (py_datum(value, wanted_dtype(&c->spec, i), 0, &out->part[i]) < 0)
        return c->is_generator ? not_convertible(&c->spec, i, value) : -1;
    out->n++;
    return c->is_generator ? check_shape(&c->spec.type[i], &out->part[i].type) : 0;
}

/* The parts of a list or tuple; as many as the spec has. */
static int put_parts(const callback *c, PyObject *values, snug_element *out) {
    const int listed = PyList_Check(values) || PyTuple_Check(values);
    const Py_ssize_t n = listed ? PySequence_Size(values) : -1;
    if (n != c->spec.n) {
        PyErr_Format(PyExc_TypeError,
                     "`generator` yielded an element that did not match the expected structure: "
                     "%d parts are expected, and it was %R.",
                     c->spec.n, values);
        return -1;
    }
    int bad = 0;
    for (Py_ssize_t i = 0; i < n && !bad; i++) { /* code of a part may change the list */
        PyObject *value = PySequence_GetItem(values, i);
        bad = !value || put_part(c, value, out) < 0;
        Py_XDECREF(value);
    }
    return bad ? -1 : 0;
}

static int put_item(const callback *c, PyObject *item, snug_element *out) {
    if (c->kind == 0)
        return put_part(c, item, out);
    if (c->kind == 1)
        return put_parts(c, item, out);
    PyObject *flat = PyObject_CallFunctionObjArgs(c->flatten, item, NULL);
    const int bad = !flat || put_parts(c, flat, out) < 0;
    Py_XDECREF(flat);
    return bad ? -1 : 0;
}

typedef struct {
    const callback *c;
    PyObject *iterator;
} walk;

static snug_status open_walk(void *ctx, void **cursor, snug_error *err) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    const callback *c = ctx;
    snug_status status = SNUG_OK;
    walk *w = PyMem_Malloc(sizeof *w);
    PyObject *it = w ? PyObject_CallFunctionObjArgs(c->call, NULL) : PyErr_NoMemory();
    PyObject *iterator = it ? PyObject_GetIter(it) : NULL;
    Py_XDECREF(it);
    if (iterator) {
        *w = (walk){c, iterator};
        *cursor = w;
    } else {
        PyMem_Free(w);
        status = py_keep_exception(err);
    }
    PyGILState_Release(gil);
    return status;
}

static snug_status next_of_walk(void *cursor, snug_element *out, snug_error *err) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    const walk *w = cursor;
    snug_status status = SNUG_OK;
    out->n = 0;
    PyObject *item = PyIter_Next(w->iterator);
    if (!item) {
        status = PyErr_Occurred() ? py_keep_exception(err) : SNUG_E_END;
    } else if (put_item(w->c, item, out) < 0) {
        snug_element_drop(out);
        status = py_keep_exception(err);
    }
    Py_XDECREF(item);
    PyGILState_Release(gil);
    return status;
}

static void close_walk(void *cursor) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    walk *w = cursor;
    Py_DECREF(w->iterator);
    PyMem_Free(w);
    PyGILState_Release(gil);
}

/* generator(make, spec, kind, flatten, cardinality) */
static PyObject *generator(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *make, *spec, *flatten;
    int kind;
    long long n;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "OO!iOL", &make, &PyList_Type, &spec, &kind, &flatten, &n) ||
        py_enter() < 0)
        return NULL;
    callback *c = make_callback(make, spec, flatten, kind);
    if (!c)
        return NULL;
    c->is_generator = 1;
    const snug_generator g = {.ctx = c,
                              .release = release_callback,
                              .spec = c->spec,
                              .cardinality = n,
                              .open = open_walk,
                              .next = next_of_walk,
                              .close = close_walk,
                              .serial = 1};
    return wrap_or(snug_dataset_from_generator(py.engine, &g, &d, &err), &d, &err, g.release,
                   g.ctx);
}

/* --- functions that are called for each element ----------------------------------------------- */
static snug_status spec_of(void *ctx, const snug_spec *in, snug_spec *out, snug_error *err) {
    (void)in, (void)err;
    *out = ((const callback *)ctx)->spec;
    return SNUG_OK;
}

static snug_status call_back(void *ctx, void *worker, const snug_element *in, snug_element *out,
                             snug_error *err) {
    (void)worker;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const callback *c = ctx;
    snug_status status = SNUG_OK;
    out->n = 0;
    out->index = in->index;
    PyObject *parts = py_enter() < 0 ? NULL : list_of_parts(in);
    PyObject *made = parts ? PyObject_CallFunctionObjArgs(c->call, parts, NULL) : NULL;
    if (!made || put_parts(c, made, out) < 0) {
        snug_element_drop(out);
        status = py_keep_exception(err);
    }
    Py_XDECREF(made);
    Py_XDECREF(parts);
    PyGILState_Release(gil);
    return status;
}

/* A Program, or a function from a list of tensors to a list of values, which have this spec. */
static int as_mapper(PyObject *f, PyObject *spec, snug_mapper *out) {
    if (PyObject_TypeCheck(f, py.program)) {
        snug_program_mapper(py_program_of(f), out);
        return 0;
    }
    callback *c = make_callback(f, spec, Py_None, 1);
    if (!c)
        return -1;
    *out = (snug_mapper){
        .ctx = c, .release = release_callback, .spec = spec_of, .call = call_back, .serial = 1};
    return 0;
}

/* map(function, spec, workers, unordered, ignore_errors) */
static PyObject *map(PyObject *self, PyObject *args) {
    PyObject *f, *spec;
    snug_map_options o;
    snug_mapper mapper;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "OOiii", &f, &spec, &o.workers, &o.unordered, &o.ignore_errors) ||
        as_mapper(f, spec, &mapper) < 0)
        return NULL;
    return wrap_or(snug_dataset_map(hold(self), &mapper, &o, &d, &err), &d, &err, mapper.release,
                   mapper.ctx);
}

static PyObject *filter(PyObject *self, PyObject *args) {
    PyObject *f, *spec;
    snug_mapper mapper;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "OO", &f, &spec) || as_mapper(f, spec, &mapper) < 0)
        return NULL;
    return wrap_or(snug_dataset_filter(hold(self), &mapper, &d, &err), &d, &err, mapper.release,
                   mapper.ctx);
}

static snug_status make_dataset(void *ctx, const snug_element *in, snug_dataset **out,
                                snug_error *err) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    const callback *c = ctx;
    snug_status status = SNUG_OK;
    PyObject *parts = py_enter() < 0 ? NULL : list_of_parts(in);
    PyObject *made = parts ? PyObject_CallFunctionObjArgs(c->call, parts, NULL) : NULL;
    *out = made ? hold(made) : NULL;
    if (!*out)
        status = py_keep_exception(err);
    Py_XDECREF(made);
    Py_XDECREF(parts);
    PyGILState_Release(gil);
    return status;
}

/* interleave(function, spec, cycle, block, workers): the function makes datasets. */
static PyObject *interleave(PyObject *self, PyObject *args) {
    PyObject *f, *spec;
    long long cycle, block;
    int workers;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "OO!LLi", &f, &PyList_Type, &spec, &cycle, &block, &workers))
        return NULL;
    callback *c = make_callback(f, spec, Py_None, 1);
    if (!c)
        return NULL;
    const snug_expander e = {
        .ctx = c, .release = release_callback, .spec = c->spec, .make = make_dataset, .serial = 1};
    const snug_interleave o = {.cycle = cycle, .block = block, .workers = workers};
    return wrap_or(snug_dataset_interleave(hold(self), &e, &o, &d, &err), &d, &err, e.release,
                   e.ctx);
}

/* --- records of files that elements name, without Python -------------------------------------- */
typedef struct {
    int kind, compression;
} reading;

static void release_reading(void *ctx) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyMem_Free(ctx);
    PyGILState_Release(gil);
}

static snug_status open_records(void *ctx, const snug_element *in, snug_dataset **out,
                                snug_error *err) {
    const reading *r = ctx;
    snug_element names = {.n = 1};
    snug_dataset *files;
    snug_status status =
        snug_datum_texts(py.engine, &in->part[0].type, in->part[0].data, &names.part[0], err);
    if (status != SNUG_OK)
        return status;
    status = snug_dataset_from_element(py.engine, &names, names.part[0].type.rank > 0, &files, err);
    snug_element_drop(&names);
    if (status != SNUG_OK)
        return status;
    return snug_dataset_records(files, (snug_records)r->kind, (snug_compression)r->compression, out,
                                err);
}

/* interleave_records(kind, compression, cycle, block, workers) */
static PyObject *interleave_records(PyObject *self, PyObject *args) {
    int workers;
    long long cycle, block;
    snug_dataset *d;
    snug_error err;
    reading *r = PyMem_Malloc(sizeof *r);
    if (!r)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "iiLLi", &r->kind, &r->compression, &cycle, &block, &workers)) {
        PyMem_Free(r);
        return NULL;
    }
    const snug_expander e = {.ctx = r,
                             .release = release_reading,
                             .spec = {.n = 1, .type = {{.dtype = SNUG_OPAQUE}}, .is_text = {1}},
                             .make = open_records};
    const snug_interleave o = {.cycle = cycle, .block = block, .workers = workers};
    return wrap_or(snug_dataset_interleave(hold(self), &e, &o, &d, &err), &d, &err, e.release,
                   e.ctx);
}

/* --- sources ---------------------------------------------------------------------------------- */
/* parts(values, slices): rows of the values, or the values. Arrays are borrowed. */
static PyObject *parts(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list;
    int slices;
    snug_dataset *d = NULL;
    snug_error err;
    snug_element e = {.n = 0};
    if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &list, &slices) || py_enter() < 0)
        return NULL;
    py_release_waiting();
    const Py_ssize_t n = PyList_Size(list);
    if (n > SNUG_MAX_PARTS)
        return PyErr_Format(PyExc_ValueError, "more than %d parts", SNUG_MAX_PARTS);
    int bad = 0;
    for (Py_ssize_t i = 0; i < n && !bad; i++) {
        PyObject *value = PySequence_GetItem(list, i);
        bad = !value || py_datum(value, PY_ANY, 1, &e.part[i]) < 0;
        e.n += !bad;
        Py_XDECREF(value);
    }
    PyObject *made =
        bad ? NULL : wrap(snug_dataset_from_element(py.engine, &e, slices, &d, &err), &d, &err);
    snug_element_drop(&e);
    return made;
}

static PyObject *range(PyObject *self, PyObject *args) {
    (void)self;
    long long start, stop, step;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "LLL", &start, &stop, &step) || py_enter() < 0)
        return NULL;
    return wrap(snug_dataset_range(py.engine, start, stop, step, &d, &err), &d, &err);
}

/* list_files([bytes]) */
static PyObject *list_files(PyObject *self, PyObject *list) {
    (void)self;
    snug_dataset *d = NULL;
    snug_error err;
    const Py_ssize_t n = PyList_Size(list);
    snug_text *texts = n < 0 || py_enter() < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *texts);
    int bad = !texts;
    for (Py_ssize_t i = 0; i < n && !bad; i++) {
        char *data;
        Py_ssize_t bytes;
        bad = PyBytes_AsStringAndSize(PyList_GetItem(list, i), &data, &bytes) < 0;
        if (!bad)
            texts[i] = (snug_text){data, (size_t)bytes};
    }
    snug_status status = SNUG_E_INVALID;
    if (!bad) {
        PyThreadState *me = PyEval_SaveThread();
        status = snug_dataset_list_files(py.engine, texts, (int)n, &d, &err);
        PyEval_RestoreThread(me);
    }
    PyMem_Free(texts);
    return bad ? NULL : wrap(status, &d, &err);
}

/* records(kind, compression): of the files that this dataset names. */
static PyObject *records(PyObject *self, PyObject *args) {
    int kind, compression;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "ii", &kind, &compression))
        return NULL;
    return wrap(snug_dataset_records(hold(self), (snug_records)kind, (snug_compression)compression,
                                     &d, &err),
                &d, &err);
}

/* --- transformations -------------------------------------------------------------------------- */
static PyObject *shuffle(PyObject *self, PyObject *args) {
    long long buffer;
    unsigned long long seed;
    int keep_order;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "LKi", &buffer, &seed, &keep_order))
        return NULL;
    const snug_shuffle o = {.buffer = buffer, .seed = seed, .keep_order = keep_order};
    return wrap(snug_dataset_shuffle(hold(self), &o, &d, &err), &d, &err);
}

static PyObject *batch(PyObject *self, PyObject *args) {
    long long size;
    int drop;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "Li", &size, &drop))
        return NULL;
    return wrap(snug_dataset_batch(hold(self), size, drop, &d, &err), &d, &err);
}

/* padded_batch(size, drop, [(dtype, dims)], [value]) */
static PyObject *padded_batch(PyObject *self, PyObject *args) {
    long long size;
    int drop, n = 0;
    PyObject *shapes, *values, *made = NULL;
    snug_spec spec;
    snug_datum pad[SNUG_MAX_PARTS];
    snug_dataset *d = NULL;
    snug_error err;
    if (!PyArg_ParseTuple(args, "LiO!O!", &size, &drop, &PyList_Type, &shapes, &PyList_Type,
                          &values) ||
        py_spec(shapes, &spec) < 0)
        return NULL;
    const snug_spec *own = snug_dataset_spec(py_dataset_of(self));
    int bad = PyList_Size(values) != own->n;
    if (bad)
        PyErr_Format(PyExc_ValueError, "a padding value for each part");
    for (; n < own->n && !bad; n += !bad) {
        PyObject *value = PySequence_GetItem(values, n);
        bad = !value || py_datum(value, wanted_dtype(own, n), 0, &pad[n]) < 0;
        Py_XDECREF(value);
    }
    const snug_padding o = {
        .size = size, .drop_remainder = drop, .shapes = spec.type, .values = pad};
    if (!bad)
        made = wrap(snug_dataset_padded_batch(hold(self), &o, &d, &err), &d, &err);
    for (int i = 0; i < n; i++)
        snug_datum_drop(&pad[i]);
    return made;
}

static PyObject *unbatch(PyObject *self, PyObject *none) {
    (void)none;
    snug_dataset *d;
    snug_error err;
    return wrap(snug_dataset_unbatch(hold(self), &d, &err), &d, &err);
}

typedef snug_status (*count_fn)(snug_dataset *, int64_t, snug_dataset **, snug_error *);
static PyObject *by_count(PyObject *self, PyObject *count, count_fn f) {
    snug_dataset *d;
    snug_error err;
    const long long n = PyLong_AsLongLong(count);
    if (PyErr_Occurred())
        return NULL;
    return wrap(f(hold(self), n, &d, &err), &d, &err);
}
static PyObject *repeat(PyObject *self, PyObject *n) {
    return by_count(self, n, snug_dataset_repeat);
}
static PyObject *take(PyObject *self, PyObject *n) {
    return by_count(self, n, snug_dataset_take);
}
static PyObject *skip(PyObject *self, PyObject *n) {
    return by_count(self, n, snug_dataset_skip);
}
static PyObject *enumerate(PyObject *self, PyObject *n) {
    return by_count(self, n, snug_dataset_enumerate);
}
static PyObject *prefetch(PyObject *self, PyObject *n) {
    return by_count(self, n, snug_dataset_prefetch);
}

static PyObject *shard(PyObject *self, PyObject *args) {
    long long n, index;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "LL", &n, &index))
        return NULL;
    return wrap(snug_dataset_shard(hold(self), n, index, &d, &err), &d, &err);
}

static PyObject *concatenate(PyObject *self, PyObject *other) {
    snug_dataset *d;
    snug_error err;
    if (!py_dataset_of(other))
        return NULL;
    return wrap(snug_dataset_concatenate(hold(self), hold(other), &d, &err), &d, &err);
}

static PyObject *cache(PyObject *self, PyObject *path) {
    snug_dataset *d;
    snug_error err;
    const char *text = path == Py_None ? NULL : PyUnicode_AsUTF8AndSize(path, NULL);
    if (!text && path != Py_None)
        return NULL;
    return wrap(snug_dataset_cache(hold(self), text, &d, &err), &d, &err);
}

/* Holds of all datasets of a list, to be freed; NULL with an exception. */
static snug_dataset **hold_all(PyObject *list, int *n) {
    const Py_ssize_t size = PyList_Size(list);
    if (size < 1 || size > INT_MAX - 1) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%zd datasets; give one or more", size);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        if (!py_dataset_of(PyList_GetItem(list, i)))
            return NULL;
    snug_dataset **all = PyMem_Calloc((size_t)size, sizeof(snug_dataset *));
    for (Py_ssize_t i = 0; all && i < size; i++)
        all[i] = hold(PyList_GetItem(list, i));
    *n = (int)size;
    return all ? all : (snug_dataset **)PyErr_NoMemory();
}

static PyObject *zip(PyObject *self, PyObject *list) {
    (void)self;
    snug_dataset *d;
    snug_error err;
    int n;
    snug_dataset **all = hold_all(list, &n);
    if (!all)
        return NULL;
    const snug_status status = snug_dataset_zip(all, n, &d, &err);
    PyMem_Free(all);
    return wrap(status, &d, &err);
}

/* To be freed; NULL with an exception. */
static double *weights_of(PyObject *list) {
    const Py_ssize_t n = PyList_Size(list);
    double *w = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *w);
    if (!w && n >= 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; w && i < n; i++)
        w[i] = PyFloat_AsDouble(PyList_GetItem(list, i));
    if (w && PyErr_Occurred()) {
        PyMem_Free(w);
        return NULL;
    }
    return w;
}

/* choose(datasets, choices or None, weights or None, seed, stop_on_empty) */
static PyObject *choose(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list, *choices, *weights;
    unsigned long long seed;
    int stop, n;
    snug_dataset *d;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O!OOKi", &PyList_Type, &list, &choices, &weights, &seed, &stop) ||
        (choices != Py_None && !py_dataset_of(choices)))
        return NULL;
    double *w = weights == Py_None ? NULL : weights_of(weights);
    snug_dataset **all = PyErr_Occurred() ? NULL : hold_all(list, &n);
    PyObject *result = NULL;
    if (all) {
        const snug_choice o = {.choices = choices == Py_None ? NULL : hold(choices),
                               .weights = w && PyList_Size(weights) == n ? w : NULL,
                               .seed = seed,
                               .stop_on_empty = stop};
        const snug_status status = snug_dataset_choose(all, n, &o, &d, &err);
        result = wrap(status, &d, &err);
    }
    PyMem_Free(all);
    PyMem_Free(w);
    return result;
}

/* --- what it is ------------------------------------------------------------------------------- */
static PyObject *spec(PyObject *self, PyObject *none) {
    (void)none;
    return py_spec_list(snug_dataset_spec(((py_dataset *)self)->d));
}

static PyObject *cardinality(PyObject *self, PyObject *none) {
    (void)none;
    return PyLong_FromLongLong(snug_dataset_cardinality(((py_dataset *)self)->d));
}

/* to_come(): what it takes beside what all pipelines hold, and that. */
static PyObject *to_come(PyObject *self, PyObject *none) {
    (void)none;
    size_t held;
    const size_t coming = snug_pipeline_to_come(((py_dataset *)self)->d, &held);
    return Py_BuildValue("nn", (Py_ssize_t)coming, (Py_ssize_t)held);
}

static PyMethodDef methods[] = {
    {"map", map, METH_VARARGS, "map(function, spec, workers, unordered, ignore_errors)"},
    {"filter", filter, METH_VARARGS, "filter(function, spec)"},
    {"interleave", interleave, METH_VARARGS, "interleave(function, spec, cycle, block, workers)"},
    {"records", records, METH_VARARGS, "records(kind, compression)"},
    {"interleave_records", interleave_records, METH_VARARGS,
     "interleave_records(kind, compression, cycle, block, workers)"},
    {"shuffle", shuffle, METH_VARARGS, "shuffle(buffer, seed, keep_order)"},
    {"batch", batch, METH_VARARGS, "batch(size, drop_remainder)"},
    {"padded_batch", padded_batch, METH_VARARGS, "padded_batch(size, drop, shapes, values)"},
    {"unbatch", unbatch, METH_NOARGS, "Rows as elements."},
    {"repeat", repeat, METH_O, "repeat(times); -1: without end."},
    {"take", take, METH_O, "The first ones."},
    {"skip", skip, METH_O, "All but the first ones."},
    {"shard", shard, METH_VARARGS, "shard(n, index)"},
    {"enumerate", enumerate, METH_O, "With a number in front."},
    {"concatenate", concatenate, METH_O, "Then those of the other."},
    {"cache", cache, METH_O, "cache(path or None)"},
    {"prefetch", prefetch, METH_O, "prefetch(depth)"},
    {"spec", spec, METH_NOARGS, "[(dtype, dims)]"},
    {"cardinality", cardinality, METH_NOARGS, "-1: without end; -2: not known."},
    {"to_come", to_come, METH_NOARGS, "(bytes that it takes still, what pipelines hold)"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_dataset_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec type = {.name = "snug._C.Dataset",
                        .basicsize = sizeof(py_dataset),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &type, NULL);
}

PyMethodDef py_dataset_methods[] = {
    {"dataset_of_parts", parts, METH_VARARGS, "dataset_of_parts(values, slices)"},
    {"dataset_of_range", range, METH_VARARGS, "dataset_of_range(start, stop, step)"},
    {"dataset_of_files", list_files, METH_O, "dataset_of_files([patterns])"},
    {"dataset_of_generator", generator, METH_VARARGS,
     "dataset_of_generator(make, spec, kind, flatten, cardinality)"},
    {"dataset_of_folder", py_dataset_of_folder, METH_VARARGS,
     "dataset_of_folder(path, kind, labels, classes, shuffle, seed, split, subset, links)"},
    {"tell_passes", py_tell_passes, METH_O, "A line about long passes each so many seconds."},
    {"draw_bars", py_draw_bars, METH_O, "Whether a bar shows how far a pass over data is."},
    {"zip_datasets", zip, METH_O, "zip_datasets([datasets])"},
    {"choose_datasets", choose, METH_VARARGS,
     "choose_datasets(datasets, choices, weights, seed,"
     " stop_on_empty)"},
    {"data_call", py_data_call, METH_VARARGS, "data_call(name, attributes, [values]): [values]"},
    {"data_functions", py_data_functions, METH_NOARGS, "[(names, signature, about)]"},
    {"use_slots", py_use_slots, METH_O, "use_slots(class)"},
    {"is_capturing", py_is_capturing, METH_NOARGS, "Whether a function is written down."},
    {"capture", py_set_capture, METH_O, "capture(what is being captured, or None)"},
    {NULL, NULL, 0, NULL},
};
