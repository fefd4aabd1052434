/* Carrier (a): the standard virtio_gpu driver of a VM's kernel. Regions are virtio-gpu
 * resources backed by guest pages; messages are sent by EXECBUFFER. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "virtgpu_uapi.h"

#define PROCESSED_MILLIS 10000

static int drm(int fd, unsigned long request, void *arg)
{
	int r;

	do
		r = ioctl(fd, request, arg);
	while (r != 0 && (errno == EINTR || errno == EAGAIN));
	return r;
}

/* Sends one carrier message. If fence is not NULL, *fence becomes a sync_file that signals
 * when basalt-vgpu has answered. */
static int submit_flagged(struct session *s, uint16_t type, uint16_t flags, uint32_t argument, const void *body,
			  uint32_t length, int *fence)
{
	uint8_t buf[sizeof(struct message) + BSLT_HELLO_SIZE];
	struct message m = {BSLT_MAGIC, type, flags, length, argument};
	struct virtgpu_execbuffer e = {
		.flags = fence ? VIRTGPU_EXECBUF_FENCE_FD_OUT : 0,
		.size = (uint32_t)sizeof m + length,
		.command = (uintptr_t)buf,
		.fence_fd = -1,
	};

	memcpy(buf, &m, sizeof m);
	if (length)
		memcpy(buf + sizeof m, body, length);
	if (drm(s->fd, VIRTGPU_IOCTL_EXECBUFFER, &e) != 0)
		return RES_UNAVAILABLE;
	if (fence)
		*fence = e.fence_fd;
	return 0;
}

static int submit(struct session *s, uint16_t type, uint32_t argument, const void *body, uint32_t length, int *fence)
{
	return submit_flagged(s, type, 0, argument, body, length, fence);
}

static bool fence_wait(int fence, int millis)
{
	struct pollfd p = {.fd = fence, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, millis);
	while (n < 0 && errno == EINTR);
	close(fence);
	return n > 0;
}

static int v_hello(struct session *s, const uint8_t body[BSLT_HELLO_SIZE])
{
	return submit(s, BSLT_MSG_HELLO, BSLT_HELLO_WAKE_BY_MESSAGE, body, BSLT_HELLO_SIZE, NULL);
}

static int v_region_make(struct session *s, uint64_t size, uint64_t address, struct region *r)
{
	struct virtgpu_resource_create c = {
		.format = VIRTGPU_FORMAT_R8, .bind = VIRTGPU_BIND_CUSTOM, .width = (uint32_t)size,
		.height = 1, .depth = 1, .array_size = 1, .size = (uint32_t)size,
	};
	struct virtgpu_map m = {0};
	struct gem_close g = {0};

	if (size > UINT32_MAX)
		return RES_OUT_OF_MEMORY;
	if (drm(s->fd, VIRTGPU_IOCTL_RESOURCE_CREATE, &c) != 0)
		return RES_OUT_OF_MEMORY;
	m.handle = g.handle = c.bo_handle;
	*r = (struct region){.size = size, .handle = c.bo_handle};
	if (drm(s->fd, VIRTGPU_IOCTL_MAP, &m) != 0 || pages_map(r, address, s->fd, m.offset) != 0) {
		(void)drm(s->fd, DRM_IOCTL_GEM_CLOSE_, &g);
		return RES_OUT_OF_MEMORY;
	}
	/* The kernel zeroes the pages of shmem objects. Region 0 depends on that, so zero its
	 * beginning again in case the kernel reuses pages. */
	memset(r->base, 0, size < (2u << 20) ? size : (2u << 20));
	return 0;
}

static int v_region_again(struct session *s, const struct region *r, uint64_t address)
{
	struct virtgpu_map m = {.handle = r->handle};
	struct region again = {.size = r->size};

	if (drm(s->fd, VIRTGPU_IOCTL_MAP, &m) != 0)
		return RES_OUT_OF_MEMORY;
	return pages_map(&again, address, s->fd, m.offset);
}

static int v_region_announce(struct session *s, struct region *r)
{
	struct virtgpu_resource_info info = {.bo_handle = r->handle};
	struct {
		uint64_t size;
		uint32_t resource, zero;
		uint64_t address; /* only with BSLT_REGION_PLACED */
	} body = {r->size, 0, 0, (uintptr_t)r->base};
	uint32_t length = r->placed ? sizeof body : sizeof body - sizeof body.address;
	int fence, err;

	if (drm(s->fd, VIRTGPU_IOCTL_RESOURCE_INFO, &info) != 0)
		return RES_UNAVAILABLE;
	body.resource = info.res_handle;
	/* The fence ensures that the worker's socket has the message before the ring has a
	 * command that names the region. */
	if ((err = submit_flagged(s, BSLT_MSG_REGION, r->placed ? BSLT_REGION_PLACED : 0, r->number, &body, length, &fence)) != 0)
		return err;
	return fence_wait(fence, PROCESSED_MILLIS) ? 0 : RES_UNAVAILABLE;
}

static void v_region_drop(struct session *s, struct region *r, bool announced)
{
	struct gem_close g = {.handle = r->handle};

	pages_unmap(r);
	if (announced)
		(void)submit(s, BSLT_MSG_DROP_REGION, r->number, NULL, 0, NULL);
	(void)drm(s->fd, DRM_IOCTL_GEM_CLOSE_, &g);
}

/* Waits for the next wake-up, unless the word already differs from expect. */
static void wait_message(struct session *s, _Atomic uint32_t *word, uint32_t expect, int millis)
{
	struct timespec nap = {0, 1000000};
	int fence;

	if (submit(s, BSLT_MSG_WAIT, 0, NULL, 0, &fence) != 0) {
		nanosleep(&nap, NULL);
		return;
	}
	/* Another thread's wait may have consumed the wake-up. The word was written before
	 * that, so check it again. */
	if (atomic_load_explicit(word, memory_order_acquire) != expect) {
		close(fence);
		return;
	}
	(void)fence_wait(fence, millis);
}

static int v_ready(struct session *s)
{
	_Atomic uint32_t *state = word32(s, BSLT_OFF_STATE);
	uint64_t end = now_nanos() + BSLT_HEARTBEAT_DEAD_MILLIS * 1000000ull;

	while (now_nanos() < end) {
		switch (atomic_load_explicit(state, memory_order_acquire)) {
		case BSLT_STATE_READY:
			return 0;
		case BSLT_STATE_DEAD:
			return session_check(s);
		default:
			wait_message(s, state, BSLT_STATE_NEW, 200);
		}
	}
	return RES_UNAVAILABLE;
}

static void v_kick(struct session *s)
{
	(void)submit(s, BSLT_MSG_KICK, 0, NULL, 0, NULL);
}

static void v_block(struct session *s, _Atomic uint32_t *state, int millis)
{
	wait_message(s, state, BSLT_SLOT_SLEEPING, millis);
}

static bool v_gone(struct session *s)
{
	(void)s; /* basalt-vgpu writes StateDead, or the worker if that ends; if both are killed, the heartbeat stops */
	return false;
}

static void v_close(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

const struct carrier_ops carrier_virtio = {
	"virtio", v_region_make, v_region_again, v_region_announce, v_region_drop, v_hello, v_ready, v_kick, v_block, v_gone, v_close,
};

/* Reports whether the device has the capability set of a Basalt vGPU, with a major version
 * that this library supports. */
static bool is_ours(int fd, struct session *s)
{
	struct {
		uint32_t magic;
		uint16_t major, minor;
		uint64_t largest, reserved;
	} caps = {0};
	struct virtgpu_get_caps g = {
		.cap_set_id = BSLT_CAPSET_ID, .cap_set_ver = 1, .addr = (uintptr_t)&caps, .size = sizeof caps,
	};
	char driver[16] = "";
	struct drm_version_ v = {.name = driver, .name_len = sizeof driver - 1};

	_Static_assert(sizeof caps == BSLT_CAPSET_SIZE, "capset");
	if (drm(fd, DRM_IOCTL_VERSION_, &v) != 0 || strcmp(driver, "virtio_gpu") != 0)
		return false;
	if (drm(fd, VIRTGPU_IOCTL_GET_CAPS, &g) != 0 || caps.magic != BSLT_MAGIC || caps.major != BSLT_MAJOR)
		return false;
	s->max_region = caps.largest;
	return true;
}

int carrier_virtio_open(struct session *s, char why[BSLT_ERROR_TEXT_SIZE])
{
	DIR *d = opendir("/dev/dri");
	struct dirent *e;
	unsigned nodes = 0, denied = 0;

	s->ops = &carrier_virtio;
	s->default_arena = 10u << 20; /* about 12 MiB of the guest's memory, with ring and header */
	while (d && s->fd < 0 && (e = readdir(d)) != NULL) {
		char path[300];
		int fd;

		if (strncmp(e->d_name, "renderD", 7) != 0)
			continue;
		nodes++;
		snprintf(path, sizeof path, "/dev/dri/%s", e->d_name);
		if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0) {
			denied += errno == EACCES || errno == EPERM;
			continue;
		}
		if (is_ours(fd, s))
			s->fd = fd;
		else
			close(fd);
	}
	if (d)
		closedir(d);
	if (s->fd >= 0)
		return 0;
	snprintf(why, BSLT_ERROR_TEXT_SIZE, "no Basalt vGPU among %u render nodes in /dev/dri%s%s", nodes,
		 denied ? "; some may not be opened by this user" : "",
		 nodes ? "" : " (is the virtio_gpu kernel module loaded?)");
	return RES_NO_DEVICE;
}
