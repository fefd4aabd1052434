/* Calls of the driver, the device and contexts. */
#include "replay.h"

static CUcontext stack[64], primary;
static unsigned int depth;
static int retained;

CUcontext context_now(void)
{
	return depth ? stack[depth - 1] : NULL;
}

CUcontext context_primary(void)
{
	return primary;
}

void primary_retained(CUcontext c)
{
	EXPECT(c && (!primary || c == primary));
	primary = c;
	retained++;
}

static void push(CUcontext c)
{
	EXPECT(depth < sizeof stack / sizeof *stack);
	stack[depth++] = c;
}

static CUresult init(void)
{
	return CALL(cuInit, 0);
}

static CUresult driver_version(void)
{
	int version = 0;
	CUresult r = CALL(cuDriverGetVersion, &version);

	EXPECT(version >= 12000);
	return r;
}

static CUresult loading_mode(void)
{
	CUmoduleLoadingMode mode = 0;
	CUresult r = CALL(cuModuleGetLoadingMode, &mode);

	EXPECT(mode == 1 || mode == 2);
	return r;
}

static CUresult device_count(void)
{
	int n = 0;
	CUresult r = CALL(cuDeviceGetCount, &n);

	EXPECT(n == 1);
	return r;
}

static CUresult device_get(void)
{
	CUdevice device = -1;
	CUresult r = CALL(cuDeviceGet, &device, 0);

	EXPECT(device == 0);
	return r;
}

static CUresult device_name(void)
{
	char name[256] = "";
	CUresult r = CALL(cuDeviceGetName, name, sizeof name, 0);

	EXPECT(name[0]);
	return r;
}

static CUresult total_memory(void)
{
	size_t bytes = 0;
	CUresult r = CALL(cuDeviceTotalMem_v2, &bytes, 0);

	EXPECT(bytes >= 1 << 20);
	return r;
}

/* Queries one attribute after the other, as the runtime does to fill its properties. */
static CUresult device_attribute(void)
{
	CUdevice_attribute attribute = (CUdevice_attribute)(step.nth % 132) + 1;
	int value = -77;
	CUresult r = CALL(cuDeviceGetAttribute, &value, attribute, 0);

	if (value == -77 || (attribute == 10 && value != 32) || (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT && value < 1))
		wrong("attribute %d is %d", attribute, value);
	return r;
}

static bool not_zero(const CUuuid *id)
{
	static const CUuuid zero;

	return memcmp(id, &zero, sizeof zero) != 0;
}

static CUresult device_uuid(void)
{
	CUuuid id = {{0}};
	CUresult r = CALL(cuDeviceGetUuid, &id, 0);

	EXPECT(not_zero(&id));
	return r;
}

static CUresult device_uuid_v2(void)
{
	CUuuid id = {{0}};
	CUresult r = CALL(cuDeviceGetUuid_v2, &id, 0);

	EXPECT(not_zero(&id));
	return r;
}

static CUresult bus_id(void)
{
	unsigned int domain, bus, device, function;
	char id[32] = "";
	CUresult r = CALL(cuDeviceGetPCIBusId, id, sizeof id, 0);

	EXPECT(sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4);
	return r;
}

static CUresult context_create(void)
{
	CUcontext c = NULL;
	CUresult r = CALL(cuCtxCreate_v2, &c, 0, 0);

	EXPECT(c);
	push(c);
	return r;
}

static CUresult context_destroy(void)
{
	EXPECT(depth > 0);
	return CALL(cuCtxDestroy_v2, stack[--depth]);
}

static CUresult current_get(void)
{
	CUcontext c = (CUcontext)-1;
	CUresult r = CALL(cuCtxGetCurrent, &c);

	EXPECT(c == context_now());
	return r;
}

static CUresult current_set(void)
{
	EXPECT(primary);
	if (depth)
		depth--;
	push(primary);
	return CALL(cuCtxSetCurrent, primary);
}

static CUresult current_push(void)
{
	EXPECT(primary);
	push(primary);
	return CALL(cuCtxPushCurrent_v2, primary);
}

static CUresult current_pop(void)
{
	CUcontext c = NULL, want = context_now();
	CUresult r = CALL(cuCtxPopCurrent_v2, &c);

	EXPECT(depth > 0 && c == want);
	depth--;
	return r;
}

static CUresult current_device(void)
{
	CUdevice device = -1;
	CUresult r = CALL(cuCtxGetDevice, &device);

	if (!depth)
		step.want = CUDA_ERROR_INVALID_CONTEXT;
	EXPECT(device == (depth ? 0 : -1));
	return r;
}

static CUresult primary_retain(void)
{
	CUcontext c = NULL;
	CUresult r = CALL(cuDevicePrimaryCtxRetain, &c, 0);

	primary_retained(c);
	return r;
}

static CUresult primary_release(void)
{
	EXPECT(retained-- > 0);
	return CALL(cuDevicePrimaryCtxRelease, 0);
}

static CUresult primary_reset(void)
{
	return CALL(cuDevicePrimaryCtxReset, 0);
}

static CUresult primary_state(void)
{
	unsigned int flags = 77;
	int active = 77;
	CUresult r = CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);

	EXPECT(flags == 0 && active == (retained > 0));
	return r;
}

static CUresult api_version(void)
{
	unsigned int version = 0;
	CUresult r = CALL(cuCtxGetApiVersion, context_now(), &version);

	EXPECT(version >= 3020);
	return r;
}

static CUresult priorities(void)
{
	int least = 77, greatest = 77;
	CUresult r = CALL(cuCtxGetStreamPriorityRange, &least, &greatest);

	EXPECT(greatest <= least && least <= 0);
	return r;
}

static CUresult synchronize(void)
{
	CUresult r = CALL(cuCtxSynchronize);

	if (r == 0)
		copies_done(NULL, true);
	return r;
}

const struct call context_calls[] = {
	{"cuInit", init}, {"cuDriverGetVersion", driver_version}, {"cuModuleGetLoadingMode", loading_mode},
	{"cuDeviceGetCount", device_count}, {"cuDeviceGet", device_get}, {"cuDeviceGetName", device_name},
	{"cuDeviceTotalMem_v2", total_memory}, {"cuDeviceGetAttribute", device_attribute}, {"cuDeviceGetUuid", device_uuid},
	{"cuDeviceGetUuid_v2", device_uuid_v2}, {"cuDeviceGetPCIBusId", bus_id}, {"cuCtxCreate_v2", context_create},
	{"cuCtxDestroy_v2", context_destroy}, {"cuCtxGetCurrent", current_get}, {"cuCtxSetCurrent", current_set},
	{"cuCtxPushCurrent_v2", current_push}, {"cuCtxPopCurrent_v2", current_pop}, {"cuCtxGetDevice", current_device},
	{"cuDevicePrimaryCtxRetain", primary_retain}, {"cuDevicePrimaryCtxRelease", primary_release},
	{"cuDevicePrimaryCtxReset", primary_reset}, {"cuDevicePrimaryCtxGetState", primary_state}, {"cuCtxGetApiVersion", api_version},
	{"cuCtxGetStreamPriorityRange", priorities}, {"cuCtxSynchronize", synchronize}, {NULL, NULL},
};
