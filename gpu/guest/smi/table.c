/* The default table: 91 columns, in the layout of driver 550. */
#include <string.h>

#include "table.h"

#define LINE "+-----------------------------------------------------------------------------------------+\n"

/* Shortens a text to room bytes: three dots and its end. */
static const char *shorten_to_end(const char *text, size_t room, char *out)
{
	size_t n = strlen(text);

	if (n <= room)
		return text;
	memcpy(out, "...", 3);
	memcpy(out + 3, text + n - (room - 3), room - 3 + 1);
	return out;
}

/* Shortens a text to its start, because model names differ there. */
static const char *shorten_to_start(const char *text, size_t room, char *out)
{
	if (strlen(text) <= room)
		return text;
	memcpy(out, text, room - 3);
	memcpy(out + room - 3, "...", 4);
	return out;
}

/* Replaces bytes that are not printable ASCII by question marks, so that each byte is one column,
 * and a name can neither shift the table nor send control codes to a terminal. */
static void replace_unprintable(char *out, size_t size, const char *text)
{
	size_t i = 0;

	for (; i < size - 1 && text[i]; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = 0;
}

/* Converts bytes to MiB. A worker may send any number, so it is limited to nine digits. */
static unsigned long long mib(unsigned long long bytes)
{
	return bytes >> 20 < 999999999 ? bytes >> 20 : 999999999;
}

static void draw_device(FILE *out, const struct smi_view *v)
{
	char name[sizeof v->name], cut[64], memory[64], power[32] = "N/A", limit[24] = "N/A", degrees[16] = "N/A", load[16];
	char fan[16] = "N/A", state[16] = "N/A", errors[32] = "N/A";

	replace_unprintable(name, sizeof name, v->name);
	if (v->degrees >= 0)
		snprintf(degrees, sizeof degrees, "%dC", v->degrees);
	if (v->watts >= 0)
		snprintf(power, sizeof power, "%ldW", v->watts);
	if (v->limit >= 0)
		snprintf(limit, sizeof limit, "%ldW", v->limit);
	if (v->fan >= 0)
		snprintf(fan, sizeof fan, "%d%%", v->fan);
	if (v->state >= 0)
		snprintf(state, sizeof state, "P%d", v->state);
	if (v->ecc == 0)
		snprintf(errors, sizeof errors, "Off");
	else if (v->ecc > 0 && v->errors >= 0)
		snprintf(errors, sizeof errors, "%lld", v->errors);
	snprintf(memory, sizeof memory, "%lluMiB / %6lluMiB", mib(v->used), mib(v->total));
	snprintf(load, sizeof load, "%u%%", v->load);
	fprintf(out, "|   0  %-26s      On |   %16.16s Off | %20.20s |\n", shorten_to_start(name, 26, cut), v->bus, errors);
	fprintf(out, "| %3.3s  %4.4s    %-3.3s       %8.8s / %5.5s | %22.22s | %7.7s      Default |\n", fan, degrees, state, power, limit, memory, load);
	fputs("|                                         |                        |                  N/A |\n", out);
}

static void draw_processes(FILE *out, const struct smi_view *v)
{
	char name[96], cut[64];

	fputs("\n" LINE
	      "| Processes:                                                                              |\n"
	      "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
	      "|        ID   ID                                                               Usage      |\n"
	      "|=========================================================================================|\n", out);
	if (v->process_count == 0)
		fputs("|  No running processes found                                                             |\n", out);
	for (unsigned int i = 0; i < v->process_count; i++) {
		const struct smi_process *p = &v->processes[i];

		replace_unprintable(name, sizeof name, p->name);
		fprintf(out, "|    0   N/A  N/A  %9u      C   %-38s %9lluMiB |\n", p->pid, shorten_to_end(name, 38, cut), mib(p->bytes));
	}
	fputs(LINE, out);
}

void smi_draw(FILE *out, const struct smi_view *v, const struct tm *when)
{
	char text[64], driver[80], cuda[16];

	strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", when);
	replace_unprintable(driver, sizeof driver, v->driver);
	snprintf(cuda, sizeof cuda, "%d.%d", v->cuda / 1000, v->cuda % 1000 / 10);
	fprintf(out, "%s\n" LINE, text);
	fprintf(out, "| NVIDIA-SMI %-22.22s Driver Version: %-14.14s CUDA Version: %-8.8s |\n", driver, driver, cuda);
	fputs("|-----------------------------------------+------------------------+----------------------+\n"
	      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
	      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
	      "|                                         |                        |               MIG M. |\n"
	      "|=========================================+========================+======================|\n", out);
	draw_device(out, v);
	fputs("+-----------------------------------------+------------------------+----------------------+\n", out);
	draw_processes(out, v);
}
