/* py_datum.c: parts of elements as Python values, and back: arrays, numbers, tensors, texts.
 *
 * Arrays that a dataset borrows are let go of by whichever thread drops the last element of theirs;
 * such a thread has no interpreter, so it leaves them in a list that the next call empties. */
#include "py.h"

#include <stdatomic.h>
#include <string.h>

/* --- borrowed arrays -------------------------------------------------------------------------- */
typedef struct borrowed {
    Py_buffer buffer;
    struct borrowed *next;
} borrowed;

static _Atomic(borrowed *) waiting;

static void release_later(void *ctx) {
    borrowed *b = ctx;
    b->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &b->next, b)) {
    }
}

void py_release_waiting(void) {
    borrowed *b = atomic_load(&waiting) ? atomic_exchange(&waiting, NULL) : NULL;
    while (b) {
        borrowed *next = b->next;
        PyBuffer_Release(&b->buffer);
        PyMem_Free(b);
        b = next;
    }
}

/* --- values as parts -------------------------------------------------------------------------- */
static int failed(const snug_error *err) {
    py_raise(err);
    return -1;
}

static int array_type(const Py_buffer *b, int dtype, int *from, snug_type *type) {
    *from = py_array_dtype(b->format, b->itemsize);
    if (*from < 0 || (*from >= SNUG_N_DTYPES && dtype == PY_ANY) || b->ndim > SNUG_MAX_RANK) {
        py_error("UnimplementedError", "Snug has no tensors of elements '%s', %d axes", b->format,
                 b->ndim);
        return -1;
    }
    *type = (snug_type){.dtype = (snug_dtype)(dtype == PY_ANY ? *from : dtype), .rank = b->ndim};
    for (int i = 0; i < b->ndim; i++)
        type->dims[i] = b->shape[i];
    return 0;
}

/* 1: borrowed; 0: it has to be copied. */
static int lend_array(borrowed *b, const snug_type *type, snug_datum *out) {
    snug_error err;
    const snug_view view = {b->buffer.buf, (size_t)b->buffer.len, *type};
    if (snug_datum_borrow(py.engine, &view, release_later, b, out, &err) != SNUG_OK)
        return failed(&err);
    return 1;
}

static int of_array(PyObject *o, int dtype, int borrow, snug_datum *out) {
    borrowed *b = PyMem_Malloc(sizeof *b);
    snug_error err;
    snug_type type;
    int from, bad = -1;
    if (!b) {
        PyErr_NoMemory();
        return -1;
    }
    if (py_array_buffer(o, &b->buffer) < 0) {
        PyMem_Free(b);
        return -1;
    }
    if (array_type(&b->buffer, dtype, &from, &type) == 0) {
        if (borrow && from == (int)type.dtype && PyBuffer_IsContiguous(&b->buffer, 'C'))
            bad = lend_array(b, &type, out);
        else if (snug_datum_create(py.engine, &type, out, &err) != SNUG_OK)
            failed(&err);
        else
            bad = py_put_array(&b->buffer, from, type.dtype, out->data);
    }
    if (bad == 1)
        return 0;
    PyBuffer_Release(&b->buffer);
    PyMem_Free(b);
    return bad;
}

static int of_tensor(snug_tensor *t, int dtype, snug_datum *out) {
    snug_error err;
    const snug_type *type = snug_tensor_type(t);
    if (dtype != PY_ANY && dtype != (int)type->dtype) {
        PyErr_Format(PyExc_TypeError, "a tensor of %s where %s is expected",
                     py_dtype_word(type->dtype),
                     dtype == PY_TEXT ? "string" : py_dtype_word((snug_dtype)dtype));
        return -1;
    }
    size_t bytes;
    if (snug_type_bytes(type, &bytes, &err) != SNUG_OK)
        return failed(&err);
    if (py_settle(t, bytes) < 0)
        return -1;
    if (snug_datum_create(py.engine, type, out, &err) != SNUG_OK)
        return failed(&err);
    if (py_read(t, out->data, out->bytes) == 0)
        return 0;
    snug_datum_drop(out);
    return -1;
}

/* --- texts ------------------------------------------------------------------------------------ */
static int put_text(PyObject *o, snug_text *out) {
    Py_ssize_t n = 0;
    if (PyUnicode_Check(o)) {
        out->data = PyUnicode_AsUTF8AndSize(o, &n);
    } else if (PyBytes_Check(o)) {
        char *data;
        out->data = PyBytes_AsStringAndSize(o, &data, &n) < 0 ? NULL : data;
    } else {
        PyErr_Format(PyExc_TypeError, "%R is no text", o);
        return -1;
    }
    out->bytes = (size_t)n;
    return out->data ? 0 : -1;
}

static PyObject *string_class(void) {
    if (!py.string_class) {
        PyObject *module = PyImport_ImportModule("snug._strings");
        py.string_class = module ? PyObject_GetAttrString(module, "StringTensor") : NULL;
        Py_XDECREF(module);
    }
    return py.string_class;
}

/* [texts] and the dims of any value of texts, by Python: (list, dims). */
static int of_texts(PyObject *o, snug_datum *out) {
    snug_error err;
    snug_text one, *texts = NULL;
    snug_type shape = {.dtype = SNUG_OPAQUE};
    if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        if (put_text(o, &one) < 0)
            return -1;
        return snug_datum_texts(py.engine, &shape, &one, out, &err) == SNUG_OK ? 0 : failed(&err);
    }
    PyObject *class = string_class();
    PyObject *flat = class ? PyObject_CallMethod(class, "_flat", "O", o) : NULL;
    PyObject *list = flat ? PyTuple_GetItem(flat, 0) : NULL;
    int bad = !list || py_dims(PyTuple_GetItem(flat, 1), &shape) < 0;
    const Py_ssize_t n = bad ? 0 : PyList_Size(list);
    if (!bad && !(texts = PyMem_Calloc((size_t)n + 1, sizeof *texts))) {
        PyErr_NoMemory();
        bad = 1;
    }
    for (Py_ssize_t i = 0; i < n && !bad; i++)
        bad = put_text(PyList_GetItem(list, i), &texts[i]) < 0;
    if (!bad && snug_datum_texts(py.engine, &shape, texts, out, &err) != SNUG_OK)
        bad = failed(&err) < 0;
    PyMem_Free(texts);
    Py_XDECREF(flat);
    return bad ? -1 : 0;
}

/* -1 with an exception: the class of such tensors cannot be had. */
static int is_text(PyObject *o) {
    PyObject *class = string_class();
    if (!class)
        return -1;
    for (int depth = 0; depth < 16 && py_is_list(o); depth++) {
        if (py_list_size(o) == 0)
            return 0;
        o = py_list_item(o, 0);
    }
    return PyUnicode_Check(o) || PyBytes_Check(o) || PyObject_TypeCheck(o, (PyTypeObject *)class);
}

/* Anything else, through what convert_to_tensor makes of it; arrays of objects may be texts. */
static int of_other(PyObject *o, int dtype, snug_datum *out) {
    PyObject *class = string_class();
    if (!class)
        return -1;
    if (PyObject_HasAttr(o, py.str_array) && !py_is_tensor(o)) {
        PyObject *text = PyObject_CallMethod(class, "_is_text", "O", o);
        const int yes = text ? PyObject_IsTrue(text) : -1;
        Py_XDECREF(text);
        if (yes)
            return yes < 0 ? -1 : of_texts(o, out);
    }
    snug_tensor *t = py_convert(o, dtype, dtype == PY_ANY ? PY_FOLLOW : PY_MUST);
    const int bad = !t || of_tensor(t, dtype, out) < 0;
    py_drop(t);
    return bad ? -1 : 0;
}

static int is_object_array(PyObject *o) {
    Py_buffer b;
    if (py_array_buffer(o, &b) < 0) {
        PyErr_Clear();
        return 1;
    }
    const int objects =
        b.format && (strchr(b.format, 'O') || strchr(b.format, 's') || strchr(b.format, 'w'));
    PyBuffer_Release(&b);
    return objects;
}

static int of_number(PyObject *o, int dtype, snug_datum *out) {
    snug_error err;
    int64_t bytes;
    const snug_type type = {.dtype = (snug_dtype)dtype};
    PyObject *whole = PyFloat_Check(o) && py_is_integer(type.dtype) ? PyNumber_Long(o) : NULL;
    const int bad = PyErr_Occurred() || py_put_number(whole ? whole : o, type.dtype, &bytes) < 0;
    Py_XDECREF(whole);
    if (bad)
        return -1;
    if (snug_datum_create(py.engine, &type, out, &err) != SNUG_OK)
        return failed(&err);
    memcpy(out->data, &bytes, out->bytes);
    return 0;
}

int py_datum(PyObject *o, int dtype, int borrow, snug_datum *out) {
    if (py_enter() < 0)
        return -1;
    const int text = dtype == PY_TEXT ? 1 : dtype == PY_ANY ? is_text(o) : 0;
    if (text != 0)
        return text < 0 ? -1 : of_texts(o, out);
    if (py_is_tensor(o)) {
        snug_tensor *read = NULL, *t = py_lend(o, &read);
        const int bad = !t || of_tensor(t, dtype, out) < 0;
        py_drop(read);
        return bad ? -1 : 0;
    }
    if (dtype != PY_ANY && py_is_number(o))
        return of_number(o, dtype, out);
    if (py_is_array(o) && !is_object_array(o))
        return of_array(o, dtype, borrow, out);
    return of_other(o, dtype, out);
}

/* --- parts as values -------------------------------------------------------------------------- */
static void release_bytes(void *keep) {
    snug_datum d = {.keep = keep};
    snug_datum_drop(&d);
}

/* Bytes objects of a text part, in a list. */
static PyObject *bytes_of(const snug_datum *part) {
    int64_t n = 1;
    for (int i = 0; i < part->type.rank; i++)
        n *= part->type.dims[i];
    PyObject *list = PyList_New((Py_ssize_t)n);
    const snug_text *texts = part->data;
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *b = PyBytes_FromStringAndSize(texts[i].data, (Py_ssize_t)texts[i].bytes);
        if (!b || PyList_SetItem(list, (Py_ssize_t)i, b) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dims_of(const snug_type *type) {
    PyObject *dims = type->rank < 0 ? Py_NewRef(Py_None) : PyTuple_New(type->rank);
    for (int i = 0; dims && i < type->rank; i++) {
        PyObject *n = type->dims[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(type->dims[i]);
        if (!n || PyTuple_SetItem(dims, i, n) < 0)
            Py_CLEAR(dims);
    }
    return dims;
}

PyObject *py_shape_of(const snug_type *type) {
    PyObject *dims = dims_of(type);
    PyObject *shape = dims ? PyObject_CallFunctionObjArgs(py.shape_class, dims, NULL) : NULL;
    Py_XDECREF(dims);
    return shape;
}

static PyObject *text_tensor(const snug_datum *part, const char *how) {
    PyObject *class = string_class(), *list = class ? bytes_of(part) : NULL;
    PyObject *dims = list ? dims_of(&part->type) : NULL;
    PyObject *made = dims ? PyObject_CallMethod(class, how, "OO", list, dims) : NULL;
    Py_XDECREF(dims);
    Py_XDECREF(list);
    return made;
}

PyObject *py_part_tensor(snug_datum *part) {
    snug_error err;
    snug_tensor *t;
    if (part->is_text) {
        PyObject *made = text_tensor(part, "_made");
        snug_datum_drop(part);
        return made;
    }
    if (snug_tensor_borrow(py.recorder, &part->type, part->data, part->keep ? release_bytes : NULL,
                           part->keep, &t, &err) != SNUG_OK) {
        snug_datum_drop(part);
        return py_raise(&err);
    }
    return py_tensor_new(t);
}

PyObject *py_part_numpy(snug_datum *part) {
    PyObject *made = NULL;
    if (part->is_text) {
        made = text_tensor(part, "_values");
    } else {
        PyObject *array = py_empty_array(&part->type);
        Py_buffer b;
        if (array && PyObject_GetBuffer(array, &b, PyBUF_WRITABLE | PyBUF_ND) == 0) {
            memcpy(b.buf, part->data, (size_t)b.len);
            PyBuffer_Release(&b);
            made = py_filled_array(Py_NewRef(array), &part->type);
        }
        Py_XDECREF(array);
    }
    snug_datum_drop(part);
    return made;
}

/* --- specs ------------------------------------------------------------------------------------ */
PyObject *py_spec_list(const snug_spec *spec) {
    PyObject *list = PyList_New(spec->n);
    for (int i = 0; list && i < spec->n; i++) {
        PyObject *dims = dims_of(&spec->type[i]);
        PyObject *dtype =
            spec->is_text[i] ? Py_NewRef(py.string) : py_dtype_object(spec->type[i].dtype);
        PyObject *pair = dims && dtype ? PyTuple_Pack(2, dtype, dims) : NULL;
        Py_XDECREF(dims);
        Py_XDECREF(dtype);
        if (!pair || PyList_SetItem(list, i, pair) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static int shape_of(PyObject *dims, snug_type *type) {
    type->rank = -1;
    if (dims == Py_None)
        return 0;
    const Py_ssize_t n = PyTuple_Size(dims);
    if (n < 0 || n > SNUG_MAX_RANK) {
        if (n > 0)
            py_error("UnimplementedError", "Snug has tensors of at most %d axes", SNUG_MAX_RANK);
        return -1;
    }
    type->rank = (int)n;
    for (int i = 0; i < type->rank; i++) {
        PyObject *d = PyTuple_GetItem(dims, i);
        type->dims[i] = d == Py_None ? -1 : PyLong_AsLongLong(d);
    }
    return PyErr_Occurred() ? -1 : 0;
}

int py_spec(PyObject *list, snug_spec *out) {
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0 || n > SNUG_MAX_PARTS) {
        if (n > 0)
            PyErr_Format(PyExc_ValueError, "elements of %zd parts; at most %d", n, SNUG_MAX_PARTS);
        return -1;
    }
    out->n = (int)n;
    for (int i = 0; i < out->n; i++) {
        PyObject *pair = PyList_GetItem(list, i), *dtype = PyTuple_GetItem(pair, 0);
        snug_type *type = &out->type[i];
        out->is_text[i] = dtype == py.string;
        type->dtype = SNUG_OPAQUE;
        if ((!out->is_text[i] && py_dtype(dtype, &type->dtype) < 0) ||
            shape_of(PyTuple_GetItem(pair, 1), type) < 0)
            return -1;
    }
    return 0;
}
