"""`XlaComputation`: a program before XLA optimises it, as HLO: text, bytes, and a graph."""

from __future__ import annotations

from typing import Any

from plugrt.errors import ProgramError
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.modules import bytecode
from plugrt.stablehlo.passes import strip_locations


@with_checked_methods
class XlaComputation:
    """A program as HLO, not optimised; with the methods of jaxlib's ``XlaComputation``.

    It has one parameter per array, or one tuple parameter; several results are always one tuple.
    """

    def __init__(
        self,
        module: ir.Module,
        *,
        tuple_args: bool = False,
        return_tuple: bool = False,
        debug_info: bool = False,
    ) -> None:
        """Converts a StableHLO module; ``debug_info`` keeps its names and source lines.

        With ``tuple_args`` the parameters are one tuple, with ``return_tuple`` one result is, too.
        Raises `ProgramError` for a module that HLO cannot express.
        """
        # Instructions are named after operations where no location names them.
        code = bytecode(module) if debug_info else strip_locations(bytecode(module))
        private: Any = import_native("jaxlib._jax")[0]
        try:
            self._computation = private.mlir.mlir_module_to_xla_computation(
                code, use_tuple_args=tuple_args, return_tuple=return_tuple
            )
        except (RuntimeError, ValueError) as error:
            raise ProgramError(f"the module cannot be written as HLO: {error}") from error

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        """Returns HLO text; long constants are left out unless ``print_large_constants``."""
        text: str = self._computation.as_hlo_text(print_large_constants)
        return text

    def text_with_lines(self) -> str:
        """Returns HLO text with the names and source lines that ``debug_info`` has kept."""
        text: str = self.as_hlo_module().to_string()
        return text

    def as_serialized_hlo_module_proto(self) -> bytes:
        """Returns the bytes of an ``HloModuleProto``."""
        code: bytes = self._computation.as_serialized_hlo_module_proto()
        return code

    def as_hlo_dot_graph(self) -> str:
        """Returns XLA's picture of the program as Graphviz text: ``dot -Tsvg`` draws it."""
        text: str = self._computation.as_hlo_dot_graph()
        return text

    def as_hlo_module(self) -> Any:
        """Returns the program as jaxlib's ``HloModule``."""
        return self._computation.get_hlo_module()

    def get_hlo_module(self) -> Any:
        """Returns `as_hlo_module`."""
        return self.as_hlo_module()

    def program_shape(self) -> Any:
        """Returns jaxlib's ``ProgramShape``: ``parameter_shapes()`` and ``result_shape()``."""
        return self._computation.program_shape()

    def name(self) -> str:
        """Returns the module's name, such as ``xla_computation_f``."""
        text: str = self._computation.name()
        return text

    def hash(self) -> int:
        """Returns a hash, which is equal for equal programs."""
        number: int = self._computation.hash()
        return number

    def __repr__(self) -> str:
        return f"<HLO of {self._computation.program_shape()!r}, module {self.name()!r}>"
