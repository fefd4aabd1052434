package worker

import (
	"errors"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// localShares is the memory that the sessions of joined local hosts share, like
// that of one vGPU.
type localShares struct {
	mu sync.Mutex // guards the following; an account's mutex is taken under it
	of map[ShareToken]*localShare
}

type localShare struct {
	at      Shared // File nil: it cannot be opened, not yet or no longer
	owner   *LocalHost
	holders map[*LocalHost]bool
}

func newLocalShares() *localShares { return &localShares{of: map[ShareToken]*localShare{}} }

// Join makes the hosts share memory as sessions of one vGPU do. It must be called
// before a session uses h.
func (h *LocalHost) Join(o *LocalHost) { h.shares = o.shares }

// Share implements Host.
func (h *LocalHost) Share(token ShareToken, size uint64) error {
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	h.shares.of[token] = &localShare{at: Shared{Size: size}, owner: h, holders: map[*LocalHost]bool{h: true}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used -= min(Accounted(size), h.used)
	h.acct.Shared(Accounted(size))
	return nil
}

// Publish implements Host.
func (h *LocalHost) Publish(token ShareToken, m Shared) error {
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	s := h.shares.of[token]
	if s == nil || s.owner != h {
		return abi.ErrInvalidHandle
	}
	file, err := shm.Duplicate(m.File)
	s.at.File = file
	return err
}

// OpenShared implements Host.
func (h *LocalHost) OpenShared(token ShareToken) (Shared, error) {
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	s := h.shares.of[token]
	if s == nil || s.at.File == nil {
		return Shared{}, abi.ErrInvalidHandle
	}
	m := s.at
	var err error
	if m.File, err = shm.Duplicate(m.File); err != nil {
		return Shared{}, errors.Join(abi.ErrUnavailable, err)
	}
	if !s.holders[h] {
		s.holders[h] = true
		h.acct.Opened(Accounted(m.Size))
	}
	return m, nil
}

// Unshare implements Host.
func (h *LocalHost) Unshare(token ShareToken, keep bool) {
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	s := h.shares.of[token]
	if s == nil || !s.holders[h] {
		return
	}
	delete(s.holders, h)
	if s.owner == h && s.at.File != nil {
		_ = s.at.File.Close()
		s.at.File = nil
	}
	if len(s.holders) == 0 {
		delete(h.shares.of, token)
	}
	h.acct.Unshared(Accounted(s.at.Size), keep)
	if keep {
		h.mu.Lock()
		h.used += Accounted(s.at.Size)
		h.mu.Unlock()
	}
}
