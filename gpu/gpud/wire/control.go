// Package wire is what gpud and its clients say to each other: the JSON of the
// control API (control.go) and the lines of the worker stream (worker.go).
package wire

// GPU is a card of the node, in answers to GET /v1/gpus. Memory is in bytes.
type GPU struct {
	ID           string `json:"id"`   // stable across restarts
	UUID         string `json:"uuid"` // as nvidia-smi writes it: GPU-…
	Name         string `json:"name"`
	Driver       string `json:"driver"` // DriverSoft, DriverNull or DriverCUDA
	VRAMBytes    uint64 `json:"vramBytes"`
	VRAMReserved uint64 `json:"vramReservedBytes"` // sum of the limits of its vGPUs
	VRAMUsed     uint64 `json:"vramUsedBytes"`     // what their workers hold now
	VRAMSwapped  uint64 `json:"vramSwappedBytes"`  // of it, in the host's memory
	GPUSpec
	ShareReserved   int    `json:"shareReservedPercent"`
	Multiprocessors int    `json:"multiprocessors"`
	VGPUs           int    `json:"vgpus"`
	LeasedNanos     uint64 `json:"leasedNanos"` // leased since gpud started
	WallNanos       uint64 `json:"wallNanos"`   // since gpud started; the rest was idle
	Temperature     uint32 `json:"temperature,omitempty"`
	PowerMilliwatts uint32 `json:"powerMilliwatts,omitempty"`
	// Failed is why the card does not work; empty: it works, as far as it says.
	Failed string `json:"failed,omitempty"`
	// Throttled: it is hot and runs at lower clocks.
	Throttled bool `json:"throttled,omitempty"`
}

// Drivers of a card.
const (
	DriverSoft = "soft"
	DriverNull = "null" // computes nothing
	DriverCUDA = "cuda"
)

// GPUSpec is the body of PUT /v1/gpus/{id}.
type GPUSpec struct {
	SwapBytes uint64 `json:"swapBytes"` // of the host's memory for what does not fit on the card; 0: no more is promised than fits
	// Interop: guests may answer the vendor runtime's authenticity query
	// (docs/vendor-interop.md), in sessions that begin from now on.
	Interop bool `json:"interop,omitempty"`
}

// VGPUSpec is the body of PUT /v1/vgpus/{id}.
type VGPUSpec struct {
	GPU          string `json:"gpu"`            // id of the card
	Name         string `json:"name"`           // as nvidia-smi shows it; empty: the card's
	VRAMBytes    uint64 `json:"vramBytes"`      // limit, guaranteed
	SharePercent int    `json:"sharePercent"`   // guaranteed share of the card's time; 0: best effort
	Tier         string `json:"tier,omitempty"` // premium, standard or basic; empty: standard
}

// VGPU is a virtual GPU, in answers.
type VGPU struct {
	ID string `json:"id"`
	VGPUSpec
	UUID           string    `json:"uuid"`
	VRAMUsed       uint64    `json:"vramUsedBytes"`
	VRAMSwapped    uint64    `json:"vramSwappedBytes"` // of it, in the host's memory
	GPUUtilization uint32    `json:"gpuUtilization"`   // per cent of the last second
	Processes      []Process `json:"processes"`
	Usage          Usage     `json:"usage"`
	// Token is the secret that the vGPU's workers register with, in the answer
	// to PUT only. It goes from hand to hand by inherited descriptors: never on
	// a command line, in the environment or in a log.
	Token string `json:"token,omitempty"`
	// Deleted: it is gone; only its last usage remains for a while.
	Deleted bool `json:"deleted,omitempty"`
}

// Usage sums what a vGPU has used since it was first put. The numbers never
// shrink: what has been answered is on the disk.
type Usage struct {
	GPUNanos        uint64 `json:"gpuNanos"`
	PremiumNanos    uint64 `json:"premiumNanos,omitempty"` // of GPUNanos, in this tier
	BasicNanos      uint64 `json:"basicNanos,omitempty"`   // of GPUNanos, in this tier
	VRAMByteSeconds uint64 `json:"vramByteSeconds"`        // whole ones; the rest is kept and not lost
	// Of VRAMByteSeconds, what was in the host's memory; the rest was on the card.
	SwappedByteSeconds uint64 `json:"vramSwappedByteSeconds"`
	SwapOutBytes       uint64 `json:"swapOutBytes"` // from the card to the host
	SwapInBytes        uint64 `json:"swapInBytes"`  // and back
	BytesToDevice      uint64 `json:"bytesToDevice"`
	BytesFromDevice    uint64 `json:"bytesFromDevice"`
	Launches           uint64 `json:"launches"`
}

// Now is the answer to GET /v1/now: cards and vGPUs at one moment, for who draws
// charts. Its usage is what gpud has counted and perhaps not yet on the disk, so
// that asking often costs nothing: after a crash of gpud it can be less than it
// was. Nobody is charged by it.
type Now struct {
	GPUs  []GPU  `json:"gpus"`
	VGPUs []VGPU `json:"vgpus"`
}

// UnusableGPU is an NVIDIA card of the machine that cannot be used.
type UnusableGPU struct {
	Address string `json:"address"` // on the PCI bus, as 0000:65:00.0
	Reason  string `json:"reason"`  // and what to do
}

// Process is a guest process with a worker.
type Process struct {
	PID       uint32 `json:"pid"` // in the guest
	Name      string `json:"name"`
	VRAMBytes uint64 `json:"vramBytes"`
}

// Health is the answer to GET /v1/healthz.
type Health struct {
	OK       bool   `json:"ok"`
	Problem  string `json:"problem,omitempty"`
	Version  int    `json:"version"` // of this protocol
	GPUs     int    `json:"gpus"`
	VGPUs    int    `json:"vgpus"`
	Sessions int    `json:"sessions"`
}

// Version of the control API and of the worker stream.
const Version = 1

// Error is the body of an answer that is not 2xx.
type Error struct {
	Code    string `json:"code"`
	Reason  string `json:"reason,omitempty"` // sched.Reason when the code is CodeNoFit
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Codes of an Error and of a refused line of the worker stream.
const (
	CodeInvalid     = "invalid"
	CodeNotFound    = "not-found"
	CodeNoFit       = "does-not-fit"
	CodeBusy        = "busy"
	CodeForbidden   = "forbidden"
	CodeUnavailable = "unavailable"
	CodeOutOfMemory = "out-of-memory"
	CodeLost        = "lost"
)
