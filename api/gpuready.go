package api

// ConditionGPUReady of an instance with a vGPU: programs in its guest can use it. Its
// node decides by what it sees; what the guest tells of itself only makes the reason
// more exact.
const ConditionGPUReady = "GPUReady"

// GPUReason is why the vGPU of an instance is ready, or is not: the reason of the
// condition GPUReady.
type GPUReason string

// Reasons of the condition GPUReady. GPUReady alone comes with a status that is true.
const (
	GPUReady               GPUReason = "ready"                 // a library of the guest tools has opened it in this run
	GPUStarting            GPUReason = "starting"              // the guest boots
	GPUKernelWithoutDriver GPUReason = "kernel-without-driver" // built without DRM or virtio_gpu
	GPUModuleMissing       GPUReason = "module-missing"        // the kernel has it as a module, which is not installed
	GPUModuleBlocked       GPUReason = "module-blocked"        // by the guest's settings
	GPUNoModeset           GPUReason = "nomodeset"             // on the kernel's command line
	GPUKernelChanging      GPUReason = "kernel-changing"       // the guest tools install another kernel
	GPURebootNeeded        GPUReason = "reboot-needed"         // that kernel waits for a boot
	GPUNoDriver            GPUReason = "no-driver"             // it did not start, and nobody tells why
	GPUToolsMissing        GPUReason = "tools-missing"
	GPUToolsTooOld         GPUReason = "tools-too-old"  // library and node do not fit together
	GPULibraryFailed       GPUReason = "library-failed" // refused for another reason
	GPUNotUsed             GPUReason = "not-used"       // no program has opened it yet
	GPUBackendEnded        GPUReason = "backend-ended"  // the process that is the vGPU
	GPUUnknown             GPUReason = "unknown"        // that process is of a version that does not tell
)

// GPUReasons are all of them.
var GPUReasons = []GPUReason{GPUReady, GPUStarting, GPUKernelWithoutDriver, GPUModuleMissing, GPUModuleBlocked, GPUNoModeset,
	GPUKernelChanging, GPURebootNeeded, GPUNoDriver, GPUToolsMissing, GPUToolsTooOld, GPULibraryFailed, GPUNotUsed,
	GPUBackendEnded, GPUUnknown}

// GPUReadyOf returns the instance's condition GPUReady. known is false for an instance
// without a vGPU, and for one that does not run.
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
