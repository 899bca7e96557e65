/* py_index.c: x[...]: integers, slices with steps, ..., None, scalar tensors, masks (arrays too).
 *
 * A key is first read into one line per axis of x and the shape of the result; then at most four
 * operations are recorded: rows or a slice, a reversal, gathers for tensors as indices, a new
 * shape. Starts are parameters of the plan, sizes are structure. */
#include "py.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int64_t start, size, step; /* step > 0; reversed afterwards where the key's was negative */
    int reversed;
    snug_tensor *gather; /* a scalar index that is a tensor, lent; NULL: none */
} line;

typedef struct {
    const snug_type *type;
    line axis[SNUG_MAX_RANK];
    int n_axes;                    /* read so far */
    snug_type shape;               /* of the result, so far */
    PyObject *keep[SNUG_MAX_RANK]; /* tensors made of variables, for as long as the lines lend */
    int n_keep;
} plan;

static int bad_key(PyObject *key) {
    PyErr_Format(PyExc_TypeError,
                 "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
                 "tf.int32/tf.int64 tensors are valid indices, got %R",
                 key);
    return -1;
}

static int add_axis(plan *p, int64_t n) {
    if (p->shape.rank == SNUG_MAX_RANK) {
        py_error("UnimplementedError", "Snug has tensors of at most %d axes", SNUG_MAX_RANK);
        return -1;
    }
    p->shape.dims[p->shape.rank++] = n;
    return 0;
}

static line *next_axis(plan *p) {
    if (p->n_axes < p->type->rank)
        return &p->axis[p->n_axes++];
    py_error("InvalidArgumentError",
             "Index out of range using input dim %d; input has only %d dims", p->n_axes,
             p->type->rank);
    return NULL;
}

static int read_integer(plan *p, PyObject *key) {
    line *l = next_axis(p);
    if (!l)
        return -1;
    PyObject *n = PyNumber_Index(key);
    if (!n)
        return -1;
    const long long i = PyLong_AsLongLong(n);
    Py_DECREF(n);
    const int64_t extent = p->type->dims[l - p->axis];
    if (PyErr_Occurred())
        return -1;
    if (i < -extent || i >= extent) {
        py_error("InvalidArgumentError", "slice index %lld of dimension %d out of bounds.", i,
                 (int)(l - p->axis));
        return -1;
    }
    *l = (line){.start = i < 0 ? i + extent : i, .size = 1, .step = 1};
    return 0;
}

/* A scalar tensor: its value where that is there, else a gather. */
static int read_tensor(plan *p, PyObject *key) {
    snug_tensor *read = NULL, *t = py_lend(key, &read);
    if (!t)
        return -1;
    const snug_type type = *snug_tensor_type(t);
    if (read || !snug_tensor_is_ready(t) || snug_tensor_is_traced(t)) {
        if (type.rank != 0 || (type.dtype != SNUG_I32 && type.dtype != SNUG_I64)) {
            py_drop(read);
            return bad_key(key);
        }
        line *l = next_axis(p);
        if (!l) {
            py_drop(read);
            return -1;
        }
        if (!read)
            snug_tensor_hold(t);
        PyObject *held = py_tensor_new(t);
        if (!held)
            return -1;
        p->keep[p->n_keep++] = held;
        *l = (line){.size = p->type->dims[l - p->axis], .step = 1, .gather = t};
        return 0;
    }
    if (type.rank != 0 || !py_is_integer(type.dtype))
        return bad_key(key);
    return read_integer(p, key);
}

static int read_slice(plan *p, PyObject *key) {
    line *l = next_axis(p);
    Py_ssize_t start, stop, step;
    if (!l || PySlice_Unpack(key, &start, &stop, &step) < 0)
        return -1;
    const int64_t extent = p->type->dims[l - p->axis];
    const Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)extent, &start, &stop, step);
    const int back = step < 0;
    *l = (line){.start = n == 0 ? 0
                         : back ? start + (n - 1) * step
                                : start,
                .size = n,
                .step = n < 2  ? 1
                        : back ? -step
                               : step,
                .reversed = back && n > 1};
    return add_axis(p, n);
}

static int read_all(plan *p, int n) {
    for (; n > 0; n--) {
        line *l = next_axis(p);
        if (!l)
            return -1;
        const int64_t extent = p->type->dims[l - p->axis];
        *l = (line){.size = extent, .step = 1};
        if (add_axis(p, extent) < 0)
            return -1;
    }
    return 0;
}

static int read_one(plan *p, PyObject *key) {
    if (key == Py_None)
        return add_axis(p, 1);
    if (PySlice_Check(key))
        return read_slice(p, key);
    if (PyBool_Check(key) || PyFloat_Check(key))
        return bad_key(key);
    if (py_is_tensor(key))
        return read_tensor(p, key);
    if (PyLong_Check(key) || (PyIndex_Check(key) && !PyList_Check(key)))
        return read_integer(p, key);
    return bad_key(key);
}

/* How many axes of x the keys use up, the ellipsis aside. */
static int count_used(PyObject *keys, int *ellipses) {
    int used = 0;
    *ellipses = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(keys); i++) {
        PyObject *key = PyTuple_GetItem(keys, i);
        *ellipses += key == Py_Ellipsis;
        used += key != Py_Ellipsis && key != Py_None;
    }
    return used;
}

static int read_keys(plan *p, PyObject *keys) {
    int ellipses, used = count_used(keys, &ellipses);
    if (ellipses > 1) {
        PyErr_SetString(PyExc_ValueError, "Multiple ellipses not allowed.");
        return -1;
    }
    const int rest = p->type->rank > used ? p->type->rank - used : 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(keys); i++) {
        PyObject *key = PyTuple_GetItem(keys, i);
        if ((key == Py_Ellipsis ? read_all(p, rest) : read_one(p, key)) < 0)
            return -1;
    }
    return read_all(p, p->type->rank - p->n_axes);
}

/* --- what is recorded ------------------------------------------------------------------------- */
static int is_whole(const plan *p, int axis) {
    return p->axis[axis].size == p->type->dims[axis];
}

static snug_tensor *cut(const plan *p, snug_tensor *t) {
    int trimmed = 0, last = 0;
    for (int i = 0; i < p->n_axes; i++)
        if (!is_whole(p, i))
            trimmed++, last = i;
    snug_error err;
    snug_tensor *out = t;
    snug_status s = SNUG_OK;
    if (trimmed == 0) {
        snug_tensor_hold(t);
    } else if (trimmed == 1 && last == 0 && p->axis[0].step == 1) {
        s = snug_tensor_rows(t, p->axis[0].start, p->axis[0].size, &out, &err);
    } else {
        char sizes[256] = "", steps[256] = "", starts[256] = "", text[800];
        for (int i = 0; i < p->n_axes; i++) {
            const char *comma = i ? "," : "";
            const line *l = &p->axis[i];
            snprintf(sizes + strlen(sizes), 30, "%s%lld", comma, (long long)l->size);
            snprintf(steps + strlen(steps), 30, "%s%lld", comma, (long long)l->step);
            snprintf(starts + strlen(starts), 30, "%s%lld", comma, (long long)l->start);
        }
        snprintf(text, sizeof text, "sizes=%s strides=%s start=%s", sizes, steps, starts);
        s = snug_record_op(py.recorder, "slice", text, &t, 1, &out, 1, &err);
    }
    if (s != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    return out;
}

static snug_argument integer(int64_t v) {
    return (snug_argument){.kind = SNUG_ARG_INTEGER, .integer = v};
}

/* Takes t's hold and gives the next one's. */
static snug_tensor *then(snug_tensor *t, const char *name, snug_argument *args, int n) {
    if (!t)
        return NULL;
    args[0] = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t};
    snug_tensor *out = py_call(name, args, n);
    py_drop(t);
    return out;
}

static snug_tensor *reverse(const plan *p, snug_tensor *t) {
    snug_argument axes[SNUG_MAX_RANK];
    int n = 0;
    for (int i = 0; i < p->n_axes; i++)
        if (p->axis[i].reversed)
            axes[n++] = integer(i);
    snug_argument args[2] = {{0}, {.kind = SNUG_ARG_LIST, .list = {axes, n}}};
    return n ? then(t, "tf.reverse", args, 2) : t;
}

/* From the last axis to the first, since each takes its axis away. */
static snug_tensor *gather(const plan *p, snug_tensor *t) {
    for (int i = p->n_axes - 1; i >= 0; i--) {
        if (!p->axis[i].gather)
            continue;
        snug_argument args[4] = {{0},
                                 {.kind = SNUG_ARG_TENSOR, .tensor = p->axis[i].gather},
                                 {.kind = SNUG_ARG_NONE},
                                 integer(i)};
        t = then(t, "tf.gather", args, 4);
    }
    return t;
}

static snug_tensor *reshape(const plan *p, snug_tensor *t) {
    if (!t)
        return NULL;
    const snug_type *is = snug_tensor_type(t);
    int same = is->rank == p->shape.rank;
    snug_argument dims[SNUG_MAX_RANK];
    for (int i = 0; i < p->shape.rank; i++) {
        same = same && is->dims[i] == p->shape.dims[i];
        dims[i] = integer(p->shape.dims[i]);
    }
    snug_argument args[2] = {{0}, {.kind = SNUG_ARG_LIST, .list = {dims, p->shape.rank}}};
    return same ? t : then(t, "tf.reshape", args, 2);
}

/* Small whole numbers that are there, such as shapes, stay numbers that are there: nothing is
 * recorded, and a trace can go on using them. NULL without an exception: not such a case. */
enum { MAX_KNOWN = 64 };
static snug_tensor *pick(const plan *p, snug_tensor *t) {
    int64_t have = 1, want = 1, from[MAX_KNOWN], to[MAX_KNOWN];
    const snug_dtype dtype = p->type->dtype;
    const size_t item = snug_dtype_bytes(dtype);
    for (int i = 0; i < p->n_axes; i++) {
        have *= p->type->dims[i];
        want *= p->axis[i].size;
        if (p->axis[i].gather)
            return NULL;
    }
    if ((dtype != SNUG_I32 && dtype != SNUG_I64) || have > MAX_KNOWN || want > MAX_KNOWN ||
        !snug_tensor_is_ready(t) || snug_tensor_is_traced(t))
        return NULL;
    if (py_read(t, from, (size_t)have * item) < 0)
        return NULL;
    for (int64_t k = 0; k < want; k++) {
        int64_t rest = k, at = 0, stride = 1;
        for (int i = p->n_axes - 1; i >= 0; i--) {
            const line *l = &p->axis[i];
            const int64_t c = l->reversed ? l->size - 1 - rest % l->size : rest % l->size;
            at += (l->start + c * l->step) * stride;
            stride *= p->type->dims[i];
            rest /= l->size;
        }
        memcpy((char *)to + (size_t)k * item, (char *)from + (size_t)at * item, item);
    }
    snug_type type = p->shape;
    type.dtype = dtype;
    snug_tensor *out;
    snug_error err;
    if (snug_tensor_copy(py.recorder, &type, to, &out, &err) != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    return out;
}

static int is_array_of_bools(PyObject *key) {
    Py_buffer b;
    if (!py_is_array(key) || PyObject_GetBuffer(key, &b, PyBUF_FULL_RO) < 0) {
        PyErr_Clear();
        return 0;
    }
    const int found = b.ndim > 0 && py_array_dtype(b.format, b.itemsize) == SNUG_BOOL;
    PyBuffer_Release(&b);
    return found;
}

static int is_mask(PyObject *key) {
    if (!py_is_tensor(key))
        return is_array_of_bools(key);
    const snug_type *type = PyObject_TypeCheck(key, py.tensor)
                                ? snug_tensor_type(((py_tensor *)key)->t)
                                : snug_variable_type(((py_variable *)key)->v);
    return type->dtype == SNUG_BOOL;
}

static PyObject *by_mask(PyObject *self, PyObject *key) {
    snug_tensor *drop[2] = {NULL, NULL}, *out = NULL;
    snug_tensor *t = py_enter() < 0 ? NULL : py_lend(self, &drop[0]);
    snug_tensor *mask = !t                  ? NULL
                        : py_is_tensor(key) ? py_lend(key, &drop[1])
                                            : (drop[1] = py_convert(key, SNUG_BOOL, PY_MUST));
    if (mask)
        out = py_call("tf.boolean_mask",
                      (snug_argument[]){{.kind = SNUG_ARG_TENSOR, .tensor = t},
                                        {.kind = SNUG_ARG_TENSOR, .tensor = mask}},
                      2);
    py_drop(drop[0]);
    py_drop(drop[1]);
    return out ? py_tensor_new(out) : NULL;
}

PyObject *py_index(PyObject *self, PyObject *key) {
    if (is_mask(key))
        return by_mask(self, key);
    if (py_enter() < 0)
        return NULL;
    snug_tensor *read = NULL, *t = py_lend(self, &read);
    PyObject *keys = PyTuple_Check(key) ? key : PyTuple_Pack(1, key);
    plan p = {.type = t ? snug_tensor_type(t) : NULL};
    snug_tensor *out = NULL;
    if (PyTuple_Check(key))
        Py_INCREF(keys);
    py_mark_site();
    py.indexing++; /* what follows from open extents may be an index */
    const int bad = !t || !keys || read_keys(&p, keys) < 0;
    if (!bad)
        out = pick(&p, t);
    py.indexing--;
    if (!bad) {
        if (!out && !PyErr_Occurred()) {
            out = cut(&p, t);
            out = out ? reshape(&p, gather(&p, reverse(&p, out))) : NULL;
        }
    }
    for (int i = 0; i < p.n_keep; i++)
        Py_DECREF(p.keep[i]);
    Py_XDECREF(keys);
    py_drop(read);
    return out ? py_tensor_new(out) : NULL;
}

/* index_of_variable(variable, key): a tensor that knows which part it is, for its assign. */
PyObject *py_index_of_variable(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *variable, *key;
    if (!PyArg_ParseTuple(args, "OO", &variable, &key))
        return NULL;
    PyObject *t = py_index(variable, key);
    if (t && PyObject_TypeCheck(t, py.tensor)) {
        Py_INCREF(args);
        ((py_tensor *)t)->part = args;
    }
    return t;
}
