package vhostuser

import (
	"fmt"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// SessionState is the state of a session for its handover to the next program
// in the same process: file descriptors are numbers in its table.
type SessionState struct {
	Features, Protocol uint64
	Memory             []virtio.Region
	Rings              []RingState
	GPUSocket          int
}

// RingState is one ring of a SessionState. A running one continues at Base.
type RingState struct {
	Size, Base       uint16
	Desc, Used, Aval uint64
	HasAddr          bool
	Kick, Call, Err  int
	Enabled          bool
}

// State returns what RestoreSession needs. The session does not change.
func (s *Session) State() SessionState {
	st := SessionState{Features: s.features, Protocol: s.protocol, GPUSocket: s.gpu}
	if s.memory != nil {
		st.Memory = s.memory.Regions()
	}
	for _, r := range s.rings {
		if r.queue != nil {
			r.Base = r.queue.Position().Avail
		}
		st.Rings = append(st.Rings, RingState{r.Size, r.Base, r.Addr.Desc, r.Addr.Used, r.Addr.Avail, r.HasAddr, r.FDs.Kick, r.FDs.Call, r.FDs.Err, r.Enabled})
	}
	return st
}

// FDs returns all file descriptors of the state.
func (st SessionState) FDs() (fds []int) {
	for _, r := range st.Memory {
		fds = append(fds, r.FD)
	}
	for _, r := range st.Rings {
		fds = append(fds, r.Kick, r.Call, r.Err)
	}
	fds = append(fds, st.GPUSocket)
	kept := fds[:0]
	for _, fd := range fds {
		if fd >= 0 {
			kept = append(kept, fd)
		}
	}
	return kept
}

// RestoreSession continues a session in a new program. Rings that ran are
// started again, with fresh set only if they were never used.
func RestoreSession(dev Device, st SessionState) (*Session, error) {
	s := &Session{dev: dev, features: st.Features, protocol: st.Protocol, gpu: st.GPUSocket}
	for _, r := range st.Rings {
		s.rings = append(s.rings, ring{Size: r.Size, Base: r.Base, Addr: vringAddr{r.Desc, r.Used, r.Aval}, HasAddr: r.HasAddr,
			FDs: RingFDs{r.Kick, r.Call, r.Err}, Enabled: r.Enabled})
	}
	if len(st.Memory) > 0 {
		memory, err := virtio.Map(st.Memory)
		if err != nil {
			return nil, fmt.Errorf("map the memory of the restored session: %w", err)
		}
		s.memory = memory
		dev.SetMemory(memory)
	}
	for i := range s.rings {
		if err := s.updateRing(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}
