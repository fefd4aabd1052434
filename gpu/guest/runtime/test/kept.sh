#!/usr/bin/env bash
# kept.sh GUEST PROGRAM ARGUMENT…: builds a CUDA program by GUEST/bin/basalt-clang with the
# arguments, which takes a second or more, or gets it from the cache if another clone on this
# machine has built the same program (installer/dev/cache.sh). The Makefile in gpu/guest
# calls it.
set -euo pipefail

guest=$1 program=$2
shift 2

# Prints all inputs of the program: the compiler, its C++ library, our headers and library, the
# arguments, and the content of the files that they name.
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
build() { # cache.sh calls it with GUEST NAME ARGUMENT… FOLDER
	local guest=$1 name=$2 folder=${!#}
	shift 2
	"$guest/bin/basalt-clang" -o "$folder/$name" "${@:1:$#-1}"
}
export -f build
"${BASH_SOURCE[0]%/*}"/../../../../installer/dev/cache.sh "cuda-$name" "$key" "$(dirname "$program")" "$name" -- \
	bash -euc 'build "$@"' build "$guest" "$name" "$@"
