/* cuGetExportTable: the tables of unnamed functions that NVIDIA's runtime library requests.
 * Their content is known from public projects (ZLUDA, lupine), and from the runtime's
 * behavior if a slot is missing.
 *
 * A table begins with its size in bytes, except for the one of context storage. Unknown slots
 * contain a function that returns an error, so that programs do not jump to NULL. The table by
 * which the library checks whether the driver is NVIDIA's is in interop.c. */
#include <stdlib.h>
#include <string.h>

#include "context_storage.h"
#include "interop.h"
#include "log.h"
#include "state.h"

typedef void (*slot)(void);
#define SLOT(f) ((slot)(f))

static CUresult unknown(unsigned int slot)
{
	log_message(CU_LOG_LEVEL_ERROR, "cuGetExportTable", "slot %u of a table was called, and what it does is not known", slot);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* One function for each number of a slot, so that the log shows the number. */
#define ONE(n) static CUresult unknown_##n(void) { return unknown(n); }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)
#undef ONE
#undef TEN
#define TEN(n) SLOT(unknown_##n##0), SLOT(unknown_##n##1), SLOT(unknown_##n##2), SLOT(unknown_##n##3), SLOT(unknown_##n##4), \
	SLOT(unknown_##n##5), SLOT(unknown_##n##6), SLOT(unknown_##n##7), SLOT(unknown_##n##8), SLOT(unknown_##n##9)
static const slot unknowns[100] = {TEN(), TEN(1), TEN(2), TEN(3), TEN(4), TEN(5), TEN(6), TEN(7), TEN(8), TEN(9)};
#undef TEN

static CUresult retain_primary(CUcontext *ctx, CUdevice dev)
{
	return cuDevicePrimaryCtxRetain(ctx, dev);
}

static CUresult module_of_wrapper(CUmodule *module, const void *wrapper)
{
	return cuModuleLoadData(module, wrapper);
}

/* Options and the names of other files are refused, because their meaning is unknown. */
static CUresult module_with_options(CUmodule *module, const void *wrapper, void *options, void *values, unsigned int count)
{
	return options || values || count ? CUDA_ERROR_NOT_SUPPORTED : cuModuleLoadData(module, wrapper);
}

static CUresult module_of_fatbin(const void *fatbin, CUmodule *module, void *options, void *values, unsigned int count)
{
	return options || values || count ? CUDA_ERROR_NOT_SUPPORTED : cuModuleLoadData(module, fatbin);
}

static void nothing(void *unused)
{
	(void)unused;
}

/* Returns a buffer in which the runtime stores hooks of its tools. This library calls none. */
static void hooks(void **buffer, size_t *size)
{
	static unsigned char room[4096];

	*buffer = room;
	*size = sizeof room;
}

static void marks(void **buffer, size_t *size)
{
	static unsigned char room[14];

	*buffer = room;
	*size = sizeof room;
}

static CUresult tools_current(CUcontext *ctx)
{
	return cuCtxGetCurrent(ctx);
}

static CUresult tools_context_id(CUcontext ctx, unsigned long long *id)
{
	return cuCtxGetId(ctx, id);
}

/* Resolves a stream handle of the program: handles of default streams are replaced by the
 * stream that they stand for. */
static CUresult tools_stream(CUcontext ctx, CUstream stream, CUstream *inner, int per_thread)
{
	unsigned long long id;

	(void)ctx;
	if (!inner)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream)
		stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	TRY(cuStreamGetId(stream, &id));
	*inner = stream;
	return 0;
}

static CUresult tools_stream_id(CUcontext ctx, CUstream inner, unsigned long long *id)
{
	(void)ctx;
	return inner ? cuStreamGetId(inner, id) : CUDA_ERROR_INVALID_VALUE;
}

/* Reports that the context may be used, for every context. */
static CUresult context_check(CUcontext ctx, unsigned int *flags, const void **why)
{
	(void)ctx;
	if (flags)
		*flags = 0;
	if (why)
		*why = NULL;
	return 0;
}

static unsigned int no_checks(void)
{
	return 0;
}

/* Calls tell for every kernel of a module, with the caller's data as the first argument, as
 * cuFFT expects: it stores the kernel there, and continues only if this function returns 1. */
static int tools_module_each(CUcontext ctx, CUmodule module, void (*tell)(void *, CUfunction), void *data)
{
	unsigned int count;
	CUfunction *all;
	bool known;

	(void)ctx;
	if (!tell || cuModuleGetFunctionCount(&count, module) != 0 || !(all = calloc(count + 1, sizeof *all)))
		return 0;
	known = cuModuleEnumerateFunctions(all, count, module) == 0;
	for (unsigned int i = 0; known && i < count; i++)
		tell(data, all[i]);
	free(all);
	return known;
}

/* A table whose first slot is its size in bytes. Slots that are not initialized here are set
 * when the table is first requested. */
static slot cudart_interface[13] = {
	[1] = SLOT(module_of_wrapper), [2] = SLOT(retain_primary), [6] = SLOT(module_with_options), [7] = SLOT(nothing),
	[8] = SLOT(module_of_fatbin),
};
static slot callback_hooks[7] = {[2] = SLOT(hooks), [6] = SLOT(marks)};
static slot tools_tls[3] = {[2] = SLOT(tools_current)};
static slot context_checks[5] = {[2] = SLOT(context_check), [3] = SLOT(no_checks)};
static slot tools_context[86] = {[4] = SLOT(tools_context_id), [39] = SLOT(tools_stream_id), [51] = SLOT(tools_stream)};
static slot tools_module[92] = {[7] = SLOT(tools_module_each)};
static slot context_storage[4] = {SLOT(context_storage_put), SLOT(context_storage_delete), SLOT(context_storage_get)};

static const struct {
	unsigned char id[16];
	slot *slots;
	size_t bytes;
	bool sized;
} tables[] = {
#define TABLE(slots, sized, ...) {{__VA_ARGS__}, slots, sizeof(slots), sized}
	TABLE(cudart_interface, true, 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9),
	TABLE(callback_hooks, true, 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66),
	TABLE(tools_tls, true, 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc),
	TABLE(context_storage, false, 0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93),
	TABLE(context_checks, true, 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e),
	TABLE(tools_context, true, 0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2),
	TABLE(tools_module, true, 0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e),
};

static void complete(void)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
		size_t n = tables[t].bytes / sizeof(slot);

		for (size_t i = tables[t].sized; i < n; i++)
			if (!tables[t].slots[i])
				tables[t].slots[i] = unknowns[i];
		if (tables[t].sized)
			memcpy(&tables[t].slots[0], &tables[t].bytes, sizeof(slot));
	}
}

CUDA_API CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	static const unsigned char authenticity[16] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
						       0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, complete);
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		if (memcmp(tables[t].id, pExportTableId->bytes, sizeof tables[t].id) == 0) {
			*ppExportTable = tables[t].slots;
			return 0;
		}
	if (memcmp(authenticity, pExportTableId->bytes, sizeof authenticity) == 0 && (*ppExportTable = interop_table(cudart_interface)))
		return 0;
	return CUDA_ERROR_NOT_FOUND;
}
