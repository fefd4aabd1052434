#ifndef BASALT_SMI_TABLE_H
#define BASALT_SMI_TABLE_H

#include <stdio.h>
#include <time.h>

/* What the table shows; drawing it is a pure function of this. */
struct smi_process {
	unsigned int pid;
	unsigned long long bytes;
	char name[96];
};
struct smi_view {
	char name[96], driver[80], bus[32];
	int cuda;               /* 12040: 12.4 */
	int degrees;            /* Celsius; -1: not known */
	long watts, limit;      /* -1: not known */
	int fan, state;         /* per cent, and 0 is P0; -1: not known */
	long long errors;       /* that ECC could not correct; -1: not known */
	int ecc;                /* whether it is on; -1: not known */
	unsigned int load;      /* percent */
	unsigned long long used, total; /* bytes */
	const struct smi_process *processes;
	unsigned int process_count;
};

void smi_draw(FILE *out, const struct smi_view *v, const struct tm *when);

#endif
