package agent

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/gpu/guest/selfreport"
)

// readiness is the state of an instance's GPU, as the condition GPUReady reports
// it.
type readiness struct {
	reason  api.GPUReason
	message string // for its owner: details, and what to do
}

// gpuReady decides whether programs in the guest of a running instance can use its
// vGPU. What the node observes decides; the guest's report only distinguishes
// causes. had is the last reported condition, and known is whether there was one.
func gpuReady(s seen, had api.Condition, known bool, now time.Time) readiness {
	switch {
	case !s.vgpu:
		return readiness{api.GPUBackendEnded, "the vGPU's backend has ended: restart the instance to get the vGPU back"}
	case !s.gpu.Known:
		return readiness{api.GPUUnknown, "the vGPU was started by an earlier version, which does not report this: restart the instance"}
	case s.gpu.ready():
		return readiness{reason: api.GPUReady}
	}
	starting := !known || had.Status || had.Reason == string(api.GPUStarting) && now.Sub(had.Since) < bootTime
	if s.gpu.Driver {
		return withoutLibrary(s, starting)
	}
	if !s.report.known && !starting && had.Reason != string(api.GPUStarting) && causeOfGuest[api.GPUReason(had.Reason)] {
		return readiness{api.GPUReason(had.Reason), had.Message} // nothing observed contradicts it
	}
	return withoutDriver(s.report, starting)
}

// gpuStarts reports whether more may be known of the GPU soon.
func gpuStarts(st api.InstanceStatus) bool {
	c, known := condition(st, condGPU)
	return known && !c.Status && api.GPUReason(c.Reason) != api.GPUUnknown && api.GPUReason(c.Reason) != api.GPUBackendEnded
}

// causeOfGuest has the reasons that come from the guest's report.
var causeOfGuest = map[api.GPUReason]bool{
	api.GPUKernelWithoutDriver: true, api.GPUModuleMissing: true, api.GPUModuleBlocked: true, api.GPUNoModeset: true,
	api.GPUKernelChanging: true, api.GPURebootNeeded: true,
}

// withoutLibrary returns the readiness when the driver runs and no library of the
// guest tools has been accepted.
func withoutLibrary(s seen, starting bool) readiness {
	report := s.report
	switch {
	case s.gpu.Mismatch, report.known && report.content.Check == selfreport.CheckMismatch:
		return readiness{api.GPUToolsTooOld, "the guest tools" + version(report.content.Tools) + " and this node are not compatible: install those of the disc BASALT-TOOLS"}
	case s.gpu.Refused != "":
		return readiness{api.GPULibraryFailed, "the node refused the guest's library: " + printableText(s.gpu.Refused, 200)}
	case starting:
		return readiness{api.GPUStarting, "the guest tools are not done yet"}
	case report.known && report.content.Tools == "":
		return readiness{api.GPUToolsMissing, "the driver runs, and the guest tools are not installed: install those of the disc BASALT-TOOLS"}
	}
	return readiness{api.GPUNotUsed, "no program has opened the vGPU in this run: nvidia-smi in the guest does"}
}

func version(tools string) string {
	if tools == "" {
		return ""
	}
	return " " + tools
}

// withoutDriver returns the readiness when the guest's kernel does not drive the
// vGPU.
func withoutDriver(t guestReport, starting bool) readiness {
	r, kernel := t.content, "the kernel"
	if r.Kernel != "" {
		kernel = "the kernel " + r.Kernel
	}
	switch {
	case !t.known:
	case r.Change == selfreport.ChangeInstalling:
		return readiness{api.GPUKernelChanging, kernel + " has no driver for the vGPU: the guest tools are installing one that has, and reboot then"}
	case r.Change == selfreport.ChangeReboot:
		return readiness{api.GPURebootNeeded, "a kernel with a driver for the vGPU is installed: reboot the guest to use it"}
	case r.NoModeset:
		return readiness{api.GPUNoModeset, kernel + " was started with nomodeset, which switches the vGPU's driver off: remove it from the guest's boot loader, and reboot"}
	case r.DRM == selfreport.No || r.VirtioGPU == selfreport.No:
		return readiness{api.GPUKernelWithoutDriver, kernel + " is built without a driver for the vGPU, as kernels for clouds often are: install the distribution's ordinary kernel, and reboot"}
	case r.Blocked != "":
		return readiness{api.GPUModuleBlocked, fmt.Sprintf("the module virtio_gpu is blocked by %s of the guest: take that away, and reboot", r.Blocked)}
	case r.Module == selfreport.ModuleMissing:
		return readiness{api.GPUModuleMissing, kernel + " has no module virtio_gpu installed: install the package of its further modules, or the ordinary kernel, and reboot"}
	}
	if starting {
		return readiness{api.GPUStarting, "the guest boots"}
	}
	if !t.known {
		return readiness{api.GPUNoDriver, "the guest's kernel has not started a driver for the vGPU, and no guest agent reports why: see its serial console"}
	}
	return readiness{api.GPUNoDriver, kernel + " has not started its driver for the vGPU: look at the guest's dmesg"}
}
