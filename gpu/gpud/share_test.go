package gpud_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// sharer is a worker with an account, as gpud sees it.
type sharer struct {
	*client.Host
	account *worker.Account
	t       *testing.T
}

func (n *testNode) sharer(t *testing.T, vgpu string) *sharer {
	t.Helper()
	s := &sharer{Host: n.dial(vgpu), t: t}
	s.account = worker.NewAccount(s.Limits().VRAM)
	s.Account(s.account)
	return s
}

// share reserves memory and lets others open it.
func (s *sharer) share(token worker.ShareToken, bytes uint64) {
	s.t.Helper()
	if err := errors.Join(s.Reserve(bytes), s.Share(token, bytes)); err != nil {
		s.t.Fatal(err)
	}
	f, err := shm.NewFile(token.String(), bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if err := s.Publish(token, worker.Shared{Size: bytes, File: f}); err != nil {
		s.t.Fatal(err)
	}
}

// open opens shared memory and checks that the file is the one that the token's
// owner has sent.
func (s *sharer) open(token worker.ShareToken, bytes uint64) {
	s.t.Helper()
	m, err := s.OpenShared(token)
	if err != nil {
		s.t.Fatal(err)
	}
	defer m.File.Close()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", m.File.Fd()))
	if err != nil || !strings.Contains(name, token.String()) || m.Size != bytes {
		s.t.Errorf("opened %q, %d bytes, %v; want a file named %s with %d bytes", name, m.Size, err, token, bytes)
	}
}

func (s *sharer) refused(token worker.ShareToken, why string) {
	s.t.Helper()
	if m, err := s.OpenShared(token); !errors.Is(err, abi.ErrInvalidHandle) {
		s.t.Errorf("%s: opened %d bytes, %v; want %v", why, m.Size, err, abi.ErrInvalidHandle)
	}
}

// uses waits until gpud reports that the vGPU uses want bytes, without unused
// memory in accounts.
func (n *testNode) uses(t *testing.T, s *sharer, want uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d bytes are used", want), func() bool {
		free, total, err := s.Memory()
		return err == nil && total-free == want
	})
}

// Shared memory counts once as long as any session has it. Workers of the same vGPU can
// open it as long as its owner has it.
func TestShare(t *testing.T) {
	n := newTestNode(t)
	n.put("a", 4*gib, 50)
	n.put("b", 4*gib, 50)
	owner, user, stranger := n.sharer(t, "a"), n.sharer(t, "a"), n.sharer(t, "b")
	token, guess := worker.ShareToken{1, 2}, worker.ShareToken{1, 3}
	user.refused(token, "before it is shared")
	owner.share(token, gib)
	user.refused(guess, "a guess")
	stranger.refused(token, "of another vGPU")
	user.open(token, gib)
	user.open(token, gib)
	for _, s := range []*sharer{owner, user} {
		n.uses(t, s, gib)
	}
	if v := n.vgpu("b"); v.VRAMUsed != 0 {
		t.Errorf("VRAM used by the other vGPU = %d bytes, want 0", v.VRAMUsed)
	}
	if err := user.Reserve(3*gib + 256); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve more than is left = %v, want %v", err, abi.ErrOutOfMemory)
	}
	owner.Unshare(token, false)
	n.uses(t, owner, gib)
	if _, err := owner.OpenShared(token); !errors.Is(err, abi.ErrInvalidHandle) {
		t.Errorf("open after the owner has freed it = %v, want %v", err, abi.ErrInvalidHandle)
	}
	user.Unshare(token, false)
	n.uses(t, user, 0)

	owner.share(token, gib)
	user.open(token, gib)
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
	n.uses(t, user, gib)
	user.refused(token, "after its owner's end")
	if err := user.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the last one's end gives it back", func() bool { return n.vgpu("a").VRAMUsed == 0 })
	if v := n.vgpu("a"); v.Usage.VRAMByteSeconds == 0 {
		t.Error("VRAMByteSeconds = 0, want the shared memory metered")
	}
}

// A session cannot share more than it has, share memory that gpud does not know, or
// share too many pieces.
func TestShareLimits(t *testing.T) {
	n := newTestNode(t)
	n.put("a", 4*gib, 50)
	s := n.sharer(t, "a")
	if err := s.Share(worker.ShareToken{9}, gib); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("share memory that the session does not hold = %v, want %v", err, abi.ErrInvalidValue)
	}
	for i := range uint64(wire.MaxShares) {
		s.share(worker.ShareToken{1, i}, 4096)
	}
	if err := errors.Join(s.Reserve(4096), s.Share(worker.ShareToken{2}, 4096)); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("share one piece more than the limit = %v, want %v", err, abi.ErrOutOfMemory)
	}
	other := n.sharer(t, "a")
	for i := range uint64(wire.MaxShares) {
		other.open(worker.ShareToken{1, i}, 4096)
	}
	if err := other.Reserve(4096); err != nil {
		t.Fatal(err)
	}
	if err := other.Share(worker.ShareToken{3}, 4096); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("share one piece more than the limit for created and opened ones = %v, want %v", err, abi.ErrOutOfMemory)
	}
	n.stop() // so that the longest registrations are sent
	n.start()
	s.open(worker.ShareToken{1, 7}, 4096)
	n.uses(t, other, (wire.MaxShares+2)*4096)
}

// Shared memory leaves room on the card for each other vGPU, and no vGPU is admitted
// that would have too little.
func TestShareLeavesRoom(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.SoftGPUs = []gpud.SoftGPU{{Name: "soft0", VRAM: 64 * mib, SMs: 2}}
	n.cfg.SwapBytes = 128 * mib
	n.start()
	n.put("a", 48*mib, 50)
	n.put("b", 40*mib, 25)
	a := n.sharer(t, "a")
	a.share(worker.ShareToken{1}, 24*mib)
	if err := errors.Join(a.Reserve(mib), a.Share(worker.ShareToken{2}, mib)); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("share memory that b needs = %v, want %v", err, abi.ErrOutOfMemory)
	}
	if _, err := n.control.PutVGPU(t.Context(), "c", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 41 * mib, SharePercent: 10}); !strings.HasPrefix(code(err), wire.CodeNoFit) {
		t.Errorf("PutVGPU without room beside the shared memory = %v, want %s", err, wire.CodeNoFit)
	}
	n.put("c", 40*mib, 10)
	a.Release(mib) // it could not be evicted
	b := n.sharer(t, "b")
	if err := b.Reserve(40 * mib); err != nil {
		t.Errorf("reserve of b = %v, want no error", err)
	}
}

// When gpud is killed, workers reconnect with what they share, which can be opened
// again, and without what the owner has given up in the meantime.
func TestShareSurvivesGPUD(t *testing.T) {
	n := newTestNode(t)
	n.put("a", 4*gib, 50)
	owner, user := n.sharer(t, "a"), n.sharer(t, "a")
	kept, freed := worker.ShareToken{1}, worker.ShareToken{2}
	for _, token := range []worker.ShareToken{kept, freed} {
		owner.share(token, gib)
		user.open(token, gib)
	}
	n.stop()
	owner.Unshare(freed, false)
	n.start()
	third := n.sharer(t, "a")
	third.open(kept, gib)
	n.uses(t, third, 2*gib)
	third.refused(freed, "freed while gpud was away")
	if err := third.Reserve(2*gib + 256); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve more than is left = %v, want %v", err, abi.ErrOutOfMemory)
	}
	user.Unshare(freed, false)
	n.uses(t, third, gib)
	n.stop()
	if err := owner.Close(); err == nil {
		t.Error("Close of the owner without gpud returned no error")
	}
	n.cfg.DetachGrace = 3 * time.Second // the owner does not reconnect; the others do
	n.start()
	n.uses(t, user, gib)
}

// gpud is killed just after memory was shared, opened or given up: nothing is lost, and
// no memory is counted that no session has.
func TestShareSurvivesKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and restarts gpud")
	}
	dir := t.TempDir()
	state, socket := filepath.Join(dir, "state"), filepath.Join(dir, "s")
	daemon := role(t, "gpud", state, socket, nil)
	n := &testNode{t: t, tokens: map[string]string{}, cfg: gpud.Config{Socket: socket, Log: testLog(t)}, control: client.NewControl(socket)}
	t.Cleanup(n.control.Close)
	eventually(t, "gpud runs", func() bool { _, err := n.control.VGPUs(t.Context()); return err == nil })
	n.put("a", 4*gib, 50)
	owner, user, third := n.sharer(t, "a"), n.sharer(t, "a"), n.sharer(t, "a")
	again := func() {
		kill9(t, daemon)
		daemon = role(t, "gpud", state, socket, nil)
	}
	for i := range uint64(3) {
		token := worker.ShareToken{1, i}
		owner.share(token, gib)
		again()
		user.open(token, gib)
		again()
		third.open(token, gib)
		n.uses(t, third, gib)
		owner.Unshare(token, false)
		again()
		third.Unshare(token, false)
		n.uses(t, user, gib)
		user.Unshare(token, false)
		again()
		n.uses(t, owner, 0)
	}
}
