/* Carrier (b): a unix socket and memfds between processes of one host. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"

static int send_flagged(struct session *s, uint16_t type, uint16_t flags, uint32_t argument, const void *body,
			uint32_t length, int fd)
{
	struct message m = {BSLT_MAGIC, type, flags, length, argument};
	struct iovec iov[2] = {{&m, sizeof m}, {(void *)(uintptr_t)body, length}};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr h = {.msg_iov = iov, .msg_iovlen = length ? 2 : 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof control);
		h.msg_control = control.buf;
		h.msg_controllen = sizeof control.buf;
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	do
		n = sendmsg(s->fd, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* Messages are much smaller than a socket's buffer, so they are sent as a whole or not. */
	if (n != (ssize_t)(sizeof m + length)) {
		session_die(s, RES_UNAVAILABLE);
		return RES_UNAVAILABLE;
	}
	return 0;
}

static int send_message(struct session *s, uint16_t type, uint32_t argument, const void *body, uint32_t length, int fd)
{
	return send_flagged(s, type, 0, argument, body, length, fd);
}

static int u_hello(struct session *s, const uint8_t body[BSLT_HELLO_SIZE])
{
	return send_message(s, BSLT_MSG_HELLO, 0, body, BSLT_HELLO_SIZE, -1);
}

static int u_region_make(struct session *s, uint64_t size, uint64_t address, struct region *r)
{
	int fd = pages_file("basalt");

	(void)s;
	if (fd < 0)
		return RES_OPERATING_SYSTEM;
	/* The seals guarantee the worker that the pages cannot be removed. */
	if (ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		close(fd);
		return RES_OUT_OF_MEMORY;
	}
	*r = (struct region){.size = size, .handle = (uint32_t)fd};
	if (pages_map(r, address, fd, 0) != 0) {
		close(fd);
		return RES_OUT_OF_MEMORY;
	}
	return 0;
}

/* A size of 0 stands for all pages, which stay at the old address too (mremap(2)): the file was
 * closed when the region was announced. */
static int u_region_again(struct session *s, const struct region *r, uint64_t address)
{
	(void)s;
	return syscall(SYS_mremap, r->base, 0, r->size, MREMAP_MAYMOVE | MREMAP_FIXED, address) == -1 ? RES_OUT_OF_MEMORY : 0;
}

static int u_region_announce(struct session *s, struct region *r)
{
	struct extent {
		uint32_t fd, zero;
		uint64_t offset, length;
	} all = {0, 0, 0, r->size};
	struct {
		uint64_t size, address;
		struct extent extent;
	} placed = {r->size, (uintptr_t)r->base, all};
	struct {
		uint64_t size;
		struct extent extent;
	} anywhere = {r->size, all};
	int fd = (int)r->handle, err;

	if (r->placed)
		err = send_flagged(s, BSLT_MSG_REGION, BSLT_REGION_PLACED, r->number, &placed, sizeof placed, fd);
	else
		err = send_message(s, BSLT_MSG_REGION, r->number, &anywhere, sizeof anywhere, fd);
	close(fd); /* the mapping keeps the pages */
	r->handle = UINT32_MAX;
	return err;
}

static void u_region_drop(struct session *s, struct region *r, bool announced)
{
	pages_unmap(r);
	if ((int)r->handle >= 0)
		close((int)r->handle);
	if (announced)
		(void)send_message(s, BSLT_MSG_DROP_REGION, r->number, NULL, 0, -1);
}

static bool read_all(int fd, void *p, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t k = recv(fd, (char *)p + have, n - have, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		have += (size_t)k;
	}
	return true;
}

/* Reads the first bytes of the answer to hello, and the descriptor that may come with
 * them. */
static bool read_first(struct session *s, void *p, size_t n)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {p, n};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	struct cmsghdr *c;
	ssize_t k;

	do
		k = recvmsg(s->fd, &h, MSG_CMSG_CLOEXEC);
	while (k < 0 && errno == EINTR);
	if (k <= 0)
		return false;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof s->wake_fd))
		memcpy(&s->wake_fd, CMSG_DATA(c), sizeof s->wake_fd);
	return read_all(s->fd, (char *)p + k, n - (size_t)k);
}

static int u_ready(struct session *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	struct message m;
	char text[BSLT_ERROR_TEXT_SIZE];
	int n;

	do
		n = poll(&p, 1, BSLT_HEARTBEAT_DEAD_MILLIS);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || !read_first(s, &m, sizeof m) || m.magic != BSLT_MAGIC)
		return RES_UNAVAILABLE;
	if (m.type == BSLT_MSG_READY)
		return 0;
	if (m.type != BSLT_MSG_REFUSED)
		return RES_UNAVAILABLE;
	if (m.length > sizeof text - 1)
		m.length = sizeof text - 1;
	if (read_all(s->fd, text, m.length)) {
		text[m.length] = 0;
		if (atomic_load(word32(s, BSLT_OFF_STATE)) != BSLT_STATE_DEAD) {
			memcpy(at(s, BSLT_OFF_ERROR_TEXT), text, m.length + 1);
			atomic_store(word32(s, BSLT_OFF_STATE), BSLT_STATE_DEAD);
		}
	}
	return m.argument ? (int)m.argument : RES_UNAVAILABLE;
}

static void u_kick(struct session *s)
{
	struct message m = {BSLT_MAGIC, BSLT_MSG_KICK, 0, 0, 0};
	uint64_t one = 1;

	if (s->wake_fd >= 0 && write(s->wake_fd, &one, sizeof one) == sizeof one)
		return;
	/* If the socket is full, it already contains kicks. The kernel sends such a small
	 * message as a whole or not at all. */
	(void)send(s->fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void u_block(struct session *s, _Atomic uint32_t *state, int millis)
{
	struct timespec t = {millis / 1000, millis % 1000 * 1000000L};

	(void)s;
	syscall(SYS_futex, state, FUTEX_WAIT, BSLT_SLOT_SLEEPING, &t, NULL, 0);
}

static bool u_gone(struct session *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0;
}

static void u_close(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	s->fd = s->wake_fd = -1;
}

const struct carrier_ops carrier_unix = {
	"unix", u_region_make, u_region_again, u_region_announce, u_region_drop, u_hello, u_ready, u_kick, u_block, u_gone, u_close,
};

int carrier_unix_open(struct session *s, const char *path, char why[BSLT_ERROR_TEXT_SIZE])
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	s->ops = &carrier_unix;
	s->default_arena = 16u << 20;
	if (strlen(path) >= sizeof a.sun_path) {
		snprintf(why, BSLT_ERROR_TEXT_SIZE, "BASALT_GPU: socket path is longer than %zu", sizeof a.sun_path - 1);
		return RES_NO_DEVICE;
	}
	memcpy(a.sun_path, path, strlen(path) + 1);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return RES_OPERATING_SYSTEM;
	if (connect(s->fd, (struct sockaddr *)&a, sizeof a) != 0) {
		snprintf(why, BSLT_ERROR_TEXT_SIZE, "BASALT_GPU: cannot connect to %.100s: %s", path, strerror(errno));
		close(s->fd);
		return RES_NO_DEVICE;
	}
	return 0;
}
