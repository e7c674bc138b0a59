/* Signature: the base of `plugrt.execution.arrays.aval.Aval`, with what reads and waits ask it for. */
#include "arrays/internal.h"

typedef struct {
  PyObject_HEAD
  PyObject *sharding, *reader, *waiter;
} Signature;

static PyTypeObject *signature_class; /* that class: of others Python reads and waits */

static const Signature *known(PyObject *signature) {
  static const Signature nothing;
  return Py_TYPE(signature) == signature_class ? (const Signature *)signature : &nothing;
}

PyObject *signature_reader(PyObject *signature) { return Py_XNewRef(known(signature)->reader); }
PyObject *signature_waiter(PyObject *signature) { return Py_XNewRef(known(signature)->waiter); }
PyObject *signature_sharding(PyObject *signature) { return Py_XNewRef(known(signature)->sharding); }

static int signature_traverse(Signature *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->sharding);
  Py_VISIT(self->reader);
  Py_VISIT(self->waiter);
  return 0;
}

static int signature_clear(Signature *self) {
  Py_CLEAR(self->sharding);
  Py_CLEAR(self->reader);
  Py_CLEAR(self->waiter);
  return 0;
}

static void signature_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  signature_clear((Signature *)object);
  free_object(object);
}

static PyMemberDef signature_members[] = {
    {"sharding", T_OBJECT_EX, offsetof(Signature, sharding), 0, "How arrays of it lie on devices."},
    {"reader", T_OBJECT_EX, offsetof(Signature, reader), 0, "What the core reads them by, or None."},
    {"waiter", T_OBJECT_EX, offsetof(Signature, waiter), 0, "What it waits for them by, or None."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot signature_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.arrays.aval.Aval."},
    {Py_tp_traverse, signature_traverse},
    {Py_tp_clear, signature_clear},
    {Py_tp_dealloc, signature_dealloc},
    {Py_tp_members, signature_members},
    {0, NULL},
};
static PyType_Spec signature_spec = {
    "plugrt._core.Signature", sizeof(Signature), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, signature_slots};
static PyTypeObject *Signature_Type;

int add_signature(PyObject *module) {
  Signature_Type = type_of(module, &signature_spec);
  return Signature_Type ? 0 : -1;
}

PyObject *set_signature_class(PyObject *module, PyObject *cls) {
  (void)module;
  if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, Signature_Type)) {
    PyErr_SetString(PyExc_TypeError, "the class of signatures is derived from plugrt._core.Signature");
    return NULL;
  }
  PyTypeObject *old = signature_class;
  signature_class = (PyTypeObject *)Py_NewRef(cls); /* kept for ever, as the class of arrays is */
  Py_XDECREF((PyObject *)old);
  Py_RETURN_NONE;
}
