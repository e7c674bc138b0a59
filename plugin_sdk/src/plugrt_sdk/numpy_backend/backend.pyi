# For type checkers, which read no `sys.modules`: what `plugrt new` wrote imports this name.
from plugrt_numpy.backend import NumpyBackend as NumpyBackend
