"""The errors, plugin, event and execute-context functions of the PJRT C API.

The notation is described in `plugrt.capi.abi.declarations`.
"""

BASICS = """
1 void Error_Destroy: Error* error
2 void Error_Message: const Error* error; =const char* message; =size_t message_size
3 Error_GetCode: const Error* error; =Error_Code code
4 Plugin_Initialize:
5 Plugin_Attributes: =const NamedValue* attributes; @71 =size_t num_attributes
6 Event_Destroy: Event* event
7 Event_IsReady: Event* event; =bool is_ready
8 Event_Error: Event* event
9 Event_Await: Event* event
10 Event_OnReady: Event* event; Event_OnReadyCallback callback; void* user_arg
99@52 ExecuteContext_Create: =ExecuteContext* context
100@52 ExecuteContext_Destroy: ExecuteContext* context
124@86 AsyncTrackingEvent_Destroy: AsyncTrackingEvent* event
127@89 Event_Create: =Event* event
128@89 Event_Set: Event* event; Error_Code error_code; const char* error_message; size_t
    error_message_size
133@99 Error_ForEachPayload: const Error* error; Error_PayloadVisitor visitor; void* user_arg
"""
