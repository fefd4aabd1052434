package api

// ConditionGPUReady is a condition of instances with a vGPU: whether programs in the
// guest can use it. The node decides from what it observes itself; what the guest
// reports only makes the reason more precise.
const ConditionGPUReady = "GPUReady"

// GPUReason is the reason of the condition GPUReady: why the vGPU of an instance is
// ready or not.
type GPUReason string

// Reasons of the condition GPUReady. Its status is true only with the reason GPUReady.
const (
	GPUReady               GPUReason = "ready"                 // a library of the guest tools has opened it since the instance was started
	GPUStarting            GPUReason = "starting"              // the guest is booting
	GPUKernelWithoutDriver GPUReason = "kernel-without-driver" // built without DRM or virtio_gpu
	GPUModuleMissing       GPUReason = "module-missing"        // the kernel has it as a module, which is not installed
	GPUModuleBlocked       GPUReason = "module-blocked"        // by the guest's settings
	GPUNoModeset           GPUReason = "nomodeset"             // on the kernel's command line
	GPUKernelChanging      GPUReason = "kernel-changing"       // the guest tools install another kernel
	GPURebootNeeded        GPUReason = "reboot-needed"         // the new kernel is used after a reboot
	GPUNoDriver            GPUReason = "no-driver"             // the driver did not start, for an unknown reason
	GPUToolsMissing        GPUReason = "tools-missing"
	GPUToolsTooOld         GPUReason = "tools-too-old"  // the library is incompatible with the node
	GPULibraryFailed       GPUReason = "library-failed" // the library failed for another reason
	GPUNotUsed             GPUReason = "not-used"       // no program has opened it yet
	GPUBackendEnded        GPUReason = "backend-ended"  // the process that implements the vGPU has ended
	GPUUnknown             GPUReason = "unknown"        // the process is of a version that does not report a reason
)

// GPUReasons lists all reasons.
var GPUReasons = []GPUReason{GPUReady, GPUStarting, GPUKernelWithoutDriver, GPUModuleMissing, GPUModuleBlocked, GPUNoModeset,
	GPUKernelChanging, GPURebootNeeded, GPUNoDriver, GPUToolsMissing, GPUToolsTooOld, GPULibraryFailed, GPUNotUsed,
	GPUBackendEnded, GPUUnknown}

// GPUReadyOf returns the instance's condition GPUReady. known is false for an instance
// without a vGPU, or one that is not running.
func GPUReadyOf(i Instance) (c Condition, known bool) {
	if InstancePhaseOf(i) != InstanceRunning {
		return Condition{}, false
	}
	for _, c := range i.Status.Conditions {
		if c.Type == ConditionGPUReady {
			return c, true
		}
	}
	return Condition{}, false
}
