/* cuGetProcAddress. */
#include <string.h>

#include "proc.h"
#include "state.h"

#define FLAG_LEGACY 1 /* CU_GET_PROC_ADDRESS_LEGACY_STREAM */
#define FLAG_PER_THREAD 2
enum { QUERY_SUCCESS = 0, QUERY_SYMBOL_NOT_FOUND = 1, QUERY_VERSION_NOT_SUFFICIENT = 2 };

static void (*lookup(const char *symbol, int version, bool per_thread, int *query))(void)
{
	void (*f)(void) = NULL;
	unsigned int lo = 0, hi = proc_count;
	bool known = false, reached = false;

	while (lo < hi) { /* find the first entry of that name */
		unsigned int mid = lo + (hi - lo) / 2;

		if (strcmp(procs[mid].name, symbol) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < proc_count && strcmp(procs[lo].name, symbol) == 0; lo++) {
		if (procs[lo].per_thread != per_thread)
			continue;
		known = true;
		if (procs[lo].version * 10 <= version) {
			reached = true;
			f = procs[lo].function;
		}
	}
	*query = f ? QUERY_SUCCESS : known && !reached ? QUERY_VERSION_NOT_SUFFICIENT : QUERY_SYMBOL_NOT_FOUND;
	return f;
}

CUDA_API CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, uint64_t flags, int *symbolStatus)
{
	void (*f)(void);
	int query;

	if (!symbol || !pfn || flags > FLAG_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	f = lookup(symbol, cudaVersion, flags == FLAG_PER_THREAD, &query);
	memcpy(pfn, &f, sizeof f);
	if (symbolStatus)
		*symbolStatus = query;
	return 0;
}

/* The older form reports an unknown symbol by its result, and does not change the pointer. */
CUDA_API CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, uint64_t flags)
{
	void (*f)(void);
	int query;

	if (!symbol || !pfn || flags > FLAG_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	f = lookup(symbol, cudaVersion, flags == FLAG_PER_THREAD, &query);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	memcpy(pfn, &f, sizeof f);
	return 0;
}
