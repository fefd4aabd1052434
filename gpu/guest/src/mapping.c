/* Virtual memory management: addresses that the program reserves, memory without an address,
 * and its mappings. The worker checks all calls. Mappings are recorded in ranges, so that
 * pointer queries and copies work as for other memory.
 *
 * Memory belongs to the context that is current when it is created, or to another one if there
 * is none (context_of_memory), and is mapped for the work of that context. It is freed with its
 * context; CUDA's is not, so the program may still unmap and release it afterwards. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { ATTRIBUTE_VIRTUAL_MEMORY = 102, ATTRIBUTE_DESCRIPTORS = 103, FILE_DESCRIPTOR = 1 /* CUmemAllocationHandleType */, PROT_RIGHTS_NONE = 0, PROT_RIGHTS_READ = 1, PROT_RIGHTS_READWRITE = 3 };

/* Held during calls of the worker, so that its answers are recorded in its order. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* acquired after asking, and held for a short time */

/* Memory. It exists as long as the program has its handle or it is mapped. */
struct memory {
	struct object o;
	CUmemAllocationProp prop;
	unsigned int held;   /* references of the program; 0: the handle is invalid. Guarded by asking */
	unsigned int mapped; /* number of mappings. Guarded by asking */
};

static struct reservation {
	uint64_t address, size;
} *reserved; /* sorted by address; guarded by lock */
static size_t reserved_count, reserved_room;

/* Mappings, and handles with references of the program, whose memory was freed with its
 * context. */
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER; /* no other lock is acquired with it */
static struct ended {
	uint64_t at;   /* an address, or a handle */
	uint64_t size; /* bytes, or references */
} *ended;	       /* guarded by ended_lock; addresses are larger than handles */
static size_t ended_count, ended_room;

static void ended_add(uint64_t at, uint64_t size)
{
	pthread_mutex_lock(&ended_lock);
	if (ended_count == ended_room) {
		size_t room = ended_room ? ended_room * 2 : 16;
		struct ended *e = realloc(ended, room * sizeof *e);

		if (e) {
			ended = e;
			ended_room = room;
		}
	}
	if (ended_count < ended_room) /* without memory the program gets an error later */
		ended[ended_count++] = (struct ended){at, size};
	pthread_mutex_unlock(&ended_lock);
}

/* Returns the entry at an address or handle, or NULL. The caller holds ended_lock. */
static struct ended *ended_find(uint64_t at)
{
	for (size_t i = 0; i < ended_count; i++)
		if (ended[i].at == at)
			return &ended[i];
	return NULL;
}

/* Removes the mappings that begin in a range. */
static void ended_forget(uint64_t address, uint64_t size)
{
	pthread_mutex_lock(&ended_lock);
	for (size_t i = ended_count; i-- > 0;)
		if (ended[i].at - address < size)
			ended[i] = ended[--ended_count];
	pthread_mutex_unlock(&ended_lock);
}

/* Unmaps a range that consists of such mappings. Returns false if it does not. */
static bool ended_unmap(uint64_t address, uint64_t size)
{
	uint64_t at = address;
	const struct ended *e;

	if (size == 0)
		return false;
	pthread_mutex_lock(&ended_lock);
	while (at - address < size && (e = ended_find(at)) != NULL)
		at += e->size;
	pthread_mutex_unlock(&ended_lock);
	if (at - address != size)
		return false;
	ended_forget(address, size);
	return true;
}

/* Gives up a reference of such a handle. Returns false if there is none. */
static bool ended_release(uint64_t handle)
{
	struct ended *e;

	pthread_mutex_lock(&ended_lock);
	if ((e = ended_find(handle)) != NULL && --e->size == 0)
		*e = ended[--ended_count];
	pthread_mutex_unlock(&ended_lock);
	return e != NULL;
}

void mapping_ended(const struct range *r)
{
	if (r->memory)
		ended_add(r->address, r->size);
}

/* Called when nothing refers to the object any more: its context may be destroyed. */
static void memory_gone(struct object *o)
{
	const struct memory *m = (struct memory *)o;

	if (m->held)
		ended_add(m->o.id, m->held);
}

void mappings_abandon(void)
{
	pthread_mutex_init(&ended_lock, NULL);
	ended = NULL;
	ended_count = ended_room = 0;

	pthread_mutex_init(&asking, NULL);
	pthread_mutex_init(&lock, NULL);
	reserved = NULL;
	reserved_count = reserved_room = 0;
}

static int supported(void)
{
	return device_attribute(ATTRIBUTE_VIRTUAL_MEMORY) ? 0 : CUDA_ERROR_NOT_SUPPORTED;
}

/* Returns the index of the first reservation above address. The caller holds lock. */
static size_t above(uint64_t address)
{
	size_t i = reserved_count;

	while (i > 0 && reserved[i - 1].address > address)
		i--;
	return i;
}

static int note_reserved(uint64_t address, uint64_t size)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (reserved_count == reserved_room) {
		size_t room = reserved_room ? reserved_room * 2 : 16;
		struct reservation *r = realloc(reserved, room * sizeof *r);

		if (r) {
			reserved = r;
			reserved_room = room;
		} else {
			err = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!err) {
		size_t i = above(address);

		memmove(reserved + i + 1, reserved + i, (reserved_count - i) * sizeof *reserved);
		reserved[i] = (struct reservation){address, size};
		reserved_count++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void forget_reserved(uint64_t address)
{
	size_t i;

	pthread_mutex_lock(&lock);
	if ((i = above(address)) > 0) {
		memmove(reserved + i - 1, reserved + i, (reserved_count - i) * sizeof *reserved);
		reserved_count--;
	}
	pthread_mutex_unlock(&lock);
}

bool reservation_find(uint64_t address, uint64_t *base, uint64_t *size)
{
	bool found = false;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(address);
	if (i > 0 && address - reserved[i - 1].address < reserved[i - 1].size) {
		*base = reserved[i - 1].address;
		*size = reserved[i - 1].size;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* A requested address outside of the window is used if its pages are free in this process and
 * in the worker; this process reserves them first, because the program must not have memory
 * there. Otherwise, as the API allows, the addresses are others. */
static int reserve(struct session *s, CUdeviceptr *ptr, struct bslt_mem_reserve *a)
{
	bool outside = a->wish && a->wish % BSLT_MAP_GRANULE == 0 && a->size % BSLT_MAP_GRANULE == 0 && outside_reserve(a->wish, a->size);
	struct answer r;

	if (!outside && !in_window(a->wish, 1))
		a->wish = 0;
	r = call(s, BSLT_OP_MEM_RESERVE, a, sizeof *a);
	if (outside && (r.result || r.value0 != a->wish))
		outside_release(a->wish);
	TRY(r.result);
	if (note_reserved(r.value0, a->size) != 0) {
		struct bslt_mem_unreserve back = {r.value0, a->size};

		(void)call(s, BSLT_OP_MEM_UNRESERVE, &back, sizeof back);
		if (!in_window(r.value0, 1))
			outside_release(r.value0);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = r.value0;
	return 0;
}

CUDA_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	struct bslt_mem_reserve a = {size, alignment, addr};
	int err;

	SESSION(s);
	TRY(supported());
	if (!ptr || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&asking);
	err = reserve(s, ptr, &a);
	pthread_mutex_unlock(&asking);
	return err;
}

CUDA_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct bslt_mem_unreserve a = {ptr, size};
	int err;

	SESSION(s);
	TRY(supported());
	pthread_mutex_lock(&asking);
	if ((err = call(s, BSLT_OP_MEM_UNRESERVE, &a, sizeof a).result) == 0) {
		forget_reserved(ptr);
		ended_forget(ptr, size);
		if (!in_window(ptr, 1))
			outside_release(ptr);
	}
	pthread_mutex_unlock(&asking);
	return err;
}

/* Checks a location of memory or access: it must be the program's one device. */
static int location_check(const CUmemLocation *l)
{
	switch (l->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: return l->id == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Checks the properties of memory. Compression is optional and is not provided, which the
 * memory's properties report. Memory for network adapters or sparse arrays is not supported.
 * Memory with a handle for other processes (a file descriptor) is always accepted, because
 * programs request it that never export it: PyTorch does so without reading the attribute. */
static int prop_check(const CUmemAllocationProp *p)
{
	if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->allocFlags.compressionType > 1)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(location_check(&p->location));
	return p->requestedHandleTypes & ~FILE_DESCRIPTOR || p->allocFlags.gpuDirectRDMACapable || p->allocFlags.usage ? CUDA_ERROR_NOT_SUPPORTED : 0;
}

/* Works on every device for which the library reports virtual memory management. */
CUDA_API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	SESSION(s);
	(void)s;
	TRY(supported());
	if (!granularity || !prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || option < 0 || option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(location_check(&prop->location));
	*granularity = BSLT_MAP_GRANULE;
	return 0;
}

/* Creates the object for memory of the worker, with the properties that the program can
 * query. */
static struct memory *memory_new(uint64_t id, uint64_t context, int handle_types)
{
	struct memory *m = object_new(sizeof *m, KIND_MEMORY, id, context);

	if (m) {
		m->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = handle_types, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
		m->held = 1;
		m->o.destroy = memory_gone;
	}
	return m;
}

CUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct bslt_mem_create a = {.size = size};
	struct memory *m;
	int err;

	SESSION(s);
	TRY(supported());
	if (!handle || !prop || flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(prop_check(prop));
	TRY(context_of_memory(&a.ctx));
	a.memory = object_ids(1);
	if (!(m = memory_new(a.memory, a.ctx, prop->requestedHandleTypes)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = call(s, BSLT_OP_MEM_CREATE, &a, sizeof a).result) != 0) {
		m->held = 0;
		object_put(m);
		return err;
	}
	object_add(m);
	*handle = a.memory;
	return 0;
}

/* Returns the memory of a program's handle, or NULL. The caller holds asking. */
static struct memory *held(CUmemGenericAllocationHandle handle)
{
	struct memory *m = object_get(handle_of(handle), KIND_MEMORY);

	if (m && m->held)
		return m;
	object_put(m);
	return NULL;
}

/* Frees memory without handles and mappings. The caller holds asking. */
static int destroy_unused(struct session *s, const struct memory *m)
{
	struct bslt_mem_destroy a = {m->o.id};

	if (m->held || m->mapped || !object_remove(m->o.id, KIND_MEMORY))
		return 0;
	return call(s, BSLT_OP_MEM_DESTROY, &a, sizeof a).result;
}

CUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct memory *m;
	int err = CUDA_ERROR_INVALID_VALUE;

	SESSION(s);
	TRY(supported());
	pthread_mutex_lock(&asking);
	if ((m = held(handle)) != NULL) {
		m->held--;
		err = destroy_unused(s, m);
		object_put(m);
	} else if (ended_release(handle)) {
		err = 0;
	}
	pthread_mutex_unlock(&asking);
	return err;
}

CUDA_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct range r;
	struct memory *m = NULL;

	SESSION(s);
	(void)s;
	TRY(supported());
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&asking);
	if (range_find(SPACE_DEVICE, (uintptr_t)addr, &r) && r.memory)
		m = object_get(handle_of(r.memory), KIND_MEMORY);
	if (m) {
		m->held++;
		*handle = r.memory;
		object_put(m);
	}
	pthread_mutex_unlock(&asking);
	return m ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct memory *m;

	SESSION(s);
	(void)s;
	TRY(supported());
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&asking);
	if ((m = held(handle)) != NULL)
		*prop = m->prop;
	object_put(m);
	pthread_mutex_unlock(&asking);
	return m ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static int unmap(struct session *s, uint64_t address, uint64_t size)
{
	struct bslt_mem_unmap a = {address, size};

	return call(s, BSLT_OP_MEM_UNMAP, &a, sizeof a).result;
}

/* Maps memory and records the range. The caller holds asking. */
static int map(struct session *s, struct memory *m, uint64_t address, uint64_t size)
{
	struct range r = {.address = address, .size = size, .context = m->o.context, .memory = m->o.id};
	struct bslt_mem_map a = {m->o.id, address, size};

	TRY(call(s, BSLT_OP_MEM_MAP, &a, sizeof a).result);
	if (range_add(SPACE_DEVICE, &r) != 0) {
		(void)unmap(s, address, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ended_forget(address, size);
	m->mapped++;
	return 0;
}

/* The offset into the memory must be 0, as the API's documentation requires. */
CUDA_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct memory *m;
	int err = CUDA_ERROR_INVALID_VALUE;

	SESSION(s);
	TRY(supported());
	if (offset || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&asking);
	if ((m = held(handle)) != NULL)
		err = map(s, m, ptr, size);
	object_put(m);
	pthread_mutex_unlock(&asking);
	return err;
}

/* Removes the ranges that the worker has unmapped. The caller holds asking. */
static int forget(struct session *s, uint64_t address, uint64_t size)
{
	struct range r;
	int err = 0;

	for (uint64_t at = address; at - address < size && range_take(SPACE_DEVICE, at, &r); at += r.size) {
		struct memory *m = object_get(handle_of(r.memory), KIND_MEMORY);

		if (!m)
			continue; /* its context was destroyed in the meantime */
		m->mapped--;
		if (err == 0)
			err = destroy_unused(s, m);
		object_put(m);
	}
	return err;
}

CUDA_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	int err;

	SESSION(s);
	TRY(supported());
	pthread_mutex_lock(&asking);
	if (ended_unmap(ptr, size))
		err = 0;
	else if ((err = unmap(s, ptr, size)) == 0)
		err = forget(s, ptr, size);
	pthread_mutex_unlock(&asking);
	return err;
}

CUDA_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct bslt_mem_access a = {.address = ptr, .size = size};
	int err;

	SESSION(s);
	TRY(supported());
	if (!desc || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		TRY(location_check(&desc[i].location));
		if (desc[i].flags != PROT_RIGHTS_NONE && desc[i].flags != PROT_RIGHTS_READ && desc[i].flags != PROT_RIGHTS_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		a.access = (uint32_t)desc[i].flags;
	}
	pthread_mutex_lock(&asking);
	if ((err = call(s, BSLT_OP_MEM_ACCESS, &a, sizeof a).result) == 0)
		ranges_access(ptr, size, a.access);
	pthread_mutex_unlock(&asking);
	return err;
}

CUDA_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct range r;

	SESSION(s);
	(void)s;
	TRY(supported());
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(location_check(location));
	if (!range_find(SPACE_DEVICE, ptr, &r) || !r.memory)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = r.access;
	return 0;
}

/* The descriptor is that of a file that contains the token. A program passes it on like a
 * descriptor of NVIDIA's driver; gpud has the descriptor of the memory itself. */
CUDA_API CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};
	struct memory *m;

	SESSION(s);
	if (!device_attribute(ATTRIBUTE_DESCRIPTORS))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!shareableHandle || flags || handleType != FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&asking);
	if ((m = held(handle)) != NULL && m->prop.requestedHandleTypes & FILE_DESCRIPTOR) {
		struct bslt_mem_export args = {m->o.id};

		a = call(s, BSLT_OP_MEM_EXPORT, &args, sizeof args);
	}
	object_put(m);
	pthread_mutex_unlock(&asking);
	return a.result ? a.result : token_file(&a, TOKEN_MAPPED, shareableHandle);
}

CUDA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle, CUmemAllocationHandleType shHandleType)
{
	struct bslt_mem_import args = {0};
	struct memory *m;
	int err;

	SESSION(s);
	if (!device_attribute(ATTRIBUTE_DESCRIPTORS))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!handle || shHandleType != FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_of_memory(&args.ctx));
	TRY(token_read((int)(intptr_t)osHandle, TOKEN_MAPPED, &args.token0, &args.token1));
	args.memory = object_ids(1);
	if (!(m = memory_new(args.memory, args.ctx, FILE_DESCRIPTOR)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = call(s, BSLT_OP_MEM_IMPORT, &args, sizeof args).result) != 0) {
		m->held = 0;
		object_put(m);
		return err;
	}
	object_add(m);
	*handle = args.memory;
	return 0;
}
