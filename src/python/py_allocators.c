/* py_allocators.c: what NumPy and the interpreter allocate asks the budget first. Once there is
 * one:
 *
 *     NumPy's arrays      its handler (NEP 49, from NumPy 1.22 on): from LARGE on taken from the
 *                         engine, so that what is resident of them is measured; smaller ones by the
 *                         handler there was
 *     large objects       bytes, lists, texts: PyMem_SetAllocator's raw domain, wrapped: looked at
 *                         when LEASE bytes were taken since the last look
 *     small objects       PyObject_SetArenaAllocator, wrapped: each arena is asked for, and all of
 *                         it is there at once, so that using it is no growth. One waits in reserve
 *                         from the first: the interpreter can go on while a plan runs with the rest
 *
 * Objects have PY_BOOKED bytes from the first: what Snug's own modules and the calls of a usual
 * script make. What the objects are more than they ever were is taken off that, so that a plan
 * which fits beside it once is not pushed out by them, and what they have taken of it does not come
 * back. Beyond it they ask. Where nothing is left, plans and the arena go and are made anew
 * (make_way).
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
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define LARGE  ((size_t)64 << 10)
#define LEASE  ((size_t)64 << 10)
#define BESIDE ((size_t)512 << 10)
/* What a refusal of an object names is a budget that has the next of them, too. */
#define NEXT  ((size_t)2 << 20)
#define ARENA ((size_t)1 << 20) /* as the interpreter has them since 3.10 */
#define PAGE  ((size_t)4096)
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

/* Who wrote one is no thread of this process. */
void py_refusal_after_fork(void) {
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

int py_ask(size_t bytes, const char *what) {
    snug_error err;
    if (!py.engine || snug_ask(py.engine, bytes, what, &err) == SNUG_OK)
        return 0;
    py_raise(&err);
    return -1;
}

/* Not in the limited API: taken where the interpreter has it. */
static int (*has_gil)(void);

/* Plans and the arena go; they are made anew when they are needed. Not while one of them runs. */
static int make_way(void) {
    if (!py.recorder || py.running || !has_gil || !has_gil())
        return 0;
    snug_recorder_trim(py.recorder);
    return 1;
}

/* --- objects ---------------------------------------------------------------------------------- */
static struct {
    _Atomic long long now, most; /* bytes since the first budget */
    _Atomic size_t booked;       /* set aside for them */
    _Atomic long long unseen;    /* more than at the lowest since the last look */
} objects;

/* By how much they are now more than ever. */
static size_t growth(size_t bytes) {
    const long long now = atomic_fetch_add(&objects.now, (long long)bytes) + (long long)bytes;
    long long most = atomic_load(&objects.most);
    while (now > most)
        if (atomic_compare_exchange_weak(&objects.most, &most, now))
            return (size_t)(now - most) < bytes ? (size_t)(now - most) : bytes;
    return 0;
}

/* Threads that take of it at once may get here in another order: who reported an old number
 * reports the newest. */
static void tell_booked(void) {
    size_t n;
    do {
        n = atomic_load(&objects.booked);
        (void)snug_set_aside(py.engine, n);
    } while (n != atomic_load(&objects.booked));
}

static size_t take_booked(size_t bytes) {
    size_t left = atomic_load(&objects.booked), part;
    do
        part = bytes < left ? bytes : left;
    while (part > 0 && !atomic_compare_exchange_weak(&objects.booked, &left, left - part));
    if (part > 0)
        tell_booked();
    return part;
}

static int try_object(size_t bytes, size_t beside, snug_error *err) {
    return bytes < SIZE_MAX - beside &&
           snug_ask(py.engine, bytes + beside, "objects of the interpreter", err) == SNUG_OK;
}

/* Beside it there is room for what nobody asks for: code that is touched for the first time, what a
 * message about the refusal needs. */
static int may_have_object(size_t bytes) {
    snug_error err;
    if (!py.engine || try_object(bytes, BESIDE, &err) ||
        (make_way() && try_object(bytes, BESIDE, &err)))
        return 1;
    if (bytes < SIZE_MAX - BESIDE - NEXT && !try_object(bytes, BESIDE + NEXT, &err))
        note(&err);
    return 0;
}

static void gave(size_t bytes) {
    atomic_fetch_sub(&objects.now, (long long)bytes);
    long long unseen = atomic_load(&objects.unseen), left;
    do
        left = unseen > (long long)bytes ? unseen - (long long)bytes : 0;
    while (!atomic_compare_exchange_weak(&objects.unseen, &unseen, left));
}

/* Nothing has asked for them yet, and they are many. */
static int is_to_ask(size_t bytes) {
    const long long rest = (long long)(bytes - take_booked(growth(bytes)));
    if (rest == 0 || atomic_fetch_add(&objects.unseen, rest) + rest < (long long)LEASE)
        return 0;
    atomic_store(&objects.unseen, 0);
    return 1;
}

static int is_granted(size_t bytes) {
    if (bytes > SIZE_MAX / 4)
        return 0;
    if (!is_to_ask(bytes) || may_have_object(bytes))
        return 1;
    gave(bytes);
    atomic_store(&objects.unseen,
                 (long long)LEASE); /* who is refused an arena wants a piece next */
    return 0;
}

/* Its pages are there from now on, so that filling it later is no growth. */
static void *touch(void *block, size_t from, size_t bytes) {
    for (size_t at = from; block && at < bytes; at += PAGE)
        ((volatile char *)block)[at] = ((volatile char *)block)[at];
    return block;
}

int py_book_objects(void) {
    snug_error err;
    const size_t left = atomic_load(&objects.booked),
                 more = left < PY_BOOKED ? PY_BOOKED - left : 0;
    if (!py.guarded || more == 0)
        return 0;
    if (snug_ask(py.engine, more, "objects of the interpreter to come", &err) != SNUG_OK) {
        py_raise(&err);
        return -1;
    }
    atomic_store(&objects.booked, PY_BOOKED);
    tell_booked();
    return 0;
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
    if (status == SNUG_E_BUDGET && make_way())
        status = take(bytes + ALIGNED, zeros, &base, &err);
    if (status == SNUG_OK)
        return put_front(base, ALIGNED, bytes, 1);
    if (bytes >= NEXT || snug_ask(py.engine, bytes + BESIDE + NEXT, "of NumPy", &err) != SNUG_OK)
        note(&err);
    return NULL;
}

static void *array_take(void *ctx, size_t bytes) {
    (void)ctx;
    if (bytes >= LARGE)
        return take_large(bytes, 0);
    const size_t all = bytes + sizeof(front);
    void *base = is_granted(all) ? touch(before.take(before.ctx, all), 0, all) : NULL;
    return base ? put_front(base, sizeof(front), bytes, 0) : NULL;
}

static void *array_take_zeros(void *ctx, size_t n, size_t bytes) {
    (void)ctx;
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all))
        return NULL;
    if (all >= LARGE)
        return take_large(all, 1);
    void *base = is_granted(all + sizeof(front))
                     ? touch(before.take_zeros(before.ctx, 1, all + sizeof(front)), 0, all)
                     : NULL;
    return base ? put_front(base, sizeof(front), all, 0) : NULL;
}

static void array_give(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    if (!block)
        return;
    const front f = *front_of(block);
    if (f.from_engine)
        snug_give(py.engine, (char *)block - ALIGNED, f.bytes + ALIGNED);
    else {
        before.give(before.ctx, front_of(block), f.bytes + sizeof(front));
        gave(f.bytes + sizeof(front));
    }
}

/* Stays the engine's: its pages are moved. */
static void *resize_large(void *block, size_t bytes) {
    snug_error err;
    void *base = (char *)block - ALIGNED;
    const size_t old = front_of(block)->bytes;
    snug_status status = snug_resize(py.engine, old + ALIGNED, bytes + ALIGNED, &base, &err);
    if (status == SNUG_E_BUDGET && make_way())
        status = snug_resize(py.engine, old + ALIGNED, bytes + ALIGNED, &base, &err);
    if (status == SNUG_OK)
        return put_front(base, ALIGNED, bytes, 1);
    /* Who is filling it needs what fills it, too. */
    if (bytes - old >= SIZE_MAX - BESIDE - NEXT ||
        snug_ask(py.engine, bytes - old + BESIDE + NEXT, "of NumPy", &err) != SNUG_OK)
        note(&err);
    return NULL;
}

static void *array_resize(void *ctx, void *block, size_t bytes) {
    const size_t old = block ? front_of(block)->bytes : 0;
    if (block && front_of(block)->from_engine && bytes >= LARGE && bytes < SIZE_MAX - ALIGNED)
        return resize_large(block, bytes);
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

/* What a block takes, as the C library has it; where the raw domain is something else, as asked. */
static size_t size_of(void *block, size_t asked) {
    return block && !raw.ctx ? malloc_usable_size(block) : block ? asked : 0;
}

/* A grant of `asked` bytes is one of what the block takes, or of nothing. */
static void *settle(void *block, size_t asked) {
    const size_t got = size_of(block, asked);
    if (got < asked)
        gave(asked - got);
    else
        atomic_fetch_add(&objects.now, (long long)(got - asked));
    return block;
}

static void *raw_take(void *ctx, size_t bytes) {
    return is_granted(bytes) ? settle(touch(raw.take(ctx, bytes), 0, bytes), bytes) : NULL;
}

static void *raw_take_zeros(void *ctx, size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all))
        return NULL;
    return is_granted(all) ? settle(touch(raw.take_zeros(ctx, n, bytes), 0, all), all) : NULL;
}

static void raw_give(void *ctx, void *block) {
    gave(size_of(block, 0));
    raw.give(ctx, block);
}

/* What grows is asked for whole: the old block is there until the new one is filled. */
static void *raw_resize(void *ctx, void *block, size_t bytes) {
    const size_t asked = bytes >= MOVED ? bytes / GROWTH : bytes, old = size_of(block, 0);
    if (!is_granted(asked))
        return NULL;
    void *made = raw.resize(ctx, block, bytes);
    touch(made, old, bytes);
    settle(made, asked);
    gave(made ? old : 0);
    return made;
}

static void *reserve; /* an arena of ARENA bytes, or NULL */

static void *arena_take(void *ctx, size_t bytes) {
    if (is_granted(bytes))
        return touch(arenas.take(ctx, bytes), 0, bytes);
    void *arena = bytes == ARENA ? reserve : NULL;
    reserve = arena ? NULL : reserve;
    return arena;
}

/* In reserve it is an object's as much as before. */
static void arena_give(void *ctx, void *arena, size_t bytes) {
    if (!reserve && bytes == ARENA) {
        reserve = arena;
        return;
    }
    arenas.give(ctx, arena, bytes);
    gave(bytes);
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
    *(void **)&has_gil = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    if (get && set) {
        get(RAW, &raw);
        object_allocator asking = {raw.ctx, raw_take, raw_take_zeros, raw_resize, raw_give};
        set(RAW, &asking);
    }
    if (get_arenas && set_arenas) {
        get_arenas(&arenas);
        arena_allocator asking = {arenas.ctx, arena_take, arena_give};
        reserve = touch(arenas.take(arenas.ctx, ARENA), 0, ARENA);
        set_arenas(&asking);
    }
}

/* --- both ------------------------------------------------------------------------------------- */
/* From the first budget on; without one the engine grants all. NumPy may be imported later. */
int py_guard(void) {
    if (!py.guarded) {
        py.guarded = 1;
        guard_objects();
        atomic_store(&objects.booked, PY_BOOKED);
        tell_booked();
    }
    if (numpy_table())
        return py_guard_arrays();
    PyObject *hook = PyImport_ImportModule("snug._hook");
    PyObject *done = hook ? PyObject_CallMethod(hook, "watch_numpy", NULL) : NULL;
    Py_XDECREF(hook);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
