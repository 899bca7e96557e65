/* py_keras.c: the types Layer, Metric and Optimizer, and the function loss: what the package
 * snug.keras is made of. Flat lists go in and out; names, structures and subclassing are
 * Python's. */
#include "py.h"

#include <string.h>

#define MAX_TENSORS 64

/* A list of tensors (or None) lent for a call; what had to be read or converted is dropped
 * after. */
typedef struct {
    int n, n_drop;
    snug_tensor *at[MAX_TENSORS], *to_drop[MAX_TENSORS];
} tensors;

static int take_tensors(PyObject *list, tensors *out) {
    *out = (tensors){0};
    if (list == Py_None)
        return 0;
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0 || n > MAX_TENSORS) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%zd tensors; at most %d are possible", n, MAX_TENSORS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyList_GetItem(list, i);
        snug_tensor *read = NULL;
        out->at[out->n++] = o == Py_None ? NULL : py_lend(o, &read);
        if (read)
            out->to_drop[out->n_drop++] = read;
        if (o != Py_None && !out->at[i])
            return -1;
    }
    return 0;
}

static void drop_tensors(tensors *t) {
    for (int i = 0; i < t->n_drop; i++)
        py_drop(t->to_drop[i]);
}

static PyObject *wrap_all(snug_tensor **t, int n) {
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *o = py_tensor_new(t[i]);
        if (list && (!o || PyList_SetItem(list, i, o) < 0))
            Py_CLEAR(list);
        else if (!list)
            Py_XDECREF(o);
    }
    return list;
}

static PyTypeObject *variable_class; /* what variables of layers are wrapped as; NULL: the base */

static PyObject *wrap_variable(snug_variable *v) {
    snug_variable_hold(v);
    return py_variable_wrap(v, variable_class ? variable_class : py.variable);
}

static PyObject *set_variable_class(PyObject *module, PyObject *cls) {
    (void)module;
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, py.variable))
        return PyErr_Format(PyExc_TypeError, "a subclass of Variable is wanted");
    Py_XDECREF((PyObject *)variable_class);
    variable_class = (PyTypeObject *)Py_NewRef(cls);
    Py_RETURN_NONE;
}

static PyObject *set_autocast(PyObject *module, PyObject *dtype) {
    (void)module;
    if (dtype != Py_None && py_dtype(dtype, &py.autocast) < 0)
        return NULL;
    py.autocasts = dtype != Py_None;
    Py_RETURN_NONE;
}

/* --- Layer ------------------------------------------------------------------------------------ */
typedef struct {
    PyObject_HEAD snug_layer *layer;
} py_layer;

static snug_layer *layer_of(PyObject *self) {
    return ((py_layer *)self)->layer;
}

static int layer_init(PyObject *self, PyObject *args, PyObject *none) {
    const char *class_name, *config;
    snug_error err;
    (void)none;
    if (!PyArg_ParseTuple(args, "ss", &class_name, &config) || py_enter() < 0)
        return -1;
    if (snug_layer_create(py.recorder, class_name, config, &((py_layer *)self)->layer, &err) ==
        SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

static void free_object(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

static void layer_dealloc(PyObject *o) {
    if (layer_of(o))
        snug_layer_destroy(layer_of(o));
    free_object(o);
}

static int take_roles(PyObject *list, const char **roles) {
    for (Py_ssize_t i = 0; list != Py_None && i < PyList_Size(list) && i < MAX_TENSORS; i++) {
        PyObject *o = PyList_GetItem(list, i);
        if (o != Py_None && !(roles[i] = PyUnicode_AsUTF8AndSize(o, NULL)))
            return -1;
    }
    return 0;
}

/* call(inputs, roles, masks, training, keywords) -> (outputs, mask or None) */
static PyObject *layer_call(PyObject *self, PyObject *args) {
    PyObject *inputs, *roles, *masks, *result = NULL;
    const char *words, *role[MAX_TENSORS] = {NULL};
    snug_tensor *outs[MAX_TENSORS], *mask = NULL;
    tensors in = {0}, hidden = {0};
    snug_error err;
    int training, n_out = 0;
    if (!PyArg_ParseTuple(args, "OOOpz", &inputs, &roles, &masks, &training, &words) ||
        py_enter() < 0)
        return NULL;
    py_mark_site();
    if (take_tensors(inputs, &in) == 0 && take_tensors(masks, &hidden) == 0 &&
        take_roles(roles, role) == 0) {
        const snug_layer_arguments a = {.inputs = in.at,
                                        .roles = roles == Py_None ? NULL : role,
                                        .masks = masks == Py_None ? NULL : hidden.at,
                                        .n_inputs = in.n,
                                        .training = training,
                                        .call = words};
        if (snug_layer_call(layer_of(self), &a, outs, MAX_TENSORS, &n_out, &mask, &err) != SNUG_OK)
            py_raise(&err);
        else
            result = wrap_all(outs, n_out);
    }
    drop_tensors(&in);
    drop_tensors(&hidden);
    if (!result)
        return NULL;
    PyObject *of_mask = mask ? py_tensor_new(mask) : Py_NewRef(Py_None);
    return of_mask ? Py_BuildValue("NN", result, of_mask) : NULL;
}

/* A pair (dtype, extents); an extent of None is open. */
static int take_type(PyObject *pair, snug_type *out) {
    PyObject *dtype, *dims;
    if (!PyArg_ParseTuple(pair, "OO", &dtype, &dims) || py_dtype(dtype, &out->dtype) < 0)
        return -1;
    const Py_ssize_t n = PySequence_Size(dims);
    if (n < 0 || n > SNUG_MAX_RANK) {
        if (n >= 0)
            PyErr_Format(PyExc_ValueError, "%zd axes; at most %d are possible", n, SNUG_MAX_RANK);
        return -1;
    }
    out->rank = (int)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PySequence_GetItem(dims, i);
        out->dims[i] = !o || o == Py_None ? -1 : PyLong_AsLongLong(o);
        Py_XDECREF(o);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *type_pair(const snug_type *t) {
    PyObject *dims = PyTuple_New(t->rank);
    for (int i = 0; dims && i < t->rank; i++) {
        PyObject *o =
            t->dims[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong((long long)t->dims[i]);
        if (!o || PyTuple_SetItem(dims, i, o) < 0)
            Py_CLEAR(dims);
    }
    return dims ? Py_BuildValue("NN", py_dtype_object(t->dtype), dims) : NULL;
}

/* infer([(dtype, extents), ...]) -> the same of the outputs; makes the variables. */
static PyObject *layer_infer(PyObject *self, PyObject *list) {
    snug_type in[MAX_TENSORS] = {{0}}, out[MAX_TENSORS];
    snug_error err;
    int n_out = 0;
    const Py_ssize_t n = PyList_Size(list);
    if (n > MAX_TENSORS)
        return PyErr_Format(PyExc_ValueError,
                            "a layer is called with %zd tensors; from 1 to %d are possible", n,
                            MAX_TENSORS);
    if (n < 0 || py_enter() < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (take_type(PyList_GetItem(list, i), &in[i]) < 0)
            return NULL;
    if (snug_layer_infer(layer_of(self), in, (int)n, out, MAX_TENSORS, &n_out, &err) != SNUG_OK)
        return py_raise(&err);
    PyObject *result = PyList_New(n_out);
    for (int i = 0; result && i < n_out; i++) {
        PyObject *pair = type_pair(&out[i]);
        if (!pair || PyList_SetItem(result, i, pair) < 0)
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *layer_variables(PyObject *self, PyObject *none) {
    (void)none;
    const int n = snug_layer_n_variables(layer_of(self));
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *v = wrap_variable(snug_layer_variable(layer_of(self), i));
        if (!v || PyList_SetItem(list, i, v) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *layer_set_trainable(PyObject *self, PyObject *o) {
    const int yes = PyObject_IsTrue(o);
    if (yes < 0)
        return NULL;
    snug_layer_set_trainable(layer_of(self), yes);
    Py_RETURN_NONE;
}

static PyObject *layer_losses(PyObject *self, PyObject *none) {
    snug_tensor *out[MAX_TENSORS];
    snug_error err;
    int n = 0;
    (void)none;
    if (py_enter() < 0)
        return NULL;
    if (snug_layer_losses(layer_of(self), out, MAX_TENSORS, &n, &err) != SNUG_OK)
        return py_raise(&err);
    return wrap_all(out, n);
}

static PyObject *layer_draws(PyObject *self, PyObject *none) {
    (void)none;
    return PyLong_FromUnsignedLongLong(snug_layer_draws(layer_of(self)));
}

static PyObject *layer_set_draws(PyObject *self, PyObject *o) {
    const unsigned long long draws = PyLong_AsUnsignedLongLong(o);
    snug_error err;
    if (PyErr_Occurred() || py_enter() < 0)
        return NULL;
    if (snug_layer_set_draws(layer_of(self), draws, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef layer_methods[] = {
    {"call", layer_call, METH_VARARGS, "call(inputs, roles, masks, training, keywords)"},
    {"infer", layer_infer, METH_O, "infer([(dtype, extents), ...]): makes the variables"},
    {"variables", layer_variables, METH_NOARGS, "All it has made so far."},
    {"set_trainable", layer_set_trainable, METH_O, NULL},
    {"losses", layer_losses, METH_NOARGS, "Of regularisers, as scalars."},
    {"draws", layer_draws, METH_NOARGS, "How often it drew from a seed of its own."},
    {"set_draws", layer_set_draws, METH_O, "That it goes on from there."},
    {NULL, NULL, 0, NULL},
};

/* --- losses ----------------------------------------------------------------------------------- */
/* loss(text, y_true, y_pred, weight or None, reduced) */
static PyObject *loss(PyObject *module, PyObject *args) {
    PyObject *list, *weight, *y_true, *y_pred, *result = NULL;
    const char *text;
    tensors t = {0};
    snug_tensor *out;
    snug_error err;
    int reduced;
    (void)module;
    if (!PyArg_ParseTuple(args, "sOOOp", &text, &y_true, &y_pred, &weight, &reduced) ||
        py_enter() < 0)
        return NULL;
    list = Py_BuildValue("[OOO]", y_true, y_pred, weight);
    py_mark_site();
    if (list && take_tensors(list, &t) == 0) {
        if (snug_loss_call(py.recorder, text, t.at[0], t.at[1], t.at[2], reduced, &out, &err) !=
            SNUG_OK)
            py_raise(&err);
        else
            result = py_tensor_new(out);
    }
    drop_tensors(&t);
    Py_XDECREF(list);
    return result;
}

/* --- rows of layers --------------------------------------------------------------------------- */
static PyObject *of_setting(const snug_layer_setting *s) {
    if (s->text)
        return Py_BuildValue("(is)", s->numbers, s->text);
    return s->number == s->number ? Py_BuildValue("(id)", s->numbers, s->number)
                                  : Py_BuildValue("(iO)", s->numbers, Py_None);
}

/* {key: (how many numbers, default)} */
static PyObject *settings_of(int row) {
    PyObject *all = PyDict_New();
    snug_layer_setting s;
    for (int i = 0; all && snug_layer_setting_at(row, i, &s); i++) {
        PyObject *one = of_setting(&s);
        if (!one || PyDict_SetItemString(all, s.key, one) < 0)
            Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

static PyObject *flag(const snug_layer_row *r, snug_layer_trait trait) {
    return r->traits & (unsigned)trait ? Py_True : Py_False;
}

/* layer_row("Dense"): a dict; None where there is no such class for Python. */
static PyObject *layer_row(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    snug_layer_row r = {.name = ""};
    int row = 0;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    while (snug_layer_row_at(row, &r) && strcmp(r.name, name) != 0)
        row++;
    if (!snug_layer_row_at(row, &r) || !r.arguments)
        Py_RETURN_NONE;
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:N,s:N,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O}", "name", r.name, "arguments",
        r.arguments, "about", r.about, "settings", settings_of(row), "drops_masks",
        PyBool_FromLong(r.drops_masks), "picture", flag(&r, SNUG_LAYER_PICTURE), "draws",
        flag(&r, SNUG_LAYER_DRAWS), "at_once", flag(&r, SNUG_LAYER_AT_ONCE), "recurrent",
        flag(&r, SNUG_LAYER_RECURRENT), "indices", flag(&r, SNUG_LAYER_INDICES), "penalty",
        flag(&r, SNUG_LAYER_PENALTY), "extents", flag(&r, SNUG_LAYER_EXTENTS), "cell",
        flag(&r, SNUG_LAYER_CELL), "uncast", flag(&r, SNUG_LAYER_UNCAST));
}

/* layer_names(): classes of keras.layers. */
static PyObject *layer_names(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *all = PyList_New(0);
    snug_layer_row r;
    for (int i = 0; all && snug_layer_row_at(i, &r); i++) {
        if (!r.arguments || (r.traits & SNUG_LAYER_INSIDE))
            continue;
        PyObject *name = PyUnicode_FromString(r.name);
        if (!name || PyList_Append(all, name) < 0)
            Py_CLEAR(all);
        Py_XDECREF(name);
    }
    return all;
}

static PyMethodDef functions[] = {
    {"layer_row", layer_row, METH_VARARGS, "layer_row(name): the row of layers.def."},
    {"layer_names", layer_names, METH_NOARGS, "Classes of layers.def that Python has."},
    {"loss", loss, METH_VARARGS, "loss(text, y_true, y_pred, weight, reduced)"},
    {"set_variable_class", set_variable_class, METH_O, "Variables of layers are of this class."},
    {"set_autocast", set_autocast, METH_O,
     "set_autocast(dtype): what variables of layers are read as; None: as they are."},
    {NULL, NULL, 0, NULL},
};

/* --- Metric ----------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_metric *metric;
} py_metric;

static snug_metric *metric_of(PyObject *self) {
    return ((py_metric *)self)->metric;
}

static int metric_init(PyObject *self, PyObject *args, PyObject *none) {
    const char *text, *of_loss = NULL;
    snug_error err;
    (void)none;
    if (!PyArg_ParseTuple(args, "s|z", &text, &of_loss) || py_enter() < 0)
        return -1;
    if (snug_metric_create(py.recorder, text, of_loss, &((py_metric *)self)->metric, &err) ==
        SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

static void metric_dealloc(PyObject *o) {
    if (metric_of(o))
        snug_metric_destroy(metric_of(o));
    free_object(o);
}

static PyObject *metric_update(PyObject *self, PyObject *args) {
    PyObject *y_true, *y_pred, *weight = Py_None, *list;
    tensors t = {0};
    snug_error err;
    int done = 0;
    if (!PyArg_ParseTuple(args, "OO|O", &y_true, &y_pred, &weight) || py_enter() < 0)
        return NULL;
    list = Py_BuildValue("[OOO]", y_true, y_pred, weight);
    py_mark_site();
    if (list && take_tensors(list, &t) == 0) {
        done = snug_metric_update(metric_of(self), t.at[0], t.at[1], t.at[2], &err) == SNUG_OK;
        if (!done)
            py_raise(&err);
    }
    drop_tensors(&t);
    Py_XDECREF(list);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *metric_result(PyObject *self, PyObject *none) {
    double value;
    snug_error err;
    (void)none;
    if (py_enter() < 0)
        return NULL;
    if (snug_metric_result(metric_of(self), &value, &err) != SNUG_OK)
        return py_raise(&err);
    return PyFloat_FromDouble(value);
}

static PyObject *metric_reset(PyObject *self, PyObject *none) {
    snug_error err;
    (void)none;
    if (py_enter() < 0)
        return NULL;
    if (snug_metric_reset(metric_of(self), &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef metric_methods[] = {
    {"update", metric_update, METH_VARARGS, "update(y_true, y_pred, weight=None)"},
    {"result", metric_result, METH_NOARGS, "From all batches since the last reset."},
    {"reset", metric_reset, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- Optimizer -------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_optimizer *optimizer;
} py_optimizer;

static snug_optimizer *optimizer_of(PyObject *self) {
    return ((py_optimizer *)self)->optimizer;
}

static int optimizer_init(PyObject *self, PyObject *args, PyObject *none) {
    const char *text;
    snug_error err;
    (void)none;
    if (!PyArg_ParseTuple(args, "s", &text) || py_enter() < 0)
        return -1;
    if (snug_optimizer_create(py.recorder, text, &((py_optimizer *)self)->optimizer, &err) ==
        SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

static void optimizer_dealloc(PyObject *o) {
    if (optimizer_of(o))
        snug_optimizer_destroy(optimizer_of(o));
    free_object(o);
}

static int fill_pairs(PyObject *grads, PyObject *variables, snug_tensor **g, snug_variable **v) {
    const Py_ssize_t n = PyList_Size(variables);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyList_GetItem(grads, i);
        if (o != Py_None && !PyObject_TypeCheck(o, py.tensor)) {
            PyErr_SetString(PyExc_TypeError, "a gradient is not a tensor");
            return -1;
        }
        g[i] = o == Py_None ? NULL : ((py_tensor *)o)->t;
        if (!(v[i] = py_variable_of(PyList_GetItem(variables, i))))
            return -1;
    }
    return 0;
}

/* apply(gradients, variables, rate): rate < 0: the optimizer's own. */
static PyObject *optimizer_apply(PyObject *self, PyObject *args) {
    PyObject *grads, *variables;
    double rate = -1;
    snug_error err;
    int done = 0;
    if (!PyArg_ParseTuple(args, "O!O!|d", &PyList_Type, &grads, &PyList_Type, &variables, &rate) ||
        py_enter() < 0)
        return NULL;
    const Py_ssize_t n = PyList_Size(variables);
    if (PyList_Size(grads) != n)
        return PyErr_Format(PyExc_ValueError, "%zd gradients for %zd variables", PyList_Size(grads),
                            n);
    snug_tensor **g = PyMem_Calloc((size_t)n + 1, sizeof *g);
    snug_variable **v = PyMem_Calloc((size_t)n + 1, sizeof *v);
    py_mark_site();
    if (!g || !v) {
        PyErr_NoMemory();
    } else if (fill_pairs(grads, variables, g, v) == 0) {
        done = snug_optimizer_apply(optimizer_of(self), g, v, (int)n, rate, &err) == SNUG_OK;
        if (!done)
            py_raise(&err);
    }
    PyMem_Free(g);
    PyMem_Free(v);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* build(variables): their slots, before the first update. */
static PyObject *optimizer_build(PyObject *self, PyObject *variables) {
    snug_error err;
    if (!PyList_Check(variables))
        return PyErr_Format(PyExc_TypeError, "build() takes a list of variables");
    if (py_enter() < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(variables); i++) {
        snug_variable *v = py_variable_of(PyList_GetItem(variables, i));
        if (!v)
            return NULL;
        if (snug_optimizer_build(optimizer_of(self), &v, 1, &err) != SNUG_OK)
            return py_raise(&err);
    }
    return Py_NewRef(Py_None);
}

static PyObject *optimizer_slots(PyObject *self, PyObject *none) {
    (void)none;
    const int n = snug_optimizer_n_slots(optimizer_of(self));
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *v = wrap_variable(snug_optimizer_slot(optimizer_of(self), i));
        if (!v || PyList_SetItem(list, i, v) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_steps(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromLongLong((long long)snug_optimizer_steps(optimizer_of(self)));
}

static int set_steps(PyObject *self, PyObject *value, void *none) {
    (void)none;
    const long long n = value ? PyLong_AsLongLong(value) : -1;
    if (PyErr_Occurred())
        return -1;
    snug_optimizer_set_steps(optimizer_of(self), n);
    return 0;
}

static PyObject *get_rate(PyObject *self, void *none) {
    (void)none;
    return PyFloat_FromDouble(snug_optimizer_rate(optimizer_of(self)));
}

static int set_rate(PyObject *self, PyObject *value, void *none) {
    (void)none;
    const double rate = value ? PyFloat_AsDouble(value) : -1;
    if (PyErr_Occurred())
        return -1;
    snug_optimizer_set_rate(optimizer_of(self), rate);
    return 0;
}

static PyMethodDef optimizer_methods[] = {
    {"apply", optimizer_apply, METH_VARARGS, "apply(gradients, variables, rate=-1)"},
    {"build", optimizer_build, METH_O, "Makes the slots of variables now."},
    {"slots", optimizer_slots, METH_NOARGS, "Variables it keeps for those it has updated."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef optimizer_getset[] = {
    {"steps", get_steps, set_steps, "How many updates there were.", NULL},
    {"rate", get_rate, set_rate, "The learning rate of the next step.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- adding them ------------------------------------------------------------------------------ */
static int add_type(PyObject *module, const char *name, int bytes, PyType_Slot *slots) {
    PyType_Spec spec = {.name = name,
                        .basicsize = bytes,
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        .slots = slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    const int status = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return status;
}

int py_keras_add(PyObject *module) {
    PyType_Slot layer[] = {{Py_tp_init, layer_init},
                           {Py_tp_dealloc, layer_dealloc},
                           {Py_tp_methods, layer_methods},
                           {0, NULL}};
    PyType_Slot metric[] = {{Py_tp_init, metric_init},
                            {Py_tp_dealloc, metric_dealloc},
                            {Py_tp_methods, metric_methods},
                            {0, NULL}};
    PyType_Slot optimizer[] = {{Py_tp_init, optimizer_init},
                               {Py_tp_dealloc, optimizer_dealloc},
                               {Py_tp_methods, optimizer_methods},
                               {Py_tp_getset, optimizer_getset},
                               {0, NULL}};
    if (add_type(module, "snug._C.Layer", sizeof(py_layer), layer) < 0 ||
        add_type(module, "snug._C.Metric", sizeof(py_metric), metric) < 0 ||
        add_type(module, "snug._C.Optimizer", sizeof(py_optimizer), optimizer) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
