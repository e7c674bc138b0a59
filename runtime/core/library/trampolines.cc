/* Calls the functions of libraries, and makes errors of their C++ exceptions.

   Neither C nor cffi can catch one: it would end the process. So both call a library through the
   functions here, each of which calls one of the library's. An error made here is told from the
   library's by its address; the library's functions that read and destroy errors are guarded, too,
   and never get one. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <typeinfo>
#include <utility>

#include <cxxabi.h>

#include "library/guard.h"
#include "pjrt.h"

namespace {

using Function = void *(*)(void *);

struct Target {
  Function function;
  guarded_kind kind;
  const char *label;
};

/* Of about 14 libraries with all extensions. */
constexpr std::size_t MOST = 2048;
Target targets[MOST];
std::size_t used;

/* In memory of its own, so that an address tells whether an error is one of these. */
struct Caught {
  std::atomic<bool> taken;
  char text[4096];
};
constexpr std::size_t MOST_CAUGHT = 64;
Caught caught[MOST_CAUGHT + 1]; /* the last one is that of all that are too many */

bool is_caught(const void *error) {
  return error >= static_cast<const void *>(caught) &&
         error < static_cast<const void *>(caught + MOST_CAUGHT + 1);
}

Caught *new_caught() {
  for (std::size_t i = 0; i < MOST_CAUGHT; i++)
    if (!caught[i].taken.exchange(true)) return &caught[i];
  return nullptr;
}

#ifdef __GLIBCXX__
} /* what libstdc++ defines is of no file alone */

/* std::exception_ptr, whose destructor from GCC 11 on needs symbols that older systems do not have. */
namespace plugrt_core {
void release(void *held) noexcept __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
struct Held {
  void *exception;
  ~Held() { release(this); }
};
Held current_exception() noexcept __asm__("_ZSt17current_exceptionv");
}

namespace {
bool is_foreign() { return !plugrt_core::current_exception().exception; }
#else
bool is_foreign() { return !std::current_exception(); }
#endif

/* Within a handler: the name of the type that was thrown; nullptr of a runtime that is not this one. */
const char *thrown_type(char *room, std::size_t size) {
  /* Workaround for libstdc-foreign-type: it would be any memory, and no nullptr. */
  if (is_foreign()) return nullptr;
  const std::type_info *type = abi::__cxa_current_exception_type();
  if (!type) return nullptr;
  int status = 0;
  char *name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::snprintf(room, size, "%s", name ? name : type->name());
  std::free(name);
  return room;
}

void *finish(const Target *target, const char *what) {
  char name[512];
  const char *type = thrown_type(name, sizeof name);
  char local[sizeof Caught::text];
  if (!type)
    std::snprintf(local, sizeof local, "%s threw a C++ exception of another runtime", target->label);
  else if (!what)
    std::snprintf(local, sizeof local, "%s threw a C++ exception, %s", target->label, type);
  else
    std::snprintf(local, sizeof local, "%s threw a C++ exception, %s: %s", target->label, type, what);
  if (target->kind != RETURNS_POINTER && target->kind != READS_CODE && target->kind != READS_PAYLOADS) {
    report_caught(local);
    return nullptr;
  }
  Caught *made = new_caught();
  if (!made) {
    made = &caught[MOST_CAUGHT];
    std::snprintf(made->text, sizeof made->text, "a C++ exception, after %zu whose errors were not freed",
                  MOST_CAUGHT);
  } else {
    std::snprintf(made->text, sizeof made->text, "%s", local);
  }
  return made;
}

const char *text_of(const std::exception &thrown) {
  try {
    return thrown.what();
  } catch (...) {
    return nullptr;
  }
}

/* Answers for an error that is one of these; whether it is. */
bool answer(guarded_kind kind, void *args) {
  switch (kind) {
    case DESTROYS_ERROR: {
      auto *of = static_cast<PJRT_Error_Destroy_Args *>(args);
      if (!is_caught(of->error)) return false;
      forget_caught(of->error);
      return true;
    }
    case READS_MESSAGE: {
      auto *of = static_cast<PJRT_Error_Message_Args *>(args);
      if (!is_caught(of->error)) return false;
      of->message = caught_text(of->error);
      of->message_size = __builtin_strlen(of->message);
      return true;
    }
    case READS_CODE: {
      auto *of = static_cast<PJRT_Error_GetCode_Args *>(args);
      if (!is_caught(of->error)) return false;
      of->code = PJRT_Error_Code_INTERNAL;
      return true;
    }
    case READS_PAYLOADS:
      return is_caught(static_cast<PJRT_Error_ForEachPayload_Args *>(args)->error);
    default:
      return false;
  }
}

__attribute__((noinline)) void *call(void *args, const Target *target) {
  if (target->kind > RETURNS_NOTHING && answer(target->kind, args)) return nullptr;
  try {
    return target->function(args);
  }
#ifdef __GLIBCXX__
  /* The end of a thread, which may not be caught: CPython ends daemon threads in this way. */
  catch (abi::__forced_unwind &) {
    throw;
  }
#endif
  catch (const std::exception &thrown) {
    return finish(target, text_of(thrown));
  } catch (...) {
    return finish(target, nullptr);
  }
}

template <std::size_t N>
void *enter(void *args) {
  return call(args, &targets[N]);
}

template <std::size_t... N>
Function entry(std::size_t number, std::index_sequence<N...>) {
  static constexpr Function all[] = {enter<N>...};
  return all[number];
}

}  // namespace

void *guarded_function(void *function, guarded_kind kind, const char *label) {
  if (!used) {
    /* libgcc fills its table of registers when it unwinds first. The unwinder of a library that is linked to
       a runtime of its own asks this one for frames here, which ends the process while the table is empty. */
    try {
      throw 0;
    } catch (int) {
    }
  }
  if (used == MOST) return nullptr;
  targets[used] = {reinterpret_cast<Function>(function), kind, label};
  return reinterpret_cast<void *>(entry(used++, std::make_index_sequence<MOST>()));
}

const char *caught_text(const void *error) {
  return is_caught(error) ? static_cast<const Caught *>(error)->text : nullptr;
}

void forget_caught(const void *error) {
  if (is_caught(error)) const_cast<Caught *>(static_cast<const Caught *>(error))->taken = false;
}
