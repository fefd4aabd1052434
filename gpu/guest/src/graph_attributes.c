/* Attributes of kernels in graphs. All except those of launch_flags.h are hints. Streams have
 * them too, and a captured kernel gets those of its stream. */
#include <string.h>

#include "graph.h"
#include "launch_flags.h"

/* The attributes that a kernel can have, in the order of kernel_params.attributes. Source:
 * CUDA driver API, CUlaunchAttributeID: "Valid for streams, graph nodes, launches". */
const int kernel_attribute_ids[KERNEL_ATTRIBUTES] = {
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

static int place_of(int id)
{
	for (int i = 0; i < KERNEL_ATTRIBUTES; i++)
		if (kernel_attribute_ids[i] == id)
			return i;
	return -1;
}

/* Checks a window. CUaccessProperty is normal (0), streaming (1) or persisting (2); misses
 * cannot be persisting. */
static bool window_good(const CUaccessPolicyWindow *w)
{
	return w->hitRatio >= 0 && w->hitRatio <= 1 && w->hitProp >= 0 && w->hitProp <= 2 && w->missProp >= 0 && w->missProp <= 1 &&
	       (!w->num_bytes || device_range((uintptr_t)w->base_ptr, w->num_bytes));
}

int kernel_attribute_get(const struct kernel_params *k, int id, CUkernelNodeAttrValue *out)
{
	int i = place_of(id);

	if (i < 0 && id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE && id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = (CUkernelNodeAttrValue){{0}};
	if (i < 0)
		launch_flags_get(k->flags, id, out);
	else if (k->given & 1u << i)
		*out = k->attributes[i];
	else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		out->memSyncDomainMap.remote = 1; /* CUDA's default */
	return 0;
}

int kernel_attribute_set(struct kernel_params *k, int id, const CUkernelNodeAttrValue *value)
{
	CUkernelNodeAttrValue v = {{0}};
	int i = place_of(id);

	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE: return 0;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: return launch_flags_set(&k->flags, id, value);
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		if (!window_good(&value->accessPolicyWindow))
			return CUDA_ERROR_INVALID_VALUE;
		v.accessPolicyWindow = value->accessPolicyWindow;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: v.priority = value->priority; break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: v.memSyncDomainMap = value->memSyncDomainMap; break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: v.memSyncDomain = value->memSyncDomain; break;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
	k->attributes[i] = v;
	k->given |= 1u << i;
	return 0;
}

void kernel_attributes_copy(struct kernel_params *to, const struct kernel_params *from)
{
	to->flags = from->flags;
	to->given = from->given;
	memcpy(to->attributes, from->attributes, sizeof to->attributes);
}

/* Reports whether a value is the same as the default. */
static bool is_default(int id, const CUkernelNodeAttrValue *v)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return v->accessPolicyWindow.num_bytes == 0;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: return v->priority == 0;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return v->memSyncDomainMap.default_ == 0 && v->memSyncDomainMap.remote <= 1;
	default: return v->memSyncDomain == 0;
	}
}

/* Copies the attributes of a stream. The device stores them, and is queried only if the program
 * has ever set attributes of a stream. Attributes that the device does not support are
 * omitted. */
int kernel_attributes_of_stream(CUstream h, struct kernel_params *k)
{
	CUkernelNodeAttrValue v = {{0}};
	int err;

	SESSION(s);
	if (!atomic_load_explicit(&s->stream_attributes, memory_order_relaxed)) {
		TRY(cuStreamGetPriority(h, &v.priority));
		return v.priority ? kernel_attribute_set(k, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v) : 0;
	}
	for (int i = 0; i < KERNEL_ATTRIBUTES; i++) {
		v = (CUkernelNodeAttrValue){{0}};
		err = cuStreamGetAttribute(h, kernel_attribute_ids[i], &v);
		if (err == CUDA_ERROR_NOT_SUPPORTED)
			continue;
		TRY(err);
		/* This fails for a window over memory that has been freed, which is then omitted. */
		if (!is_default(kernel_attribute_ids[i], &v))
			(void)kernel_attribute_set(k, kernel_attribute_ids[i], &v);
	}
	return 0;
}
