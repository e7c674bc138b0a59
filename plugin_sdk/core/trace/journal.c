/* A file of JSON lines, written through shared memory, so that written lines survive a crash.
 *
 * The end of a line is stored last: a reader that finds it has the whole line. The file grows by
 * windows for which the system has reserved space; otherwise a full disk would raise SIGBUS. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace.h"

enum { WINDOW = 1 << 20, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static bool has_failed;
static char *window;
static size_t window_begin, end; /* offsets in the file */

void line_begin(Line *line) {
  line->size = 1;
  line->text[0] = '{';
}

bool line_is_long(const Line *line) { return line->size > sizeof line->text - 1100; }

/* The last bytes are reserved for the end of the line. */
static void append(Line *line, const char *text, size_t size) {
  size_t room = sizeof line->text - 16 - line->size;
  size = size < room ? size : room;
  memcpy(line->text + line->size, text, size);
  line->size += size;
}

void line_text(Line *line, const char *text) { append(line, text, strlen(text)); }

void line_number(Line *line, int64_t number) {
  char digits[24], *first = digits + sizeof digits;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do
    *--first = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (number < 0)
    *--first = '-';
  append(line, first, (size_t)(digits + sizeof digits - first));
}

void line_pointer(Line *line, const void *pointer) {
  char digits[24], *first = digits + sizeof digits;
  uintptr_t rest = (uintptr_t)pointer;
  do
    *--first = "0123456789abcdef"[rest & 15];
  while ((rest >>= 4) != 0);
  *--first = 'x';
  *--first = '0';
  append(line, first, (size_t)(digits + sizeof digits - first));
}

static void append_escaped(Line *line, unsigned char c) {
  char text[8];
  if (c == '"' || c == '\\')
    snprintf(text, sizeof text, "\\%c", c);
  else
    snprintf(text, sizeof text, "\\u%04x", c);
  line_text(line, text);
}

/* Bytes beyond ASCII are kept: `plugrt trace` reads the file as UTF-8 and replaces invalid bytes.
   */
void line_quoted(Line *line, const char *text, size_t size) {
  const char *last = text + size, *run = text;
  append(line, "\"", 1);
  for (; text < last && !line_is_long(line); text++) {
    unsigned char c = (unsigned char)*text;
    if (c >= 0x20 && c != '"' && c != '\\' && text - run < 64)
      continue;
    append(line, run, (size_t)(text - run));
    run = text;
    if (c < 0x20 || c == '"' || c == '\\') {
      append_escaped(line, c);
      run++;
    }
  }
  append(line, run, (size_t)(text - run));
  append(line, "\"", 1);
}

void line_key(Line *line, const char *name) {
  char last = line->text[line->size - 1];
  if (last != '{' && last != '[')
    append(line, ",", 1);
  append(line, "\"", 1);
  line_text(line, name);
  append(line, "\":", 2);
}

void line_string(Line *line, const char *name, const char *text) {
  line_key(line, name);
  line_quoted(line, text, strlen(text));
}

void line_integer(Line *line, const char *name, int64_t number) {
  line_key(line, name);
  line_number(line, number);
}

static bool open_file(void) {
  char path[1024];
  const char *folder = settings.folder == NULL ? "." : settings.folder;
  for (int i = 0; i < 1000 && file < 0; i++) { /* exec keeps the process id, and so the name */
    snprintf(path, sizeof path, "%s/plugrt-trace-%ld-%d.jsonl", folder, (long)getpid(), i);
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 && errno != EEXIST)
      break;
  }
  if (file < 0) {
    fprintf(stderr, "plugrt trace: cannot write %s: %s; no call of process %ld is recorded\n", path,
            strerror(errno), (long)getpid());
  }
  return file >= 0;
}

static bool next_window(void) {
  if (window != NULL)
    munmap(window, WINDOW);
  window = NULL;
  window_begin = end & ~(size_t)(PAGE - 1);
  int failed = posix_fallocate(file, (off_t)window_begin, WINDOW);
  if (failed != 0) {
    fprintf(stderr, "plugrt trace: no room for more calls of process %ld: %s\n", (long)getpid(),
            strerror(failed));
    return false;
  }
  void *made = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file,
                    (off_t)window_begin);
  window = made == MAP_FAILED ? NULL : made;
  return window != NULL;
}

static bool make_room(size_t size) {
  if (has_failed)
    return false;
  if (file < 0 && !open_file())
    has_failed = true;
  else if (window == NULL || end + size > window_begin + WINDOW)
    has_failed = !next_window();
  return !has_failed;
}

void journal_write(Line *line) {
  line->text[line->size++] = '}';
  line->text[line->size++] = '\n';
  pthread_mutex_lock(&lock);
  if (make_room(line->size)) {
    char *at = window + (end - window_begin);
    memcpy(at, line->text, line->size - 1);
    __atomic_store_n(at + line->size - 1, '\n', __ATOMIC_RELEASE);
    end += line->size;
  }
  pthread_mutex_unlock(&lock);
}

void journal_close(void) {
  pthread_mutex_lock(&lock);
  if (file >= 0 && ftruncate(file, (off_t)end) != 0)
    perror("plugrt trace");
  pthread_mutex_unlock(&lock);
}

void journal_forget(void) {
  pthread_mutex_init(&lock, NULL);
  if (window != NULL)
    munmap(window, WINDOW);
  if (file >= 0)
    close(file);
  file = -1;
  window = NULL;
  window_begin = end = 0;
  has_failed = false;
}
