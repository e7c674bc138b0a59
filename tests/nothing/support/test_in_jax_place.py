"""Test files of JAX's that import plugrt in place of JAX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.markdown import ROOT

ABSL = {
    "absl/__init__.py": "",
    "absl/testing/__init__.py": "",
    "absl/testing/parameterized.py": "from unittest import TestCase",
}
"""A part of absl-py, which the session installs."""
TESTS = """
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import config, core, test_util as jtu
from jax.sharding import NamedSharding, PartitionSpec as P

jtu.request_cpu_devices(8)
CASES = [jax.no_such.thing(1)[0] + 1 for _ in range(2)]  # what is imported asks for names alone


@jax.custom_of_some_kind
def custom(x):
    return x


class SomeTest(jtu.JaxTestCase):
    def test_arrays(self):
        rows = NamedSharding(jtu.create_mesh((8,), "x"), P("x"))
        x = jax.device_put(np.arange(8, dtype="f4"), rows)
        y = jax.jit(lambda v: jnp.sin(v) + lax.psum(1, ()))(x)
        self.assertAllClose(y, np.sin(np.arange(8.0)) + 1, rtol=1e-5, check_dtypes=False)
        self.assertIsInstance(y, jax.Array)
        self.assertEqual(x.aval, core.ShapedArray((8,), np.float32))

    def test_a_message_of_its_own(self):
        with self.assertRaisesRegex(ValueError, "words of JAX's"):
            jax.jit(lambda v: v)(jax.device_put(np.ones(3), jax.devices()), 2)

    def test_wrong(self):
        self.assertAllClose(jnp.ones(2), np.zeros(2))

    def test_missing_function(self):
        jax.grad(lambda v: v)(1.0)

    def test_missing_decorated(self):
        custom(1.0)

    @config.numpy_rank_promotion("allow")
    def test_missing_setting(self):
        pass

    @jtu.some_decorator
    def test_missing_decorator(self):
        pass
"""


def test_names_are_plugrts_or_their_use_fails_by_name(tmp_path: Path) -> None:
    for name, text in {**ABSL, "test_some.py": TESTS}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "in_jax_place", "-rA",
         "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line", "test_some.py"],
        cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'tools/jax_suite'}", "PATH": "/usr/bin:/bin",
             "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"},
    )  # fmt: skip
    lines = [line.partition("::SomeTest::") for line in done.stdout.splitlines()]
    ends = {rest.split(" ")[0]: f"{first} {rest}" for first, mark, rest in lines if mark}
    passed = {name for name, line in ends.items() if line.startswith("PASSED")}
    assert passed == {"test_arrays", "test_a_message_of_its_own"}, done.stdout
    for name, missing in {
        "function": "jax.grad", "decorated": "jax.custom_of_some_kind",
        "setting": "jax._src.config.numpy_rank_promotion",
        "decorator": "jax._src.test_util.some_decorator",
    }.items():  # fmt: skip
        assert f"NotInPlugrt: {missing}" in done.stdout, (name, done.stdout)
        assert ends[f"test_missing_{name}"].startswith("FAILED")
    assert ends["test_wrong"].startswith("FAILED")
