"""The interface of a custom call's handler: the parts of XLA's FFI that a host must read."""

FFI_HANDLER = """
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct { size_t struct_size; int type; void* next; } XLA_FFI_Extension_Base;
typedef struct {
  size_t struct_size; void* extension_start; int major_version; int minor_version;
} XLA_FFI_Api_Version;
typedef struct {
  size_t struct_size; void* extension_start; const char* message; int errc;
} XLA_FFI_Error_Create_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error; const char* message;
} XLA_FFI_Error_GetMessage_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error; const char* message; int errc;
} XLA_FFI_Error_GetDetails_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error;
} XLA_FFI_Error_Destroy_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t* type_id; void* data;
} XLA_FFI_ExecutionContext_Get_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; void* stream;
} XLA_FFI_Stream_Get_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t run_id;
} XLA_FFI_RunId_Get_Args;
typedef XLA_FFI_Error* XLA_FFI_Function(void* args);
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Api_Version api_version;
  const void* internal_api; XLA_FFI_Error* (*error_create)(XLA_FFI_Error_Create_Args*);
  void (*error_get_message)(XLA_FFI_Error_GetMessage_Args*);
  void (*error_destroy)(XLA_FFI_Error_Destroy_Args*);
  XLA_FFI_Function* handler_register; XLA_FFI_Function* stream_get;
  XLA_FFI_Function* type_register;
  XLA_FFI_Error* (*execution_context_get)(XLA_FFI_ExecutionContext_Get_Args*);
  XLA_FFI_Function* state_set; XLA_FFI_Function* state_get;
  XLA_FFI_Function* device_memory_allocate; XLA_FFI_Function* device_memory_free;
  XLA_FFI_Function* thread_pool_schedule; XLA_FFI_Function* thread_pool_num_threads;
  XLA_FFI_Function* future_create; XLA_FFI_Function* future_set_available;
  XLA_FFI_Function* future_set_error; XLA_FFI_Function* run_id_get;
  XLA_FFI_Function* device_ordinal_get;
} XLA_FFI_Api;
typedef struct {
  size_t struct_size; void* extension_start; int dtype; void* data; int64_t rank;
  int64_t* dims;
} XLA_FFI_Buffer;
typedef struct { const char* ptr; size_t len; } XLA_FFI_ByteSpan;
typedef struct { int dtype; void* value; } XLA_FFI_Scalar;
typedef struct { int dtype; size_t size; void* data; } XLA_FFI_Array;
typedef struct {
  size_t struct_size; void* extension_start; int64_t size; int* types; void** values;
} XLA_FFI_Values;
typedef struct {
  size_t struct_size; void* extension_start; int64_t size; int* types;
  XLA_FFI_ByteSpan** names; void** values;
} XLA_FFI_Attrs;
typedef struct {
  size_t struct_size; XLA_FFI_Extension_Base* extension_start; const XLA_FFI_Api* api; void* ctx;
  int stage; XLA_FFI_Values args; XLA_FFI_Values rets; XLA_FFI_Attrs attrs; void* future;
} XLA_FFI_CallFrame;
typedef struct {
  size_t struct_size; XLA_FFI_Api_Version api_version; uint32_t traits; int64_t state_type_id;
} XLA_FFI_Metadata;
typedef struct {
  XLA_FFI_Extension_Base base; XLA_FFI_Metadata* metadata;
} XLA_FFI_Metadata_Extension;
typedef XLA_FFI_Error* XLA_FFI_Handler(XLA_FFI_CallFrame* frame);
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_ByteSpan name; XLA_FFI_ByteSpan platform;
  void* instantiate; void* prepare; void* initialize; void* execute; uint32_t traits;
} XLA_FFI_Handler_Register_Args;
typedef struct {
  size_t struct_size; void* extension_start; void (*deleter)(void* object);
} XLA_FFI_TypeInfo;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_ByteSpan name; int64_t* type_id;
  const XLA_FFI_TypeInfo* type_info;
} XLA_FFI_Type_Register_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int stage; int64_t* type_id; void* state;
} XLA_FFI_State_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t* type_id; void* state;
} XLA_FFI_State_Args_Before_0_3;
"""
"""Version 0.3, as C text. Attributes' types: 1 array, 2 dictionary, 3 scalar, 4 string.

In 0.4, ``XLA_FFI_Error_GetDetails_Args`` replaces the struct of ``GetMessage``; it has one more
field.
"""
