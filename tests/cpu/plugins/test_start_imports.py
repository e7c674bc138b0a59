"""A start imports no module that it does not use, and warns without ``logging``."""

from __future__ import annotations

from support.distributions import run_python

CODE = """
import sys
import plugrt
plugrt.devices()
unused = {"logging", "ml_dtypes", "numpy.typing"} & set(sys.modules)
assert not unused, unused
from plugrt.plugins.log import logger
logger.debug("nobody sees it")
assert "logging" not in sys.modules
logger.warning("somebody %s it", "sees")
import logging
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
logger.debug("now somebody sees it")
assert logger.debug == logging.getLogger("plugrt.plugins").debug
assert "debug" in vars(logger)  # getLogger, which holds a lock, is called once
"""


def test_a_start_imports_neither_logging_nor_ml_dtypes() -> None:
    done = run_python(CODE, JAX_PLATFORMS="cpu")
    said = "somebody sees it\nplugrt.plugins now somebody sees it\n"
    assert (done.returncode, done.stderr) == (0, said)
