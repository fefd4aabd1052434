/* topo: the connections between GPUs. There is only one GPU. */
#include <string.h>

#include "smi.h"

int smi_topology(FILE *out, int argc, char **argv)
{
	if (argc != 1 || (strcmp(argv[0], "-m") != 0 && strcmp(argv[0], "--matrix") != 0)) {
		int asked = argc == 1 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0);

		if (!asked)
			fprintf(stderr, "nvidia-smi: topo: %s: want -m\n", argc > 0 ? argv[argc - 1] : "no option");
		fputs("usage: nvidia-smi topo -m    the matrix of connections between GPUs\n", asked ? out : stderr);
		return asked ? 0 : EXIT_ARGUMENT;
	}
	fputs("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
	      "GPU0\t X \tN/A\tN/A\t\tN/A\n"
	      "\nLegend:\n\n  X    = Self\n", out);
	return 0;
}
