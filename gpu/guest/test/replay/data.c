/* Calls of memory and copies. */
#include "replay.h"

#define BYTES (sizeof(unsigned int) * WORDS)
#define PART 1000u /* words of a copy whose data is in the ring */

static unsigned int seed = 1;

/* Returns new words for a copy. They are not freed, because a copy may read them later. */
static unsigned int *fresh(unsigned int words)
{
	unsigned int *p = malloc(words * sizeof *p);

	EXPECT(p);
	for (unsigned int i = 0; i < words; i++)
		p[i] = seed = seed * 1664525u + 1013904223u;
	return p;
}

static struct pinned {
	unsigned int *words;
	bool used; /* a copy may be reading it */
} pinned[8];
static unsigned int pins;

static CUresult allocate(void)
{
	CUdeviceptr p = 0;
	CUresult r = CALL(cuMemAlloc_v2, &p, BYTES);

	EXPECT(p);
	buffer_new(p, DEVICE);
	return r;
}

static CUresult allocate_managed(void)
{
	CUdeviceptr p = 0;
	CUresult r = CALL(cuMemAllocManaged, &p, BYTES, 1);

	EXPECT(p);
	buffer_new(p, MANAGED);
	return r;
}

static CUresult allocate_async(void)
{
	CUdeviceptr p = 0;
	CUresult r = CALL(cuMemAllocAsync, &p, BYTES, stream_now());

	EXPECT(p);
	buffer_new(p, POOL);
	return r;
}

static CUresult free_async(void)
{
	struct buffer *b = buffer_of(POOL, 0);
	CUresult r = CALL(cuMemFreeAsync, b->at, stream_now());

	buffer_forget(b);
	return r;
}

/* With "null" it frees a null pointer, as the runtime does when it starts. */
static CUresult free_memory(void)
{
	if (strcmp(step.how, "null") == 0)
		return CALL(cuMemFree_v2, 0);
	struct buffer *b = buffer_of(DEVICE, 0);
	CUresult r = CALL(cuMemFree_v2, b->at);

	buffer_forget(b);
	return r;
}

static CUresult allocate_host(void)
{
	void *p = NULL;
	CUresult r = CALL(cuMemHostAlloc, &p, BYTES, 0);

	EXPECT(p && pins < sizeof pinned / sizeof *pinned);
	memset(p, 0x5a, BYTES);
	pinned[pins++] = (struct pinned){p, false};
	return r;
}

static CUresult free_host(void)
{
	EXPECT(pins > 0);
	return CALL(cuMemFreeHost, pinned[--pins].words);
}

static CUresult memory_info(void)
{
	size_t left = 0, total = 0;
	CUresult r = CALL(cuMemGetInfo_v2, &left, &total);

	EXPECT(total > 0 && left > 0 && left <= total);
	return r;
}

static unsigned int table_words[TABLE_WORDS] = {1, 2, 3, 4};
static CUdeviceptr table;

static void table_verify(void)
{
	unsigned int got[TABLE_WORDS];

	ASIDE(cuMemcpyDtoH_v2, got, table, sizeof got);
	compare("the global variable", got, table_words, TABLE_WORDS);
}

static CUresult global(void)
{
	CUdeviceptr p = 0;
	size_t size = 0;
	CUresult r = CALL(cuModuleGetGlobal_v2, &p, &size, module_now(), "table");

	EXPECT(p && size == sizeof table_words);
	table = p;
	table_verify();
	return r;
}

/* Copies to the whole next buffer or, with "global", to the module's variable. */
static CUresult to_device(void)
{
	if (strcmp(step.how, "global") == 0) {
		unsigned int *words = fresh(TABLE_WORDS);

		memcpy(table_words, words, sizeof table_words);
		CUresult r = CALL(cuMemcpyHtoD_v2, table, words, sizeof table_words);

		table_verify();
		return r;
	}
	struct buffer *b = buffer_of(DEVICE, step.nth);
	unsigned int *words = fresh(WORDS);

	memcpy(b->words, words, BYTES);
	written(b);
	return CALL(cuMemcpyHtoD_v2, b->at, words, BYTES);
}

/* Returns pinned memory that no copy is reading, or new memory. */
static unsigned int *source(void)
{
	unsigned int *words = fresh(WORDS);

	for (unsigned int i = 0; i < pins; i++)
		if (!pinned[i].used) {
			pinned[i].used = true;
			return memcpy(pinned[i].words, words, BYTES);
		}
	return words;
}

/* Every other copy is only of the beginning, if the rest of the buffer is known. */
static CUresult to_device_async(void)
{
	struct buffer *b = buffer_of(DEVICE, step.nth / 2);
	unsigned int words = step.nth % 2 && b->known ? PART : WORDS, *from = source();

	memcpy(b->words, from, words * sizeof *from);
	written(b);
	return CALL(cuMemcpyHtoDAsync_v2, b->at, from, words * sizeof *from, stream_now());
}

static CUresult to_host(void)
{
	static unsigned int got[WORDS];
	struct buffer *b = last_written();
	CUresult r = CALL(cuMemcpyDtoH_v2, got, b->at, BYTES);

	compare("a copy to host memory", got, b->words, WORDS);
	return r;
}

static CUresult to_host_async(void)
{
	struct buffer *b = last_written();
	CUstream s = stream_now();
	unsigned int *to = calloc(WORDS, sizeof *to);

	EXPECT(to);
	copy_pending(s, b, to);
	return CALL(cuMemcpyDtoHAsync_v2, to, b->at, BYTES, s);
}

static CUresult on_device_async(void)
{
	struct buffer *from = last_written(), *to = buffer_of(DEVICE, step.nth);

	if (from == to)
		to = buffer_of(DEVICE, step.nth + 1);
	memcpy(to->words, from->words, BYTES);
	written(to);
	return CALL(cuMemcpyDtoDAsync_v2, to->at, from->at, BYTES, stream_now());
}

/* Copies a box of 5 layers with 10 rows of 400 bytes, out of rows of 600. */
static CUresult box(void)
{
	struct buffer *b = buffer_of(DEVICE, 0);
	unsigned int *from = fresh(5 * 10 * 150);
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = 600, .srcHeight = 10,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b->at, .dstPitch = 400, .dstHeight = 10,
			      .WidthInBytes = 400, .Height = 10, .Depth = 5};

	for (unsigned int row = 0; row < 50; row++)
		memcpy(&b->words[row * 100], &from[row * 150], 400);
	return CALL(cuMemcpy3D_v2, &copy);
}

static CUresult set_bytes_async(void)
{
	struct buffer *b = buffer_of(DEVICE, step.nth);
	unsigned char byte = (unsigned char)(step.nth + 3);

	memset(b->words, byte, BYTES);
	written(b);
	return CALL(cuMemsetD8Async, b->at, byte, BYTES, stream_now());
}

enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };

static CUresult pointer_attribute(void)
{
	unsigned int type = 77;
	CUresult r = CALL(cuPointerGetAttribute, &type, MEMORY_TYPE, buffer_of(DEVICE, 0)->at + 4);

	EXPECT(type == CU_MEMORYTYPE_DEVICE);
	return r;
}

static CUresult pointer_attributes(void)
{
	CUpointer_attribute which[] = {MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL};
	unsigned int type = 77, managed = 77;
	int ordinal = 77;
	void *values[] = {&type, &managed, &ordinal};
	CUresult r = CALL(cuPointerGetAttributes, 3, which, values, buffer_of(DEVICE, 0)->at);

	EXPECT(type == CU_MEMORYTYPE_DEVICE && (managed & 0xff) == 0 && ordinal == 0);
	return r;
}

static CUarray array;

static CUresult array_create(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 16, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

	return CALL(cuArray3DCreate_v2, &array, &d);
}

static CUresult array_descriptor(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {0};
	CUresult r = CALL(cuArray3DGetDescriptor_v2, &d, array);

	EXPECT(d.Width == 16 && d.Height == 16 && d.Depth == 0 && d.NumChannels == 1);
	return r;
}

static CUresult texture_create(void)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
	CUDA_TEXTURE_DESC how = {0};
	CUtexObject texture = 0;

	return CALL(cuTexObjectCreate, &texture, &resource, &how, NULL);
}

const struct call data_calls[] = {
	{"cuMemAlloc_v2", allocate}, {"cuMemAllocManaged", allocate_managed}, {"cuMemAllocAsync", allocate_async},
	{"cuMemFreeAsync", free_async}, {"cuMemFree_v2", free_memory}, {"cuMemHostAlloc", allocate_host}, {"cuMemFreeHost", free_host},
	{"cuMemGetInfo_v2", memory_info}, {"cuModuleGetGlobal_v2", global}, {"cuMemcpyHtoD_v2", to_device},
	{"cuMemcpyHtoDAsync_v2", to_device_async}, {"cuMemcpyDtoH_v2", to_host}, {"cuMemcpyDtoHAsync_v2", to_host_async},
	{"cuMemcpyDtoDAsync_v2", on_device_async}, {"cuMemcpy3D_v2", box}, {"cuMemsetD8Async", set_bytes_async},
	{"cuPointerGetAttribute", pointer_attribute}, {"cuPointerGetAttributes", pointer_attributes}, {"cuArray3DCreate_v2", array_create},
	{"cuArray3DGetDescriptor_v2", array_descriptor}, {"cuTexObjectCreate", texture_create}, {NULL, NULL},
};
