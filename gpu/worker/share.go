package worker

import (
	"crypto/rand"
	"encoding/binary"
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// sharing is what the session shares with other sessions of its vGPU: its own memory
// that they may open, and their memory that it has opened (decision 46). The host
// counts it. The issuer owns all of it.
type sharing struct {
	made   map[ShareToken]*madeShare
	opened map[uint64]*openedShare // by address
	uses   map[ShareToken]int      // uses of opened memory, including those in progress
}

// madeShare is an allocation that others may open.
type madeShare struct {
	token  ShareToken
	bytes  uint64 // accounted
	moved  bool   // the host and the driver have shared it
	ready  bool   // the issuer has been told of that
	failed error  // why no one can open it
}

// openedShare is another session's memory, opened in a context.
type openedShare struct {
	token         ShareToken
	ctx           *contextObject
	address, size uint64
	opens         int
	leaving       bool
}

// maxShares bounds what a session shares and has opened, together; gpud has the
// same limit.
const maxShares = 128

func newSharing() sharing {
	return sharing{made: map[ShareToken]*madeShare{}, opened: map[uint64]*openedShare{}, uses: map[ShareToken]int{}}
}

func (s *sharing) room() error {
	if len(s.made)+len(s.uses) >= maxShares {
		return abi.ErrOutOfMemory
	}
	return nil
}

// find returns the memory that a context has opened by a token, or nil.
func (s *sharing) find(ctx *contextObject, token ShareToken) *openedShare {
	for _, o := range s.opened {
		if o.ctx == ctx && o.token == token && !o.leaving {
			return o
		}
	}
	return nil
}

// newShareToken returns a token of 128 random bits.
func newShareToken() ShareToken {
	var b [16]byte
	rand.Read(b[:])
	return ShareToken{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// memShare handles MemShare. Shared memory no longer counts as memory of the context.
func (s *Session) memShare(c *command) error {
	address := abi.DecodeMemShare(c.argBytes).Address
	a, err := s.allocation(c, address)
	if err != nil {
		return err
	}
	driver, ok := a.ctx.driver.(Sharer)
	switch {
	case !ok:
		return abi.ErrNotSupported
	case a.shared != nil && !a.shared.ready:
		return abi.ErrUnavailable // another thread is sharing it
	case a.shared != nil:
		c.value0, c.value1 = a.shared.token[0], a.shared.token[1]
		return a.shared.failed
	}
	if err := s.sharing.room(); err != nil {
		return err
	}
	m, ctx := &madeShare{token: newShareToken(), bytes: Accounted(a.size)}, a.ctx
	asked := s.ask(c, func() error { return s.share(driver, m, address, a.size) }, func(c *command, err error) error {
		a, there := s.handles.allocs[address]
		return s.haveShared(c, ctx, m, there && a.shared == m, func() {
			a.shared = nil
			s.handles.allocs[address] = a
		}, err)
	})
	if errors.Is(asked, errLater) {
		a.shared = m
		s.handles.allocs[address] = a
		s.sharing.made[m.token] = m
		a.ctx.held -= m.bytes
	}
	return asked
}

// share has the host and the driver share an allocation. It may wait for the device.
// Once the driver has shared it the memory stays shared, whether or not others can
// open it.
func (s *Session) share(driver Sharer, m *madeShare, address, size uint64) error {
	if err := s.host.Share(m.token, size); err != nil {
		return err
	}
	var at Shared
	err := s.gate.alone(func() (err error) {
		at, err = driver.Share(address)
		return err
	})
	if err != nil {
		s.host.Unshare(m.token, true)
		return err
	}
	m.moved = true
	return errors.Join(s.host.Publish(m.token, at), at.File.Close())
}

// haveShared handles the result on the issuer. there means that the memory was
// not destroyed in the meantime; back reverts the sharing.
func (s *Session) haveShared(c *command, ctx *contextObject, m *madeShare, there bool, back func(), err error) error {
	if !m.moved {
		s.notShared(ctx, m)
		if there {
			back()
		}
		return err
	}
	m.ready, m.failed = true, err
	if !there {
		s.unshare(m)
		return abi.ErrInvalidContext
	}
	c.value0, c.value1 = m.token[0], m.token[1]
	return err
}

// notShared turns memory back into the context's own.
func (s *Session) notShared(ctx *contextObject, m *madeShare) {
	delete(s.sharing.made, m.token)
	if _, lives := s.contexts[ctx]; lives {
		ctx.held += m.bytes
	} else {
		s.unreserve(m.bytes)
	}
}

// unshare ends the sharing of memory that the session has shared and freed. Others may
// still have it.
func (s *Session) unshare(m *madeShare) {
	delete(s.sharing.made, m.token)
	s.host.Unshare(m.token, false)
}

// memOpen handles MemOpen.
func (s *Session) memOpen(c *command) error {
	a := abi.DecodeMemOpen(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	driver, ok := ctx.driver.(Sharer)
	if !ok {
		return abi.ErrNotSupported
	}
	token := ShareToken{a.Token0, a.Token1}
	if s.sharing.made[token] != nil {
		return abi.ErrInvalidContext
	}
	if again := s.openAgain(c, ctx, token); again {
		return nil
	}
	return s.openShared(c, token, func(c *command, m Shared) error { return s.haveOpened(c, driver, ctx, token, m) })
}

// openShared asks the host for memory that another session shares, and passes it to
// have on the issuer. If have returns an error the use is released.
func (s *Session) openShared(c *command, token ShareToken, have func(c *command, m Shared) error) error {
	if s.sharing.uses[token] == 0 {
		if err := s.sharing.room(); err != nil {
			return err
		}
	}
	var m Shared
	asked := s.ask(c, func() (err error) {
		m, err = s.host.OpenShared(token)
		return err
	}, func(c *command, err error) error {
		if err == nil {
			defer m.File.Close()
			err = have(c, m)
		}
		if err != nil {
			s.unuse(token)
		}
		return err
	})
	if errors.Is(asked, errLater) {
		s.sharing.uses[token]++
	}
	return asked
}

// openAgain counts another open of memory that the context has opened already; it
// returns false if it has not.
func (s *Session) openAgain(c *command, ctx *contextObject, token ShareToken) bool {
	o := s.sharing.find(ctx, token)
	if o == nil || o.opens == 1<<30 {
		return false
	}
	o.opens++
	c.value0, c.value1 = o.address, o.size
	return true
}

// haveOpened maps the memory in its context, on the issuer. If it returns an error, the
// use is released.
func (s *Session) haveOpened(c *command, driver Sharer, ctx *contextObject, token ShareToken, m Shared) error {
	if ctx.dead || s.releasing {
		return abi.ErrInvalidContext
	}
	if s.openAgain(c, ctx, token) { // another thread was faster
		s.unuse(token)
		return nil
	}
	if m.Size == 0 || m.Size > abi.MaxWindow {
		return abi.ErrInvalidValue
	}
	address, err := s.window.Allocate((m.Size+abi.MapGranule-1)&^(abi.MapGranule-1), abi.MapGranule)
	if err != nil {
		return err
	}
	if err := driver.OpenShared(address, m); err != nil {
		return errors.Join(err, s.window.Free(address))
	}
	s.sharing.opened[address] = &openedShare{token: token, ctx: ctx, address: address, size: m.Size, opens: 1}
	c.value0, c.value1 = address, m.Size
	return nil
}

// unuse releases one use of another session's memory.
func (s *Session) unuse(token ShareToken) {
	if s.sharing.uses[token]--; s.sharing.uses[token] > 0 {
		return
	}
	delete(s.sharing.uses, token)
	s.host.Unshare(token, false)
}

// memClose handles MemClose. Like an unmapping, it delays the session's end.
func (s *Session) memClose(c *command) error {
	address := abi.DecodeMemClose(c.argBytes).Address
	o := s.sharing.opened[address]
	if o == nil || o.leaving || o.ctx.dead {
		return abi.ErrInvalidValue
	}
	if err := c.use(o.ctx); err != nil {
		return err
	}
	if o.opens > 1 {
		o.opens--
		c.value0 = uint64(o.opens)
		return nil
	}
	if s.requests >= maxRequests {
		return abi.ErrUnavailable
	}
	driver, ok := o.ctx.driver.(Sharer)
	if !ok {
		return abi.ErrNotSupported
	}
	later := *c
	later.argBytes, later.inlineBytes = nil, nil
	s.requests++
	o.leaving = true
	err := driver.CloseShared(address, func() {
		s.post(func() {
			s.requests--
			s.dropOpened(o)
			if s.shared != nil {
				s.finish(&later, nil)
			}
		})
	})
	if err != nil {
		s.requests--
		o.leaving = false
		return err
	}
	return errLater
}

// dropOpened removes opened memory that no work can use any more.
func (s *Session) dropOpened(o *openedShare) {
	if s.sharing.opened[o.address] != o {
		return // its context was destroyed
	}
	delete(s.sharing.opened, o.address)
	if err := s.window.Free(o.address); err != nil {
		s.log.Error("release address of shared memory failed", "error", err)
	}
	s.unuse(o.token)
}

// sharesOf returns what a context that is being destroyed shares. Sharing that is still
// in progress is ended when it completes.
func (s *Session) sharesOf(ctx *contextObject) (list []*madeShare) {
	for address := range ctx.allocs {
		if m := s.handles.allocs[address].shared; m != nil && m.ready {
			list = append(list, m)
		}
	}
	for handle := range ctx.handles {
		if o, ok := s.handles.objects[handle].(*memoryObject); ok && o.shared != nil && o.shared.ready {
			list = append(list, o.shared)
		}
	}
	return list
}

// importsOf returns the tokens of memory that a context which is being destroyed has imported
// from other processes.
func (s *Session) importsOf(ctx *contextObject) (list []ShareToken) {
	for handle := range ctx.handles {
		if o, ok := s.handles.objects[handle].(*memoryObject); ok && o.from != nil {
			list = append(list, *o.from)
		}
	}
	return list
}

// dropSharing ends the sharing of a context that was destroyed, and closes what
// it had opened.
func (s *Session) dropSharing(ctx *contextObject) {
	for _, m := range ctx.shares {
		s.unshare(m)
	}
	for _, e := range ctx.events {
		s.dropEvent(e)
	}
	for _, token := range ctx.imports {
		s.unuse(token)
	}
	ctx.shares, ctx.events, ctx.imports = nil, nil, nil
	for _, o := range s.sharing.opened {
		if o.ctx == ctx {
			s.dropOpened(o)
		}
	}
}
