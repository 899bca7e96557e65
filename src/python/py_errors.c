/* py_errors.c: statuses of the library as exceptions. The classes live in snug/errors.py, which is
 * imported when the first error is raised. */
#include "py.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static const char *class_of(snug_status code) {
    static const char *const names[] = {
        [SNUG_E_INVALID] = "InvalidArgumentError",   [SNUG_E_SHAPE] = "InvalidArgumentError",
        [SNUG_E_UNSUPPORTED] = "UnimplementedError", [SNUG_E_MEMORY] = "ResourceExhaustedError",
        [SNUG_E_BUDGET] = "ResourceExhaustedError",  [SNUG_E_OVERFLOW] = "ResourceExhaustedError",
        [SNUG_E_FORMAT] = "DataLossError",           [SNUG_E_DATA] = "_DataError",
        [SNUG_E_NUMERIC] = "InvalidArgumentError",   [SNUG_E_IO] = "UnavailableError",
        [SNUG_E_INTERRUPTED] = "CancelledError",     [SNUG_E_TORN] = "AbortedError",
        [SNUG_E_INTERNAL] = "InternalError",         [SNUG_E_END] = "OutOfRangeError",
        [SNUG_E_DEVICE] = "InternalError",
    };
    return code > SNUG_OK && code <= SNUG_E_INTERNAL ? names[code] : "UnknownError";
}

/* Errors of files by what the system says; pictures are arguments, records are data. What a
 * function leaked has a class of its own. */
static const char *class_by_text(snug_status code, const char *text) {
    static const struct {
        snug_status code;
        const char *word, *name;
    } known[] = {{SNUG_E_INVALID, "of a trace is out of scope", "InaccessibleTensorError"},
                 {SNUG_E_IO, "No such file", "NotFoundError"},
                 {SNUG_E_IO, "Permission", "PermissionDeniedError"},
                 {SNUG_E_IO, "No space", "ResourceExhaustedError"},
                 {SNUG_E_FORMAT, "picture", "InvalidArgumentError"},
                 {SNUG_E_FORMAT, "cannot decode", "InvalidArgumentError"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code && strstr(text, known[i].word))
            return known[i].name;
    return class_of(code);
}

static PyObject *set(const char *name, PyObject *message) {
    PyObject *errors = message ? py_helper(&py.errors, "snug.errors") : NULL;
    PyObject *class = errors ? PyObject_GetAttrString(errors, name) : NULL;
    PyObject *value = class ? PyObject_CallFunction(class, "OOO", Py_None, Py_None, message) : NULL;
    if (value)
        PyErr_SetObject(class, value);
    Py_XDECREF(value);
    Py_XDECREF(class);
    Py_XDECREF(message);
    return NULL;
}

/* The text may quote a file's bytes, or be cut within a letter. */
PyObject *py_raise(const snug_error *err) {
    if (PyErr_Occurred()) /* a signal handler's, which stopped the run */
        return NULL;
    /* What a trace cannot do a run may: tf.function then runs the body. */
    if (err->code == SNUG_E_UNSUPPORTED && py.recorder && snug_is_tracing(py.recorder)) {
        PyErr_SetNone(py.peek);
        return NULL;
    }
    const char *const name = class_by_text(err->code, err->text);
    const bool by_shape = err->code == SNUG_E_INVALID || err->code == SNUG_E_SHAPE;
    const bool traced = by_shape && py.recorder && snug_is_tracing(py.recorder) &&
                        strcmp(name, "InvalidArgumentError") == 0;
    const bool by_dtype = strstr(err->text, "they must have one dtype");
    return set(!traced    ? name
               : by_dtype ? "_TracedTypeError"
                          : "_TracedError",
               PyUnicode_DecodeUTF8(err->text, (Py_ssize_t)strlen(err->text), "replace"));
}

PyObject *py_error(const char *name, const char *format, ...) {
    va_list list;
    va_start(list, format);
    PyObject *message = PyUnicode_FromFormatV(format, list);
    va_end(list);
    return set(name, message);
}
