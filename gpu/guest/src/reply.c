#include "reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_VERSION 1
#define MAX_LIST (1u << 20)

struct reader {
	const uint8_t *b;
	size_t n, pos;
	bool bad;
};

static void read_bytes(struct reader *r, void *out, size_t n)
{
	if (r->bad || n > r->n - r->pos) {
		r->bad = true;
		memset(out, 0, n);
		return;
	}
	memcpy(out, r->b + r->pos, n);
	r->pos += n;
}

static uint32_t u32(struct reader *r)
{
	uint32_t v;

	read_bytes(r, &v, sizeof v);
	return v;
}

static uint64_t u64(struct reader *r)
{
	uint64_t v;

	read_bytes(r, &v, sizeof v);
	return v;
}

/* Reads the length of a list whose elements have at least each bytes. */
static uint32_t count(struct reader *r, size_t each, uint32_t limit)
{
	uint32_t n = u32(r);

	if (n > limit || n * (uint64_t)each > r->n - r->pos)
		r->bad = true;
	return r->bad ? 0 : n;
}

/* Returns a new NUL-terminated copy of a string, or NULL if the record is invalid. */
static char *string(struct reader *r)
{
	uint32_t n = u32(r), pad = -n & 3;
	char *s;

	if (r->bad || n > r->n - r->pos || pad > r->n - r->pos - n || !(s = malloc((size_t)n + 1))) {
		r->bad = true;
		return NULL;
	}
	memcpy(s, r->b + r->pos, n);
	s[n] = 0;
	r->pos += n + pad;
	return s;
}

static void *list(struct reader *r, uint32_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		r->bad = true;
	return p;
}

static struct reader open_record(const uint8_t *b, size_t n)
{
	struct reader r = {b, n, 0, false};
	uint32_t version = u32(&r), total = u32(&r);

	if (version != RECORD_VERSION || total < 8 || total > n)
		r.bad = true;
	else
		r.n = total;
	return r;
}

int decode_device_info(const uint8_t *b, size_t n, struct device_info *out)
{
	struct reader r = open_record(b, n);
	struct device_info d = {0};

	d.total_memory = u64(&r);
	read_bytes(&r, d.uuid, sizeof d.uuid);
	d.attribute_count = count(&r, 4, MAX_ATTRIBUTES);
	(void)u32(&r);
	d.attributes = list(&r, d.attribute_count, sizeof *d.attributes);
	for (uint32_t i = 0; i < d.attribute_count && !r.bad; i++)
		d.attributes[i] = (int32_t)u32(&r);
	d.name = string(&r);
	d.driver_version = string(&r);
	d.cuda_version = u32(&r);
	d.devices = r.bad || r.n - r.pos < 4 ? 1 : u32(&r); /* old workers do not send it */
	*out = d;
	if (r.bad)
		free_device_info(out);
	return r.bad ? -1 : 0;
}

void free_device_info(struct device_info *d)
{
	free(d->attributes);
	free(d->name);
	free(d->driver_version);
	*d = (struct device_info){0};
}

static void read_function(struct reader *r, struct function_info *f)
{
	f->name = string(r);
	f->param_count = count(r, 8, MAX_LIST);
	f->params = list(r, f->param_count, sizeof *f->params);
	for (uint32_t k = 0; k < f->param_count && !r->bad; k++) {
		f->params[k].offset = u32(r);
		f->params[k].size = u32(r);
	}
	for (int k = 0; k < FUNCTION_ATTRIBUTES; k++)
		f->attributes[k] = (int32_t)u32(r);
}

static void read_global(struct reader *r, struct global_info *g)
{
	g->name = string(r);
	if (r->pos % 8)
		(void)u32(r);
	g->address = u64(r);
	g->size = u64(r);
}

/* Reads which functions the device cannot run. Old workers do not send it. */
static void read_refused(struct reader *r, struct module_info *m)
{
	uint32_t n = r->bad || r->n - r->pos < 4 ? 0 : count(r, 8, m->function_count);

	while (n-- > 0 && !r->bad) {
		uint32_t i = u32(r);
		char *why = string(r);

		if (i >= m->function_count || m->functions[i].refused) {
			r->bad = true;
			free(why);
		} else {
			m->functions[i].refused = why;
		}
	}
}

int decode_module_info(const uint8_t *b, size_t n, struct module_info *out)
{
	struct reader r = open_record(b, n);
	struct module_info m = {0};

	/* A function has at least 48 bytes, a global variable 20. */
	m.function_count = count(&r, 48, MAX_LIST);
	m.global_count = count(&r, 20, MAX_LIST);
	m.functions = list(&r, m.function_count, sizeof *m.functions);
	m.globals = list(&r, m.global_count, sizeof *m.globals);
	for (uint32_t i = 0; i < m.function_count && !r.bad; i++)
		read_function(&r, &m.functions[i]);
	for (uint32_t i = 0; i < m.global_count && !r.bad; i++)
		read_global(&r, &m.globals[i]);
	if (!r.bad)
		m.info_log = string(&r);
	if (!r.bad)
		m.error_log = string(&r);
	read_refused(&r, &m);
	*out = m;
	if (r.bad)
		free_module_info(out);
	return r.bad ? -1 : 0;
}

void free_module_info(struct module_info *m)
{
	for (uint32_t i = 0; m->functions && i < m->function_count; i++) {
		free(m->functions[i].name);
		free(m->functions[i].params);
		free(m->functions[i].refused);
	}
	for (uint32_t i = 0; m->globals && i < m->global_count; i++)
		free(m->globals[i].name);
	free(m->functions);
	free(m->globals);
	free(m->info_log);
	free(m->error_log);
	*m = (struct module_info){0};
}

static void read_more(struct reader *r, struct vgpu_status *v)
{
	v->reading_count = count(r, 16, MAX_LIST);
	v->readings = list(r, v->reading_count, sizeof *v->readings);
	for (uint32_t i = 0; i < v->reading_count && !r->bad; i++) {
		v->readings[i].key = u32(r);
		(void)u32(r);
		v->readings[i].value = u64(r);
	}
	v->accounted_count = count(r, 40, MAX_LIST);
	v->accounted = list(r, v->accounted_count, sizeof *v->accounted);
	for (uint32_t i = 0; i < v->accounted_count && !r->bad; i++) {
		struct accounted_process *a = &v->accounted[i];

		a->pid = u32(r);
		a->gpu_utilization = u32(r);
		a->start = u64(r);
		a->end = u64(r);
		a->gpu_nanos = u64(r);
		a->peak_vram = u64(r);
	}
	v->sample_count = count(r, 16, MAX_LIST);
	v->samples = list(r, v->sample_count, sizeof *v->samples);
	for (uint32_t i = 0; i < v->sample_count && !r->bad; i++) {
		v->samples[i].at = u64(r);
		v->samples[i].gpu_utilization = u32(r);
		(void)u32(r);
	}
	if (r->bad || r->n - r->pos < 4)
		return; /* from an older worker */
	v->event_count = count(r, 16, MAX_LIST);
	v->events = list(r, v->event_count, sizeof *v->events);
	for (uint32_t i = 0; i < v->event_count && !r->bad; i++) {
		v->events[i].at = u64(r);
		v->events[i].xid = u32(r);
		v->events[i].pid = u32(r);
	}
}

int decode_vgpu_status(const uint8_t *b, size_t n, struct vgpu_status *out)
{
	struct reader r = open_record(b, n);
	struct vgpu_status v = {0};

	v.vram_limit = u64(&r);
	v.vram_used = u64(&r);
	v.gpu_utilization = u32(&r);
	v.memory_utilization = u32(&r);
	v.temperature = u32(&r);
	v.power_milliwatts = u32(&r);
	v.process_count = count(&r, 20, MAX_LIST);
	(void)u32(&r);
	v.processes = list(&r, v.process_count, sizeof *v.processes);
	for (uint32_t i = 0; i < v.process_count && !r.bad; i++) {
		v.processes[i].pid = u32(&r);
		(void)u32(&r);
		v.processes[i].vram = u64(&r);
		v.processes[i].name = string(&r);
	}
	if (!r.bad && r.n - r.pos >= 4)
		read_more(&r, &v);
	*out = v;
	if (r.bad)
		free_vgpu_status(out);
	return r.bad ? -1 : 0;
}

void free_vgpu_status(struct vgpu_status *v)
{
	for (uint32_t i = 0; v->processes && i < v->process_count; i++)
		free(v->processes[i].name);
	free(v->processes);
	free(v->readings);
	free(v->accounted);
	free(v->samples);
	free(v->events);
	*v = (struct vgpu_status){0};
}
