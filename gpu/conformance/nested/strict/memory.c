/* Device memory and pinned host memory: allocations and their owners. */
#include <stdlib.h>
#include <string.h>

#include "strict.h"

struct piece {
	u address;
	size_t size;
	u context, module;
	bool host;
};
static struct piece *pieces;
static size_t count, room;

void memory_add(u address, size_t size, u context, u module, bool host)
{
	for (size_t i = 0; i < count; i++) {
		if (pieces[i].host != host || address >= pieces[i].address + pieces[i].size || pieces[i].address >= address + size)
			continue;
		if (module) /* an alias of a known variable */
			return;
		broken("libcuda", "memory at %#zx was given twice", address);
	}
	if (count == room)
		pieces = realloc(pieces, (room = room ? 2 * room : 64) * sizeof *pieces);
	pieces[count++] = (struct piece){address, size, context, module, host};
}

void memory_remove(const char *function, u address, bool host)
{
	for (size_t i = 0; i < count; i++)
		if (pieces[i].address == address && pieces[i].host == host && !pieces[i].module) {
			pieces[i] = pieces[--count];
			return;
		}
	broken(function, "%#zx is not the start of memory that was allocated and not freed", address);
}

void memory_check(const char *function, u address, size_t size, bool host)
{
	if (!host && mapped_check(function, address, size))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct piece *p = &pieces[i];

		if (p->host == host && address >= p->address && address - p->address < p->size) {
			if (size > p->size - (address - p->address))
				broken(function, "%zu bytes at %#zx pass the end of memory at %#zx, %zu bytes", size, address, p->address, p->size);
			if (!host && p->context != current)
				broken(function, "memory at %#zx is of context %#zx, and %#zx is current", address, p->context, current);
			return;
		}
	}
	broken(function, "%#zx is not in %s", address, host ? "pinned host memory" : "device memory");
}

void memory_drop(u context, u module)
{
	for (size_t i = 0; i < count;)
		if (pieces[i].context == context && (!module || pieces[i].module == module))
			pieces[i] = pieces[--count];
		else
			i++;
}
