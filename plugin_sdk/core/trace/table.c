/* The table that wraps a library's, its extensions, and the functions that give it to hosts.
 *
 * Hosts look up GetPjrtApi with dlsym. A preloaded tracer defines dlsym for every library, so each
 * plugin keeps its name and its path. A tracer that is loaded as the plugin has a GetPjrtApi that
 * opens the library in PLUGRT_TRACE_LIBRARY. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

Table tables[MOST_TABLES];
static int num_tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Version 0.57 moved slots at the table's end; the slots before are the same in all versions. */
enum { REARRANGED_MINOR = 57, SETTLED_SLOTS = 94, CHAIN_MINOR = 45 };

static size_t slot_offset(int slot) {
  return offsetof(PJRT_Api, Error_Destroy) + 8u * (size_t)slot;
}

static void **slot_at(const void *api, size_t offset) { return (void **)((char *)api + offset); }

/* Replaces the functions of a struct from `offset` on; returns how many are there. */
static int replace(Table *table, void *made, const void *real, size_t size, size_t offset,
                   int first, int count) {
  int number = (int)(table - tables), replaced = 0;
  for (int i = 0; i < count && offset + 8 <= size; i++, offset += 8) {
    table->slots[first + i] = *slot_at(real, offset);
    if (table->slots[first + i] == NULL)
      continue;
    *slot_at(made, offset) = thunks[number][first + i];
    replaced++;
  }
  return replaced;
}

static const Extension *find_extension(int type) {
  for (size_t i = 0; i < num_extensions; i++)
    if (extensions[i].type == type)
      return &extensions[i];
  return NULL;
}

static const char *extension_name(int type, char *text, size_t size) {
  const Enumeration *names = &enumerations[ENUM_Extension_Type];
  snprintf(text, size, "%d", type);
  return type >= 0 && type < names->count ? names->names[type] : text;
}

static PJRT_Extension_Base *wrap_extension(Table *table, const PJRT_Extension_Base *real) {
  const Extension *known = find_extension(real->type);
  PJRT_Extension_Base *made = malloc(real->struct_size);
  if (made == NULL)
    return NULL;
  memcpy(made, real, real->struct_size);
  size_t known_size = sizeof *real + 8u * (size_t)(known == NULL ? 0 : known->count);
  if (known != NULL)
    replace(table, made, real, real->struct_size, sizeof *real, known->first, known->count);
  if (known == NULL ? real->type != PJRT_Extension_Type_Profiler : real->struct_size > known_size)
    table->is_complete = false;
  return made;
}

static void write_name(Line *line, const char *name, bool *is_first) {
  line_text(line, *is_first ? "" : ",");
  line_quoted(line, name, strlen(name));
  *is_first = false;
}

/* Copies the chain of extensions without the hidden ones; writes the names of the others. */
static PJRT_Extension_Base *wrap_chain(Table *table, Line *line) {
  PJRT_Extension_Base *first = NULL, **end = &first;
  const PJRT_Extension_Base *real = table->real->extension_start;
  bool is_first = true;
  char text[16];
  for (int i = 0; real != NULL && i < 64; i++, real = real->next) {
    const char *name = extension_name(real->type, text, sizeof text);
    if (real->struct_size < sizeof *real || is_hidden(name))
      continue;
    if ((*end = wrap_extension(table, real)) == NULL)
      break;
    (*end)->next = NULL;
    end = &(*end)->next;
    write_name(line, name, &is_first);
  }
  return first;
}

static void pretend_minor(PJRT_Api *made) {
  int slot = API_FUNCTIONS;
  if (settings.report_minor < 0)
    return;
  made->pjrt_api_version.minor_version = settings.report_minor;
  while (slot > 0 && functions[slot - 1].since > settings.report_minor)
    slot--;
  if (made->struct_size > slot_offset(slot))
    made->struct_size = slot_offset(slot);
}

static void write_table(const Table *table, int replaced, const PJRT_Api *made, Line *line) {
  line_text(line, "]");
  line_string(line, "library", table->path);
  line_key(line, "version");
  line_text(line, "[");
  line_number(line, table->real->pjrt_api_version.major_version);
  line_text(line, ",");
  line_number(line, table->real->pjrt_api_version.minor_version);
  line_text(line, "]");
  line_integer(line, "reported_minor", made->pjrt_api_version.minor_version);
  line_integer(line, "struct_size", (int64_t)table->real->struct_size);
  line_integer(line, "functions", replaced);
  line_integer(line, "time", now());
  journal_write(line);
}

static void note_untraced(const Table *table, int slots) {
  size_t size = table->real->struct_size;
  if (size > slot_offset(slots))
    note("%zu functions of %s are not traced: %s", (size - slot_offset(slots)) / 8, table->path,
         slots == SETTLED_SLOTS ? "versions before 0.57 have them in another order"
                                : "they are newer than what plugrt-sdk knows");
}

static PJRT_Api *wrap(Table *table) {
  const PJRT_Api *real = table->real;
  int minor = real->pjrt_api_version.minor_version;
  int slots = minor < REARRANGED_MINOR ? SETTLED_SLOTS : API_FUNCTIONS;
  PJRT_Api *made = calloc(1, real->struct_size > sizeof *made ? real->struct_size : sizeof *made);
  Line line;
  if (made == NULL)
    return NULL;
  memcpy(made, real, real->struct_size);
  table->is_complete = real->struct_size <= slot_offset(slots);
  line_begin(&line);
  line_key(&line, "extensions");
  line_text(&line, "[");
  int count = replace(table, made, real, real->struct_size, slot_offset(0), 0, slots);
  if (minor >= CHAIN_MINOR)
    made->extension_start = wrap_chain(table, &line);
  pretend_minor(made);
  write_table(table, count, made, &line);
  note_untraced(table, slots);
  return made;
}

static const PJRT_Api *wrap_new(const PJRT_Api *real, const char *path) {
  for (int i = 0; i < num_tables; i++)
    if (real == tables[i].real || real == tables[i].traced)
      return tables[i].traced;
  if (num_tables == MOST_TABLES) {
    note("%s is not traced: a process can trace %d libraries", path, MOST_TABLES);
    return real;
  }
  Table *table = &tables[num_tables];
  table->real = real;
  snprintf(table->path, sizeof table->path, "%s", path);
  table->traced = wrap(table);
  if (table->traced == NULL)
    return real;
  num_tables++;
  return table->traced;
}

/* Wraps a table, which may itself be a tracer's; `path` is its name in the trace. */
__attribute__((visibility("default"))) const PJRT_Api *plugrt_trace_wrap(const PJRT_Api *real,
                                                                         const char *path) {
  if (real == NULL || real->struct_size < slot_offset(SETTLED_SLOTS - 4))
    return real; /* hosts accept no such table */
  prepare_process();
  pthread_mutex_lock(&lock);
  const PJRT_Api *made = wrap_new(real, path);
  pthread_mutex_unlock(&lock);
  return made;
}

typedef const PJRT_Api *(*GetApi)(void);

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
  prepare_process();
  if (settings.library == NULL) {
    fprintf(stderr, "plugrt trace: PLUGRT_TRACE_LIBRARY must name the PJRT library to trace\n");
    return NULL;
  }
  void *library = dlopen(settings.library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  GetApi get = library == NULL ? NULL : (GetApi)dlsym(library, "GetPjrtApi");
  if (get == NULL) {
    fprintf(stderr, "plugrt trace: cannot load %s: %s\n", settings.library, dlerror());
    return NULL;
  }
  return plugrt_trace_wrap(get(), settings.library);
}

static GetApi getters[MOST_TABLES];
static int num_getters;

static const PJRT_Api *get_traced(int number) {
  Dl_info info = {0};
  dladdr((void *)getters[number], &info);
  return plugrt_trace_wrap(getters[number](), info.dli_fname == NULL ? "?" : info.dli_fname);
}

#define GETTER(number)                                                                             \
  static const PJRT_Api *get_##number(void) { return get_traced(number); }
GETTER(0) GETTER(1) GETTER(2) GETTER(3) GETTER(4) GETTER(5) GETTER(6) GETTER(7)
static const GetApi traced_getters[MOST_TABLES] = {get_0, get_1, get_2, get_3,
                                                   get_4, get_5, get_6, get_7};

static void *traced_getter(void *found) {
  if (found == NULL || found == (void *)GetPjrtApi)
    return found;
  pthread_mutex_lock(&lock);
  int number = 0;
  while (number < num_getters && (void *)getters[number] != found)
    number++;
  if (number == num_getters && num_getters < MOST_TABLES)
    getters[num_getters++] = (GetApi)found;
  pthread_mutex_unlock(&lock);
  return number < MOST_TABLES ? (void *)traced_getters[number] : found;
}

typedef void *(*LookUp)(void *, const char *);

static LookUp real_dlsym(void) {
  static LookUp found;
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  for (size_t i = 0; found == NULL && i < sizeof versions / sizeof *versions; i++)
    found = (LookUp)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return found;
}

/* The last call is a jump (-O2): the result of dlsym(RTLD_NEXT, ...) depends on its caller. */
__attribute__((visibility("default"))) void *dlsym(void *restrict handle,
                                                   const char *restrict name) {
  LookUp look_up = real_dlsym();
  if (strcmp(name, "GetPjrtApi") == 0 && getenv("PLUGRT_TRACE_FOLDER") != NULL)
    return traced_getter(look_up(handle, name));
  return look_up(handle, name);
}
