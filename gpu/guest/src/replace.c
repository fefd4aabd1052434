/* Replaces pages that the program has allocated itself by the pages of a region, with the same
 * contents and at the same address, so that the worker and the device can have them too.
 *
 * Other threads may write to these pages at the same time, and to other data of the program
 * that is in the same pages. So the pages are write-protected (userfaultfd(2)) while they are
 * copied: a thread that writes waits until the new pages are there. Where the kernel does not
 * allow that, nothing is replaced. A system call of another thread that writes to the pages in
 * that time fails with EFAULT if the process may not handle the kernel's page faults. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "replace.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#endif

/* One line of /proc/self/maps. */
struct area {
	uint64_t start, end, offset, major, minor, inode;
	const char *rights, *name;
};

static const char *number(const char *p, unsigned int base, uint64_t *n)
{
	for (*n = 0;; p++) {
		unsigned int digit = *p >= '0' && *p <= '9' ? (unsigned int)(*p - '0') : *p >= 'a' && *p <= 'f' ? (unsigned int)(*p - 'a') + 10 : 16;

		if (digit >= base)
			return p;
		*n = *n * base + digit;
	}
}

/* Parses "START-END RIGHTS OFFSET MAJOR:MINOR INODE   NAME". */
static bool parse(const char *p, struct area *a)
{
	if (*(p = number(p, 16, &a->start)) != '-' || *(p = number(p + 1, 16, &a->end)) != ' ' || strlen(p) < 6)
		return false;
	a->rights = p + 1;
	if (*(p = number(p + 6, 16, &a->offset)) != ' ' || *(p = number(p + 1, 16, &a->major)) != ':' ||
	    *(p = number(p + 1, 16, &a->minor)) != ' ')
		return false;
	p = number(p + 1, 10, &a->inode);
	a->name = p + strspn(p, " ");
	return true;
}

/* Calls each for the mappings of this process that overlap the addresses from up to to, in
 * order. Does not allocate memory, as it is also called in a forked child. Returns false if
 * they cannot be read. */
static bool areas(uint64_t from, uint64_t to, void (*each)(const struct area *a, void *arg), void *arg)
{
	char text[8192]; /* longer than any line: names have at most PATH_MAX bytes */
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, text + have, sizeof text - have)) > 0 || (n < 0 && errno == EINTR)) {
		char *line = text, *end;

		have += n > 0 ? (size_t)n : 0;
		for (; (end = memchr(line, '\n', (size_t)(text + have - line))) != NULL; line = end + 1) {
			struct area a;

			*end = 0;
			if (parse(line, &a) && a.start < to && a.end > from)
				each(&a, arg);
		}
		have = (size_t)(text + have - line);
		memmove(text, line, have);
	}
	close(fd);
	return n == 0;
}

/* Reports whether all of an area are pages of a region that are still where they were put. */
static bool is_replaced(const struct area *a, const struct replaced *r)
{
	return a->rights[3] == 's' && a->major == r->major && a->minor == r->minor && a->inode == r->inode &&
	       a->offset - a->start == r->offset - r->address;
}

/* Reports whether an area is memory that only this process has. */
static bool is_private(const struct area *a)
{
	return strncmp(a->rights, "rw-p", 4) == 0 && a->inode == 0 &&
	       (a->name[0] == 0 || strcmp(a->name, "[heap]") == 0 || strncmp(a->name, "[anon:", 6) == 0);
}

struct check {
	uint64_t at;
	const struct replaced *of; /* NULL: private memory is wanted, or pages of others */
	const struct replaced *others;
	size_t count;
	bool good;
};

static void check_area(const struct area *a, void *arg)
{
	struct check *c = arg;
	bool good = c->of ? is_replaced(a, c->of) : is_private(a);

	for (size_t i = 0; i < c->count && !good; i++)
		good = is_replaced(a, &c->others[i]);
	c->good = c->good && good && a->start <= c->at;
	c->at = a->end;
}

bool pages_present(const struct replaced *r)
{
	struct check c = {.at = r->address, .of = r, .good = true};

	return areas(r->address, r->address + r->size, check_area, &c) && c.good && c.at >= r->address + r->size;
}

bool pages_replaceable(uint64_t address, uint64_t size, const struct replaced *others, size_t count)
{
	struct check c = {.at = address, .others = others, .count = count, .good = true};

	return areas(address, address + size, check_area, &c) && c.good && c.at >= address + size;
}

/* Reports whether this thread itself writes to the pages while they are protected: to its
 * stack, or to errno. It would wait for itself. */
static bool used_here(uint64_t address, uint64_t size)
{
	enum { BELOW = 64 << 10, ABOVE = 4 << 10 };
	char here;
	uint64_t stack = (uintptr_t)&here, error = (uintptr_t)&errno;

	return (address < stack + ABOVE && stack - BELOW < address + size) || error - address < size;
}

/* Returns a userfaultfd that can protect private memory and, if the kernel can, shared memory
 * from being written; or -1. */
static int protection(void)
{
	static const uint64_t features[] = {UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM, UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	int fd = -1;

#ifdef SYS_userfaultfd
	for (size_t i = 0; i < 2; i++) {
		struct uffdio_api api = {.api = UFFD_API, .features = features[i]};

		/* Without the right to handle the kernel's faults, the program's own are enough. */
		if ((fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC)) < 0)
			fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
		if (fd < 0 || ioctl(fd, UFFDIO_API, &api) == 0)
			return fd;
		close(fd);
		fd = -1;
	}
#else
	(void)features;
#endif
	return fd;
}

static bool protect(int fd, uint64_t address, uint64_t size)
{
	struct uffdio_register range = {.range = {address, size}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect writes = {.range = {address, size}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};

	if (ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		return false;
	for (uint64_t at = address; at < address + size; at += PAGE) /* only pages that exist are protected */
		(void)*(const volatile char *)(uintptr_t)at;
	return ioctl(fd, UFFDIO_WRITEPROTECT, &writes) == 0;
}

static void note_file(const struct area *a, void *arg)
{
	struct replaced *r = arg;

	if (a->start > r->address || a->end <= r->address)
		return;
	r->major = a->major;
	r->minor = a->minor;
	r->inode = a->inode;
	r->offset = a->offset + (r->address - a->start);
}

int pages_replace(struct session *s, struct replaced *r)
{
	sigset_t all, before;
	int fd, err = RES_NOT_SUPPORTED;

	if (used_here(r->address, r->size) || (fd = protection()) < 0)
		return RES_NOT_SUPPORTED;
	sigfillset(&all); /* a handler might write to the pages, and wait for this thread */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (protect(fd, r->address, r->size)) {
		memcpy(r->region.base, (const void *)(uintptr_t)r->address, r->size);
		err = s->ops->region_again(s, &r->region, r->address);
	}
	close(fd); /* threads that wait go on, with whatever is mapped there now */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		(void)areas(r->address, r->address + 1, note_file, r);
	return err;
}

static void copy_area(const struct area *a, void *arg)
{
	const struct replaced *r = arg;
	uint64_t from = a->start > r->address ? a->start : r->address;
	uint64_t to = a->end < r->address + r->size ? a->end : r->address + r->size;
	long copy;

	if (!is_replaced(a, r))
		return;
	copy = syscall(SYS_mmap, 0, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == -1)
		return;
	memcpy((void *)copy, (const void *)(uintptr_t)from, to - from);
	(void)syscall(SYS_mremap, copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from);
}

void pages_copy(const struct replaced *r)
{
	struct replaced copy = *r;

	(void)areas(r->address, r->address + r->size, copy_area, &copy);
}
