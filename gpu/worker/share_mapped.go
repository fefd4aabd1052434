package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// memExport handles MemExport, which is MemShare for memory that the guest maps.
func (s *Session) memExport(c *command) error {
	handle := abi.DecodeMemExport(c.argBytes).Memory
	o, err := s.memory(c, handle)
	if err != nil {
		return err
	}
	driver, ok := o.driver.(Sharer)
	switch {
	case !ok:
		return abi.ErrNotSupported
	case o.from != nil:
		return abi.ErrInvalidValue // only its creator can share it
	case o.shared != nil && !o.shared.ready:
		return abi.ErrUnavailable // another thread is sharing it
	case o.shared != nil:
		c.value0, c.value1 = o.shared.token[0], o.shared.token[1]
		return o.shared.failed
	}
	if err := s.sharing.room(); err != nil {
		return err
	}
	m := &madeShare{token: newShareToken(), bytes: Accounted(o.size)}
	asked := s.ask(c, func() error { return s.share(driver, m, o.memory, o.size) }, func(c *command, err error) error {
		there := s.handles.objects[handle] == any(o)
		return s.haveShared(c, o.ctx, m, there, func() { o.shared = nil }, err)
	})
	if errors.Is(asked, errLater) {
		o.shared = m
		s.sharing.made[m.token] = m
		o.ctx.held -= m.bytes
	}
	return asked
}

// memImport handles MemImport.
func (s *Session) memImport(c *command) error {
	a := abi.DecodeMemImport(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	driver, ok := ctx.driver.(Sharer)
	token := ShareToken{a.Token0, a.Token1}
	if !ok || s.sharing.made[token] != nil {
		return abi.ErrNotSupported
	}
	if err := s.handles.free(a.Memory, 1); err != nil {
		return err
	}
	return s.openShared(c, token, func(c *command, m Shared) error { return s.haveImported(c, driver, ctx, a.Memory, token, m) })
}

// haveImported stores the memory under its handle, on the issuer.
func (s *Session) haveImported(c *command, driver Sharer, ctx *contextObject, handle uint64, token ShareToken, m Shared) error {
	mapper, ok := ctx.driver.(Mapper)
	if !ok || ctx.dead || s.releasing {
		return abi.ErrInvalidContext
	}
	if err := s.handles.free(handle, 1); err != nil {
		return err
	}
	if _, err := granular(0, m.Size); err != nil {
		return abi.ErrInvalidHandle // it was not exported by MemExport
	}
	memory, err := driver.ImportShared(m)
	if err != nil {
		return err
	}
	s.handles.add(handle, ctx, &memoryObject{ctx: ctx, driver: mapper, memory: memory, size: m.Size, from: &token})
	c.value0 = m.Size
	return nil
}
