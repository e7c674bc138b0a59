"""Code of others in a process of its own, which never outlives the one that asked for it."""
