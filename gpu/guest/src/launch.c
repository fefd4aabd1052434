/* Launches: each is one ring entry, and nothing waits. */
#include <stdlib.h>

#include "capture.h"
#include "launch_flags.h"
#include "reference.h"

static int captured(CUfunction func, const struct bslt_launch *a, CUstream h, void **params, void **extra, bool *done)
{
	CUDA_KERNEL_NODE_PARAMS k = {func,	 a->grid_x,  a->grid_y,	 a->grid_z, a->block_x, a->block_y,
				     a->block_z, a->shared, params, extra,	NULL,	   NULL};

	return capture_kernel(h, &k, a->flags, done);
}

/* Maximum size of parameters on the stack; larger ones are allocated. */
#define FEW_BYTES 4096

static int put_with(struct session *s, const struct bslt_launch *a, struct function *f, void **params, void **extra, uint8_t *bytes)
{
	uint32_t n;

	TRY(launch_parameters(f, params, extra, bytes, &n));
	return stream_put(s, a->stream, BSLT_OP_LAUNCH, 0, BSLT_NO_SLOT, a, sizeof *a, bytes, n);
}

static int put_few(struct session *s, const struct bslt_launch *a, struct function *f, void **params, void **extra)
{
	uint8_t bytes[FEW_BYTES];

	return put_with(s, a, f, params, extra, bytes);
}

static int put_many(struct session *s, const struct bslt_launch *a, struct function *f, void **params, void **extra)
{
	uint8_t *bytes;
	int err;

	if (worker_minor(s) < 2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(bytes = malloc(BSLT_MAX_PARAM_BYTES)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	err = put_with(s, a, f, params, extra, bytes);
	free(bytes);
	return err;
}

/* Checks a cooperative launch. Its blocks wait for each other, so the call returns an error if
 * the device cannot run all of them at once. */
static int check_cooperative(CUfunction func, const struct bslt_launch *a)
{
	uint64_t threads = (uint64_t)a->block_x * a->block_y * a->block_z, most;
	int each, sms;

	if (a->grid_x == 1 && a->grid_y == 1 && a->grid_z == 1)
		return 0;
	TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, func, (int)threads, a->shared));
	TRY(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	most = (uint64_t)each * (uint64_t)sms;
	return (uint64_t)a->grid_x * a->grid_y > most / a->grid_z ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : 0;
}

/* Checks that worker and device support clusters: otherwise they would ignore the cluster. */
static int check_cluster(const struct session *s, const struct bslt_launch *a)
{
	CUlaunchAttributeValue v;
	int has;

	if (worker_minor(s) < 5)
		return CUDA_ERROR_NOT_SUPPORTED;
	launch_flags_get(a->flags, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v);
	TRY(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	if (!has && v.clusterDim.x * v.clusterDim.y * v.clusterDim.z > 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	return a->grid_x % v.clusterDim.x || a->grid_y % v.clusterDim.y || a->grid_z % v.clusterDim.z ? CUDA_ERROR_INVALID_CLUSTER_SIZE : 0;
}

static int launch(CUfunction func, struct bslt_launch *a, CUstream h, void **params, void **extra)
{
	struct function *f;
	uint64_t context;
	int err = 0;

	SESSION(s);
	if (!a->grid_x || !a->grid_y || !a->grid_z || !a->block_x || !a->block_y || !a->block_z)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) {
		bool done = false;

		TRY(captured(func, a, h, params, extra, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &a->stream, &context));
	output_show(s, context);
	TRY(function_resolve(func, &f));
	a->function = f->o.id;
	if (f->o.context != context)
		err = CUDA_ERROR_INVALID_HANDLE;
	else if ((uint64_t)a->block_x * a->block_y > 1024 || (uint64_t)a->block_x * a->block_y * a->block_z > 1024)
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err && a->flags >> CLUSTER_SHIFT)
		err = check_cluster(s, a);
	if (!err && a->flags & LAUNCH_COOPERATIVE)
		err = check_cooperative(func, a);
	if (!err)
		err = references_ready(s, context, f->module);
	if (!err)
		err = f->param_bytes <= FEW_BYTES ? put_few(s, a, f, params, extra) : put_many(s, a, f, params, extra);
	object_put(f);
	return err;
}

CUDA_API CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
				 unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
				 unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
	struct bslt_launch a = {0, 0, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, 0};

	return launch(f, &a, hStream, kernelParams, extra);
}

CUDA_API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
					    unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
					    unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
					    void **kernelParams)
{
	struct bslt_launch a = {0, 0, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, 1};

	return launch(f, &a, hStream, kernelParams, NULL);
}

/* There is one device, so the list must have one launch. Attribute 96 is 0, because kernels
 * have no barrier for several devices. */
CUDA_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices, unsigned int flags)
{
	const CUDA_LAUNCH_PARAMS *l = launchParamsList;

	SESSION(s);
	(void)s;
	if (!l || numDevices != 1 ||
	    flags & ~(unsigned int)(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC | CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC))
		return CUDA_ERROR_INVALID_VALUE;
	if ((uintptr_t)l->hStream <= (uintptr_t)CU_STREAM_PER_THREAD) /* it must be a stream that the program has created */
		return CUDA_ERROR_INVALID_HANDLE;
	return cuLaunchCooperativeKernel(l->function, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX, l->blockDimY, l->blockDimZ,
					 l->sharedMemBytes, l->hStream, l->kernelParams);
}

int launch_flags_of(const CUlaunchConfig *config, uint32_t *flags)
{
	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		switch (config->attrs[i].id) {
		/* Attributes that do not change results, and that are ignored. The first allows
		 * a kernel to begin before the previous one of the stream has ended. It never
		 * does here, so that what it waits for (griddepcontrol) has always happened. */
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: /* record_events */
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: TRY(launch_flags_set(flags, config->attrs[i].id, &config->attrs[i].value)); break;
		default: return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	return 0;
}

/* Returns the event that an attribute names, and the flags of its record, or NULL if the
 * attribute names none. */
static const CUevent *event_of(const CUlaunchAttribute *a, int *flags)
{
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: *flags = a->value.programmaticEvent.flags; return &a->value.programmaticEvent.event;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: *flags = a->value.launchCompletionEvent.flags; return &a->value.launchCompletionEvent.event;
	default: return NULL;
	}
}

/* Records the events of a launch after the kernel. NVIDIA's driver records them when all
 * blocks of the kernel have begun or have triggered them; later is allowed. */
static int record_events(const CUlaunchConfig *config)
{
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		int flags = 0;
		const CUevent *e = event_of(&config->attrs[i], &flags);

		if (e)
			TRY(cuEventRecordWithFlags(*e, config->hStream, (unsigned int)flags));
	}
	return 0;
}

/* Checks that the events of a launch are valid, before anything is launched. */
static int check_events(const CUlaunchConfig *config)
{
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		int flags = 0;
		const CUevent *e = event_of(&config->attrs[i], &flags);
		void *o;

		if (!e)
			continue;
		if (!(o = object_get(*e, KIND_EVENT)))
			return CUDA_ERROR_INVALID_HANDLE;
		object_put(o);
		if (flags & ~CU_EVENT_RECORD_EXTERNAL)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return 0;
}

CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	struct bslt_launch a = {0};

	TRY(launch_flags_of(config, &a.flags));
	a.grid_x = config->gridDimX, a.grid_y = config->gridDimY, a.grid_z = config->gridDimZ;
	a.block_x = config->blockDimX, a.block_y = config->blockDimY, a.block_z = config->blockDimZ;
	a.shared = config->sharedMemBytes;
	TRY(check_events(config));
	TRY(launch(f, &a, config->hStream, kernelParams, extra));
	return record_events(config);
}
