/* py_variable.c: the type Variable, base of tf.Variable: a variable of the recorder as a Python
 * object, with the operators of a tensor. One object per variable: py.variables finds it again. */
#include "py.h"

#include <string.h>
#include <structmember.h>

snug_variable *py_variable_of(PyObject *o) {
    if (PyObject_TypeCheck(o, py.variable) && ((py_variable *)o)->v)
        return ((py_variable *)o)->v;
    PyErr_Format(PyExc_TypeError, "a variable is wanted, not %R", Py_TYPE(o));
    return NULL;
}

/* --- one object per variable ------------------------------------------------------------------ */
static int remember(py_variable *self) {
    PyObject *key = PyLong_FromVoidPtr(self->v);
    PyObject *ref = key ? PyWeakref_NewRef((PyObject *)self, NULL) : NULL;
    int bad = !ref || PyDict_SetItem(py.variables, key, ref) < 0;
    Py_XDECREF(key);
    Py_XDECREF(ref);
    return bad ? -1 : 0;
}

static void forget(snug_variable *v) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *key = PyLong_FromVoidPtr(v);
    if (key && PyDict_DelItem(py.variables, key) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(type, value, trace);
}

PyObject *py_variable_wrap(snug_variable *v, PyTypeObject *type) {
    PyObject *key = PyLong_FromVoidPtr(v);
    PyObject *ref = key ? PyDict_GetItemWithError(py.variables, key) : NULL;
    PyObject *found = ref ? PyWeakref_GetObject(ref) : NULL;
    Py_XDECREF(key);
    if (found && found != Py_None) {
        Py_INCREF(found);
        snug_variable_drop(v);
        return found;
    }
    if (PyErr_Occurred()) {
        snug_variable_drop(v);
        return NULL;
    }
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_variable *self = (py_variable *)make(type, 0);
    if (!self) {
        snug_variable_drop(v);
        return NULL;
    }
    self->v = v;
    if (remember(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dealloc(PyObject *o) {
    py_variable *self = (py_variable *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (self->weak)
        PyObject_ClearWeakRefs(o);
    if (self->v) {
        forget(self->v);
        snug_variable_drop(self->v);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

/* make(value, dtype=None, trainable=True, name=None): the class method subclasses build on. */
static PyObject *make(PyObject *type, PyObject *args) {
    PyObject *value, *dtype = Py_None;
    int trainable = 1, d = PY_ANY;
    const char *name = "Variable";
    snug_dtype wanted;
    snug_variable *v;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O|Opz", &value, &dtype, &trainable, &name) || py_enter() < 0)
        return NULL;
    if (snug_is_tracing(py.recorder)) {
        PyErr_SetNone(py.make_variable);
        return NULL;
    }
    if (dtype != Py_None) {
        if (py_dtype(dtype, &wanted) < 0)
            return NULL;
        d = (int)wanted;
    }
    snug_tensor *t = py_convert(value, d, PY_MUST);
    if (!t)
        return NULL;
    py_mark_site();
    snug_record_variable_options options = {.name = name ? name : "Variable",
                                            .not_trainable = !trainable};
    snug_status s = snug_variable_create(py.recorder, t, &options, &v, &err);
    py_drop(t);
    if (s != SNUG_OK)
        return py_raise(&err);
    return py_variable_wrap(v, (PyTypeObject *)type);
}

/* --- reading ---------------------------------------------------------------------------------- */
static PyObject *read_value(PyObject *self, PyObject *none) {
    (void)none;
    snug_tensor *t;
    snug_error err;
    if (py_enter() < 0)
        return NULL;
    py_mark_site();
    if (snug_variable_read(((py_variable *)self)->v, &t, &err) != SNUG_OK)
        return py_raise(&err);
    return py_tensor_new(t);
}

static PyObject *numpy(PyObject *self, PyObject *none) {
    PyObject *t = read_value(self, none);
    PyObject *array = t ? py_numpy(((py_tensor *)t)->t) : NULL;
    Py_XDECREF(t);
    return array;
}

static PyObject *array(PyObject *self, PyObject *args, PyObject *keywords) {
    PyObject *t = read_value(self, NULL);
    PyObject *method = t ? PyObject_GetAttrString(t, "__array__") : NULL;
    PyObject *out = method ? PyObject_Call(method, args, keywords) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(t);
    return out;
}

static PyObject *say(PyObject *self, const char *how) {
    PyObject *text = py_helper(&py.text, "snug._text");
    return text ? PyObject_CallMethod(text, how, "O", self) : NULL;
}
static PyObject *repr(PyObject *self) {
    return say(self, "variable_repr");
}
static PyObject *ref(PyObject *self, PyObject *none) {
    (void)none;
    return say(self, "Reference");
}

static Py_hash_t hash(PyObject *self) {
    PyErr_Format(PyExc_TypeError,
                 "Variable is unhashable. Instead, use variable.ref() as the key. (Variable: %R)",
                 self);
    return -1;
}

/* --- writing ---------------------------------------------------------------------------------- */
static int same_shape(const snug_type *a, const snug_type *b) {
    if (a->rank != b->rank)
        return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return 0;
    return 1;
}

/* Keras' variables take tensors of other types, others refuse them. */
static snug_tensor *cast_for_keras(PyObject *self, PyObject *value, snug_dtype to) {
    snug_tensor *read = NULL, *t = py_enter() < 0 ? NULL : py_lend(value, &read), *cast = NULL;
    if (t && snug_tensor_type(t)->dtype != to && PyObject_HasAttrString(self, "_autocast"))
        cast = py_call("tf.cast",
                       (snug_argument[]){{.kind = SNUG_ARG_TENSOR, .tensor = t},
                                         {.kind = SNUG_ARG_DTYPE, .dtype = to}},
                       2);
    else if (t)
        cast = py_convert(value, (int)to, PY_MUST);
    py_drop(read);
    return cast;
}

static snug_tensor *to_write(PyObject *self, PyObject *value) {
    snug_variable *v = ((py_variable *)self)->v;
    const snug_type *type = snug_variable_type(v);
    snug_tensor *t = py_is_tensor(value) ? cast_for_keras(self, value, type->dtype)
                                         : py_convert(value, (int)type->dtype, PY_MUST);
    if (!t || same_shape(type, snug_tensor_type(t)))
        return t;
    PyObject *mine = py_shape(type), *other = py_shape(snug_tensor_type(t));
    if (mine && other)
        PyErr_Format(PyExc_ValueError,
                     "Cannot assign value to variable ' %s:0': Shape mismatch.The variable shape "
                     "%S, and the assigned value shape %S are incompatible.",
                     snug_variable_name(v), mine, other);
    Py_XDECREF(mine);
    Py_XDECREF(other);
    py_drop(t);
    return NULL;
}

static PyObject *done(PyObject *self, snug_tensor *t, snug_status s, const snug_error *err) {
    py_drop(t);
    if (s != SNUG_OK)
        return py_raise(err);
    Py_INCREF(self);
    return self;
}

static PyObject *the_value(PyObject *args, PyObject *keywords) {
    static char *names[] = {"value", "use_locking", "name", "read_value", NULL};
    static char *deltas[] = {"delta", "use_locking", "name", "read_value", NULL};
    PyObject *value, *ignored;
    int is_delta = keywords && PyDict_GetItemString(keywords, "delta");
    return PyArg_ParseTupleAndKeywords(args, keywords, "O|OOO", is_delta ? deltas : names, &value,
                                       &ignored, &ignored, &ignored)
               ? value
               : NULL;
}

static PyObject *assign(PyObject *self, PyObject *args, PyObject *keywords) {
    snug_error err;
    PyObject *value = the_value(args, keywords);
    snug_tensor *t = value ? to_write(self, value) : NULL;
    if (!t)
        return NULL;
    py_mark_site();
    snug_status s = snug_variable_assign(((py_variable *)self)->v, t, &err);
    return done(self, t, s, &err);
}

/* There is no update of these; takes the hold. */
static PyObject *add_half(PyObject *self, snug_tensor *t) {
    snug_error err;
    snug_tensor *now, *sum = NULL;
    snug_status s = snug_variable_read(((py_variable *)self)->v, &now, &err);
    if (s == SNUG_OK) {
        const snug_argument args[2] = {{.kind = SNUG_ARG_TENSOR, .tensor = now},
                                       {.kind = SNUG_ARG_TENSOR, .tensor = t}};
        sum = py_call("tf.add", args, 2);
        py_drop(now);
    }
    py_drop(t);
    if (s == SNUG_OK && !sum)
        return NULL;
    if (s == SNUG_OK)
        s = snug_variable_assign(((py_variable *)self)->v, sum, &err);
    return done(self, sum, s, &err);
}

static PyObject *add_to(PyObject *self, PyObject *value, int negative) {
    snug_error err;
    snug_tensor *t = value ? to_write(self, value) : NULL;
    if (t && negative) {
        snug_tensor *minus =
            py_call("tf.negative", &(snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t}, 1);
        py_drop(t);
        t = minus;
    }
    if (!t)
        return NULL;
    const snug_dtype dtype = snug_tensor_type(t)->dtype;
    if (dtype == SNUG_F16 || dtype == SNUG_BF16 || dtype == SNUG_I16 || dtype == SNUG_U16 ||
        dtype == SNUG_U32)
        return add_half(self, t);
    py_mark_site();
    snug_status s = snug_variable_update(py.recorder, "assign_add", "", &((py_variable *)self)->v,
                                         1, &t, 1, &err);
    return done(self, t, s, &err);
}

static PyObject *assign_add(PyObject *self, PyObject *args, PyObject *keywords) {
    return add_to(self, the_value(args, keywords), 0);
}

static PyObject *assign_sub(PyObject *self, PyObject *args, PyObject *keywords) {
    return add_to(self, the_value(args, keywords), 1);
}

/* --- attributes ------------------------------------------------------------------------------- */
static const snug_type *type_of(PyObject *self) {
    return snug_variable_type(((py_variable *)self)->v);
}
static PyObject *get_name(PyObject *self, void *c) {
    (void)c;
    return PyUnicode_FromFormat("%s:0", snug_variable_name(((py_variable *)self)->v));
}
static PyObject *get_device(PyObject *self, void *c) {
    (void)c;
    return py_device_text(snug_variable_is_on_host(((py_variable *)self)->v));
}

static PyObject *get_trainable(PyObject *self, void *c) {
    (void)c;
    return PyBool_FromLong(snug_variable_is_trainable(((py_variable *)self)->v));
}
static int set_trainable(PyObject *self, PyObject *value, void *c) {
    (void)c;
    int yes = value ? PyObject_IsTrue(value) : -1;
    if (yes < 0)
        return -1;
    snug_variable_set_trainable(((py_variable *)self)->v, yes);
    return 0;
}
static PyObject *get_priority(PyObject *self, void *c) {
    (void)self, (void)c;
    return PyLong_FromLong(100);
}

static PyGetSetDef getset[] = {
    {"shape", py_get_shape, NULL, "Extents, a TensorShape.", NULL},
    {"dtype", py_get_dtype, NULL, "Element type.", NULL},
    {"ndim", py_get_ndim, NULL, "How many axes there are.", NULL},
    {"name", get_name, NULL, "Its name, with TensorFlow's :0.", NULL},
    {"device", get_device, NULL, "Where it lives.", NULL},
    {"trainable", get_trainable, set_trainable, "Whether tapes watch it.", NULL},
    {"__array_priority__", get_priority, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"make", make, METH_VARARGS | METH_CLASS, "make(value, dtype, trainable, name)"},
    {"read_value", read_value, METH_NOARGS, "What it holds now, as a tensor."},
    {"value", read_value, METH_NOARGS, "What it holds now, as a tensor."},
    {"numpy", numpy, METH_NOARGS, "What it holds now, as a NumPy array."},
    {"__array__", (PyCFunction)(void (*)(void))array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"assign", (PyCFunction)(void (*)(void))assign, METH_VARARGS | METH_KEYWORDS,
     "assign(value): holds the value from now on."},
    {"assign_add", (PyCFunction)(void (*)(void))assign_add, METH_VARARGS | METH_KEYWORDS,
     "assign_add(delta)"},
    {"assign_sub", (PyCFunction)(void (*)(void))assign_sub, METH_VARARGS | METH_KEYWORDS,
     "assign_sub(delta)"},
    {"ref", ref, METH_NOARGS, "A hashable reference."},
    {"experimental_ref", ref, METH_NOARGS, "A hashable reference."},
    {NULL, NULL, 0, NULL},
};

static Py_ssize_t length(PyObject *self) {
    if (type_of(self)->rank == 0) {
        PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
        return -1;
    }
    return (Py_ssize_t)type_of(self)->dims[0];
}

static PyObject *iter(PyObject *self) {
    PyObject *t = read_value(self, NULL);
    PyObject *it = t ? PyObject_GetIter(t) : NULL;
    Py_XDECREF(t);
    return it;
}

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_variable, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject *py_make_variable_type(PyObject *module) {
    PyType_Slot own[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_repr, repr},
        {Py_tp_hash, hash},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_iter, iter},
        {Py_mp_length, length},
        {Py_tp_doc, "What a variable of the recorder looks like from Python."},
    };
    PyType_Slot all[64] = {{0, NULL}};
    size_t n = sizeof own / sizeof *own;
    memcpy(all, own, sizeof own);
    for (int i = 0; py_number_slots[i].slot; i++)
        all[n++] = py_number_slots[i];
    PyType_Spec spec = {.name = "snug._C.Variable",
                        .basicsize = sizeof(py_variable),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION, /* but by py_variable_wrap */
                        .slots = all};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
