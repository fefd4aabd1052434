/* Sorted tables of device and pinned host memory. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define PAGE 4096ull

static struct table {
	struct range *r; /* sorted by address, without overlaps */
	size_t n, room;
} tables[2]; /* guarded by lock */

/* Device addresses outside of the window are exceptions: variables of modules on a physical
 * GPU, whose address NVIDIA's driver chooses, all memory of a GPU without virtual memory
 * management, or addresses that the program requested (cuMemAddressReserve). For each of them
 * this process reserves the pages, so that the program cannot have memory there. They stay
 * reserved, because a GPU uses the same addresses again, except those that were requested. */
static struct window window, host;   /* written before the session exists */
static _Atomic bool strays;          /* there are device addresses outside of the window */
static struct table outside = {0};   /* pages reserved for them; guarded by lock */

void ranges_window(const struct window *w, const struct window *host_part)
{
	window = *w;
	host = *host_part;
}

bool in_window(uint64_t address, uint64_t n)
{
	return address < window.base + window.size && (address >= window.base || n > window.base - address);
}

/* Reports whether memory of a space can be at an address. */
static bool address_possible(enum space space, uint64_t address)
{
	bool ours = address - window.base < window.size, shared = address - host.base < host.size;

	if (space == SPACE_HOST)
		return !ours || shared;
	return ours ? !shared : atomic_load_explicit(&strays, memory_order_relaxed);
}

/* Returns the index of the first range that starts above address. */
static size_t above(const struct table *t, uint64_t address)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->r[mid].address <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Inserts a range. It is an error if it overlaps another. */
static int insert(struct table *t, const struct range *r)
{
	size_t i = above(t, r->address);

	if (i < t->n && t->r[i].address - r->address < r->size)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (i > 0 && r->address - t->r[i - 1].address < t->r[i - 1].size)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		struct range *p = realloc(t->r, room * sizeof *p);

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		t->r = p;
		t->room = room;
	}
	memmove(t->r + i + 1, t->r + i, (t->n - i) * sizeof *t->r);
	t->r[i] = *r;
	t->n++;
	return 0;
}

/* Reserves the pages of device addresses outside of the window, so that the program has nothing
 * there. It does so page by page, because some may be reserved already. */
static int reserve_outside(uint64_t address, uint64_t size)
{
	uint64_t end = (address + size + PAGE - 1) & ~(PAGE - 1);

	if (address == 0 || size > UINT64_MAX - PAGE - address)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t at = address & ~(PAGE - 1); at < end;) {
		size_t i = above(&outside, at);
		uint64_t to = i < outside.n && outside.r[i].address < end ? outside.r[i].address : end;
		struct range pages = {.address = at, .size = to - at};

		if (i > 0 && at - outside.r[i - 1].address < outside.r[i - 1].size) {
			at = outside.r[i - 1].address + outside.r[i - 1].size;
			continue;
		}
		if (!pages_reserve(at, to - at) || insert(&outside, &pages) != 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		at = to;
	}
	atomic_store(&strays, true);
	return 0;
}

bool outside_reserve(uint64_t address, uint64_t size)
{
	struct range pages = {.address = address, .size = size};
	bool done = false;

	if (in_window(address, size))
		return false;
	pthread_mutex_lock(&lock);
	if (pages_reserve(address, size)) {
		done = insert(&outside, &pages) == 0;
		if (done)
			atomic_store(&strays, true);
		else
			pages_release(address, size);
	}
	pthread_mutex_unlock(&lock);
	return done;
}

void outside_release(uint64_t address)
{
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(&outside, address);
	if (i > 0 && outside.r[i - 1].address == address) {
		pages_release(address, outside.r[i - 1].size);
		memmove(outside.r + i - 1, outside.r + i, (outside.n - i) * sizeof *outside.r);
		outside.n--;
	}
	pthread_mutex_unlock(&lock);
}

int range_add(enum space space, const struct range *r)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (space == SPACE_DEVICE && (r->address - window.base >= window.size || r->size > window.base + window.size - r->address))
		err = reserve_outside(r->address, r->size);
	if (!err)
		err = insert(&tables[space], r);
	pthread_mutex_unlock(&lock);
	return err;
}

bool range_find(enum space space, uint64_t address, struct range *r)
{
	struct table *t = &tables[space];
	bool found = false;
	size_t i;

	if (!address_possible(space, address))
		return false;
	pthread_mutex_lock(&lock);
	i = above(t, address);
	if (i > 0 && address - t->r[i - 1].address < t->r[i - 1].size) {
		*r = t->r[i - 1];
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool host_range(uint64_t address, uint64_t n)
{
	struct range r;

	return address - host.base < host.size && range_find(SPACE_HOST, address, &r) && r.mapped &&
	       n <= r.size - (address - r.address);
}

bool range_export(uint64_t address)
{
	struct table *t = &tables[SPACE_DEVICE];
	bool found;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(t, address);
	found = i > 0 && t->r[i - 1].address == address;
	if (found)
		t->r[i - 1].exported = true;
	pthread_mutex_unlock(&lock);
	return found;
}

void range_set_other(uint64_t address, uint64_t other)
{
	struct table *t = &tables[SPACE_HOST];
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(t, address);
	if (i > 0 && t->r[i - 1].address == address)
		t->r[i - 1].other = other;
	pthread_mutex_unlock(&lock);
}

bool range_take(enum space space, uint64_t address, struct range *r)
{
	struct table *t = &tables[space];
	bool found = false;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(t, address);
	if (i > 0 && t->r[i - 1].address == address) {
		*r = t->r[i - 1];
		memmove(t->r + i - 1, t->r + i, (t->n - i) * sizeof *t->r);
		t->n--;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void ranges_drop_context(uint64_t context, void (*gone)(const struct range *r))
{
	struct table *t = &tables[SPACE_DEVICE];
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < t->n; i++)
		if (t->r[i].context != context)
			t->r[kept++] = t->r[i];
		else
			gone(&t->r[i]);
	t->n = kept;
	pthread_mutex_unlock(&lock);
}

static _Atomic bool synced; /* the sync of some range is set, or was */

bool range_sync(uint64_t address, bool set, struct range *r)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int space = SPACE_DEVICE; space <= SPACE_HOST && !found; space++) {
		struct table *t = &tables[space];
		size_t i = above(t, address);

		if (i > 0 && address - t->r[i - 1].address < t->r[i - 1].size) {
			t->r[i - 1].sync = set;
			*r = t->r[i - 1];
			found = true;
		}
	}
	pthread_mutex_unlock(&lock);
	if (found && set)
		atomic_store(&synced, true);
	return found;
}

bool range_synced(uint64_t address)
{
	struct range r;

	return atomic_load_explicit(&synced, memory_order_relaxed) &&
	       (range_find(SPACE_DEVICE, address, &r) || range_find(SPACE_HOST, address, &r)) && r.sync;
}

uint64_t range_variables(uint64_t context)
{
	const struct table *t = &tables[SPACE_HOST];
	uint64_t address = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < t->n && !address; i++)
		if (t->r[i].variables && t->r[i].context == context)
			address = t->r[i].address;
	pthread_mutex_unlock(&lock);
	return address;
}

void ranges_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(tables, 0, sizeof tables);
	window = host = (struct window){0, 0};
	outside = (struct table){0}; /* not mapped in a child, like the window */
	atomic_store(&strays, false);
}

void ranges_access(uint64_t address, uint64_t size, uint32_t access)
{
	struct table *t = &tables[SPACE_DEVICE];

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < t->n; i++)
		if (t->r[i].memory && t->r[i].address - address < size)
			t->r[i].access = access;
	pthread_mutex_unlock(&lock);
}

/* Reports whether n bytes from address on are mapped with access, in the mapping r, which
 * contains address, and in adjacent ones. */
static bool mapped_range(struct range r, uint64_t address, uint64_t n)
{
	while (r.memory && r.access) {
		uint64_t left = r.size - (address - r.address);

		if (n <= left)
			return true;
		address += left;
		n -= left;
		if (!range_find(SPACE_DEVICE, address, &r))
			return false;
	}
	return false;
}

bool device_range(CUdeviceptr address, size_t n)
{
	struct range r;

	if (!range_find(SPACE_DEVICE, address, &r))
		return host_range(address, n);
	return r.memory ? mapped_range(r, address, n) : n <= r.size - (address - r.address);
}
