/* Looks up functions by name, and as NVIDIA's runtime does: by cuGetProcAddress_v2 with the
 * version and the flags of its list. Both must find the same function. */
#include <dlfcn.h>

#include "replay.h"

static struct request {
	char name[80], symbol[80];
	int version;
	unsigned int flags;
} requests[512];
static unsigned int count, next;
static enum lookup way;
static void *library;

void lookup_open(const char *path, enum lookup how)
{
	FILE *f = fopen(path, "r");
	char line[200];

	EXPECT(f);
	while (fgets(line, sizeof line, f)) {
		struct request *r = &requests[count];

		if (line[0] == '#')
			continue;
		EXPECT(count < sizeof requests / sizeof *requests);
		EXPECT(sscanf(line, "%79s %d %u %79s", r->name, &r->version, &r->flags, r->symbol) == 4);
		count++;
	}
	fclose(f);
	way = how;
	if (!(library = dlopen("libcuda.so.1", RTLD_NOW)))
		wrong("%s", dlerror());
}

void *exported(const char *symbol)
{
	void *p = library ? dlsym(library, symbol) : NULL;

	if (!p)
		wrong("the library does not have %s", symbol);
	return p;
}

static CUresult ask(const struct request *r, void **address)
{
	int query = -1;
	CUresult result = ((__typeof__(&cuGetProcAddress_v2))exported("cuGetProcAddress_v2"))(r->name, address, r->version, r->flags, &query);

	if (result == 0 && (query != 0 || *address != exported(r->symbol)))
		wrong("asked for %s, version %d, flags %u, cuGetProcAddress_v2 does not find %s (query result %d)", r->name, r->version,
		      r->flags, r->symbol, query);
	return result;
}

/* Finds the request whose answer is this symbol, or its form for per-thread streams. */
static const struct request *request_of(const char *symbol, bool per_thread)
{
	for (unsigned int i = 0; i < count; i++) {
		const char *tail = requests[i].symbol + strlen(symbol);

		if (strncmp(requests[i].symbol, symbol, strlen(symbol)) != 0 || per_thread != (requests[i].flags == 2))
			continue;
		if (per_thread ? strcmp(tail, "_ptsz") == 0 || strcmp(tail, "_ptds") == 0 : !*tail)
			return &requests[i];
	}
	return NULL;
}

void *lookup(const char *symbol)
{
	const struct request *r = way == BY_RUNTIME_PER_THREAD ? request_of(symbol, true) : NULL;
	void *address = NULL;

	if (!r && way != BY_NAME)
		r = request_of(symbol, false);
	if (!r) /* libraries look up by name what the runtime does not request */
		return exported(symbol);
	aside("cuGetProcAddress_v2", ask(r, &address));
	return address;
}

/* Makes the next request of a runtime's start. With several runtimes the list begins again. */
CUresult lookup_request(void)
{
	void *address = NULL;

	return ask(&requests[next++ % count], &address);
}
