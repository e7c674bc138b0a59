"""Two device servers on a local Ray cluster; one is killed.

pip install ray "plugrt[cpu,remote]"

Ray starts the killed server again, and the same jitted function computes on it.
"""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import ray

import plugrt
from plugrt.errors import Unavailable
from plugrt_remote.ray import DeviceServers

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
with DeviceServers("cpu", 2, resources={"CPU": 1}) as servers:
    addresses = servers.addresses()
    os.environ["PLUGRT_REMOTE"] = addresses[0]
    plugrt.config.update("platforms", "remote")
    double = plugrt.jit(lambda x: 2 * x)
    x = np.arange(4, dtype=np.float32)
    print(double(x), "on", plugrt.devices()[0])

    os.kill(servers.processes()[0], signal.SIGKILL)
    try:
        while True:
            double(x).block_until_ready()
            time.sleep(0.01)
    except Unavailable as error:
        print("killed:", str(error)[:60])
    os.environ["PLUGRT_REMOTE"] = servers.addresses()[0]
    plugrt.clear_backends()
    print(double(x), "on the server that Ray has started again")
ray.shutdown()
