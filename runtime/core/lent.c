/* Lent: a buffer of what an array holds, which what lies over it keeps.

   As a memoryview, but not known to the garbage collector: NumPy's arrays are not, so that it could not
   follow it anyway. */
#include "core.h"

static PyTypeObject *Lent_Type;

typedef struct {
  PyObject_HEAD
  Py_buffer buffer;
  PyObject *kept;
} Lent;

PyObject *lend(PyObject *holder) {
  Lent *made = PyObject_New(Lent, Lent_Type);
  if (!made) return NULL;
  made->buffer.obj = made->kept = NULL;
  if (PyObject_GetBuffer(holder, &made->buffer, PyBUF_SIMPLE)) Py_CLEAR(made);
  return (PyObject *)made;
}

const Py_buffer *lent_buffer(PyObject *lent) { return &((Lent *)lent)->buffer; }

PyObject *lent_keep(PyObject *lent, PyObject *other) {
  if (!((Lent *)lent)->kept) ((Lent *)lent)->kept = Py_NewRef(other);
  return ((Lent *)lent)->kept;
}

int is_lent(PyObject *object) { return object && Py_TYPE(object) == Lent_Type; }

int is_lent_by(PyObject *extra, PyObject *held) {
  PyObject *lent = is_lent(extra) ? Py_NewRef(extra) : base_of(extra);
  int found = is_lent(lent) && ((Lent *)lent)->buffer.obj == held;
  Py_XDECREF(lent);
  return found;
}

static void lent_dealloc(PyObject *object) {
  Lent *self = (Lent *)object;
  PyBuffer_Release(&self->buffer);
  Py_XDECREF(self->kept);
  free_object(object);
}

static PyMemberDef lent_members[] = {
    {"obj", T_OBJECT, offsetof(Lent, buffer) + offsetof(Py_buffer, obj), READONLY, "What lends it."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot lent_slots[] = {
    {Py_tp_doc, "A buffer of what an array holds, which what lies over it keeps."},
    {Py_tp_dealloc, lent_dealloc},
    {Py_tp_members, lent_members},
    {0, NULL},
};
static PyType_Spec lent_spec = {"plugrt._core.Lent", sizeof(Lent), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, lent_slots};

int add_lent(PyObject *module) {
  Lent_Type = type_of(module, &lent_spec);
  return Lent_Type ? 0 : -1;
}
