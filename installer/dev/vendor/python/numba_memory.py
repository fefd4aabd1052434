"""Device, pinned, mapped and managed arrays, streams, events and contexts of numba."""

import numpy as np
from numba import cuda


@cuda.jit
def increment(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


x = np.arange(10_000, dtype=np.float64)
device = cuda.to_device(x)
increment[40, 256](device)
np.testing.assert_array_equal(device.copy_to_host(), x + 1)
np.testing.assert_array_equal(device[5:10].copy_to_host(), x[5:10] + 1)
device[:10] = 7
assert (device.copy_to_host()[:10] == 7).all() and device[3] == 7
other = cuda.device_array_like(device)
other.copy_to_device(device)
np.testing.assert_array_equal(other.copy_to_host(), device.copy_to_host())
matrix = cuda.to_device(np.arange(12.0).reshape(3, 4, order="C"))
np.testing.assert_array_equal(matrix[:, 1].copy_to_host(), [1, 5, 9])

pinned = cuda.pinned_array(10_000, np.float64)
pinned[:] = 0
stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
begin.record(stream)
device.copy_to_device(pinned, stream=stream)
increment[40, 256, stream](device)
device.copy_to_host(pinned, stream=stream)
end.record(stream)
end.synchronize()
assert (pinned == 1).all() and end.query() and begin.elapsed_time(end) >= 0

with cuda.pinned(x):
    with stream.auto_synchronize():
        device.copy_to_device(x, stream=stream)
        increment[40, 256, stream](device)
        device.copy_to_host(x, stream=stream)
np.testing.assert_array_equal(x, np.arange(10_000) + 1)

mapped = cuda.mapped_array(100, np.int32)
mapped[:] = 1
increment[1, 128](mapped)
cuda.synchronize()
assert (mapped == 2).all()

managed = cuda.managed_array(100, np.int32)
managed[:] = 2
increment[1, 128](managed)
cuda.synchronize()
assert (managed == 3).all()

waiting = cuda.stream()
end.wait(waiting)
called = []
waiting.add_callback(lambda stream, status, arg: called.append((status, arg)), "word")
waiting.synchronize()
assert called == [(0, "word")]

for default in (cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()):
    increment[40, 256, default](device)
    default.synchronize()

free, total = cuda.current_context().get_memory_info()
assert 0 < free <= total
with cuda.defer_cleanup():
    del other
cuda.close()
assert cuda.to_device(np.ones(3)).copy_to_host().sum() == 3
