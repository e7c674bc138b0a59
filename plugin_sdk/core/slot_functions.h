/* Macros for tables of functions: for each slot one that checks the host's arguments first. */
#ifndef PLUGRT_SLOT_FUNCTIONS_H
#define PLUGRT_SLOT_FUNCTIONS_H

#include <stddef.h>

/* Whether an argument struct of the host, which may be older, has a field. */
#define HAS_FIELD(args, field)                                                                     \
  ((args)->struct_size >= (size_t)((char *)&(args)->field - (char *)(args)) + sizeof (args)->field)

/* For each SLOT(name, since, last) of slots.h, defines the functions of a table: no_<name> refuses
 * the call and names the function; call_<name> checks the size of the host's arguments before it
 * calls the function in the table `filled`, so that function can rely on every field up to `last`.
 */
#define DEFINE_CALLS(name, since, last)                                                            \
  static PJRT_Error *no_##name(struct PJRT_##name##_Args *args) {                                  \
    (void)args;                                                                                    \
    return unimplemented(#name);                                                                   \
  }                                                                                                \
  static PJRT_Error *call_##name(struct PJRT_##name##_Args *args) {                                \
    size_t needed = SIZE_TO(struct PJRT_##name##_Args, last);                                      \
    if (args->struct_size < needed)                                                                \
      return refuse_size(#name, args->struct_size, needed);                                        \
    return filled.name(args);                                                                      \
  }
#define REFUSED(name, since, last) .name = no_##name,
#define GUARDED(name, since, last) .name = call_##name,
#define SIZE_TO(type, field) (offsetof(type, field) + sizeof ((type *)NULL)->field)

/* Defines fill_<what>(table), which writes the table of the extension `name` with the SLOTS of
 * slots.h, and its table `filled`, which set_functions(table) of the same file fills with the
 * functions that are implemented. */
#define DEFINE_EXTENSION(what, name, SLOTS)                                                        \
  static void set_functions(PJRT_##name##_Extension *table);                                       \
  static PJRT_##name##_Extension filled;                                                           \
  SLOTS(DEFINE_CALLS)                                                                              \
  void fill_##what(PJRT_##name##_Extension *table) {                                               \
    if (filled.base.struct_size == 0) { /* once: hosts may be calling through it */                \
      filled = (PJRT_##name##_Extension){SLOTS(REFUSED)};                                          \
      set_functions(&filled);                                                                      \
      filled.base.struct_size = sizeof filled;                                                     \
    }                                                                                              \
    *table = (PJRT_##name##_Extension){SLOTS(GUARDED)};                                            \
    table->base.struct_size = sizeof *table;                                                       \
    table->base.type = PJRT_Extension_Type_##name;                                                 \
  }

#endif
