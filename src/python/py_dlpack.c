/* py_dlpack.c: DLPack capsules of bfloat16 pass NumPy, which has no such type, as bits. */
#include "py.h"

/* How DLManagedTensor of DLPack's dlpack.h begins. */
typedef struct {
    void *data;
    int32_t device[2], ndim;
    uint8_t code, bits;
    uint16_t lanes;
} dl_tensor;

/* retype_dlpack(capsule, from, to): numbers of two bytes of the one kind are of the other now;
 * whether they were. */
PyObject *py_retype_dlpack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    int from, to;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &from, &to))
        return NULL;
    if (!PyCapsule_IsValid(capsule, "dltensor")) /* of a later version, or no capsule: NumPy says */
        Py_RETURN_FALSE;
    dl_tensor *t = PyCapsule_GetPointer(capsule, "dltensor");
    if (t->code != from || t->bits != 16 || t->lanes != 1)
        Py_RETURN_FALSE;
    t->code = (uint8_t)to;
    Py_RETURN_TRUE;
}
