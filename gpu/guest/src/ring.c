/* Enqueues commands in the ring. */
#include <string.h>

#include "channel.h"

/* An entry never wraps, and a NOP fills the rest of the ring. The rest must have room for the
 * header of the NOP, so an entry must not leave exactly 8 bytes either. */
uint64_t ring_padding(uint64_t head, uint64_t ring_size, uint64_t length)
{
	uint64_t rest = ring_size - (head & (ring_size - 1));

	if (length > rest || rest - length == 8)
		return rest;
	return 0;
}

static void ring_doorbell(struct session *s)
{
	_Atomic uint32_t *sleeps = word32(s, BSLT_OFF_WORKER_SLEEPS);
	uint32_t nap;

	/* Pairs with the worker's fence between setting worker_sleeps and reading head. */
	atomic_thread_fence(memory_order_seq_cst);
	nap = atomic_load_explicit(sleeps, memory_order_relaxed);
	if (nap == 0)
		return;
	s->ops->kick(s);
	/* One kick for each time that it sleeps. Comparing the number prevents clearing the
	 * word for its next sleep. */
	if (worker_minor(s) >= 3)
		atomic_compare_exchange_strong(sleeps, &nap, 0);
}

/* Waits until need bytes are free. The caller holds ring_lock; other threads could not enqueue
 * anything either. */
static int ring_room(struct session *s, uint64_t need)
{
	uint64_t size = s->ring_mask + 1;
	struct heartbeat seen = {0, 0};
	unsigned step = 0;

	for (;;) {
		uint64_t tail = atomic_load_explicit(word64(s, BSLT_OFF_TAIL), memory_order_acquire);
		int err;

		if (s->head - tail <= size && size - (s->head - tail) >= need)
			return 0;
		if (s->head - tail > size) {
			session_die(s, RES_UNAVAILABLE); /* the tail is beyond the head */
			return RES_UNAVAILABLE;
		}
		if ((err = heartbeat_check(s, &seen)) != 0)
			return err;
		ring_doorbell(s);
		backoff(&step);
	}
}

static void put_header(uint8_t *p, uint64_t length, uint16_t op, uint16_t flags, uint32_t slot, uint32_t inl_len)
{
	struct bslt_entry e = {(uint32_t)length, op, flags, slot, inl_len};

	memcpy(p, &e, sizeof e);
}

uint64_t work_count(struct session *s)
{
	return atomic_load_explicit(&s->work, memory_order_relaxed);
}

uint64_t staged_count(struct session *s)
{
	return atomic_load_explicit(&s->staged, memory_order_relaxed);
}

/* Counts a command that nobody waits for. Staged copies to the device are counted separately,
 * because a program cannot observe their completion: they only change what later commands
 * read. */
static void count(struct session *s, uint16_t op, uint16_t flags)
{
	switch (op) {
	case BSLT_OP_MEM_FREE:
	case BSLT_OP_STREAM_CREATE:
	case BSLT_OP_EVENT_CREATE: return;
	case BSLT_OP_COPY_HTOD:
		if (!(flags & BSLT_FLAG_RELEASE_CHUNKS))
			break;
		/* fall through */
	case BSLT_OP_COPY_HTOD_INLINE: atomic_store_explicit(&s->staged, staged_count(s) + 1, memory_order_relaxed); return;
	}
	atomic_store_explicit(&s->work, work_count(s) + 1, memory_order_relaxed);
}

int ring_put(struct session *s, uint16_t op, uint16_t flags, uint32_t slot, const void *args, uint32_t args_len,
	     const void *inl, uint32_t inl_len)
{
	uint64_t length = (BSLT_ENTRY_HEADER_SIZE + (uint64_t)args_len + inl_len + 7) & ~7ull;
	uint64_t pad;
	uint8_t *p;
	int err = atomic_load_explicit(&s->dead, memory_order_relaxed);

	if (err)
		return err;
	pthread_mutex_lock(&s->ring_lock);
	pad = ring_padding(s->head, s->ring_mask + 1, length);
	if ((err = ring_room(s, pad + length)) != 0) {
		pthread_mutex_unlock(&s->ring_lock);
		return err;
	}
	if (pad) {
		put_header(at(s, s->ring + (s->head & s->ring_mask)), pad, BSLT_OP_NOP, 0, BSLT_NO_SLOT,
			   (uint32_t)(pad - BSLT_ENTRY_HEADER_SIZE));
		s->head += pad;
	}
	p = at(s, s->ring + (s->head & s->ring_mask));
	put_header(p, length, op, flags, slot, inl_len);
	if (args_len)
		memcpy(p + BSLT_ENTRY_HEADER_SIZE, args, args_len);
	if (inl_len)
		memcpy(p + BSLT_ENTRY_HEADER_SIZE + args_len, inl, inl_len);
	s->head += length;
	if (slot == BSLT_NO_SLOT)
		count(s, op, flags);
	if (op == BSLT_OP_STREAM_SET_ATTRIBUTE || op == BSLT_OP_STREAM_COPY_ATTRIBUTES)
		atomic_store_explicit(&s->stream_attributes, true, memory_order_relaxed);
	atomic_store_explicit(word64(s, BSLT_OFF_HEAD), s->head, memory_order_release);
	pthread_mutex_unlock(&s->ring_lock);
	ring_doorbell(s);
	return 0;
}
