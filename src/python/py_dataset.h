/* py_dataset.h: what py_dataset.c, py_iterator.c and py_program.c share. */
#ifndef SN_PYTHON_PY_DATASET_H
#define SN_PYTHON_PY_DATASET_H

#include "py.h"

snug_dataset *py_dataset_of(PyObject *o);   /* lent; NULL with TypeError */
PyObject *py_dataset_wrap(snug_dataset *d); /* takes the hold */
/* The exception that is set becomes an error, and is raised again by py_raise_kept when that error
 * comes back. */
snug_status py_keep_exception(snug_error *err);
PyObject *py_raise_kept(const snug_error *err);

PyObject *py_data_call(PyObject *self, PyObject *args);
PyObject *py_dataset_of_folder(PyObject *self, PyObject *args);
PyObject *py_tell_passes(PyObject *self, PyObject *seconds);
PyObject *py_draw_bars(PyObject *self, PyObject *on);
PyObject *py_data_functions(PyObject *self, PyObject *none);
PyObject *py_use_slots(PyObject *self, PyObject *class);
PyObject *py_is_capturing(PyObject *self, PyObject *none);
PyObject *py_set_capture(PyObject *self, PyObject *capture);

#endif
