"""The extensions of the PJRT C API that plugrt uses where a library has them."""
