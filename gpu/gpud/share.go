package gpud

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// share is memory of a vGPU that its sessions may share (decision 46). It counts once in
// the vGPU's account, and in no session's, as long as any session has it; it is not
// evicted from the card.
type share struct {
	wire.Share
	owner   *session // whose worker created it, as long as that session has it
	file    *os.File // descriptor of the memory; nil: it cannot be opened now
	holders map[*session]bool
	settled sched.Time // until when it has been counted
}

// maxSharesPerVGPU bounds the descriptors that gpud keeps for one vGPU.
const maxSharesPerVGPU = 1024

// shared returns the bytes that the vGPU's sessions share.
func (v *vgpu) shared() (sum uint64) {
	for _, sh := range v.shares {
		sum += sh.Bytes()
	}
	return sum
}

// sharedOn returns the bytes that all sessions of a card share; they are on the
// card.
func (c *core) sharedOn(id sched.GPUID) (sum uint64) {
	for _, v := range c.vgpus {
		if v.on() == id {
			sum += v.shared()
		}
	}
	return sum
}

// has returns how many pieces of shared memory the session has, and their bytes.
func (s *session) has() (n int, bytes uint64) {
	for _, sh := range s.vgpu.shares {
		if sh.holders[s] {
			n++
			bytes += sh.Bytes()
		}
	}
	return n, bytes
}

// sharesAny reports whether the session has any shared memory.
func (s *session) sharesAny() bool {
	n, _ := s.has()
	return n > 0
}

// shows returns the bytes that nvidia-smi shows for the session's process: shared
// memory is shown for the process that created it.
func (s *session) shows() uint64 {
	sum := s.held
	for _, sh := range s.vgpu.shares {
		if sh.owner == s {
			sum += sh.Bytes()
		}
	}
	return sum
}

// settleShares counts the vGPU's shared memory up to now, while any session has
// it.
func (v *vgpu) settleShares(at sched.Time) (some bool) {
	for _, sh := range v.shares {
		for s := range sh.holders {
			if s.state == live {
				v.usage.VRAM.add(sh.Bytes(), at-sh.settled)
				sh.settled, some = at, true
				break
			}
		}
	}
	return some
}

// sharing handles OpShare: without a descriptor it turns memory of the session into
// shared memory, with one it lets others open it.
func (c *core) sharing(s *session, m *wire.ToNode, at sched.Time) *wire.Error {
	v, sh := s.vgpu, s.vgpu.shares[m.Share.Token]
	switch {
	case m.File != nil && sh != nil && sh.owner == s && sh.file == nil && (sh.Size > 0 || shm.CheckFile(m.File, eventPage) == nil):
		sh.file, m.File = m.File, nil
		return nil
	case m.File != nil || sh != nil || m.Share.Bytes() > s.held:
		return &wire.Error{Code: wire.CodeInvalid, Message: "the session has no such memory to share"}
	}
	if e := c.mayShare(s, m.Share.Bytes()); e != nil {
		return e
	}
	s.settle(at)
	s.held -= m.Share.Bytes()
	s.presence.swapped = min(s.presence.swapped, s.held)
	v.shares[m.Share.Token] = &share{Share: wire.Share{Token: m.Share.Token, Size: m.Share.Size}, owner: s, holders: map[*session]bool{s: true}, settled: at}
	if v.sole == s {
		v.sole = nil // a session that opens it has memory that s may not know of
	}
	c.save.dirty = true
	return nil
}

// mayShare returns why a session may not share that many bytes, or nil. Shared
// memory stays on the card, so it must leave enough for the full limit of each other
// vGPU.
func (c *core) mayShare(s *session, bytes uint64) *wire.Error {
	if n, _ := s.has(); n >= wire.MaxShares || len(s.vgpu.shares) >= maxSharesPerVGPU {
		return &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("%d pieces of memory are already shared, the maximum", len(s.vgpu.shares))}
	}
	card := c.cards[s.vgpu.on()]
	if card == nil {
		return &wire.Error{Code: wire.CodeUnavailable, Message: errNoCard.Error()}
	}
	all := c.sharedOn(card.ID) + bytes
	for _, v := range c.vgpus {
		if v == s.vgpu || v.on() != card.ID || v.deleted {
			continue
		}
		if others := all - v.shared(); v.spec.VRAMBytes > card.VRAM-min(others, card.VRAM) {
			return &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("cannot share %d bytes, which would stay on the GPU: vGPU %s has no memory left for it", bytes, v.id)}
		}
	}
	return nil
}

// open returns the share that OpOpen names; only sessions of the vGPU that shares
// it can open it.
func (c *core) open(s *session, token string) (*share, *wire.Error) {
	sh := s.vgpu.shares[token]
	switch n, _ := s.has(); {
	case sh != nil && sh.file == nil && sh.owner != nil, sh == nil && s.vgpu.awaits(s):
		return nil, &wire.Error{Code: wire.CodeUnavailable, Message: "the worker that shares it has not sent its location yet"}
	case sh == nil || sh.file == nil:
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "shared memory with this name does not exist on the vGPU"}
	case n >= wire.MaxShares && !sh.holders[s]:
		return nil, &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("the process already has %d pieces of shared memory, the maximum", n)}
	}
	return sh, nil
}

// answerOpen fills the reply to an open: from now on, the session has the memory.
func (c *core) answerOpen(s *session, token string, reply *wire.FromNode) {
	sh, e := c.open(s, token)
	if e == nil {
		told := sh.Share
		var err error
		if reply.File, err = shm.Duplicate(sh.file); err == nil {
			reply.Share, reply.HasFile = &told, true
			sh.holders[s] = true
			c.save.dirty = true
			return
		}
		e = &wire.Error{Code: wire.CodeOutOfMemory, Message: err.Error()}
	}
	reply.Code, reply.Message = e.Code, e.Message
}

// unshare handles OpUnshare. keep means that no other session has the memory, and
// that it becomes the session's own again.
func (c *core) unshare(s *session, token string, keep bool, at sched.Time) {
	sh := s.vgpu.shares[token]
	if sh == nil || !sh.holders[s] {
		return
	}
	if keep && sh.owner == s && len(sh.holders) == 1 {
		s.settle(at)
		s.held += sh.Bytes()
	}
	c.part(s, sh, at)
	c.applyResidency(c.cards[s.vgpu.on()], at)
}

// part takes a piece of shared memory from a session; the last session to give it
// up frees it.
func (c *core) part(s *session, sh *share, at sched.Time) {
	s.vgpu.settleShares(at)
	delete(sh.holders, s)
	if sh.owner == s {
		sh.owner = nil
		sh.close()
	}
	if len(sh.holders) == 0 {
		delete(s.vgpu.shares, sh.Token)
	}
	c.save.dirty = true
}

// eventPage is the size of the file of an event that sessions share
// (gpu/worker/share_event.go): it holds how often the event was recorded and which record
// is done. An event counts no memory.
const eventPage = 4096

// complete marks all records of an event as done: a session that may have recorded
// it has ended, and others must not wait for ever. The file is checked to be sealed
// memory, so access to it does not block.
func (sh *share) complete() {
	var recorded [8]byte
	if _, err := sh.file.ReadAt(recorded[:], 0); err == nil {
		_, _ = sh.file.WriteAt(recorded[:], int64(len(recorded)))
	}
}

// partAll removes an ended session from all shares.
func (c *core) partAll(s *session, at sched.Time) {
	for _, sh := range s.vgpu.shares {
		if sh.holders[s] {
			if sh.Size == 0 && sh.file != nil {
				sh.complete()
			}
			c.part(s, sh, at)
		}
	}
}

func (sh *share) close() {
	if sh.file != nil {
		_ = sh.file.Close()
		sh.file = nil
	}
}

// unknown returns the number of shares in list, which a worker registers with, that gpud
// does not know, and their bytes.
func (v *vgpu) unknown(list []wire.Share) (n int, sum uint64) {
	for _, sh := range list {
		if v.shares[sh.Token] == nil {
			n++
			sum += sh.Bytes()
		}
	}
	return n, sum
}

// restoreShares sets the shares of a worker that reconnects to those that it registers
// with.
func (c *core) restoreShares(s *session, list []wire.Share, at sched.Time) {
	said := map[string]bool{}
	for _, in := range list {
		said[in.Token] = true
		sh := s.vgpu.shares[in.Token]
		if sh == nil {
			sh = &share{Share: wire.Share{Token: in.Token, Size: in.Size}, holders: map[*session]bool{}, settled: at}
			s.vgpu.shares[in.Token] = sh
		}
		sh.holders[s] = true
		if in.Owner && sh.owner == nil {
			sh.owner = s
		}
		if sh.owner == s {
			sh.close() // the worker sends the descriptor again
		}
	}
	for token, sh := range s.vgpu.shares {
		if sh.holders[s] && !said[token] {
			c.part(s, sh, at)
		}
	}
}

// storedShare is a share on disk.
type storedShare struct {
	wire.Share
	Owner   string     `json:"owner,omitempty"` // session
	Holders []string   `json:"holders"`
	Settled sched.Time `json:"settled"`
}

func (v *vgpu) storedShares() (all []storedShare) {
	for _, sh := range v.shares {
		out := storedShare{Share: sh.Share, Settled: sh.settled}
		if sh.owner != nil {
			out.Owner = sh.owner.id
		}
		for s := range sh.holders {
			out.Holders = append(out.Holders, s.id)
		}
		slices.Sort(out.Holders)
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b storedShare) int { return cmp.Compare(a.Token, b.Token) })
	return all
}

// loadShares restores the shares of sessions that are expected to reconnect.
func (v *vgpu) loadShares(list []storedShare) {
	for _, in := range list {
		sh := &share{Share: in.Share, holders: map[*session]bool{}, settled: in.Settled}
		for _, id := range in.Holders {
			if s := v.sessions[id]; s != nil && s.state != ended {
				sh.holders[s] = true
			}
		}
		if s := v.sessions[in.Owner]; s != nil && sh.holders[s] {
			sh.owner = s
		}
		if len(sh.holders) > 0 {
			v.shares[in.Token] = sh
		}
	}
}
