/* The output of kernels. The worker stores it for each context until this process reads it, in
 * the calls for which CUDA documents that output appears (CUDA C++ Programming Guide,
 * "Formatted Output", "Limitations"). A counter in the header shows whether there can be new
 * output, so that programs whose kernels do not print make no additional calls. */
#include <stdio.h>

#include "state.h"

#define PIECE (64u << 10)
/* Maximum bytes that one call prints, because kernels may continue to print. */
#define MOST (32u << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one thread at a time reads and writes, in order; no lock is acquired while it is held */

void output_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Allocates a piece. It does not wait for the arena, because copies that wait for the caller's
 * next action may hold all of it. */
static int allocate_buffer(struct session *s, struct piece *p)
{
	if (arena_try(s, PIECE, p))
		return 0;
	*p = (struct piece){.len = PIECE};
	TRY(session_region(s, PIECE, &p->region));
	p->bytes = p->region.base;
	p->number = p->region.number;
	return 0;
}

/* Reads and prints pieces until there are none. Returns false if there may be more. */
static bool print_pieces(struct session *s, uint64_t context, const struct piece *p)
{
	struct bslt_ctx_read_output a = {.ctx = context, .out_off = p->off, .out_len = p->len, .out_region = p->number};

	for (uint64_t shown = 0; shown < MOST;) {
		struct answer r = call(s, BSLT_OP_CTX_READ_OUTPUT, &a, sizeof a);

		if (r.result || r.value0 == 0 || r.value0 > p->len)
			return true;
		(void)fwrite(p->bytes, 1, r.value0, r.value1 == BSLT_OUTPUT_STDERR ? stderr : stdout);
		shown += r.value0;
	}
	return false;
}

void output_show(struct session *s, uint64_t context)
{
	uint32_t count = atomic_load_explicit(word32(s, BSLT_OFF_OUTPUT_COUNT), memory_order_acquire);
	struct context *c;
	struct piece p;

	if (count == 0 || !(c = object_get(handle_of(context), KIND_CONTEXT)))
		return;
	if (atomic_load(&c->output_shown_at) != count && allocate_buffer(s, &p) == 0) {
		pthread_mutex_lock(&lock);
		if (print_pieces(s, context, &p))
			atomic_store(&c->output_shown_at, count);
		pthread_mutex_unlock(&lock);
		piece_put(s, &p);
	}
	object_put(c);
}

int output_after(CUstream h, int err)
{
	uint64_t stream, context;
	struct session *s;
	bool blocking;

	if (library_session(&s) == 0 && stream_find(h, &stream, &context, &blocking) == 0)
		output_show(s, context);
	return err;
}

int output_limit(uint64_t context, uint64_t *value)
{
	struct bslt_ctx_set_limit a = {.ctx = context, .value = *value, .limit = BSLT_LIMIT_PRINTF_FIFO};
	struct answer r;

	SESSION(s);
	r = call(s, BSLT_OP_CTX_SET_LIMIT, &a, sizeof a);
	if (r.result == CUDA_ERROR_NOT_SUPPORTED)
		return 0; /* kernels of this worker cannot print */
	if (r.result == 0)
		*value = r.value0;
	return r.result;
}
