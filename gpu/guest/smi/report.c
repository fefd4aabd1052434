/* -q: a description of the report, which is written as text or as XML with the element names of
 * nvsmi_device_v12.dtd. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "smi.h"

enum section {
	MEMORY = 1 << 0,
	UTILIZATION = 1 << 1,
	ECC = 1 << 2,
	TEMPERATURE = 1 << 3,
	POWER = 1 << 4,
	CLOCK = 1 << 5,
	COMPUTE = 1 << 6,
	PIDS = 1 << 7,
	PERFORMANCE = 1 << 8,
	SUPPORTED_CLOCKS = 1 << 9,
	PAGE_RETIREMENT = 1 << 10,
	ACCOUNTING = 1 << 11,
	ENCODER_STATS = 1 << 12,
	FBC_STATS = 1 << 13,
	VOLTAGE = 1 << 14,
	ROW_REMAPPER = 1 << 15,
	RESET_STATUS = 1 << 16,
	GSP = 1 << 17,
	ALWAYS = ~0,
};

static const struct {
	const char *name;
	unsigned int bit;
} names[] = {
	{"MEMORY", MEMORY}, {"UTILIZATION", UTILIZATION}, {"ECC", ECC}, {"TEMPERATURE", TEMPERATURE}, {"POWER", POWER}, {"CLOCK", CLOCK},
	{"COMPUTE", COMPUTE}, {"PIDS", PIDS}, {"PERFORMANCE", PERFORMANCE}, {"SUPPORTED_CLOCKS", SUPPORTED_CLOCKS},
	{"PAGE_RETIREMENT", PAGE_RETIREMENT}, {"ACCOUNTING", ACCOUNTING}, {"ENCODER_STATS", ENCODER_STATS}, {"FBC_STATS", FBC_STATS},
	{"VOLTAGE", VOLTAGE}, {"ROW_REMAPPER", ROW_REMAPPER}, {"RESET_STATUS", RESET_STATUS}, {"GSP_FIRMWARE_VERSION", GSP},
};
#define NAMES (sizeof names / sizeof names[0])

int smi_sections(const char *list, unsigned int *bits)
{
	char *copy = strdup(list), *save = NULL;
	int rc = copy ? 0 : EXIT_OTHER;

	*bits = 0;
	for (char *name = copy ? strtok_r(copy, ", ", &save) : NULL; name && rc == 0; name = strtok_r(NULL, ", ", &save)) {
		size_t i = 0;

		while (i < NAMES && strcasecmp(name, names[i].name) != 0)
			i++;
		if (i < NAMES) {
			*bits |= names[i].bit;
			continue;
		}
		fprintf(stderr, "nvidia-smi: -d: section \"%s\" is not known; there are", name);
		for (i = 0; i < NAMES; i++)
			fprintf(stderr, "%s %s", i ? "," : "", names[i].name);
		fputc('\n', stderr);
		rc = EXIT_ARGUMENT;
	}
	free(copy);
	if (rc == 0 && *bits == 0) {
		fprintf(stderr, "nvidia-smi: -d names no section\n");
		rc = EXIT_ARGUMENT;
	}
	return rc;
}

/* A line of the report: a value, or the title of a group, whose lines are deeper. -q prints all
 * lines, -q -d those of the given sections. */
struct line {
	int depth;
	const char *label, *element, *unit;
	getter *get; /* NULL for a group */
	unsigned int sections;
};

#define ROW(depth, label, element, get, sections) {depth, label, element, "", get, sections}
#define GROUP(depth, label, element, sections) {depth, label, element, "", NULL, sections}
#define ECC_COUNTS(uncorrected)                                                                                        \
	ROW(2, "SRAM Correctable", "sram_correctable", v_none, ECC),                                                   \
	ROW(2, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", v_none, ECC),                                 \
	ROW(2, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", v_none, ECC),                                \
	ROW(2, "DRAM Correctable", "dram_correctable", v_none, ECC),                                                   \
	ROW(2, "DRAM Uncorrectable", "dram_uncorrectable", uncorrected, ECC)
#define MEGABYTES(total, used, free)                                                                                   \
	{1, "Total", "total", "MiB", total, MEMORY}, {1, "Used", "used", "MiB", used, MEMORY}, {1, "Free", "free", "MiB", free, MEMORY}
#define POWER_READINGS(draw, limit)                                                                                    \
	{1, "Power Draw", "power_draw", "W", draw, POWER}, {1, "Current Power Limit", "current_power_limit", "W", limit, POWER},      \
	{1, "Requested Power Limit", "requested_power_limit", "W", v_none, POWER}, {1, "Default Power Limit", "default_power_limit", "W", v_none, POWER}, \
	{1, "Min Power Limit", "min_power_limit", "W", v_none, POWER}, {1, "Max Power Limit", "max_power_limit", "W", v_none, POWER}

static const struct line lines[] = {
	ROW(0, "Product Name", "product_name", v_name, 0),
	ROW(0, "Product Brand", "product_brand", v_brand, 0),
	ROW(0, "Product Architecture", "product_architecture", v_architecture, 0),
	ROW(0, "Display Mode", "display_mode", v_display_mode, 0),
	ROW(0, "Display Active", "display_active", v_display_active, 0),
	ROW(0, "Persistence Mode", "persistence_mode", v_persistence, 0),
	ROW(0, "Addressing Mode", "addressing_mode", v_none, 0),
	GROUP(0, "MIG Mode", "mig_mode", 0),
	ROW(1, "Current", "current_mig", v_none, 0),
	ROW(1, "Pending", "pending_mig", v_none, 0),
	ROW(0, "MIG Devices", "mig_devices", v_none, 0),
	ROW(0, "Accounting Mode", "accounting_mode", v_accounting, ACCOUNTING),
	ROW(0, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", v_accounting_size, ACCOUNTING),
	GROUP(0, "Driver Model", "driver_model", 0),
	ROW(1, "Current", "current_dm", v_none, 0),
	ROW(1, "Pending", "pending_dm", v_none, 0),
	ROW(0, "Serial Number", "serial", v_none, 0),
	ROW(0, "GPU UUID", "uuid", v_uuid, 0),
	ROW(0, "Minor Number", "minor_number", v_minor, 0),
	ROW(0, "VBIOS Version", "vbios_version", v_none, 0),
	ROW(0, "MultiGPU Board", "multigpu_board", v_multi_gpu, 0),
	ROW(0, "Board ID", "board_id", v_none, 0),
	ROW(0, "Board Part Number", "board_part_number", v_none, 0),
	ROW(0, "GPU Part Number", "gpu_part_number", v_none, 0),
	ROW(0, "FRU Part Number", "gpu_fru_part_number", v_none, 0),
	ROW(0, "Module ID", "gpu_module_id", v_none, 0),
	GROUP(0, "Inforom Version", "inforom_version", 0),
	ROW(1, "Image Version", "img_version", v_none, 0),
	ROW(1, "OEM Object", "oem_object", v_none, 0),
	ROW(1, "ECC Object", "ecc_object", v_none, 0),
	ROW(1, "Power Management Object", "pwr_object", v_none, 0),
	GROUP(0, "Inforom BBX Object Flush", "inforom_bbx_flush", 0),
	ROW(1, "Latest Timestamp", "latest_timestamp", v_none, 0),
	ROW(1, "Latest Duration", "latest_duration", v_none, 0),
	GROUP(0, "GPU Operation Mode", "gpu_operation_mode", 0),
	ROW(1, "Current", "current_gom", v_none, 0),
	ROW(1, "Pending", "pending_gom", v_none, 0),
	ROW(0, "GPU C2C Mode", "c2c_mode", v_none, 0),
	GROUP(0, "GPU Virtualization Mode", "gpu_virtualization_mode", 0),
	ROW(1, "Virtualization Mode", "virtualization_mode", v_virtualization, 0),
	ROW(1, "Host VGPU Mode", "host_vgpu_mode", v_none, 0),
	ROW(1, "vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", v_none, 0),
	GROUP(0, "GPU Reset Status", "gpu_reset_status", RESET_STATUS),
	ROW(1, "Reset Required", "reset_required", v_none, RESET_STATUS),
	ROW(1, "Drain and Reset Recommended", "drain_and_reset_recommended", v_none, RESET_STATUS),
	ROW(0, "GSP Firmware Version", "gsp_firmware_version", v_none, GSP),
	GROUP(0, "IBMNPU", "ibmnpu", 0),
	ROW(1, "Relaxed Ordering Mode", "relaxed_ordering_mode", v_none, 0),
	GROUP(0, "PCI", "pci", 0),
	ROW(1, "Bus", "pci_bus", v_bus, 0),
	ROW(1, "Device", "pci_device", v_device, 0),
	ROW(1, "Domain", "pci_domain", v_domain, 0),
	ROW(1, "Base Classcode", "pci_base_class", v_base_class, 0),
	ROW(1, "Sub Classcode", "pci_sub_class", v_sub_class, 0),
	ROW(1, "Device Id", "pci_device_id", v_device_id, 0),
	ROW(1, "Bus Id", "pci_bus_id", v_bus_id, 0),
	ROW(1, "Sub System Id", "pci_sub_system_id", v_sub_device_id, 0),
	GROUP(1, "GPU Link Info", "pci_gpu_link_info", 0),
	GROUP(2, "PCIe Generation", "pcie_gen", 0),
	ROW(3, "Max", "max_link_gen", v_max_link_gen, 0),
	ROW(3, "Current", "current_link_gen", v_link_gen, 0),
	ROW(3, "Device Current", "device_current_link_gen", v_none, 0),
	ROW(3, "Device Max", "max_device_link_gen", v_none, 0),
	ROW(3, "Host Max", "max_host_link_gen", v_none, 0),
	GROUP(2, "Link Width", "link_widths", 0),
	ROW(3, "Max", "max_link_width", v_max_link_lanes, 0),
	ROW(3, "Current", "current_link_width", v_link_lanes, 0),
	GROUP(1, "Bridge Chip", "pci_bridge_chip", 0),
	ROW(2, "Type", "bridge_chip_type", v_none, 0),
	ROW(2, "Firmware", "bridge_chip_fw", v_none, 0),
	ROW(1, "Replays Since Reset", "replay_counter", v_none, 0),
	ROW(1, "Replay Number Rollovers", "replay_rollover_counter", v_none, 0),
	ROW(1, "Tx Throughput", "tx_util", v_none, 0),
	ROW(1, "Rx Throughput", "rx_util", v_none, 0),
	ROW(1, "Atomic Caps Inbound", "atomic_caps_inbound", v_none, 0),
	ROW(1, "Atomic Caps Outbound", "atomic_caps_outbound", v_none, 0),
	{0, "Fan Speed", "fan_speed", "%", v_fan, 0},
	ROW(0, "Performance State", "performance_state", v_pstate, PERFORMANCE),
	GROUP(0, "Clocks Event Reasons", "clocks_event_reasons", PERFORMANCE),
	ROW(1, "Idle", "clocks_event_reason_gpu_idle", v_reason_idle, PERFORMANCE),
	ROW(1, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting", v_reason_applications, PERFORMANCE),
	ROW(1, "SW Power Cap", "clocks_event_reason_sw_power_cap", v_reason_power_cap, PERFORMANCE),
	ROW(1, "HW Slowdown", "clocks_event_reason_hw_slowdown", v_reason_slowdown, PERFORMANCE),
	ROW(1, "HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown", v_reason_hw_thermal, PERFORMANCE),
	ROW(1, "HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown", v_reason_power_brake, PERFORMANCE),
	ROW(1, "Sync Boost", "clocks_event_reason_sync_boost", v_reason_sync_boost, PERFORMANCE),
	ROW(1, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown", v_reason_sw_thermal, PERFORMANCE),
	ROW(1, "Display Clock Setting", "clocks_event_reason_display_clocks_setting", v_reason_display, PERFORMANCE),
	ROW(0, "Sparse Operation Mode", "sparse_operation_mode", v_none, PERFORMANCE),
	GROUP(0, "FB Memory Usage", "fb_memory_usage", MEMORY),
	{1, "Total", "total", "MiB", v_memory_total, MEMORY},
	{1, "Reserved", "reserved", "MiB", v_memory_reserved, MEMORY},
	{1, "Used", "used", "MiB", v_memory_used, MEMORY},
	{1, "Free", "free", "MiB", v_memory_free, MEMORY},
	GROUP(0, "BAR1 Memory Usage", "bar1_memory_usage", MEMORY),
	MEGABYTES(v_none, v_none, v_none),
	GROUP(0, "Conf Compute Protected Memory Usage", "cc_protected_memory_usage", MEMORY),
	MEGABYTES(v_none, v_none, v_none),
	ROW(0, "Compute Mode", "compute_mode", v_compute_mode, COMPUTE),
	GROUP(0, "Utilization", "utilization", UTILIZATION),
	{1, "Gpu", "gpu_util", "%", v_gpu, UTILIZATION},
	{1, "Memory", "memory_util", "%", v_memory, UTILIZATION},
	ROW(1, "Encoder", "encoder_util", v_none, UTILIZATION),
	ROW(1, "Decoder", "decoder_util", v_none, UTILIZATION),
	ROW(1, "JPEG", "jpeg_util", v_none, UTILIZATION),
	ROW(1, "OFA", "ofa_util", v_none, UTILIZATION),
	GROUP(0, "Encoder Stats", "encoder_stats", ENCODER_STATS),
	ROW(1, "Active Sessions", "session_count", v_none, ENCODER_STATS),
	ROW(1, "Average FPS", "average_fps", v_none, ENCODER_STATS),
	ROW(1, "Average Latency", "average_latency", v_none, ENCODER_STATS),
	GROUP(0, "FBC Stats", "fbc_stats", FBC_STATS),
	ROW(1, "Active Sessions", "session_count", v_none, FBC_STATS),
	ROW(1, "Average FPS", "average_fps", v_none, FBC_STATS),
	ROW(1, "Average Latency", "average_latency", v_none, FBC_STATS),
	GROUP(0, "ECC Mode", "ecc_mode", ECC),
	ROW(1, "Current", "current_ecc", v_ecc, ECC),
	ROW(1, "Pending", "pending_ecc", v_ecc_pending, ECC),
	GROUP(0, "ECC Errors", "ecc_errors", ECC),
	GROUP(1, "Volatile", "volatile", ECC),
	ECC_COUNTS(v_ecc_uncorrected),
	GROUP(1, "Aggregate", "aggregate", ECC),
	ECC_COUNTS(v_none),
	GROUP(0, "Retired Pages", "retired_pages", PAGE_RETIREMENT),
	GROUP(1, "Single Bit ECC", "multiple_single_bit_retirement", PAGE_RETIREMENT),
	ROW(2, "Count", "retired_count", v_none, PAGE_RETIREMENT),
	ROW(2, "Pages", "retired_pagelist", v_none, PAGE_RETIREMENT),
	GROUP(1, "Double Bit ECC", "double_bit_retirement", PAGE_RETIREMENT),
	ROW(2, "Count", "retired_count", v_none, PAGE_RETIREMENT),
	ROW(2, "Pages", "retired_pagelist", v_none, PAGE_RETIREMENT),
	ROW(1, "Pending Page Blacklist", "pending_blacklist", v_none, PAGE_RETIREMENT),
	ROW(1, "Pending Retirement", "pending_retirement", v_none, PAGE_RETIREMENT),
	ROW(0, "Remapped Rows", "remapped_rows", v_none, ROW_REMAPPER),
	GROUP(0, "Temperature", "temperature", TEMPERATURE),
	{1, "GPU Current Temp", "gpu_temp", "C", v_temperature, TEMPERATURE},
	{1, "GPU T.Limit Temp", "gpu_temp_tlimit", "C", v_none, TEMPERATURE},
	{1, "GPU Shutdown Temp", "gpu_temp_max_threshold", "C", v_shutdown, TEMPERATURE},
	{1, "GPU Slowdown Temp", "gpu_temp_slow_threshold", "C", v_slowdown, TEMPERATURE},
	{1, "GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", "C", v_none, TEMPERATURE},
	{1, "GPU Target Temperature", "gpu_target_temperature", "C", v_none, TEMPERATURE},
	{1, "Memory Current Temp", "memory_temp", "C", v_none, TEMPERATURE},
	{1, "Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "C", v_none, TEMPERATURE},
	GROUP(0, "GPU Power Readings", "gpu_power_readings", POWER),
	ROW(1, "Power State", "power_state", v_pstate, POWER),
	POWER_READINGS(v_power, v_power_limit),
	GROUP(0, "GPU Memory Power Readings", "gpu_memory_power_readings", POWER),
	{1, "Power Draw", "power_draw", "W", v_none, POWER},
	GROUP(0, "Module Power Readings", "module_power_readings", POWER),
	ROW(1, "Power State", "power_state", v_none, POWER),
	POWER_READINGS(v_none, v_none),
	GROUP(0, "Clocks", "clocks", CLOCK),
	{1, "Graphics", "graphics_clock", "MHz", v_clock_graphics, CLOCK},
	{1, "SM", "sm_clock", "MHz", v_clock_sm, CLOCK},
	{1, "Memory", "mem_clock", "MHz", v_clock_memory, CLOCK},
	{1, "Video", "video_clock", "MHz", v_clock_video, CLOCK},
	GROUP(0, "Applications Clocks", "applications_clocks", CLOCK),
	ROW(1, "Graphics", "graphics_clock", v_none, CLOCK),
	ROW(1, "Memory", "mem_clock", v_none, CLOCK),
	GROUP(0, "Default Applications Clocks", "default_applications_clocks", CLOCK),
	ROW(1, "Graphics", "graphics_clock", v_none, CLOCK),
	ROW(1, "Memory", "mem_clock", v_none, CLOCK),
	GROUP(0, "Deferred Clocks", "deferred_clocks", CLOCK),
	ROW(1, "Memory", "mem_clock", v_none, CLOCK),
	GROUP(0, "Max Clocks", "max_clocks", CLOCK),
	{1, "Graphics", "graphics_clock", "MHz", v_max_graphics, CLOCK},
	{1, "SM", "sm_clock", "MHz", v_max_sm, CLOCK},
	{1, "Memory", "mem_clock", "MHz", v_max_memory, CLOCK},
	{1, "Video", "video_clock", "MHz", v_max_video, CLOCK},
	GROUP(0, "Max Customer Boost Clocks", "max_customer_boost_clocks", CLOCK),
	ROW(1, "Graphics", "graphics_clock", v_none, CLOCK),
	GROUP(0, "Clock Policy", "clock_policy", CLOCK),
	ROW(1, "Auto Boost", "auto_boost", v_none, CLOCK),
	ROW(1, "Auto Boost Default", "auto_boost_default", v_none, CLOCK),
	GROUP(0, "Voltage", "voltage", VOLTAGE),
	ROW(1, "Graphics", "graphics_volt", v_none, VOLTAGE),
	GROUP(0, "Fabric", "fabric", 0),
	ROW(1, "State", "state", v_none, 0),
	ROW(1, "Status", "status", v_none, 0),
	ROW(1, "CliqueId", "cliqueId", v_none, 0),
	ROW(1, "ClusterUUID", "clusterUuid", v_none, 0),
	ROW(0, "Supported Clocks", "supported_clocks", v_none, SUPPORTED_CLOCKS),
};
#define LINES (sizeof lines / sizeof lines[0])

/* Writes the text of an element. Characters that have a meaning in XML or for a terminal are
 * replaced. */
static void escape(FILE *out, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc(*s >= ' ' && *s <= '~' ? *s : '?', out);
		}
	}
}

/* The output of the report, and its current depth. */
struct writer {
	FILE *out;
	bool xml;
	int depth;               /* XML: depth of the device's lines; 0 is inside <gpu> */
	const char *open[8];     /* XML: elements that are open, by depth */
	int opened;
};

static void indent(struct writer *w, int depth)
{
	for (int i = 0; i < depth; i++)
		fputs(w->xml ? "\t" : "    ", w->out);
}

/* Closes the elements of groups down to a depth. */
static void close_to(struct writer *w, int depth)
{
	while (w->xml && w->opened > depth) {
		w->opened--;
		indent(w, w->opened + 2);
		fprintf(w->out, "</%s>\n", w->open[w->opened]);
	}
}

static void group(struct writer *w, int depth, const char *label, const char *element)
{
	close_to(w, depth);
	if (w->xml) {
		indent(w, depth + 2);
		fprintf(w->out, "<%s>\n", element);
		w->open[w->opened++] = element;
	} else {
		indent(w, depth + 1);
		fprintf(w->out, "%s\n", label);
	}
}

static void value(struct writer *w, int depth, const char *label, const char *element, const char *text, const char *unit)
{
	const char *shown = *text ? text : "N/A";

	close_to(w, depth);
	if (w->xml) {
		indent(w, depth + 2);
		fprintf(w->out, "<%s>", element);
		escape(w->out, shown);
		fprintf(w->out, "%s%s</%s>\n", *text && *unit ? " " : "", *text ? unit : "", element);
	} else {
		int column = 41 - (depth + 1) * 4;

		indent(w, depth + 1);
		fprintf(w->out, "%-*s : ", column, label);
		escape(w->out, shown);
		fprintf(w->out, "%s%s\n", *text && *unit ? " " : "", *text ? unit : "");
	}
}

static void process(struct writer *w, const nvmlProcessInfo_t *p)
{
	struct value pid, name = {""}, used;

	snprintf(pid.text, sizeof pid.text, "%u", p->pid);
	snprintf(used.text, sizeof used.text, "%llu", p->usedGpuMemory >> 20);
	nvmlSystemGetProcessName(p->pid, name.text, sizeof name.text);
	if (w->xml) {
		group(w, 1, "", "process_info");
		value(w, 2, "", "gpu_instance_id", "", "");
		value(w, 2, "", "compute_instance_id", "", "");
		value(w, 2, "", "pid", pid.text, "");
		value(w, 2, "", "type", "C", "");
		value(w, 2, "", "process_name", name.text, "");
		value(w, 2, "", "used_memory", used.text, "MiB");
		return;
	}
	value(w, 1, "GPU instance ID", "", "", "");
	value(w, 1, "Compute instance ID", "", "", "");
	value(w, 1, "Process ID", "", pid.text, "");
	value(w, 2, "Type", "", "C", "");
	value(w, 2, "Name", "", name.text, "");
	value(w, 2, "Used GPU Memory", "", used.text, "MiB");
}

static nvmlReturn_t processes(struct writer *w, nvmlDevice_t device)
{
	nvmlProcessInfo_t *list;
	unsigned int n;
	nvmlReturn_t r = smi_processes(device, &list, &n);

	if (r == NVML_SUCCESS && n == 0 && !w->xml)
		value(w, 0, "Processes", "", "None", "");
	else if (r == NVML_SUCCESS)
		group(w, 0, "Processes", "processes");
	for (unsigned int i = 0; r == NVML_SUCCESS && i < n; i++)
		process(w, &list[i]);
	free(list);
	return r;
}

static nvmlReturn_t accounted(struct writer *w, nvmlDevice_t device)
{
	unsigned int pids[4096], n = 4096;
	nvmlReturn_t r = nvmlDeviceGetAccountingPids(device, &n, pids);

	if (r)
		return r;
	if (n == 0 && !w->xml)
		value(w, 0, "Accounted Processes", "", "None", "");
	else
		group(w, 0, "Accounted Processes", "accounted_processes");
	for (unsigned int i = 0; i < n; i++) {
		nvmlAccountingStats_t s;
		char text[32];

		if (nvmlDeviceGetAccountingStats(device, pids[i], &s) != NVML_SUCCESS)
			continue;
		snprintf(text, sizeof text, "%u", pids[i]);
		if (w->xml)
			group(w, 1, "", "accounted_process_info");
		value(w, w->xml ? 2 : 1, "Process ID", "pid", text, "");
		snprintf(text, sizeof text, "%u", s.gpuUtilization);
		value(w, 2, "GPU Utilization", "gpu_util", text, "%");
		value(w, 2, "Memory Utilization", "memory_util", "", "%");
		snprintf(text, sizeof text, "%llu", s.maxMemoryUsage >> 20);
		value(w, 2, "Max memory usage", "max_memory_usage", text, "MiB");
		snprintf(text, sizeof text, "%llu", s.time);
		value(w, 2, "Time", "time", text, "ms");
		value(w, 2, "Is Running", "is_running", s.isRunning ? "1" : "0", "");
	}
	return NVML_SUCCESS;
}

static nvmlReturn_t body(struct writer *w, nvmlDevice_t device, unsigned int sections)
{
	nvmlReturn_t r = NVML_SUCCESS;

	for (size_t i = 0; i < LINES; i++) {
		const struct line *l = &lines[i];
		struct value v = {""};

		if (sections && !(l->sections & sections))
			continue;
		if (!l->get) {
			group(w, l->depth, l->label, l->element);
			continue;
		}
		l->get(device, &v);
		value(w, l->depth, l->label, l->element, v.text, l->unit);
	}
	if (!sections || sections & PIDS)
		r = processes(w, device);
	if (r == NVML_SUCCESS && (!sections || sections & ACCOUNTING))
		r = accounted(w, device);
	close_to(w, 0);
	return r;
}

static void head(FILE *out, bool xml, const char *bus)
{
	struct value driver = {""}, cuda = {""};
	char when[64];
	time_t now = time(NULL);
	struct tm local;

	v_driver(NULL, &driver);
	v_cuda(NULL, &cuda);
	strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
	if (xml) {
		fprintf(out, "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n"
			     "\t<timestamp>%s</timestamp>\n\t<driver_version>%s</driver_version>\n\t<cuda_version>%s</cuda_version>\n"
			     "\t<attached_gpus>1</attached_gpus>\n\t<gpu id=\"%s\">\n", when, driver.text, cuda.text, bus);
		return;
	}
	fprintf(out, "\n==============NVSMI LOG==============\n\n%-41s : %s\n%-41s : %s\n%-41s : %s\n\n%-41s : 1\nGPU %s\n", "Timestamp", when,
		"Driver Version", driver.text, "CUDA Version", cuda.text, "Attached GPUs", bus);
}

int smi_report(FILE *out, nvmlDevice_t device, const struct report *what)
{
	struct writer w = {.out = out, .xml = what->xml};
	struct value bus = {""};
	nvmlMemory_t m;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo(device, &m); /* check whether the GPU is lost */

	if (r == NVML_SUCCESS) {
		v_bus_id(device, &bus);
		head(out, what->xml, bus.text);
		r = body(&w, device, what->sections);
		fputs(what->xml ? "\t</gpu>\n</nvidia_smi_log>\n" : "\n", out);
	}
	return r ? smi_fail("the vGPU does not answer", r) : 0;
}
