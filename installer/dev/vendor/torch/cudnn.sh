#!/bin/sh
# Creates a libcudnn.so.9 for PyTorch to load, since Debian's would be downloaded from
# NVIDIA. It has the functions that the given libraries import and reports that cuDNN is
# not usable (CUDNN_STATUS_NOT_INITIALIZED), so that PyTorch does not use it. Runs in
# the root.
#
#   cudnn.sh OUTPUT LIBRARY…
set -eu
output=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	echo '#include <stddef.h>'
	nm -D -u "$@" | sed -n 's/^ *U \(cudnn[A-Za-z0-9_]*\).*/\1/p' | sort -u |
		while read -r name; do
			case $name in
			cudnnGetVersion) echo "size_t $name(void) { return 90000; }" ;;
			cudnnGetCudartVersion) echo "size_t $name(void) { return 12040; }" ;;
			cudnnGetProperty) echo "int $name(int part, int *value) { *value = part ? 0 : 9; return 0; }" ;;
			cudnnGetErrorString) echo "const char *$name(int e) { (void)e; return \"there is no cuDNN\"; }" ;;
			cudnnGetLastErrorString) echo "void $name(char *s, size_t n) { if (n) *s = 0; }" ;;
			*) echo "int $name(void) { return 1001; }" ;;
			esac
		done
} >"$work/cudnn.c"
echo 'libcudnn.so.9 { global: cudnn*; local: *; };' >"$work/cudnn.map"
gcc -shared -fPIC -Wl,-soname,libcudnn.so.9 -Wl,--version-script="$work/cudnn.map" -o "$output" "$work/cudnn.c"
