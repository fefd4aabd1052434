/* Regions of shared memory other than region 0: their numbers, creation and destruction. */
#include "channel.h"

/* Allocates a number that no command in the ring can still use. Returns 0 if none is free.
 * Numbers are used in turn, so that one is used again only after a thousand others. By then
 * the worker has read the message that dropped the old region, because the socket holds only
 * a few hundred. Otherwise it would mistake the old region for the new one. */
static uint32_t region_number(struct session *s)
{
	uint64_t tail = atomic_load_explicit(word64(s, BSLT_OFF_TAIL), memory_order_acquire);
	uint32_t found = 0;

	pthread_mutex_lock(&s->region_lock);
	for (uint32_t k = 1; k < BSLT_MAX_REGIONS && !found; k++) {
		uint32_t i = (s->region_last + k) % BSLT_MAX_REGIONS;

		if (i != 0 && !s->region_used[i] && s->region_free_at[i] <= tail)
			found = i;
	}
	if (found) {
		s->region_used[found] = 1;
		s->region_last = found;
	}
	pthread_mutex_unlock(&s->region_lock);
	return found;
}

static void number_free(struct session *s, uint32_t number)
{
	uint64_t head = atomic_load_explicit(word64(s, BSLT_OFF_HEAD), memory_order_relaxed);

	pthread_mutex_lock(&s->region_lock);
	s->region_used[number] = 0;
	s->region_free_at[number] = head;
	pthread_mutex_unlock(&s->region_lock);
}

/* Creates and announces a region, at an address, or anywhere if it is 0. */
static int make_region(struct session *s, uint64_t size, uint64_t address, struct region *r)
{
	uint32_t number;
	int err = session_check(s);

	if (err)
		return err;
	if ((number = region_number(s)) == 0)
		return RES_OUT_OF_MEMORY;
	if ((err = s->ops->region_make(s, page_up(size), address, r)) == 0) {
		r->number = number;
		if ((err = s->ops->region_announce(s, r)) == 0)
			return 0;
		s->ops->region_drop(s, r, false);
	}
	number_free(s, number);
	return err;
}

/* Reports whether a region can have size bytes. */
static bool region_fits(const struct session *s, uint64_t size)
{
	return size != 0 && size <= BSLT_MAX_REGION_SIZE - PAGE && (!s->max_region || size <= s->max_region);
}

int session_region(struct session *s, uint64_t size, struct region *r)
{
	return region_fits(s, size) ? make_region(s, size, 0, r) : RES_OUT_OF_MEMORY;
}

void session_region_free(struct session *s, struct region *r)
{
	uint64_t address = (uintptr_t)r->base;
	uint32_t number = r->number;

	s->ops->region_drop(s, r, true);
	if (r->placed)
		place_give(s, address);
	number_free(s, number);
}

int session_host_region(struct session *s, uint64_t size, struct region *r)
{
	uint64_t address;
	int err;

	if (!region_fits(s, size))
		return RES_OUT_OF_MEMORY;
	if ((address = place_take(s, page_up(size))) == 0)
		return RES_NOT_SUPPORTED;
	if ((err = make_region(s, size, address, r)) != 0) {
		place_give(s, address);
		return err;
	}
	if ((err = session_host_region_map(s, r)) != 0)
		session_region_free(s, r);
	return err;
}

int session_host_region_map(struct session *s, const struct region *r)
{
	struct bslt_mem_host_map a = {.region = r->number};
	int err = call(s, BSLT_OP_MEM_HOST_MAP, &a, sizeof a).result;

	return err == RES_NOT_SUPPORTED ? RES_OUT_OF_MEMORY : err;
}

void session_host_region_unmap(struct session *s, const struct region *r)
{
	struct bslt_mem_host_unmap a = {.region = r->number};

	(void)call(s, BSLT_OP_MEM_HOST_UNMAP, &a, sizeof a); /* fails if the session has ended: then no work runs */
}

void session_host_region_free(struct session *s, struct region *r)
{
	session_host_region_unmap(s, r);
	session_region_free(s, r);
}
