#!/usr/bin/env bash
# Runs all parts of make test-vendor: the samples, pycuda and numba, PyTorch. Each part
# is run to its end whatever the others found; the status is that of the summary.
set -uo pipefail
cd "$(dirname "$0")"
broken=0
for part in samples python torch; do
	./$part.sh || { echo "vendor: $part.sh ended with status $?" >&2; broken=1; }
done
./summary.sh && exit $broken
