package api

// HardwareState is what came of a check of a node's machine.
type HardwareState string

// States of a check.
const (
	HardwareOK      HardwareState = "ok"
	HardwareWarning HardwareState = "warning" // the node works, worse than it could
	HardwareFailed  HardwareState = "failed"  // it cannot do its work, or is about to lose data
	HardwareUnknown HardwareState = "unknown" // it could not be found out
)

// HardwareCheckID names a check of a node's machine.
type HardwareCheckID string

// Checks of a node's machine (appliance/node/hardware).
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
	HardwareNICs       HardwareCheckID = "nics"
	HardwarePathMTU    HardwareCheckID = "path-mtu"
	HardwareClock      HardwareCheckID = "clock"
	HardwareGPUs       HardwareCheckID = "gpus"
	HardwareBMC        HardwareCheckID = "bmc"
	HardwareHugePages  HardwareCheckID = "huge-pages"
)

// ConditionHardware is the type of a node's condition that is not true while a check of
// its machine has failed.
const ConditionHardware = "Hardware"
