"""The PJRT C ABI: declarations, the modules generated from them, and conversion of C values."""

from plugrt.lifetime.uninterrupted_imports import import_native

import_native("_cffi_backend")  # which `_abi` imports
