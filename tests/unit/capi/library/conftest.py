"""A client of the real CPU library, for the tests of this folder."""

from __future__ import annotations

from support.library_client import client as client
from support.library_client import device as device
from support.library_client import library as library
from support.library_client import own_client as own_client
