/* The expected content of every buffer, from the same operations in this process. */
#include "replay.h"

static struct buffer *buffers[64];
static unsigned int count;
static struct buffer *last;

/* A copy to pageable host memory that was not waited for. */
static struct pending {
	CUstream stream;
	unsigned int *to, *want;
} pending[64];
static unsigned int waiting;

void buffer_new(CUdeviceptr at, enum kind kind)
{
	struct buffer *b = calloc(1, sizeof *b);

	EXPECT(b && count < sizeof buffers / sizeof *buffers);
	b->at = at;
	b->kind = kind;
	buffers[count++] = b;
}

unsigned int buffers_of(enum kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < count; i++)
		n += buffers[i]->kind == kind;
	return n;
}

struct buffer *buffer_of(enum kind kind, unsigned int n)
{
	unsigned int of = buffers_of(kind);

	EXPECT(of > 0);
	n %= of;
	for (unsigned int i = 0; i < count; i++)
		if (buffers[i]->kind == kind && n-- == 0)
			return buffers[i];
	wrong("no buffer");
}

unsigned int buffers_known(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < count; i++)
		n += buffers[i]->kind == DEVICE && buffers[i]->known;
	return n;
}

struct buffer *buffer_known(unsigned int n)
{
	for (unsigned int i = 0; i < count; i++)
		if (buffers[i]->kind == DEVICE && buffers[i]->known && n-- == 0)
			return buffers[i];
	wrong("no buffer whose contents are known");
}

void buffer_forget(struct buffer *b)
{
	for (unsigned int i = 0; i < count; i++)
		if (buffers[i] == b) {
			memmove(&buffers[i], &buffers[i + 1], (count - i - 1) * sizeof *buffers);
			count--;
			break;
		}
	if (last == b)
		last = NULL;
	free(b);
}

void written(struct buffer *b)
{
	b->known = true;
	last = b;
}

struct buffer *last_written(void)
{
	return last ? last : buffer_known(0);
}

void compare(const char *what, const unsigned int *got, const unsigned int *want, unsigned int words)
{
	for (unsigned int i = 0; i < words; i++)
		if (got[i] != want[i])
			wrong("%s: word %u is %u, want %u", what, i, got[i], want[i]);
}

void buffers_verify(void)
{
	static unsigned int got[WORDS];

	for (unsigned int i = 0; i < count; i++) {
		if (!buffers[i]->known)
			continue;
		ASIDE(cuMemcpyDtoH_v2, got, buffers[i]->at, sizeof got);
		compare("a buffer", got, buffers[i]->words, WORDS);
	}
}

void copy_pending(CUstream s, const struct buffer *from, unsigned int *to)
{
	struct pending *p = &pending[waiting++];

	EXPECT(waiting <= sizeof pending / sizeof *pending);
	*p = (struct pending){s, to, malloc(sizeof from->words)};
	EXPECT(p->want);
	memcpy(p->want, from->words, sizeof from->words);
}

/* Checks that the pending copies of one stream, or of all streams, are done. */
void copies_done(CUstream s, bool all)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < waiting; i++) {
		if (!all && pending[i].stream != s) {
			pending[left++] = pending[i];
			continue;
		}
		compare("a copy to host memory", pending[i].to, pending[i].want, WORDS);
		free(pending[i].to);
		free(pending[i].want);
	}
	waiting = left;
}

unsigned int copies_waiting(CUstream *s)
{
	if (waiting)
		*s = pending[0].stream;
	return waiting;
}
