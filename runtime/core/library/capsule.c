/* DLPack: the destructor of capsules that no consumer accepted, and the deleter of tensors.

   A consumer that refuses a capsule frees it while its exception is set. Python code called then
   would find that exception set and fail; both the error and the memory would be lost.

   A consumer may keep a tensor longer than the interpreter exists, and release it from a destructor
   of the process. Calling Python then would end the process with a signal, so that such memory is
   left to the exit. */
#include "library/library.h"

static const char UNUSED[] = "dltensor";

typedef struct Managed { /* DLManagedTensor */
  struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } tensor;
  void *context;
  void (*deleter)(struct Managed *);
} Managed;

static void free_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, UNUSED)) return;
  Managed *managed = PyCapsule_GetPointer(capsule, UNUSED);
  Raised raised = set_aside();
  managed->deleter(managed);
  put_back_alone(raised, NULL);
}

static void (*release_in_python)(Managed *);

static void release_tensor(Managed *managed) {
  /* During finalization the interpreter's own thread may still call Python, and frees the objects
     of modules. */
  if (Py_IsInitialized() || PyGILState_GetThisThreadState()) release_in_python(managed);
}

PyObject *tensor_deleter(PyObject *module, PyObject *address) {
  (void)module;
  void *given = PyLong_AsVoidPtr(address);
  if (!given && PyErr_Occurred()) return NULL;
  SET_FUNCTION(release_in_python, given);
  return PyLong_FromVoidPtr((void *)release_tensor);
}

PyObject *capsule_destructor(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromVoidPtr((void *)free_capsule);
}
