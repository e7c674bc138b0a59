"""Python functions that programs call, and the launches of such programs."""
