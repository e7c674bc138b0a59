"""`jit`, `pmap`, and the stages of ahead-of-time compilation."""
