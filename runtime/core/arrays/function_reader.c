/* FunctionReader: reads arrays of one type with functions of their backend. Like the
   FunctionLauncher, it is for backends whose runtime has its own objects and functions instead of a
   PJRT library. */
#include "arrays/internal.h"
#include "values/values.h"

PyTypeObject *FunctionReader_Type;

typedef struct {
  PyObject_HEAD
  PyObject *held_class;       /* the class of the backend's arrays; Python reads others */
  PyObject *is_ready, *wait;  /* functions of one array */
  PyObject *lock;             /* held while a view is made */
  /* view(held) returns an object with the contents as its buffer; NULL: `held` is that object */
  PyObject *view;
  HostForm form;              /* dtype and shape of the NumPy array */
  PyObject *format;           /* element format of the buffer protocol; None if there is none */
  const char *format_code;    /* the same as a C string */
  PyObject *unless;           /* tuple: Python reads while one of these is not empty */
} FunctionReader;

int any_is_filled(PyObject *gates) {
  for (Py_ssize_t i = 0, count = PyTuple_Size(gates); i < count; i++) {
    Py_ssize_t size = PyObject_Size(PyTuple_GetItem(gates, i));
    if (size) return size < 0 ? -1 : 1;
  }
  return 0;
}

/* Waits without the lock: making the contents may need it. */
static int await_contents(FunctionReader *self, PyObject *held) {
  PyObject *answer = PyObject_CallFunctionObjArgs(self->is_ready, held, NULL);
  int ready = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (ready) return ready;
  answer = PyObject_CallFunctionObjArgs(self->wait, held, NULL);
  Py_XDECREF(answer);
  return answer ? 1 : -1;
}

static PyObject *acquire_under_lock(FunctionReader *self, PyObject *held) {
  if (acquire_lock(self->lock) == FAILED) return NULL;
  PyObject *holder = self->view ? PyObject_CallFunctionObjArgs(self->view, held, NULL) : Py_NewRef(held);
  PyObject *host_buffer = holder ? make_host_buffer(holder) : NULL;
  Py_XDECREF(holder);
  Raised raised = {NULL, NULL, NULL};
  if (!host_buffer) raised = set_aside();
  int released = release_lock(self->lock);
  if (released == FAILED) Py_CLEAR(host_buffer);
  if (raised.type || released == FAILED) put_back_alone(raised, (PyObject *)self);
  return host_buffer;
}

PyObject *function_reader_acquire(PyObject *object, PyObject *held, int is_there) {
  FunctionReader *self = (FunctionReader *)object;
  if ((PyObject *)Py_TYPE(held) != self->held_class) return NULL;
  if (any_is_filled(self->unless)) return NULL;
  if (!is_there && await_contents(self, held) < 0) return NULL;
  PyObject *host_buffer = acquire_under_lock(self, held);
  if (host_buffer && host_buffer_view(host_buffer)->len != self->form.size) Py_CLEAR(host_buffer);
  return host_buffer;
}

PyObject *function_reader_over(PyObject *object, PyObject *host_buffer) {
  return host_form_over(&((FunctionReader *)object)->form, host_buffer_view(host_buffer)->buf, host_buffer);
}

PyObject *function_reader_read(PyObject *object, PyObject *held, int is_there) {
  PyObject *host_buffer = function_reader_acquire(object, held, is_there);
  PyObject *made = host_buffer ? function_reader_over(object, host_buffer) : NULL;
  Py_XDECREF(host_buffer);
  return made;
}

int function_reader_fill(PyObject *object, PyObject *host_buffer, Py_buffer *view, int flags) {
  /* A HostBuffer with the shape and the format. */
  FunctionReader *self = (FunctionReader *)host_buffer_keep(host_buffer, object);
  if (!self->format_code || !host_form_suits(&self->form, flags)) return NOT_HERE;
  host_form_fill(&self->form, host_buffer_view(host_buffer)->buf, self->format_code, view, flags);
  view->obj = Py_NewRef(host_buffer);
  return DONE;
}

static int function_reader_init(FunctionReader *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"held_class", "is_ready", "wait", "lock", "view", "shape",
                          "dtype",      "unless",   "format", NULL};
  PyObject *held_class, *is_ready, *wait, *lock, *view, *shape, *dtype, *unless, *format = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOO!|O", names, &held_class, &is_ready, &wait,
                                   &lock, &view, &shape, &dtype, &PyTuple_Type, &unless, &format))
    return -1;
  if (self->held_class) {
    PyErr_SetString(PyExc_TypeError, "a reader is made once");
    return -1;
  }
  const char *code = format == Py_None ? NULL : PyUnicode_AsUTF8AndSize(format, NULL);
  HostForm form;
  if (PyErr_Occurred() || host_form_init(&form, shape, dtype)) return -1;
  self->lock = Py_NewRef(lock);
  self->is_ready = Py_NewRef(is_ready);
  self->wait = Py_NewRef(wait);
  self->view = view == (PyObject *)&PyMemoryView_Type ? NULL : Py_NewRef(view);
  self->form = form;
  self->format = Py_NewRef(format);
  self->format_code = code;
  self->unless = Py_NewRef(unless);
  self->held_class = Py_NewRef(held_class);
  return 0;
}

static int function_reader_traverse(FunctionReader *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->held_class);
  Py_VISIT(self->is_ready);
  Py_VISIT(self->wait);
  Py_VISIT(self->lock);
  Py_VISIT(self->view);
  Py_VISIT(self->form.dtype);
  Py_VISIT(self->unless);
  return 0;
}

/* No tp_clear: a read in a finalizer has to work, as a launch does. */
static void function_reader_dealloc(PyObject *object) {
  FunctionReader *self = (FunctionReader *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->held_class);
  Py_XDECREF(self->is_ready);
  Py_XDECREF(self->wait);
  Py_XDECREF(self->lock);
  Py_XDECREF(self->view);
  host_form_clear(&self->form);
  Py_XDECREF(self->format);
  Py_XDECREF(self->unless);
  free_object(object);
}

static PyType_Slot function_reader_slots[] = {
    {Py_tp_doc, "Reads arrays through functions that their backend gives; arrays call it."},
    {Py_tp_init, function_reader_init},
    {Py_tp_traverse, function_reader_traverse},
    {Py_tp_dealloc, function_reader_dealloc},
    {0, NULL},
};
static PyType_Spec function_reader_spec = {"plugrt._core.FunctionReader", sizeof(FunctionReader), 0,
                                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                           function_reader_slots};

int add_function_reader(PyObject *module) {
  if (find_numpy()) return -1;
  FunctionReader_Type = type_of(module, &function_reader_spec);
  return FunctionReader_Type ? 0 : -1;
}
