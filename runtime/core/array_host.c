/* The host copy of an array: read once, kept in it, and returned to NumPy.

   What does not succeed here, Python does, and finds what there is to say of it. */
#include "core.h"

static PyObject *host_in_python, *array_in_python; /* the methods of the class below Array */
static PyObject *gates;                            /* while one is not empty, Python reads */
static PyObject *one_device; /* the class of shardings whose array is what its one buffer holds */
static PyObject *reader_name, *sharding_name;

/* The contents of a small buffer of a library; NULL as in `read_here`. */
static PyObject *read_buffer(PyObject *signature, PyObject *held) {
  PyObject *sharding = PyObject_GetAttr(signature, sharding_name), *host = NULL;
  int single = sharding && (PyObject *)Py_TYPE(sharding) == one_device;
  Py_XDECREF(sharding);
  if (!single || is_guarded()) return NULL;
  PyObject *spec = ((Buffer *)held)->spec;
  PyObject *reader = spec ? PyObject_GetAttr(spec, reader_name) : NULL;
  if (reader && Py_TYPE(reader) == Reader_Type) host = reader_read(reader, held);
  Py_XDECREF(reader);
  return host;
}

/* The contents of what another backend's array holds; NULL as in `read_here`. */
static PyObject *read_by_functions(PyObject *signature, PyObject *held, int is_there) {
  PyObject *reader = PyObject_GetAttr(signature, reader_name), *host = NULL;
  if (reader && Py_TYPE(reader) == FunctionReader_Type) host = function_reader_read(reader, held, is_there);
  Py_XDECREF(reader);
  return host;
}

/* A new reference; NULL where Python has to read, perhaps with an exception that is not derived from
   Exception. */
static PyObject *read_here(Array *self) {
  int there = self->shards && self->shards != Py_None; /* Python deletes it by setting None */
  if (!there || !self->signature || !gates) return NULL;
  if (self->extra && self->extra != Py_None) return Py_NewRef(self->extra);
  if (any_is_filled(gates)) return NULL;
  PyObject *held = Py_NewRef(self->shards); /* which another thread may delete */
  int is_buffer = PyType_IsSubtype(Py_TYPE(held), Buffer_Type);
  /* A launch under way may be taking it as another array's, and end only when this thread goes on. */
  int is_there = self->is_there && Py_REFCNT(held) == 2;
  PyObject *host = is_buffer ? read_buffer(self->signature, held)
                             : read_by_functions(self->signature, held, is_there);
  if (host && self->shards == held) {
    PyObject *old = self->extra;
    self->extra = Py_NewRef(host);
    Py_XDECREF(old);
  }
  Py_DECREF(held);
  return host;
}

/* What Python has read after an exception of `read_here`: with its own exception if the array has
   none, else that one, which Python did not meet: a signal's, say. */
static PyObject *after_python(PyObject *made, PyObject *before) {
  if (made && before && !PyErr_GivenExceptionMatches(before, PyExc_MemoryError)) {
    Py_DECREF(made);
    raise_exception(before);
    return NULL;
  }
  Py_XDECREF(before);
  return made;
}

PyObject *array_host(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *host = read_here((Array *)self);
  if (host) return host;
  PyObject *before = take_exception();
  if (PyErr_Occurred()) return NULL;
  return after_python(PyObject_CallFunctionObjArgs(host_in_python, self, NULL), before);
}

PyObject *array_to_numpy(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *before = NULL;
  if (!count && (!names || !PyTuple_Size(names))) {
    PyObject *host = read_here((Array *)self);
    if (host) return host;
    before = take_exception();
    if (PyErr_Occurred()) return NULL;
  }
  return after_python(call_method(array_in_python, self, args, count, names), before);
}

PyObject *set_read_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *host, *array, *buffer, *unless, *single;
  if (!PyArg_ParseTuple(args, "OOOO!O", &host, &array, &buffer, &PyTuple_Type, &unless, &single))
    return NULL;
  reader_name = PyUnicode_InternFromString("reader");
  sharding_name = PyUnicode_InternFromString("sharding");
  if (!reader_name || !sharding_name) return NULL;
  one_device = Py_NewRef(single);
  host_in_python = Py_NewRef(host); /* kept for ever, as the classes are */
  array_in_python = Py_NewRef(array);
  set_buffer_method(buffer);
  gates = Py_NewRef(unless);
  Py_RETURN_NONE;
}
