/* DLPack capsules that nobody took, which still own what they hold.

   A consumer that refuses a capsule drops it while its error is under way. What Python is called then finds
   that error, and fails: the error is lost, and so is the memory. */
#include "core.h"

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

PyObject *capsule_destructor(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromVoidPtr((void *)free_capsule);
}
