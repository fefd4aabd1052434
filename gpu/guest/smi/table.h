#ifndef BASALT_SMI_TABLE_H
#define BASALT_SMI_TABLE_H

#include <stdio.h>
#include <time.h>

/* The content of the table. Printing it is a pure function of this. */
struct smi_process {
	unsigned int pid;
	unsigned long long bytes;
	char name[96];
};
struct smi_view {
	char name[96], driver[80], bus[32];
	int cuda;               /* 12040: 12.4 */
	int degrees;            /* Celsius; -1: unknown */
	long watts, limit;      /* -1: unknown */
	int fan, state;         /* percent, and 0 for P0; -1: unknown */
	long long errors;       /* uncorrected ECC errors; -1: unknown */
	int ecc;                /* 1 if ECC is enabled; -1: unknown */
	unsigned int load;      /* percent */
	unsigned long long used, total; /* bytes */
	const struct smi_process *processes;
	unsigned int process_count;
};

void smi_draw(FILE *out, const struct smi_view *v, const struct tm *when);

#endif
