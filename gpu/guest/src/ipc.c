/* Memory that processes of one vGPU share. What travels between them is a token, which
 * the worker has made and nobody can guess; the worker and gpud decide who may open what
 * it stands for. */
#include <string.h>

#include "capture.h"

enum { LAZY_ENABLE_PEER_ACCESS = 1 /* CUipcMem_flags */ };

/* What is in a handle, of 64 bytes; the rest is zero. */
struct token {
	uint64_t half[2];
	uint64_t kind;
};
enum { TOKEN_MEMORY = 1 };

/* Held while the worker is asked, so that what it answers is noted in its order. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

void ipc_abandon(void)
{
	pthread_mutex_init(&asking, NULL);
}

bool ipc_capable(const struct range *r)
{
	return !r->pool && !r->graph && !r->memory && !r->opened;
}

/* Any address in the allocation names all of it. */
CUDA_API CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct token token = {{0, 0}, TOKEN_MEMORY};
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};
	uint64_t context;
	struct range r;

	SESSION(s);
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&context));
	pthread_mutex_lock(&asking);
	if (range_find(SPACE_DEVICE, dptr, &r) && ipc_capable(&r) && range_export(r.address)) {
		struct bslt_mem_share args = {r.address};

		a = call(s, BSLT_OP_MEM_SHARE, &args, sizeof args);
	}
	pthread_mutex_unlock(&asking);
	TRY(a.result);
	token.half[0] = a.value0;
	token.half[1] = a.value1;
	memset(pHandle, 0, sizeof *pHandle);
	memcpy(pHandle, &token, sizeof token);
	return 0;
}

/* The token of a handle, or CUDA_ERROR_INVALID_HANDLE. */
static int token_of(const char *handle, size_t size, uint64_t kind, struct token *token)
{
	memcpy(token, handle, sizeof *token);
	for (size_t i = sizeof *token; i < size; i++)
		if (handle[i])
			return CUDA_ERROR_INVALID_HANDLE;
	return token->kind == kind ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

/* Called with asking. */
static int open_memory(struct session *s, struct bslt_mem_open *args, CUdeviceptr *out)
{
	struct answer a = call(s, BSLT_OP_MEM_OPEN, args, sizeof *args);
	struct range r = {.address = a.value0, .size = a.value1, .context = args->ctx, .opened = true}, there;

	TRY(a.result);
	if (!range_find(SPACE_DEVICE, r.address, &there) && range_add(SPACE_DEVICE, &r) != 0) {
		struct bslt_mem_close back = {r.address};

		(void)call(s, BSLT_OP_MEM_CLOSE, &back, sizeof back);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = r.address;
	return 0;
}

CUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct bslt_mem_open args = {0};
	struct token token;
	int err;

	SESSION(s);
	if (!pdptr || Flags != LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&args.ctx));
	TRY(token_of(handle.reserved, sizeof handle.reserved, TOKEN_MEMORY, &token));
	args.token0 = token.half[0];
	args.token1 = token.half[1];
	pthread_mutex_lock(&asking);
	err = open_memory(s, &args, pdptr);
	pthread_mutex_unlock(&asking);
	return err;
}

/* Returns, with the last of several opens, when no work can use the memory any more. */
CUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct answer a = {.result = CUDA_ERROR_INVALID_VALUE};
	struct range r;

	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	pthread_mutex_lock(&asking);
	if (range_find(SPACE_DEVICE, dptr, &r) && r.opened && r.address == dptr) {
		struct bslt_mem_close args = {dptr};

		a = call(s, BSLT_OP_MEM_CLOSE, &args, sizeof args);
		if (a.result == 0 && a.value0 == 0)
			(void)range_take(SPACE_DEVICE, dptr, &r);
	}
	pthread_mutex_unlock(&asking);
	return a.result;
}
