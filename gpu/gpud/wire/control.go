// Package wire defines the protocol between gpud and its clients: the JSON of the
// control API (control.go) and the lines of the worker stream (worker.go).
package wire

// GPU is a card of the node, in answers to GET /v1/gpus. Memory is in bytes.
type GPU struct {
	ID           string `json:"id"`   // stable across restarts
	UUID         string `json:"uuid"` // in nvidia-smi's format: GPU-…
	Name         string `json:"name"`
	Driver       string `json:"driver"` // DriverSoft, DriverNull or DriverCUDA
	VRAMBytes    uint64 `json:"vramBytes"`
	VRAMReserved uint64 `json:"vramReservedBytes"` // sum of the limits of its vGPUs
	VRAMUsed     uint64 `json:"vramUsedBytes"`     // held by their workers now
	VRAMSwapped  uint64 `json:"vramSwappedBytes"`  // part of it that is in host memory
	GPUSpec
	ShareReserved   int    `json:"shareReservedPercent"`
	Multiprocessors int    `json:"multiprocessors"`
	VGPUs           int    `json:"vgpus"`
	LeasedNanos     uint64 `json:"leasedNanos"` // leased since gpud started
	WallNanos       uint64 `json:"wallNanos"`   // elapsed since gpud started; the rest was idle
	Temperature     uint32 `json:"temperature,omitempty"`
	PowerMilliwatts uint32 `json:"powerMilliwatts,omitempty"`
	// Failed is the reason why the card does not work; empty: it reports no failure.
	Failed string `json:"failed,omitempty"`
	// Throttled means that the card is hot and runs at lower clocks.
	Throttled bool `json:"throttled,omitempty"`
}

// Drivers of a card.
const (
	DriverSoft = "soft"
	DriverNull = "null" // it computes nothing
	DriverCUDA = "cuda"
)

// GPUSpec is the body of PUT /v1/gpus/{id}.
type GPUSpec struct {
	SwapBytes uint64 `json:"swapBytes"` // host memory for VRAM beyond what the card has; 0: no overcommit
	// Interop means that guests may answer the vendor runtime's authenticity
	// query (docs/vendor-interop.md), in sessions that begin from now on.
	Interop bool `json:"interop,omitempty"`
}

// VGPUSpec is the body of PUT /v1/vgpus/{id}.
type VGPUSpec struct {
	GPU          string `json:"gpu"`            // ID of the card
	Name         string `json:"name"`           // shown by nvidia-smi; empty: the card's
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
	VRAMSwapped    uint64    `json:"vramSwappedBytes"` // part of it that is in host memory
	GPUUtilization uint32    `json:"gpuUtilization"`   // percent of the last second
	Processes      []Process `json:"processes"`
	Usage          Usage     `json:"usage"`
	// Token is the secret that the vGPU's workers register with, in the answer to
	// PUT only. It is passed on through inherited descriptors: never on a command
	// line, in the environment or in a log.
	Token string `json:"token,omitempty"`
	// Deleted means that the vGPU no longer exists; its last usage is reported
	// for a while.
	Deleted bool `json:"deleted,omitempty"`
}

// Usage is what a vGPU has used in total since it was first put. The numbers
// never decrease: a reported usage is on disk.
type Usage struct {
	GPUNanos        uint64 `json:"gpuNanos"`
	PremiumNanos    uint64 `json:"premiumNanos,omitempty"` // of GPUNanos, in this tier
	BasicNanos      uint64 `json:"basicNanos,omitempty"`   // of GPUNanos, in this tier
	VRAMByteSeconds uint64 `json:"vramByteSeconds"`        // whole ones; the remainder is kept and counted later
	// SwappedByteSeconds is the part of VRAMByteSeconds that was in host memory;
	// the rest was on the card.
	SwappedByteSeconds uint64 `json:"vramSwappedByteSeconds"`
	SwapOutBytes       uint64 `json:"swapOutBytes"` // from the card to the host
	SwapInBytes        uint64 `json:"swapInBytes"`  // from the host to the card
	BytesToDevice      uint64 `json:"bytesToDevice"`
	BytesFromDevice    uint64 `json:"bytesFromDevice"`
	Launches           uint64 `json:"launches"`
}

// Now is the answer to GET /v1/now: cards and vGPUs at one point in time, for
// charts. Its usage is what gpud has counted and perhaps not yet written to disk,
// so that frequent requests cost nothing: after a crash of gpud it can be lower
// than before. It is not used for billing.
type Now struct {
	GPUs  []GPU  `json:"gpus"`
	VGPUs []VGPU `json:"vgpus"`
}

// UnusableGPU is an NVIDIA card of the machine that cannot be used.
type UnusableGPU struct {
	Address string `json:"address"` // PCI address, such as 0000:65:00.0
	Reason  string `json:"reason"`  // includes what to do
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

// Version is the version of the control API and of the worker stream.
const Version = 1

// Error is the body of a response whose status is not 2xx.
type Error struct {
	Code    string `json:"code"`
	Reason  string `json:"reason,omitempty"` // sched.Reason when the code is CodeNoFit
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// These are the codes of an Error and of a refused line of the worker stream.
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
