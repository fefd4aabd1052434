package worker

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// moduleLoad has the driver compile the image away from the issuer: other
// streams and threads go on meanwhile.
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
	l := &loading{ctx: ctx, args: a}
	var regions [2]*region
	if l.image, regions[0], err = s.buffer(a.ImageRegion, a.ImageOff, a.ImageLen); err != nil {
		return err
	}
	if l.out, regions[1], err = s.buffer(a.OutRegion, a.OutOff, a.OutLen); err != nil {
		return err
	}
	if err := s.handles.free(a.Module, 1); err != nil {
		return err
	}
	l.begin(regions)
	asked := s.ask(c, func() error { return s.compile(l) }, func(c *command, err error) error { return s.compiled(c, l, err) })
	if asked != errLater { //nolint:errorlint // ask returns it bare
		s.loadOver(l)
	}
	return asked
}

// loading is a module on its way to the guest. The issuer owns it but for the
// time of compile.
type loading struct {
	ctx     *contextObject
	args    abi.ModuleLoad
	image   []byte // shared with the guest
	out     []byte // the same
	regions [2]*region

	module    Module
	functions []Function
	info      abi.ModuleInfo
	globals   uint64 // bytes
}

// begin keeps regions and context until loadOver.
func (l *loading) begin(regions [2]*region) {
	l.regions = regions
	for _, r := range regions {
		if r != nil {
			r.acquire()
		}
	}
	l.ctx.loads++
}

func (s *Session) loadOver(l *loading) {
	for _, r := range l.regions {
		if r != nil {
			r.release()
		}
	}
	if l.ctx.loads--; l.ctx.loads == 0 && l.ctx.destroy != nil {
		l.ctx.destroy()
	}
}

// compile runs away from the issuer.
func (s *Session) compile(l *loading) (err error) {
	size := uint64(len(l.image))
	if err := s.loads.enter(s.gate.ctx, size); err != nil {
		return err
	}
	defer s.loads.leave(size)
	var image []byte // the guest can no longer change it
	s.guard(func() { image = append(make([]byte, 0, size), l.image...) })
	if image == nil {
		return abi.ErrUnavailable
	}
	l.module, l.functions, l.info, err = l.ctx.driver.ModuleLoad(image, ModuleOptions{OptLevel: l.args.OptLevel, MaxRegisters: l.args.MaxRegisters})
	return err
}

// compiled reserves memory for the module's variables.
func (s *Session) compiled(c *command, l *loading, err error) error {
	if err != nil {
		c.value0 = uint64(copy(l.out, cutLogs(l.info, len(l.out))))
		s.loadOver(l)
		return err
	}
	for _, g := range l.info.Globals {
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

// moduleLoaded enters the module into the table, or unloads it again. reserved
// is the host's answer for the globals' memory.
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
		s.handles.add(h, l.ctx, &functionObject{l.ctx, f})
	}
	s.handles.add(a.Module, l.ctx, m)
	s.logRefused(l.info)
	return nil
}

// maxRefusals is of how many modules of a session the log says which kernels the
// device cannot run: a guest may load as many as it likes.
const maxRefusals = 16

func (s *Session) logRefused(info abi.ModuleInfo) {
	for _, f := range info.Functions {
		if f.Refused == "" {
			continue
		}
		if s.refusals++; s.refusals <= maxRefusals {
			s.log.Info("module with kernels that the device cannot run", "why", cut(info.ErrorLog, max(0, len(info.ErrorLog)-maxRefusalText)))
		}
		return
	}
}

// maxRefusalText is how many bytes of a module's error log go into ours.
const maxRefusalText = 2048

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
