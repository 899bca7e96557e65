/* py_plan.c: snug.plan(): the verdict on a step of a model, as the command `snug plan` prints it.
 * The model is read from its JSON into an engine of its own, which goes away with it: nothing of
 * the caller's is touched. On a GPU it is the caller's engine, which has the card; the model
 * goes. */
#include "py.h"

#include <snug/model.h>
#include <snug/train.h>

/* Text that a report writes, as a Python string that grows. */
static snug_status collect(void *ctx, const char *text, size_t n, snug_error *err) {
    PyObject **all = ctx;
    PyObject *part = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    PyObject *both = part && *all ? PyUnicode_Concat(*all, part) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(*all);
    *all = both;
    if (both)
        return SNUG_OK;
    err->code = SNUG_E_MEMORY;
    return SNUG_E_MEMORY;
}

static snug_status report(snug_model *model, const snug_plan_request *request, int style,
                          PyObject **out, snug_error *err) {
    *out = PyUnicode_FromString("");
    const snug_writer writer = {.ctx = out, .write = collect};
    const snug_status s = snug_report_plan(model, request, style, &writer, err);
    return s == SNUG_E_BUDGET ? SNUG_OK : s; /* that it does not fit is what it says */
}

/* plan(path, shapes or None, optimizer or None, loss or None, batch, train, budget): (text,
 * json) */
PyObject *py_plan(PyObject *self, PyObject *args) {
    (void)self;
    const char *path, *shapes, *optimizer, *loss;
    long long batch;
    int train;
    Py_ssize_t budget;
    if (!PyArg_ParseTuple(args, "szzzLpn", &path, &shapes, &optimizer, &loss, &batch, &train,
                          &budget))
        return NULL;
    snug_error err;
    snug_engine *own = NULL, *engine;
    snug_model *model = NULL;
    PyObject *text = NULL, *json = NULL, *pair = NULL;
    const snug_compile compile = {.optimizer = optimizer, .loss = loss};
    const snug_plan_request request = {
        .batch = batch, .train = train, .budget_bytes = (size_t)budget};
    if (py_enter() < 0)
        return NULL;
    snug_status s =
        py_has_card() ? SNUG_OK : snug_engine_create(&(snug_engine_options){0}, &own, &err);
    engine = own ? own : py.engine;
    if (s == SNUG_OK)
        s = shapes ? snug_model_load_shaped(engine, path, shapes, &model, &err)
                   : snug_model_load(engine, path, &model, &err);
    if (s == SNUG_OK && (optimizer || loss))
        s = snug_model_compile(model, &compile, &err);
    if (s == SNUG_OK)
        s = report(model, &request, 0, &text, &err);
    if (s == SNUG_OK)
        s = report(model, &request, SNUG_REPORT_JSON, &json, &err);
    if (s == SNUG_OK && text && json)
        pair = PyTuple_Pack(2, text, json);
    else if (!PyErr_Occurred())
        py_raise(&err);
    Py_XDECREF(text);
    Py_XDECREF(json);
    if (model)
        snug_model_destroy(model);
    if (own)
        snug_engine_destroy(own);
    return pair;
}
