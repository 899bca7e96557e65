/* py_number.c: operators of Tensor and Variable. An operand is a tensor or variable, a Python
 * number, which takes the tensor's dtype, or an array or list, which is converted. What cannot be a
 * tensor is left to the other operand. */
#include "py.h"

/* An operand as an argument of the table; to_drop is what it holds. */
typedef struct {
    snug_argument arg;
    snug_tensor *to_drop;
} operand;

static int is_operand(PyObject *o) {
    return py_is_number(o) || py_is_tensor(o) || PyList_Check(o) || PyTuple_Check(o) ||
           py_is_array(o) || o == Py_None || PyUnicode_Check(o) ||
           PyObject_HasAttr(o, py.str_array) || PyObject_HasAttrString(o, "__tf_tensor__");
}

static int take_tensor(PyObject *o, operand *out) {
    snug_tensor *t = py_lend(o, &out->to_drop);
    out->arg = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = t};
    return t ? 0 : -1;
}

static int take_number(PyObject *o, snug_dtype beside, operand *out) {
    if (PyFloat_Check(o)) {
        if (!py_is_float(beside)) {
            PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", o,
                         py_dtype_word(beside));
            return -1;
        }
        out->arg = (snug_argument){.kind = SNUG_ARG_REAL, .real = PyFloat_AsDouble(o)};
        return 0;
    }
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
        if (!py_is_float(beside)) {
            PyErr_Format(PyExc_OverflowError, "%R does not fit into %s", o, py_dtype_word(beside));
            return -1;
        }
        out->arg = (snug_argument){.kind = SNUG_ARG_REAL, .real = PyFloat_AsDouble(o)};
        return PyErr_Occurred() ? -1 : 0;
    }
    out->arg = (snug_argument){.kind = PyBool_Check(o) && beside == SNUG_BOOL ? SNUG_ARG_BOOL
                                                                              : SNUG_ARG_INTEGER,
                               .integer = v};
    return 0;
}

/* An operand beside a tensor of this dtype. */
static int take_beside(PyObject *o, snug_dtype beside, operand *out) {
    if (py_is_number(o))
        return take_number(o, beside, out);
    if (py_is_tensor(o))
        return take_tensor(o, out);
    out->to_drop = py_convert(o, (int)beside, PY_FOLLOW);
    out->arg = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = out->to_drop};
    return out->to_drop ? 0 : -1;
}

static int take_both(PyObject *a, PyObject *b, operand x[2]) {
    PyObject *o[2] = {a, b};
    int first = py_is_tensor(a) ? 0 : 1;
    if (take_tensor(o[first], &x[first]) < 0)
        return -1;
    return take_beside(o[1 - first], snug_tensor_type(x[first].arg.tensor)->dtype, &x[1 - first]);
}

static PyObject *binary(const char *name, PyObject *a, PyObject *b) {
    operand x[2] = {{.to_drop = NULL}, {.to_drop = NULL}};
    if (!is_operand(a) || !is_operand(b))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *result = NULL;
    if (py_enter() == 0 && take_both(a, b, x) == 0) {
        snug_argument args[2] = {x[0].arg, x[1].arg};
        snug_tensor *t = py_call(name, args, 2);
        result = t ? py_tensor_new(t) : NULL;
    }
    py_drop(x[0].to_drop);
    py_drop(x[1].to_drop);
    return result;
}

static PyObject *unary(const char *name, PyObject *a) {
    operand x = {.to_drop = NULL};
    if (py_enter() < 0 || take_tensor(a, &x) < 0)
        return NULL;
    snug_tensor *t = py_call(name, &x.arg, 1);
    py_drop(x.to_drop);
    return t ? py_tensor_new(t) : NULL;
}

static snug_dtype dtype_of(PyObject *o) {
    return PyObject_TypeCheck(o, py.tensor) ? snug_tensor_type(((py_tensor *)o)->t)->dtype
                                            : snug_variable_type(((py_variable *)o)->v)->dtype;
}

static int of_bool(PyObject *a, PyObject *b) {
    return dtype_of(py_is_tensor(a) ? a : b) == SNUG_BOOL;
}

PyObject *py_add(PyObject *a, PyObject *b) {
    return binary("tf.add", a, b);
}
static PyObject *subtract(PyObject *a, PyObject *b) {
    return binary("tf.subtract", a, b);
}
static PyObject *multiply(PyObject *a, PyObject *b) {
    return binary("tf.multiply", a, b);
}
static PyObject *divide(PyObject *a, PyObject *b) {
    return binary("tf.truediv", a, b);
}
static PyObject *floor_divide(PyObject *a, PyObject *b) {
    return binary("tf.math.floordiv", a, b);
}
static PyObject *modulo(PyObject *a, PyObject *b) {
    return binary("tf.math.floormod", a, b);
}
static PyObject *matmul(PyObject *a, PyObject *b) {
    return binary("tf.matmul", a, b);
}
static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus) {
    (void)modulus;
    return binary("tf.pow", a, b);
}
static PyObject * and (PyObject * a, PyObject *b) {
    return binary(of_bool(a, b) ? "tf.logical_and" : "tf.bitwise.bitwise_and", a, b);
}
static PyObject * or (PyObject * a, PyObject *b) {
    return binary(of_bool(a, b) ? "tf.logical_or" : "tf.bitwise.bitwise_or", a, b);
}
static PyObject * xor (PyObject * a, PyObject *b) {
    return binary(of_bool(a, b) ? "tf.math.logical_xor" : "tf.bitwise.bitwise_xor", a, b);
} static PyObject *divide_both(PyObject *a, PyObject *b) {
    PyObject *whole = floor_divide(a, b), *rest = whole ? modulo(a, b) : NULL;
    PyObject *pair = rest ? PyTuple_Pack(2, whole, rest) : NULL;
    Py_XDECREF(whole);
    Py_XDECREF(rest);
    return pair;
}
static PyObject *negative(PyObject *a) {
    return unary("tf.negative", a);
}
static PyObject *absolute(PyObject *a) {
    return unary("tf.abs", a);
}
static PyObject *positive(PyObject *a) {
    return unary("tf.identity", a);
}
static PyObject *invert(PyObject *a) {
    return unary(dtype_of(a) == SNUG_BOOL ? "tf.logical_not" : "tf.bitwise.invert", a);
}

PyObject *py_richcompare(PyObject *a, PyObject *b, int op) {
    static const char *const names[] = {
        [Py_LT] = "tf.less",      [Py_LE] = "tf.less_equal", [Py_EQ] = "tf.equal",
        [Py_NE] = "tf.not_equal", [Py_GT] = "tf.greater",    [Py_GE] = "tf.greater_equal"};
    if ((op == Py_EQ || op == Py_NE) && b == Py_None)
        return PyBool_FromLong(op == Py_NE);
    PyObject *result = binary(names[op], a, b);
    int equality = op == Py_EQ || op == Py_NE;
    /* Shapes that do not fit together are not equal, as in TensorFlow. */
    if (!result && equality && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        py_is_tensor(a) && py_is_tensor(b) && dtype_of(a) == dtype_of(b) &&
        PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        return PyBool_FromLong(op == Py_NE);
    }
    return result;
}

PyType_Slot py_number_slots[] = {
    {Py_nb_add, py_add},
    {Py_nb_subtract, subtract},
    {Py_nb_multiply, multiply},
    {Py_nb_true_divide, divide},
    {Py_nb_floor_divide, floor_divide},
    {Py_nb_remainder, modulo},
    {Py_nb_divmod, divide_both},
    {Py_nb_power, power},
    {Py_nb_matrix_multiply, matmul},
    {Py_nb_and, and},
    {Py_nb_or, or },
    {Py_nb_xor, xor},
    {Py_nb_negative, negative},
    {Py_nb_positive, positive},
    {Py_nb_absolute, absolute},
    {Py_nb_invert, invert},
    {Py_nb_float, py_float},
    {Py_nb_int, py_int},
    {Py_nb_bool, py_bool},
    {Py_tp_richcompare, py_richcompare},
    {Py_mp_subscript, py_index},
    {0, NULL},
};
