/* py_module.c: the module snug._C: its one state, the engine and the recorder behind it, made when
 * something first needs them, and what Python asks of them as a whole: budget, memory, runs.
 *
 * Threads: one recorder serves all threads of the process, each with a recording of its own; the
 * GIL orders them. It is given up while a plan runs (begin_run to end_run); a thread that comes
 * meanwhile waits in py_enter, and tensors that die meanwhile wait in a list. A capsule in each
 * thread's dictionary holds its id and goes with the thread. */
#include "py.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

py_state py;

typedef struct py_dropped {
    snug_tensor *t;
    struct py_dropped *next;
} py_dropped;

/* Threads that are gone and whose place is not freed yet. */
typedef struct py_gone {
    uint64_t thread;
    struct py_gone *next;
} py_gone;

/* --- hooks of the recorder -------------------------------------------------------------------- */
static void begin_run(void *ctx) {
    (void)ctx;
    py.running = PyThread_get_thread_ident();
    py.runner = PyEval_SaveThread();
}

static void end_run(void *ctx) {
    (void)ctx;
    PyEval_RestoreThread(py.runner);
    py.runner = NULL;
    py.running = 0;
}

static int take_gil(void) {
    if (!py.runner)
        return 0;
    PyEval_RestoreThread(py.runner);
    py.runner = NULL;
    return 1;
}

static void give_gil(int taken) {
    if (taken)
        py.runner = PyEval_SaveThread();
}

static int interrupted(void *ctx) {
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    double s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (s - py.asked < 0.02)
        return 0;
    py.asked = s;
    int taken = take_gil();
    int stop = PyErr_CheckSignals() < 0;
    give_gil(taken);
    return stop;
}

/* "train.py:41" of a site, in Python: where code objects know their lines. */
static const char *site_line(void *ctx, uint64_t site, char *text, size_t size) {
    (void)ctx;
    if (!site)
        return NULL;
    int taken = take_gil();
    PyObject *type, *value, *trace, *said = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *code = (PyObject *)(uintptr_t)(site >> 16);
    PyObject *module = py_helper(&py.text, "snug._text");
    if (module)
        said = PyObject_CallMethod(module, "site", "Oi", code, (int)(site & 0xffff));
    const char *words = said ? PyUnicode_AsUTF8AndSize(said, NULL) : NULL;
    if (words) {
        strncpy(text, words, size - 1);
        text[size - 1] = 0;
    }
    Py_XDECREF(said);
    PyErr_Restore(type, value, trace);
    give_gil(taken);
    return words ? text : NULL;
}

static int collect(void *ctx) {
    (void)ctx;
    int taken = take_gil();
    Py_ssize_t n = PyGC_Collect();
    give_gil(taken);
    return n > 0;
}

/* --- sites ------------------------------------------------------------------------------------ */
/* A site is a code object and an offset in it, decoded only when an error names it; the code
 * object is held for as long as the process lives. Frames of Snug's own Python files are passed
 * over: the user's line is the one that counts. */
static int is_own(PyObject *code) {
    enum { N_KNOWN = 256 };
    static struct {
        PyObject *code;
        int own;
    } known[N_KNOWN];
    const size_t at = ((uintptr_t)code >> 5) % N_KNOWN;
    if (known[at].code == code)
        return known[at].own;
    PyObject *key = PyLong_FromVoidPtr(code), *name = PyObject_GetAttrString(code, "co_filename");
    const char *path = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const int own = path && py.folder[0] && strncmp(path, py.folder, strlen(py.folder)) == 0;
    if (key && PyDict_SetItem(py.codes, key, code) == 0) {
        known[at].code = code;
        known[at].own = own;
    }
    PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(name);
    return own;
}

static long offset_in(PyFrameObject *frame) {
    if (py.lasti)
        return py.lasti((PyObject *)frame);
    PyObject *n = PyObject_GetAttr((PyObject *)frame, py.str_lasti);
    const long lasti = n ? PyLong_AsLong(n) : 0;
    Py_XDECREF(n);
    PyErr_Clear();
    return lasti;
}

/* Where the interpreter stands in the code that called; the code lent, or NULL. */
PyObject *py_caller(long *lasti) {
    PyFrameObject *frame = PyEval_GetFrame();
    if (!frame) {
        PyErr_Clear();
        return NULL;
    }
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    *lasti = offset_in(frame);
    Py_DECREF(code); /* its frame is running */
    return code;
}

static void sit_again(void);

void py_mark_site(void) {
    sit_again();
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF((PyObject *)frame);
    for (int depth = 0; frame && depth < 64; depth++) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame); /* is_own keeps it */
        Py_DECREF(code);
        if (!is_own(code) || !py.back) {
            snug_recorder_set_site(py.recorder, ((uint64_t)(uintptr_t)code << 16) |
                                                    (uint64_t)(offset_in(frame) & 0xffff));
            break;
        }
        PyFrameObject *back = (PyFrameObject *)py.back((PyObject *)frame);
        Py_DECREF((PyObject *)frame);
        frame = back;
    }
    Py_XDECREF((PyObject *)frame);
    if (!frame)
        PyErr_Clear(); /* a message without a line is better than none */
}

/* --- forks ------------------------------------------------------------------------------------ */
/* A child has no thread but the one that forked: a plan that another thread runs would never end
 * there, a mutex that another thread has would never be free. So the fork waits for both, for a
 * while at least (others begin nothing then, py_enter), and keeps the interpreter. */
static struct {
    snug_engine *engine; /* whose mutexes are held */
    PyGILState_STATE gil;
    int has_gil;
} forking;

enum { FORK_WAITS_MS = 60000 };

static void before_fork(void) {
    forking.has_gil = Py_IsInitialized();
    if (forking.has_gil)
        forking.gil = PyGILState_Ensure();
    const unsigned long mine = PyThread_get_thread_ident();
    py.forking = mine;
    for (int ms = 0; forking.has_gil && py.running && py.running != mine && ms < FORK_WAITS_MS;
         ms++) {
        PyThreadState *me = PyEval_SaveThread();
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        PyEval_RestoreThread(me);
    }
    forking.engine = py.engine;
    snug_engine_before_fork(forking.engine);
}

static void after_fork(void) {
    snug_engine_after_fork(forking.engine);
    py.forking = 0;
    if (forking.has_gil)
        PyGILState_Release(forking.gil);
}

static void after_fork_in_child(void) {
    if (py.running != PyThread_get_thread_ident()) {
        py.running = 0;
        py.runner = NULL;
    }
    py.seated = NULL; /* it may have been another thread's */
    py_refusal_after_fork();
    after_fork();
}

static int listen_to_forks(void) {
    static int listens;
    if (!listens && pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    listens = 1;
    return 0;
}

/* --- engine and recorder ---------------------------------------------------------------------- */
static int make_engine(void) {
    snug_error err;
    if (listen_to_forks() < 0)
        return -1;
    snug_engine_options options = {0};
    if (snug_engine_create(&options, &py.engine, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    /* The interpreter makes bytes, too, be it none yet: its process varies by more. */
    (void)snug_set_aside(py.engine, 1);
    (void)snug_set_aside(py.engine, 0);
    if (py_open_device() < 0 || py_apply_wishes() < 0) {
        snug_engine_destroy(py.engine);
        py.engine = NULL;
        return -1;
    }
    py_listen_to_passes();
    return snug_budget_bytes(py.engine) > 0 ? py_guard() : 0;
}

static int start(void) {
    snug_error err;
    if (!py.engine && make_engine() < 0)
        return -1;
    if (snug_recorder_create(py.engine, &py.recorder, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    snug_recorder_hooks hooks = {NULL, site_line, interrupted, begin_run, end_run, collect};
    snug_recorder_set_hooks(py.recorder, &hooks);
    return 0;
}

static int wait_for_run(void) {
    if (py.running == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "tensors cannot be used from within a running plan");
        return -1;
    }
    while (py.running || (py.forking && py.forking != PyThread_get_thread_ident())) {
        PyThreadState *me = PyEval_SaveThread();
        nanosleep(&(struct timespec){0, 100000}, NULL);
        PyEval_RestoreThread(me);
    }
    return 0;
}

static void drop_waiting(void) {
    while (py.dropped) {
        py_dropped *d = py.dropped;
        py.dropped = d->next;
        snug_tensor_drop(d->t);
        PyMem_Free(d);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */
static void free_place(PyObject *capsule) {
    py_gone *gone = PyCapsule_GetPointer(capsule, "snug.thread");
    if (gone) {
        gone->next = py.gone;
        py.gone = gone;
    }
    py.seated = NULL;
}

/* The id that this thread has, or gets. */
static int find_thread(uint64_t *thread) {
    PyObject *dict = PyThreadState_GetDict();
    PyObject *found = dict ? PyDict_GetItemString(dict, "snug.thread") : NULL;
    if (!found && dict) {
        py_gone *mine = PyMem_Malloc(sizeof *mine);
        PyObject *made = mine ? PyCapsule_New(mine, "snug.thread", free_place) : NULL;
        if (!made)
            PyMem_Free(mine);
        else
            *mine = (py_gone){++py.n_threads, NULL};
        if (made && PyDict_SetItemString(dict, "snug.thread", made) == 0)
            found = made;
        Py_XDECREF(made); /* the dictionary has it, or it goes */
    }
    if (!found) {
        PyErr_NoMemory();
        return -1;
    }
    *thread = ((py_gone *)PyCapsule_GetPointer(found, "snug.thread"))->thread;
    return 0;
}

static int sit_down(void) {
    uint64_t thread;
    snug_error err;
    if (find_thread(&thread) < 0)
        return -1;
    if (snug_recorder_enter(py.recorder, thread, &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    py.seated = PyThreadState_Get();
    return py.guarded ? py_guard_arrays() : 0;
}

/* What threads that are gone have recorded happens now. */
static void clear_places(void) {
    for (py_gone **link = &py.gone; *link;) {
        py_gone *g = *link;
        if (snug_recorder_leave(py.recorder, g->thread)) {
            *link = g->next;
            PyMem_Free(g);
        } else {
            link = &g->next;
        }
    }
}

int py_enter(void) {
    if (!py.recorder && start() < 0)
        return -1;
    if ((py.running || py.forking) && wait_for_run() < 0)
        return -1;
    if (py.seated != PyThreadState_Get() && sit_down() < 0)
        return -1;
    if (py.dropped)
        drop_waiting();
    if (py.gone)
        clear_places();
    return 0;
}

/* Python code that ran since py_enter may have let another thread in. */
static void sit_again(void) {
    if (py.seated == PyThreadState_Get() && !py.running)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (py_enter() < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

void py_drop(snug_tensor *t) {
    if (!py.running) {
        snug_tensor_drop(t);
        return;
    }
    py_dropped *d = t ? PyMem_Malloc(sizeof *d) : NULL;
    if (d) { /* else it leaks: there is nobody to tell */
        *d = (py_dropped){t, py.dropped};
        py.dropped = d;
    }
}

PyObject *py_helper(PyObject **module, const char *name) {
    if (!*module)
        *module = PyImport_ImportModule(name);
    return *module;
}

/* --- what Python asks of the whole ------------------------------------------------------------ */
static int bytes_of(PyObject *o, size_t *bytes) {
    snug_error err;
    if (o == Py_None) {
        *bytes = 0;
        return 0;
    }
    if (PyLong_Check(o)) {
        *bytes = PyLong_AsSize_t(o);
        return PyErr_Occurred() ? -1 : 0;
    }
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text)
        return -1;
    if (snug_budget_parse(text, bytes, &err) != SNUG_OK) {
        PyErr_SetString(PyExc_ValueError, err.text);
        return -1;
    }
    return 0;
}

static PyObject *parse_budget(PyObject *self, PyObject *o) {
    (void)self;
    size_t bytes;
    return bytes_of(o, &bytes) < 0 ? NULL : PyLong_FromSize_t(bytes);
}

static PyObject *set_budget(PyObject *self, PyObject *o) {
    (void)self;
    size_t bytes;
    if (bytes_of(o, &bytes) < 0 || py_enter() < 0)
        return NULL;
    if (py_limit_host(bytes) < 0 || (bytes > 0 && py_guard() < 0))
        return NULL;
    return PyLong_FromSize_t(bytes);
}

/* open(): the engine, with its device and budgets, before anything is recorded. */
static PyObject *open_engine(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (!py.engine && make_engine() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *guard_arrays(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_guard_arrays() < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Objects of an import that was asked for took some of what is set aside for others. */
static PyObject *book_objects(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_book_objects() < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The newest refusal of NumPy's or the interpreter's wishes, once; None: none. */
static PyObject *refusal(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    char text[sizeof((snug_error *)0)->text];
    if (py_refusal(text, sizeof text))
        return PyUnicode_FromString(text);
    Py_RETURN_NONE;
}

/* reserve(bytes, n_plans): what the next plans leave of the budget. */
static PyObject *reserve(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t bytes;
    int n_plans;
    if (!PyArg_ParseTuple(args, "ni", &bytes, &n_plans) || py_enter() < 0)
        return NULL;
    (void)snug_recorder_reserve(py.recorder, (size_t)bytes, n_plans);
    Py_RETURN_NONE;
}

/* judge(on): steps are planned and not run. */
static PyObject *judge(PyObject *self, PyObject *on) {
    (void)self;
    const int judges = PyObject_IsTrue(on);
    if (judges < 0 || py_enter() < 0)
        return NULL;
    snug_recorder_judge(py.recorder, judges);
    Py_RETURN_NONE;
}

/* expect(n): so many slots of each variable come with an optimizer's first update. */
static PyObject *expect(PyObject *self, PyObject *n_slots) {
    (void)self;
    const long n = PyLong_AsLong(n_slots);
    if ((n == -1 && PyErr_Occurred()) || py_enter() < 0)
        return NULL;
    snug_recorder_expect(py.recorder, n < 16 ? (int)n : 16);
    Py_RETURN_NONE;
}

/* ask(bytes, what): ResourceExhaustedError where so many more do not fit the budget. */
static PyObject *ask(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t bytes;
    const char *what;
    if (!PyArg_ParseTuple(args, "ns", &bytes, &what) || py_ask((size_t)bytes, what) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_budget(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyLong_FromSize_t(py.engine ? snug_budget_bytes(py.engine) : 0);
}

static PyObject *set_spill(PyObject *self, PyObject *o) {
    (void)self;
    snug_error err;
    const char *folder = o == Py_None ? NULL : PyUnicode_AsUTF8AndSize(o, NULL);
    if ((!folder && o != Py_None) || py_enter() < 0)
        return NULL;
    if (snug_spill(py.engine, folder, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

/* With the owner's name: a block lends its own until it goes, as it may while objects are made. */
typedef struct {
    snug_memory_row row;
    char owner[96];
} memory_row;
enum { MAX_ROWS = 256 };

static size_t copy_rows(memory_row *out) {
    snug_memory_row rows[MAX_ROWS];
    size_t n = snug_engine_memory(py.engine, rows, MAX_ROWS);
    n = n < MAX_ROWS ? n : MAX_ROWS;
    for (size_t i = 0; i < n; i++) {
        out[i].row = rows[i];
        snprintf(out[i].owner, sizeof out[i].owner, "%s", rows[i].owner);
    }
    return n;
}

/* [(category, owner, bytes, peak)], sums first. */
static PyObject *memory_rows(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_enter() < 0)
        return NULL;
    memory_row *rows = PyMem_Malloc(MAX_ROWS * sizeof *rows);
    if (!rows)
        return PyErr_NoMemory();
    snug_recorder_info info;
    snug_recorder_tell(py.recorder, &info); /* lets go of what only waits */
    const size_t n = copy_rows(rows);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *row =
            Py_BuildValue("(ssnn)", rows[i].row.category, rows[i].owner,
                          (Py_ssize_t)rows[i].row.bytes, (Py_ssize_t)rows[i].row.peak_bytes);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    PyMem_Free(rows);
    return list;
}

static PyObject *engine_info(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_enter() < 0)
        return NULL;
    snug_recorder_info i;
    snug_recorder_tell(py.recorder, &i);
    return Py_BuildValue(
        "{s:n,s:n,s:n,s:K,s:K,s:K,s:d,s:n,s:n,s:n,s:n,s:n,s:n,s:z,s:L,s:n,s:n,s:d,s:d,s:i,s:n}",
        "budget_bytes", (Py_ssize_t)snug_budget_bytes(py.engine), "bytes",
        (Py_ssize_t)snug_engine_bytes(py.engine), "peak_bytes",
        (Py_ssize_t)snug_engine_peak_bytes(py.engine), "flushes", (unsigned long long)i.n_flushes,
        "hits", (unsigned long long)i.n_hits, "misses", (unsigned long long)i.n_misses,
        "plan_seconds", i.plan_seconds, "nodes", (Py_ssize_t)i.n_nodes, "plans",
        (Py_ssize_t)i.n_plans, "tensor_bytes", (Py_ssize_t)i.tensor_bytes, "variable_bytes",
        (Py_ssize_t)i.variable_bytes, "tape_bytes", (Py_ssize_t)i.tape_bytes, "arena_bytes",
        (Py_ssize_t)i.arena_bytes, "miss", i.miss, "slices", (long long)i.slices, "recomputed",
        (Py_ssize_t)i.recomputed, "spilled_bytes", (Py_ssize_t)i.spilled_bytes, "step_seconds",
        i.step_seconds, "plain_seconds", i.plain_seconds, "threads", snug_engine_threads(py.engine),
        "predicted_peak_bytes", (Py_ssize_t)i.predicted_peak_bytes);
}

static PyObject *sync_all(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    snug_error err;
    if (py_enter() < 0)
        return NULL;
    if (snug_sync(py.recorder, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *boundary(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    snug_error err;
    if (py_enter() < 0)
        return NULL;
    if (snug_boundary(py.recorder, &err) != SNUG_OK)
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *trim(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py_enter() < 0)
        return NULL;
    snug_recorder_trim(py.recorder);
    Py_RETURN_NONE;
}

static PyObject *is_tracing(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (py.recorder && py_enter() < 0)
        return NULL;
    return PyBool_FromLong(py.recorder && snug_is_tracing(py.recorder));
}

static PyObject *is_started(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyBool_FromLong(py.recorder != NULL);
}

/* refuse(n, for_good=False): for tests; whether a request of memory was refused since. */
static PyObject *refuse(PyObject *self, PyObject *args) {
    (void)self;
    long long n;
    int for_good = 0;
    if (!PyArg_ParseTuple(args, "L|p", &n, &for_good) || py_enter() < 0)
        return NULL;
    return PyBool_FromLong(snug_engine_refuse(py.engine, n, for_good));
}

static PyMethodDef methods[] = {
    {"refuse", refuse, METH_VARARGS, "refuse(n): the n-th request of memory fails, for tests."},
    {"budget", set_budget, METH_O, "Sets the budget: bytes, text or None."},
    {"read_part", py_read_part, METH_VARARGS, "Bytes of some elements: (tensor, first, n)."},
    {"retype_dlpack", py_retype_dlpack, METH_VARARGS, "(capsule, from, to) of two bytes' kind."},
    {"open", open_engine, METH_NOARGS, "Makes the engine."},
    {"reserve", reserve, METH_VARARGS, "reserve(bytes, n_plans): what plans leave."},
    {"judge", judge, METH_O, "judge(on): steps are planned and not run."},
    {"expect", expect, METH_O, "expect(n): slots of each variable that an update will make."},
    {"ask", ask, METH_VARARGS, "ask(bytes, what): whether so many more fit the budget."},
    {"guard_arrays", guard_arrays, METH_NOARGS, "NumPy is there now: its arrays ask the budget."},
    {"book_objects", book_objects, METH_NOARGS, "What is set aside for objects is whole again."},
    {"refusal", refusal, METH_NOARGS, "What the budget said to NumPy or the interpreter, once."},
    {"parse_budget", parse_budget, METH_O, "Bytes of a budget's text."},
    {"plan", py_plan, METH_VARARGS, "The verdict on a step of a model in a file."},
    {"budget_bytes", get_budget, METH_NOARGS, "The budget in bytes; 0: none."},
    {"spill", set_spill, METH_O, "Sets the folder for what does not fit otherwise."},
    {"memory", memory_rows, METH_NOARGS, "Rows of the ledger: (category, owner, bytes, peak)."},
    {"info", engine_info, METH_NOARGS, "Counters of the recorder."},
    {"sync", sync_all, METH_NOARGS, "Runs all that is recorded."},
    {"boundary", boundary, METH_NOARGS, "Runs what assignments wait for."},
    {"trim", trim, METH_NOARGS, "Gives plans and the arena back."},
    {"seed", py_set_seed, METH_O, "Starts the random keys anew."},
    {"draw", py_draw_key, METH_VARARGS, "The next random key; or of an operation and its seed."},
    {"set_place", py_set_place, METH_O, "Seeds of operations count here now; 0: nowhere."},
    {"places", py_places, METH_VARARGS, "Of operations with seeds in traces."},
    {"sequences", py_sequences, METH_NOARGS, "Where operations with seeds stand."},
    {"set_sequences", py_set_sequences, METH_O, "Back there."},
    {"random_state", py_random_state, METH_NOARGS, "Where the random keys stand: (seed, number)."},
    {"set_random_state", py_set_random_state, METH_VARARGS, "Back there."},
    {"is_started", is_started, METH_NOARGS, "Whether the engine is there."},
    {"is_tracing", is_tracing, METH_NOARGS, "Whether a trace is open."},
    {NULL, NULL, 0, NULL},
};

/* --- making the module ------------------------------------------------------------------------ */
/* Where Snug's Python files are. */
static void take_folder(PyObject *module) {
    PyObject *file = PyObject_GetAttrString(module, "__file__");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    const char *end = path ? strrchr(path, '/') : NULL;
    if (end && (size_t)(end - path) + 2 < sizeof py.folder)
        memcpy(py.folder, path, (size_t)(end - path) + 1);
    PyErr_Clear();
    Py_XDECREF(file);
}

static int take_dtypes(void) {
    PyObject *types = PyImport_ImportModule("snug._types");
    if (!types)
        return -1;
    py.dtype_class = PyObject_GetAttrString(types, "DType");
    py.shape_class = PyObject_GetAttrString(types, "TensorShape");
    py.peek = PyObject_GetAttrString(types, "Peek");
    py.make_variable = PyObject_GetAttrString(types, "MakesVariable");
    PyObject *all = PyObject_GetAttrString(types, "OF_ENGINE");
    take_folder(types);
    PyObject *names = PyObject_GetAttrString(types, "BY_NAME");
    py.string = names ? PyMapping_GetItemString(names, "string") : NULL;
    Py_XDECREF(names);
    Py_DECREF(types);
    for (int i = 0; all && i < SNUG_OPAQUE; i++) {
        py.dtypes[i] = PySequence_GetItem(all, i);
        if (!py.dtypes[i])
            break;
    }
    Py_XDECREF(all);
    return PyErr_Occurred() ? -1 : 0;
}

static int take_symbols(void) {
    const char *version = Py_GetVersion(); /* "3.11.2 (main, ...)" */
    py.counts_names = strncmp(version, "3.", 2) == 0 && atoi(version + 2) < 14;
    py.str_code = PyUnicode_InternFromString("_code");
    py.str_lasti = PyUnicode_InternFromString("f_lasti");
    py.str_array = PyUnicode_InternFromString("__array__");
    py.codes = PyDict_New();
    py.variables = PyDict_New();
    *(void **)&py.lasti = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    *(void **)&py.back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    return py.str_code && py.str_lasti && py.str_array && py.codes && py.variables ? 0 : -1;
}

static int add_type(PyObject *module, PyTypeObject **slot, PyTypeObject *(*make)(PyObject *)) {
    *slot = make(module);
    return *slot && PyModule_AddType(module, *slot) == 0 ? 0 : -1;
}

static int fill_module(PyObject *module) {
    if (py.tensor) {
        PyErr_SetString(PyExc_ImportError, "snug._C serves one interpreter of a process");
        return -1;
    }
    if (take_symbols() < 0 || take_dtypes() < 0 ||
        add_type(module, &py.tensor, py_make_tensor_type) < 0 ||
        add_type(module, &py.variable, py_make_variable_type) < 0 ||
        add_type(module, &py.tape, py_make_tape_type) < 0 ||
        add_type(module, &py.trace, py_make_trace_type) < 0 ||
        add_type(module, &py.program, py_make_program_type) < 0 ||
        add_type(module, &py.dataset, py_make_dataset_type) < 0 ||
        add_type(module, &py.iterator, py_make_iterator_type) < 0 ||
        add_type(module, &py.writer, py_make_writer_type) < 0 ||
        add_type(module, &py.whole, py_make_whole_type) < 0 ||
        add_type(module, &py.tensors, py_make_tensors_type) < 0 ||
        add_type(module, &py.checkpoint, py_make_checkpoint_type) < 0 ||
        add_type(module, &py.checkpoint_writer, py_make_checkpoint_writer_type) < 0)
        return -1;
    if (PyModule_AddFunctions(module, py_function_methods) < 0 ||
        PyModule_AddFunctions(module, py_constant_methods) < 0 ||
        PyModule_AddFunctions(module, py_dataset_methods) < 0 ||
        PyModule_AddFunctions(module, py_pipeline_methods) < 0 ||
        PyModule_AddFunctions(module, py_device_methods) < 0 || py_keras_add(module) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "version", snug_version());
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_module}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "snug._C", .m_methods = methods,
                                 .m_slots = slots};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void) {
    return PyModuleDef_Init(&definition);
}
