/* py_kept.c: exceptions on their way through the library: what a function of the user's raised is
 * an error there, and is raised again where that error comes out. */
#include "py_dataset.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Workers of a map may fail at the same time: the error that comes first in the stream's order
 * finds its own exception by its number. */
enum { MAX_KEPT = 16 };
static struct {
    PyObject *exception[MAX_KEPT]; /* number n in place n % MAX_KEPT */
    int newest;                    /* numbers begin at 1 */
} kept;

/* "ValueError: what it says". */
static void describe(PyObject *value, snug_error *err) {
    PyObject *name = value ? PyType_GetName(Py_TYPE(value)) : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("%U: %S", name, value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    *err = (snug_error){.code = SNUG_E_DATA, .cause = SNUG_CAUSE_CALLER, .number = kept.newest};
    strncpy(err->text, words ? words : "an exception", sizeof err->text - 1);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(text);
}

snug_status py_keep_exception(snug_error *err) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    kept.newest = kept.newest < INT_MAX ? kept.newest + 1 : 1;
    PyObject **place = &kept.exception[kept.newest % MAX_KEPT], *old = *place;
    *place = value;
    if (err)
        describe(value, err);
    Py_XDECREF(old);
    return SNUG_E_DATA;
}

/* The exception behind an error, to own; older ones go with it: exceptions hold frames, and those
 * hold tensors. */
static PyObject *take_kept(const snug_error *err) {
    const bool stopped = err->code == SNUG_E_INTERRUPTED; /* by a signal's handler */
    const int number = stopped ? kept.newest : err->cause == SNUG_CAUSE_CALLER ? err->number : 0;
    if (number < 1 || number > kept.newest || number <= kept.newest - MAX_KEPT)
        return NULL;
    PyObject *found = kept.exception[number % MAX_KEPT];
    Py_XINCREF(found);
    for (int n = number; found && n > kept.newest - MAX_KEPT; n--)
        if (n > 0)
            Py_CLEAR(kept.exception[n % MAX_KEPT]);
    return found;
}

PyObject *py_raise_kept(const snug_error *err) {
    PyObject *value = take_kept(err);
    if (!value)
        return py_raise(err);
    PyObject *module = PyImport_ImportModule("snug.data");
    PyObject *as = module ? PyObject_CallMethod(module, "_as_error", "O", value) : NULL;
    if (as)
        PyErr_SetObject((PyObject *)Py_TYPE(as), as);
    Py_XDECREF(as);
    Py_XDECREF(module);
    Py_DECREF(value);
    return NULL;
}
