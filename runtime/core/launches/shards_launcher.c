/* ShardsLauncher: launches a program on several devices with functions of its backend. Arguments
   and results are shards: objects of one class of the backend with one array over all devices,
   `raw`, or one array per device, `_parts`. The program is loaded on all devices at once, or on
   each device separately. */
#include "launches/internal.h"

static PyObject *launch_in_python(PyObject *self, PyObject *given) {
  return PyObject_CallMethod(((ShardsLauncher *)self)->owner, "execute", "(O)", given);
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
  if (donated && donated_init(&self->head.donated, donated, PyTuple_Size(o[2]), o[9], delete)) return -1;
  keep_objects(&self->head, o, 15);
  self->head.produced = PyTuple_Size(self->results);
  self->head.launch = shards_launch;
  self->head.in_python = launch_in_python;
  self->head.gives_wait = 1;
  return 0;
}

int add_shards_launcher(PyObject *module) {
  if (set_shards_names()) return -1;
  return add_launching(module, "plugrt._core.ShardsLauncher",
                       "Launches a program on devices: launcher(shards of arguments) -> those of results.",
                       sizeof(ShardsLauncher), (initproc)launcher_init, 1);
}
