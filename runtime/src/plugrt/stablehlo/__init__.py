"""StableHLO modules, through jaxlib's MLIR bindings.

Only this package and the cpu plugin use private jaxlib names. Importing a module of this package
needs the extra ``plugrt[trace]``; without it the import raises `MissingTraceExtra`.
`element_names`, `dot` and `hlo.hlo_graph` need nothing.
"""
