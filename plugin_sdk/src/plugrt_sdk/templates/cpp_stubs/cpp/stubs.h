// A function for each slot of the table, which returns the error that it is not written yet.

#ifndef MY_CHIP_STUBS_H_
#define MY_CHIP_STUBS_H_

#include <string>
#include <type_traits>

#include "error.h"
#include "pjrt_header.h"

namespace my_chip {

// Most functions return an error; the few that return nothing do nothing.
template <const char* Name, typename Function>
struct Stub;

template <const char* Name, typename Args>
struct Stub<Name, PJRT_Error*(Args*)> {
  static PJRT_Error* Call(Args*) {
    return MakeError(PJRT_Error_Code_UNIMPLEMENTED, std::string(Name) + " is not written yet");
  }
};

template <const char* Name, typename Args>
struct Stub<Name, void(Args*)> {
  static void Call(Args*) {}
};

#define PJRT_FUNCTION(name) inline constexpr char kNameOf_##name[] = #name;
#include "pjrt_functions.inc"
#undef PJRT_FUNCTION

// Returns a table with every function of the header, each a stub.
inline PJRT_Api MakeStubs() {
  PJRT_Api api = {};
  api.struct_size = sizeof(PJRT_Api);
  api.pjrt_api_version.struct_size = sizeof(PJRT_Api_Version);
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
#define PJRT_FUNCTION(name) \
  api.name = Stub<kNameOf_##name, std::remove_pointer_t<decltype(api.name)>>::Call;
#include "pjrt_functions.inc"
#undef PJRT_FUNCTION
  return api;
}

}  // namespace my_chip

#endif  // MY_CHIP_STUBS_H_
