/* Checks whether a session is alive, by the state that the worker reports, its heartbeat
 * and the other end of the carrier. Everything that waits for the worker calls these
 * functions. */
#include <time.h>

#include "channel.h"

uint64_t now_nanos(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void backoff(unsigned *step)
{
	struct timespec t = {0, 0};

	if ((*step)++ < 64) {
		relax();
		return;
	}
	t.tv_nsec = *step < 200 ? 20000 : 500000;
	nanosleep(&t, NULL);
}

void session_die(struct session *s, int result)
{
	int none = 0;

	atomic_compare_exchange_strong(&s->dead, &none, result);
}

int session_check(struct session *s)
{
	int dead = atomic_load_explicit(&s->dead, memory_order_relaxed);

	if (dead)
		return dead;
	if (atomic_load_explicit(word32(s, BSLT_OFF_STATE), memory_order_acquire) == BSLT_STATE_DEAD) {
		int e = (int)atomic_load_explicit(word32(s, BSLT_OFF_ERROR), memory_order_relaxed);

		session_die(s, e > 0 ? e : RES_UNAVAILABLE);
	} else if (s->ops->gone(s)) {
		session_die(s, RES_UNAVAILABLE);
	}
	return atomic_load_explicit(&s->dead, memory_order_relaxed);
}

int heartbeat_check(struct session *s, struct heartbeat *p)
{
	uint64_t beat = atomic_load_explicit(word64(s, BSLT_OFF_HEARTBEAT), memory_order_relaxed), now = now_nanos();
	int err = session_check(s);

	if (err)
		return err;
	if (p->since == 0 || beat != p->beat) {
		*p = (struct heartbeat){beat, now};
	} else if (now - p->since > BSLT_HEARTBEAT_DEAD_MILLIS * 1000000ull) {
		session_die(s, RES_UNAVAILABLE);
		return RES_UNAVAILABLE;
	}
	return 0;
}
