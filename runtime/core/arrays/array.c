/* Array: the base class of `plugrt.execution.arrays.array.Array`, with its fields. */
#include "arrays/internal.h"
#include "values/values.h"

PyTypeObject *array_class;
static PyTypeObject *Array_Type;
static Spares spares;
static Py_ssize_t weak_offset; /* offset of an array's list of weak references */

PyObject *array_holding(PyObject *shards, PyObject *aval) {
  Array *made = (Array *)spares_make(&spares);
  if (!made) {
    Py_DECREF(shards);
    return NULL;
  }
  made->shards = shards;
  made->aval = Py_NewRef(aval);
  return (PyObject *)made;
}

PyObject *make_array(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  if (count == 2 && array_class) return array_holding(Py_NewRef(args[0]), args[1]);
  PyErr_SetString(PyExc_TypeError, "an array is made of what it holds and its aval");
  return NULL;
}

PyObject *replace_held(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *array, *held;
  if (!PyArg_ParseTuple(args, "O!O", Array_Type, &array, &held)) return NULL;
  Array *self = (Array *)array;
  PyObject *old = self->shards, *extra = self->extra;
  self->shards = Py_NewRef(held);
  self->extra = NULL;
  self->is_there = 0;
  Py_XDECREF(old); /* may run Python code: the array is complete by now */
  Py_XDECREF(extra);
  Py_RETURN_NONE;
}

int array_is_observed(PyObject *array) {
  return *(PyObject **)((char *)array + weak_offset) != NULL;
}

static int array_traverse(Array *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->shards);
  Py_VISIT(self->aval);
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
  Py_XDECREF(self->aval);
  if (type == array_class) spares_free(&spares, object);
  else free_object(object);
}

static PyMethodDef array_methods[] = {
    {"_host", array_host, METH_NOARGS, "The contents as a read-only NumPy array, kept for the next time."},
    {"__array__", (PyCFunction)(void (*)(void))array_to_numpy, METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "Waits and returns the contents; read-only, and without a copy where the device allows."},
    {"block_until_ready", (PyCFunction)(void (*)(void))array_block_until_ready,
     METH_FASTCALL | METH_KEYWORDS,
     "block_until_ready($self)\n--\n\n"
     "Waits until the contents are there and returns the array; raises if making it failed."},
    {"is_ready", (PyCFunction)(void (*)(void))array_is_ready, METH_FASTCALL | METH_KEYWORDS,
     "is_ready($self)\n--\n\n"
     "Whether the contents are there, so that reading them would not wait."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef array_members[] = {
    {"_aval", T_OBJECT_EX, offsetof(Array, aval), 0, "Its type and place."},
    {"_is_there", T_BOOL, offsetof(Array, is_there), 0,
     "Whether the contents were waited for, so that a read need not ask."},
    {NULL, 0, 0, 0, NULL},
};

/* The value of a field, None if it is not set. Raises AttributeError, as a slot of Python does, if
   the array was never filled. */
static PyObject *get_field(Array *self, PyObject *held, const char *name) {
  if (held || self->aval) return Py_NewRef(held ? held : Py_None);
  if (Py_Version >= 0x030D0000) {
    PyErr_Format(PyExc_AttributeError, "'%T' object has no attribute '%s'", self, name);
    return NULL;
  }
  PyObject *cls = PyType_GetName(Py_TYPE((PyObject *)self));
  if (cls) PyErr_Format(PyExc_AttributeError, "'%U' object has no attribute '%s'", cls, name);
  Py_XDECREF(cls);
  return NULL;
}

static int set_field(PyObject **field, PyObject *value) {
  PyObject *old = *field;
  *field = Py_XNewRef(value);
  Py_XDECREF(old);
  return 0;
}

static PyObject *get_shards(Array *self, void *unused) {
  (void)unused;
  return get_field(self, self->shards, "_shards");
}

static int set_shards(Array *self, PyObject *value, void *unused) {
  (void)unused;
  return set_field(&self->shards, value);
}

static PyObject *get_extra(Array *self, void *unused) {
  (void)unused;
  return get_field(self, is_host_buffer(self->extra) ? NULL : self->extra, "_extra");
}

static int set_extra(Array *self, PyObject *value, void *unused) {
  (void)unused;
  return set_field(&self->extra, value);
}

static PyObject *get_is_viewed(Array *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(is_host_buffer(self->extra));
}

/* Does nothing. Because this function exists, numpy.frombuffer keeps a memoryview instead of the
   array alone, whose memory may be released. */
static void array_releasebuffer(PyObject *self, Py_buffer *view) {
  (void)self;
  (void)view;
}

static PyGetSetDef array_fields[] = {
    {"_shards", (getter)get_shards, (setter)set_shards, "What launches take; None once deleted.", NULL},
    {"_extra", (getter)get_extra, (setter)set_extra, "The host copy, or why it was deleted.", NULL},
    {"_is_viewed", (getter)get_is_viewed, NULL, "Whether views were made that `_extra` is silent about.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot array_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.arrays.array.Array."},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, array_methods},
    {Py_tp_members, array_members},
    {Py_tp_getset, array_fields},
    {Py_bf_getbuffer, array_getbuffer},
    {Py_bf_releasebuffer, array_releasebuffer},
    {0, NULL},
};
static PyType_Spec array_spec = {
    "plugrt._core.Array", sizeof(Array), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, array_slots};

int add_array(PyObject *module) {
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
