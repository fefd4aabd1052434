#!/bin/sh
# symbols.sh LIBC FILE…: fails if a file needs a library other than LIBC, or symbols of it that guests
# do not have. LIBC is glibc-2.17, which stands for that version and later ones, or musl.
set -eu
libc=$1
shift
case $libc in
musl) libraries='libc\.so' ;;
*) libraries='libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux-.*' ;;
esac
for f; do
	if readelf -d "$f" | grep -w RELR; then
		echo "$f has relocations of the form RELR, which glibc knows since 2.36 and musl since 1.2.4" >&2
		exit 1
	fi
	if readelf -d "$f" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE "$libraries|libcuda\.so\.1|libnvidia-ml\.so\.1"; then
		echo "$f needs the libraries above" >&2
		exit 1
	fi
	[ "$libc" != musl ] || continue
	newest=$(objdump -T "$f" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
	if [ "$(printf '%s\n%s\n' "$newest" "${libc#glibc-}" | sort -V | tail -1)" != "${libc#glibc-}" ]; then
		echo "$f needs glibc $newest:" >&2
		objdump -T "$f" | grep "GLIBC_$newest" >&2
		exit 1
	fi
done
