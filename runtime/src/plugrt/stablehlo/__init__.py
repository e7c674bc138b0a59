"""StableHLO modules, through jaxlib's MLIR bindings.

Nothing outside this package and the cpu plugin knows a private jaxlib name. Importing a module of
this package needs the extra ``plugrt[trace]``; without it the import raises `MissingTraceExtra`.
`element_names`, `dot` and `hlo.hlo_graph` need nothing.
"""
