/* Replaces pages that the program has allocated itself by the pages of a region, with the same
 * contents and at the same address, so that the worker and the device can have them too.
 *
 * Other threads may write to these pages at the same time, and to other data of the program
 * that is in the same pages. So the pages are write-protected (userfaultfd(2)) while they are
 * copied: a thread that writes waits until the new pages are there. Where the kernel does not
 * allow that, nothing is replaced: in a VM, it does not for pages of another region, which are
 * those of a device. A system call of another thread that writes to the pages in
 * that time fails with EFAULT if the process may not handle the kernel's page faults.
 *
 * The pages may be those of this thread's stack, because programs register variables. So the
 * exchange runs on another stack, with signals blocked. */
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
	       (a->name[0] == 0 || strcmp(a->name, "[heap]") == 0 || strcmp(a->name, "[stack]") == 0 || strncmp(a->name, "[anon:", 6) == 0);
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

/* What runs on another stack. */
struct exchange {
	struct session *s;
	struct replaced *r;
	int protection; /* a userfaultfd, or -1; it is closed */
	uint8_t *copy;	/* pages of this process to put in place of the region's; NULL: the reverse */
	int err;
};

static int restore(const struct exchange *x)
{
	const struct replaced *r = x->r;

	if (x->protection >= 0)
		(void)protect(x->protection, r->address, r->size);
	memcpy(x->copy, (const void *)(uintptr_t)r->address, r->size);
	return syscall(SYS_mremap, x->copy, r->size, r->size, MREMAP_MAYMOVE | MREMAP_FIXED, r->address) == -1 ? RES_OUT_OF_MEMORY : 0;
}

static void exchange(void *arg)
{
	struct exchange *x = arg;

	x->err = RES_NOT_SUPPORTED;
	if (x->copy) {
		x->err = restore(x);
	} else if (protect(x->protection, x->r->address, x->r->size)) {
		memcpy(x->r->region.base, (const void *)(uintptr_t)x->r->address, x->r->size);
		x->err = x->s->ops->region_again(x->s, &x->r->region, x->r->address);
	}
	if (x->protection >= 0)
		close(x->protection); /* threads that wait go on, with whatever is mapped there now */
}

/* Calls f(arg) on the stack that ends at top. Returns false if that is not implemented for this
 * processor. */
static bool call_on_stack(uint8_t *top, void (*f)(void *), void *arg)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %1, %%rsp\n\tcall *%2\n\tmovq %%rbx, %%rsp"
			 : "+D"(arg)
			 : "r"(top), "r"(f)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
	return true;
#elif defined(__aarch64__)
	register void *x0 __asm__("x0") = arg;

	__asm__ volatile("mov x19, sp\n\tmov sp, %1\n\tblr %2\n\tmov sp, x19"
			 : "+r"(x0)
			 : "r"(top), "r"(f)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
			   "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
			   "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",
			   "memory");
	return true;
#else
	(void)top, (void)f, (void)arg;
	return false;
#endif
}

/* Runs the exchange on a stack of its own. errno must not be in the pages either. */
static int run_apart(struct exchange *x)
{
	enum { STACK_SIZE = 256 << 10 };
	sigset_t all, before;
	uint64_t error = (uintptr_t)&errno;
	long stack;

	stack = syscall(SYS_mmap, 0, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == -1 || error - x->r->address < x->r->size) {
		if (x->protection >= 0)
			close(x->protection);
		if (stack != -1)
			munmap((void *)stack, STACK_SIZE);
		return RES_NOT_SUPPORTED;
	}
	sigfillset(&all); /* a handler might write to the pages, and wait for this thread */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	x->err = RES_NOT_SUPPORTED;
	(void)call_on_stack((uint8_t *)stack + STACK_SIZE, exchange, x);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap((void *)stack, STACK_SIZE);
	return x->err;
}

struct stack {
	uint64_t pointer, start, end; /* writable areas side by side, the first of which contains the pointer */
};

static void extend_stack(const struct area *a, void *arg)
{
	struct stack *s = arg;

	if (a->start <= s->pointer && s->pointer < a->end)
		*s = (struct stack){s->pointer, a->start, a->end};
	else if (a->start == s->end && strncmp(a->rights, "rw", 2) == 0)
		s->end = a->end;
}

/* Reports whether the pages may be of this thread's stack. */
static bool is_stack(uint64_t address, uint64_t size)
{
	char here;
	struct stack s = {.pointer = (uintptr_t)&here};

	return address + size > s.pointer && areas(s.pointer, address + size, extend_stack, &s) && address < s.end && s.start < address + size;
}

int pages_replace(struct session *s, struct replaced *r)
{
	struct exchange x = {.s = s, .r = r, .protection = protection()};
	int err;

	if (x.protection < 0)
		return RES_NOT_SUPPORTED;
	r->stack = is_stack(r->address, r->size);
	if ((err = run_apart(&x)) == 0)
		(void)areas(r->address, r->address + 1, note_file, r);
	return err;
}

int pages_restore(struct replaced *r)
{
	struct exchange x = {.r = r, .protection = -1};
	long copy = syscall(SYS_mmap, 0, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = RES_OUT_OF_MEMORY;

	if (copy != -1) {
		x.copy = (uint8_t *)copy;
		x.protection = protection();
		if ((err = run_apart(&x)) != 0)
			munmap(x.copy, r->size);
	}
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
