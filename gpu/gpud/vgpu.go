package gpud

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// vgpu is a vGPU of the ledger.
type vgpu struct {
	id        sched.VGPUID
	spec      wire.VGPUSpec
	uuid      uuid
	token     string // the secret that its workers register with
	usage     usage
	durable   wire.Usage // the usage that is on disk: the only usage that is reported
	sessions  map[string]*session
	shares    map[string]*share // by token
	gauge     gauge
	events    []abi.GPUEvent // the newest, oldest first
	sole      *session       // was told that no other session has memory; nil: none was
	deleted   bool
	deletedAt sched.Time
}

func (v *vgpu) on() sched.GPUID { return sched.GPUID(v.spec.GPU) }

func (v *vgpu) request() sched.Request {
	return sched.Request{VRAM: v.spec.VRAMBytes, SharePercent: v.spec.SharePercent}
}

// tier returns the vGPU's tier, which put has validated.
func (v *vgpu) tier() sched.Tier {
	t, err := sched.ParseTier(v.spec.Tier)
	if err != nil {
		return sched.Standard
	}
	return t
}

// held returns the bytes of VRAM that its workers hold, including those that have
// not reconnected yet.
func (v *vgpu) held() uint64 {
	sum := v.shared()
	for _, s := range v.sessions {
		if s.state != ended {
			sum += s.held
		}
	}
	return sum
}

func (v *vgpu) limits(c *core) *worker.Limits {
	name, card := v.spec.Name, c.cards[v.on()]
	switch {
	case card != nil && (name == "" || card.Driver == wire.DriverNull): // a null GPU is always named as such
		name = card.Name
	case name == "":
		name = "Basalt vGPU"
	}
	return &worker.Limits{Name: name, UUID: v.uuid, VRAM: v.spec.VRAMBytes, Interop: card != nil && card.Interop}
}

// put creates or updates the vGPU to match the spec. It adds to the usage from
// before, including the usage of a deleted vGPU with the same ID.
func (c *core) put(id sched.VGPUID, spec wire.VGPUSpec, at sched.Time) *wire.Error {
	if !wire.ValidID(string(id)) {
		return &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("invalid vGPU ID, want 1 to %d printable characters without spaces and slashes", wire.MaxID)}
	}
	spec.Name = wire.CleanName(spec.Name)
	if _, err := sched.ParseTier(spec.Tier); err != nil {
		return &wire.Error{Code: wire.CodeInvalid, Message: err.Error()}
	}
	card := c.cards[sched.GPUID(spec.GPU)]
	if card == nil {
		return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("GPU %q does not exist on this node", spec.GPU)}
	}
	v := c.vgpus[id]
	if v != nil && !v.deleted && v.on() != card.ID && v.busy() {
		return &wire.Error{Code: wire.CodeBusy, Message: fmt.Sprintf("vGPU %s has running processes and cannot be moved to another GPU", id)}
	}
	if v == nil && len(c.vgpus) >= maxVGPUs {
		return &wire.Error{Code: wire.CodeNoFit, Reason: string(sched.ReasonCount), Message: "this node has too many vGPUs"}
	}
	if v != nil && v.spec == spec && !v.deleted {
		return nil // even if it would not fit any more
	}
	request := sched.Request{VRAM: spec.VRAMBytes, SharePercent: spec.SharePercent}
	less := v != nil && !v.deleted && v.on() == card.ID && spec.VRAMBytes <= v.spec.VRAMBytes && spec.SharePercent <= v.spec.SharePercent
	// A vGPU that does not grow is kept, even if the card's capacity is smaller
	// by now.
	if m := sched.Admit(c.admission(card, id), request); m != nil && (!less || m.Reason == sched.ReasonInvalid) {
		return &wire.Error{Code: wire.CodeNoFit, Reason: string(m.Reason), Message: m.Error()}
	}
	if v == nil {
		v = &vgpu{id: id, uuid: newUUID(), token: newToken(), sessions: map[string]*session{}, shares: map[string]*share{}}
		c.vgpus[id] = v
	}
	if v.deleted {
		v.token = newToken() // workers of a deleted vGPU must not register with the new one
	}
	was := v.on()
	v.spec, v.deleted = spec, false
	c.reshare(was)
	c.reshare(card.ID)
	for _, s := range v.sessions {
		if s.state == live {
			s.link.send(wire.FromNode{Op: wire.OpLimits, Limits: v.limits(c)})
		}
	}
	c.save.dirty = true
	c.cfg.Log.Info("vGPU created or changed", "vgpu", id, "gpu", spec.GPU, "vram", FormatSize(spec.VRAMBytes), "share", spec.SharePercent, "tier", spec.Tier)
	return nil
}

func (v *vgpu) busy() bool {
	for _, s := range v.sessions {
		if s.state != ended {
			return true
		}
	}
	return false
}

// remove ends the vGPU's sessions and removes it from the ledger. Its last usage
// is kept for keepDeleted, so that the request can be repeated if the answer was
// lost.
func (c *core) remove(id sched.VGPUID, at sched.Time) *wire.Error {
	v := c.vgpus[id]
	if v == nil {
		return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("vGPU %q does not exist", id)}
	}
	if v.deleted {
		return nil
	}
	for _, s := range v.sessions {
		c.endSession(s, at, "the virtual GPU was removed")
	}
	v.deleted, v.deletedAt = true, at
	c.reshare(v.on())
	c.save.dirty = true
	c.cfg.Log.Info("vGPU removed", "vgpu", id)
	return nil
}

// answer returns the vGPU as the control API reports it.
func (v *vgpu) answer(at sched.Time) wire.VGPU {
	out := wire.VGPU{
		ID: string(v.id), VGPUSpec: v.spec, UUID: v.uuid.String(), VRAMUsed: v.held(), VRAMSwapped: v.swapped(),
		GPUUtilization: v.gauge.percent(at, v.usage.Work.GPUNanos), Processes: []wire.Process{},
		Usage: v.durable, Deleted: v.deleted,
	}
	for _, s := range v.running() {
		out.Processes = append(out.Processes, wire.Process{PID: s.pid, Name: s.name, VRAMBytes: s.shows()})
	}
	return out
}

// running returns its live sessions, sorted by guest PID.
func (v *vgpu) running() (all []*session) {
	for _, s := range v.sessions {
		if s.state == live {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.id, b.id)) })
	return all
}

// status returns the vGPU as nvidia-smi in the guest shows it, or nil when its card
// is lost.
func (v *vgpu) status(c *core, at sched.Time) *abi.VGPUStatusReply {
	card := c.cards[v.on()]
	if card != nil && card.sensors.lost {
		return nil
	}
	out := &abi.VGPUStatusReply{
		VRAMLimit: v.spec.VRAMBytes, VRAMUsed: v.held(),
		GPUUtilization: v.gauge.percent(at, v.usage.Work.GPUNanos),
	}
	if card != nil {
		out.Temperature, out.PowerMilliwatts, out.Readings = card.sensors.celsius, card.sensors.milliwatts, slices.Clone(card.sensors.readings)
	}
	for _, s := range v.running() {
		s.peak = max(s.peak, s.shows())
		out.Processes = append(out.Processes, abi.ProcessInfo{PID: s.pid, VRAMUsed: s.shows(), Name: s.name})
	}
	out.Accounted, out.Samples = v.accounted(c, at), v.samples(c, at)
	if used, known := card.memoryOf(v.id); known {
		out.MemoryUtilization = used
		out.Readings = append(out.Readings, abi.Reading{Key: abi.ReadingMemoryUtilization, Value: uint64(used)})
	}
	out.Events = slices.Clone(v.events)
	out.Readings = append(out.Readings,
		abi.Reading{Key: abi.ReadingAccountedEnded, Value: maxEndedPerVGPU}, abi.Reading{Key: abi.ReadingEventTypes, Value: eventTypeXID})
	return out
}

// list answers GET /v1/vgpus, once all usage that it reports is on disk.
func (c *core) list(only sched.VGPUID, deleted bool, answer func([]wire.VGPU)) {
	c.settle(now())
	c.durable(func(error) { // if the disk cannot be written: the usage that was last stored
		at, all := now(), []wire.VGPU{}
		for _, id := range slices.Sorted(maps.Keys(c.vgpus)) {
			if v := c.vgpus[id]; (only == "" || id == only) && (deleted || !v.deleted) {
				all = append(all, v.answer(at))
			}
		}
		answer(all)
	})
}

// present answers GET /v1/now.
func (c *core) present(at sched.Time) wire.Now {
	out := wire.Now{GPUs: c.gpus(at), VGPUs: []wire.VGPU{}}
	for _, id := range slices.Sorted(maps.Keys(c.vgpus)) {
		if v := c.vgpus[id]; !v.deleted {
			a := v.answer(at)
			a.Usage = v.usage.wire()
			out.VGPUs = append(out.VGPUs, a)
		}
	}
	return out
}

var errNoCard = errors.New("the GPU of this vGPU is not available")
