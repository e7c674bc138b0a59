"""Fixtures for tests of plugins: a folder to install them in, and counted runs."""

from __future__ import annotations

from support.made_for_jax import be_version as be_version
from support.made_for_jax import hides_jax as hides_jax
from support.made_for_jax import runs as runs
from support.made_for_jax import show_hardware as show_hardware
from support.made_for_jax import site as site
