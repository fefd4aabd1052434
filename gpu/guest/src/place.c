/* Allocator of places in the window's host part: addresses of pages that are shared with the
 * worker, and that have the same address there. This process allocates them; the worker
 * allocates the rest of the window. */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

#define PAGE 4096ull
#define HUGE_PAGE (2ull << 20)

void places_open(struct session *s)
{
	uint64_t size = s->window.size / BSLT_HOST_PART / BSLT_WINDOW_UNIT * BSLT_WINDOW_UNIT;

	if (!s->window.base || worker_minor(s) < 2)
		return;
	s->host = (struct window){s->window.base + s->window.size - BSLT_WINDOW_TAIL - size, size};
	s->place_next = s->host.base;
}

/* Finds size free bytes from an address on, and the index at which to insert them. Returns 0 if
 * there are none. A page behind each place stays unused, so that accesses beyond the end are
 * detected. */
static uint64_t find_gap(const struct session *s, uint64_t from, uint64_t size, uint64_t align, uint32_t *index)
{
	uint64_t end = s->host.base + s->host.size, at = (from + align - 1) & ~(align - 1);
	uint32_t i = 0;

	for (; i < s->taken_count; i++) {
		const struct window *t = &s->taken[i];

		if (t->base + t->size <= at)
			continue;
		if (at < t->base && t->base - at >= size)
			break;
		at = (t->base + t->size + align - 1) & ~(align - 1);
	}
	*index = i;
	return at <= end && end - at >= size ? at : 0;
}

uint64_t place_take(struct session *s, uint64_t size)
{
	uint64_t align = size >= HUGE_PAGE ? HUGE_PAGE : PAGE, address = 0;
	uint32_t i = 0;

	size += PAGE;
	pthread_mutex_lock(&s->region_lock);
	if (s->host.size && s->taken_count < BSLT_MAX_REGIONS) {
		address = find_gap(s, s->place_next, size, align, &i);
		if (!address) /* so that addresses are not used again soon */
			address = find_gap(s, s->host.base, size, align, &i);
	}
	if (address) {
		memmove(s->taken + i + 1, s->taken + i, (s->taken_count - i) * sizeof *s->taken);
		s->taken[i] = (struct window){address, size};
		s->taken_count++;
		s->place_next = address + size;
	}
	pthread_mutex_unlock(&s->region_lock);
	return address;
}

void place_give(struct session *s, uint64_t address)
{
	pthread_mutex_lock(&s->region_lock);
	for (uint32_t i = 0; i < s->taken_count; i++) {
		if (s->taken[i].base != address)
			continue;
		s->taken_count--;
		memmove(s->taken + i, s->taken + i + 1, (s->taken_count - i) * sizeof *s->taken);
		break;
	}
	pthread_mutex_unlock(&s->region_lock);
}

/* This uses the system calls, as window.c does, because the mmap of sanitizers requires
 * addresses of their own choice, and because glibc has memfd_create since 2.27 only. */
int pages_file(const char *name)
{
	return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int pages_map(struct region *r, uint64_t address, int fd, uint64_t offset)
{
	int flags = address ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
	long p = syscall(SYS_mmap, address, r->size, PROT_READ | PROT_WRITE, flags, fd, offset);

	if (p == -1) {
		r->base = NULL;
		return RES_OUT_OF_MEMORY;
	}
	r->base = (uint8_t *)p;
	r->placed = address != 0;
	/* Huge pages give fewer mappings in the worker, and fewer pages for a GPU. It does
	 * not matter if the kernel has none. */
	if (r->size >= HUGE_PAGE)
		(void)syscall(SYS_madvise, p, r->size, MADV_HUGEPAGE);
	return 0;
}

void pages_unmap(struct region *r)
{
	if (r->placed) {
		(void)syscall(SYS_mmap, r->base, r->size, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		(void)syscall(SYS_madvise, r->base, r->size, MADV_DONTFORK);
	} else {
		munmap(r->base, r->size);
	}
	r->base = NULL;
}
