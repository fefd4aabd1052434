/* The address window: a range of addresses that are only device addresses.
 *
 * The process reserves candidates without access, so that none of its own memory can be
 * allocated there. The worker chooses one of them and reserves the same range, and the process
 * releases the others. Each range is MADV_DONTFORK: a forked child has none, and may open a
 * session of its own. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

/* Ranges that processes normally do not use, the best first: outside of PIE programs (0x55...),
 * the heaps of Go, the shadow memory of AddressSanitizer (0x1000..., 0x6000...), and the
 * addresses of mmap and the loader (from 0x7c00... on). With ThreadSanitizer only the last one
 * is free. */
static const struct window candidates[BSLT_MAX_WINDOWS] = {
	{0x400000000000, BSLT_MAX_WINDOW}, {0x300000000000, BSLT_MAX_WINDOW}, {0x680000000000, BSLT_MAX_WINDOW},
	{0x200000000000, BSLT_MAX_WINDOW}, {0x700000000000, BSLT_MAX_WINDOW}, {0x740000000000, BSLT_MAX_WINDOW},
	{0x100000000000, BSLT_MAX_WINDOW}, {0x2000000000, BSLT_MAX_WINDOW / 4},
};

/* If a process may use few addresses (RLIMIT_AS), a window has at most this part of them, and
 * two are offered, because the program needs the rest. */
#define LIMIT_PART 8
#define LIMIT_OFFERS 2

/* Reserves a range by the system call, because a sanitizer's mmap ends the program for such
 * addresses. Returns an errno. */
static int reserve(const struct window *w)
{
	long p = syscall(SYS_mmap, w->base, w->size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == -1)
		return errno;
	if ((uint64_t)p != w->base) { /* before Linux 4.17 the address is only a hint */
		(void)syscall(SYS_munmap, p, w->size);
		return EEXIST;
	}
	(void)syscall(SYS_madvise, p, w->size, MADV_DONTFORK);
	return 0;
}

static void release(const struct window *w)
{
	(void)syscall(SYS_munmap, w->base, w->size);
}

/* Returns the size of a window that the process's limit allows: a power of two, or 0 if the
 * limit is too small. */
static uint64_t size_within(uint64_t limit)
{
	uint64_t size = BSLT_MAX_WINDOW;

	while (size > limit / LIMIT_PART)
		size /= 2;
	return size < BSLT_MIN_WINDOW ? 0 : size;
}

static uint64_t address_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

int windows_reserve(struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE])
{
	uint64_t limit = address_limit(), size = limit == UINT64_MAX ? BSLT_MAX_WINDOW : size_within(limit);
	unsigned int most = limit == UINT64_MAX ? BSLT_MAX_WINDOWS : LIMIT_OFFERS, n = 0;
	int last = 0;

	memset(offers, 0, BSLT_MAX_WINDOWS * sizeof *offers);
	if (size == 0) {
		snprintf(why, BSLT_ERROR_TEXT_SIZE,
			 "address window: RLIMIT_AS of %" PRIu64 " bytes leaves no room for it, at least %" PRIu64 " are needed",
			 limit, (uint64_t)BSLT_MIN_WINDOW * LIMIT_PART);
		return RES_OUT_OF_MEMORY;
	}
	for (unsigned int i = 0; i < BSLT_MAX_WINDOWS && n < most; i++) {
		struct window w = candidates[i];
		int err;

		if (w.size > size)
			w.size = size;
		if ((err = reserve(&w)) == 0)
			offers[n++] = w;
		else
			last = err;
	}
	if (n)
		return 0;
	snprintf(why, BSLT_ERROR_TEXT_SIZE,
		 "address window: none of %u address ranges can be reserved in this process, from %#" PRIx64 " (%" PRIu64
		 " bytes) on: %s",
		 BSLT_MAX_WINDOWS, candidates[0].base, size, strerror(last));
	return RES_OUT_OF_MEMORY;
}

void windows_offer(struct session *s, const struct window offers[BSLT_MAX_WINDOWS])
{
	memcpy(at(s, BSLT_OFF_WINDOWS), offers, BSLT_MAX_WINDOWS * sizeof *offers);
}

int window_accept(struct session *s, const struct window offers[BSLT_MAX_WINDOWS], char why[BSLT_ERROR_TEXT_SIZE])
{
	struct window chosen;

	memcpy(&chosen, at(s, BSLT_OFF_WINDOW_BASE), sizeof chosen);
	for (unsigned int i = 0; i < BSLT_MAX_WINDOWS && offers[i].base; i++) {
		if (offers[i].base == chosen.base && offers[i].size == chosen.size)
			s->window = chosen;
		else
			release(&offers[i]);
	}
	if (s->window.base)
		return 0;
	snprintf(why, BSLT_ERROR_TEXT_SIZE,
		 "address window: the worker chose %#" PRIx64 "+%#" PRIx64 ", which was not offered", chosen.base, chosen.size);
	return RES_UNAVAILABLE;
}

void windows_release(const struct window offers[BSLT_MAX_WINDOWS])
{
	for (unsigned int i = 0; i < BSLT_MAX_WINDOWS && offers[i].base; i++)
		release(&offers[i]);
}

void window_close(struct session *s)
{
	if (s->window.base)
		release(&s->window);
	s->window = (struct window){0, 0};
}

bool pages_reserve(uint64_t address, uint64_t size)
{
	uint64_t first = address & ~4095ull, end = (address + size + 4095) & ~4095ull;
	struct window w = {first, end - first};

	return end > first && reserve(&w) == 0;
}

void pages_release(uint64_t address, uint64_t size)
{
	struct window w = {address, size};

	release(&w);
}
