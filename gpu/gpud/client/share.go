package client

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// shared is memory that the session shares with others: it counts in the vGPU's
// account, and in no session's.
type shared struct {
	wire.Share          // Owner: this worker shares it
	file       *os.File // the file of the memory once others may open it; only the owner has it
}

// awaitOwner is how long an open waits for a worker that has yet to reconnect to a gpud
// that was restarted, and askAgain is the interval at which it asks.
const (
	awaitOwner = 10 * time.Second
	askAgain   = 50 * time.Millisecond
)

// mayShare returns an error if gpud does not know the lines for shared memory: it would
// end the connection.
func (h *Host) mayShare() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.sharing {
		return fmt.Errorf("%w: this version of gpud does not support sharing memory between processes", abi.ErrNotSupported)
	}
	return nil
}

// Share implements worker.Host.
func (h *Host) Share(token worker.ShareToken, size uint64) error {
	if err := h.mayShare(); err != nil {
		return err
	}
	_, err := h.call(h.ctx, wire.ToNode{Op: wire.OpShare, Share: &wire.Share{Token: token.String(), Size: size}})
	return shareError(err)
}

// Publish implements worker.Host.
func (h *Host) Publish(token worker.ShareToken, m worker.Shared) error {
	h.mu.Lock()
	s := h.shares[token.String()]
	if s == nil {
		h.mu.Unlock()
		return abi.ErrInvalidHandle
	}
	file, err := shm.Duplicate(m.File)
	if err == nil {
		s.file = file
		if h.stream != nil && h.sharing {
			h.stream.send(s.line())
		}
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = h.call(h.ctx, wire.ToNode{Op: wire.OpMemory}) // whoever is told the token finds the memory
	return err
}

// line returns the line that passes the memory's descriptor to gpud.
func (s *shared) line() wire.ToNode {
	return wire.ToNode{Op: wire.OpShare, Share: &wire.Share{Token: s.Token, Size: s.Size}, HasFile: true, File: s.file}
}

// OpenShared implements worker.Host.
func (h *Host) OpenShared(token worker.ShareToken) (worker.Shared, error) {
	for until := time.Now().Add(awaitOwner); ; {
		if err := h.mayShare(); err != nil {
			return worker.Shared{}, err
		}
		m, err := h.call(h.ctx, wire.ToNode{Op: wire.OpOpen, Share: &wire.Share{Token: token.String()}})
		var refused *wire.Error
		if errors.As(err, &refused) && refused.Code == wire.CodeUnavailable && time.Now().Before(until) {
			select {
			case <-time.After(askAgain):
				continue
			case <-h.ctx.Done():
			}
		}
		if err != nil {
			return worker.Shared{}, shareError(err)
		}
		if m.File == nil || m.Share == nil {
			return worker.Shared{}, fmt.Errorf("%w: response of gpud has no descriptor", abi.ErrUnavailable)
		}
		return worker.Shared{Size: m.Share.Size, File: m.File}, nil
	}
}

// Unshare implements worker.Host.
func (h *Host) Unshare(token worker.ShareToken, keep bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.shares[token.String()]
	if s == nil {
		return
	}
	delete(h.shares, token.String())
	if s.file != nil {
		_ = s.file.Close()
	}
	if keep {
		h.held += s.Bytes()
	}
	if h.account != nil {
		h.account.Unshared(s.Bytes(), keep)
	}
	if h.stream != nil && h.sharing {
		h.stream.send(wire.ToNode{Op: wire.OpUnshare, Share: &wire.Share{Token: s.Token}, Keep: keep})
	}
}

// shareError converts gpud's refusal to the error of the driver API.
func shareError(err error) error {
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case wire.CodeOutOfMemory:
		return fmt.Errorf("%w: %s", abi.ErrOutOfMemory, refused.Message)
	case wire.CodeNotFound:
		return fmt.Errorf("%w: %s", abi.ErrInvalidHandle, refused.Message)
	}
	return fmt.Errorf("%w: %s", abi.ErrInvalidValue, refused.Message)
}

// enterShared records what gpud has granted. It is called by the stream's reader with
// h.mu held, so that a registration after it has the same shares as the ledger.
func (h *Host) enterShared(q question, m wire.FromNode) {
	switch {
	case q.opens != "" && m.Share != nil && h.shares[q.opens] == nil:
		h.shares[q.opens] = &shared{Share: *m.Share}
		if h.account != nil {
			h.account.Opened(m.Share.Bytes())
		}
	case q.shares.Token != "":
		n := min(q.shares.Bytes(), h.held)
		h.held -= n
		h.shares[q.shares.Token] = &shared{Share: q.shares}
		h.shares[q.shares.Token].Owner = true
		if h.account != nil {
			h.account.Shared(n)
		}
	}
}

// shareList returns the shares for a registration; h.mu is held.
func (h *Host) shareList() (list []wire.Share) {
	for _, s := range h.shares {
		list = append(list, wire.Share{Token: s.Token, Size: s.Size, Owner: s.Owner})
	}
	return list
}

// publishAgain sends the descriptors to a gpud that was restarted; h.mu is held.
func (h *Host) publishAgain(s *stream) {
	for _, sh := range h.shares {
		if sh.file != nil {
			s.send(sh.line())
		}
	}
}
