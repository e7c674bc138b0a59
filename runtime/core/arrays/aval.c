/* Aval: the base class of `plugrt.execution.arrays.aval.Aval`, with the fields for reads and
   waits. */
#include "arrays/internal.h"

typedef struct {
  PyObject_HEAD
  PyObject *sharding, *reader, *waiter;
} Aval;

/* the derived class; arrays with any other aval are read and waited for in Python */
static PyTypeObject *aval_class;

static const Aval *known(PyObject *aval) {
  static const Aval nothing;
  return Py_TYPE(aval) == aval_class ? (const Aval *)aval : &nothing;
}

PyObject *aval_reader(PyObject *aval) { return Py_XNewRef(known(aval)->reader); }
PyObject *aval_waiter(PyObject *aval) { return Py_XNewRef(known(aval)->waiter); }
PyObject *aval_sharding(PyObject *aval) { return Py_XNewRef(known(aval)->sharding); }

static int aval_traverse(Aval *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->sharding);
  Py_VISIT(self->reader);
  Py_VISIT(self->waiter);
  return 0;
}

static int aval_clear(Aval *self) {
  Py_CLEAR(self->sharding);
  Py_CLEAR(self->reader);
  Py_CLEAR(self->waiter);
  return 0;
}

static void aval_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  aval_clear((Aval *)object);
  free_object(object);
}

static PyMemberDef aval_members[] = {
    {"sharding", T_OBJECT_EX, offsetof(Aval, sharding), 0, "How arrays of it lie on devices."},
    {"reader", T_OBJECT_EX, offsetof(Aval, reader), 0, "What the core reads them by, or None."},
    {"waiter", T_OBJECT_EX, offsetof(Aval, waiter), 0, "What it waits for them by, or None."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot aval_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.arrays.aval.Aval."},
    {Py_tp_traverse, aval_traverse},
    {Py_tp_clear, aval_clear},
    {Py_tp_dealloc, aval_dealloc},
    {Py_tp_members, aval_members},
    {0, NULL},
};
static PyType_Spec aval_spec = {
    "plugrt._core.Aval", sizeof(Aval), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, aval_slots};
static PyTypeObject *Aval_Type;

int add_aval(PyObject *module) {
  Aval_Type = type_of(module, &aval_spec);
  return Aval_Type ? 0 : -1;
}

PyObject *set_aval_class(PyObject *module, PyObject *cls) {
  (void)module;
  if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, Aval_Type)) {
    PyErr_SetString(PyExc_TypeError, "the class of avals is derived from plugrt._core.Aval");
    return NULL;
  }
  PyTypeObject *old = aval_class;
  aval_class = (PyTypeObject *)Py_NewRef(cls); /* kept for ever, as the class of arrays is */
  Py_XDECREF((PyObject *)old);
  Py_RETURN_NONE;
}
