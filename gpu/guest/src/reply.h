/* Decoding of the records that the worker writes (gpu/abi/reply.go). The bytes must be a
 * private copy, because the worker could change shared bytes at any time. */
#ifndef BASALT_REPLY_H
#define BASALT_REPLY_H

#include <stddef.h>
#include <stdint.h>

#define FUNCTION_ATTRIBUTES 10
#define MAX_ATTRIBUTES 4096

struct device_info {
	uint64_t total_memory;
	uint8_t uuid[16];
	uint32_t attribute_count;
	int32_t *attributes;
	char *name, *driver_version;
	uint32_t cuda_version, devices;
};

struct param_info {
	uint32_t offset, size;
};
struct function_info {
	char *name;
	uint32_t param_count;
	struct param_info *params;
	int32_t attributes[FUNCTION_ATTRIBUTES];
	char *refused; /* why the device cannot run it, or NULL if it can */
};
struct global_info {
	char *name;
	uint64_t address, size;
};
struct module_info {
	uint32_t function_count, global_count;
	struct function_info *functions;
	struct global_info *globals;
	char *info_log, *error_log;
};

struct process_info {
	uint32_t pid;
	uint64_t vram;
	char *name;
};
struct reading {
	uint32_t key; /* BSLT_READING_… */
	uint64_t value;
};
struct accounted_process {
	uint32_t pid, gpu_utilization; /* percent of the last second */
	uint64_t start, end;           /* microseconds since 1970; end is 0 while it runs */
	uint64_t gpu_nanos, peak_vram;
};
struct sample {
	uint64_t at; /* microseconds since 1970 */
	uint32_t gpu_utilization;
};
struct gpu_event {
	uint64_t at; /* microseconds since 1970 */
	uint32_t xid, pid;
};
struct vgpu_status {
	uint64_t vram_limit, vram_used;
	uint32_t gpu_utilization, memory_utilization, temperature, power_milliwatts;
	uint32_t process_count, reading_count, accounted_count, sample_count, event_count;
	struct process_info *processes;
	/* Old workers do not send the members below. */
	struct reading *readings;
	struct accounted_process *accounted;
	struct sample *samples; /* oldest first */
	struct gpu_event *events; /* oldest first; no two have the same time */
};

/* Return 0, or -1 if the bytes are not a valid record or there is no memory; *out is then
 * empty. The caller frees the result with the free_ function of the same name. */
int decode_device_info(const uint8_t *b, size_t n, struct device_info *out);
int decode_module_info(const uint8_t *b, size_t n, struct module_info *out);
int decode_vgpu_status(const uint8_t *b, size_t n, struct vgpu_status *out);
void free_device_info(struct device_info *d);
void free_module_info(struct module_info *m);
void free_vgpu_status(struct vgpu_status *v);

#endif
