/* py_list.c: nested lists as tensors. One walk finds shape and dtype, a second writes each leaf to
 * its place, arrays piece by piece: nothing is stacked first. Where a leaf is a tensor the parts
 * are converted and stacked by an operation, since their bytes may not be there yet.
 *
 * TensorFlow's rules for the dtype: floats float32, integers int32 (int64 where one needs it),
 * NumPy's float64 stays, and what begins with a bool must be all bool. */
#include "py.h"

#include <string.h>

typedef struct {
    snug_type type; /* shape so far */
    int depth;      /* of lists */
    int n_bool, n_float, n_int, n_tensors, n_arrays, first_is_bool, wide, seen;
    int array_dtype;  /* of the first array, or -1 */
    int scalar_float; /* of the first NumPy float, or -1 */
    snug_dtype tensor_dtype;
} survey;

static int ragged(void) {
    PyErr_SetString(PyExc_ValueError, "Can't convert non-rectangular Python sequence to Tensor.");
    return -1;
}

int py_is_list(PyObject *o) {
    return PyList_Check(o) || PyTuple_Check(o);
}

Py_ssize_t py_list_size(PyObject *o) {
    return PyList_Check(o) ? PyList_Size(o) : PyTuple_Size(o);
}

PyObject *py_list_item(PyObject *o, Py_ssize_t i) {
    return PyList_Check(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
}

/* Held: what an item's own code does to the list must not end the item. */
static PyObject *item_of(PyObject *o, Py_ssize_t i) {
    PyObject *item = py_list_item(o, i);
    Py_XINCREF(item);
    return item;
}

/* The dim at this axis must be n, or becomes n where nobody was so deep before. */
static int same_dim(survey *s, int axis, int64_t n, int first) {
    if (axis >= SNUG_MAX_RANK) {
        py_error("UnimplementedError", "Snug has tensors of at most %d axes", SNUG_MAX_RANK);
        return -1;
    }
    if (!first)
        return axis < s->type.rank && s->type.dims[axis] == n ? 0 : ragged();
    s->type.dims[axis] = n;
    s->type.rank = axis + 1;
    return 0;
}

static int see_number(survey *s, PyObject *o) {
    if (!s->seen)
        s->first_is_bool = PyBool_Check(o);
    if (PyBool_Check(o)) {
        s->n_bool++;
    } else if (PyFloat_Check(o)) {
        s->n_float++;
    } else {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
        s->wide |= overflow || v != (int32_t)v;
        s->n_int++;
    }
    return 0;
}

static int see_array(survey *s, PyObject *o, int axis) {
    Py_buffer b;
    if (py_array_buffer(o, &b) < 0)
        return -1;
    int d = py_array_dtype(b.format, b.itemsize);
    int bad = 0, first = !s->seen && axis >= s->type.rank; /* no empty list was as deep before */
    for (int i = 0; i < b.ndim && !bad; i++)
        bad = same_dim(s, axis + i, b.shape[i], first) < 0;
    if (!bad && axis + b.ndim != s->type.rank)
        bad = ragged() < 0;
    if (!bad && (d < 0 || d >= SNUG_N_DTYPES)) {
        py_error("UnimplementedError", "Snug has no tensors of elements '%s'", b.format);
        bad = 1;
    }
    if (b.ndim == 0 && d == SNUG_BOOL)
        s->n_bool++, s->first_is_bool |= first;
    else if (b.ndim == 0 && d >= 0 && d < SNUG_N_DTYPES && py_is_float((snug_dtype)d))
        s->n_float++, s->scalar_float = s->scalar_float < 0 ? d : s->scalar_float;
    else if (b.ndim == 0)
        s->n_int++;
    else
        s->n_arrays++, s->array_dtype = s->array_dtype < 0 ? d : s->array_dtype;
    PyBuffer_Release(&b);
    return bad ? -1 : 0;
}

static int see_tensor(survey *s, PyObject *o) {
    snug_dtype d = PyObject_TypeCheck(o, py.tensor)
                       ? snug_tensor_type(((py_tensor *)o)->t)->dtype
                       : snug_variable_type(((py_variable *)o)->v)->dtype;
    if (!s->n_tensors++)
        s->tensor_dtype = d;
    return 0;
}

static int see(survey *s, PyObject *o, int axis);

static int see_list(survey *s, PyObject *o, int axis) {
    const Py_ssize_t n = py_list_size(o);
    if (same_dim(s, axis, n, !s->seen && axis >= s->type.rank) < 0)
        return -1;
    if (Py_EnterRecursiveCall(" in a nested list"))
        return -1;
    int bad = 0;
    for (Py_ssize_t i = 0; i < n && !bad && !(s->n_tensors && axis > 0); i++) {
        PyObject *item = item_of(o, i);
        bad = !item || see(s, item, axis + 1) < 0;
        Py_XDECREF(item);
    }
    Py_LeaveRecursiveCall();
    return bad ? -1 : 0;
}

static int see(survey *s, PyObject *o, int axis) {
    int result;
    if (py_is_list(o))
        return see_list(s, o, axis);
    if (py_is_tensor(o)) {
        result = see_tensor(s, o);
    } else if (py_is_number(o)) {
        if (s->type.rank != axis && !s->n_tensors) /* an empty list before it counts, too */
            return ragged();
        result = see_number(s, o);
    } else if (py_is_array(o)) {
        result = see_array(s, o, axis);
    } else if (PyObject_HasAttr(o, py.str_array)) {
        s->n_tensors += s->n_tensors ? 0 : 1; /* converted by itself, then stacked */
        s->tensor_dtype = SNUG_OPAQUE;
        result = 0;
    } else {
        PyErr_Format(PyExc_ValueError,
                     "Attempt to convert a value (%R) with an unsupported type (%R) to a Tensor.",
                     o, Py_TYPE(o));
        result = -1;
    }
    s->seen = 1;
    return result;
}

static int choose_dtype(const survey *s, PyObject *o, int dtype, py_wish wish, snug_dtype *out) {
    int is_float = s->n_float || (s->n_arrays && py_is_float((snug_dtype)s->array_dtype));
    int loses = dtype != PY_ANY && !py_is_float((snug_dtype)dtype) && s->n_float && !s->n_arrays;
    if (loses && wish == PY_MUST) {
        PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", o,
                     py_dtype_word((snug_dtype)dtype));
        return -1;
    }
    if (dtype != PY_ANY && !loses) {
        *out = (snug_dtype)dtype;
        return 0;
    }
    if (s->first_is_bool && (s->n_int || s->n_float)) {
        PyErr_SetString(PyExc_ValueError,
                        "Can't convert Python sequence with mixed types to Tensor.");
        return -1;
    }
    if (s->n_arrays)
        *out = (snug_dtype)s->array_dtype;
    else if (is_float)
        *out = s->scalar_float >= 0 ? (snug_dtype)s->scalar_float : SNUG_F32;
    else if (s->n_int)
        *out = s->wide ? SNUG_I64 : SNUG_I32;
    else
        *out = s->n_bool ? SNUG_BOOL : SNUG_F32;
    return 0;
}

/* --- the second walk -------------------------------------------------------------------------- */
/* What the first walk has seen must still be there: code of an item (a __buffer__, an attribute)
 * may have changed a list since. Nothing is written that the shape has no place for. */
typedef struct {
    const snug_type *type;
    char *to;
} filling;

static int changed(void) {
    PyErr_SetString(PyExc_ValueError, "The list changed while it was read.");
    return -1;
}

static int is_place_of(const filling *f, const Py_buffer *b, int axis) {
    int same = b->ndim == f->type->rank - axis;
    for (int i = 0; same && i < b->ndim; i++)
        same = b->shape[i] == f->type->dims[axis + i];
    return same && py_array_dtype(b->format, b->itemsize) >= 0;
}

static int put_leaf(filling *f, PyObject *o, int axis) {
    const snug_dtype dtype = f->type->dtype;
    if (py_is_number(o)) {
        if (axis != f->type->rank)
            return changed();
        if (py_put_number(o, dtype, f->to) < 0)
            return -1;
        f->to += snug_dtype_bytes(dtype);
        return 0;
    }
    Py_buffer b;
    if (py_array_buffer(o, &b) < 0)
        return -1;
    const int fits = is_place_of(f, &b, axis);
    if (fits) {
        py_put_array(&b, py_array_dtype(b.format, b.itemsize), dtype, f->to);
        f->to += (size_t)(b.len / b.itemsize) * snug_dtype_bytes(dtype);
    }
    PyBuffer_Release(&b);
    return fits ? 0 : changed();
}

static int put_list(filling *f, PyObject *o, int axis) {
    if (!py_is_list(o))
        return put_leaf(f, o, axis);
    const Py_ssize_t n = py_list_size(o);
    if (axis >= f->type->rank || n != f->type->dims[axis])
        return changed();
    int bad = 0;
    for (Py_ssize_t i = 0; i < n && !bad; i++) {
        PyObject *item = item_of(o, i);
        bad = !item || put_list(f, item, axis + 1) < 0;
        Py_XDECREF(item);
    }
    return bad ? -1 : 0;
}

/* Each part by itself, then one stack of them. */
static snug_tensor *stack_parts(PyObject *o, int dtype, py_wish wish) {
    int n = py_list_size(o) > INT32_MAX ? INT32_MAX : (int)py_list_size(o), done = 0;
    snug_argument *parts = PyMem_Calloc((size_t)n + 1, sizeof *parts);
    snug_tensor *made = NULL;
    if (!parts) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; done < n; done++) {
        PyObject *item = item_of(o, done);
        snug_tensor *t = item ? py_convert(item, dtype, wish) : NULL;
        Py_XDECREF(item);
        if (!t)
            break;
        parts[done] = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t};
    }
    if (done == n)
        made = py_call("tf.stack", &(snug_argument){.kind = SNUG_ARG_LIST, .list = {parts, n}}, 1);
    for (int i = 0; i < done; i++)
        py_drop(parts[i].tensor);
    PyMem_Free(parts);
    return made;
}

snug_tensor *py_convert_list(PyObject *o, int dtype, py_wish wish) {
    survey s = {.array_dtype = -1, .scalar_float = -1};
    snug_error err;
    snug_tensor *t = NULL;
    void *data;
    if (see(&s, o, 0) < 0)
        return NULL;
    if (s.n_tensors) {
        int d = dtype != PY_ANY                 ? dtype
                : s.tensor_dtype == SNUG_OPAQUE ? PY_ANY
                                                : (int)s.tensor_dtype;
        return stack_parts(o, d, dtype == PY_ANY ? PY_FOLLOW : wish);
    }
    if (choose_dtype(&s, o, dtype, wish, &s.type.dtype) < 0)
        return NULL;
    if (snug_tensor_fresh(py.recorder, &s.type, &t, &data, &err) != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    filling f = {&s.type, data};
    if (put_list(&f, o, 0) < 0) {
        py_drop(t);
        return NULL;
    }
    return t;
}
