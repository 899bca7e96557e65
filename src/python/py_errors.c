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

/* Pictures are arguments, records are data. */
static const char *class_by_cause(const snug_error *err) {
    static const char *const names[] = {
        [SNUG_CAUSE_MISSING] = "NotFoundError",
        [SNUG_CAUSE_DENIED] = "PermissionDeniedError",
        [SNUG_CAUSE_FOLDER] = "FailedPreconditionError",
        [SNUG_CAUSE_DISK_FULL] = "ResourceExhaustedError",
        [SNUG_CAUSE_MEDIA] = "InvalidArgumentError",
        [SNUG_CAUSE_OUT_OF_TRACE] = "InaccessibleTensorError",
    };
    const size_t i = (size_t)err->cause;
    const char *name = i < sizeof names / sizeof *names ? names[i] : NULL;
    return name ? name : class_of(err->code);
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
    const char *const name = class_by_cause(err);
    const bool by_shape = err->code == SNUG_E_INVALID || err->code == SNUG_E_SHAPE;
    const bool traced = by_shape && py.recorder && snug_is_tracing(py.recorder) &&
                        err->cause != SNUG_CAUSE_OUT_OF_TRACE;
    return set(!traced                           ? name
               : err->cause == SNUG_CAUSE_DTYPES ? "_TracedTypeError"
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
