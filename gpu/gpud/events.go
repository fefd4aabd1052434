package gpud

import "github.com/basalt-gpu/basalt/gpu/abi"

// Events that guests can wait for (NVML, nvmlDeviceRegisterEvents). gpud reports the
// errors of the vGPU's own contexts, under the numbers that NVIDIA's driver logs for them.
// Those of other vGPUs, and of the GPU as a whole, are not for guests: a lost GPU fails all
// of their calls. Events are not stored: a guest sees those of its own lifetime.

const (
	eventTypeXID = 8  // nvmlEventTypeXidCriticalError
	maxEvents    = 16 // of a vGPU: what a guest that asks ten times a second misses only if it causes more
)

// xids maps an error of a context to its number (NVIDIA GPU Deployment and Management,
// "Xid Errors"). Errors that are not in it are no errors of the GPU.
var xids = map[abi.Result]uint32{
	abi.ErrIllegalAddress: 31, // GPU memory page fault
	abi.ErrIllegalInstr:   13, // graphics engine exception, as are the following
	abi.ErrMisaligned:     13,
	abi.ErrInvalidPC:      13,
	abi.ErrLaunchFailed:   13,
	abi.ErrAssert:         43, // GPU stopped processing, because of the program
	abi.ErrECC:            48, // double bit ECC error
}

// note records that an error has ended the work of a context of a process. at is in
// microseconds; each event has a later time than those before it, by which guests tell
// them apart.
func (v *vgpu) note(r abi.Result, pid uint32, at uint64) {
	xid := xids[r]
	if xid == 0 {
		return
	}
	if n := len(v.events); n > 0 {
		at = max(at, v.events[n-1].At+1)
	}
	v.events = append(v.events, abi.GPUEvent{At: at, XID: xid, PID: pid})
	v.events = v.events[max(0, len(v.events)-maxEvents):]
}
