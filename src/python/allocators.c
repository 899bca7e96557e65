/* allocators.c: what NumPy and the interpreter allocate asks the budget first. Once there is one:
 *
 *     NumPy's arrays      its handler (NEP 49, from NumPy 1.22 on): from LARGE on taken from the
 *                         engine, so that what is resident of them is measured; smaller ones by the
 *                         handler there was
 *     large objects       bytes, lists, texts: PyMem_SetAllocator's raw domain, wrapped: looked at
 *                         when LEASE bytes were taken since the last look
 *     small objects       PyObject_SetArenaAllocator, wrapped: each arena is asked for, and all of
 *                         it is there at once, so that using it is no growth. One waits in reserve
 *                         from the first: the interpreter can go on where a plan has the rest
 *
 * A refusal is NULL there: NumPy and the interpreter make a MemoryError of it. What the budget said
 * is kept (py_refusal). What other libraries allocate by themselves is seen by the next look only.
 *
 * Invariants:
 * 1. What lies in front of an array's bytes says who gave them: NumPy's word for their size is not
 *    needed, and arrays of before go back to the handler that gave them.
 * 2. The engine stays for as long as the process. */
#include "py.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LARGE  ((size_t)64 << 10)
#define LEASE  ((size_t)64 << 10)
#define BESIDE ((size_t)512 << 10)
#define ARENA  ((size_t)1 << 20) /* as the interpreter has them since 3.10 */
#define PAGE   ((size_t)4096)
/* From here on the C library moves a mapping instead of copying it; what grows does so by an
 * eighth. */
#define MOVED   ((size_t)32 << 20)
#define GROWTH  8
#define ALIGNED 64

/* --- asking ----------------------------------------------------------------------------------- */
static struct {
    atomic_flag busy;
    char text[sizeof((snug_error *)0)->text];
} refused = {.busy = ATOMIC_FLAG_INIT};

static void note(const snug_error *err) {
    if (atomic_flag_test_and_set(&refused.busy))
        return; /* another thread writes one */
    memcpy(refused.text, err->text, sizeof refused.text);
    atomic_flag_clear(&refused.busy);
}

int py_refusal(char *text, size_t size) {
    while (atomic_flag_test_and_set(&refused.busy))
        continue;
    const int any = refused.text[0] != 0;
    snprintf(text, size, "%s", refused.text);
    refused.text[0] = 0;
    atomic_flag_clear(&refused.busy);
    return any;
}

static int may_have(size_t bytes, const char *what) {
    snug_error err;
    if (!py.engine || snug_ask(py.engine, bytes, what, &err) == SNUG_OK)
        return 1;
    note(&err);
    return 0;
}

int py_ask(size_t bytes, const char *what) {
    snug_error err;
    if (!py.engine || snug_ask(py.engine, bytes, what, &err) == SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

/* --- NumPy ------------------------------------------------------------------------------------ */
/* As numpy/ndarraytypes.h has them. */
typedef struct {
    void *ctx;
    void *(*take)(void *ctx, size_t bytes);
    void *(*take_zeros)(void *ctx, size_t n, size_t bytes);
    void *(*resize)(void *ctx, void *block, size_t bytes);
    void (*give)(void *ctx, void *block, size_t bytes);
} array_allocator;

typedef struct {
    char name[127];
    uint8_t version;
    array_allocator allocator;
} array_handler;

/* In front of an array's bytes. */
typedef struct {
    size_t bytes; /* of the array */
    size_t from_engine;
} front;
_Static_assert(sizeof(front) == 16, "the C library's alignment is kept");

static array_allocator before; /* of NumPy's own */

static front *front_of(void *block) {
    return (front *)block - 1;
}

static void *put_front(void *base, size_t offset, size_t bytes, size_t from_engine) {
    void *block = (char *)base + offset;
    *front_of(block) = (front){bytes, from_engine};
    return block;
}

/* Arrays of some size leave a little for what grows without asking. */
static snug_status take(size_t bytes, int zeros, void **out, snug_error *err) {
    if (bytes >= ARENA) {
        const snug_status status = snug_ask(py.engine, bytes + BESIDE, "of NumPy", err);
        if (status != SNUG_OK)
            return status;
    }
    return zeros ? snug_take_zeros(py.engine, bytes, out, err)
                 : snug_take(py.engine, bytes, out, err);
}

static void *take_large(size_t bytes, int zeros) {
    snug_error err;
    void *base;
    if (bytes > SIZE_MAX - ALIGNED)
        return NULL;
    snug_status status = take(bytes + ALIGNED, zeros, &base, &err);
    if (status == SNUG_E_BUDGET && py.recorder && !py.running) {
        snug_recorder_trim(py.recorder); /* plans and the arena are made anew when needed */
        status = take(bytes + ALIGNED, zeros, &base, &err);
    }
    if (status == SNUG_OK)
        return put_front(base, ALIGNED, bytes, 1);
    note(&err);
    return NULL;
}

static void *array_take(void *ctx, size_t bytes) {
    (void)ctx;
    if (bytes >= LARGE)
        return take_large(bytes, 0);
    void *base = before.take(before.ctx, bytes + sizeof(front));
    return base ? put_front(base, sizeof(front), bytes, 0) : NULL;
}

static void *array_take_zeros(void *ctx, size_t n, size_t bytes) {
    (void)ctx;
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all))
        return NULL;
    if (all >= LARGE)
        return take_large(all, 1);
    void *base = before.take_zeros(before.ctx, 1, all + sizeof(front));
    return base ? put_front(base, sizeof(front), all, 0) : NULL;
}

static void array_give(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    if (!block)
        return;
    const front f = *front_of(block);
    if (f.from_engine)
        snug_give(py.engine, (char *)block - ALIGNED, f.bytes + ALIGNED);
    else
        before.give(before.ctx, front_of(block), f.bytes + sizeof(front));
}

static void *array_resize(void *ctx, void *block, size_t bytes) {
    const size_t old = block ? front_of(block)->bytes : 0;
    void *made = array_take(ctx, bytes);
    if (!made)
        return NULL;
    if (block)
        memcpy(made, block, old < bytes ? old : bytes);
    array_give(ctx, block, old);
    return made;
}

static array_handler handler = {
    .name = "snug",
    .version = 1,
    .allocator = {NULL, array_take, array_take_zeros, array_resize, array_give},
};

/* NumPy's table of functions; NULL: it is not there, or too old to have handlers. */
static void **numpy_table(void) {
    enum { FEATURES = 211, LEAST = 0xf };
    PyObject *modules = PyImport_GetModuleDict(), *umath = NULL;
    static const char *const names[] = {"numpy._core._multiarray_umath",
                                        "numpy.core._multiarray_umath"};
    for (size_t i = 0; i < 2 && !umath; i++)
        umath = modules ? PyDict_GetItemString(modules, names[i]) : NULL;
    PyObject *capsule = umath ? PyObject_GetAttrString(umath, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    unsigned (*features)(void) = NULL;
    if (table)
        memcpy(&features, &table[FEATURES], sizeof features);
    return features && features() >= LEAST ? table : NULL;
}

static array_handler *handler_in(PyObject *capsule) {
    return capsule ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
}

/* The handler is one of a context, so each thread sets it. */
int py_guard_arrays(void) {
    enum { SET = 304, GET = 305 };
    static PyObject *own;
    PyObject *(*set)(PyObject *) = NULL, *(*get)(void) = NULL;
    void **table = py.guarded ? numpy_table() : NULL;
    if (!table)
        return 0;
    memcpy(&set, &table[SET], sizeof set);
    memcpy(&get, &table[GET], sizeof get);
    PyObject *now = get();
    array_handler *there = handler_in(now);
    int bad = !there;
    if (there && there != &handler) {
        if (!own) {
            before = there->allocator;
            own = PyCapsule_New(&handler, "mem_handler", NULL);
        }
        PyObject *old = own ? set(own) : NULL;
        bad = !old;
        Py_XDECREF(old);
    }
    Py_XDECREF(now);
    return bad ? -1 : 0;
}

/* --- the interpreter -------------------------------------------------------------------------- */
/* As Include/cpython has them. */
typedef struct {
    void *ctx;
    void *(*take)(void *ctx, size_t bytes);
    void *(*take_zeros)(void *ctx, size_t n, size_t bytes);
    void *(*resize)(void *ctx, void *block, size_t bytes);
    void (*give)(void *ctx, void *block);
} object_allocator;

typedef struct {
    void *ctx;
    void *(*take)(void *ctx, size_t bytes);
    void (*give)(void *ctx, void *arena, size_t bytes);
} arena_allocator;

static object_allocator raw;
static arena_allocator arenas;
static _Atomic size_t unseen; /* bytes taken since the last look */

/* Beside it there is room for what nobody asks for: code that is touched for the first time, what a
 * message about the refusal needs. */
static int may_have_object(size_t bytes) {
    return bytes < SIZE_MAX - BESIDE && may_have(bytes + BESIDE, "objects of the interpreter");
}

static int is_granted(size_t bytes) {
    const size_t sum = atomic_fetch_add(&unseen, bytes) + bytes;
    if (sum < LEASE && sum >= bytes)
        return 1;
    atomic_store(&unseen, 0);
    return may_have_object(bytes);
}

static void *raw_take(void *ctx, size_t bytes) {
    return is_granted(bytes) ? raw.take(ctx, bytes) : NULL;
}

static void *raw_take_zeros(void *ctx, size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all))
        return NULL;
    return is_granted(all) ? raw.take_zeros(ctx, n, bytes) : NULL;
}

static void *raw_resize(void *ctx, void *block, size_t bytes) {
    return is_granted(bytes >= MOVED ? bytes / GROWTH : bytes) ? raw.resize(ctx, block, bytes)
                                                               : NULL;
}

static void *make_arena(void *ctx, size_t bytes) {
    char *arena = arenas.take(ctx, bytes);
    for (size_t at = 0; arena && at < bytes; at += PAGE)
        ((volatile char *)arena)[at] = 0;
    return arena;
}

static void *reserve; /* an arena of ARENA bytes, or NULL */

static void *arena_take(void *ctx, size_t bytes) {
    if (may_have_object(bytes))
        return make_arena(ctx, bytes);
    void *arena = bytes == ARENA ? reserve : NULL;
    reserve = arena ? NULL : reserve;
    return arena;
}

static void arena_give(void *ctx, void *arena, size_t bytes) {
    if (reserve || bytes != ARENA)
        arenas.give(ctx, arena, bytes);
    else
        reserve = arena;
}

/* What the limited API has not is taken where the interpreter has it. */
static void guard_objects(void) {
    enum { RAW = 0 };
    void (*get)(int, object_allocator *), (*set)(int, object_allocator *);
    void (*get_arenas)(arena_allocator *), (*set_arenas)(arena_allocator *);
    *(void **)&get = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    *(void **)&get_arenas = dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator");
    *(void **)&set_arenas = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    if (get && set) {
        get(RAW, &raw);
        object_allocator asking = {raw.ctx, raw_take, raw_take_zeros, raw_resize, raw.give};
        set(RAW, &asking);
    }
    if (get_arenas && set_arenas) {
        get_arenas(&arenas);
        arena_allocator asking = {arenas.ctx, arena_take, arena_give};
        reserve = make_arena(arenas.ctx, ARENA);
        set_arenas(&asking);
    }
}

/* --- both ------------------------------------------------------------------------------------- */
/* From the first budget on; without one the engine grants all. NumPy may be imported later. */
int py_guard(void) {
    if (!py.guarded) {
        py.guarded = 1;
        guard_objects();
    }
    if (numpy_table())
        return py_guard_arrays();
    PyObject *hook = PyImport_ImportModule("snug._hook");
    PyObject *done = hook ? PyObject_CallMethod(hook, "watch_numpy", NULL) : NULL;
    Py_XDECREF(hook);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
