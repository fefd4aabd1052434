/* replay REQUESTS SEQUENCE: makes the calls of a sequence, one line after the other. */
#include <stdarg.h>

#include "replay.h"

struct step step;
static const char *sequence;
static unsigned int line_number, calls_made, refused;

void wrong(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: call %u, %s (line %u): ", sequence, calls_made + 1, step.name ? step.name : "none", line_number);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void aside(const char *name, CUresult result)
{
	if (result != CUDA_SUCCESS)
		wrong("%s beside it gives %d", name, result);
}

static const struct call *call_of(const char *name)
{
	const struct call *const all[] = {context_calls, data_calls, other_calls, table_calls};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct call *c = all[i]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	wrong("the player has no such call");
}

/* Returns the counter of the calls of a name. */
static unsigned int *counter(const char *name)
{
	static struct {
		char name[80];
		unsigned int calls;
	} counters[160];

	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
		if (!counters[i].name[0])
			snprintf(counters[i].name, sizeof counters[i].name, "%s", name);
		if (strcmp(counters[i].name, name) == 0)
			return &counters[i].calls;
	}
	wrong("too many names");
}

static void play(const char *name, unsigned int count, CUresult want, const char *how)
{
	bool table = strchr(name, '[') != NULL;
	const struct call *call;
	unsigned int *made;

	step = (struct step){.name = name, .how = how};
	call = call_of(name);
	made = counter(name);
	for (unsigned int i = 0; i < count; i++) {
		step.address = table ? NULL : lookup(name);
		step.nth = *made;
		step.want = want;
		CUresult result = call->make();
		if (result != step.want)
			wrong("the code is %d, want %d", result, step.want);
		refused += result == CUDA_ERROR_NOT_SUPPORTED;
		calls_made++;
		++*made;
	}
}

/* Makes the calls of one line: NAME [COUNT] [=CODE] [HOW]. */
static void play_line(char *line)
{
	unsigned int count = 1;
	CUresult want = 0;
	char *save, *name = strtok_r(line, " ", &save), *word;
	const char *how = "";

	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		if (*word >= '0' && *word <= '9')
			count = (unsigned int)atoi(word);
		else if (*word == '=')
			want = atoi(word + 1);
		else
			how = word;
	}
	if (strcmp(name, "verify") == 0)
		buffers_verify();
	else
		play(name, count, want, how);
}

static enum lookup way_of(const char *words)
{
	static const char *const names[] = {[BY_NAME] = "names", [BY_RUNTIME] = "runtime", [BY_RUNTIME_PER_THREAD] = "runtime per-thread"};

	for (enum lookup way = BY_NAME; way <= BY_RUNTIME_PER_THREAD; way++)
		if (strcmp(names[way], words) == 0)
			return way;
	wrong("no such way to look up: %s", words);
}

int main(int argc, char **argv)
{
	unsigned int recorded = 0;
	char line[200];
	CUstream s;
	FILE *f;

	if (argc != 3 || !(f = fopen(argv[2], "r"))) {
		fprintf(stderr, "usage: replay REQUESTS SEQUENCE\n");
		return 2;
	}
	sequence = argv[2];
	while (fgets(line, sizeof line, f)) {
		line_number++;
		line[strcspn(line, "#\n")] = 0;
		if (strncmp(line, "calls ", 6) == 0)
			recorded = (unsigned int)atoi(line + 6);
		else if (strncmp(line, "lookup ", 7) == 0)
			lookup_open(argv[1], way_of(line + 7));
		else if (line[0])
			play_line(line);
	}
	fclose(f);
	if (calls_made != recorded)
		wrong("%u calls were made, %u are recorded", calls_made, recorded);
	if (copies_waiting(&s))
		wrong("nothing waited for a copy to host memory");
	printf("%s: %u calls as recorded, %u of them refused\n", sequence, calls_made, refused);
	return 0;
}
