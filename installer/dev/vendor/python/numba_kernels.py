"""Kernels of numba: compiled by NVVM with libdevice, loaded and launched by the driver."""

import math

import numpy as np
from numba import cuda, float32, guvectorize, int32, vectorize

assert cuda.detect()


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


x = np.arange(100_000, dtype=np.float32)
y = np.ones_like(x)
out = np.zeros_like(x)
saxpy[(x.size + 255) // 256, 256](np.float32(2), x, y, out)
np.testing.assert_array_equal(out, 2 * x + 1)


@cuda.jit
def matmul(a, b, c):
    sa = cuda.shared.array((16, 16), float32)
    sb = cuda.shared.array((16, 16), float32)
    row, column = cuda.grid(2)
    ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // 16):
        sa[ty, tx] = a[row, tile * 16 + tx]
        sb[ty, tx] = b[tile * 16 + ty, column]
        cuda.syncthreads()
        for k in range(16):
            total += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    c[row, column] = total


rng = np.random.default_rng(1)
a, b = rng.random((64, 64), dtype=np.float32), rng.random((64, 64), dtype=np.float32)
c = np.zeros((64, 64), np.float32)
matmul[(4, 4), (16, 16)](a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@cuda.reduce
def total(left, right):
    return left + right


assert total(np.arange(10_000, dtype=np.int64)) == 49_995_000


@cuda.jit
def histogram(values, bins, largest, swapped):
    local = cuda.shared.array(32, int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x < 32:
        local[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    cuda.atomic.add(local, values[i] % 32, 1)
    cuda.atomic.max(largest, 0, values[i])
    cuda.atomic.cas(swapped, 0, -1, i)
    cuda.syncthreads()
    if cuda.threadIdx.x < 32:
        cuda.atomic.add(bins, cuda.threadIdx.x, local[cuda.threadIdx.x])


values = rng.integers(0, 1000, 4096, dtype=np.int32)
bins, largest, swapped = np.zeros(32, np.int32), np.zeros(1, np.int32), np.full(1, -1, np.int32)
histogram[16, 256](values, bins, largest, swapped)
np.testing.assert_array_equal(bins, np.bincount(values % 32, minlength=32))
assert largest[0] == values.max() and 0 <= swapped[0] < 4096


@cuda.jit(device=True)
def gauss(x, s):
    return math.exp(-x * x / (2 * s * s)) / (s * math.sqrt(2 * math.pi))


@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = gauss(x[i], 0.5) + math.sin(x[i]) * math.atan2(x[i], 2.0) + math.lgamma(x[i] + 1) + math.erf(x[i])
    out[i] = v + cuda.shfl_xor_sync(0xFFFFFFFF, lane, 1) + cuda.popc(cuda.ballot_sync(0xFFFFFFFF, lane % 2 == 0))


x = np.linspace(0.1, 3, 64)
out = np.zeros_like(x)
functions[2, 32](x, out)
host = [math.exp(-v * v / 0.5) / (0.5 * math.sqrt(2 * math.pi)) + math.sin(v) * math.atan2(v, 2) + math.lgamma(v + 1) + math.erf(v) for v in x]
np.testing.assert_allclose(out, np.array(host) + (np.arange(64) % 32 ^ 1) + 16, rtol=1e-12)


@vectorize(["float64(float64, float64)"], target="cuda")
def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


@guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->()", target="cuda")
def inner(a, b, out):
    out[0] = 0
    for i in range(a.shape[0]):
        out[0] += a[i] * b[i]


p, q = rng.random((50, 40)), rng.random((50, 40))
np.testing.assert_allclose(hypotenuse(p, q), np.hypot(p, q))
np.testing.assert_allclose(inner(p, q), (p * q).sum(axis=1))
