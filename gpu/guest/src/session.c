/* Opens and closes a session: region 0, its layout, and the handshake. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"

#define RING_SIZE (1u << 20)
#define SLOT_COUNT 256u
#define CHUNK_SIZE (256u << 10)

/* Reads BASALT_ARENA: a number of bytes, optionally with K, M or G. Returns 0 if it is not
 * set. */
static uint64_t arena_wanted(void)
{
	const char *p = getenv("BASALT_ARENA");
	uint64_t n = 0;

	if (!p)
		return 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > BSLT_MAX_REGION_SIZE)
			return 0;
	}
	switch (*p) {
	case 'K': n <<= 10; break;
	case 'M': n <<= 20; break;
	case 'G': n <<= 30; break;
	default: break;
	}
	return n;
}

static int make_region0(struct session *s)
{
	uint64_t arena = arena_wanted(), off = BSLT_HEADER_SIZE, states;
	int err;

	if (arena == 0)
		arena = s->default_arena;
	if (arena < 4 * CHUNK_SIZE)
		arena = 4 * CHUNK_SIZE;
	if (arena > (uint64_t)BSLT_MAX_CHUNKS * CHUNK_SIZE)
		arena = (uint64_t)BSLT_MAX_CHUNKS * CHUNK_SIZE;
	if (s->max_region && arena + (8u << 20) > s->max_region)
		arena = s->max_region > (16u << 20) ? s->max_region - (8u << 20) : 4 * CHUNK_SIZE;
	s->chunk_size = CHUNK_SIZE;
	s->chunk_count = (uint32_t)(arena / CHUNK_SIZE);
	s->slot_count = SLOT_COUNT;
	s->ring_mask = RING_SIZE - 1;
	s->ring = off, off += RING_SIZE;
	s->slots = off, off += (SLOT_COUNT + LANES) * BSLT_SLOT_SIZE;
	s->chunk_state = off, states = page_up(4ull * s->chunk_count), off += states;
	s->arena = page_up(off), off = s->arena + (uint64_t)s->chunk_count * CHUNK_SIZE;
	if ((err = s->ops->region_make(s, off, 0, &s->region0)) != 0)
		return err;
	/* So that a forked child cannot access its parent's channel. */
	(void)madvise(s->region0.base, s->region0.size, MADV_DONTFORK);
	*(uint32_t *)(void *)at(s, BSLT_OFF_MAGIC) = BSLT_MAGIC;
	*(uint16_t *)(void *)at(s, BSLT_OFF_MAJOR) = BSLT_MAJOR;
	*(uint16_t *)(void *)at(s, BSLT_OFF_MINOR) = BSLT_LIBRARY_MINOR;
	const struct { uint32_t off; uint64_t value; } words[] = {
		{BSLT_OFF_REGION_SIZE, s->region0.size}, {BSLT_OFF_RING, s->ring},
		{BSLT_OFF_RING_SIZE, RING_SIZE}, {BSLT_OFF_SLOTS, s->slots},
		{BSLT_OFF_SLOT_COUNT, SLOT_COUNT + LANES}, {BSLT_OFF_CHUNK_STATE, s->chunk_state},
		{BSLT_OFF_ARENA, s->arena}, {BSLT_OFF_CHUNK_SIZE, s->chunk_size},
		{BSLT_OFF_CHUNK_COUNT, s->chunk_count},
	};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		*(uint64_t *)(void *)at(s, words[i].off) = words[i].value;
	atomic_thread_fence(memory_order_release);
	return 0;
}

static void make_hello(uint8_t body[BSLT_HELLO_SIZE])
{
	const char *token = getenv("BASALT_TOKEN");
	uint16_t version[2] = {BSLT_MAJOR, BSLT_LIBRARY_MINOR};
	uint32_t pid = (uint32_t)getpid();

	memset(body, 0, BSLT_HELLO_SIZE);
	memcpy(body, version, 4);
	memcpy(body + 4, &pid, 4);
	memcpy(body + 8, program_invocation_short_name, strnlen(program_invocation_short_name, 63));
	if (token)
		memcpy(body + 72, token, strnlen(token, 64));
}

/* Reads the worker's error text in the header. */
static void header_text(struct session *s, char why[BSLT_ERROR_TEXT_SIZE])
{
	if (atomic_load_explicit(word32(s, BSLT_OFF_STATE), memory_order_acquire) != BSLT_STATE_DEAD)
		return;
	memcpy(why, at(s, BSLT_OFF_ERROR_TEXT), BSLT_ERROR_TEXT_SIZE - 1);
	why[BSLT_ERROR_TEXT_SIZE - 1] = 0;
}

/* Sends hello and region 0, with the offered windows, and waits for the answer. */
static int greet(struct session *s, char why[BSLT_ERROR_TEXT_SIZE])
{
	uint8_t body[BSLT_HELLO_SIZE];
	int err;

	make_hello(body);
	if ((err = s->ops->hello(s, body)) == 0 && (err = s->ops->region_announce(s, &s->region0)) == 0)
		err = s->ops->ready(s);
	if (err)
		header_text(s, why);
	if (err == RES_UNAVAILABLE && !why[0])
		snprintf(why, BSLT_ERROR_TEXT_SIZE, "the host's side of the vGPU ended or did not answer within %u s (carrier %s)",
			 BSLT_HEARTBEAT_DEAD_MILLIS / 1000, s->ops->name);
	return err;
}

/* Does the handshake with the worker, and agrees on the address window. */
static int greet_with_window(struct session *s, char why[BSLT_ERROR_TEXT_SIZE])
{
	struct window offers[BSLT_MAX_WINDOWS];
	int err;

	if ((err = windows_reserve(offers, why)) != 0)
		return err;
	windows_offer(s, offers);
	if ((err = greet(s, why)) != 0) {
		windows_release(offers);
		return err;
	}
	if ((err = window_accept(s, offers, why)) == 0)
		places_open(s);
	return err;
}

int session_open(struct session **out, bool memory, char why[BSLT_ERROR_TEXT_SIZE])
{
	const char *where = getenv("BASALT_GPU");
	struct session *s = calloc(1, sizeof *s);
	int err;

	why[0] = 0;
	if (!s)
		return RES_OUT_OF_MEMORY;
	s->fd = s->wake_fd = -1;
	pthread_mutex_init(&s->ring_lock, NULL);
	pthread_mutex_init(&s->chunk_lock, NULL);
	pthread_mutex_init(&s->region_lock, NULL);
	atomic_init(&s->looks, 1);
	if (!where || !*where)
		err = carrier_virtio_open(s, why);
	else if (strncmp(where, "unix:", 5) == 0)
		err = carrier_unix_open(s, where + 5, why);
	else {
		snprintf(why, BSLT_ERROR_TEXT_SIZE, "BASALT_GPU=%.100s: expected unix:PATH", where);
		err = RES_NO_DEVICE;
	}
	if (err) {
		free(s);
		return err;
	}
	err = lanes_make(s);
	if (!err)
		err = make_region0(s);
	if (!err) {
		for (uint32_t i = 0; i < s->slot_count; i++)
			s->slot_free[i / 64] |= 1ull << (i % 64);
		err = memory ? greet_with_window(s, why) : greet(s, why);
	}
	if (err) {
		session_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void session_report_failure(int err, const char why[BSLT_ERROR_TEXT_SIZE])
{
	static _Atomic bool reported;
	const char *v = getenv("BASALT_VERBOSE");
	bool mismatch = err == RES_DRIVER_MISMATCH && !atomic_exchange(&reported, true);

	if (mismatch || (v && *v))
		fprintf(stderr, "basalt: no vGPU (CUDA error %d) %s%s\n", err, why,
			err == RES_DRIVER_MISMATCH ? "; the guest tools on this machine's disc BASALT-TOOLS are those of its host" : "");
}

void session_close(struct session *s)
{
	window_close(s);
	if (s->region0.base)
		s->ops->region_drop(s, &s->region0, false);
	s->ops->close(s);
	free(s->lanes);
	free(s);
}

void session_abandon(struct session *s)
{
	/* Region 0 and the window are not mapped in the child (MADV_DONTFORK). */
	s->ops->close(s);
}
