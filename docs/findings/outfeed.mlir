func.func public @main() -> tensor<3xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<3xf32>
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {outfeed_config = ""}
    : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<3xf32>
}
