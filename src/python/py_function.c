/* py_function.c: one Python callable per row of the function table. Its signature is parsed once,
 * when somebody first asks for the name; a call turns its arguments into snug_argument and back.
 * There is no Python in between.
 *
 * Whole lists of numbers go to the library as they are, which knows what dtype its other operands
 * have; arrays and lists with arrays in them become tensors here. */
#include "py.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ARGS = 24, MAX_OUT = 256 };

typedef struct {
    char kind; /* T O W M Q V I N B S D, of function.h */
    char required;
    PyObject *name;
} parameter;

typedef struct {
    PyObject_HEAD int row;
    int n;
    int rest;    /* the place that takes all further ones in order, or -1 */
    int to_list; /* several results: always a list */
    int draws;   /* random numbers, others at each call */
    PyMethodDef method;
    parameter of[MAX_ARGS];
} bound;

/* Storage of one call: lists of arguments, and tensors to let go of. */
typedef struct {
    snug_argument args[MAX_ARGS];
    snug_argument few[64];
    int n_few;
    void *more[64]; /* lists that did not fit */
    int n_more;
    snug_tensor *to_drop[64];
    int n_drop;
    PyObject *rest; /* the further arguments, as a list */
    PyObject *kept; /* a list of tuples: what arguments that are lists have lent until the end */
    int dtype;      /* of the first tensor, or PY_ANY */
    int in_program; /* slots are arguments too */
} call;

/* --- rows by name ----------------------------------------------------------------------------- */
/* Names in the code are literals: their addresses find the row. */
static int row_of(const char *name) {
    static struct {
        const char *name;
        int row;
    } known[256];
    size_t at = ((uintptr_t)name >> 2) % 256;
    for (; known[at].name && known[at].name != name; at = (at + 1) % 256) {
    }
    if (!known[at].name) {
        int row = -1;
        if (!snug_function_find(name, &row)) {
            py_error("UnimplementedError", "%s is not in Snug", name);
            return -1;
        }
        known[at].row = row;
        known[at].name = name;
    }
    return known[at].row;
}

/* Each result is looked at when it is computed (tf.debugging.enable_check_numerics); of those that
 * are no floats there is nothing to see. */
static snug_status checked(snug_tensor **out, int n, snug_error *err) {
    const int row = row_of("tf.debugging.check_numerics");
    snug_status status = SNUG_OK;
    for (int i = 0; i < n && status == SNUG_OK; i++) {
        const snug_dtype dtype = snug_tensor_type(out[i])->dtype;
        if (dtype != SNUG_F32 && dtype != SNUG_F64)
            continue;
        const snug_argument arg = {.kind = SNUG_ARG_TENSOR, .tensor = out[i]};
        snug_tensor *made;
        int n_made = 1;
        status = snug_function_call(py.recorder, row, &arg, 1, &made, 1, &n_made, err);
        if (status == SNUG_OK) {
            py_drop(out[i]);
            out[i] = made;
        }
    }
    for (int i = 0; i < n && status != SNUG_OK; i++)
        py_drop(out[i]);
    return status;
}

static snug_status call_table(int row, const snug_argument *args, int n, snug_tensor **out, int max,
                              int *n_out, snug_error *err) {
    const snug_status status = snug_function_call(py.recorder, row, args, n, out, max, n_out, err);
    return status == SNUG_OK && py.checks ? checked(out, *n_out, err) : status;
}

snug_tensor *py_call(const char *name, const snug_argument *args, int n) {
    snug_tensor *out;
    snug_error err;
    int n_out = 1, row = row_of(name);
    if (row < 0)
        return NULL;
    py_mark_site();
    if (call_table(row, args, n, &out, 1, &n_out, &err) != SNUG_OK) {
        py_raise(&err);
        return NULL;
    }
    return out;
}

/* --- arguments -------------------------------------------------------------------------------- */
static int keep(call *c, snug_tensor *t) {
    if (!t)
        return -1;
    if (c->n_drop == 64) {
        py_drop(t);
        PyErr_SetString(PyExc_ValueError, "more than 64 values to convert in one call");
        return -1;
    }
    c->to_drop[c->n_drop++] = t;
    return 0;
}

static snug_argument *space(call *c, Py_ssize_t n) {
    if (n <= 64 - c->n_few) {
        c->n_few += (int)n;
        return c->few + c->n_few - n;
    }
    snug_argument *list = c->n_more < 64 ? PyMem_Calloc((size_t)n, sizeof *list) : NULL;
    if (!list)
        PyErr_NoMemory();
    else
        c->more[c->n_more++] = list;
    return list;
}

static int as_tensor(call *c, PyObject *o, int dtype, snug_argument *out) {
    snug_tensor *read = NULL, *t;
    if (py_is_tensor(o)) {
        t = py_lend(o, &read);
        if (!t || (read && keep(c, read) < 0))
            return -1;
    } else {
        t = py_convert(o, dtype, PY_FOLLOW);
        if (keep(c, t) < 0)
            return -1;
    }
    *out = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t};
    return 0;
}

static int as_number(PyObject *o, snug_argument *out) {
    if (PyFloat_Check(o)) {
        *out = (snug_argument){.kind = SNUG_ARG_REAL, .real = PyFloat_AsDouble(o)};
        return 0;
    }
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
        *out = (snug_argument){.kind = SNUG_ARG_REAL, .real = PyFloat_AsDouble(o)};
    else
        *out = (snug_argument){.kind = PyBool_Check(o) ? SNUG_ARG_BOOL : SNUG_ARG_INTEGER,
                               .integer = v};
    return PyErr_Occurred() ? -1 : 0;
}

static int is_slot(PyObject *o) {
    return py.slot && PyObject_TypeCheck(o, (PyTypeObject *)py.slot);
}

/* 1: it is a slot of the program that is written down; -1 with an exception. */
static int as_slot(const call *c, PyObject *o, snug_argument *out) {
    if (!c->in_program || !is_slot(o))
        return 0;
    *out = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = py_slot_number(o)};
    return out->integer < 0 ? -1 : 1;
}

/* Whether a list holds Python numbers, tensors and such lists alone, and is not long. */
static int is_plain(PyObject *o, int depth) {
    Py_ssize_t n = py_list_size(o);
    if (n > 256 || depth > SNUG_MAX_RANK)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = py_list_item(o, i);
        if (py_is_list(item)
                ? !is_plain(item, depth + 1)
                : !py_is_number(item) && !py_is_tensor(item) && !is_slot(item) && item != Py_None)
            return 0;
    }
    return 1;
}

/* Whether the list has numbers alone, which are copied: nothing of it is lent to the call, and no
 * code of an item's own is run, which might change the list. */
static int is_quiet(PyObject *list) {
    int quiet = 1;
    for (Py_ssize_t i = 0; quiet && i < PyList_Size(list); i++) {
        PyObject *item = PyList_GetItem(list, i);
        quiet = py_is_number(item) || item == Py_None;
    }
    return quiet;
}

/* The items as they are now, held until the call ends: arguments lend tensors and texts of them.
 * Lent itself. */
static PyObject *keep_items(call *c, PyObject *o) {
    if (!c->kept && !(c->kept = PyList_New(0)))
        return NULL;
    PyObject *items = PySequence_Tuple(o);
    const int bad = !items || PyList_Append(c->kept, items) < 0;
    Py_XDECREF(items);
    return bad ? NULL : items;
}

static int as_list(call *c, PyObject *o, char kind, snug_argument *out);

/* A tensor where numbers are wanted is passed on: the library reads it. */
static int as_setting(call *c, PyObject *o, char kind, snug_argument *out) {
    const int slot = as_slot(c, o, out);
    if (slot)
        return slot < 0 ? -1 : 0;
    if (py_is_tensor(o))
        return as_tensor(c, o, PY_ANY, out);
    if (o == Py_None) {
        out->kind = SNUG_ARG_NONE;
        return 0;
    }
    if (py_is_number(o))
        return as_number(o, out);
    if (PyUnicode_Check(o)) {
        out->kind = SNUG_ARG_TEXT;
        out->text = PyUnicode_AsUTF8AndSize(o, NULL);
        return out->text ? 0 : -1;
    }
    if (py_is_list(o))
        return as_list(c, o, kind, out);
    if (kind == 'I' && PySequence_Check(o) && !py_is_array(o)) { /* a TensorShape */
        PyObject *items = keep_items(c, o);
        return items ? as_list(c, items, kind, out) : -1;
    }
    if (kind == 'I' && PyIndex_Check(o) && !PySequence_Check(o)) {
        PyObject *n = PyNumber_Index(o);
        int bad = !n || as_number(n, out) < 0;
        Py_XDECREF(n);
        return bad ? -1 : 0;
    }
    if ((kind == 'N' || kind == 'B') && PyNumber_Check(o) && !PySequence_Check(o)) {
        PyObject *n = PyNumber_Float(o);
        int bad = !n || as_number(n, out) < 0;
        Py_XDECREF(n);
        return bad ? -1 : 0;
    }
    return as_tensor(c, o, PY_ANY, out);
}

static int as_operand(call *c, PyObject *o, int dtype, snug_argument *out) {
    const int slot = as_slot(c, o, out);
    if (slot)
        return slot < 0 ? -1 : 0;
    if (py_is_tensor(o))
        return as_tensor(c, o, dtype, out);
    if (py_is_number(o))
        return as_number(o, out);
    if (py_is_list(o) && is_plain(o, 0) && py_list_size(o) > 0)
        return as_list(c, o, 'T', out);
    return as_tensor(c, o, dtype, out);
}

static int as_list(call *c, PyObject *o, char kind, snug_argument *out) {
    if (PyList_Check(o) && !is_quiet(o) && !(o = keep_items(c, o)))
        return -1;
    Py_ssize_t n = py_list_size(o);
    snug_argument *items = n < 0 ? NULL : space(c, n);
    if (!items)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = py_list_item(o, i);
        int bad = kind == 'T' || kind == 'V' ? as_operand(c, item, c->dtype, &items[i])
                                             : as_setting(c, item, kind, &items[i]);
        if (bad < 0)
            return -1;
    }
    *out = (snug_argument){.kind = SNUG_ARG_LIST, .list = {items, (int)n}};
    return 0;
}

static int as_several(call *c, PyObject *o, snug_argument *out) {
    if (py_is_list(o))
        return as_list(c, o, 'V', out);
    if (py_is_tensor(o) || is_slot(o) || py_is_array(o) || py_is_number(o))
        return as_operand(c, o, PY_ANY, out);
    PyObject *items = keep_items(c, o); /* a dict's values, a generator */
    return items ? as_list(c, items, 'V', out) : -1;
}

static int take(call *c, const bound *f, int i, PyObject *o) {
    snug_argument *out = &c->args[i];
    const char kind = f->of[i].kind;
    if (o == Py_None) {
        out->kind = SNUG_ARG_NONE;
        if (f->of[i].required && strchr("TOWMQV", kind)) {
            PyErr_Format(PyExc_ValueError,
                         "Attempt to convert a value (None) with an unsupported type (%R) to a "
                         "Tensor.",
                         Py_TYPE(o));
            return -1;
        }
        return 0;
    }
    if (kind == 'T')
        return as_operand(c, o, c->dtype, out);
    if (kind == 'O' || kind == 'W' || kind == 'M' || kind == 'Q')
        return as_operand(c, o, PY_ANY, out);
    if (kind == 'V')
        return as_several(c, o, out);
    if (kind == 'D') {
        out->kind = SNUG_ARG_DTYPE;
        return py_dtype(o, &out->dtype);
    }
    return as_setting(c, o, kind, out);
}

/* --- a call ----------------------------------------------------------------------------------- */
static int place_of(const bound *f, PyObject *name) {
    for (int i = 0; i < f->n; i++)
        if (f->of[i].name == name || PyUnicode_Compare(f->of[i].name, name) == 0)
            return i;
    return -1;
}

static const char *word_of(const bound *f) {
    return f->method.ml_name;
}

/* The objects in the signature's order; how many places are used, or -1. */
static int arrange(const bound *f, PyObject *const *args, Py_ssize_t n, PyObject *names,
                   PyObject **in_order) {
    if (n > f->n && f->rest < 0) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments but %zd were given", word_of(f),
                     f->n, n);
        return -1;
    }
    const int in_place = f->rest >= 0 && n > f->rest ? f->rest : (int)n;
    int used = in_place < (int)n ? in_place + 1 : in_place;
    for (Py_ssize_t i = 0; i < in_place; i++)
        in_order[i] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_Size(names); k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        int i = place_of(f, name);
        if (i < 0 && PyUnicode_CompareWithASCIIString(name, "name") == 0)
            continue;
        if (i < 0 || in_order[i]) {
            PyErr_Format(PyExc_TypeError,
                         i < 0 ? "%s() got an unexpected keyword argument '%U'"
                               : "%s() got multiple values for argument '%U'",
                         word_of(f), name);
            return -1;
        }
        in_order[i] = args[n + k];
        used = i >= used ? i + 1 : used;
    }
    for (int i = 0; i < f->n; i++)
        if (f->of[i].required && !in_order[i] && i != f->rest) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%U'", word_of(f),
                         f->of[i].name);
            return -1;
        }
    return used;
}

/* The dtype that numbers and arrays beside it take: that of the first tensor. */
static int first_dtype(const bound *f, PyObject *const *in_order, int used) {
    for (int i = 0; i < used; i++) {
        PyObject *o = in_order[i];
        if (!o || (f->of[i].kind != 'T' && f->of[i].kind != 'V'))
            continue;
        if (py_is_list(o))
            for (Py_ssize_t k = 0; k < py_list_size(o); k++) {
                PyObject *item = py_list_item(o, k);
                if (py_is_tensor(item) || is_slot(item)) {
                    o = item;
                    break;
                }
            }
        if (PyObject_TypeCheck(o, py.tensor))
            return (int)snug_tensor_type(((py_tensor *)o)->t)->dtype;
        if (PyObject_TypeCheck(o, py.variable))
            return (int)snug_variable_type(((py_variable *)o)->v)->dtype;
        if (is_slot(o))
            return py_slot_dtype(o);
    }
    return PY_ANY;
}

static PyObject *give(const bound *f, snug_tensor **out, int n) {
    if (n == 1 && !f->to_list)
        return py_tensor_new(out[0]);
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *t = list ? py_tensor_new(out[i]) : NULL;
        if (!list)
            py_drop(out[i]);
        else if (!t || PyList_SetItem(list, i, t) < 0)
            PyErr_Occurred();
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

/* The further arguments; a single list of them is meant itself. */
static PyObject *list_of(PyObject *const *args, Py_ssize_t n) {
    if (n == 1 && py_is_list(args[0])) {
        Py_INCREF(args[0]);
        return args[0];
    }
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        Py_INCREF(args[i]);
        PyList_SetItem(list, i, args[i]);
    }
    return list;
}

static void clear(call *c) {
    Py_XDECREF(c->rest);
    Py_XDECREF(c->kept);
    for (int i = 0; i < c->n_drop; i++)
        py_drop(c->to_drop[i]);
    for (int i = 0; i < c->n_more; i++)
        PyMem_Free(c->more[i]);
}

/* --- symbols ---------------------------------------------------------------------------------- */
/* The first argument that takes the call upon itself: it has a method __snug_function__(function,
 * args, kwargs). Looked for only where a conversion failed, so tensors pay nothing for it. */
static PyObject *method_of_symbol(PyObject *o, int depth) {
    static const char word[] = "__snug_function__";
    if (!py_is_list(o)) {
        PyObject *method = PyObject_HasAttrString(o, word) ? PyObject_GetAttrString(o, word) : NULL;
        return method;
    }
    PyObject *method = NULL;
    for (Py_ssize_t i = 0; !method && depth < 3 && i < py_list_size(o); i++) {
        PyObject *item = PySequence_GetItem(o, i);
        method = item ? method_of_symbol(item, depth + 1) : NULL;
        Py_XDECREF(item);
    }
    return method;
}

/* What a symbol among the arguments makes of the call; NULL with the old exception where there is
 * none. */
static PyObject *call_symbol(bound *f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *type, *value, *trace, *method = NULL, *result = NULL;
    const Py_ssize_t n_names = names ? PyTuple_Size(names) : 0;
    PyErr_Fetch(&type, &value, &trace);
    if (f->draws && py.capture)
        method = method_of_symbol(py.capture, 0);
    for (Py_ssize_t i = 0; !method && i < n + n_names; i++)
        method = method_of_symbol(args[i], 0);
    if (!method) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    PyObject *tuple = PyTuple_New(n), *keywords = PyDict_New();
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(tuple, i, args[i]);
    }
    int ok = tuple && keywords;
    for (Py_ssize_t k = 0; ok && k < n_names; k++)
        ok = PyDict_SetItem(keywords, PyTuple_GetItem(names, k), args[n + k]) == 0;
    PyObject *me = ok ? PyCFunction_NewEx(&f->method, (PyObject *)f, NULL) : NULL;
    if (me)
        result = PyObject_CallFunctionObjArgs(method, me, tuple, keywords, NULL);
    Py_XDECREF(me);
    Py_XDECREF(tuple);
    Py_XDECREF(keywords);
    Py_DECREF(method);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return result;
}

/* The arguments of a call into c; -1: they cannot be arranged; *bad: one cannot be converted. */
static int take_all(call *c, const bound *f, PyObject *const *args, Py_ssize_t n, PyObject *names,
                    int *bad) {
    PyObject *in_order[MAX_ARGS] = {NULL};
    c->n_few = c->n_more = c->n_drop = *bad = 0;
    c->rest = c->kept = NULL;
    const int used = arrange(f, args, n, names, in_order);
    if (used < 0 || py_enter() < 0)
        return -1;
    if (f->rest >= 0 && n > f->rest) {
        c->rest = in_order[f->rest] = list_of(args + f->rest, n - f->rest);
        if (!c->rest)
            return -1;
    }
    c->dtype = first_dtype(f, in_order, used);
    for (int i = 0; i < used && !*bad; i++) {
        c->args[i].kind = SNUG_ARG_NONE;
        *bad = in_order[i] && take(c, f, i, in_order[i]) < 0;
    }
    return used;
}

/* A call that a program writes down (py.h). */
int py_row_arguments(PyObject *callable, PyObject *const *args, Py_ssize_t n, PyObject *names,
                     py_row_taker taker, void *ctx) {
    bound *f = (bound *)PyCFunction_GetSelf(callable);
    int bad = 1;
    call c;
    c.in_program = 1;
    const int used = f ? take_all(&c, f, args, n, names, &bad) : -1;
    if (used < 0)
        return -1;
    if (!bad)
        bad = taker(ctx, f->row, c.args, used, f->to_list) < 0;
    clear(&c);
    return bad ? -1 : 0;
}

static PyObject *call_row(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    const bound *f = (const bound *)self;
    PyObject *result = NULL;
    snug_tensor *out[MAX_OUT];
    snug_error err;
    call c;
    int bad, n_out = 0;
    if (py.capture && f->draws) /* drawn anew for each element, not now */
        return call_symbol((bound *)self, args, n, names);
    c.in_program = 0;
    const int used = take_all(&c, f, args, n, names, &bad);
    if (used < 0)
        return NULL;
    if (!bad) {
        py_mark_site();
        if (call_table(f->row, c.args, used, out, MAX_OUT, &n_out, &err) != SNUG_OK)
            py_raise(&err);
        else
            result = give(f, out, n_out);
    } else {
        result = call_symbol((bound *)self, args, n, names);
    }
    clear(&c);
    return result;
}

/* --- making one ------------------------------------------------------------------------------- */
static void free_bound(PyObject *o) {
    bound *f = (bound *)o;
    PyTypeObject *type = Py_TYPE(o);
    for (int i = 0; i < f->n; i++)
        Py_XDECREF(f->of[i].name);
    PyMem_Free((void *)(uintptr_t)f->method.ml_name);
    PyMem_Free((void *)(uintptr_t)f->method.ml_doc);
    PyObject_Free(o);
    Py_DECREF(type);
}

static PyType_Slot bound_slots[] = {{Py_tp_dealloc, free_bound}, {0, NULL}};
static PyType_Spec bound_spec = {.name = "snug._C.Row",
                                 .basicsize = sizeof(bound),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 .slots = bound_slots};

static int parse(bound *f, const char *text) {
    while (*text) {
        const size_t length = strcspn(text, " "), colon = strcspn(text, ":");
        if (f->n == MAX_ARGS || colon >= length) {
            PyErr_Format(PyExc_SystemError, "bad signature of %s", f->method.ml_name);
            return -1;
        }
        const int star = *text == '*';
        if (star)
            f->rest = f->n;
        parameter *p = &f->of[f->n++];
        p->name = PyUnicode_FromStringAndSize(text + star, (Py_ssize_t)colon - star);
        if (p->name)
            PyUnicode_InternInPlace(&p->name);
        p->kind = text[colon + 1];
        p->required = colon + 2 >= length || text[colon + 2] != '=';
        text += length;
        text += strspn(text, " ");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Texts and dtypes stand in a signature without the marks that Python wants around them. */
static int needs_no_marks(const char *value, size_t n) {
    static const char *const words[] = {"None", "True", "False"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncmp(words[i], value, n) == 0)
            return 1;
    return n > 0 && strchr("0123456789-+.[(", value[0]) != NULL;
}

/* "name(a, b=None, *rest)", blank, about: what the interpreter takes the arguments from that
 * help() and inspect.signature() show. To be freed. */
static char *describe(const char *called, const snug_function_info *f) {
    const size_t room = strlen(called) + 3 * strlen(f->signature) + strlen(f->about) + 16;
    char *const text = PyMem_Malloc(room), *to = text;
    if (!text)
        return NULL;
    to += snprintf(to, room, "%s(", called);
    for (const char *at = f->signature; *at;) {
        const size_t length = strcspn(at, " "), colon = strcspn(at, ":");
        const char *const value = at + colon + 3;
        const int given = colon + 2 < length; /* a default, which may be no letters */
        const size_t n = given ? length - colon - 3 : 0;
        const char *const mark = given && !needs_no_marks(value, n) ? "'" : "";
        to += snprintf(to, room - (size_t)(to - text), "%s%.*s%s%s%.*s%s",
                       at == f->signature ? "" : ", ", (int)colon, at, given ? "=" : "", mark,
                       (int)n, value, mark);
        at += length + strspn(at + length, " ");
    }
    snprintf(to, room - (size_t)(to - text), ")\n--\n\n%s.", f->about);
    return text;
}

static char *copy_text(const char *text) {
    char *copy = PyMem_Malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* function(name, to_list=False, called=None): the callable of a row, None where there is none. */
static PyObject *make(PyObject *self, PyObject *args) {
    static PyTypeObject *type;
    const char *name, *called = NULL;
    int row, to_list = 0;
    if (!PyArg_ParseTuple(args, "s|pz", &name, &to_list, &called))
        return NULL;
    if (!snug_function_find(name, &row))
        Py_RETURN_NONE;
    if (!type && !(type = (PyTypeObject *)PyType_FromSpec(&bound_spec)))
        return NULL;
    bound *f = PyObject_New(bound, type);
    if (!f)
        return NULL;
    const char *dot = strrchr(name, '.');
    f->row = row;
    f->n = 0;
    f->rest = -1;
    f->to_list = to_list;
    f->draws = (snug_function_at(row)->traits & SNUG_FUNCTION_DRAWS) != 0;
    f->method =
        (PyMethodDef){copy_text(called ? called
                                : dot  ? dot + 1
                                       : name),
                      (PyCFunction)(void (*)(void))call_row, METH_FASTCALL | METH_KEYWORDS, NULL};
    f->method.ml_doc =
        f->method.ml_name ? describe(f->method.ml_name, snug_function_at(row)) : NULL;
    PyObject *callable = NULL;
    if (f->method.ml_doc && parse(f, snug_function_at(row)->signature) == 0)
        callable = PyCFunction_NewEx(&f->method, (PyObject *)f, self);
    Py_DECREF(f);
    return callable;
}

/* functions(): [(names, signature, about)] of all rows. */
static PyObject *all(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < snug_function_count(); i++) {
        const snug_function_info *f = snug_function_at(i);
        PyObject *row = Py_BuildValue("(sss)", f->names, f->signature, f->about);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* op(name, attributes, inputs, n_out): a row of the operator table, for what has no function. */
static PyObject *op(PyObject *self, PyObject *args) {
    (void)self;
    const char *name, *attributes;
    PyObject *inputs;
    int n_out = 1;
    enum { MAX = 64 };
    snug_tensor *in[MAX], *drop[MAX] = {NULL}, *out[MAX];
    snug_error err;
    if (!PyArg_ParseTuple(args, "ssO!|i", &name, &attributes, &PyTuple_Type, &inputs, &n_out) ||
        py_enter() < 0)
        return NULL;
    int n = (int)PyTuple_Size(inputs), done = 0;
    PyObject *result = NULL;
    if (n > MAX || n_out > MAX)
        return PyErr_Format(PyExc_ValueError, "at most %d tensors", MAX);
    for (; done < n; done++) {
        in[done] = py_lend(PyTuple_GetItem(inputs, done), &drop[done]);
        if (!in[done])
            break;
    }
    if (done == n) {
        py_mark_site();
        if (snug_record_op(py.recorder, name, attributes, in, n, out, n_out, &err) != SNUG_OK)
            py_raise(&err);
        else
            result = give(&(bound){.to_list = n_out != 1}, out, n_out);
    }
    for (int i = 0; i < done; i++)
        py_drop(drop[i]);
    return result;
}

static PyObject *check_results(PyObject *self, PyObject *o) {
    (void)self;
    const int on = PyObject_IsTrue(o);
    if (on < 0)
        return NULL;
    py.checks = on;
    Py_RETURN_NONE;
}

PyMethodDef py_function_methods[] = {
    {"check_results", check_results, METH_O, "Whether results of functions must be finite."},
    {"function", make, METH_VARARGS, "function(name): the callable of a row of the table."},
    {"functions", all, METH_NOARGS, "All rows: (names, signature, about)."},
    {"index_of_variable", py_index_of_variable, METH_VARARGS, "variable[key], with its assign."},
    {"op", op, METH_VARARGS, "op(name, attributes, inputs, n_out=1)"},
    {NULL, NULL, 0, NULL},
};
