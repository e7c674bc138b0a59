"""The server: a process that owns a backend, and serves its devices to clients."""
