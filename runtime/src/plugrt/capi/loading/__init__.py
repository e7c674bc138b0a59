"""Loading a PJRT library: its file, its function table and extensions, checked without trust."""
