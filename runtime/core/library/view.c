/* View: memory of a library's buffer, kept until the last NumPy array over it is freed. NumPy's
   arrays are not collected, so that an object that an array keeps must not refer to an object that
   may keep the array. So a view refers to the owner of the buffer, which outlives the Buffer
   object, and not to that object. */
#include "library/internal.h"

static PyTypeObject *Owner_Type, *View_Type;

/* Destroys a PJRT_Buffer that its Buffer and its views share. */
typedef struct {
  PyObject_HEAD
  Client *client;
  PJRT_Buffer *address; /* NULL once it is destroyed */
  Py_ssize_t views;     /* number of views that are alive */
} Owner;

typedef struct {
  PyObject_HEAD
  References *references;
  Owner *owner; /* destroyed after the reference is released */
  void *data;
  Py_ssize_t size;
} View;

PyObject *owner_for(Client *client, PJRT_Buffer *address) {
  Owner *made = PyObject_New(Owner, Owner_Type);
  if (!made) return NULL;
  made->client = (Client *)Py_NewRef((PyObject *)client);
  made->address = address;
  made->views = 0;
  return (PyObject *)made;
}

PJRT_Buffer *owner_address(PyObject *owner) { return ((Owner *)owner)->address; }

/* Does nothing while there are views: at the interpreter's exit arrays may still be read. */
static PyObject *owner_destroy(Owner *self, PyObject *unused) {
  (void)unused;
  PJRT_Buffer *address = self->address;
  if (address && !self->views) {
    self->address = NULL;
    client_destroy_buffer(self->client, address);
  }
  Py_RETURN_NONE;
}

static void owner_dealloc(PyObject *object) {
  Owner *self = (Owner *)object;
  if (self->address) client_destroy_buffer(self->client, self->address);
  Py_DECREF((PyObject *)self->client);
  free_object(object);
}

PyObject *view_for(References *references, PyObject *owner) {
  View *made = PyObject_New(View, View_Type);
  if (!made) {
    Raised raised = set_aside();
    references_drop(references, owner_address(owner));
    Py_DECREF(owner);
    put_back(raised, (PyObject *)references);
    return NULL;
  }
  made->references = (References *)Py_NewRef((PyObject *)references);
  made->owner = (Owner *)owner;
  made->owner->views++;
  made->data = NULL;
  made->size = 0;
  return (PyObject *)made;
}

void view_set(PyObject *view, void *data, Py_ssize_t size) {
  ((View *)view)->data = data;
  ((View *)view)->size = size;
}

static int view_get_buffer(PyObject *object, Py_buffer *given, int flags) {
  View *self = (View *)object;
  return PyBuffer_FillInfo(given, object, self->data, self->size, 1, flags);
}

static void view_dealloc(PyObject *object) {
  View *self = (View *)object;
  Raised raised = set_aside();
  references_drop(self->references, self->owner->address);
  self->owner->views--;
  Py_DECREF((PyObject *)self->owner);
  put_back_alone(raised, (PyObject *)self->references); /* reported as in a finalizer */
  Py_DECREF((PyObject *)self->references);
  free_object(object);
}

static PyMethodDef owner_methods[] = {
    {"destroy", (PyCFunction)owner_destroy, METH_VARARGS, "Destroys the buffer now, unless it is viewed."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot owner_slots[] = {
    {Py_tp_doc, "Destroys the PJRT_Buffer that a Buffer and views of its memory share."},
    {Py_tp_dealloc, owner_dealloc},
    {Py_tp_methods, owner_methods},
    {0, NULL},
};
static PyType_Spec owner_spec = {"plugrt._core.Owner", sizeof(Owner), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, owner_slots};
static PyType_Slot view_slots[] = {
    {Py_tp_doc, "The memory of a buffer, read-only; NumPy's arrays over it keep it."},
    {Py_tp_dealloc, view_dealloc},
    {Py_bf_getbuffer, view_get_buffer},
    {0, NULL},
};
static PyType_Spec view_spec = {"plugrt._core.View", sizeof(View), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, view_slots};

int add_view(PyObject *module) {
  Owner_Type = type_of(module, &owner_spec);
  View_Type = Owner_Type ? type_of(module, &view_spec) : NULL;
  return View_Type ? 0 : -1;
}
