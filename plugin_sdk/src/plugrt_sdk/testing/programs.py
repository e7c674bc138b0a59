"""The StableHLO programs of the checks."""

from __future__ import annotations

from base64 import b64decode

ADD = """func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
"""A program that every backend runs: the sum of two arrays of three floats."""

ADD_AS_HLO = b64decode(
    """
    CgRtYWluEgZtYWluLjEalAIKBm1haW4uMRI1CgdBcmdfMC4xEglwYXJhbWV0ZXIaEBALGgEDKgYKAQCAAQEyAQA6
    AJgCgYCAgBCiBACSBQASNwoHQXJnXzEuMRIJcGFyYW1ldGVyGhAQCxoBAyoGCgEAgAEBMgEAOgBIAZgCgoCAgBCi
    BACSBQASSAoFYWRkLjESA2FkZBoQEAsaAQMqBgoBAIABATIBADoOGgEtIAKIAQKQAQiYAQiYAoOAgIAQogIKgYCA
    gBCCgICAEKIEAJIFACJIChAQCxoBAyoGCgEAgAEBMgEAChAQCxoBAyoGCgEAgAEBMgEAEhAQCxoBAyoGCgEAgAEB
    MgEAGgdBcmdfMC4xGgdBcmdfMS4xKAEwg4CAgBAiPgoQEAsaAQMqBgoBAIABATIBAAoQEAsaAQMqBgoBAIABATIB
    ABIQEAsaAQMqBgoBAIABATIBABoCcDAaAnAxMAFCAJIBAJoBAA==
    """
)
"""`ADD` as a serialised ``HloModuleProto``, which jaxlib 0.10.2 made of it."""

DONATING_ADD = ADD.replace("%a: tensor<3xf32>", "%a: tensor<3xf32> {tf.aliasing_output = 0 : i32}")
"""The same; the result may have the memory of the first argument."""

ALL_REDUCE = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
"""The sum over two replicas."""

PARTITIONED_ADD = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(
      %a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.add %a, %a : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}"""
"""An array of six floats, half on each of two devices, plus itself."""

NO_RESULTS = "func.func public @main(%a: tensor<3xf32>) { return }"
NOTHING = "func.func public @main() { return }"
"""A program without arguments and without results."""

PARTITIONED_NO_RESULTS = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    return
  }
}"""

PARTITIONED_CONSTANT = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main() -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}"""

EMPTY_TUPLES = """
func.func private @nothing() { return }
func.func public @main(%a: tensor<3xf32>, %i: tensor<i32>) -> tensor<3xf32> {
  %t = "stablehlo.tuple"() : () -> tuple<>
  func.call @nothing() : () -> ()
  "stablehlo.case"(%i) ({ stablehlo.return }, { stablehlo.return }) : (tensor<i32>) -> ()
  "stablehlo.optimization_barrier"() : () -> ()
  %b = stablehlo.add %a, %a : tensor<3xf32>
  return %b : tensor<3xf32>
}"""
"""A sum beside a call, a case and a barrier without results, which are empty tuples in XLA."""

ADD_TO_ITSELF = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.add %a, %a : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}"""
"""The same, without a word of how it is divided."""

IDENTITY = (
    "func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> { return %a : tensor<3xf32> }"
)

TOKEN = """func.func public @main(%t: !stablehlo.token, %a: tensor<3xf32>)
    -> (!stablehlo.token, tensor<3xf32>) {
  %0 = stablehlo.after_all %t : !stablehlo.token
  return %0, %a : !stablehlo.token, tensor<3xf32>
}"""
"""A step in a chain of tokens, and the identity."""

CONSTANT = """func.func public @main() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[7, -1]> : tensor<2xi32>
  return %0 : tensor<2xi32>
}"""

SEVERAL_RESULTS = """func.func public @main(%a: tensor<2xi32>, %b: tensor<0x4xf32>, %c: tensor<f32>)
    -> (tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<0x4xf32>) {
  %0 = stablehlo.add %a, %a : tensor<2xi32>
  return %c, %0, %a, %b : tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<0x4xf32>
}"""
"""Results that are arguments, a scalar, and an array without elements."""

MATMUL = """func.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}"""

COUNT_UP = """func.func public @main(%a: tensor<i32>) -> tensor<i32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %0 = stablehlo.while(%i = %a) : tensor<i32>
    cond {
      %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next : tensor<i32>
    }
  return %0 : tensor<i32>
}"""
"""A loop: the greater of the argument and ten."""

SLOW_ADD = """func.func public @main(%a: tensor<4096xf32>, %b: tensor<4096xf32>)
    -> tensor<4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<400> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %b) : tensor<i32>, tensor<4096xf32>
    cond {
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.negate %x : tensor<4096xf32>
      stablehlo.return %next, %y : tensor<i32>, tensor<4096xf32>
    }
  %1 = stablehlo.add %0#1, %a : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}"""
"""A sum that reads its first argument once a loop has ended: large enough that XLA's backend for
CPUs runs it in another thread, small enough that memory is lent to its arguments."""

SUM = """func.func public @main(%a: tensor<2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
"""A reduction: the sums of the columns."""
