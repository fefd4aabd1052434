"""Page-locked, mapped and managed memory, pools, and copies of rectangles.

Not registered memory: pycuda 2025.1.1 cannot make its array with NumPy 2.
"""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda import gpuarray
from pycuda.compiler import SourceModule
from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

increment = SourceModule("__global__ void increment(int *x) { x[threadIdx.x] += 1; }").get_function("increment")

mapped = cuda.pagelocked_zeros(64, np.int32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
increment(np.uintp(mapped.base.get_device_pointer()), block=(64, 1, 1))
cuda.Context.synchronize()
assert (mapped == 1).all()

managed = cuda.managed_zeros(64, np.int32, mem_flags=cuda.mem_attach_flags.GLOBAL)
increment(managed, block=(64, 1, 1))
cuda.Context.synchronize()
assert (managed == 1).all()

pool = DeviceMemoryPool()
a = gpuarray.to_gpu(np.arange(1000, dtype=np.float32), allocator=pool.allocate)
address = a.ptr
del a
b = gpuarray.zeros(1000, np.float32, allocator=pool.allocate)
assert b.ptr == address and pool.active_blocks == 1
del b
pool.free_held()
assert pool.held_blocks == 0
staging = PageLockedMemoryPool().allocate((100,), np.float32)
staging[:] = 1

matrix = np.arange(60 * 100, dtype=np.float32).reshape(60, 100)
place, pitch = cuda.mem_alloc_pitch(400, 60, 4)
copy = cuda.Memcpy2D()
copy.set_src_host(matrix)
copy.set_dst_device(place)
copy.src_pitch = copy.width_in_bytes = 400
copy.dst_pitch, copy.height = pitch, 60
copy(aligned=True)
back = np.zeros_like(matrix)
copy = cuda.Memcpy2D()
copy.set_src_device(place)
copy.set_dst_host(back)
copy.src_pitch = pitch
copy.dst_pitch = copy.width_in_bytes = 400
copy.height = 60
copy(aligned=True)
np.testing.assert_array_equal(back, matrix)

cube = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
target = gpuarray.zeros((4, 5, 6), np.float32)
copy = cuda.Memcpy3D()
copy.set_src_host(cube)
copy.set_dst_device(target.gpudata)
copy.src_pitch = copy.dst_pitch = copy.width_in_bytes = 24
copy.src_height = copy.dst_height = copy.height = 5
copy.depth = 4
copy()
np.testing.assert_array_equal(target.get(), cube)

try:
    cuda.mem_alloc(1 << 50)
    raise SystemExit("an allocation of 1 PiB was granted")
except cuda.MemoryError:
    pass
