"""Arrays keep what is copied to them. Texture references, pycuda's way to textures, are not there."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda

there = np.arange(16 * 12, dtype=np.float32).reshape(16, 12)
array = cuda.matrix_to_array(there, "C")
back = np.zeros_like(there)
copy = cuda.Memcpy2D()
copy.set_src_array(array)
copy.set_dst_host(back)
copy.width_in_bytes = copy.dst_pitch = there.strides[0]
copy.height = there.shape[0]
copy(aligned=True)
assert (back == there).all(), back
