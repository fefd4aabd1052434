package api

// HardwareState is the result of a hardware check of a node.
type HardwareState string

// Results of a hardware check.
const (
	HardwareOK      HardwareState = "ok"
	HardwareWarning HardwareState = "warning" // the node works, but not as well as it could
	HardwareFailed  HardwareState = "failed"  // the node cannot work, or is about to lose data
	HardwareUnknown HardwareState = "unknown" // the check could not determine it
)

// HardwareCheckID names a hardware check of a node.
type HardwareCheckID string

// The hardware checks of a node (appliance/node/hardware).
const (
	HardwareKVM        HardwareCheckID = "kvm"
	HardwareMicrocode  HardwareCheckID = "microcode"
	HardwareFirmware   HardwareCheckID = "firmware"
	HardwareIOMMU      HardwareCheckID = "iommu"
	HardwareNUMA       HardwareCheckID = "numa"
	HardwareMemory     HardwareCheckID = "memory"
	HardwareKernelArgs HardwareCheckID = "kernel-args"
	HardwareWatchdog   HardwareCheckID = "watchdog"
	HardwareDisks      HardwareCheckID = "disks"
	HardwareMirror     HardwareCheckID = "mirror"
	HardwareBootLoader HardwareCheckID = "boot-loader"
	HardwareNICs       HardwareCheckID = "nics"
	HardwarePathMTU    HardwareCheckID = "path-mtu"
	HardwareClock      HardwareCheckID = "clock"
	HardwareGPUs       HardwareCheckID = "gpus"
	HardwareBMC        HardwareCheckID = "bmc"
	HardwareHugePages  HardwareCheckID = "huge-pages"
	HardwareAppArmor   HardwareCheckID = "apparmor"
)

// ConditionHardware is the type of the node condition that is not true while a hardware
// check fails.
const ConditionHardware = "Hardware"
