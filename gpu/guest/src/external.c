/* External memory (CUDA driver API, "External Resource Interoperability"). The only supported
 * descriptors are those that cuMemExportToShareableHandle gave another process. A buffer is a
 * separate mapping of the memory from its beginning on, which cuMemFree removes. External
 * semaphores are not supported: without Vulkan nothing here could create one. */
#include <stdlib.h>
#include <unistd.h>

#include "state.h"

enum { FILE_DESCRIPTOR = 1 /* CUmemAllocationHandleType */, READWRITE = 3 /* CUmemAccess_flags */ };

struct external {
	struct object o; /* KIND_EXTERNAL */
	CUmemGenericAllocationHandle memory;
	uint64_t size; /* as the program has given it */
};

/* A buffer; address is the one that the program received. */
static struct buffer {
	uint64_t address, base, size;
	struct buffer *next;
} *buffers; /* guarded by lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void external_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	buffers = NULL;
}

/* After a successful import, the descriptor belongs to the library. */
CUDA_API CUresult cuImportExternalMemory(CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
	const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d = memHandleDesc;
	struct external *e;
	int err;

	SESSION(s);
	(void)s;
	if (!extMem_out || !d || d->type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || d->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) /* a handle of another system */
		return CUDA_ERROR_NOT_SUPPORTED;
	if (d->size == 0 || d->flags & ~CUDA_EXTERNAL_MEMORY_DEDICATED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(e = object_new(sizeof *e, KIND_EXTERNAL, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	err = cuMemImportFromShareableHandle(&e->memory, (void *)(intptr_t)d->handle.fd, FILE_DESCRIPTOR);
	if (err) {
		object_put(e);
		return err == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_INVALID_HANDLE : err;
	}
	e->size = d->size;
	(void)close(d->handle.fd);
	*extMem_out = handle_of(e->o.id);
	object_add(e);
	return 0;
}

CUDA_API CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
{
	struct external *e;
	CUmemGenericAllocationHandle memory;

	SESSION(s);
	(void)s;
	if (!(e = object_get(extMem, KIND_EXTERNAL)))
		return CUDA_ERROR_INVALID_HANDLE;
	memory = e->memory;
	object_put(e);
	if (!object_remove((uintptr_t)extMem, KIND_EXTERNAL))
		return CUDA_ERROR_INVALID_HANDLE; /* another thread has destroyed it */
	return cuMemRelease(memory); /* buffers keep the memory */
}

static int map(struct buffer *b, CUmemGenericAllocationHandle memory)
{
	static const CUmemAccessDesc all = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, READWRITE};
	CUdeviceptr base;
	int err;

	TRY(cuMemAddressReserve(&base, b->size, 0, 0, 0));
	b->base = base;
	if ((err = cuMemMap(base, b->size, 0, memory, 0)) == 0 && (err = cuMemSetAccess(base, b->size, &all, 1)) != 0)
		(void)cuMemUnmap(base, b->size);
	if (err)
		(void)cuMemAddressFree(base, b->size);
	return err;
}

/* Maps the part of the memory that the buffer needs, and records the buffer. */
static int make_buffer(const struct external *e, uint64_t offset, uint64_t size, CUdeviceptr *out)
{
	struct buffer *b;
	int err;

	if (size == 0 || offset > e->size || size > e->size - offset || e->size > UINT64_MAX - BSLT_MAP_GRANULE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(b = calloc(1, sizeof *b)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->size = (offset + size + BSLT_MAP_GRANULE - 1) / BSLT_MAP_GRANULE * BSLT_MAP_GRANULE;
	if ((err = map(b, e->memory)) != 0) {
		free(b);
		return err;
	}
	b->address = b->base + offset;
	pthread_mutex_lock(&lock);
	b->next = buffers;
	buffers = b;
	pthread_mutex_unlock(&lock);
	*out = b->base + offset;
	return 0;
}

CUDA_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
	struct external *e;
	int err;

	SESSION(s);
	(void)s;
	if (!devPtr || !bufferDesc || bufferDesc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(e = object_get(extMem, KIND_EXTERNAL)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = make_buffer(e, bufferDesc->offset, bufferDesc->size, devPtr);
	object_put(e);
	return err;
}

int external_free(uint64_t address)
{
	struct buffer *b = NULL;
	int err;

	pthread_mutex_lock(&lock);
	for (struct buffer **at = &buffers; *at; at = &(*at)->next) {
		if ((*at)->address == address) {
			b = *at;
			*at = b->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	if ((err = cuMemUnmap(b->base, b->size)) == 0)
		err = cuMemAddressFree(b->base, b->size);
	free(b);
	return err;
}
