"""Modules: functions and their attributes, variables, shared and constant memory, structs, prepared calls."""

import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda.compiler import DynamicSourceModule, SourceModule, compile
from pycuda.tools import DeviceData

SOURCE = """
__constant__ float factors[4];
__device__ int counter = 7;
struct item { int n; float *data; };

__global__ void scale(float *x) { x[threadIdx.x] *= factors[threadIdx.x % 4]; }
__global__ void reverse(int *x) {
    extern __shared__ int s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void count() { atomicAdd(&counter, 1); }
__global__ void fill(struct item *items) {
    struct item *it = items + blockIdx.x;
    for (int i = threadIdx.x; i < it->n; i += blockDim.x) it->data[i] = blockIdx.x;
}
"""
module = SourceModule(SOURCE)

x = np.arange(64, dtype=np.float32)
factors = np.array([1, 2, 3, 4], dtype=np.float32)
cuda.memcpy_htod(module.get_global("factors")[0], factors)
want = x * np.tile(factors, 16)
module.get_function("scale")(cuda.InOut(x), block=(64, 1, 1))
np.testing.assert_array_equal(x, want)

reverse = module.get_function("reverse")
assert reverse.num_regs > 0 and reverse.shared_size_bytes == 0 and reverse.max_threads_per_block >= 64
y = cuda.to_device(np.arange(64, dtype=np.int32))
reverse.prepare("P")
reverse.prepared_call((1, 1), (64, 1, 1), y, shared_size=256)
np.testing.assert_array_equal(cuda.from_device(y, 64, np.int32), np.arange(64)[::-1])
elapsed = reverse.prepared_timed_call((1, 1), (64, 1, 1), y, shared_size=256)
assert elapsed() >= 0

address, size = module.get_global("counter")
assert size == 4
module.get_function("count")(block=(32, 1, 1), grid=(3, 2))
assert cuda.from_device(address, 1, np.int32)[0] == 7 + 192

arrays = [cuda.to_device(np.zeros(n, dtype=np.float32)) for n in (5, 300)]
item = np.dtype([("n", np.int32), ("data", np.uint64)], align=True)
items = np.array([(5, int(arrays[0])), (300, int(arrays[1]))], dtype=item)
module.get_function("fill")(cuda.In(items), block=(32, 1, 1), grid=(2, 1))
assert (cuda.from_device(arrays[1], 300, np.float32) == 1).all()

# Linked by the driver, and loaded from machine code and from PTX.
linked = DynamicSourceModule(SOURCE, cuda_libdir="/usr/lib/x86_64-linux-gnu")
assert linked.get_function("count")
ptx = compile(SOURCE, target="ptx", no_extern_c=False)
assert cuda.module_from_buffer(ptx).get_function("count")

data = DeviceData()
assert data.warp_size == 32 and data.max_threads >= 1024
