/* The staging arena: chunks of region 0. This side takes chunks under one lock;
 * the worker may free them (FlagReleaseChunks).
 *
 * Copies in a blocked stream keep their chunks for an unlimited time, and such streams may
 * hold all chunks. So every wait for chunks is short. */
#include "channel.h"

/* Longer than the worker needs for the copies that were enqueued before. */
#define PATIENCE_NANOS 2000000u

static _Atomic uint32_t *chunk(struct session *s, uint32_t i)
{
	return word32(s, s->chunk_state + 4ull * i);
}

static bool is_free(struct session *s, uint32_t i)
{
	return atomic_load_explicit(chunk(s, i), memory_order_acquire) == BSLT_CHUNK_FREE;
}

/* Returns the number of consecutive free chunks from start on, at most want. */
static uint32_t free_run(struct session *s, uint32_t start, uint32_t want)
{
	uint32_t n = 0;

	while (n < want && start + n < s->chunk_count && is_free(s, start + n))
		n++;
	return n;
}

/* Allocates min to want consecutive chunks and returns their number, or 0 if there are not
 * enough now. It uses the first ones in the arena, because recently used chunks are in this
 * processor's caches. */
static uint32_t allocate_chunks(struct session *s, uint32_t min, uint32_t want, uint32_t *first)
{
	uint32_t n = 0, i = 0;

	pthread_mutex_lock(&s->chunk_lock);
	while (i < s->chunk_count && (n = free_run(s, i, want)) < min)
		i += n + 1; /* the chunk after the run is in use, or the arena ends */
	if (n < min)
		n = 0;
	for (uint32_t k = 0; k < n; k++)
		atomic_store_explicit(chunk(s, i + k), BSLT_CHUNK_BUSY, memory_order_relaxed);
	*first = i;
	pthread_mutex_unlock(&s->chunk_lock);
	return n;
}

static struct piece piece_of(struct session *s, uint32_t first, uint32_t n, uint64_t len)
{
	struct piece p = {.off = s->arena + (uint64_t)first * s->chunk_size, .len = len};

	if (p.len > n * s->chunk_size)
		p.len = n * s->chunk_size;
	p.bytes = at(s, p.off);
	return p;
}

/* Allocates chunks, and waits for them up to PATIENCE_NANOS; then it returns RES_NOT_READY.
 * It does not wait if an earlier wait failed and no chunks became free since. */
static int allocate_soon(struct session *s, uint32_t min, uint32_t want, uint64_t len, struct piece *p)
{
	bool crowded = atomic_load_explicit(&s->crowded, memory_order_relaxed);
	struct heartbeat seen = {0, 0};
	unsigned step = 0;
	uint32_t first, n;
	uint64_t end = 0;
	int err;

	while ((n = allocate_chunks(s, min, want, &first)) == 0) {
		uint64_t now = now_nanos();

		if ((err = heartbeat_check(s, &seen)) != 0)
			return err;
		if (end == 0)
			end = now + PATIENCE_NANOS;
		if (crowded || now > end) {
			atomic_store_explicit(&s->crowded, true, memory_order_relaxed);
			return RES_NOT_READY;
		}
		backoff(&step);
	}
	if (crowded)
		atomic_store_explicit(&s->crowded, false, memory_order_relaxed);
	*p = piece_of(s, first, n, len);
	return 0;
}

static uint32_t chunks(struct session *s, uint64_t len)
{
	uint64_t n = (len + s->chunk_size - 1) / s->chunk_size;

	return n == 0 ? 1 : n > s->chunk_count ? s->chunk_count : (uint32_t)n;
}

int arena_take(struct session *s, uint64_t want, struct piece *p)
{
	return allocate_soon(s, 1, chunks(s, want), want, p);
}

bool arena_try(struct session *s, uint64_t want, struct piece *p)
{
	uint32_t first, n = allocate_chunks(s, 1, chunks(s, want), &first);

	if (n)
		*p = piece_of(s, first, n, want);
	return n != 0;
}

void arena_free(struct session *s, const struct piece *p)
{
	uint32_t first = (uint32_t)((p->off - s->arena) / s->chunk_size);

	for (uint32_t n = chunks(s, p->len); n > 0; n--)
		atomic_store_explicit(chunk(s, first + n - 1), BSLT_CHUNK_FREE, memory_order_release);
}

static int region_piece(struct session *s, uint64_t len, struct piece *p)
{
	int err;

	*p = (struct piece){.len = len};
	if ((err = session_region(s, len, &p->region)) != 0)
		return err;
	p->bytes = p->region.base;
	p->number = p->region.number;
	return 0;
}

/* Allocates a piece of at least min chunks, or a region. If there is neither, it waits. */
static int allocate_piece(struct session *s, uint32_t min, uint64_t len, struct piece *p)
{
	unsigned step = 0;
	int err;

	for (;;) {
		if ((err = allocate_soon(s, min, chunks(s, len), len, p)) == RES_NOT_READY)
			err = region_piece(s, len, p);
		if (err != RES_OUT_OF_MEMORY)
			return err;
		backoff(&step);
	}
}

int piece_get(struct session *s, uint64_t len, struct piece *p)
{
	/* At most a quarter of the arena, so that two waiters cannot block each other. */
	return len <= s->chunk_count / 4 * s->chunk_size ? allocate_piece(s, chunks(s, len), len, p) : region_piece(s, len, p);
}

int piece_get_some(struct session *s, uint64_t want, struct piece *p)
{
	return allocate_piece(s, 1, want, p);
}

void piece_put(struct session *s, struct piece *p)
{
	if (p->number)
		session_region_free(s, &p->region);
	else
		arena_free(s, p);
}
