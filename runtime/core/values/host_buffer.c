/* HostBuffer: a buffer of an array's contents, referenced by the views of it. It is like a
   memoryview without garbage collection. NumPy's arrays are not collected either, so that the
   collector could not find cycles through them. */
#include "values/internal.h"

static PyTypeObject *HostBuffer_Type;

typedef struct {
  PyObject_HEAD
  Py_buffer buffer;
  PyObject *kept;
} HostBuffer;

PyObject *make_host_buffer(PyObject *holder) {
  HostBuffer *made = PyObject_New(HostBuffer, HostBuffer_Type);
  if (!made) return NULL;
  made->buffer.obj = made->kept = NULL;
  if (PyObject_GetBuffer(holder, &made->buffer, PyBUF_SIMPLE)) Py_CLEAR(made);
  return (PyObject *)made;
}

const Py_buffer *host_buffer_view(PyObject *host_buffer) { return &((HostBuffer *)host_buffer)->buffer; }

PyObject *host_buffer_keep(PyObject *host_buffer, PyObject *other) {
  if (!((HostBuffer *)host_buffer)->kept) ((HostBuffer *)host_buffer)->kept = Py_NewRef(other);
  return ((HostBuffer *)host_buffer)->kept;
}

int is_host_buffer(PyObject *object) { return object && Py_TYPE(object) == HostBuffer_Type; }

int is_host_buffer_of(PyObject *extra, PyObject *held) {
  PyObject *host_buffer = is_host_buffer(extra) ? Py_NewRef(extra) : base_of(extra);
  int found = is_host_buffer(host_buffer) && ((HostBuffer *)host_buffer)->buffer.obj == held;
  Py_XDECREF(host_buffer);
  return found;
}

static void host_buffer_dealloc(PyObject *object) {
  HostBuffer *self = (HostBuffer *)object;
  PyBuffer_Release(&self->buffer);
  Py_XDECREF(self->kept);
  free_object(object);
}

static PyMemberDef host_buffer_members[] = {
    {"obj", T_OBJECT, offsetof(HostBuffer, buffer) + offsetof(Py_buffer, obj), READONLY,
     "The object whose buffer it is."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot host_buffer_slots[] = {
    {Py_tp_doc, "A buffer of what an array holds, which the views over it keep."},
    {Py_tp_dealloc, host_buffer_dealloc},
    {Py_tp_members, host_buffer_members},
    {0, NULL},
};
static PyType_Spec host_buffer_spec = {"plugrt._core.HostBuffer", sizeof(HostBuffer), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, host_buffer_slots};

int add_host_buffer(PyObject *module) {
  HostBuffer_Type = type_of(module, &host_buffer_spec);
  return HostBuffer_Type ? 0 : -1;
}
