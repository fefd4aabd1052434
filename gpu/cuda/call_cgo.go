//go:build cgo

package cuda

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uintptr_t u;
// Floats are passed in registers of their own, wherever they are among the
// arguments.
typedef int (*function)(u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, float, float);

// The context that this thread last made current: goroutines move between
// threads, and a call needs no additional call while they do not.
static __thread u current, current_of; // the context, and the library that it belongs to
static __thread unsigned long current_in;
static unsigned long generation; // of contexts

static int invoke(u set, u ctx, u f, u a, u b, u c, u d, u e, u g, u h, u i, u j, u k, u l, u m, u n, u o, u p, float x, float y) {
	unsigned long now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	if (ctx && (ctx != current || set != current_of || now != current_in)) {
		int r = ((int (*)(u))set)(ctx);
		if (r) return r;
		current = ctx;
		current_of = set;
		current_in = now;
	}
	return ((function)f)(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, x, y);
}

// The address of a destroyed context may be used for a new one, so no thread may
// rely on what it has stored.
static void forget(void) { __atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL); }

static u open_library(const char *path) { return (u)dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static u find(u handle, const char *name) { return (u)dlsym((void *)handle, name); }
static void release(char *s) { free(s); }
static void flush_stdout(void) { fflush(stdout); }
*/
import "C"

import "fmt"

func dlopen(path string) (uintptr, error) {
	s := C.CString(path)
	defer C.release(s)
	h := C.open_library(s)
	if h == 0 {
		return 0, fmt.Errorf("%s: %s", path, C.GoString(C.dlerror()))
	}
	return uintptr(h), nil
}

func dlsym(handle uintptr, name string) uintptr {
	s := C.CString(name)
	defer C.release(s)
	return uintptr(C.find(C.u(handle), s))
}

func invoke(set, ctx, f uintptr, a *[maxArgs]uintptr, floats [2]float32) int32 {
	return int32(C.invoke(C.u(set), C.u(ctx), C.u(f), C.u(a[0]), C.u(a[1]), C.u(a[2]), C.u(a[3]), C.u(a[4]),
		C.u(a[5]), C.u(a[6]), C.u(a[7]), C.u(a[8]), C.u(a[9]), C.u(a[10]), C.u(a[11]), C.u(a[12]), C.u(a[13]), C.u(a[14]), C.float(floats[0]), C.float(floats[1])))
}

func forgetCurrent() { C.forget() }

// flushStdout writes what the C library's stdout has buffered.
func flushStdout() { C.flush_stdout() }
