"""``pytest --plugrt NAME``: adds the kit's checks, and the fixtures `client` and `device`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from plugrt.errors import PlugrtError, describe
from plugrt.interface import Client, Device
from plugrt_sdk.conformance.judge import is_hardware_absent
from plugrt_sdk.conformance.pytest_suite import PluginSuite
from plugrt_sdk.conformance.target import Target


class TestPlugin(PluginSuite):
    """The checks of the plugin that the option names."""


def pytest_configure(config: pytest.Config) -> None:
    """Raises a usage error for a plugin that does not exist."""
    try:
        Target.parse(config.getoption("plugrt")).require("pytest")
    except PlugrtError as error:
        raise pytest.UsageError(f"--plugrt: {error}") from error


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds the checks, before -k selects, unless the command line names paths."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        module = pytest.Module.from_parent(session, path=config.rootpath, nodeid="plugrt")
        module.obj = sys.modules[__name__]
        items += session.genitems(module)


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of the plugin that ``--plugrt`` names, in pytest's process; skips without it."""
    target = Target.parse(request.config.getoption("plugrt"))
    try:
        made = target.create_client(target.load())
    except PlugrtError as error:
        if is_hardware_absent(error):
            pytest.skip(f"NO-HARDWARE: {describe(error)}")
        raise
    yield made
    made.close()


@pytest.fixture(scope="session")
def device(client: Client) -> Device:
    """The first device of `client`."""
    return client.addressable_devices()[0]
