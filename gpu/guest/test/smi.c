/* Prints a table for the golden test: "smi NAME". */
#include <string.h>

#include "table.h"

int main(int argc, char **argv)
{
	static const struct smi_process many[] = {
		{7, 1ull << 20, "a"},
		{4194304, 143360ull << 20, "/opt/conda/envs/a-rather-long-name/bin/python3.11"},
		{123456, 0xffffffffffull << 20, "evil\033[2J\tname"},
	};
	struct smi_view v = {.name = "Basalt Soft GPU", .driver = "550.163.01", .bus = "00000000:00:00.0", .cuda = 12040,
			     .degrees = -1, .watts = -1, .limit = -1, .fan = -1, .state = -1, .ecc = -1, .errors = -1, .total = 1ull << 30};
	const char *which = argc > 1 ? argv[1] : "";

	if (strcmp(which, "full") == 0) {
		strcpy(v.name, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition");
		strcpy(v.driver, "1234567.163.01-and-much-more-than-fits");
		v.cuda = 13990;
		v.degrees = 101;
		v.watts = 1200;
		v.limit = 12345;
		v.fan = 100;
		v.state = 15;
		v.ecc = 1;
		v.errors = 1ll << 62;
		v.load = 100;
		v.used = 286720ull << 20;
		v.total = 999999ull << 20;
		v.processes = many;
		v.process_count = sizeof many / sizeof many[0];
	}
	smi_draw(stdout, &v, &(struct tm){.tm_year = 126, .tm_mon = 10, .tm_mday = 2, .tm_wday = 1, .tm_hour = 9});
	return 0;
}
