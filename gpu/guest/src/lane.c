/* Limits the commands of each stream that are not done. If a stream is full, only its own
 * callers wait, before their command gets a place in the ring.
 *
 * A stream counts in the lane that its number selects. After every LANE_STRIDE units, a mark
 * (StreamMark) is enqueued in the stream when the previous mark is done. So at most two strides
 * are not done, which is as many commands as NVIDIA's driver holds. */
#include <stdlib.h>

#include "channel.h"

#define LANE_STRIDE 512u /* units; a power of two, so that a counter may wrap */
#define UNIT_BYTES 1024u  /* a command counts as one unit, plus one for each of these many bytes of data in it */

/* Waits until the previous mark is done, and enqueues the next one. */
static int mark(struct session *s, struct lane *l, uint64_t stream)
{
	uint32_t slot = s->slot_count + (uint32_t)(l - s->lanes);
	struct bslt_stream_mark a = {stream};
	int err = 0;

	pthread_mutex_lock(&l->lock);
	if (l->marked) {
		/* The answer does not matter: an old worker does not support marks, and the
		 * error of a context is returned by calls that query it. */
		(void)slot_await(s, slot);
		err = session_check(s);
	}
	if (err == 0) {
		atomic_store_explicit(word32(s, s->slots + slot * BSLT_SLOT_SIZE + BSLT_SLOT_STATE), BSLT_SLOT_PENDING,
				      memory_order_relaxed);
		err = ring_put(s, BSLT_OP_STREAM_MARK, 0, slot, &a, sizeof a, NULL, 0);
		l->marked = err == 0;
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

int stream_enter(struct session *s, uint64_t stream, uint32_t units)
{
	struct lane *l = &s->lanes[stream & (LANES - 1)];
	uint32_t before = atomic_fetch_add_explicit(&l->put, units, memory_order_relaxed);

	if (before / LANE_STRIDE == (before + units) / LANE_STRIDE)
		return 0;
	return mark(s, l, stream);
}

int stream_put(struct session *s, uint64_t stream, uint16_t op, uint16_t flags, uint32_t slot, const void *args,
	       uint32_t args_len, const void *inl, uint32_t inl_len)
{
	int err = stream_enter(s, stream, 1 + inl_len / UNIT_BYTES);

	return err ? err : ring_put(s, op, flags, slot, args, args_len, inl, inl_len);
}

void stream_drained(struct session *s, uint64_t stream, uint64_t at)
{
	struct lane *l = &s->lanes[stream & (LANES - 1)];

	pthread_mutex_lock(&l->drained_lock);
	l->drained_stream = stream;
	l->drained_at = at;
	pthread_mutex_unlock(&l->drained_lock);
}

bool stream_quiet(struct session *s, uint64_t stream)
{
	struct lane *l = &s->lanes[stream & (LANES - 1)];
	bool quiet;

	pthread_mutex_lock(&l->drained_lock);
	quiet = l->drained_stream == stream && l->drained_at == work_count(s);
	pthread_mutex_unlock(&l->drained_lock);
	return quiet;
}

uint32_t arena_units(const struct session *s, uint64_t len)
{
	uint64_t n = (len + s->chunk_size - 1) / s->chunk_size;
	uint64_t half = s->chunk_count / 2 ? s->chunk_count / 2 : 1;

	return n >= half ? 2 * LANE_STRIDE : (uint32_t)(n * 2 * LANE_STRIDE / half);
}

int lanes_make(struct session *s)
{
	if (!(s->lanes = aligned_alloc(sizeof(struct lane), LANES * sizeof(struct lane))))
		return RES_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < LANES; i++) {
		atomic_init(&s->lanes[i].put, 0);
		s->lanes[i].marked = false;
		pthread_mutex_init(&s->lanes[i].lock, NULL);
		s->lanes[i].drained_stream = 0; /* no stream's number */
		pthread_mutex_init(&s->lanes[i].drained_lock, NULL);
	}
	return 0;
}
