package cuda

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Evict implements worker.Context. Variables of modules stay on the card.
func (c *context) Evict(bytes uint64) (moved uint64, err error) {
	v := c.virtual
	if v == nil {
		return 0, abi.ErrNotSupported
	}
	v.move.Lock()
	defer v.move.Unlock()
	if c.quitting() {
		return 0, abi.ErrInvalidContext
	}
	list, moved := v.choose(bytes)
	defer v.settle()
	copies := make([]transfer, len(list))
	for i, p := range list {
		host, err := hostCopy(p.size)
		if err == nil {
			copies[i] = transfer{p.address, host}
			continue
		}
		forget(copies)
		return 0, err
	}
	if err := c.copyAll(copies, false); err != nil {
		forget(copies)
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for i, p := range list {
		errs = append(errs, c.hideAliases(p), c.detach(p, p.handle))
		p.handle, p.away, p.host = 0, true, copies[i].host
	}
	v.evicted = true
	if err := errors.Join(errs...); err != nil {
		c.poison(err) // its contents are incomplete on both sides
		return 0, err
	}
	return moved, nil
}

// choose marks the pieces to evict: at least bytes, or all.
func (v *virtual) choose(bytes uint64) (list []*piece, moved uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.blocks {
		if b.shared {
			continue
		}
		for _, p := range b.pieces {
			if moved >= bytes {
				return list, moved
			}
			if !p.away {
				b.moving = true
				list = append(list, p)
				moved += b.counts(p)
			}
		}
	}
	return list, moved
}

// settle ends a move and runs the frees that waited for it.
func (v *virtual) settle() {
	v.mu.Lock()
	for _, b := range v.blocks {
		b.moving = false
	}
	condemned := v.condemned
	v.condemned = nil
	v.mu.Unlock()
	for _, free := range condemned {
		free()
	}
}

// Restore implements worker.Context. The host's copies are kept until all is
// restored.
func (c *context) Restore() error {
	v := c.virtual
	if v == nil {
		return abi.ErrNotSupported
	}
	v.move.Lock()
	defer v.move.Unlock()
	if c.quitting() {
		return abi.ErrInvalidContext
	}
	v.mu.Lock()
	if !v.evicted {
		v.mu.Unlock()
		return nil
	}
	list := v.leave()
	v.mu.Unlock()
	defer v.settle()
	handles, err := c.bringBack(list)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	late := v.leave()[len(list):] // allocated in the meantime: all zeros
	more, err := c.bringBack(late)
	if err != nil {
		c.detachAll(list, handles)
		return err
	}
	list, handles = append(list, late...), append(handles, more...)
	if err := c.showAliases(list, handles); err != nil {
		c.detachAll(list, handles)
		return err
	}
	for i, p := range list {
		p.forget()
		p.handle, p.away = handles[i], false
	}
	v.evicted = false
	return nil
}

// leave returns the evicted pieces, which must not be freed until settle. Those
// that were marked before come first.
func (v *virtual) leave() (list []*piece) {
	var late []*piece
	for _, b := range v.blocks {
		for _, p := range b.pieces {
			if p.away && b.moving {
				list = append(list, p)
			} else if p.away {
				late = append(late, p)
			}
		}
	}
	for _, b := range v.blocks {
		b.moving = true
	}
	return append(list, late...)
}

// bringBack allocates device memory, maps it and fills it; it does so for all of
// the list or none.
func (c *context) bringBack(list []*piece) (handles []uint64, err error) {
	for _, p := range list { // first check whether there is room
		h, err := c.create(p.size)
		if err != nil {
			c.release(handles)
			return nil, err
		}
		handles = append(handles, h)
	}
	var copies []transfer
	for i, p := range list {
		if err = c.attach(p, handles[i]); err != nil {
			c.release(handles[i:])
			c.detachAll(list[:i], handles)
			return nil, err
		}
		if p.host != nil {
			copies = append(copies, transfer{p.address, p.host})
		}
	}
	if err = c.copyAll(copies, true); err == nil {
		for _, p := range list {
			if p.host == nil && err == nil {
				err = c.clear(p.address, p.size, c.virtual.streams[0])
			}
		}
	}
	if err != nil {
		c.detachAll(list, handles)
		return nil, err
	}
	return handles, nil
}

func (c *context) release(handles []uint64) {
	for _, h := range handles {
		_ = c.call(cuMemRelease, uintptr(h))
	}
}

func (c *context) detachAll(list []*piece, handles []uint64) {
	for i, p := range list {
		_ = c.detach(p, handles[i])
	}
}

func (c *context) quitting() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// transfer is device memory and its copy on the host.
type transfer struct {
	address uint64
	host    []byte
}

func forget(copies []transfer) {
	for _, t := range copies {
		(&piece{host: t.host}).forget()
	}
}

// copyAll copies between the card and the host through two pinned chunks: one is
// on the bus while the processor works on the other. The loop does not use these
// chunks, because no work is inside the gate.
func (c *context) copyAll(list []transfer, in bool) error {
	v := c.virtual
	for i := range v.streams {
		if v.streams[i] == 0 {
			s, err := c.newStream(worker.StreamNonBlocking, 0)
			if err != nil {
				return err
			}
			v.streams[i] = s
		}
	}
	var parts []transfer
	for _, t := range list {
		for at := 0; at < len(t.host); at += chunkSize {
			parts = append(parts, transfer{t.address + uint64(at), t.host[at:min(at+chunkSize, len(t.host))]})
		}
	}
	for i := range len(parts) + len(v.streams) {
		k, stream := c.staging[i%len(v.streams)], v.streams[i%len(v.streams)]
		if i >= len(v.streams) { // the chunk's last use is over
			if err := c.call(cuStreamSynchronize, stream); err != nil {
				return err
			}
			if !in {
				copy(parts[i-len(v.streams)].host, k.bytes)
			}
		}
		if i >= len(parts) {
			continue
		}
		if c.quitting() {
			for _, s := range v.streams {
				_ = c.call(cuStreamSynchronize, s)
			}
			return abi.ErrInvalidContext
		}
		t := parts[i]
		var err error
		if in {
			copy(k.bytes, t.host)
			err = c.call(cuMemcpyHtoDAsync, uintptr(t.address), k.address, uintptr(len(t.host)), stream)
		} else {
			err = c.call(cuMemcpyDtoHAsync, k.address, uintptr(t.address), uintptr(len(t.host)), stream)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
