package cuda

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// function identifies a function of libcuda: an index into functions.
type function int

const (
	cuInit function = iota
	cuDriverGetVersion
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuCtxCreate
	cuCtxDestroy
	cuCtxSetCurrent
	cuCtxSynchronize
	cuCtxSetLimit
	cuModuleLoadDataEx
	cuModuleUnload
	cuLinkCreate
	cuLinkAddData
	cuLinkComplete
	cuLinkDestroy
	cuModuleGetFunction
	cuModuleGetGlobal
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemsetD8Async
	cuMemsetD16Async
	cuMemsetD32Async
	cuLaunchKernel
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime
	needed // the functions above are required, those below are not
	cuLaunchKernelEx
	cuModuleGetFunctionCount
	cuModuleEnumerateFunctions
	cuFuncGetName
	cuFuncGetParamInfo
	cuFuncLoad
	cuOccupancyMaxActiveClusters
	cuOccupancyMaxPotentialClusterSize
	cuPointerGetAttribute
	cuMemAddressReserve // functions of virtual memory, from here
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuMemGetAllocationGranularity // to here
	cuMemExportToShareableHandle
	cuMemImportFromShareableHandle
	cuMemHostRegister // functions of host memory, from here
	cuMemHostUnregister
	cuMemHostGetDevicePointer // to here
	cuArray3DCreate           // functions of arrays and textures, from here
	cuArrayDestroy
	cuMipmappedArrayCreate
	cuMipmappedArrayDestroy
	cuMipmappedArrayGetLevel
	cuMemcpy3DAsync
	cuTexObjectCreate
	cuTexObjectDestroy
	cuSurfObjectCreate
	cuSurfObjectDestroy // to here
	cuModuleGetTexRef   // functions of texture and surface references, from here
	cuModuleGetSurfRef
	cuSurfRefSetArray
	cuTexRefSetArray
	cuTexRefSetMipmappedArray
	cuTexRefSetFormat
	cuTexRefSetAddress
	cuTexRefSetAddress2D
	cuTexRefSetFlags
	cuTexRefSetAddressMode
	cuTexRefSetFilterMode
	cuTexRefSetMipmapFilterMode
	cuTexRefSetMipmapLevelBias
	cuTexRefSetMipmapLevelClamp
	cuTexRefSetMaxAnisotropy
	cuTexRefSetBorderColor // to here
	firstPassedOn
)

var functions = [firstPassedOn]string{
	cuInit: "cuInit", cuDriverGetVersion: "cuDriverGetVersion", cuDeviceGetCount: "cuDeviceGetCount",
	cuDeviceGet: "cuDeviceGet", cuDeviceGetName: "cuDeviceGetName", cuDeviceGetUuid: "cuDeviceGetUuid_v2",
	cuDeviceTotalMem: "cuDeviceTotalMem_v2", cuDeviceGetAttribute: "cuDeviceGetAttribute",
	cuCtxCreate: "cuCtxCreate_v2", cuCtxDestroy: "cuCtxDestroy_v2", cuCtxSetCurrent: "cuCtxSetCurrent", cuCtxSynchronize: "cuCtxSynchronize", cuCtxSetLimit: "cuCtxSetLimit",
	cuModuleLoadDataEx: "cuModuleLoadDataEx", cuModuleUnload: "cuModuleUnload",
	cuLinkCreate: "cuLinkCreate_v2", cuLinkAddData: "cuLinkAddData_v2", cuLinkComplete: "cuLinkComplete", cuLinkDestroy: "cuLinkDestroy",
	cuModuleGetFunction: "cuModuleGetFunction", cuModuleGetGlobal: "cuModuleGetGlobal_v2",
	cuFuncGetAttribute: "cuFuncGetAttribute", cuFuncSetAttribute: "cuFuncSetAttribute",
	cuMemAlloc: "cuMemAlloc_v2", cuMemFree: "cuMemFree_v2", cuMemHostAlloc: "cuMemHostAlloc", cuMemFreeHost: "cuMemFreeHost",
	cuMemcpyHtoDAsync: "cuMemcpyHtoDAsync_v2", cuMemcpyDtoHAsync: "cuMemcpyDtoHAsync_v2", cuMemcpyDtoDAsync: "cuMemcpyDtoDAsync_v2",
	cuMemsetD8Async: "cuMemsetD8Async", cuMemsetD16Async: "cuMemsetD16Async", cuMemsetD32Async: "cuMemsetD32Async",
	cuLaunchKernel:             "cuLaunchKernel",
	cuStreamCreateWithPriority: "cuStreamCreateWithPriority", cuStreamDestroy: "cuStreamDestroy_v2",
	cuStreamSynchronize: "cuStreamSynchronize", cuStreamWaitEvent: "cuStreamWaitEvent",
	cuEventCreate: "cuEventCreate", cuEventDestroy: "cuEventDestroy_v2", cuEventRecord: "cuEventRecord",
	cuEventQuery: "cuEventQuery", cuEventSynchronize: "cuEventSynchronize", cuEventElapsedTime: "cuEventElapsedTime",
	cuLaunchKernelEx:         "cuLaunchKernelEx",
	cuModuleGetFunctionCount: "cuModuleGetFunctionCount", cuModuleEnumerateFunctions: "cuModuleEnumerateFunctions",
	cuFuncGetName: "cuFuncGetName", cuFuncGetParamInfo: "cuFuncGetParamInfo", cuFuncLoad: "cuFuncLoad",
	cuOccupancyMaxActiveClusters: "cuOccupancyMaxActiveClusters", cuOccupancyMaxPotentialClusterSize: "cuOccupancyMaxPotentialClusterSize",
	cuPointerGetAttribute: "cuPointerGetAttribute",
	cuMemAddressReserve:   "cuMemAddressReserve", cuMemAddressFree: "cuMemAddressFree", cuMemCreate: "cuMemCreate",
	cuMemRelease: "cuMemRelease", cuMemMap: "cuMemMap", cuMemUnmap: "cuMemUnmap", cuMemSetAccess: "cuMemSetAccess",
	cuMemGetAllocationGranularity: "cuMemGetAllocationGranularity",
	cuMemExportToShareableHandle:  "cuMemExportToShareableHandle", cuMemImportFromShareableHandle: "cuMemImportFromShareableHandle",
	cuMemHostRegister: "cuMemHostRegister_v2", cuMemHostUnregister: "cuMemHostUnregister",
	cuMemHostGetDevicePointer: "cuMemHostGetDevicePointer_v2",
	cuArray3DCreate:           "cuArray3DCreate_v2", cuArrayDestroy: "cuArrayDestroy", cuMipmappedArrayCreate: "cuMipmappedArrayCreate",
	cuMipmappedArrayDestroy: "cuMipmappedArrayDestroy", cuMipmappedArrayGetLevel: "cuMipmappedArrayGetLevel",
	cuMemcpy3DAsync: "cuMemcpy3DAsync_v2", cuTexObjectCreate: "cuTexObjectCreate", cuTexObjectDestroy: "cuTexObjectDestroy",
	cuSurfObjectCreate: "cuSurfObjectCreate", cuSurfObjectDestroy: "cuSurfObjectDestroy",
	cuModuleGetTexRef: "cuModuleGetTexRef", cuModuleGetSurfRef: "cuModuleGetSurfRef", cuSurfRefSetArray: "cuSurfRefSetArray",
	cuTexRefSetArray: "cuTexRefSetArray", cuTexRefSetMipmappedArray: "cuTexRefSetMipmappedArray", cuTexRefSetFormat: "cuTexRefSetFormat",
	cuTexRefSetAddress: "cuTexRefSetAddress_v2", cuTexRefSetAddress2D: "cuTexRefSetAddress2D_v3", cuTexRefSetFlags: "cuTexRefSetFlags",
	cuTexRefSetAddressMode: "cuTexRefSetAddressMode", cuTexRefSetFilterMode: "cuTexRefSetFilterMode",
	cuTexRefSetMipmapFilterMode: "cuTexRefSetMipmapFilterMode", cuTexRefSetMipmapLevelBias: "cuTexRefSetMipmapLevelBias",
	cuTexRefSetMipmapLevelClamp: "cuTexRefSetMipmapLevelClamp", cuTexRefSetMaxAnisotropy: "cuTexRefSetMaxAnisotropy",
	cuTexRefSetBorderColor: "cuTexRefSetBorderColor",
}

// name returns the function's symbol; it is empty for needed.
func (f function) name() string {
	if f < firstPassedOn {
		return functions[f]
	}
	return passedOn[f-firstPassedOn]
}

// library is an opened libcuda.
type library struct{ entry [functionCount]uintptr }

// DefaultLibrary is the host's libcuda.
const DefaultLibrary = "libcuda.so.1"

// openLibrary looks up all functions in the shared object at path.
func openLibrary(path string) (*library, error) {
	handle, err := dlopen(path)
	if err != nil {
		return nil, err
	}
	l := &library{}
	for f := range functionCount {
		if f.name() == "" {
			continue
		}
		if l.entry[f] = dlsym(handle, f.name()); l.entry[f] == 0 && f < needed {
			return nil, fmt.Errorf("%s has no function %s: check that the NVIDIA driver supports CUDA 12 or newer", path, f.name())
		}
	}
	return l, nil
}

func (l *library) has(f function) bool { return l.entry[f] != 0 }

// maxArgs is the number of arguments of cuTensorMapEncodeIm2col.
const maxArgs = 15

// call calls f with ctx as the current context (0: none needed). All arguments of
// the functions above are integers or pointers, each in one register or stack
// slot.
func (l *library) call(ctx uintptr, f function, args ...uintptr) error {
	return l.callFloats(ctx, f, [2]float32{}, args...)
}

// callFloats is like call, for a function that also has floats among its
// arguments.
func (l *library) callFloats(ctx uintptr, f function, floats [2]float32, args ...uintptr) error {
	var a [maxArgs]uintptr
	copy(a[:], args)
	if r := abi.Result(invoke(l.entry[cuCtxSetCurrent], ctx, l.entry[f], &a, floats)); r != abi.Success {
		return r
	}
	return nil
}
