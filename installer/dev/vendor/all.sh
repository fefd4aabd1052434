#!/usr/bin/env bash
# What make test-vendor runs: the samples, pycuda and numba, PyTorch. Each part is run
# to its end whatever was found before; the summary's status is this one's.
set -uo pipefail
cd "$(dirname "$0")"
broken=0
for part in samples python torch; do
	./$part.sh || { echo "vendor: $part.sh ended with status $?" >&2; broken=1; }
done
./summary.sh && exit $broken
