func.func public @main() -> tensor<3x2xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %0 = "stablehlo.unary_einsum"(%x) {einsum_config = "ab->ba"} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
