"""The tests run on this device and on no other."""

import os

from my_chip import NAME

os.environ["JAX_PLATFORMS"] = NAME
os.environ["PLUGRT_STRICT_PLUGINS"] = "1"  # a plugin that fails is an error
