"""The C ABI room: the client interface over any PJRT C API library."""
