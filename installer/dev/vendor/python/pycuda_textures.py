"""Arrays are refused, and the context goes on."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda

try:
    cuda.matrix_to_array(np.zeros((16, 16), np.float32), "C")
    raise SystemExit("arrays are there now: make this a test of textures")
except cuda.Error as e:
    assert "not supported" in str(e), e
x = np.ones(4, np.float32)
assert (cuda.from_device_like(cuda.to_device(x), x) == 1).all()
