/* Linear copies, and copies of the program's device variables. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

cudaError_t check_kind(enum cudaMemcpyKind kind)
{
	return kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection : cudaSuccess;
}

cudaError_t copy_plain(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, bool per_thread)
{
	CUdeviceptr d = device_address(dst), s = device_address(src);
	cudaError_t err = check_kind(kind);

	if (err || count == 0)
		return err;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return from_driver(per_thread ? call_cuMemcpyHtoD_v2_ptds(d, src, count) : call_cuMemcpyHtoD_v2(d, src, count));
	case cudaMemcpyDeviceToHost:
		return from_driver(per_thread ? call_cuMemcpyDtoH_v2_ptds(dst, s, count) : call_cuMemcpyDtoH_v2(dst, s, count));
	case cudaMemcpyDeviceToDevice:
		return from_driver(per_thread ? call_cuMemcpyDtoD_v2_ptds(d, s, count) : call_cuMemcpyDtoD_v2(d, s, count));
	default: return from_driver(per_thread ? call_cuMemcpy_ptds(d, s, count) : call_cuMemcpy(d, s, count));
	}
}

cudaError_t copy_async(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr d = device_address(dst), s = device_address(src);
	cudaError_t err = check_kind(kind);

	if (err || count == 0)
		return err;
	switch (kind) {
	case cudaMemcpyHostToDevice: return from_driver(call_cuMemcpyHtoDAsync_v2(d, src, count, stream));
	case cudaMemcpyDeviceToHost: return from_driver(call_cuMemcpyDtoHAsync_v2(dst, s, count, stream));
	case cudaMemcpyDeviceToDevice: return from_driver(call_cuMemcpyDtoDAsync_v2(d, s, count, stream));
	default: return from_driver(call_cuMemcpyAsync(d, s, count, stream));
	}
}

cudaError_t own_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, bool per_thread)
{
	return copy_plain(dst, src, count, kind, per_thread);
}

cudaError_t own_cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_async(dst, src, count, kind, stream);
}

/* Returns the address of a copy in a variable. It is an error if the copy does not fit. */
static cudaError_t variable_place(const void *symbol, size_t count, size_t offset, void **place)
{
	CUdeviceptr p;
	size_t size;
	cudaError_t err = symbol_variable(symbol, &p, &size);

	if (err)
		return err;
	if (offset > size || count > size - offset)
		return cudaErrorInvalidValue;
	*place = (void *)(uintptr_t)(p + offset);
	return cudaSuccess;
}

static bool to_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static bool from_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t own_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
				   bool per_thread)
{
	void *place;
	cudaError_t err = to_device(kind) ? variable_place(symbol, count, offset, &place) : cudaErrorInvalidMemcpyDirection;

	return err ? err : copy_plain(place, src, count, kind, per_thread);
}

cudaError_t own_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
					enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *place;
	cudaError_t err = to_device(kind) ? variable_place(symbol, count, offset, &place) : cudaErrorInvalidMemcpyDirection;

	return err ? err : copy_async(place, src, count, kind, stream);
}

cudaError_t own_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
				     bool per_thread)
{
	void *place;
	cudaError_t err = from_device(kind) ? variable_place(symbol, count, offset, &place) : cudaErrorInvalidMemcpyDirection;

	return err ? err : copy_plain(dst, place, count, kind, per_thread);
}

cudaError_t own_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
					  cudaStream_t stream)
{
	void *place;
	cudaError_t err = from_device(kind) ? variable_place(symbol, count, offset, &place) : cudaErrorInvalidMemcpyDirection;

	return err ? err : copy_async(dst, place, count, kind, stream);
}

cudaError_t own_cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
	CUdeviceptr p;
	size_t size;
	cudaError_t err = devPtr ? symbol_variable(symbol, &p, &size) : cudaErrorInvalidValue;

	if (!err)
		*devPtr = (void *)(uintptr_t)p;
	return err;
}

cudaError_t own_cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr p;

	return size ? symbol_variable(symbol, &p, size) : cudaErrorInvalidValue;
}

/* Returns the primary contexts of two devices. Each device has one context, so that a copy within
 * one device needs no peer call. */
static cudaError_t peer_contexts(int dst_device, int src_device, void **dst, void **src)
{
	cudaError_t err = from_driver(call_cuDevicePrimaryCtxRetain(dst, dst_device));

	if (err)
		return err;
	(void)call_cuDevicePrimaryCtxRelease_v2(dst_device);
	if ((err = from_driver(call_cuDevicePrimaryCtxRetain(src, src_device))) == 0)
		(void)call_cuDevicePrimaryCtxRelease_v2(src_device);
	return err;
}

cudaError_t own_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count, bool per_thread)
{
	void *d, *s;
	cudaError_t err;

	if (dstDevice == srcDevice)
		return copy_plain(dst, src, count, cudaMemcpyDeviceToDevice, per_thread);
	if ((err = peer_contexts(dstDevice, srcDevice, &d, &s)) != 0)
		return err;
	return from_driver(call_cuMemcpyPeer(device_address(dst), d, device_address(src), s, count));
}

cudaError_t own_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
	void *d, *s;
	cudaError_t err;

	if (dstDevice == srcDevice)
		return copy_async(dst, src, count, cudaMemcpyDeviceToDevice, stream);
	if ((err = peer_contexts(dstDevice, srcDevice, &d, &s)) != 0)
		return err;
	return from_driver(call_cuMemcpyPeerAsync(device_address(dst), d, device_address(src), s, count, stream));
}

static struct cudaMemcpy3DParms peer_parms(const struct cudaMemcpy3DPeerParms *p)
{
	return (struct cudaMemcpy3DParms){p->srcArray, p->srcPos, p->srcPtr, p->dstArray, p->dstPos, p->dstPtr, p->extent,
					  cudaMemcpyDeviceToDevice};
}

static cudaError_t peer_box(const struct cudaMemcpy3DPeerParms *p, struct driver_box *b)
{
	struct cudaMemcpy3DParms plain = peer_parms(p);
	void *d, *s;
	cudaError_t err;

	if ((err = peer_contexts(p->dstDevice, p->srcDevice, &d, &s)) != 0 || (err = driver_box(&plain, b)) != 0)
		return err;
	b->dst.context = d;
	b->src.context = s;
	return cudaSuccess;
}

cudaError_t own_cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p, bool per_thread)
{
	struct cudaMemcpy3DParms plain;
	struct driver_box b;
	cudaError_t err;

	if (!p)
		return cudaErrorInvalidValue;
	if (p->srcDevice == p->dstDevice) {
		plain = peer_parms(p);
		return own_cudaMemcpy3D(&plain, per_thread);
	}
	err = peer_box(p, &b); /* the driver orders copies between devices with the work of both */
	return err ? err : from_driver(call_cuMemcpy3DPeer(&b));
}

cudaError_t own_cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	struct cudaMemcpy3DParms plain;
	struct driver_box b;
	cudaError_t err;

	if (!p)
		return cudaErrorInvalidValue;
	if (p->srcDevice == p->dstDevice) {
		plain = peer_parms(p);
		return own_cudaMemcpy3DAsync(&plain, stream);
	}
	err = peer_box(p, &b);
	return err ? err : from_driver(call_cuMemcpy3DPeerAsync(&b, stream));
}
