"""Random calls, made with plugrt and with JAX in one process, and how their outcomes differ.

`generate` draws a `Case` for a seed, `script` writes it as a program, `run` runs the program with
one library, `compare` lists the differences, and `deviations` has the known ones. ``python -m
support.differential``, in ``tests``, is the long run.
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # before either library reads it
