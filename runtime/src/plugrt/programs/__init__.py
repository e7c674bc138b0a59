"""Programs from elsewhere: StableHLO files and JAX exports, compiled and called on arrays.

Works without jaxlib, too: a program is then handed to the backend as it is, and it is the
backend's parser that judges it.
"""

from plugrt.programs.compiled_program import CompiledProgram, compile
from plugrt.programs.loading import load_program

__all__ = ["CompiledProgram", "compile", "load_program"]
