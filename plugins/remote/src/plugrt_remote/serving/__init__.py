"""The server: one process owns a backend, and serves its devices to clients."""
