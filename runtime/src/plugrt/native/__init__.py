"""The core in C: whether calls run in it, and which sources it is built from."""
