// The C interface of the runtime: all that Python calls. Its functions may be called from several threads.
//
// The commands of one device are done in the order of the calls. Here each is done when its call returns. A runtime
// with a queue may return from runtime_copy and runtime_launch before; runtime_copy_out then waits for the earlier
// commands, and runtime_free frees the memory after them.

#ifndef MY_CHIP_RUNTIME_H_
#define MY_CHIP_RUNTIME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Python declares what is between these two marks as it is here (runtime.py): no preprocessor.
// cdef: begin
typedef struct {
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t allocations;  // those that are not freed
  int64_t copies_in;
  int64_t copies_out;
  int64_t launches;
} runtime_counters;

// How many devices there can be: ids are from 0 on.
int runtime_most_devices(void);

// Returns memory on a device, for any type of elements; NULL if there is not enough.
void* runtime_allocate(int device, int64_t bytes);
void runtime_free(void* memory);

// Return 0, or another number after an error, which runtime_last_error describes.
int runtime_copy_in(int device, void* target, const void* host, int64_t bytes);
int runtime_copy_out(int device, void* host, const void* source, int64_t bytes);
int runtime_copy(int device, void* target, const void* source, int64_t bytes);
int runtime_launch(int device, const char* kernel, void* result, void* const* arguments, const int64_t* numbers);
int runtime_wait(int device);

// Whether there is a kernel of that name: 1 or 0.
int runtime_has_kernel(const char* kernel);

// Returns the last error of the calling thread.
const char* runtime_last_error(void);

void runtime_read_counters(int device, runtime_counters* counters);
// cdef: end

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // MY_CHIP_RUNTIME_H_
