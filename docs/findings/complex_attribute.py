"""Reads an attribute with complex numbers by its name, and then by its index."""

from plugrt.stablehlo.bindings import ir, new_context

TEXT = """func.func @main() -> tensor<complex<f32>> {
  %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  return %0 : tensor<complex<f32>>
}"""
with new_context():
    module = ir.Module.parse(TEXT)
    constant = module.body.operations[0].regions[0].blocks[0].operations[0]
    try:
        print("by name:", constant.attributes["value"])
    except TypeError as error:
        print("by name: TypeError:", error, flush=True)
    print("by index:", constant.attributes[0].attr)
