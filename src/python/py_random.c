/* py_random.c: seeds and keys of the recorder, and where they stand. */
#include "py.h"

PyObject *py_set_seed(PyObject *self, PyObject *o) {
    (void)self;
    unsigned long long seed = PyLong_AsUnsignedLongLongMask(o);
    if (PyErr_Occurred() || py_enter() < 0)
        return NULL;
    snug_recorder_seed(py.recorder, seed);
    Py_RETURN_NONE;
}

PyObject *py_random_state(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    uint64_t seed, n;
    if (py_enter() < 0)
        return NULL;
    snug_recorder_tell_random(py.recorder, &seed, &n);
    return Py_BuildValue("(KK)", (unsigned long long)seed, (unsigned long long)n);
}

PyObject *py_set_random_state(PyObject *self, PyObject *args) {
    (void)self;
    unsigned long long seed, n;
    if (!PyArg_ParseTuple(args, "KK", &seed, &n) || py_enter() < 0)
        return NULL;
    snug_recorder_set_random(py.recorder, seed, n);
    Py_RETURN_NONE;
}

/* draw(), draw(operation, seed) */
PyObject *py_draw_key(PyObject *self, PyObject *args) {
    const char *op = NULL;
    long long seed = 0;
    int64_t key;
    snug_error err;
    (void)self;
    if (!PyArg_ParseTuple(args, "|sL", &op, &seed) || py_enter() < 0)
        return NULL;
    if (!op)
        return PyLong_FromLongLong(snug_recorder_draw(py.recorder));
    if (snug_recorder_draw_seeded(py.recorder, op, seed, &key, &err) != SNUG_OK)
        return py_raise(&err);
    return PyLong_FromLongLong(key);
}

/* set_place(number): whose operations with seeds come now. */
PyObject *py_set_place(PyObject *self, PyObject *o) {
    (void)self;
    const unsigned long long place = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred() || py_enter() < 0)
        return NULL;
    snug_recorder_set_place(py.recorder, place);
    Py_RETURN_NONE;
}

/* places(), places(n): how many there were; the next is number n. */
PyObject *py_places(PyObject *self, PyObject *args) {
    (void)self;
    unsigned long long n = 0;
    if (!PyArg_ParseTuple(args, "|K", &n) || py_enter() < 0)
        return NULL;
    const unsigned long long before = snug_recorder_tell_places(py.recorder);
    if (PyTuple_Size(args) > 0)
        snug_recorder_set_places(py.recorder, n);
    return PyLong_FromUnsignedLongLong(before);
}

/* sequences(): bytes of pairs of numbers. */
PyObject *py_sequences(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_enter() < 0)
        return NULL;
    const size_t n = snug_recorder_tell_sequences(py.recorder, NULL, 0);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * 2 * sizeof(uint64_t)));
    if (bytes)
        snug_recorder_tell_sequences(py.recorder, (uint64_t *)(void *)PyBytes_AsString(bytes), n);
    return bytes;
}

PyObject *py_set_sequences(PyObject *self, PyObject *bytes) {
    (void)self;
    char *at;
    Py_ssize_t n;
    snug_error err;
    if (PyBytes_AsStringAndSize(bytes, &at, &n) < 0 || py_enter() < 0)
        return NULL;
    if (snug_recorder_set_sequences(py.recorder, (const uint64_t *)(void *)at,
                                    (size_t)n / (2 * sizeof(uint64_t)), &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}
