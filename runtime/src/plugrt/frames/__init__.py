"""The user's stack frames: tracebacks, and errors that name the arguments of a call."""
