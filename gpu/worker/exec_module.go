package worker

import (
	"cmp"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// moduleLoad has the driver compile the image in another goroutine: other streams
// and threads continue in the meantime.
func (s *Session) moduleLoad(c *command) error {
	return s.startLoad(c, abi.DecodeModuleLoad(c.argBytes), nil, nil)
}

// moduleLoadManaged is moduleLoad with memory of the guest for managed variables.
func (s *Session) moduleLoadManaged(c *command) error {
	a := abi.DecodeModuleLoadManaged(c.argBytes)
	r := s.hostedAt(a.Managed, a.ManagedLen)
	if r == nil || a.Managed%abi.ManagedAlign != 0 || a.Fresh > 1 {
		return abi.ErrInvalidValue
	}
	m := &ManagedMemory{Base: a.Managed, Bytes: r.mapping.Bytes(a.Managed-r.address, a.ManagedLen), Fresh: a.Fresh == 1}
	return s.startLoad(c, abi.ModuleLoad{
		Ctx: a.Ctx, Module: a.Module, FirstFunction: a.FirstFunction, ImageOff: a.ImageOff, ImageLen: a.ImageLen, ImageRegion: a.ImageRegion,
		OutOff: a.OutOff, OutLen: a.OutLen, OutRegion: a.OutRegion, OptLevel: a.OptLevel, MaxRegisters: a.MaxRegisters,
	}, m, r)
}

func (s *Session) startLoad(c *command, a abi.ModuleLoad, managed *ManagedMemory, managedIn *region) error {
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
	l := &loading{ctx: ctx, args: a, managed: managed}
	var in, out *region
	if l.image, in, err = s.buffer(a.ImageRegion, a.ImageOff, a.ImageLen); err != nil {
		return err
	}
	if l.out, out, err = s.buffer(a.OutRegion, a.OutOff, a.OutLen); err != nil {
		return err
	}
	if err := s.handles.free(a.Module, 1); err != nil {
		return err
	}
	l.held = hold(in, out, managedIn)
	ctx.calls++
	asked := s.ask(c, func() error { return s.compile(l) }, func(c *command, err error) error { return s.compiled(c, l, err) })
	if asked != errLater { //nolint:errorlint // ask returns it bare
		s.loadOver(l)
	}
	return asked
}

// loading is a module that is being loaded. The issuer owns it, except while
// compile runs.
type loading struct {
	ctx   *contextObject
	args  abi.ModuleLoad
	image []byte // shared with the guest
	out   []byte // shared with the guest too
	held  heldRegions

	managed *ManagedMemory // in one of the held regions; nil: none

	module    Module
	functions []Function
	info      abi.ModuleInfo
	globals   uint64 // bytes
}

// loadOver releases the regions and the context that were kept for the load.
func (s *Session) loadOver(l *loading) {
	l.held.release()
	l.ctx.callOver()
}

// compile runs in another goroutine than the issuer.
func (s *Session) compile(l *loading) error {
	return s.withImage(l.image, func(image []byte) (err error) {
		l.module, l.functions, l.info, err = l.ctx.driver.ModuleLoad(image, ModuleOptions{
			OptLevel: l.args.OptLevel &^ abi.LoadLazy, MaxRegisters: l.args.MaxRegisters, Managed: l.managed,
			Lazy: l.args.OptLevel&abi.LoadLazy != 0,
		})
		return err
	})
}

// compiled reserves memory for the module's variables.
func (s *Session) compiled(c *command, l *loading, err error) error {
	if err != nil {
		c.value0 = uint64(copy(l.out, cutLogs(l.info, len(l.out))))
		s.loadOver(l)
		return err
	}
	for _, g := range l.info.Globals {
		if l.managed.holds(g.Address) {
			continue // memory that belongs to the guest
		}
		l.globals = satAdd(l.globals, Accounted(min(g.Size, 1<<62)))
	}
	if l.globals == 0 {
		return s.moduleLoaded(c, l, nil)
	}
	asked := s.reserve(c, l.globals, func(c *command, err error) error {
		return s.moduleLoaded(c, l, err)
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		return s.moduleLoaded(c, l, asked)
	}
	return asked
}

// moduleLoaded stores the module in the table, or unloads it again. reserved is
// the host's answer for the memory of the globals.
func (s *Session) moduleLoaded(c *command, l *loading, reserved error) error {
	defer s.loadOver(l)
	err := reserved
	if err == nil && l.ctx.dead {
		err = abi.ErrInvalidContext
	}
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

func (s *Session) enterModule(c *command, l *loading) error {
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
		s.handles.add(h, l.ctx, &functionObject{l.ctx, f, uint64(len(l.image))})
	}
	s.handles.add(a.Module, l.ctx, m)
	s.logRefused(l.info)
	return nil
}

func (m *ManagedMemory) holds(address uint64) bool {
	return m != nil && address >= m.Base && address-m.Base < uint64(len(m.Bytes))
}

// maxRefusals is the number of modules of a session for which the log lists which
// kernels the device cannot run: a guest can load any number of modules.
const maxRefusals = 16

func (s *Session) logRefused(info abi.ModuleInfo) {
	for _, f := range info.Functions {
		if f.Refused == "" {
			continue
		}
		if s.refusals++; s.refusals <= maxRefusals {
			why := cmp.Or(info.ErrorLog, "kernel "+f.Name+": "+f.Refused)
			s.log.Info("module contains kernels that the device cannot run", "why", cut(why, max(0, len(why)-maxRefusalText)))
		}
		return
	}
}

// maxRefusalText is how many bytes of a module's error log are logged.
const maxRefusalText = 2048

// cutLogs encodes the record of a failed load, with the logs truncated so that it
// fits n bytes.
func cutLogs(info abi.ModuleInfo, n int) []byte {
	info = abi.ModuleInfo{Globals: info.Globals, InfoLog: info.InfoLog, ErrorLog: info.ErrorLog}
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

// cut removes n bytes and possibly a few more from the end of s, at a character
// boundary.
func cut(s string, n int) string {
	if n <= 0 {
		return s
	}
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
	for _, r := range m.references {
		s.handles.remove(r, m.ctx)
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

// funcLoad has the driver compile a function in another goroutine. Its memory
// counts like that of the load of its module.
func (s *Session) funcLoad(c *command) error {
	a := abi.DecodeFuncLoad(c.argBytes)
	f, err := s.function(c, a.Function)
	if err != nil {
		return err
	}
	driver, ok := f.ctx.driver.(LazyLoader)
	if !ok {
		return abi.ErrNotSupported
	}
	out, record, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	held := hold(record)
	var info abi.ModuleInfo
	asked := s.ask(c, func() error {
		if err := s.loads.enter(s.gate.ctx, f.image); err != nil {
			return err
		}
		defer s.loads.leave(f.image)
		one, err := driver.FunctionInfo(f.function)
		info.Functions = []abi.FunctionInfo{one}
		return err
	}, func(c *command, err error) error {
		defer held.release()
		if err != nil {
			return err
		}
		s.logRefused(info)
		return c.write(out, info.Append(nil))
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		held.release()
	}
	return asked
}

func (s *Session) funcSetAttribute(c *command) error {
	a := abi.DecodeFuncSetAttribute(c.argBytes)
	f, err := s.function(c, a.Function)
	if err != nil {
		return err
	}
	return f.ctx.driver.FuncSetAttribute(f.function, a.Attribute, a.Value)
}
