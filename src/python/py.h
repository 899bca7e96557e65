/* py.h: what the files of the extension share. The extension is thin: it turns Python objects into
 * what include/snug wants and back; nothing numeric happens here.
 *
 *     py_module.c    the module, its state, engine and recorder, budget and memory, hooks
 *     py_errors.c    snug_error -> exceptions of snug.errors
 *     py_convert.c   Python values -> tensors          py_list.c   nested lists of them
 *     py_constant.c  tf.constant and its like
 *     py_tensor.c    the type Tensor       py_number.c  its operators, shared with Variable
 *     py_index.c     x[...]                             py_variable.c the type Variable
 *     py_function.c  one callable per row of the function table
 *     py_tape.c      GradientTape                       py_trace.c  what tf.function is made of
 *     py_plan.c      what a step will use  py_keras.c  layers, losses, metrics, optimizers
 *     py_program.c   functions that pipelines repeat    py_dataset.c pipelines and their iterators
 *     py_datum.c     Python values as parts of elements, and back   py_files.c  records, folders
 *     py_device.c    the GPU: opening it, its memory
 *     py_allocators.c what NumPy and the interpreter allocate
 *
 * Invariants: (1) the limited API of CPython 3.11 only, NumPy through the buffer protocol alone;
 * (2) functions that give a pointer or an int give NULL or -1 with a Python exception set; (3) the
 * recorder is called only with the GIL held and after py_enter(); (4) a tensor given by a function
 * is held once for the caller, unless its comment says lent. */
#ifndef SN_PYTHON_PY_H
#define SN_PYTHON_PY_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <snug/data_files.h>
#include <snug/data_ops.h>
#include <snug/function.h>
#include <snug/layer.h>
#include <snug/program.h>
#include <snug/record.h>
#include <stdatomic.h>

typedef struct py_tensor {
    PyObject_HEAD snug_tensor *t;
    PyObject *mask; /* Keras' mask that travels with it, or NULL */
    PyObject *part; /* (variable, key) where it is variable[key], or NULL */
    PyObject *weak;
} py_tensor;

typedef struct py_variable {
    PyObject_HEAD snug_variable *v;
    PyObject *weak;
} py_variable;

/* One per process: number slots get no module, and the limited API of 3.11 cannot find one from a
 * subclass. The module refuses a second interpreter. */
typedef struct {
    PyTypeObject *tensor, *variable, *tape, *trace, *program, *dataset, *iterator, *writer, *whole,
        *tensors, *checkpoint, *checkpoint_writer;
    PyObject *dtype_class; /* snug._types.DType */
    PyObject *dtypes[SNUG_N_DTYPES];
    PyObject *string;        /* tf.string */
    PyObject *shape_class;   /* snug._types.TensorShape */
    PyObject *text;          /* snug._text: how values are printed; imported when first wanted */
    PyObject *errors;        /* snug.errors; the same */
    PyObject *peek;          /* raised where an open trace is read; a BaseException */
    PyObject *function;      /* snug._function, which may know a number all the same */
    PyObject *slot;          /* snug._capture.Slot, once there is one */
    PyObject *capture;       /* the Capture that is being made, or NULL; held */
    PyObject *string_class;  /* snug._strings.StringTensor, the same */
    PyObject *make_variable; /* the same where a variable is made in one */
    PyObject *str_code, *str_lasti, *str_array;
    snug_engine *engine;
    snug_recorder *recorder;
    PyThreadState *runner; /* of the thread whose plan runs; its GIL is given up */
    unsigned long running; /* id of that thread, 0: none */
    unsigned long forking; /* id of a thread that is about to fork, 0: none; others begin nothing */
    double asked;          /* when signals were looked at */
    int counts_names;      /* a name that holds an object counts as a reference to it */
    int indexing;          /* a key is being read */
    PyThreadState *seated; /* of the thread whose recording is the recorder's; NULL: ask */
    uint64_t n_threads;    /* ids given so far */
    struct py_gone *gone;
    struct py_dropped *dropped;
    py_tensor *spare;                    /* a freed object to be used again, or NULL */
    PyObject *variables;                 /* {address: weak reference}: one object per variable */
    PyObject *codes;                     /* code objects that sites refer to */
    int (*lasti)(PyObject *frame);       /* PyFrame_GetLasti where the interpreter has it */
    PyObject *(*back)(PyObject *frame);  /* PyFrame_GetBack; the same */
    char device[16];                     /* that Python has chosen; "": none */
    size_t device_budget;                /* of the card's memory; 0: none */
    char wish[32], host_wish[32];        /* budgets for an engine that is not made yet; "": none */
    int guarded;                         /* NumPy and the interpreter ask for what they allocate */
    int exact;                           /* f32 products in f32 */
    int autocasts;                       /* Keras' variables are read as this type: */
    snug_dtype autocast;                 /* of the layer that is called */
    int checks;                          /* results of functions must be finite */
    char folder[512];                    /* of Snug's Python files, with the last slash */
    _Atomic int pass_seconds;            /* a line about a long pass each so many; 0: none */
    _Atomic int pass_printed, pass_bars; /* second of the last line; a bar is drawn already */
} py_state;
extern py_state py;

/* --- py_module.c ------------------------------------------------------------------------------ */
/* Engine and recorder are there and no other thread's plan runs. */
int py_enter(void);
/* Where the caller's code stands, for messages; and as it is. */
void py_mark_site(void);
PyObject *py_caller(long *lasti);
/* Lets go of a tensor, also while a plan runs. */
void py_drop(snug_tensor *t);
PyObject *py_helper(PyObject **module, const char *name);
int py_module_add_types(PyObject *module);
void py_listen_to_passes(void); /* py_files.c */

/* --- py_errors.c ------------------------------------------------------------------------------ */
/* Sets the exception of the status, unless one is set already; NULL. */
PyObject *py_raise(const snug_error *err);
/* Sets snug.errors.NAME. */
PyObject *py_error(const char *name, const char *format, ...);

/* --- dtypes and shapes ------------------------------------------------------------------------ */
/* -1 with an exception: not a dtype, or one that tensors cannot have. */
int py_dtype(PyObject *o, snug_dtype *out);
PyObject *py_dtype_object(snug_dtype dtype);
int py_is_float(snug_dtype d);
int py_is_integer(snug_dtype d);
const char *py_dtype_word(snug_dtype d); /* "float32" */
/* The type's extents as a TensorShape. */
PyObject *py_shape(const snug_type *type);
/* An int, a sequence of ints, a TensorShape, a tensor of ints. */
int py_dims(PyObject *o, snug_type *type);

/* --- py_convert.c ----------------------------------------------------------------------------- */
#define PY_ANY (-1)
/* How strict a wish for a dtype is. */
typedef enum {
    PY_MUST,   /* convert_to_tensor(x, dtype): tensors of another dtype are refused */
    PY_FOLLOW, /* the other operand's: arrays and numbers take it, lists where nothing is lost */
} py_wish;
int py_is_tensor(PyObject *o);                            /* a Tensor or a Variable */
snug_tensor *py_lend(PyObject *o, snug_tensor **to_drop); /* of one of these: lent, or read */
snug_tensor *py_convert(PyObject *o, int dtype, py_wish wish);
/* A tensor of an array's own bytes. NULL without an exception: it has to be copied. n_args of -1:
 * the caller has given it away. */
snug_tensor *py_adopt_array(PyObject *o, int dtype, Py_ssize_t n_args);
/* Whether it stands for a value of a graph, as Keras' symbolic tensors do. */
int py_is_symbol(PyObject *o);
/* -1: the value has no place in the dtype. Numbers as bytes of that dtype. */
int py_put_number(PyObject *o, snug_dtype dtype, void *to);
int py_is_number(PyObject *o); /* bool, int, float, or a NumPy scalar */

/* --- py_array.c ------------------------------------------------------------------------------- */
int py_is_array(PyObject *o);
uint16_t py_bf16_of(float f); /* rounded to even */
/* The buffer of an array or NumPy scalar, also of ml_dtypes' bfloat16. */
int py_array_buffer(PyObject *o, Py_buffer *b);
/* The dtype that it has; -1 where tensors cannot have it. */
int py_array_dtype(const char *format, Py_ssize_t itemsize);
/* Copies a strided buffer into dense elements of the dtype. */
int py_put_array(const Py_buffer *from, int from_dtype, snug_dtype dtype, void *to);
PyObject *py_retype_dlpack(PyObject *module, PyObject *args);

/* --- py_list.c -------------------------------------------------------------------------------- */
snug_tensor *py_convert_list(PyObject *o, int dtype, py_wish wish);
int py_is_list(PyObject *o); /* a list or a tuple */
/* Of one of these, what it holds: not what a class of the user's says of it. */
Py_ssize_t py_list_size(PyObject *o);
PyObject *py_list_item(PyObject *o, Py_ssize_t i); /* lent; NULL with IndexError */

/* --- py_tensor.c, py_variable.c --------------------------------------------------------------- */
PyObject *py_tensor_new(snug_tensor *t); /* takes the hold, also on failure */
PyObject *py_numpy(snug_tensor *t);
/* An array for a tensor's bytes (bfloat16, which NumPy has not: its bits as uint16), and what NumPy
 * calls it once they are there: a scalar, ml_dtypes' bfloat16, or float32 where that is missing. */
PyObject *py_empty_array(const snug_type *type);
PyObject *py_filled_array(PyObject *array, const snug_type *type);
int py_settle(snug_tensor *t, size_t bytes);
int py_read(snug_tensor *t, void *to, size_t bytes); /* Peek in a trace */
PyObject *py_read_part(PyObject *module, PyObject *args);
extern PyType_Slot py_number_slots[];
PyTypeObject *py_make_tensor_type(PyObject *module);
PyTypeObject *py_make_variable_type(PyObject *module);
PyTypeObject *py_make_tape_type(PyObject *module);
PyTypeObject *py_make_trace_type(PyObject *module);
snug_variable *py_variable_of(PyObject *o);                       /* lent; NULL with TypeError */
PyObject *py_variable_wrap(snug_variable *v, PyTypeObject *type); /* takes the hold */

/* Getters that both types have. */
PyObject *py_get_shape(PyObject *self, void *unused);
PyObject *py_get_dtype(PyObject *self, void *unused);
PyObject *py_get_ndim(PyObject *self, void *unused);

PyObject *py_add(PyObject *a, PyObject *b);
PyObject *py_richcompare(PyObject *a, PyObject *b, int op);
PyObject *py_index(PyObject *self, PyObject *key);
PyObject *py_index_of_variable(PyObject *module, PyObject *args);
PyObject *py_float(PyObject *self);
PyObject *py_int(PyObject *self);
int py_bool(PyObject *self);

/* --- py_function.c ---------------------------------------------------------------------------- */
/* Calls a row by its name with arguments that are already the library's. */
snug_tensor *py_call(const char *name, const snug_argument *args, int n);
PyObject *py_plan(PyObject *self, PyObject *args); /* py_plan.c */
extern PyMethodDef py_function_methods[];
extern PyMethodDef py_constant_methods[];

/* Gives the arguments of a call of a row's callable, as calls of the table have them but with slots
 * for what a program writes down, to taker. */
typedef int (*py_row_taker)(void *ctx, int row, const snug_argument *args, int n, int to_list);
int py_row_arguments(PyObject *callable, PyObject *const *args, Py_ssize_t n, PyObject *names,
                     py_row_taker taker, void *ctx);

/* --- py_program.c, py_datum.c, py_dataset.c --------------------------------------------------- */
int py_slot_number(PyObject *slot);       /* -1 with an exception */
int py_slot_dtype(PyObject *slot);        /* PY_ANY: text */
snug_program *py_program_of(PyObject *o); /* lent; NULL with TypeError */
PyTypeObject *py_make_program_type(PyObject *module);
PyTypeObject *py_make_dataset_type(PyObject *module);
PyTypeObject *py_make_iterator_type(PyObject *module);
PyTypeObject *py_make_writer_type(PyObject *module);
PyTypeObject *py_make_whole_type(PyObject *module);
PyTypeObject *py_make_tensors_type(PyObject *module);
PyTypeObject *py_make_checkpoint_type(PyObject *module); /* py_checkpoint.c */
PyTypeObject *py_make_checkpoint_writer_type(PyObject *module);
/* (name, dtype's name, dims) */
PyObject *py_named_type(const char *name, const snug_type *type);
extern PyMethodDef py_dataset_methods[];
extern PyMethodDef py_pipeline_methods[];

/* A value as a part; dtype PY_ANY: its own, PY_TEXT: text. borrow: C-contiguous arrays are not
 * copied. */
#define PY_TEXT (-2)
int py_datum(PyObject *o, int dtype, int borrow, snug_datum *out);
/* Takes the hold. Tensors, or StringTensors; NumPy arrays or bytes. */
PyObject *py_part_tensor(snug_datum *part);
PyObject *py_part_numpy(snug_datum *part);
PyObject *py_shape_of(const snug_type *type); /* a TensorShape; extents may be unknown */
/* [(dtype, dims or None)] and back. */
PyObject *py_spec_list(const snug_spec *spec);
int py_spec(PyObject *list, snug_spec *out);
/* Lets go of what other threads have let go of. */
void py_release_waiting(void);

/* --- py_device.c ------------------------------------------------------------------------------ */
/* For an engine that has just been made; -1 with an exception. */
int py_open_device(void);
int py_apply_wishes(void);
int py_limit_host(size_t bytes); /* 0: no limit; -1: the process is beyond it already */
int py_has_card(void);
PyObject *py_device_text(int on_host);
extern PyMethodDef py_device_methods[];

/* --- py_allocators.c -------------------------------------------------------------------------- */
/* Set aside for the interpreter's objects; again, where they took some of it. */
#define PY_BOOKED ((size_t)5 << 20)
/* Of a budget, what pipelines get: as fit of the library gives them. */
#define PY_PIPELINES(budget) ((budget) / 8)
int py_book_objects(void);
int py_guard(void);        /* there is a budget */
int py_guard_arrays(void); /* of this thread; NumPy is there, or will be */
/* -1 with an exception: so many bytes more do not fit the budget. For what is made outside the
 * engine for a while. */
int py_ask(size_t bytes, const char *what);
/* The newest refusal of NumPy's or the interpreter's wishes, once; 0: none. */
int py_refusal(char *text, size_t size);
void py_refusal_after_fork(void); /* in the child */

/* --- py_keras.c ------------------------------------------------------------------------------- */
int py_keras_add(PyObject *module);

/* --- py_random.c ------------------------------------------------------------------------------ */
PyObject *py_set_seed(PyObject *self, PyObject *o);
PyObject *py_random_state(PyObject *self, PyObject *o);
PyObject *py_set_random_state(PyObject *self, PyObject *o);
PyObject *py_draw_key(PyObject *self, PyObject *o);
PyObject *py_set_place(PyObject *self, PyObject *o);
PyObject *py_places(PyObject *self, PyObject *o);
PyObject *py_sequences(PyObject *self, PyObject *o);
PyObject *py_set_sequences(PyObject *self, PyObject *o);

#endif
