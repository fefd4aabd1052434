"""What a device says of itself, and how a context comes and goes."""

import pycuda.driver as cuda

cuda.init()
assert cuda.Device.count() >= 1
device = cuda.Device(0)
assert device.name() and device.total_memory() > 0 and device.pci_bus_id()
attributes = device.get_attributes()
assert attributes[cuda.device_attribute.WARP_SIZE] == 32
assert attributes[cuda.device_attribute.MAX_THREADS_PER_BLOCK] >= 1024
assert cuda.get_driver_version() >= 12000

context = device.make_context()
assert cuda.Context.get_device() == device
free, total = cuda.mem_get_info()
assert 0 < free <= total
assert context.get_api_version() > 0
context.set_cache_config(cuda.func_cache.PREFER_L1)
context.pop()
context.push()
context.synchronize()
context.pop()
context.detach()

primary = device.retain_primary_context()
primary.push()
assert cuda.mem_get_info()[1] == total
primary.pop()
primary.detach()
