/* Functions that are passed on unchanged, with a context. gpu/cuda passes this number of
 * arguments to each of them. */
#include "call.h"

#define PASS(name)                                                                                                     \
	EXPORT int name(u a, u b, u c, u d, u e, u f, u g, u h, u i, u j, u k, u l, u m, u n, u o)                     \
	{                                                                                                              \
		in_context(__func__);                                                                                  \
		return CALL(name, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);                                        \
	}
PASS(cuCtxGetExecAffinity)
PASS(cuCtxResetPersistingL2Cache)
PASS(cuMulticastGetGranularity)
PASS(cuOccupancyAvailableDynamicSMemPerBlock)
PASS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
PASS(cuOccupancyMaxActiveClusters)
PASS(cuOccupancyMaxPotentialClusterSize)
PASS(cuProfilerStart)
PASS(cuProfilerStop)
PASS(cuStreamCopyAttributes)
PASS(cuStreamGetAttribute)
PASS(cuStreamSetAttribute)
PASS(cuTensorMapEncodeIm2col)
PASS(cuTensorMapEncodeTiled)
PASS(cuTensorMapReplaceAddress)
