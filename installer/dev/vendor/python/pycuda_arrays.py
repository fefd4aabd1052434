"""gpuarray: arithmetic, reductions, scans and random numbers, all compiled by nvcc at run time."""

import numpy as np
import pycuda.autoinit  # noqa: F401
from pycuda import cumath, gpuarray
from pycuda.curandom import XORWOWRandomNumberGenerator
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import InclusiveScanKernel

rng = np.random.default_rng(1)
a = rng.random(10_000, dtype=np.float32)
b = rng.random(10_000, dtype=np.float32)
ga, gb = gpuarray.to_gpu(a), gpuarray.to_gpu(b)

np.testing.assert_allclose((2 * ga + gb / 3).get(), 2 * a + b / 3, rtol=1e-6)
np.testing.assert_allclose(cumath.exp(ga).get(), np.exp(a), rtol=1e-5)
np.testing.assert_allclose(gpuarray.sum(ga).get(), a.sum(), rtol=1e-4)
np.testing.assert_allclose(gpuarray.dot(ga, gb).get(), a @ b, rtol=1e-4)
assert gpuarray.max(ga).get() == a.max()
np.testing.assert_array_equal(ga[10:20].get(), a[10:20])
np.testing.assert_array_equal(gpuarray.arange(100, dtype=np.int32).get(), np.arange(100))
square = a[:9_900].reshape(99, 100)
np.testing.assert_array_equal(gpuarray.to_gpu(square).T.get(), square.T)

axpby = ElementwiseKernel("float a, float *x, float b, float *y, float *z", "z[i] = a * x[i] + b * y[i]", "axpby")
out = gpuarray.empty_like(ga)
axpby(5, ga, 6, gb, out)
np.testing.assert_allclose(out.get(), 5 * a + 6 * b, rtol=1e-5)

norm = ReductionKernel(np.float32, neutral="0", reduce_expr="a+b", map_expr="x[i]*x[i]", arguments="float *x")
np.testing.assert_allclose(norm(ga).get(), (a * a).sum(), rtol=1e-4)

numbers = rng.integers(0, 100, 10_000, dtype=np.int32)
scanned = gpuarray.to_gpu(numbers)
InclusiveScanKernel(np.int32, "a+b")(scanned)
np.testing.assert_array_equal(scanned.get(), numbers.cumsum())

uniform = XORWOWRandomNumberGenerator().gen_uniform(10_000, np.float32).get()
assert 0 < uniform.min() and uniform.max() <= 1 and abs(uniform.mean() - 0.5) < 0.02
