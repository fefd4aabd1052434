/* Completion slots. A waiter spins for some tens of microseconds, and then sleeps. */
#include <sched.h>

#include "channel.h"

#define SPIN_NANOS 50000u
/* Minimum and maximum number of polls of a slot between two yields: about 0.1 and 3 us. */
#define MIN_LOOKS 4u
#define MAX_LOOKS 128u
/* Less than the time that another thread uses if it runs during a yield. */
#define ALONE_NANOS 1500u
#define BLOCK_MILLIS 200 /* interval at which a sleeping waiter checks that the worker is alive */

int slot_take(struct session *s, uint32_t *slot)
{
	struct heartbeat seen = {0, 0};
	unsigned step = 0;
	int err;

	for (;;) {
		for (uint32_t w = 0; w * 64 < s->slot_count; w++) {
			uint64_t bits = atomic_load_explicit(&s->slot_free[w], memory_order_relaxed);

			while (bits) {
				int b = __builtin_ctzll(bits);

				if (!atomic_compare_exchange_weak_explicit(&s->slot_free[w], &bits, bits & ~(1ull << b),
									   memory_order_acquire, memory_order_relaxed))
					continue;
				*slot = w * 64 + (uint32_t)b;
				atomic_store_explicit(word32(s, s->slots + *slot * BSLT_SLOT_SIZE + BSLT_SLOT_STATE),
						      BSLT_SLOT_PENDING, memory_order_relaxed);
				return 0;
			}
		}
		if ((err = heartbeat_check(s, &seen)) != 0)
			return err;
		backoff(&step);
	}
}

void slot_give(struct session *s, uint32_t slot)
{
	atomic_fetch_or_explicit(&s->slot_free[slot / 64], 1ull << (slot % 64), memory_order_release);
}

/* Yields to other threads: if there are few processors, the worker may be waiting for this one.
 * If no other thread has run, the number of polls is increased, because the worker then has its
 * own processor. */
static void yield_processor(struct session *s, uint64_t now, uint32_t looks)
{
	sched_yield();
	if (now_nanos() - now >= ALONE_NANOS)
		looks = MIN_LOOKS;
	else if (looks < MAX_LOOKS)
		looks *= 2;
	atomic_store_explicit(&s->looks, looks, memory_order_relaxed);
}

static bool spin(struct session *s, _Atomic uint32_t *state)
{
	uint64_t end = 0, now;

	for (;;) {
		uint32_t looks = atomic_load_explicit(&s->looks, memory_order_relaxed);

		for (uint32_t i = 0; i < looks; i++) {
			if (atomic_load_explicit(state, memory_order_acquire) == BSLT_SLOT_DONE)
				return true;
			relax();
		}
		now = now_nanos();
		if (end == 0)
			end = now + SPIN_NANOS;
		else if (now > end)
			return false;
		yield_processor(s, now, looks);
	}
}

/* Sleeps until the slot is completed. Returns 0, or the error because of which it never will
 * be. */
static int sleep_on(struct session *s, _Atomic uint32_t *state)
{
	struct heartbeat seen = {0, 0};
	uint32_t expect = BSLT_SLOT_PENDING;
	int err;

	atomic_compare_exchange_strong(state, &expect, BSLT_SLOT_SLEEPING);
	while (atomic_load_explicit(state, memory_order_acquire) != BSLT_SLOT_DONE) {
		s->ops->block(s, state, BLOCK_MILLIS);
		if (atomic_load_explicit(state, memory_order_acquire) == BSLT_SLOT_DONE)
			break;
		if ((err = heartbeat_check(s, &seen)) != 0) {
			/* The worker may have answered just before it ended. */
			if (atomic_load_explicit(state, memory_order_acquire) == BSLT_SLOT_DONE)
				break;
			return err;
		}
	}
	return 0;
}

/* Waits for the slot's answer. *over becomes true if the slot was completed, and false if the
 * session has ended. */
static struct answer await(struct session *s, uint32_t slot, bool *over)
{
	uint64_t off = s->slots + slot * BSLT_SLOT_SIZE;
	_Atomic uint32_t *state = word32(s, off + BSLT_SLOT_STATE);
	struct answer a = {0, 0, 0};

	*over = spin(s, state) || (a.result = sleep_on(s, state)) == 0;
	if (!*over)
		return a;
	a.result = (int)atomic_load_explicit(word32(s, off + BSLT_SLOT_RESULT), memory_order_relaxed);
	a.value0 = atomic_load_explicit(word64(s, off + BSLT_SLOT_VALUE0), memory_order_relaxed);
	a.value1 = atomic_load_explicit(word64(s, off + BSLT_SLOT_VALUE1), memory_order_relaxed);
	return a;
}

struct answer slot_await(struct session *s, uint32_t slot)
{
	bool over;

	return await(s, slot, &over);
}

struct answer slot_wait(struct session *s, uint32_t slot)
{
	bool over;
	struct answer a = await(s, slot, &over);

	if (over)
		slot_give(s, slot); /* otherwise it stays allocated, because a session that has ended does not need it */
	return a;
}

struct answer call(struct session *s, uint16_t op, const void *args, uint32_t args_len)
{
	struct answer a = {0, 0, 0};
	uint32_t slot;

	if ((a.result = slot_take(s, &slot)) != 0)
		return a;
	if ((a.result = ring_put(s, op, 0, slot, args, args_len, NULL, 0)) != 0) {
		slot_give(s, slot);
		return a;
	}
	return slot_wait(s, slot);
}
