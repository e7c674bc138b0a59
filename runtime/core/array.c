/* Array: the base of `plugrt.execution.array.Array`, with what it holds. */
#include "core.h"

PyTypeObject *Array_Type, *array_class;
static Spares spares;
static Py_ssize_t weak_offset; /* of the list of weak references to an array */

PyObject *array_holding(PyObject *shards, PyObject *signature) {
  Array *made = (Array *)spares_make(&spares);
  if (!made) {
    Py_DECREF(shards);
    return NULL;
  }
  made->shards = shards;
  made->signature = Py_NewRef(signature);
  return (PyObject *)made;
}

int array_is_observed(PyObject *array) {
  return *(PyObject **)((char *)array + weak_offset) != NULL;
}

static int array_traverse(Array *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->shards);
  Py_VISIT(self->signature);
  Py_VISIT(self->extra);
  return 0;
}

static int array_clear(Array *self) {
  Py_CLEAR(self->shards);
  Py_CLEAR(self->extra);
  return 0;
}

static void array_dealloc(PyObject *object) {
  Array *self = (Array *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  array_clear(self);
  Py_XDECREF(self->signature);
  if (type == array_class) spares_free(&spares, object);
  else free_object(object);
}

static PyMethodDef array_methods[] = {
    {"_host", array_host, METH_NOARGS, "The contents as a read-only NumPy array, kept for the next time."},
    {"__array__", (PyCFunction)(void (*)(void))array_to_numpy, METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "Waits and returns the contents; read-only, and without a copy where the device allows."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef array_members[] = {
    {"_shards", T_OBJECT, offsetof(Array, shards), 0, "What launches take; None once deleted."},
    {"_signature", T_OBJECT, offsetof(Array, signature), 0, "Its type and place."},
    {"_is_there", T_BOOL, offsetof(Array, is_there), 0,
     "Whether the contents were waited for, so that a read need not ask."},
    {"_extra", T_OBJECT, offsetof(Array, extra), 0, "The host copy, or why it was deleted."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot array_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.array.Array."},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, array_methods},
    {Py_tp_members, array_members},
    {Py_bf_getbuffer, array_getbuffer}, /* the last: see add_array */
    {0, NULL},
};
static PyType_Spec array_spec = {
    "plugrt._core.Array", sizeof(Array), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, array_slots};

int add_array(PyObject *module) {
  enum { LAST = sizeof array_slots / sizeof *array_slots - 2 };
  if (Py_Version < 0x030C0000) array_slots[LAST] = (PyType_Slot){0, NULL}; /* as in Python: no buffer */
  Array_Type = type_of(module, &array_spec);
  return Array_Type ? 0 : -1;
}

PyObject *set_array_class(PyObject *module, PyObject *cls) {
  (void)module;
  if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, Array_Type)) {
    PyErr_SetString(PyExc_TypeError, "the class of arrays is derived from plugrt._core.Array");
    return NULL;
  }
  PyObject *offset = PyObject_GetAttrString(cls, "__weakrefoffset__");
  weak_offset = offset ? PyLong_AsSsize_t(offset) : 0;
  Py_XDECREF(offset);
  if (PyErr_Occurred()) return NULL;
  if (!weak_offset) {
    PyErr_SetString(PyExc_TypeError, "the class of arrays has no weak references");
    return NULL;
  }
  if (spares_init(&spares, (PyTypeObject *)cls)) return NULL;
  array_class = (PyTypeObject *)Py_NewRef(cls);
  Py_RETURN_NONE;
}
