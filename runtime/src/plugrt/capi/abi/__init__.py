"""The PJRT C ABI: declarations, the modules generated from them, and conversion of C values."""
