/* Memory: whether an address that a library returned is mapped. The system is asked once for each
   page. Reading an unmapped address would end the process. */
#include "library/internal.h"
#ifdef __linux__
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { PAGE_BITS = 12 };

/* Whether a word can be read: DONE, FAILED; NOT_HERE if this system offers no way to check. It asks
   the system to change the thread's signal mask in an invalid way: the system copies the mask, and
   refuses. This is the only call that copies from an address, changes nothing, and needs no file,
   which a fork or a sandbox may change. */
static int read_word(uintptr_t address) {
#if defined(__linux__) && defined(SYS_rt_sigprocmask)
  enum { NO_WAY = 0x7fff, WORD = 8 };
  if (syscall(SYS_rt_sigprocmask, (long)NO_WAY, address / WORD * WORD, 0L, (long)WORD) == -1) {
    if (errno == EINVAL) return DONE;
    if (errno == EFAULT) return FAILED;
  }
#else
  (void)address;
#endif
  return NOT_HERE;
}

void memory_note(Client *client, uintptr_t begin, Py_ssize_t size) {
  uintptr_t pages[] = {begin >> PAGE_BITS, (begin + size - 1) >> PAGE_BITS};
  for (int i = 2; i--;)
    __atomic_store_n(&client->known_pages[pages[i] % KNOWN_PAGES], pages[i], __ATOMIC_RELAXED);
}

static int is_known(Client *client, uintptr_t page) {
  return __atomic_load_n(&client->known_pages[page % KNOWN_PAGES], __ATOMIC_RELAXED) == page;
}

/* Page 0 is never mapped; its number also stands for an empty entry. */
int memory_find(Client *client, uintptr_t begin, Py_ssize_t size, int asks_system) {
  uintptr_t last = begin + size - 1;
  if (!(begin >> PAGE_BITS) || last < begin) return FAILED;
  if (is_known(client, begin >> PAGE_BITS) && is_known(client, last >> PAGE_BITS)) return DONE;
  if (!asks_system) return NOT_HERE;
  int found = read_word(begin);
  if (found == DONE) found = read_word(last);
  if (found == DONE) memory_note(client, begin, size);
  return found;
}

PyObject *is_readable(PyObject *module, PyObject *number) {
  (void)module;
  unsigned long long address = PyLong_AsUnsignedLongLong(number);
  int found = FAILED;
  if (!PyErr_Occurred()) {
    found = read_word((uintptr_t)address);
  } else {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
    PyErr_Clear(); /* the number is negative or too large for an address */
  }
  return found == NOT_HERE ? Py_NewRef(Py_None) : PyBool_FromLong(found == DONE);
}
