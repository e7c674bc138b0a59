/* Notes which basic blocks of the library that it is linked into ran (-fsanitize-coverage=trace-pc):
   tools/mutants.py asks after each test. */
#include <stdint.h>
#include <string.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

enum { SIZE = 1 << 20 };
static unsigned char reached[SIZE];

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void) {
  uintptr_t offset = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;
  if (offset < SIZE) reached[offset] = 1;
}

/* Writes the offsets of the blocks that ran since the last call and forgets them; returns how many
   there are. With `room` 0 it only counts, and forgets nothing. */
__attribute__((visibility("default"))) int plugrt_blocks(uint32_t *offsets, int room) {
  int count = 0;
  for (uint32_t at = 0; at < SIZE; at++) {
    if (!reached[at]) continue;
    if (count < room) {
      offsets[count] = at;
      reached[at] = 0;
    }
    count++;
  }
  return count < room || !room ? count : room;
}
