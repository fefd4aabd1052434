package abi

import "fmt"

// Result is a CUresult (cuda.h); as an error it is never Success.
type Result int32

// The results that Basalt itself returns. Others are passed on as numbers.
// Source: CUDA driver API, "Data types used by CUDA driver", enum CUresult.
const (
	Success             Result = 0
	ErrInvalidValue     Result = 1
	ErrOutOfMemory      Result = 2
	ErrNotInitialized   Result = 3
	ErrDeinitialized    Result = 4
	ErrStubLibrary      Result = 34
	ErrUnavailable      Result = 46 // CUDA_ERROR_DEVICE_UNAVAILABLE
	ErrNoDevice         Result = 100
	ErrInvalidDevice    Result = 101
	ErrInvalidImage     Result = 200
	ErrInvalidContext   Result = 201
	ErrNoBinaryForGPU   Result = 209
	ErrECC              Result = 214 // CUDA_ERROR_ECC_UNCORRECTABLE
	ErrUnsupportedLimit Result = 215
	ErrInvalidPTX       Result = 218
	ErrUnsupportedPTX   Result = 222 // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	// ErrUnsupportedExecAffinity is CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY.
	ErrUnsupportedExecAffinity Result = 224
	ErrInvalidHandle           Result = 400
	ErrIllegalState            Result = 401
	ErrNotFound                Result = 500
	ErrNotReady                Result = 600
	ErrIllegalAddress          Result = 700
	ErrLaunchResources         Result = 701 // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
	ErrLaunchTimeout           Result = 702
	ErrAssert                  Result = 710
	ErrIllegalInstr            Result = 715
	ErrMisaligned              Result = 716
	ErrInvalidPC               Result = 718
	ErrLaunchFailed            Result = 719
	ErrCooperativeTooLarge     Result = 720 // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
	ErrNotPermitted            Result = 800
	ErrNotSupported            Result = 801
	ErrDriverMismatch          Result = 803 // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
	ErrInvalidClusterSize      Result = 912 // CUDA_ERROR_INVALID_CLUSTER_SIZE
	ErrUnknown                 Result = 999
)

var resultNames = map[Result]string{
	Success: "CUDA_SUCCESS", ErrInvalidValue: "CUDA_ERROR_INVALID_VALUE", ErrOutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY",
	ErrNotInitialized: "CUDA_ERROR_NOT_INITIALIZED", ErrDeinitialized: "CUDA_ERROR_DEINITIALIZED",
	ErrStubLibrary: "CUDA_ERROR_STUB_LIBRARY", ErrUnavailable: "CUDA_ERROR_DEVICE_UNAVAILABLE",
	ErrNoDevice: "CUDA_ERROR_NO_DEVICE", ErrInvalidDevice: "CUDA_ERROR_INVALID_DEVICE",
	ErrInvalidImage: "CUDA_ERROR_INVALID_IMAGE", ErrInvalidContext: "CUDA_ERROR_INVALID_CONTEXT",
	ErrNoBinaryForGPU: "CUDA_ERROR_NO_BINARY_FOR_GPU", ErrUnsupportedLimit: "CUDA_ERROR_UNSUPPORTED_LIMIT",
	ErrInvalidPTX: "CUDA_ERROR_INVALID_PTX", ErrUnsupportedPTX: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	ErrInvalidHandle: "CUDA_ERROR_INVALID_HANDLE", ErrIllegalState: "CUDA_ERROR_ILLEGAL_STATE",
	ErrNotFound: "CUDA_ERROR_NOT_FOUND", ErrNotReady: "CUDA_ERROR_NOT_READY",
	ErrIllegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS", ErrLaunchResources: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
	ErrLaunchTimeout: "CUDA_ERROR_LAUNCH_TIMEOUT", ErrAssert: "CUDA_ERROR_ASSERT",
	ErrIllegalInstr: "CUDA_ERROR_ILLEGAL_INSTRUCTION", ErrMisaligned: "CUDA_ERROR_MISALIGNED_ADDRESS",
	ErrInvalidPC: "CUDA_ERROR_INVALID_PC", ErrLaunchFailed: "CUDA_ERROR_LAUNCH_FAILED",
	ErrCooperativeTooLarge: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", ErrInvalidClusterSize: "CUDA_ERROR_INVALID_CLUSTER_SIZE",
	ErrNotPermitted: "CUDA_ERROR_NOT_PERMITTED", ErrNotSupported: "CUDA_ERROR_NOT_SUPPORTED", ErrUnknown: "CUDA_ERROR_UNKNOWN",
	ErrDriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", ErrUnsupportedExecAffinity: "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY",
}

func (r Result) String() string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return fmt.Sprintf("CUresult(%d)", int32(r))
}

func (r Result) Error() string { return r.String() }
