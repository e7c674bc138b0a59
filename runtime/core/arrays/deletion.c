/* Deletion: the base class of `plugrt.execution.arrays.array_deletion.Deletion`, the reason why an
   array has no data. Each launch with donated arguments makes one: here it needs no Python call. */
#include "arrays/arrays.h"

static PyTypeObject *Deletion_Type, *deletion_class;
static allocfunc deletion_alloc;
static PyObject *our_files; /* dict: from a file name to whether the file belongs to plugrt */
static PyObject *filename_name, *last_name;

typedef struct {
  PyObject_HEAD
  PyObject *taker, *code, *at;
} Deletion;

/* 1 if the code is the user's, 0 if it is plugrt's, -1 with an exception. */
static int is_users(PyObject *code) {
  PyObject *filename = PyObject_GetAttr(code, filename_name);
  PyObject *ours = filename ? PyObject_GetItem(our_files, filename) : NULL;
  Py_XDECREF(filename);
  int answer = ours ? PyObject_IsTrue(ours) : -1;
  Py_XDECREF(ours);
  return answer < 0 ? -1 : !answer;
}

PyObject *deletion_for(PyObject *taker) {
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  /* None if no Python code runs: a thread calls a jitted function directly */
  PyObject *code = NULL, *at = NULL;
  if (frame) {
    code = (PyObject *)PyFrame_GetCode(frame);
    int users = is_users(code);
    if (users > 0) at = PyObject_GetAttr((PyObject *)frame, last_name);
    Py_DECREF((PyObject *)frame);
    if (!at) {
      Py_DECREF(code);
      return users ? NULL : PyObject_CallFunctionObjArgs((PyObject *)deletion_class, taker, NULL);
    }
  }
  Deletion *made = (Deletion *)deletion_alloc(deletion_class, 0);
  if (!made) {
    Py_XDECREF(code);
    Py_XDECREF(at);
    return NULL;
  }
  made->taker = Py_NewRef(taker);
  made->code = code;
  made->at = at;
  return (PyObject *)made;
}

static int deletion_traverse(Deletion *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->code);
  return 0;
}

static void deletion_dealloc(PyObject *object) {
  Deletion *self = (Deletion *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->taker);
  Py_XDECREF(self->code);
  Py_XDECREF(self->at);
  free_object(object);
}

static PyMemberDef deletion_members[] = {
    {"_taker", T_OBJECT, offsetof(Deletion, taker), 0, "The name of what it was donated to."},
    {"_code", T_OBJECT, offsetof(Deletion, code), 0, "The user's code that did it, or None."},
    {"_at", T_OBJECT, offsetof(Deletion, at), 0, "The offset in bytes of the call there."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot deletion_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.arrays.array_deletion.Deletion."},
    {Py_tp_traverse, deletion_traverse},
    {Py_tp_dealloc, deletion_dealloc},
    {Py_tp_members, deletion_members},
    {0, NULL},
};
static PyType_Spec deletion_spec = {
    "plugrt._core.Deletion", sizeof(Deletion), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, deletion_slots};

int add_deletion(PyObject *module) {
  filename_name = PyUnicode_InternFromString("co_filename");
  last_name = PyUnicode_InternFromString("f_lasti");
  Deletion_Type = type_of(module, &deletion_spec);
  return filename_name && last_name && Deletion_Type ? 0 : -1;
}

PyObject *set_deletion_class(PyObject *module, PyObject *args) {
  (void)module;
  PyTypeObject *cls;
  PyObject *files;
  if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &cls, &files)) return NULL;
  if (!PyType_IsSubtype(cls, Deletion_Type)) {
    PyErr_SetString(PyExc_TypeError, "the class of deletions is derived from plugrt._core.Deletion");
    return NULL;
  }
  deletion_alloc = (allocfunc)PyType_GetSlot(cls, Py_tp_alloc);
  deletion_class = (PyTypeObject *)Py_NewRef((PyObject *)cls); /* kept for ever, as the others are */
  our_files = Py_NewRef(files);
  Py_RETURN_NONE;
}
