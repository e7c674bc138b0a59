"""Loading a PJRT library: its file, its function table and extensions, all checked before use."""
