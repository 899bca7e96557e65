/* py_device.c: where things run. The GPU is opened with the engine, when something first needs it:
 * by default where there is one, as SNUG_DEVICE (or what Python has chosen before) says otherwise.
 *
 *     cpu          the processor
 *     gpu, gpu:1   that card; an error where it cannot be had
 *     auto         a card where there is one, else the processor */
#include "py.h"

#include <snug/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the interpreter needs to begin with: an arena in reserve, a small first step, and its
 * objects (py_allocators.c). */
#define START (((size_t)3 << 20) + PY_BOOKED)

static const char *wish(void) {
    const char *named = getenv("SNUG_DEVICE");
    return py.device[0] ? py.device : named && named[0] ? named : "auto";
}

/* Says once that the card there is cannot be used. */
static int warn(const char *why) {
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "snug runs on the CPU: %s", why);
}

int py_open_device(void) {
    snug_error err;
    const char *name = wish();
    const int any = strcmp(name, "auto") == 0;
    const snug_device_options options = {.budget_bytes = py.device_budget, .exact = py.exact};
    if (strcmp(name, "cpu") == 0)
        return 0;
    if (any && snug_device_count(NULL, &err) == 0)
        return err.cause == SNUG_CAUSE_OTHER_VERSION ? warn(err.text) : 0;
    const char *wanted = any ? "gpu" : name;
    if (snug_device(py.engine, wanted, &options, &err) == SNUG_OK)
        return 0;
    if (any)
        return warn(err.text);
    py_raise(&err);
    return -1;
}

/* --- budgets that were wished for before there was an engine ---------------------------------- */
static int raise(const snug_error *err) {
    py_raise(err);
    return -1;
}

static int has_device(snug_device_info *info) {
    snug_error err;
    return py.engine && snug_device_look(py.engine, info, &err) == SNUG_OK && info->is_gpu;
}

int py_has_card(void) {
    snug_device_info card;
    return has_device(&card);
}

/* Percents are of a card of `total` bytes. -1: ValueError is set. */
static int card_bytes(const char *text, size_t total, size_t *bytes) {
    snug_error err;
    if (snug_device_budget_parse(text, total, bytes, &err) == SNUG_OK)
        return 0;
    PyErr_SetString(PyExc_ValueError, err.text);
    return -1;
}

static int limit_card(const char *text, const snug_device_info *card) {
    snug_error err;
    size_t bytes;
    if (card_bytes(text, card->total_bytes, &bytes) < 0)
        return -1;
    if (snug_device_budget(py.engine, bytes, &err) != SNUG_OK)
        return raise(&err);
    py.device_budget = bytes;
    return 0;
}

/* One that the process is beyond already is not set. */
int py_limit_host(size_t bytes) {
    snug_error err;
    const size_t before = snug_budget_bytes(py.engine);
    if (snug_budget(py.engine, bytes, &err) != SNUG_OK)
        return raise(&err);
    if (snug_budget_check(py.engine, py.guarded ? 0 : START, &err) != SNUG_OK) {
        snug_error unset;
        (void)!snug_budget(py.engine, before, &unset);
        return raise(&err);
    }
    snug_pipeline_limit(py.engine, PY_PIPELINES(bytes));
    snug_pipeline_stores(py.engine, SIZE_MAX);
    return 0;
}

static int limit_host(const char *text) {
    snug_error err;
    size_t bytes;
    return snug_budget_parse(text, &bytes, &err) != SNUG_OK ? raise(&err) : py_limit_host(bytes);
}

int py_apply_wishes(void) {
    snug_device_info card;
    const int there = has_device(&card);
    if (py.wish[0] && (there ? limit_card(py.wish, &card) : limit_host(py.wish)) < 0)
        return -1;
    return py.host_wish[0] ? limit_host(py.host_wish) : 0;
}

/* wish(budget, host_budget): texts for when the engine is made, the first of the device that is
 * used then; None: none. */
static PyObject *set_wishes(PyObject *self, PyObject *args) {
    (void)self;
    const char *own, *host;
    if (!PyArg_ParseTuple(args, "zz", &own, &host))
        return NULL;
    if ((own && strlen(own) >= sizeof py.wish) || (host && strlen(host) >= sizeof py.host_wish)) {
        PyErr_Format(PyExc_ValueError, "a budget has at most %zu characters: give it as 16GB",
                     sizeof py.wish - 1);
        return NULL;
    }
    snprintf(py.wish, sizeof py.wish, "%s", own ? own : "");
    snprintf(py.host_wish, sizeof py.host_wish, "%s", host ? host : "");
    Py_RETURN_NONE;
}

/* check_budget(text): ValueError where no device can have it. */
static PyObject *check_text(PyObject *self, PyObject *o) {
    (void)self;
    size_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text || card_bytes(text, 0, &bytes) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* check_process(text): ResourceExhaustedError where the process is beyond such a budget of the
 * host's memory already. Makes no engine that stays: the script may choose its device yet. */
static PyObject *check_process(PyObject *self, PyObject *o) {
    (void)self;
    const snug_engine_options options = {0};
    snug_engine *engine = NULL;
    snug_error err;
    size_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text)
        return NULL;
    snug_status status = snug_engine_create(&options, &engine, &err);
    if (status == SNUG_OK && snug_budget_parse(text, &bytes, &err) != SNUG_OK) {
        snug_engine_destroy(engine);
        PyErr_SetString(PyExc_ValueError, err.text);
        return NULL;
    }
    if (status == SNUG_OK)
        status = snug_budget(engine, bytes, &err);
    if (status == SNUG_OK)
        status = snug_budget_check(engine, START, &err);
    snug_engine_destroy(engine);
    if (status != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

/* card_budget(text): of the card that is used; gives the bytes, None: there is no card. */
static PyObject *set_card(PyObject *self, PyObject *o) {
    (void)self;
    snug_device_info card;
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text || py_enter() < 0)
        return NULL;
    if (!has_device(&card))
        Py_RETURN_NONE;
    return limit_card(text, &card) < 0 ? NULL : PyLong_FromSize_t(py.device_budget);
}

/* --- the device ------------------------------------------------------------------------------- */
/* choose_device(name): before anything runs. */
static PyObject *choose(PyObject *self, PyObject *o) {
    (void)self;
    const char *name = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!name)
        return NULL;
    if (py.recorder) {
        PyErr_SetString(PyExc_RuntimeError, "the device cannot be changed once something has run");
        return NULL;
    }
    if (strlen(name) >= sizeof py.device) {
        PyErr_Format(PyExc_ValueError, "there is no device '%.40s'; say cpu, gpu or gpu:1", name);
        return NULL;
    }
    strcpy(py.device, name);
    Py_RETURN_NONE;
}

/* device_budget(bytes): of the card's memory; before it is opened or after. */
static PyObject *set_budget(PyObject *self, PyObject *o) {
    (void)self;
    snug_error err;
    snug_device_info card;
    const size_t bytes = PyLong_AsSize_t(o);
    if (PyErr_Occurred())
        return NULL;
    if (has_device(&card) && snug_device_budget(py.engine, bytes, &err) != SNUG_OK)
        return py_raise(&err);
    py.device_budget = bytes;
    Py_RETURN_NONE;
}

/* exact_products(flag): f32 products in f32; before the card is opened. */
static PyObject *set_exact(PyObject *self, PyObject *o) {
    (void)self;
    const int exact = PyObject_IsTrue(o);
    if (exact < 0)
        return NULL;
    py.exact = exact;
    Py_RETURN_NONE;
}

/* (how many cards there are, why none, whether the plug-in is there) */
static PyObject *count(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    snug_error err = {.code = SNUG_OK};
    const int n = snug_device_count(NULL, &err);
    return Py_BuildValue("(isi)", n, err.text, err.cause != SNUG_CAUSE_NO_PLUGIN);
}

/* Of the card that is used: a dict; None: the processor. Opens it. */
static PyObject *look(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    snug_device_info i;
    snug_recorder_device r;
    if (py_enter() < 0)
        return NULL;
    if (!has_device(&i))
        Py_RETURN_NONE;
    snug_recorder_tell_device(py.recorder, &r);
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:i,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "name", i.name,
        "model", i.model, "driver", i.driver, "capability", i.capability, "total_bytes",
        (Py_ssize_t)i.total_bytes, "free_bytes", (Py_ssize_t)i.free_bytes, "context_bytes",
        (Py_ssize_t)i.context_bytes, "held_bytes", (Py_ssize_t)i.held_bytes, "budget_bytes",
        (Py_ssize_t)i.budget_bytes, "tensor_bytes", (Py_ssize_t)r.tensor_bytes, "variable_bytes",
        (Py_ssize_t)r.variable_bytes, "arena_bytes", (Py_ssize_t)r.arena_bytes, "pool_bytes",
        (Py_ssize_t)r.pool_bytes, "pool_free_bytes", (Py_ssize_t)r.pool_free_bytes,
        "pool_largest_free", (Py_ssize_t)r.pool_largest_free, "bytes", (Py_ssize_t)r.bytes,
        "peak_bytes", (Py_ssize_t)r.peak_bytes);
}

static PyObject *reset_peak(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_enter() < 0)
        return NULL;
    snug_recorder_reset_peak(py.recorder);
    Py_RETURN_NONE;
}

/* place(on_host): what this thread records from now on; gives what was before. */
static PyObject *place(PyObject *self, PyObject *o) {
    (void)self;
    const int on_host = PyObject_IsTrue(o);
    if (on_host < 0 || py_enter() < 0)
        return NULL;
    const int before = snug_recorder_is_on_host(py.recorder);
    snug_recorder_place(py.recorder, on_host);
    return PyBool_FromLong(before);
}

/* bring(tensor): a step will soon want it on the card. */
static PyObject *bring(PyObject *self, PyObject *o) {
    (void)self;
    if (py_enter() < 0)
        return NULL;
    if (Py_IS_TYPE(o, py.tensor))
        snug_tensor_bring(((py_tensor *)o)->t);
    Py_RETURN_NONE;
}

/* As TensorFlow names it: the card that a process uses is its first. */
PyObject *py_device_text(int on_host) {
    return PyUnicode_FromString(on_host ? "/job:localhost/replica:0/task:0/device:CPU:0"
                                        : "/job:localhost/replica:0/task:0/device:GPU:0");
}

PyMethodDef py_device_methods[] = {
    {"choose_device", choose, METH_O, "cpu, gpu, gpu:1 or auto, before anything runs."},
    {"wish", set_wishes, METH_VARARGS, "Budgets for when the engine is made."},
    {"check_budget", check_text, METH_O, "Whether the text is one of a budget."},
    {"check_process", check_process, METH_O, "Whether the process is within such a budget."},
    {"card_budget", set_card, METH_O, "Sets the card's budget by a text."},
    {"device_budget", set_budget, METH_O, "Sets the budget of the card's memory; 0: none."},
    {"exact_products", set_exact, METH_O, "f32 products in f32, not TF32."},
    {"device_count", count, METH_NOARGS, "How many cards there are, and why none."},
    {"device", look, METH_NOARGS, "What the card is and holds; None: there is none."},
    {"reset_peak", reset_peak, METH_NOARGS, "The card's peak starts anew."},
    {"bring", bring, METH_O, "The tensor goes to the card while the next run is under way."},
    {"place", place, METH_O, "Whether the host runs what is recorded from now on."},
    {NULL, NULL, 0, NULL},
};
