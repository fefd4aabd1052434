/* Modules, functions and the linker. */
#include "call.h"

EXPORT int cuModuleLoadDataEx(u *m, const void *image, unsigned int n, int *options, void **values)
{
	in_context(__func__);
	if (!image || (n && (!options || !values)))
		BROKEN("image %p, %u options at %p", image, n, (void *)options);
	int r = CALL(cuModuleLoadDataEx, m, image, n, options, values);
	if (r == 0)
		made(*m, MODULE, 0, 0);
	return r;
}

EXPORT int cuModuleUnload(u m)
{
	acquire();
	object_current(__func__, m, MODULE);
	nothing_runs(__func__, current);
	release();
	int r = CALL(cuModuleUnload, m);
	if (r == 0) {
		acquire();
		memory_drop(current, m);
		object_end(object_find(__func__, m, MODULE));
		release();
	}
	return r;
}

EXPORT int cuModuleGetFunction(u *f, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetFunction, f, m, name);
	if (r == 0)
		made(*f, FUNCTION, 0, m);
	return r;
}

EXPORT int cuModuleGetFunctionCount(unsigned int *n, u m) { of_context(__func__, m, MODULE); return CALL(cuModuleGetFunctionCount, n, m); }

EXPORT int cuModuleEnumerateFunctions(u *f, unsigned int n, u m)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleEnumerateFunctions, f, n, m);
	for (unsigned int i = 0; r == 0 && i < n; i++)
		made(f[i], FUNCTION, 0, m);
	return r;
}

EXPORT int cuModuleGetGlobal_v2(u *p, size_t *n, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetGlobal_v2, p, n, m, name);
	if (r == 0) {
		acquire();
		memory_add(*p, *n, current, m, false);
		release();
	}
	return r;
}

EXPORT int cuFuncGetName(const char **s, u f) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetName, s, f); }
EXPORT int cuFuncGetParamInfo(u f, size_t i, size_t *offset, size_t *size) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetParamInfo, f, i, offset, size); }
EXPORT int cuFuncGetAttribute(int *v, int a, u f) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetAttribute, v, a, f); }
EXPORT int cuFuncSetAttribute(u f, int a, int v) { of_context(__func__, f, FUNCTION); return CALL(cuFuncSetAttribute, f, a, v); }

EXPORT int cuLinkCreate_v2(unsigned int n, int *options, void **values, u *l)
{
	in_context(__func__);
	int r = CALL(cuLinkCreate_v2, n, options, values, l);
	if (r == 0)
		made(*l, LINK, 0, 0);
	return r;
}

EXPORT int cuLinkAddData_v2(u l, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values)
{
	of_context(__func__, l, LINK);
	return CALL(cuLinkAddData_v2, l, type, data, size, name, n, options, values);
}

EXPORT int cuLinkComplete(u l, void **image, size_t *size) { of_context(__func__, l, LINK); return CALL(cuLinkComplete, l, image, size); }

EXPORT int cuLinkDestroy(u l)
{
	ends(__func__, l, LINK);
	return CALL(cuLinkDestroy, l);
}
