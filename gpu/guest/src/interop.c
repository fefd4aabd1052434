/* The authenticity query of the vendor's runtime. A separate library answers it, which is
 * loaded only if the operator has enabled that (docs/vendor-interop.md). */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../interop/interop.h"
#include "interop.h"
#include "state.h"

/* Prints what to do, because the runtime only reports "named symbol not found". */
static void explain(const char *why)
{
	fprintf(stderr,
		"basalt: this program's CUDA runtime library asks whether the driver is NVIDIA's, which is not answered: %s.\n"
		"basalt: without that, link the program with the shared runtime (nvcc -cudart shared) and start it with basalt-cuda-run.\n",
		why);
}

static bool turned_on(const struct session *s)
{
	return atomic_load_explicit(word32(s, BSLT_OFF_FEATURES), memory_order_relaxed) & BSLT_FEATURE_INTEROP;
}

/* Finds the library in the folder of this one. */
static bool find(char path[PATH_MAX])
{
	Dl_info self;
	const char *slash;
	int n;

	if (!dladdr((void *)(uintptr_t)interop_table, &self) || !(slash = strrchr(self.dli_fname, '/')))
		return false;
	n = snprintf(path, PATH_MAX, "%.*s/" BASALT_INTEROP_FILE, (int)(slash - self.dli_fname), self.dli_fname);
	return n > 0 && n < PATH_MAX;
}

static basalt_interop_function *load(void)
{
	char path[PATH_MAX], why[PATH_MAX + 200];
	basalt_interop_function *f;
	void *library, *symbol;

	library = dlopen(find(path) ? path : BASALT_INTEROP_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!library || !(symbol = dlsym(library, BASALT_INTEROP_FUNCTION))) {
		snprintf(why, sizeof why, "interop is on, but %s (install the guest tools anew)", dlerror());
		explain(why);
		return NULL;
	}
	memcpy(&f, &symbol, sizeof f);
	return f;
}

const void *interop_table(const void *cudart_interface)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool decided;
	static const void *table;
	basalt_interop_function *f;
	struct session *s;

	if (library_session(&s) != 0)
		return NULL; /* it is not known yet whether interop is on */
	pthread_mutex_lock(&lock);
	if (!decided && !turned_on(s))
		explain("interop is off on this host (an operator turns it on with \"basalt gpu interop enable\", or \"basalt-gpud --interop\")");
	else if (!decided && (f = load()))
		table = f(cudart_interface);
	decided = true;
	pthread_mutex_unlock(&lock);
	return table;
}
