"""Shows faults of other projects: ``python docs/findings/upstream.py [NAME ...]``.

Needs JAX and optree alone. A fault is a function; each runs in a forked child, since some end their
process. After its output there is a line with its name and exit status, below 0 for a signal.
`docs/data/upstream_faults.toml` states what each shows, and plugrt's workaround for it.
"""

import gc
import os
import re
import resource
import signal
import socket
import sys
import threading
import time
import weakref

os.environ.update(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="4", XLA_FLAGS="")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jax.extend.backend import clear_backends
from jaxlib import _hlo, _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo


def call(function, *arguments, **options):
    """Calls a compiled function."""
    return jax.jit(function, **options)(*arguments)


def add_one(x):
    return x + 1


def halved(n=4):
    """Returns ones on two devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), "x")
    divided = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    return jax.device_put(np.ones(n, np.float32), divided)


def compile_for(x):
    return jax.jit(add_one).lower(x).compile().runtime_executable()


def compile_text(text, options=None, devices=1):
    found = _jax.DeviceList(tuple(jax.devices()[:devices]))
    return found[0].client.compile_and_load(text.encode(), found, options or _jax.CompileOptions())


def load(serialized):
    devices = _jax.DeviceList(tuple(jax.devices()[:1]))
    return devices[0].client.deserialize_executable(serialized, devices, _jax.CompileOptions())


def xla_complex_exponential():
    print(call(jnp.exp, np.complex64(complex(-np.inf, np.inf))))  # C99: 0


def xla_complex_root():
    print(call(jnp.sqrt, np.complex64(complex(np.nan, np.inf))))  # C99: inf+infj


def xla_complex_power():
    print(call(jax.lax.pow, np.complex64(0), np.complex64(2 + 1j)))  # 0


def xla_complex_cosine():
    print(call(jnp.cos, np.complex64(complex(0, np.inf))), "=", end=" ")
    print(call(jnp.cos, np.complex64(complex(np.inf, 0))))  # C99: the imaginary part is 0


def xla_hyperbolic_zero():
    print(call(jnp.sinh, np.complex64(complex(1, -0.0))))  # C99: 1.1752012-0j


def xla_integer_division():
    print(call(jax.lax.div, np.int32(1), np.int32(0)))


def xla_two_bit_join():
    x = jnp.asarray(np.array([0, 1, 1], ml_dtypes.int2))
    print(call(lambda x: jnp.concatenate([x, x]), x))


def xla_shape_overflow():
    call(lambda: jnp.zeros((1 << 62, 4)))


def xla_address_space():
    with open("/proc/self/statm") as sizes:
        limit = int(sizes.read().split()[0]) * resource.getpagesize() + (200 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(call(add_one, np.float32(1)))


def xla_hlo_types():
    computation = jax.jit(lambda x: (x, x)).lower(np.float32(1)).compiler_ir("hlo")
    code = computation.as_serialized_hlo_module_proto()
    _jax.mlir.hlo_to_stablehlo(code)
    print("read", flush=True)
    _jax.mlir.hlo_to_stablehlo(code.replace(b"\xa2\x02", b"\xe2\x02"))  # without tuple operands


def xla_serialized_twice():
    x = np.ones((64, 64), np.float32)
    first = jax.jit(lambda x: x @ x + 1).lower(x).compile().runtime_executable()
    for executable in (load(first.serialize()), load(load(first.serialize()).serialize())):
        found = executable.execute_sharded([jax.device_put(x)])
        print("launched:", found.disassemble_into_single_device_arrays()[0][0][0, 0])


def jaxlib_fewer_devices():
    load(compile_for(halved()).serialize())


def jaxlib_replicas_and_partitions():
    halves = 'tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}'
    options = _jax.CompileOptions()
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    options.num_replicas = options.num_partitions = build.num_replicas = build.num_partitions = 2
    ids = np.arange(4, dtype=np.int32).reshape(2, 2)
    options.device_assignment = build.device_assignment = _jax.DeviceAssignment.create(ids)
    body = "return %a : tensor<4xf32>"
    compile_text(f"func.func @main(%a: {halves}) -> ({halves}) {{ {body} }}", options, devices=4)


def jaxlib_deleted_argument():
    x = halved()
    program = compile_for(x)
    x.addressable_shards[1].data.delete()
    program.execute_sharded([x])


def jaxlib_wrong_shape():
    compile_for(halved(4)).execute_sharded([halved(8)])


def jaxlib_first_part():
    x = halved()
    x.addressable_shards[1].data.delete()
    print("after the second part:", x.is_deleted(), end="; ")
    x.addressable_shards[0].data.delete()
    print("after the first part:", x.is_deleted())


def jaxlib_message_of_deleted():
    x = jax.device_put(np.ones(4, np.float32))
    program = compile_for(x)
    x.delete()
    program.execute_sharded([x])


def jaxlib_donated_view():
    x = call(add_one, np.ones(4, np.float32))
    view = np.asarray(x)
    call(add_one, x, donate_argnums=0)
    print(view[0], "deleted:", x.is_deleted())


def jaxlib_donated_twice():
    x = halved()
    call(lambda a, b: (a + b, a - b), x, x, donate_argnums=(0, 1))


def jaxlib_deleted_capsule():
    x = jax.device_put(np.ones(3, np.float32))
    capsule = _jax.buffer_to_dlpack_managed_tensor(x)
    x.delete()
    print("deleted", capsule)


def jaxlib_host_memory():
    x = np.arange(1000, dtype=np.float32)
    alive = weakref.ref(x)
    y = jax.device_put(x, may_alias=True).block_until_ready()
    del x
    y.delete()
    print("kept:", alive() is not None, end="; ")
    _jax.collect_garbage()
    print("kept after collect_garbage:", alive() is not None)


def jaxlib_invalid_options():
    print("replicas:", _jax.CompileOptions.ParseFromString(b"\xff\xff\xff").num_replicas)


def jaxlib_no_device():
    _jax.GSPMDSharding((), _hlo.HloSharding.replicate())


def xla_token_dimensions():
    print(_hlo.Shape.token_shape().dimensions())


def jaxlib_connect_timeout():
    times = {"init_timeout": 1, "heartbeat_timeout": 10, "shutdown_timeout": 1}
    _jax.get_distributed_runtime_client("127.0.0.1:9", 1, **times).connect()


def jaxlib_mpi():
    os.environ.pop("MPITRAMPOLINE_LIB", None)
    try:
        _jax.make_mpi_collectives().Init()
    except RuntimeError as error:
        print("an error, as it should be:", error)


def jaxlib_mpi_import():
    os.environ["MPITRAMPOLINE_LIB"] = os.devnull
    os.execv(sys.executable, [sys.executable, "-c", "import jaxlib._jax; print('imported')"])


def jaxlib_fork():
    x = call(add_one, np.float32(1)).block_until_ready()
    if child := os.fork():
        print("the child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return
    signal.alarm(10)
    del x
    jax.clear_caches()
    clear_backends()
    gc.collect()
    os._exit(0)


def chlo_scan():
    text = """func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<4xf32> {
      %0:2 = "chlo.scan"(%x, %i) <{dimension = 0 : i64, is_reverse = BACKWARDS,
          operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%row: tensor<f32>, %c: tensor<f32>):
        %s = stablehlo.add %row, %c : tensor<f32>
        stablehlo.return %s, %s : tensor<f32>, tensor<f32>
      }) : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
      return %0#0 : tensor<4xf32>
    }"""
    stablehlo.register_stablehlo_passes()
    lowered = []
    for backwards in ("true", "false"):
        with mlir.make_ir_context():
            module = ir.Module.parse(text.replace("BACKWARDS", backwards))
            passes = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
            passmanager.PassManager.parse(passes).run(module.operation)
            lowered.append(str(module))
    print("the same in both directions:", lowered[0] == lowered[1])
    print("real_dynamic_slice:", "real_dynamic_slice" in lowered[0])


def numpy_second_import():
    for name in [name for name in sys.modules if name.startswith("numpy")]:
        del sys.modules[name]
    __import__("numpy")


def jaxlib_context_at_exit():
    left_open = "from jaxlib.mlir import ir; ir.Context().__enter__()"
    os.execv(sys.executable, [sys.executable, "-c", left_open])


def mlir_second_import():
    for name in [name for name in sys.modules if "mlir" in name]:
        del sys.modules[name]
    __import__("jaxlib.mlir.ir")


def optree_changed_dict():
    import optree

    class Node:
        pass

    def flatten(node):
        tree.clear()
        return (), None, ()

    optree.register_pytree_node(Node, flatten, lambda metadata, parts: Node(), namespace="x")
    tree = {i: object() for i in range(1000)}
    tree[0] = Node()
    optree.tree_flatten(tree, namespace="x")


def cpython_thread_start():
    start = threading._start_new_thread

    def start_interrupted(*arguments):  # as if a signal handler raised an exception
        start(*arguments)
        time.sleep(0.2)
        raise ValueError("of the signal handler")

    threading._start_new_thread = start_interrupted
    threading.Thread(target=int).start()


def cpython_event_wait():
    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupt_again(frame, event, _):
        if event == "call" and frame.f_code.co_name == "_acquire_restore":
            sys.setprofile(None)
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    sys.setprofile(interrupt_again)
    threading.Event().wait(5)


def xla_deep_calls(deep=400):
    head = "func.func {}(%a: tensor<f32>) -> tensor<f32> {{"
    call = "%0 = func.call @f{}(%a) : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }}"
    parts = [f"{head} {call}".format(f"private @f{i}", i + 1) for i in range(deep)]
    parts += [head.format(f"private @f{deep}") + " return %a : tensor<f32> }"]
    compile_text("\n".join([f"{head} {call}".format("public @main", 0), *parts]))


def mlir_deep_text(deep=20_000):
    with mlir.make_ir_context():
        ir.Module.parse("module attributes {a = " + "[" * deep + "]" * deep + "} {}")


def jaxlib_heartbeat_callback():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    service = _jax.get_distributed_runtime_service(f"localhost:{port}", 1, heartbeat_timeout=2)
    client = _jax.get_distributed_runtime_client(
        f"localhost:{port}", 0, heartbeat_timeout=2, missed_heartbeat_callback=print
    )
    client.connect()
    del service
    time.sleep(30)


def jaxlib_interrupted_compile(adds=100_000):
    def interrupt(*_):
        raise KeyboardInterrupt

    lines = (f"%{i + 1} = stablehlo.add %{i}, %{i} : tensor<f32>" for i in range(adds))
    body = "\n".join([*lines, f"return %{adds} : tensor<f32>"])
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        compile_text(f"func.func @main(%0: tensor<f32>) -> tensor<f32> {{ {body} }}")
    except KeyboardInterrupt:
        time.sleep(5)  # its thread still reads the module, which is freed


def stablehlo_total_order():
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "stablehlo.sort"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }) {dimension = 0 : i64} : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    with mlir.make_ir_context():
        values = ir.DenseElementsAttr.get(np.float32([np.nan, 1, -np.inf]))
        [found] = stablehlo.eval_module(ir.Module.parse(text), [values])
        print([float(x) for x in np.array(found)])  # nan is the last in total order


def jax_complex_maximum():
    nan, one = np.complex64(np.nan), np.complex64(1)
    print(jnp.maximum(nan, one), jnp.maximum(one, nan))


FAULTS = {
    name: value
    for name, value in list(globals().items())
    if re.match("(xla|jax|jaxlib|chlo|stablehlo|numpy|mlir|optree|cpython)_", name)
}


def main(names):
    for name in names or FAULTS:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            status = 1
            try:
                signal.alarm(60)
                FAULTS[name]()
                status = 0
            except BaseException as error:  # noqa: BLE001 each is printed
                print(f"{type(error).__name__}: {error}")
            sys.stdout.flush()
            os._exit(status)
        print(f"--- {name}: {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", flush=True)


main(sys.argv[1:])
