/* FunctionReader: the contents of arrays of one type, by functions that their backend gives.

   As the FunctionLauncher, for backends whose runtime has objects and functions of its own. */
#include "core.h"

PyTypeObject *FunctionReader_Type;
static PyTypeObject *Lent_Type;

typedef struct {
  PyObject_HEAD
  PyObject *held_class;       /* of what arrays hold; of others Python reads */
  PyObject *is_ready, *wait;  /* of one of those */
  PyObject *lock;             /* under which a view is made */
  PyObject *view;             /* view(held) has the contents as its buffer; NULL: held itself has */
  HostForm form;              /* of the NumPy array */
  PyObject *unless;           /* tuple: while one of these is not empty, Python reads */
} FunctionReader;

/* A buffer of what an array holds: the NumPy array over it keeps it. As a memoryview, but not known to
   the garbage collector: NumPy's arrays are not, so that it could not follow it anyway. */
typedef struct {
  PyObject_HEAD
  Py_buffer buffer;
} Lent;

/* Without dimensions and strides, which lenders then need not make, and lend row-major memory alone. */
static PyObject *lend(PyObject *holder) {
  Lent *made = PyObject_New(Lent, Lent_Type);
  if (!made) return NULL;
  made->buffer.obj = NULL;
  if (PyObject_GetBuffer(holder, &made->buffer, PyBUF_SIMPLE)) Py_CLEAR(made);
  return (PyObject *)made;
}

static void lent_dealloc(PyObject *object) {
  PyBuffer_Release(&((Lent *)object)->buffer);
  free_object(object);
}

int is_lent(PyObject *host, PyObject *held) {
  PyObject *base = base_of(host);
  int found = base && Py_TYPE(base) == Lent_Type && ((Lent *)base)->buffer.obj == held;
  Py_XDECREF(base);
  return found;
}

int any_is_filled(PyObject *gates) {
  for (Py_ssize_t i = 0, count = PyTuple_Size(gates); i < count; i++) {
    Py_ssize_t size = PyObject_Size(PyTuple_GetItem(gates, i));
    if (size) return size < 0 ? -1 : 1;
  }
  return 0;
}

/* Without the lock: what makes the contents may need it. */
static int await_contents(FunctionReader *self, PyObject *held) {
  PyObject *answer = PyObject_CallFunctionObjArgs(self->is_ready, held, NULL);
  int ready = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (ready) return ready;
  answer = PyObject_CallFunctionObjArgs(self->wait, held, NULL);
  Py_XDECREF(answer);
  return answer ? 1 : -1;
}

static PyObject *view_under_lock(FunctionReader *self, PyObject *held) {
  if (acquire_lock(self->lock) == FAILED) return NULL;
  PyObject *holder = self->view ? PyObject_CallFunctionObjArgs(self->view, held, NULL) : Py_NewRef(held);
  PyObject *view = holder ? lend(holder) : NULL;
  Py_XDECREF(holder);
  Raised raised = set_aside();
  if (release_lock(self->lock) == FAILED) Py_CLEAR(view);
  put_back_alone(raised, (PyObject *)self);
  return view;
}

PyObject *function_reader_read(PyObject *object, PyObject *held, int is_there) {
  FunctionReader *self = (FunctionReader *)object;
  if ((PyObject *)Py_TYPE(held) != self->held_class) return NULL;
  if (any_is_filled(self->unless)) return NULL;
  if (!is_there && await_contents(self, held) < 0) return NULL;
  PyObject *view = view_under_lock(self, held);
  if (!view) return NULL;
  Py_buffer *lent = &((Lent *)view)->buffer;
  int fits = lent->len == self->form.size;
  PyObject *made = fits ? host_form_over(&self->form, lent->buf, view) : NULL;
  Py_DECREF(view);
  return made;
}

static int function_reader_init(FunctionReader *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"held_class", "is_ready", "wait", "lock", "view", "shape", "dtype", "unless", NULL};
  PyObject *held_class, *is_ready, *wait, *lock, *view, *shape, *dtype, *unless;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOO!", names, &held_class, &is_ready, &wait,
                                   &lock, &view, &shape, &dtype, &PyTuple_Type,
                                   &unless))
    return -1;
  if (self->held_class) {
    PyErr_SetString(PyExc_TypeError, "a reader is made once");
    return -1;
  }
  HostForm form;
  if (host_form_init(&form, shape, dtype)) return -1;
  self->lock = Py_NewRef(lock);
  self->is_ready = Py_NewRef(is_ready);
  self->wait = Py_NewRef(wait);
  self->view = view == (PyObject *)&PyMemoryView_Type ? NULL : Py_NewRef(view);
  self->form = form;
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

/* No tp_clear: a read of a finaliser must work, as a launch does. */
static void function_reader_dealloc(PyObject *object) {
  FunctionReader *self = (FunctionReader *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->held_class);
  Py_XDECREF(self->is_ready);
  Py_XDECREF(self->wait);
  Py_XDECREF(self->lock);
  Py_XDECREF(self->view);
  host_form_clear(&self->form);
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

static PyMemberDef lent_members[] = {
    {"obj", T_OBJECT, offsetof(Lent, buffer) + offsetof(Py_buffer, obj), READONLY, "What lends it."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot lent_slots[] = {
    {Py_tp_doc, "A buffer of what an array holds, for the NumPy array over it."},
    {Py_tp_dealloc, lent_dealloc},
    {Py_tp_members, lent_members},
    {0, NULL},
};
static PyType_Spec lent_spec = {"plugrt._core.Lent", sizeof(Lent), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, lent_slots};

int add_function_reader(PyObject *module) {
  Lent_Type = type_of(module, &lent_spec);
  if (!Lent_Type || find_numpy()) return -1;
  FunctionReader_Type = type_of(module, &function_reader_spec);
  return FunctionReader_Type ? 0 : -1;
}
