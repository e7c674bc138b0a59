"""A library in use: its client's handle, events, callback threads and capsules."""
