/* Memory and events that processes of one vGPU share. The processes exchange tokens, which
 * the worker generates and which cannot be guessed. The worker and gpud decide which process
 * may open the object of a token. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"

enum { LAZY_ENABLE_PEER_ACCESS = 1 /* CUipcMem_flags */ };

/* The content of a handle of 64 bytes; the rest is zero. */
struct token {
	uint64_t half[2];
	uint64_t kind;
};

/* Held during calls of the worker, so that its answers are recorded in its order. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

void ipc_abandon(void)
{
	pthread_mutex_init(&asking, NULL);
}

bool ipc_capable(const struct range *r)
{
	return !r->pool && !r->graph && !r->memory && !r->opened;
}

/* Writes the handle for a token in the worker's answer. */
static int handle_make(char *handle, size_t size, uint64_t kind, const struct answer *a)
{
	struct token token = {{a->value0, a->value1}, kind};

	TRY(a->result);
	memset(handle, 0, size);
	memcpy(handle, &token, sizeof token);
	return 0;
}

struct answer ipc_share(struct session *s, uint64_t address)
{
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};

	pthread_mutex_lock(&asking);
	if (range_export(address)) {
		struct bslt_mem_share args = {address};

		a = call(s, BSLT_OP_MEM_SHARE, &args, sizeof args);
	}
	pthread_mutex_unlock(&asking);
	return a;
}

/* Any address in an allocation stands for the whole allocation. */
CUDA_API CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};
	uint64_t context;
	struct range r;

	SESSION(s);
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&context));
	if (range_find(SPACE_DEVICE, dptr, &r) && ipc_capable(&r))
		a = ipc_share(s, r.address);
	return handle_make(pHandle->reserved, sizeof pHandle->reserved, TOKEN_MEMORY, &a);
}

/* Reads the token of a handle. The error is CUDA_ERROR_INVALID_HANDLE. */
static int token_of(const char *handle, size_t size, uint64_t kind, struct token *token)
{
	memcpy(token, handle, sizeof *token);
	for (size_t i = sizeof *token; i < size; i++)
		if (handle[i])
			return CUDA_ERROR_INVALID_HANDLE;
	return token->kind == kind ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

/* Opens memory and records its range. The caller holds asking. */
static int open_memory(struct session *s, struct bslt_mem_open *args, uint64_t pool, CUdeviceptr *out)
{
	struct answer a = call(s, BSLT_OP_MEM_OPEN, args, sizeof *args);
	struct range r = {.address = a.value0, .size = a.value1, .context = args->ctx, .opened = true, .pool = pool}, there;
	struct bslt_mem_close back = {a.value0};

	TRY(a.result);
	*out = r.address;
	if (range_find(SPACE_DEVICE, r.address, &there)) {
		if (there.pool == pool)
			return 0;
		(void)call(s, BSLT_OP_MEM_CLOSE, &back, sizeof back); /* it is open in another pool */
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (range_add(SPACE_DEVICE, &r) != 0) {
		(void)call(s, BSLT_OP_MEM_CLOSE, &back, sizeof back);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (pool)
		pool_opened(pool, r.size);
	return 0;
}

int ipc_open(struct session *s, struct bslt_mem_open *args, uint64_t pool, CUdeviceptr *out)
{
	int err;

	pthread_mutex_lock(&asking);
	err = open_memory(s, args, pool, out);
	pthread_mutex_unlock(&asking);
	return err;
}

CUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct bslt_mem_open args = {0};
	struct token token;

	SESSION(s);
	if (!pdptr || Flags != LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&args.ctx));
	TRY(token_of(handle.reserved, sizeof handle.reserved, TOKEN_MEMORY, &token));
	args.token0 = token.half[0];
	args.token1 = token.half[1];
	return ipc_open(s, &args, 0, pdptr);
}

/* When it undoes the last of several opens, it waits until no work can use the memory any
 * more. */
int ipc_close(struct session *s, CUdeviceptr address, bool pooled)
{
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};
	struct range r;

	pthread_mutex_lock(&asking);
	if (range_find(SPACE_DEVICE, address, &r) && r.opened && r.address == address && (r.pool != 0) == pooled) {
		struct bslt_mem_close args = {address};

		a = call(s, BSLT_OP_MEM_CLOSE, &args, sizeof args);
		if (a.result == 0 && a.value0 == 0 && range_take(SPACE_DEVICE, address, &r))
			pool_give(&r);
	}
	pthread_mutex_unlock(&asking);
	return a.result;
}

CUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	return ipc_close(s, dptr, false);
}

/* Records of the event before it is shared count as one. */
CUDA_API CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct bslt_event_share args = {(uintptr_t)event};
	struct answer a;
	struct event *e;

	SESSION(s);
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(e = object_get(event, KIND_EVENT)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!(e->flags & CU_EVENT_INTERPROCESS)) {
		object_put(e);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_lock(&asking);
	a = call(s, BSLT_OP_EVENT_SHARE, &args, sizeof args);
	if (a.result == 0)
		e->shared = true;
	pthread_mutex_unlock(&asking);
	object_put(e);
	return handle_make(pHandle->reserved, sizeof pHandle->reserved, TOKEN_EVENT, &a);
}

CUDA_API CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct bslt_event_open args = {0};
	struct token token;
	struct event *e;
	int err;

	SESSION(s);
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_working(&args.ctx));
	TRY(token_of(handle.reserved, sizeof handle.reserved, TOKEN_EVENT, &token));
	args.token0 = token.half[0];
	args.token1 = token.half[1];
	args.event = object_ids(1);
	if (!(e = object_new(sizeof *e, KIND_EVENT, args.event, args.ctx)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = CU_EVENT_DISABLE_TIMING;
	e->shared = true;
	if ((err = call(s, BSLT_OP_EVENT_OPEN, &args, sizeof args).result) != 0) {
		object_put(e);
		return err;
	}
	object_add(e);
	*phEvent = handle_of(args.event);
	return 0;
}

/* A record that another process may have made, for which a stream waits. */
struct foreign {
	struct session *session;
	uint32_t slot; /* completed when the record is done */
};

static void await_foreign(void *data, int err)
{
	struct foreign *f = data;

	(void)err;
	(void)slot_wait(f->session, f->slot);
	free(f);
}

/* The stream's work cannot wait for another worker, so this process holds it back, as for a
 * host function. The worker is asked now, because that determines which record is meant. */
int ipc_stream_wait(struct session *s, CUstream h, const struct event *e)
{
	struct bslt_event_synchronize a = {e->o.id};
	struct bslt_event_query q = {e->o.id};
	uint64_t stream, context;
	struct foreign *f;
	bool blocking;
	int err = call(s, BSLT_OP_EVENT_QUERY, &q, sizeof q).result;

	if (err != CUDA_ERROR_NOT_READY)
		return err;
	TRY(stream_find(h, &stream, &context, &blocking));
	if (!(f = calloc(1, sizeof *f)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->session = s;
	if ((err = slot_take(s, &f->slot)) != 0) {
		free(f);
		return err;
	}
	if ((err = ring_put(s, BSLT_OP_EVENT_SYNCHRONIZE, 0, f->slot, &a, sizeof a, NULL, 0)) != 0) {
		slot_give(s, f->slot);
		free(f);
		return err;
	}
	if ((err = callbacks_run(stream, context, blocking, await_foreign, f)) != 0)
		await_foreign(f, err);
	return err;
}

int token_file(const struct answer *a, enum token_kind kind, int *fd)
{
	struct token token = {{a->value0, a->value1}, kind};
	int file = pages_file("cuda-memory");

	if (file < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pwrite(file, &token, sizeof token, 0) != (ssize_t)sizeof token ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
		(void)close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*fd = file;
	return 0;
}

/* Reads a token from a file. It does not consume data of descriptors that are not files. */
int token_read(int fd, enum token_kind kind, uint64_t *half0, uint64_t *half1)
{
	struct token token;

	if (pread(fd, &token, sizeof token, 0) != (ssize_t)sizeof token || token.kind != kind)
		return CUDA_ERROR_INVALID_VALUE;
	*half0 = token.half[0];
	*half1 = token.half[1];
	return 0;
}
