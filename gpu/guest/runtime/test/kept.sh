#!/usr/bin/env bash
# kept.sh GUEST PROGRAM ARGUMENT…: builds a CUDA program by GUEST/bin/basalt-clang with the
# arguments, which takes a second or more, or has it from where another clone on this
# machine built the same (installer/dev/cache.sh). Called by the Makefile in gpu/guest.
set -euo pipefail

guest=$1 program=$2
shift 2

# What the program is made of: the compiler, its C++ library, our headers and library, and
# the arguments with what is in the files that they name.
made_of() {
	"${BASALT_CLANG:-clang++-19}" --version
	gcc --version
	cat "$guest"/bin/basalt-clang "$guest"/include/cuda/*.h "$guest"/lib/libcudart.so.12 "${BASH_SOURCE[0]%/*}"/*.h
	local argument
	for argument in "$@"; do
		if [ -f "$argument" ]; then cat "$argument" "${argument%/*}"/*.h 2>/dev/null || true; else printf '%s\n' "$argument"; fi
	done
}
key=$(made_of "$@" | sha256sum | cut -c1-32)
name=$(basename "$program")
build() { # GUEST NAME ARGUMENT… FOLDER, as cache.sh calls it
	local guest=$1 name=$2 folder=${!#}
	shift 2
	"$guest/bin/basalt-clang" -o "$folder/$name" "${@:1:$#-1}"
}
export -f build
"${BASH_SOURCE[0]%/*}"/../../../../installer/dev/cache.sh "cuda-$name" "$key" "$(dirname "$program")" "$name" -- \
	bash -euc 'build "$@"' build "$guest" "$name" "$@"
