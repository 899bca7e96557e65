/* py_files.c: files of data sets: TFRecord files are written, folders of pictures listed; lines
 * about passes that take long, as TensorFlow logs them while it fills a shuffle's buffer; files
 * that Python writes and that appear whole; the tensors of a safetensors file. */
#include "py_dataset.h"

#include <snug/model.h>

#include <stdlib.h>
#include <string.h>

/* --- long passes ------------------------------------------------------------------------------ */
/* From any thread; nobody waits for one with the interpreter's lock. What fills a cache in fit
 * shows in its bar. */
static void tell_pass(void *ctx, const snug_pass *p) {
    (void)ctx;
    const int now = (int)p->seconds, each = py.pass_seconds;
    const int due = each > 0 && !p->over && now >= py.pass_printed + each;
    const int hidden = py.pass_bars && p->kind == SNUG_PASS_CACHE;
    if (p->over || due)
        py.pass_printed = p->over ? 0 : now;
    if (!due || hidden)
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (p->all > 0)
        PySys_FormatStderr("snug: %s: %lld of %lld\n", p->what, (long long)p->done,
                           (long long)p->all);
    else
        PySys_FormatStderr("snug: %s: %lld\n", p->what, (long long)p->done);
    PyGILState_Release(gil);
}

void py_listen_to_passes(void) {
    const char *level = getenv("TF_CPP_MIN_LOG_LEVEL"); /* 1 and more: no information */
    py.pass_seconds = level && level[0] > '0' ? 0 : 10;
    snug_pipeline_progress(py.engine, 1, tell_pass, NULL);
}

PyObject *py_tell_passes(PyObject *self, PyObject *seconds) {
    (void)self;
    const long n = PyLong_AsLong(seconds);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    if (py_enter() < 0)
        return NULL;
    if (n < 0 || n > 86400) {
        PyErr_SetString(PyExc_ValueError, "seconds between two lines; 0: none");
        return NULL;
    }
    py.pass_seconds = (int)n;
    Py_RETURN_NONE;
}

PyObject *py_draw_bars(PyObject *self, PyObject *on) {
    (void)self;
    const int yes = PyObject_IsTrue(on);
    if (yes < 0)
        return NULL;
    py.pass_bars = yes;
    Py_RETURN_NONE;
}

/* --- folders ---------------------------------------------------------------------------------- */
/* Listing many files takes a while: Ctrl-C stops it. */
static int stopped(void *ctx, int64_t files) {
    (void)ctx, (void)files;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const int stop = PyErr_CheckSignals() < 0;
    if (stop)
        (void)py_keep_exception(NULL);
    PyGILState_Release(gil);
    return stop;
}

/* The numbers of a list, to be freed. */
static int32_t *labels_of(PyObject *list, Py_ssize_t *n) {
    *n = PyList_Size(list);
    int32_t *labels = *n < 0 ? NULL : PyMem_Calloc((size_t)*n + 1, sizeof *labels);
    for (Py_ssize_t i = 0; labels && i < *n; i++)
        labels[i] = (int32_t)PyLong_AsLong(PyList_GetItem(list, i));
    if (labels && PyErr_Occurred()) {
        PyMem_Free(labels);
        labels = NULL;
    }
    return labels;
}

static int texts_of(PyObject *list, const char **out, int max) {
    const Py_ssize_t n = PyList_Size(list);
    if (n > max)
        PyErr_Format(PyExc_ValueError, "%zd classes; at most %d can be named", n, max);
    for (Py_ssize_t i = 0; i < n && n <= max; i++)
        if (!(out[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL)))
            return -1;
    return PyErr_Occurred() ? -1 : (int)n;
}

static PyObject *list_folder(snug_folder *f) {
    snug_folder_info info;
    snug_dataset *d;
    snug_error err;
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_dataset_from_folder(py.engine, f, &d, &info, &err);
    PyEval_RestoreThread(thread);
    if (status != SNUG_OK)
        return py_raise_kept(&err);
    PyObject *classes = info.n_classes > 0 ? py_part_numpy(&info.classes) : PyTuple_New(0);
    PyObject *made = py_dataset_wrap(d);
    PyObject *all =
        classes && made ? Py_BuildValue("(OOL)", made, classes, (long long)info.n_files) : NULL;
    Py_XDECREF(classes);
    Py_XDECREF(made);
    return all;
}

/* dataset_of_folder(path, kind, labels, classes, shuffle, seed, split, subset, links): the dataset
 * of names and labels, the classes' names, how many files there are. */
PyObject *py_dataset_of_folder(PyObject *self, PyObject *args) {
    (void)self;
    enum { MAX_CLASSES = 1024 };
    snug_folder f = {.progress = stopped};
    PyObject *labels, *classes, *made = NULL;
    int kind, subset;
    const char *names[MAX_CLASSES];
    if (!PyArg_ParseTuple(args, "siOOiIdii", &f.path, &kind, &labels, &classes, &f.shuffle, &f.seed,
                          &f.validation_split, &subset, &f.follow_links) ||
        py_enter() < 0)
        return NULL;
    f.kind = (snug_folder_labels)kind;
    f.subset = (snug_subset)subset;
    if (classes != Py_None) {
        f.n_classes = texts_of(classes, names, MAX_CLASSES);
        f.classes = names;
    }
    Py_ssize_t n = 0;
    int32_t *own = labels == Py_None ? NULL : labels_of(labels, &n);
    f.labels = own;
    f.n_labels = n;
    if (!PyErr_Occurred())
        made = list_folder(&f);
    PyMem_Free(own);
    return made;
}

/* --- records ---------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_record_writer *w;
} py_writer;

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_record_writer_destroy(((py_writer *)o)->w);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* RecordWriter(path, compression) */
static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    const char *path;
    int compression;
    snug_error err;
    if (!PyArg_ParseTuple(args, "si", &path, &compression) || py_enter() < 0)
        return NULL;
    py_writer *me = PyObject_New(py_writer, type);
    if (!me)
        return NULL;
    me->w = NULL;
    if (snug_record_writer_create(py.engine, path, (snug_compression)compression, &me->w, &err) !=
        SNUG_OK) {
        Py_DECREF(me);
        return py_raise(&err);
    }
    return (PyObject *)me;
}

static PyObject *write_record(PyObject *self, PyObject *bytes) {
    py_writer *me = (py_writer *)self;
    char *data;
    Py_ssize_t n;
    snug_error err;
    if (PyBytes_AsStringAndSize(bytes, &data, &n) < 0)
        return NULL;
    if (!me->w)
        return PyErr_Format(PyExc_ValueError, "the writer is closed");
    if (snug_record_write(me->w, data, (size_t)n, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *close_writer(PyObject *self, PyObject *none) {
    (void)none;
    py_writer *me = (py_writer *)self;
    snug_error err;
    snug_record_writer *w = me->w;
    me->w = NULL;
    if (w && snug_record_writer_close(w, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"write", write_record, METH_O, "Appends a record."},
    {"close", close_writer, METH_NOARGS, "The file is there then."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_writer_type(PyObject *module) {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {Py_tp_new, new}, {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.RecordWriter",
                        .basicsize = sizeof(py_writer),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --- files that are whole or not there -------------------------------------------------------- */
typedef struct {
    PyObject_HEAD snug_file *file;
} py_whole;

static void dealloc_whole(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_file_destroy(((py_whole *)o)->file);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* WholeFile(path) */
static PyObject *new_whole(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *path;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    py_whole *me = py_enter() < 0 ? NULL : PyObject_New(py_whole, type);
    if (me) {
        me->file = NULL;
        if (snug_file_create(py.engine, PyBytes_AsString(path), &me->file, &err) != SNUG_OK) {
            Py_CLEAR(me);
            (void)py_raise(&err);
        }
    }
    Py_DECREF(path);
    return (PyObject *)me;
}

static PyObject *whole_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_DecodeFSDefault(snug_file_name(((py_whole *)self)->file));
}

/* Syncing takes a while: other threads run meanwhile. */
static PyObject *commit_whole(PyObject *self, PyObject *none) {
    (void)none;
    py_whole *me = (py_whole *)self;
    snug_error err;
    snug_file *file = me->file;
    me->file = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const snug_status status = snug_file_commit(file, &err);
    snug_file_destroy(file);
    PyEval_RestoreThread(thread);
    if (status != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *discard_whole(PyObject *self, PyObject *none) {
    (void)none;
    py_whole *me = (py_whole *)self;
    snug_file_destroy(me->file);
    me->file = NULL;
    Py_RETURN_NONE;
}

static PyMethodDef whole_methods[] = {
    {"commit", commit_whole, METH_NOARGS, "Synced and renamed: the file is there then."},
    {"discard", discard_whole, METH_NOARGS, "Nothing is left of it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef whole_getset[] = {
    {"name", whole_name, NULL, "Where to write it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject *py_make_whole_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc_whole},
                           {Py_tp_methods, whole_methods},
                           {Py_tp_getset, whole_getset},
                           {Py_tp_new, new_whole},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.WholeFile",
                        .basicsize = sizeof(py_whole),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --- safetensors ------------------------------------------------------------------------------ */
typedef struct {
    PyObject_HEAD snug_safetensors *file;
} py_tensors;

static void dealloc_tensors(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    snug_safetensors_close(((py_tensors *)o)->file);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* Safetensors(path, most) */
static PyObject *new_tensors(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *path;
    Py_ssize_t most;
    snug_error err;
    if (!PyArg_ParseTuple(args, "O&n", PyUnicode_FSConverter, &path, &most))
        return NULL;
    py_tensors *me = py_enter() < 0 ? NULL : PyObject_New(py_tensors, type);
    if (me) {
        me->file = NULL;
        if (snug_safetensors_open(py.engine, PyBytes_AsString(path), (size_t)most, &me->file,
                                  &err) != SNUG_OK) {
            Py_CLEAR(me);
            (void)py_raise(&err);
        }
    }
    Py_DECREF(path);
    return (PyObject *)me;
}

PyObject *py_named_type(const char *name, const snug_type *type) {
    PyObject *dims = PyTuple_New(type->rank);
    for (int k = 0; dims && k < type->rank; k++) {
        PyObject *n = PyLong_FromLongLong(type->dims[k]);
        if (!n || PyTuple_SetItem(dims, k, n) < 0)
            Py_CLEAR(dims);
    }
    return dims ? Py_BuildValue("(ssN)", name, py_dtype_word(type->dtype), dims) : NULL;
}

static PyObject *tensor_row(const snug_safetensors *file, size_t i) {
    const char *name;
    snug_type type;
    snug_error err;
    if (snug_safetensors_at(file, i, &name, &type, &err) != SNUG_OK)
        return py_raise(&err);
    return py_named_type(name, &type);
}

/* rows(): [(name, dtype, dims)] */
static PyObject *tensor_rows(PyObject *self, PyObject *none) {
    (void)none;
    const snug_safetensors *file = ((py_tensors *)self)->file;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snug_safetensors_count(file); i++) {
        PyObject *row = tensor_row(file, i);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* read(number, dtype, array): into an array of as many bytes, which is contiguous. */
static PyObject *read_tensor(PyObject *self, PyObject *args) {
    snug_safetensors *file = ((py_tensors *)self)->file;
    Py_ssize_t i;
    PyObject *array, *dtype;
    Py_buffer b;
    snug_view view = {.data = NULL};
    snug_dtype wanted;
    size_t bytes = 0;
    snug_error err;
    if (!PyArg_ParseTuple(args, "nOO", &i, &dtype, &array) || py_dtype(dtype, &wanted) < 0)
        return NULL;
    if (snug_safetensors_at(file, i < 0 ? SIZE_MAX : (size_t)i, NULL, &view.type, &err) != SNUG_OK)
        return py_raise(&err);
    view.type.dtype = wanted;
    if (PyObject_GetBuffer(array, &b, PyBUF_WRITABLE) < 0)
        return NULL;
    view.data = b.buf;
    const Py_ssize_t n = b.len;
    snug_status status = snug_type_bytes(&view.type, &bytes, &err);
    view.bytes = bytes;
    if (status == SNUG_OK && bytes == (size_t)n)
        status = snug_safetensors_read(file, (size_t)i, &view, &err);
    PyBuffer_Release(&b);
    if (status != SNUG_OK)
        return py_raise(&err);
    if (bytes != (size_t)n)
        return PyErr_Format(PyExc_ValueError, "an array of %zd bytes for a tensor of %zu", n,
                            bytes);
    Py_RETURN_NONE;
}

static PyMethodDef tensors_methods[] = {
    {"rows", tensor_rows, METH_NOARGS, "[(name, dtype, dims)]"},
    {"read", read_tensor, METH_VARARGS, "Into an array: (number, dtype, array)."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *py_make_tensors_type(PyObject *module) {
    PyType_Slot slots[] = {{Py_tp_dealloc, dealloc_tensors},
                           {Py_tp_methods, tensors_methods},
                           {Py_tp_new, new_tensors},
                           {0, NULL}};
    PyType_Spec spec = {.name = "snug._C.Safetensors",
                        .basicsize = sizeof(py_tensors),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
