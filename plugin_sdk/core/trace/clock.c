/* Time, threads, and counts of calls. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

Count counts[FUNCTION_COUNT];
static atomic_ullong calls;

int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static _Thread_local int64_t own_thread;

int64_t thread_id(void) {
  if (own_thread == 0)
    own_thread = syscall(SYS_gettid);
  return own_thread;
}

void forget_thread(void) { own_thread = 0; }

uint64_t next_call(void) { return atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1; }

void count_call(int function, int64_t duration, bool failed) {
  Count *count = &counts[function];
  long long longest = atomic_load_explicit(&count->longest, memory_order_relaxed);
  atomic_fetch_add_explicit(&count->errors, failed, memory_order_relaxed);
  atomic_fetch_add_explicit(&count->total, duration, memory_order_relaxed);
  while (duration > longest && !atomic_compare_exchange_weak(&count->longest, &longest, duration))
    ;
}
