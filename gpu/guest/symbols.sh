#!/bin/sh
# symbols.sh GLIBC FILE…: fails if a file needs a later glibc than that (or relative
# relocations in the form that only a later one knows), or a library other than glibc's.
set -eu
limit=$1
shift
for f; do
	if readelf -d "$f" | grep -w RELR; then
		echo "$f has relocations of the form RELR, which glibc knows since 2.36" >&2
		exit 1
	fi
	newest=$(objdump -T "$f" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
	if [ "$(printf '%s\n%s\n' "$newest" "$limit" | sort -V | tail -1)" != "$limit" ]; then
		echo "$f needs glibc $newest:" >&2
		objdump -T "$f" | grep "GLIBC_$newest" >&2
		exit 1
	fi
	if objdump -p "$f" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(lib(c\.so\.6|pthread\.so\.0|dl\.so\.2)|ld-linux.*|libcuda\.so\.1|libnvidia-ml\.so\.1)$'; then
		echo "$f needs the libraries above" >&2
		exit 1
	fi
done
