"""Streams and events, with page-locked memory and copies that overlap."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

N, PARTS = 1 << 18, 4
twice = SourceModule("__global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }").get_function("twice")
host = cuda.pagelocked_empty(N, np.float32)
host[:] = np.arange(N)
want = host * 2
device = cuda.mem_alloc(host.nbytes)
streams = [cuda.Stream() for _ in range(PARTS)]
begin, end = cuda.Event(), cuda.Event()
part = N // PARTS
begin.record(streams[0])
for i, stream in enumerate(streams):
    piece, place = host[i * part:(i + 1) * part], int(device) + i * part * 4
    cuda.memcpy_htod_async(place, piece, stream)
    twice(np.uintp(place), np.int32(part), block=(256, 1, 1), grid=(part // 256, 1), stream=stream)
    cuda.memcpy_dtoh_async(piece, place, stream)
for stream in streams[1:]:
    done = cuda.Event()
    done.record(stream)
    streams[0].wait_for_event(done)
end.record(streams[0])
end.synchronize()
np.testing.assert_array_equal(host, want)
assert end.query() and all(s.is_done() for s in streams)
assert end.time_since(begin) >= 0
cuda.memset_d32_async(device, 3, N, streams[1])
streams[1].synchronize()
assert (cuda.from_device(device, N, np.int32) == 3).all()
