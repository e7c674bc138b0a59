/* ShardsLauncher: launches a program on several devices through functions that its backend gives.

   Arguments and results are shards: objects of one class of the backend that have one of its arrays
   over all devices, `raw`, or one on each, `_parts`. The program is loaded on all devices at once, or
   on each by itself. */
#include "launches/internal.h"

PyTypeObject *ShardsLauncher_Type;

static int launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                  PyObject **results) {
  return shards_launch(self, arguments, count, results, NULL);
}

static PyObject *launch_in_python(PyObject *self, PyObject *given) {
  return PyObject_CallMethod(((ShardsLauncher *)self)->owner, "execute", "(O)", given);
}

static PyObject *launcher_call(ShardsLauncher *self, PyObject *args, PyObject *kwargs) {
  return call_launching(&self->head, args, kwargs, launch_in_python);
}

static int are_tuples(PyObject *given, Py_ssize_t size) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) {
    PyObject *item = PyTuple_GetItem(given, i);
    if (PyTuple_Check(item) && PyTuple_Size(item) == size) continue;
    PyErr_SetString(PyExc_TypeError, "a launch is of three functions, a result of a type and a place");
    return 0;
  }
  return 1;
}

static int launcher_init(ShardsLauncher *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"owner",     "cls",        "parameters", "place",   "results",
                          "launches",  "take",       "take_token", "make_wait", "is_deleted",
                          "prepare",   "lock",       "unless",     "explain", "tidy",
                          "donated",   "delete",     NULL};
  PyObject *o[15], *donated = NULL, *delete = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!OO!O!OOOOOOO!OO|O!O", names, &o[0], &PyType_Type,
                                   &o[1], &PyTuple_Type, &o[2], &o[3], &PyTuple_Type, &o[4],
                                   &PyTuple_Type, &o[5], &o[6], &o[7], &o[8], &o[9], &o[10], &o[11],
                                   &PyTuple_Type, &o[12], &o[13], &o[14], &PyTuple_Type, &donated,
                                   &delete))
    return -1;
  if (self->owner || !PyTuple_Size(o[5]) || !are_tuples(o[5], 3) || !are_tuples(o[4], 2)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a launcher is made once, of launches");
    return -1;
  }
  if (donated && PyTuple_Size(donated) && PyTuple_Size(o[5]) == 1) {
    PyErr_SetString(PyExc_ValueError, "one launch on all devices takes no arguments");
    return -1;
  }
  if (donated && donated_init(&self->donated, donated, PyTuple_Size(o[2]), o[9], delete)) return -1;
  PyObject **fields[] = {&self->owner,      (PyObject **)&self->cls, &self->parameters,
                         &self->place,      &self->results,          &self->launches,
                         &self->take,       &self->take_token,       &self->make_wait,
                         &self->is_deleted, &self->prepare,          &self->lock,
                         &self->unless,     &self->explain,          &self->tidy};
  for (int i = 0; i < 15; i++) *fields[i] = Py_NewRef(o[i]);
  self->head.produced = PyTuple_Size(self->results);
  self->head.launch = launch;
  self->head.launch_with_wait = shards_launch;
  return 0;
}

static int launcher_traverse(ShardsLauncher *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->owner);
  Py_VISIT(self->cls);
  Py_VISIT(self->parameters);
  Py_VISIT(self->place);
  Py_VISIT(self->results);
  Py_VISIT(self->launches);
  Py_VISIT(self->take);
  Py_VISIT(self->take_token);
  Py_VISIT(self->make_wait);
  Py_VISIT(self->is_deleted);
  Py_VISIT(self->prepare);
  Py_VISIT(self->lock);
  Py_VISIT(self->unless);
  Py_VISIT(self->explain);
  Py_VISIT(self->tidy);
  return donated_visit(&self->donated, visit, arg);
}

/* No tp_clear, as of the other launchers. */
static void launcher_dealloc(PyObject *object) {
  ShardsLauncher *self = (ShardsLauncher *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->owner);
  Py_XDECREF((PyObject *)self->cls);
  Py_XDECREF(self->parameters);
  Py_XDECREF(self->place);
  Py_XDECREF(self->results);
  Py_XDECREF(self->launches);
  Py_XDECREF(self->take);
  Py_XDECREF(self->take_token);
  Py_XDECREF(self->make_wait);
  Py_XDECREF(self->is_deleted);
  Py_XDECREF(self->prepare);
  Py_XDECREF(self->lock);
  Py_XDECREF(self->unless);
  Py_XDECREF(self->explain);
  Py_XDECREF(self->tidy);
  donated_drop(&self->donated);
  free_object(object);
}

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc, "Launches a program on devices: launcher(shards of arguments) -> those of results."},
    {Py_tp_init, launcher_init},
    {Py_tp_call, launcher_call},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_dealloc, launcher_dealloc},
    {0, NULL},
};
static PyType_Spec launcher_spec = {"plugrt._core.ShardsLauncher", sizeof(ShardsLauncher), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, launcher_slots};

int add_shards_launcher(PyObject *module) {
  if (set_shards_names()) return -1;
  ShardsLauncher_Type = type_of(module, &launcher_spec);
  return ShardsLauncher_Type ? 0 : -1;
}
