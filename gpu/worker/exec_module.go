package worker

import (
	"bytes"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func (s *Session) moduleLoad(c *command) error {
	a := abi.DecodeModuleLoad(c.argBytes)
	if err := s.chunksOf(c, a.ImageRegion, a.ImageOff, a.ImageLen); err != nil {
		return err
	}
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if a.ImageLen > abi.MaxModuleImage {
		return abi.ErrInvalidImage
	}
	shared, _, err := s.buffer(a.ImageRegion, a.ImageOff, a.ImageLen)
	if err != nil {
		return err
	}
	out, outRegion, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	if err := s.handles.free(a.Module, 1); err != nil {
		return err
	}
	image := bytes.Clone(shared) // the guest can no longer change it
	m, functions, info, err := ctx.driver.ModuleLoad(image, ModuleOptions{OptLevel: a.OptLevel, MaxRegisters: a.MaxRegisters})
	if err != nil {
		c.value0 = uint64(copy(out, cutLogs(info, len(out))))
		return err
	}
	l := &loaded{ctx: ctx, module: m, functions: functions, info: info, args: a, out: out}
	for _, g := range info.Globals {
		l.globals = satAdd(l.globals, Accounted(min(g.Size, 1<<62)))
	}
	if l.globals == 0 {
		return s.moduleLoaded(c, l, nil)
	}
	if outRegion != nil {
		outRegion.acquire()
	}
	asked := s.reserve(c, l.globals, func(c *command, err error) error {
		if outRegion != nil {
			defer outRegion.release()
		}
		return s.moduleLoaded(c, l, err)
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		if outRegion != nil {
			outRegion.release()
		}
		_ = ctx.driver.ModuleUnload(m)
	}
	return asked
}

// loaded is a module that the driver has and the guest does not have yet.
type loaded struct {
	ctx       *contextObject
	module    Module
	functions []Function
	info      abi.ModuleInfo
	globals   uint64 // bytes
	args      abi.ModuleLoad
	out       []byte
}

// moduleLoaded enters the module into the table, or unloads it again. reserved
// is the host's answer for the globals' memory.
func (s *Session) moduleLoaded(c *command, l *loaded, reserved error) error {
	if l.ctx.dead { // and with it the driver's context, or soon
		if reserved == nil && l.globals > 0 {
			s.unreserve(l.globals)
		}
		return abi.ErrInvalidContext
	}
	err := reserved
	if err == nil {
		err = s.enterModule(c, l)
	}
	if err != nil {
		_ = l.ctx.driver.ModuleUnload(l.module)
		if reserved == nil && l.globals > 0 {
			s.unreserve(l.globals)
		}
		return err
	}
	l.ctx.held += l.globals
	return nil
}

func (s *Session) enterModule(c *command, l *loaded) error {
	a, n := l.args, uint64(len(l.functions))
	if err := s.handles.free(a.Module, 1); err != nil {
		return err
	}
	if n > 0 {
		if err := s.handles.free(a.FirstFunction, len(l.functions)); err != nil {
			return err
		}
		if a.Module-a.FirstFunction < n {
			return abi.ErrInvalidHandle // the module's own handle is among them
		}
	}
	if err := s.handles.room(len(l.functions) + 1); err != nil {
		return err
	}
	if err := c.write(l.out, l.info.Append(nil)); err != nil {
		return err
	}
	m := &moduleObject{ctx: l.ctx, module: l.module, held: l.globals}
	for i, f := range l.functions {
		h := a.FirstFunction + uint64(i)
		m.functions = append(m.functions, h)
		s.handles.add(h, l.ctx, &functionObject{l.ctx, f})
	}
	s.handles.add(a.Module, l.ctx, m)
	return nil
}

// cutLogs encodes the record of a failed load with logs cut to fit n bytes.
func cutLogs(info abi.ModuleInfo, n int) []byte {
	info = abi.ModuleInfo{InfoLog: info.InfoLog, ErrorLog: info.ErrorLog}
	b := info.Append(nil)
	if over := len(b) - n; over > 0 {
		info.InfoLog = cut(info.InfoLog, over)
		b = info.Append(nil)
	}
	if over := len(b) - n; over > 0 {
		info.ErrorLog = cut(info.ErrorLog, over)
		b = info.Append(nil)
	}
	if len(b) > n {
		return nil
	}
	return b
}

// cut takes n bytes and a little more off the end of s, at a character's edge.
func cut(s string, n int) string {
	return strings.ToValidUTF8(s[:max(0, len(s)-n-3)], "")
}

func satAdd(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

func (s *Session) moduleUnload(c *command) error {
	h := abi.DecodeModuleUnload(c.argBytes).Module
	m, err := lookup[*moduleObject](&s.handles, h)
	if err != nil {
		return err
	}
	c.ctx = m.ctx
	if err := m.ctx.driver.ModuleUnload(m.module); err != nil {
		return err
	}
	for _, f := range m.functions {
		s.handles.remove(f, m.ctx)
	}
	s.handles.remove(h, m.ctx)
	s.release(m.ctx, m.held)
	return nil
}

func (s *Session) function(c *command, handle uint64) (*functionObject, error) {
	f, err := lookup[*functionObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return f, c.use(f.ctx)
}

func (s *Session) funcSetAttribute(c *command) error {
	a := abi.DecodeFuncSetAttribute(c.argBytes)
	f, err := s.function(c, a.Function)
	if err != nil {
		return err
	}
	return f.ctx.driver.FuncSetAttribute(f.function, a.Attribute, a.Value)
}

func (s *Session) occupancy(c *command) error {
	a := abi.DecodeOccupancy(c.argBytes)
	f, err := s.function(c, a.Function)
	if err != nil {
		return err
	}
	n, err := f.ctx.driver.Occupancy(f.function, a.BlockSize, a.DynamicShared)
	c.value0 = uint64(n)
	return err
}
