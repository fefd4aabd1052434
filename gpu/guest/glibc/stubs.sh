#!/bin/sh
# stubs.sh ARCH OUT CC…: creates libraries in the folder OUT, from symbols.txt, to link with in place
# of the machine's glibc. They have no code, only symbols with versions. Files that are linked with
# them need these versions and no later ones, independent of the glibc of the build machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
arch=$1 out=$2
shift 2
mkdir -p "$out"

case $arch in
x86_64) loader=ld-linux-x86-64.so.2 ;;
aarch64) loader=ld-linux-aarch64.so.1 ;;
*) echo "stubs.sh: architecture $arch, want x86_64 or aarch64" >&2; exit 1 ;;
esac
for library in libc.so.6 libpthread.so.0 libdl.so.2 ld-linux-x86-64.so.2; do
	soname=$library
	[ "$library" != ld-linux-x86-64.so.2 ] || soname=$loader
	awk -v library="$library" '
		!/^#/ && $1 == library { print ($4 == "data" ? "void *" $3 ";" : "void " $3 "(void) {}") }' "$here/symbols.txt" >"$out/$soname.c"
	# Each version depends on the previous one in the list.
	awk -v library="$library" -v arch="$arch" '
		/^#/ || $1 != library { next }
		{ v = arch == "x86_64" ? $2 : "GLIBC_2.17"; if (!(v in names)) order[++n] = v; names[v] = names[v] " " $3 ";" }
		END { for (i = 1; i <= n; i++) print order[i] " {" names[order[i]] " }" (i > 1 ? " " order[i-1] : "") ";" }' "$here/symbols.txt" >"$out/$soname.map"
	"$@" -w -fno-builtin -nostdlib -shared -Wl,-soname,"$soname" -Wl,--version-script="$out/$soname.map" -o "$out/$soname" "$out/$soname.c"
done
ln -sf libpthread.so.0 "$out/libpthread.so"
ln -sf libdl.so.2 "$out/libdl.so"
# atexit and pthread_atfork are linked statically, and are not in libc.so.6.
echo "INPUT(libc.so.6 -lc_nonshared AS_NEEDED($loader))" >"$out/libc.so"
