package sched

import "fmt"

// GPUID names a card on its node.
type GPUID string

// VGPUID names a virtual GPU.
type VGPUID string

// SessionID names one worker's session with its node.
type SessionID string

// FullShare is all of a card's time, in percent.
const FullShare = 100

// GPU describes a card for admission. Memory is in bytes.
type GPU struct {
	ID            GPUID
	VRAM          uint64 // VRAM that may be allocated to vGPUs; more than the card has if host memory backs the rest
	Largest       uint64 // most VRAM that one vGPU may have: what the card has; 0: VRAM
	VRAMUsed      uint64 // sum of the limits of the vGPUs on the card
	ShareUsed     int    // sum of their guaranteed shares, in percent
	VGPUs         int    // number of vGPUs on the card
	MaxVGPUs      int    // most vGPUs; 0: limited by VRAM and share only
	Unschedulable bool   // accepts no new vGPUs
}

// Request is what a vGPU needs.
type Request struct {
	VRAM         uint64 // limit in bytes, guaranteed
	SharePercent int    // guaranteed share of the card's time, 0 to 100; 0 is best effort
}

// Reason is why a request does not fit.
type Reason string

// The reasons.
const (
	ReasonInvalid       Reason = "invalid"
	ReasonNoGPU         Reason = "no-gpu"
	ReasonUnschedulable Reason = "unschedulable"
	ReasonVRAM          Reason = "vram"
	ReasonShare         Reason = "share"
	ReasonCount         Reason = "count"
)

// Misfit is the error for a request that does not fit. Its text may be shown to
// users.
type Misfit struct {
	Reason Reason
	GPU    GPUID // empty when the misfit is not of one particular card
	Want   uint64
	Free   uint64 // in the unit of the reason: bytes, percent, vGPUs
	// Others holds the reason of every card, when more than one was considered.
	Others []*Misfit
}

func (m *Misfit) Error() string {
	on := ""
	if m.GPU != "" {
		on = fmt.Sprintf(" on GPU %s", m.GPU)
	}
	switch m.Reason {
	case ReasonInvalid:
		return "a vGPU needs VRAM and a share from 0 to 100 %"
	case ReasonNoGPU:
		return "no GPU is available"
	case ReasonUnschedulable:
		return fmt.Sprintf("GPU %s is cordoned", m.GPU)
	case ReasonVRAM:
		return fmt.Sprintf("%d bytes of VRAM requested, %d free%s", m.Want, m.Free, on)
	case ReasonShare:
		return fmt.Sprintf("a share of %d %% requested, %d %% free%s", m.Want, m.Free, on)
	case ReasonCount:
		return fmt.Sprintf("the maximum number of vGPUs is reached%s", on)
	}
	return string(m.Reason)
}

// Admit returns nil when the request fits the card, and the first reason against
// it otherwise.
func Admit(g GPU, r Request) *Misfit {
	switch {
	case r.VRAM == 0 || r.SharePercent < 0 || r.SharePercent > FullShare:
		return &Misfit{Reason: ReasonInvalid, GPU: g.ID}
	case g.Unschedulable:
		return &Misfit{Reason: ReasonUnschedulable, GPU: g.ID}
	case g.Largest > 0 && r.VRAM > g.Largest:
		return &Misfit{Reason: ReasonVRAM, GPU: g.ID, Want: r.VRAM, Free: min(g.Largest, g.freeVRAM())}
	case r.VRAM > g.freeVRAM():
		return &Misfit{Reason: ReasonVRAM, GPU: g.ID, Want: r.VRAM, Free: g.freeVRAM()}
	case r.SharePercent > g.freeShare():
		return &Misfit{Reason: ReasonShare, GPU: g.ID, Want: uint64(r.SharePercent), Free: uint64(g.freeShare())}
	case g.MaxVGPUs > 0 && g.VGPUs >= g.MaxVGPUs:
		return &Misfit{Reason: ReasonCount, GPU: g.ID, Want: 1}
	}
	return nil
}

// Take returns g with the request placed on it.
func (g GPU) Take(r Request) GPU {
	g.VRAMUsed += r.VRAM
	g.ShareUsed += r.SharePercent
	g.VGPUs++
	return g
}

// Release returns g without a request that was placed on it.
func (g GPU) Release(r Request) GPU {
	g.VRAMUsed -= min(r.VRAM, g.VRAMUsed)
	g.ShareUsed = max(0, g.ShareUsed-r.SharePercent)
	g.VGPUs = max(0, g.VGPUs-1)
	return g
}

// freeVRAM returns the VRAM that is not allocated, in bytes. A card can be over
// its capacity when its operator has reduced it; the result is 0 then and does
// not underflow.
func (g GPU) freeVRAM() uint64 { return g.VRAM - min(g.VRAM, g.VRAMUsed) }
func (g GPU) freeShare() int   { return max(0, FullShare-g.ShareUsed) }
