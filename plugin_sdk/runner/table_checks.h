/* The checks of the function table, which need no client: the chapter `abi` of the kit. */
#ifndef PLUGRT_RUNNER_TABLE_CHECKS_H
#define PLUGRT_RUNNER_TABLE_CHECKS_H
#include "checks_file.h"
#include "library.h"
#include "verdict.h"

enum { MOST_EXTENSIONS = 128, TAIL = 64 };

/* Whether memory of this process has all the rights in `rights`, such as "r-x". */
static inline bool has_memory(const void* at, size_t size, const char* rights) {
  FILE* maps = fopen("/proc/self/maps", "r");
  uintptr_t begin = (uintptr_t)at, end = begin + size;
  char line[512];
  bool found = false;
  while (maps && fgets(line, sizeof line, maps)) {
    char* rest;
    uintptr_t from = strtoull(line, &rest, 16), to = strtoull(rest + 1, &rest, 16);
    bool allowed = true;
    for (int i = 0; i < 3; i++) allowed &= rights[i] == '-' || rest[1 + i] == rights[i];
    if (begin >= from && begin < to && allowed) begin = to;
    if (begin >= end) {
      found = true;
      break;
    }
  }
  if (maps) fclose(maps);
  return found;
}

static inline Result check_version(void) {
  int major = api->pjrt_api_version.major_version, minor = api->pjrt_api_version.minor_version;
  bool good = major == 0 && minor >= PJRT_API_OLDEST_MINOR;
  return good ? pass() : fail("version 0.29 or later", "%d.%d", major, minor);
}

static inline Result check_size(void) {
  size_t first = SLOTS[0].offset, stated = api->struct_size;
  if (stated <= first || (stated - first) % sizeof(void*))
    return fail("whole functions", "%zu bytes", stated);
  return has_memory(api, stated, "r--") ? pass() : fail("memory of the table's size", "less");
}

static inline Result check_slots(void) {
  for (int i = 0; i < SLOT_COUNT; i++)
    if (has_slot(SLOTS[i].offset) && !slot_at(SLOTS[i].offset))
      return fail("no function NULL", "PJRT_%s is", SLOTS[i].name);
  return pass();
}

static inline Result check_code(void) {
  int count = 0;
  for (int i = 0; i < SLOT_COUNT; i++) {
    void* at = has_slot(SLOTS[i].offset) ? slot_at(SLOTS[i].offset) : NULL;
    count += at != NULL;
    if (at && !has_memory(at, 1, "--x"))
      return fail("functions at addresses with code", "PJRT_%s is at %p", SLOTS[i].name, at);
  }
  return count ? pass() : fail("at least one function", "all are NULL");
}

static inline Result check_extensions(void) {
  const PJRT_Extension_Base* node = api->extension_start;
  for (int i = 0; node; i++, node = node->next) {
    if (i == MOST_EXTENSIONS) return fail("a chain of extensions that ends", "it does not");
    if (!has_memory(node, sizeof *node, "r--") || node->struct_size < sizeof *node ||
        !has_memory(node, node->struct_size, "r--"))
      return fail("extensions in memory of the size that they state", "the one at %p is not",
                  (const void*)node);
  }
  return pass();
}

static inline Result check_extension_types(void) {
  Result chain = check_extensions();
  if (chain.verdict != PASS) return chain;
  for (const PJRT_Extension_Base* a = api->extension_start; a; a = a->next)
    for (const PJRT_Extension_Base* b = a->next; b; b = b->next)
      if (a->type == b->type) return fail("no extension twice", "type %d is", a->type);
  return pass();
}

static inline Result error_result(void) { return fail("no error", "%s", error_text); }

static inline Result check_initialize(void) {
  return initialize() ? error_result() : pass();
}

static inline bool same_name(const PJRT_NamedValue* value, const char* name, size_t size) {
  return value->name_size == size && !memcmp(value->name, name, size);
}

static inline Result check_attributes(void) {
  static const char* const needed[] = {"stablehlo_current_version", "stablehlo_minimum_version"};
  ARGS(Plugin_Attributes, asked);
  if (CALL(Plugin_Attributes, asked)) return error_result();
  const PJRT_NamedValue* all = asked.a.attributes;
  for (size_t i = 0; i < asked.a.num_attributes; i++)
    for (size_t k = 0; k < i; k++)
      if (same_name(&all[k], all[i].name, all[i].name_size))
        return fail("no name twice", "%.*s", (int)all[i].name_size, all[i].name);
  for (int k = 0; k < 2; k++) {
    bool found = false;
    for (size_t i = 0; i < asked.a.num_attributes; i++)
      found |= same_name(&all[i], needed[k], strlen(needed[k]));
    if (!found) return fail("the versions of StableHLO", "no %s", needed[k]);
  }
  return pass();
}

static inline Result check_stable_attributes(void) {
  const void* places[2];
  for (int i = 0; i < 2; i++) {
    ARGS(Plugin_Attributes, asked);
    if (CALL(Plugin_Attributes, asked)) return error_result();
    places[i] = asked.a.attributes;
  }
  return places[0] == places[1] ? pass() : fail("one address", "%p and %p", places[0], places[1]);
}

static inline Result check_larger(void) {
  if (api->pjrt_api_version.minor_version > PJRT_API_MINOR)
    return not_run(false, "the library is newer than the runner");
  struct {
    struct PJRT_Plugin_Attributes_Args a;
    unsigned char tail[TAIL];
  } asked;
  memset(&asked, POISON, sizeof asked);
  memset(&asked.a, 0, sizeof asked.a);
  asked.a.struct_size = PJRT_Plugin_Attributes_Args_SIZE + TAIL;
  if (take_error("Plugin_Attributes", api->Plugin_Attributes(&asked.a))) return error_result();
  for (int i = 0; i < TAIL; i++)
    if (asked.tail[i] != POISON) return fail("a tail that is not written to", "it is");
  return pass();
}

static inline Result check_destroy_null(void) {
  destroy_error(NULL);
  return pass();
}

/* The error for a topology that does not exist; NULL where there is none. */
static inline PJRT_Error* make_error(void) {
  static const char name[] = "no such topology";
  ARGS(TopologyDescription_Create, made);
  made.a.topology_name = name;
  made.a.topology_name_size = sizeof name - 1;
  if (!has_slot(offsetof(PJRT_Api, TopologyDescription_Create)) || !api->TopologyDescription_Create)
    return NULL;
  PJRT_Error* error = api->TopologyDescription_Create(&made.a);
  note_guard("TopologyDescription_Create", made.guard);
  if (!error && made.a.topology) {
    ARGS(TopologyDescription_Destroy, destroy);
    destroy.a.topology = made.a.topology;
    CALL(TopologyDescription_Destroy, destroy);
  }
  return error;
}

static inline Result no_error(void) {
  return refused("PJRT_TopologyDescription_Create takes any name, so there is no error");
}

/* The address and the size of an error's message. */
static inline const char* read_message(const PJRT_Error* error, size_t* size) {
  ARGS(Error_Message, said);
  said.a.error = error;
  api->Error_Message(&said.a);
  note_guard("Error_Message", said.guard);
  *size = said.a.message_size;
  return said.a.message;
}

static inline bool has_words(const char* text, size_t size) {
  for (size_t i = 0; text && i < size; i++)
    if (!isspace((unsigned char)text[i])) return true;
  return false;
}

static inline Result check_errors(void) {
  PJRT_Error* error = make_error();
  if (!error) return no_error();
  size_t size, again;
  const char* first = read_message(error, &size);
  char* copy = allocate(size + 1);
  if (first) memcpy(copy, first, size);
  int code = read_code(error), code_again = read_code(error);
  const char* second = read_message(error, &again);
  Result result = pass();
  if (code < 1 || code > MOST_CODE) result = fail("a code from 1 to 16", "%d", code);
  else if (!has_words(copy, size)) result = fail("a message", "none");
  else if (code != code_again || size != again || memcmp(copy, second, size))
    result = fail("the same each time", "another code or message");
  free(copy);
  destroy_error(error);
  return result;
}

static inline Result check_several_errors(void) {
  PJRT_Error *first = make_error(), *second = make_error();
  if (!first || !second) return no_error();
  if (first == second) return fail("two errors", "one address");
  size_t size, again;
  int code = read_code(second);
  const char* before = read_message(second, &size);
  char* copy = allocate(size + 1);
  if (before) memcpy(copy, before, size);
  destroy_error(first);
  bool same = read_code(second) == code;
  const char* after = read_message(second, &again);
  same &= again == size && (!size || (after && !memcmp(after, copy, size)));
  free(copy);
  destroy_error(second);
  return same ? pass() : fail("the second whole when the first is freed", "another code or text");
}

static inline Result check_message(void) {
  PJRT_Error* error = make_error();
  if (!error) return no_error();
  size_t size, again;
  const char* first = read_message(error, &size);
  const char* second = read_message(error, &again);
  bool nul = first && memchr(first, 0, size);
  destroy_error(error);
  if (first != second || size != again) return fail("one address and size", "another");
  return nul ? fail("a text without NUL", "one with it") : pass();
}

typedef struct {
  char text[4096];
  size_t used;
  int count;
  bool empty_key;
} Payloads;

static inline void visit(const char* key, size_t key_size, const char* value, size_t value_size,
                         void* argument) {
  Payloads* into = argument;
  into->count++;
  into->empty_key |= !key_size;
  if (into->used < sizeof into->text)
    into->used += (size_t)snprintf(into->text + into->used, sizeof into->text - into->used,
                                   "%.*s=%.*s\n", (int)key_size, key, (int)value_size, value);
}

static inline Result check_payloads(void) {
  if (!has_slot(offsetof(PJRT_Api, Error_ForEachPayload)))
    return not_run(false, "the table is of a version without PJRT_Error_ForEachPayload");
  PJRT_Error* error = make_error();
  if (!error) return no_error();
  Payloads* found = allocate(2 * sizeof *found);
  Result result = pass();
  for (int i = 0; i < 2 && result.verdict == PASS; i++) {
    ARGS(Error_ForEachPayload, asked);
    asked.a.error = error;
    asked.a.visitor = visit;
    asked.a.user_arg = &found[i];
    if (CALL(Error_ForEachPayload, asked)) result = error_result();
  }
  if (result.verdict == PASS && found[0].empty_key) result = fail("keys", "an empty one");
  if (result.verdict == PASS &&
      (found[0].count != found[1].count || strcmp(found[0].text, found[1].text)))
    result = fail("the same payloads, visited again", "others");
  free(found);
  destroy_error(error);
  return result;
}

static const struct {
  const char* id;
  Result (*run)(void);
  bool initialized;
} TABLE_CHECKS[] = {
    {"abi.version", check_version, false},
    {"abi.size", check_size, false},
    {"abi.slots", check_slots, false},
    {"abi.slots.code", check_code, false},
    {"abi.extensions", check_extensions, false},
    {"abi.extensions.types", check_extension_types, false},
    {"abi.initialize", check_initialize, true},
    {"abi.attributes", check_attributes, true},
    {"abi.attributes.stable", check_stable_attributes, true},
    {"abi.args.larger", check_larger, true},
    {"abi.destroy_null", check_destroy_null, true},
    {"abi.errors", check_errors, true},
    {"abi.errors.several", check_several_errors, true},
    {"abi.errors.message", check_message, true},
    {"abi.errors.payloads", check_payloads, true},
};

static inline Result check_table(const char* id) {
  *overrun = 0;
  for (size_t i = 0; i < sizeof TABLE_CHECKS / sizeof *TABLE_CHECKS; i++) {
    if (strcmp(TABLE_CHECKS[i].id, id)) continue;
    if (TABLE_CHECKS[i].initialized && initialize()) return error_result();
    Result result = TABLE_CHECKS[i].run();
    if (*overrun && result.verdict <= REFUSED)
      result = fail("nothing written behind the arguments", "%s did", overrun);
    return result;
  }
  return not_run(true, "the runner does not know this check");
}
#endif
