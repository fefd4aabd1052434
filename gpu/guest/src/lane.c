/* What each stream has under way: a stream that is full makes its own callers
 * wait, before their command takes a place in the ring, and nobody else.
 *
 * A stream counts in the lane that its number names. Whenever LANE_STRIDE units
 * more have been put, a mark (StreamMark) goes into the stream before them, once
 * the mark before it is done: so at most two strides are under way, as many
 * commands as a driver on a card holds. */
#include <stdlib.h>

#include "channel.h"

#define LANE_STRIDE 512u /* units; a power of two, so that a counter may wrap */
#define UNIT_BYTES 1024u  /* a command is one unit, and one more for so many bytes inside it */

/* Waits until the mark before is done, and puts the next. */
static int mark(struct session *s, struct lane *l, uint64_t stream)
{
	uint32_t slot = s->slot_count + (uint32_t)(l - s->lanes);
	struct bslt_stream_mark a = {stream};
	int err = 0;

	pthread_mutex_lock(&l->lock);
	if (l->marked) {
		/* Whatever the answer is: an old worker knows no marks, and the
		 * error of a context is for those who ask about it. */
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
