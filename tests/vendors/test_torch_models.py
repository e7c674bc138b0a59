"""Models of PyTorch, packed by torch_xla and called without either.

Needs torch and torch_xla of one version (2.9), which are installed by hand: 7 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt

torch: Any = pytest.importorskip("torch", reason="needs torch and torch_xla")
pytest.importorskip("torch_xla", reason="needs torch_xla")

CALL = """
import sys
import numpy as np, plugrt
model, data = plugrt.load_model(sys.argv[1]), np.load(sys.argv[2])
for n in (1, 4, 6):
    found = model(image=data[f"image{n}"], scale=data["scale"])
    for name in ("chance", "sums"):
        np.testing.assert_allclose(found[name], data[f"{name}{n}"], rtol=1e-4, atol=1e-5)
assert not {"jax", "torch", "torch_xla"} & {*sys.modules}
"""


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 16, 3, stride=2)
        self.last = torch.nn.Linear(16 * 7 * 7, 10)
        self.register_buffer("shift", torch.arange(10.0), persistent=False)

    def forward(self, image: Any, unused: Any, scale: Any) -> Any:
        x = torch.relu(self.norm(self.first(image)))
        x = torch.relu(self.second(x)).flatten(1)
        return torch.softmax(self.last(x) + self.shift, -1) * scale, x.sum(1)


def export(net: Any, *arguments: Any, dynamic: bool = True) -> Any:
    shapes = ({0: torch.export.Dim("n", min=1, max=8)}, *[None] * (len(arguments) - 1))
    return torch.export.export(net.eval(), arguments, dynamic_shapes=shapes if dynamic else None)


def test_a_convolution_net_of_three_batch_sizes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, scale = Net().eval(), torch.tensor(2.0)
    program = export(net, torch.randn(4, 3, 16, 16), torch.zeros(2), scale)
    plugrt.pack_model(
        tmp_path / "net", program, outputs=("chance", "sums"), buckets={"batch": [1, 4, 8]}
    )
    data = {"scale": scale.numpy()}
    for n in (1, 4, 6):
        image = torch.randn(n, 3, 16, 16)
        with torch.no_grad():
            results = net(image, torch.zeros(2), scale)
        data |= {f"image{n}": image.numpy()}
        data |= {f"{k}{n}": v.numpy() for k, v in zip(("chance", "sums"), results, strict=True)}
    np.savez(tmp_path / "data.npz", **data)
    python = os.environ.get("PLUGRT_THIN_PYTHON", sys.executable)
    command = [python, "-c", CALL, str(tmp_path / "net"), str(tmp_path / "data.npz")]
    subprocess.run(command, check=True, timeout=300)


class Noise(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5, True)


class Reduce(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return torch.relu(x).sum(dim=[])  # torch_xla 2.9 does not reduce here, PyTorch does


class Count(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x + self.calls


@pytest.mark.parametrize(
    ("net", "arguments", "options", "error", "words"),
    [
        (Reduce(), (torch.ones(3),), {}, plugrt.errors.ProgramError, "result 'output' is float32"),
        (torch.nn.Dropout(), (torch.ones(2),), {"buckets": {"n": [1]}}, plugrt.errors.ArgumentError,
         "has 0 dynamic ones"),
        (Count(), (torch.ones(3),), {}, plugrt.errors.ProgramError, r"its buffers \['calls'\]"),
        (torch.nn.ReLU(), (torch.ones(2),), {"names": ("a", "b")}, plugrt.errors.ArgumentError,
         r"2 names \(a, b\) for 1"),
        (torch.nn.Linear(2, 2, dtype=torch.bfloat16), (torch.ones(2, dtype=torch.bfloat16),), {},
         plugrt.errors.ProgramError, "cannot lower"),
    ],
)  # fmt: skip
def test_refusals(
    net: Any, arguments: Any, options: Any, error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        plugrt.pack_model(tmp_path / "m", export(net, *arguments, dynamic=False), **options)


def test_results_are_compared_with_pytorchs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = export(torch.nn.ReLU(), torch.ones(2, 3))
    with pytest.raises(plugrt.errors.ArgumentError, match="a name for each"):
        plugrt.pack_model(tmp_path / "unnamed", program)
    with pytest.raises(plugrt.errors.ArgumentError, match="does not fit: PyTorch refuses"):
        plugrt.pack_model(tmp_path / "large", program, buckets={"n": [2, 9]})
    plugrt.pack_model(tmp_path / "m", program, buckets={"n": [2]})
    assert not [each for each in caplog.records if each.name.startswith("plugrt")]
    noise = export(Noise(), torch.ones(2, 300), dynamic=False)
    with pytest.raises(plugrt.errors.ArgumentError, match="is not the source's"):
        plugrt.pack_model(tmp_path / "wrong", noise)
    plugrt.pack_model(tmp_path / "wrong", noise, check=False)
