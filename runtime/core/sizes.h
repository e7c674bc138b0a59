/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */
#include "pjrt.h"
#define SIZE_OF_Buffer_Destroy (offsetof(struct PJRT_Buffer_Destroy_Args, buffer) + sizeof(((struct PJRT_Buffer_Destroy_Args*)0)->buffer))
#define SIZE_OF_Buffer_IsDeleted (offsetof(struct PJRT_Buffer_IsDeleted_Args, is_deleted) + sizeof(((struct PJRT_Buffer_IsDeleted_Args*)0)->is_deleted))
#define SIZE_OF_Client_BufferFromHostBuffer (offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, buffer) + sizeof(((struct PJRT_Client_BufferFromHostBuffer_Args*)0)->buffer))
#define SIZE_OF_Event_Destroy (offsetof(struct PJRT_Event_Destroy_Args, event) + sizeof(((struct PJRT_Event_Destroy_Args*)0)->event))
#define SIZE_OF_ExecuteOptions (offsetof(PJRT_ExecuteOptions, num_hlo_output_callbacks) + sizeof(((PJRT_ExecuteOptions*)0)->num_hlo_output_callbacks))
#define SIZE_OF_LoadedExecutable_Execute (offsetof(struct PJRT_LoadedExecutable_Execute_Args, execute_device) + sizeof(((struct PJRT_LoadedExecutable_Execute_Args*)0)->execute_device))
