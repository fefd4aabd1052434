/* Unit tests of the channel that need no worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "md2.h"
#include "reply.h"
#include "state.h"

static int failures;
#define EXPECT(c)                                                                                                      \
	do {                                                                                                           \
		if (!(c)) {                                                                                            \
			printf("%s:%d: expected %s\n", __FILE__, __LINE__, #c);                                        \
			failures++;                                                                                    \
		}                                                                                                      \
	} while (0)

static int kicks;
static void no_kick(struct session *s) { (void)s, kicks++; }
static bool not_gone(struct session *s) { (void)s; return false; }
static void no_block(struct session *s, _Atomic uint32_t *state, int millis) { (void)s, (void)state, (void)millis; }
static const struct carrier_ops quiet = {.kick = no_kick, .gone = not_gone, .block = no_block};

/* Creates a session in ordinary memory: a header, a ring of 4096 bytes, and a state word for
 * each of 8 chunks of 4096 bytes. */
static struct session *fake(void)
{
	struct session *s = calloc(1, sizeof *s);

	s->ops = &quiet;
	s->region0.size = 16 * 4096;
	s->region0.base = aligned_alloc(4096, s->region0.size);
	memset(s->region0.base, 0, s->region0.size);
	s->ring = 4096;
	s->ring_mask = 4095;
	s->slots = 8192;
	s->slot_count = 4;
	s->slot_free[0] = 0xf;
	s->chunk_state = 12288;
	s->chunk_count = 8;
	s->chunk_size = 4096;
	s->arena = 4 * 4096;
	pthread_mutex_init(&s->ring_lock, NULL);
	pthread_mutex_init(&s->chunk_lock, NULL);
	atomic_init(&s->looks, 4);
	return s;
}

static void drop(struct session *s)
{
	free(s->lanes);
	free(s->region0.base);
	free(s);
}

/* Reads the ring as a worker does. Every entry must contain its number. */
static void ring_wraps(void)
{
	struct session *s = fake();
	uint64_t tail = 0, expect = 0;
	uint8_t inl[256];

	memset(inl, 0xab, sizeof inl);
	for (uint64_t i = 0; i < 5000; i++) {
		struct bslt_copy_htod_inline a = {i, ~i};
		uint32_t n = (uint32_t)(i * 7 % sizeof inl);

		EXPECT(ring_put(s, BSLT_OP_COPY_HTOD_INLINE, 0, BSLT_NO_SLOT, &a, sizeof a, inl, n) == 0);
		while (tail != s->head) {
			struct bslt_entry e;

			EXPECT(4096 - tail % 4096 >= sizeof e);
			memcpy(&e, at(s, s->ring + tail % 4096), sizeof e);
			EXPECT(e.length % 8 == 0 && e.length >= sizeof e && e.length <= s->head - tail);
			EXPECT(tail % 4096 + e.length <= 4096);
			if (e.opcode != BSLT_OP_NOP) {
				memcpy(&a, at(s, s->ring + tail % 4096 + sizeof e), sizeof a);
				EXPECT(a.stream == expect && a.dst == ~expect);
				expect++;
			}
			tail += e.length;
		}
		*word64(s, BSLT_OFF_TAIL) = tail;
	}
	EXPECT(expect == 5000);
	drop(s);
}

/* A worker that numbers its sleeps is kicked once for each sleep. Another worker is kicked for
 * each command. */
static void doorbell(void)
{
	struct session *s = fake();
	struct bslt_ctx_synchronize a = {1};
	const struct { uint32_t minor, naps; int rings; } cases[] = {{0, 1, 3}, {2, 1, 3}, {3, 1, 1}, {3, 2, 2}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		kicks = 0;
		*word32(s, BSLT_OFF_WORKER_MINOR) = cases[i].minor;
		for (uint32_t nap = 0; nap < cases[i].naps; nap++) {
			*word32(s, BSLT_OFF_WORKER_SLEEPS) = 7 + nap;
			for (int k = 0; k < 3; k++)
				EXPECT(ring_put(s, BSLT_OP_CTX_SYNCHRONIZE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0) == 0);
		}
		EXPECT(kicks == cases[i].rings);
		*word32(s, BSLT_OFF_WORKER_SLEEPS) = 0;
		EXPECT(ring_put(s, BSLT_OP_CTX_SYNCHRONIZE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0) == 0);
		EXPECT(kicks == cases[i].rings);
	}
	drop(s);
}

static void padding(void)
{
	EXPECT(ring_padding(0, 4096, 4096) == 0);
	EXPECT(ring_padding(4096 - 64, 4096, 64) == 0);
	EXPECT(ring_padding(4096 - 64, 4096, 56) == 64); /* a header does not fit into 8 bytes */
	EXPECT(ring_padding(4096 - 64, 4096, 48) == 0);
	EXPECT(ring_padding(3 * 4096 - 32, 4096, 40) == 32);
}

/* A session that has ended never blocks a producer, even if the ring is full. */
static void dead_session(void)
{
	struct session *s = fake();
	struct bslt_ctx_synchronize a = {1};
	int err = 0;

	*word32(s, BSLT_OFF_STATE) = BSLT_STATE_DEAD;
	*word32(s, BSLT_OFF_ERROR) = 700;
	for (int i = 0; i < 1000 && !err; i++)
		err = ring_put(s, BSLT_OP_CTX_SYNCHRONIZE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	EXPECT(err == 700);
	EXPECT(call(s, BSLT_OP_CTX_SYNCHRONIZE, &a, sizeof a).result == 700);
	drop(s);
}

/* A tail beyond the head, which only a broken worker writes, ends the session. */
static void mad_tail(void)
{
	struct session *s = fake();
	struct bslt_ctx_synchronize a = {1};

	*word64(s, BSLT_OFF_TAIL) = 1 << 20;
	EXPECT(ring_put(s, BSLT_OP_CTX_SYNCHRONIZE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0) == RES_UNAVAILABLE);
	EXPECT(session_check(s) == RES_UNAVAILABLE);
	drop(s);
}

/* A heartbeat that advances keeps the session alive; one that stops ends it. */
static void heartbeat(void)
{
	struct session *s = fake();
	struct heartbeat p = {0, 0};
	uint64_t limit = BSLT_HEARTBEAT_DEAD_MILLIS * 1000000ull + 1;

	EXPECT(heartbeat_check(s, &p) == 0 && p.since != 0);
	p.since -= limit;
	*word64(s, BSLT_OFF_HEARTBEAT) = 1;
	EXPECT(heartbeat_check(s, &p) == 0);
	p.since -= limit;
	EXPECT(heartbeat_check(s, &p) == RES_UNAVAILABLE);
	EXPECT(session_check(s) == RES_UNAVAILABLE);
	drop(s);
}

static void arena(void)
{
	struct session *s = fake();
	struct piece p[9], q;
	int n = 0;

	while (n < 9 && arena_try(s, 4096, &p[n]))
		n++;
	EXPECT(n == 8);
	EXPECT(!arena_try(s, 1, &q));
	EXPECT(!s->crowded && arena_take(s, 1, &q) == RES_NOT_READY && s->crowded); /* the wait is limited */
	arena_free(s, &p[2]);
	EXPECT(arena_take(s, 1, &q) == 0 && q.off == p[2].off && !s->crowded);
	arena_free(s, &q);
	arena_free(s, &p[2]);
	arena_free(s, &p[3]);
	EXPECT(arena_try(s, 3 * 4096, &q)); /* only two free chunks are adjacent, so the piece is shorter */
	EXPECT(q.off == p[2].off && q.len == 2 * 4096);
	*word32(s, s->chunk_state + 4 * 7) = BSLT_CHUNK_FREE; /* the worker frees one */
	EXPECT(arena_take(s, 100, &q) == 0 && q.off == p[7].off && q.len == 100);
	drop(s);
}

static void slots(void)
{
	struct session *s = fake();
	uint32_t slot[4];

	for (int i = 0; i < 4; i++)
		EXPECT(slot_take(s, &slot[i]) == 0);
	slot_give(s, slot[2]);
	EXPECT(slot_take(s, &slot[0]) == 0 && slot[0] == slot[2]);
	drop(s);
}

/* Writes a valid record of a module. The tests decode it, every truncation of it, and it with
 * every byte changed. */
static size_t module_record(uint8_t *b)
{
	uint32_t words[] = {1, 0, 1, 1, 3, 0x636261, 1, 0, 8, 1024, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'g', 0, 0x1000, 0, 16, 0, 2, 'o' | 'k' << 8, 0};

	words[1] = sizeof words;
	memcpy(b, words, sizeof words);
	return sizeof words;
}

/* Writes a status as in gpu/abi/reply.go: without what was added later (0), without events (1),
 * or with all (2). */
static size_t status_record(uint8_t *b, int more)
{
	uint32_t words[] = {
		1, 0, 100, 0, 60, 0, 50, 1, 40, 7000, 1, 0, /* memory, utilization, sensors, one process */
		7, 0, 60, 0, 1, 'a',
		2, BSLT_READING_CLOCK_SM, 0, 1410, 0, 9999, 0, 1, 1, /* an unknown reading */
		1, 7, 50, 11, 0, 12, 0, 13, 0, 14, 0,
		1, 15, 0, 33, 0,
		1, 16, 0, 31, 7, /* an event */
	};
	static const size_t added[] = {30 * 4, 5 * 4, 0};
	size_t n = sizeof words - added[more];

	words[1] = (uint32_t)n;
	memcpy(b, words, n);
	return n;
}

static void statuses(void)
{
	uint8_t b[256];
	struct vgpu_status v;
	size_t n = status_record(b, 0);

	EXPECT(decode_vgpu_status(b, n, &v) == 0);
	EXPECT(v.process_count == 1 && v.processes[0].vram == 60 && v.reading_count == 0 && v.accounted_count == 0 && v.sample_count == 0);
	free_vgpu_status(&v);
	n = status_record(b, 1);
	EXPECT(decode_vgpu_status(b, n, &v) == 0);
	EXPECT(v.reading_count == 2 && v.readings[0].key == BSLT_READING_CLOCK_SM && v.readings[0].value == 1410 && v.readings[1].value == 0x100000001);
	EXPECT(v.accounted_count == 1 && v.accounted[0].pid == 7 && v.accounted[0].gpu_utilization == 50 && v.accounted[0].start == 11);
	EXPECT(v.accounted[0].end == 12 && v.accounted[0].gpu_nanos == 13 && v.accounted[0].peak_vram == 14);
	EXPECT(v.sample_count == 1 && v.samples[0].at == 15 && v.samples[0].gpu_utilization == 33 && v.event_count == 0);
	free_vgpu_status(&v);
	n = status_record(b, 2);
	EXPECT(decode_vgpu_status(b, n, &v) == 0);
	EXPECT(v.sample_count == 1 && v.event_count == 1 && v.events[0].at == 16 && v.events[0].xid == 31 && v.events[0].pid == 7);
	free_vgpu_status(&v);
	for (size_t i = 0; i < n; i++) {
		uint8_t bad[256];

		memcpy(bad, b, n);
		bad[i] ^= 0xff;
		if (decode_vgpu_status(bad, n, &v) == 0)
			free_vgpu_status(&v);
		EXPECT(decode_vgpu_status(b, i, &v) == -1);
	}
}

static void records(void)
{
	statuses();

	uint8_t good[256], bad[256];
	size_t n = module_record(good);
	struct module_info m;

	EXPECT(decode_module_info(good, n, &m) == 0);
	EXPECT(m.function_count == 1 && strcmp(m.functions[0].name, "abc") == 0 && m.functions[0].param_count == 1);
	EXPECT(m.functions[0].params[0].size == 8 && m.functions[0].attributes[0] == 1024);
	EXPECT(m.global_count == 1 && m.globals[0].address == 0x1000 && m.globals[0].size == 16);
	EXPECT(strcmp(m.info_log, "ok") == 0 && m.error_log[0] == 0);
	free_module_info(&m);
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);

		memcpy(exact, good, cut);
		EXPECT(decode_module_info(exact, cut, &m) == -1);
		free(exact);
	}
	for (size_t i = 0; i < n; i++) {
		struct device_info d;
		struct vgpu_status v;

		memcpy(bad, good, n);
		bad[i] ^= 0xff;
		if (decode_module_info(bad, n, &m) == 0)
			free_module_info(&m);
		if (decode_device_info(bad, n, &d) == 0)
			free_device_info(&d);
		if (decode_vgpu_status(bad, n, &v) == 0)
			free_vgpu_status(&v);
	}
}

struct device_info device;

/* The device reports all attributes as 1; the library must override some. */
static void attributes(void)
{
	static const int refused[] = {88, 91, 128, 132}, kept[] = {16, 19, 41, 83, 89, 95, 97, 102, 106, 127};
	int32_t ones[140];

	for (size_t i = 0; i < 140; i++)
		ones[i] = 1;
	device.attributes = ones;
	device.attribute_count = 140;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		EXPECT(device_attribute(refused[i]) == 0);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		EXPECT(device_attribute(kept[i]) == 1);
	EXPECT(device_attribute(131) == -1);
	EXPECT(device_attribute(140) == 0 && device_attribute(-1) == 0);
	device = (struct device_info){0};
}

/* Reports whether nothing is mapped at an address. It asks the kernel, because a sanitizer's
 * mmap may refuse the address. */
static bool is_free(uint64_t address)
{
	if (!pages_reserve(address, 4096))
		return false;
	(void)syscall(SYS_munmap, address, 4096);
	return true;
}

/* A session keeps the window that the worker chooses, and releases the others. */
static void windows(void)
{
	struct window offers[BSLT_MAX_WINDOWS], *last = offers;
	char why[BSLT_ERROR_TEXT_SIZE] = "";
	struct session *s = fake();

	EXPECT(windows_reserve(offers, why) == 0 && offers[0].base);
	windows_offer(s, offers);
	EXPECT(memcmp(at(s, BSLT_OFF_WINDOWS), offers, sizeof offers) == 0);
	while (last < offers + BSLT_MAX_WINDOWS - 1 && last[1].base)
		last++;
	for (struct window *w = offers; w <= last; w++)
		EXPECT(w->size >= BSLT_MIN_WINDOW && !is_free(w->base) && !is_free(w->base + w->size - 4096));
	memcpy(at(s, BSLT_OFF_WINDOW_BASE), last, sizeof *last);
	EXPECT(window_accept(s, offers, why) == 0 && s->window.base == last->base && s->window.size == last->size);
	for (struct window *w = offers; w <= last; w++)
		EXPECT(is_free(w->base) == (w != last));
	window_close(s);
	EXPECT(is_free(last->base) && s->window.size == 0);
	/* The worker chooses a window that was not offered. */
	EXPECT(windows_reserve(offers, why) == 0);
	memcpy(at(s, BSLT_OFF_WINDOW_BASE), (struct window[]){{offers[0].base, 4096}}, sizeof offers[0]);
	EXPECT(window_accept(s, offers, why) == RES_UNAVAILABLE && strstr(why, "not offered") && s->window.base == 0);
	EXPECT(is_free(offers[0].base));
	drop(s);
}

/* Addresses of the host part are allocated once, with a page between two, and used again only
 * if there are no others. With an older worker there are none. */
static void places(void)
{
	struct session *s = fake();
	uint64_t all[20], a;
	int n = 0;

	s->window = (struct window){0x400000000000, BSLT_MIN_WINDOW};
	pthread_mutex_init(&s->region_lock, NULL);
	places_open(s);
	EXPECT(s->host.size == 0 && place_take(s, 4096) == 0);
	atomic_store(word32(s, BSLT_OFF_WORKER_MINOR), 2);
	places_open(s);
	EXPECT(s->host.size == BSLT_MIN_WINDOW / BSLT_HOST_PART);
	EXPECT(s->host.base + s->host.size + BSLT_WINDOW_TAIL == s->window.base + s->window.size);
	while (n < 20 && (a = place_take(s, 4u << 20)) != 0) {
		EXPECT(a % (2u << 20) == 0 && a >= s->host.base && a + (4u << 20) <= s->host.base + s->host.size);
		for (int i = 0; i < n; i++)
			EXPECT(a > all[i] + (4u << 20) || all[i] > a + (4u << 20));
		all[n++] = a;
	}
	EXPECT(n >= 10 && n < 20 && place_take(s, s->host.size + 1) == 0);
	place_give(s, all[3]);
	place_give(s, all[1]);
	place_give(s, 12345);
	EXPECT(place_take(s, 4u << 20) == all[1]);
	EXPECT(place_take(s, 4u << 20) == all[3]);
	EXPECT(place_take(s, 4u << 20) == 0);
	for (int i = 0; i < n; i++)
		place_give(s, all[i]);
	EXPECT(s->taken_count == 0 && (a = place_take(s, 4096)) != 0);
	place_give(s, a);
	EXPECT(place_take(s, 4096) != a);
	drop(s);
}

/* Device addresses outside of the window are accepted only if this process has nothing mapped
 * there. */
static void outside_the_window(void)
{
	static char mine[3 * 4096];
	struct window offers[BSLT_MAX_WINDOWS], w = {.size = BSLT_MIN_WINDOW};
	char why[BSLT_ERROR_TEXT_SIZE];
	struct range r, found;
	uint64_t far;

	/* Addresses that are free with every sanitizer. */
	EXPECT(windows_reserve(offers, why) == 0);
	windows_release(offers);
	far = offers[0].base + (1u << 20);
	w.base = offers[0].base + (1u << 30);
	ranges_window(&w, &(struct window){0, 0});
	r = (struct range){.address = w.base + 100, .size = 50};
	EXPECT(range_add(SPACE_DEVICE, &r) == 0 && range_find(SPACE_DEVICE, r.address + 49, &found));
	EXPECT(!range_find(SPACE_HOST, r.address, &found) && !range_find(SPACE_DEVICE, far, &found));
	EXPECT(in_window(w.base, 1) && in_window(w.base - 1, 2) && !in_window(w.base - 1, 1));
	EXPECT(in_window(w.base + w.size - 1, 1) && !in_window(w.base + w.size, 1) && in_window(1, UINT64_MAX));
	r = (struct range){.address = (uintptr_t)mine + 4096, .size = 8};
	EXPECT(range_add(SPACE_DEVICE, &r) == CUDA_ERROR_OUT_OF_MEMORY && !range_find(SPACE_DEVICE, r.address, &found));
	r = (struct range){.address = w.base + w.size - 4, .size = UINT64_MAX};
	EXPECT(range_add(SPACE_DEVICE, &r) == CUDA_ERROR_OUT_OF_MEMORY);
	/* Ranges in one page, and one that extends from a reserved page into the next. */
	for (uint64_t at = far; at < far + 3 * 4096; at += 1000) {
		r = (struct range){.address = at, .size = 900};
		EXPECT(range_add(SPACE_DEVICE, &r) == 0 && range_find(SPACE_DEVICE, at + 899, &found));
		EXPECT(!is_free((at + 899) & ~4095ull));
	}
	EXPECT(is_free(far - 4096) && is_free(far + 4 * 4096));
	/* A GPU may use the same address again. */
	EXPECT(range_take(SPACE_DEVICE, far, &r) && range_add(SPACE_DEVICE, &r) == 0);
}

/* Enqueues a command in stream 5 and removes it from the ring. Returns the number of marks
 * before it. */
static int put_in_stream(struct session *s, uint32_t inl_len)
{
	static const uint8_t inl[BSLT_MAX_INLINE / 2];
	uint64_t tail = s->head;
	int marks = 0;

	EXPECT(stream_put(s, 5, BSLT_OP_COPY_HTOD_INLINE, 0, BSLT_NO_SLOT, NULL, 0, inl, inl_len) == 0);
	while (tail != s->head) {
		struct bslt_entry e;

		memcpy(&e, at(s, s->ring + tail % 4096), sizeof e);
		if (e.opcode == BSLT_OP_STREAM_MARK) {
			EXPECT(e.slot == s->slot_count + 5);
			marks++;
		}
		tail += e.length;
	}
	atomic_store(word64(s, BSLT_OFF_TAIL), s->head);
	return marks;
}

/* There is a mark after every 512 units, and none before the previous one is done. */
static void lanes(void)
{
	struct session *s = fake();
	_Atomic uint32_t *state;

	EXPECT(lanes_make(s) == 0);
	state = word32(s, s->slots + (s->slot_count + 5) * BSLT_SLOT_SIZE + BSLT_SLOT_STATE);
	for (int i = 1; i < 512; i++)
		EXPECT(put_in_stream(s, 0) == 0);
	EXPECT(put_in_stream(s, 0) == 1);
	EXPECT(atomic_load(state) == BSLT_SLOT_PENDING);
	for (int i = 1; i < 171; i++)
		EXPECT(put_in_stream(s, 2048) == 0); /* each counts as 3 units */
	EXPECT(atomic_load(state) == BSLT_SLOT_PENDING);
	atomic_store(state, BSLT_SLOT_DONE);
	EXPECT(put_in_stream(s, 2048) == 1);
	for (int i = 1; i < 511; i++)
		EXPECT(put_in_stream(s, 0) == 0);
	session_die(s, RES_UNAVAILABLE); /* waits for a mark end with the session */
	atomic_store(word32(s, BSLT_OFF_STATE), BSLT_STATE_DEAD);
	EXPECT(stream_enter(s, 5, 1) == RES_UNAVAILABLE);
	EXPECT(arena_units(s, 1) == 256 && arena_units(s, 4 * 4096) == 1024 && arena_units(s, 1 << 20) == 1024);
	drop(s);
}

/* Which commands make a stream count as busy, and which do not. */
static void quiet_streams(void)
{
	struct session *s = fake();
	uint8_t args[64] = {0};
	const uint64_t stream = 7, same_lane = 7 + LANES;

	EXPECT(lanes_make(s) == 0);
	EXPECT(!stream_quiet(s, stream)); /* the command was not waited for yet */
	stream_drained(s, stream, work_count(s));
	EXPECT(stream_quiet(s, stream) && !stream_quiet(s, same_lane));
	EXPECT(ring_put(s, BSLT_OP_COPY_HTOD, BSLT_FLAG_RELEASE_CHUNKS, BSLT_NO_SLOT, args, sizeof(struct bslt_copy_htod), NULL, 0) == 0);
	EXPECT(ring_put(s, BSLT_OP_MEM_FREE, 0, BSLT_NO_SLOT, args, sizeof(struct bslt_mem_free), NULL, 0) == 0);
	EXPECT(ring_put(s, BSLT_OP_COPY_DTOH, 0, 1, args, sizeof(struct bslt_copy_dtoh), NULL, 0) == 0); /* the caller waits for it */
	EXPECT(stream_quiet(s, stream));
	const uint16_t work[] = {BSLT_OP_COPY_HTOD, BSLT_OP_COPY_DTOH, BSLT_OP_COPY_DTOD, BSLT_OP_MEMSET, BSLT_OP_LAUNCH,
				 BSLT_OP_EVENT_RECORD, BSLT_OP_GRAPH_LAUNCH, BSLT_OP_MEM_FREE_ASYNC};
	for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
		uint64_t before = work_count(s);

		EXPECT(ring_put(s, work[i], 0, BSLT_NO_SLOT, args, sizeof args, NULL, 0) == 0);
		EXPECT(!stream_quiet(s, stream));
		stream_drained(s, stream, before); /* a drain that was enqueued before the command */
		EXPECT(!stream_quiet(s, stream));
		stream_drained(s, stream, work_count(s));
		EXPECT(stream_quiet(s, stream));
	}
	stream_drained(s, same_lane, work_count(s));
	EXPECT(stream_quiet(s, same_lane) && !stream_quiet(s, stream));
	drop(s);
}

static bool is(const unsigned char digest[MD2_SIZE], const char *hex)
{
	char got[2 * MD2_SIZE + 1];

	for (int i = 0; i < MD2_SIZE; i++)
		snprintf(got + 2 * i, 3, "%02x", digest[i]);
	return strcmp(got, hex) == 0;
}

static void digests(void)
{
	/* RFC 1319, A.5 */
	static const struct { const char *text, *digest; } known[] = {
		{"", "8350e5a3e24c153df2275c9f80692773"},
		{"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
		{"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
		{"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
		{"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "da33def2a42df13975352846c30338cd"},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890", "d5976f79d83d3a0dc9806c3c66f3efd8"},
	};
	static const unsigned char key[] = "0123456789abcdef", text[] = "what do ya want for nothing?";
	unsigned char digest[MD2_SIZE];
	struct md2 m;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		md2_begin(&m);
		md2_add(&m, known[i].text, strlen(known[i].text));
		md2_end(&m, digest);
		EXPECT(is(digest, known[i].digest));
	}
	hmac_md2_begin(&m, key);
	md2_add(&m, text, 5);
	md2_add(&m, text + 5, sizeof text - 1 - 5);
	hmac_md2_end(&m, key, digest);
	EXPECT(is(digest, "b38e69d3bf3aaa8069e54da78294f026"));
}

int main(void)
{
	digests();
	attributes();
	windows();
	places();
	outside_the_window();
	padding();
	ring_wraps();
	doorbell();
	dead_session();
	mad_tail();
	heartbeat();
	arena();
	slots();
	lanes();
	quiet_streams();
	records();
	printf("unit: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
