// What pjrt_c_api.h says of errors from API 0.107 on; of the rest only what a stub needs.
#pragma once
#include <stddef.h>
#include <stdint.h>
#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 112
extern "C" {
struct PJRT_Api_Version { size_t struct_size; void* extension_start; int major_version, minor_version; };
typedef enum { PJRT_Error_Code_INVALID_ARGUMENT = 3, PJRT_Error_Code_UNIMPLEMENTED = 12 } PJRT_Error_Code;
typedef struct PJRT_Error PJRT_Error;
typedef void (*PJRT_Error_PayloadVisitor)(const char*, size_t, const char*, size_t, void*);
struct PJRT_Error_FunctionTable {
  size_t struct_size, instance_size;
  void* extension_start;
  void (*destroy)(PJRT_Error*);
  void (*message)(const PJRT_Error*, const char**, size_t*);
  PJRT_Error_Code (*get_code)(const PJRT_Error*);
  void (*for_each_payload)(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*);
};
struct PJRT_Error { const PJRT_Error_FunctionTable* vtable; };
struct PJRT_Error_Destroy_Args { PJRT_Error* error; };
struct PJRT_Error_Message_Args { size_t struct_size; const PJRT_Error* error; const char* message; size_t message_size; };
struct PJRT_Error_GetCode_Args { size_t struct_size; const PJRT_Error* error; PJRT_Error_Code code; };
struct PJRT_Error_ForEachPayload_Args { const PJRT_Error* error; };
struct PJRT_Plugin_Initialize_Args { int unused; };
typedef enum { PJRT_NamedValue_kInt64List = 2 } PJRT_NamedValue_Type;
struct PJRT_NamedValue {
  size_t struct_size;
  void* extension_start;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  const int64_t* int64_array_value;
  size_t value_size;
};
struct PJRT_Plugin_Attributes_Args { size_t struct_size; const PJRT_NamedValue* attributes; size_t num_attributes; };
struct PJRT_Client_Create_Args { int unused; };
typedef void PJRT_Error_Destroy(PJRT_Error_Destroy_Args*);
typedef void PJRT_Error_Message(PJRT_Error_Message_Args*);
typedef PJRT_Error* PJRT_Error_GetCode(PJRT_Error_GetCode_Args*);
typedef PJRT_Error* PJRT_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args*);
typedef PJRT_Error* PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args*);
typedef PJRT_Error* PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args*);
typedef PJRT_Error* PJRT_Client_Create(PJRT_Client_Create_Args*);
#define _PJRT_API_STRUCT_FIELD(fn_type) fn_type* fn_type
typedef struct PJRT_Api {
  size_t struct_size;
  void* extension_start;
  PJRT_Api_Version pjrt_api_version;
  _PJRT_API_STRUCT_FIELD(PJRT_Error_Destroy);
  _PJRT_API_STRUCT_FIELD(PJRT_Error_Message);
  _PJRT_API_STRUCT_FIELD(PJRT_Error_GetCode);
  _PJRT_API_STRUCT_FIELD(PJRT_Error_ForEachPayload);
  _PJRT_API_STRUCT_FIELD(PJRT_Plugin_Initialize);
  _PJRT_API_STRUCT_FIELD(PJRT_Plugin_Attributes);
  _PJRT_API_STRUCT_FIELD(
      PJRT_Client_Create);
} PJRT_Api;
}
