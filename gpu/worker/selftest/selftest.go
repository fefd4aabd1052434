// Package selftest uses a device like a guest's program, step by step, and reports the
// step that fails: for basalt-gpud doctor, which runs it in a worker's confinement.
package selftest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// kernel adds one to each of 1024 words.
const kernel = `.version 6.0
.target sm_50
.address_size 64
.visible .entry increment(.param .u64 p)
{
	.reg .b32 %r<4>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2;
	ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;
	ret;
}
`

const (
	words    = 1024
	patience = 30 * time.Second
)

// Step is a step of the test; Name describes what worked when Err is nil.
type Step struct {
	Name string
	Err  error
}

// open is a gate that always admits work.
type open struct{}

func (open) Enter() error         { return nil }
func (open) Expired() bool        { return false }
func (open) Leave(uint64, uint64) {}

// run is a test in progress.
type run struct {
	driver   worker.Driver
	window   *worker.Window
	ctx      worker.Context
	memory   uint64
	function worker.Function
	content  []byte
}

// Run calls report at the end of each step. After a step that fails, the steps that need
// it are skipped.
func Run(d worker.Driver, report func(Step)) {
	r := &run{driver: d, content: make([]byte, 4*words)}
	for i := range words {
		binary.LittleEndian.PutUint32(r.content[4*i:], uint32(i))
	}
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"a context in an address window", r.context},
		{"memory in the window, copied to and from", r.copies},
		{"a module is compiled from PTX", r.module},
		{"a kernel runs", r.launch},
		{"memory leaves the device and comes back", r.evict},
		{"the device reaches host memory at its address", r.host},
	} {
		err := s.run()
		report(Step{s.name, err})
		if err != nil {
			return // the next would fail for the same reason, or wait for ever
		}
	}
	report(Step{"the context ends", r.ctx.Destroy()})
}

func (r *run) context() (err error) {
	for _, w := range abi.Windows() {
		if r.window, err = worker.ReserveWindow(w); err == nil {
			break
		}
	}
	if err == nil {
		r.ctx, err = r.driver.NewContext(0, open{}, r.window)
	}
	return err
}

func (r *run) copies() (err error) {
	if r.memory, err = r.ctx.MemAlloc(uint64(len(r.content))); err != nil {
		return err
	}
	if r.driver.Evicts() && !r.window.Contains(r.memory, uint64(len(r.content))) {
		return fmt.Errorf("memory is at %#x, outside of %v", r.memory, r.window.Window)
	}
	if err := r.wait(func(done func(error)) error { return r.ctx.CopyHtoD(nil, r.memory, r.content, done) }); err != nil {
		return err
	}
	return r.compare()
}

func (r *run) module() error {
	_, functions, info, err := r.ctx.ModuleLoad([]byte(kernel), worker.ModuleOptions{OptLevel: 4})
	if err == nil && len(functions) == 1 {
		r.function = functions[0]
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%d functions, want 1", len(functions))
	}
	return errors.Join(err, logError(info.ErrorLog))
}

func logError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (r *run) launch() error {
	l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{words, 1, 1}, Params: binary.LittleEndian.AppendUint64(nil, r.memory)}
	if err := r.wait(func(done func(error)) error { return r.ctx.Launch(nil, r.function, l, done) }); err != nil {
		return err
	}
	for i := range words {
		binary.LittleEndian.PutUint32(r.content[4*i:], uint32(i+1))
	}
	return r.compare()
}

func (r *run) evict() error {
	if !r.driver.Evicts() {
		return nil
	}
	if moved, err := r.ctx.Evict(uint64(len(r.content))); err != nil || moved == 0 {
		return errors.Join(err, fmt.Errorf("%d bytes left", moved))
	}
	if err := r.ctx.Restore(); err != nil {
		return err
	}
	return r.compare()
}

// reachesHost is CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY.
const reachesHost = 19

func (r *run) host() error {
	if a := r.driver.Info().Attributes; len(a) <= reachesHost || a[reachesHost] == 0 {
		return nil
	}
	at := r.window.Host().Base
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(len(r.content)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_FIXED, ^uintptr(0), 0); errno != 0 {
		return fmt.Errorf("map memory at %#x: %w", at, errno)
	}
	memory := bytesAt(at, len(r.content))
	if err := r.ctx.HostRegister(at, memory); err != nil {
		return err
	}
	if err := r.wait(func(done func(error)) error { return r.ctx.CopyDtoH(nil, memory, r.memory, done) }); err != nil {
		return err
	}
	if !bytes.Equal(memory, r.content) {
		return errors.New("what was copied there is not what was sent")
	}
	return r.wait(func(done func(error)) error { return r.ctx.HostUnregister(at, func() { done(nil) }) })
}

// compare reads the memory back and compares it with the expected content.
func (r *run) compare() error {
	got := make([]byte, len(r.content))
	if err := r.wait(func(done func(error)) error { return r.ctx.CopyDtoH(nil, got, r.memory, done) }); err != nil {
		return err
	}
	for i := range words {
		if g, w := binary.LittleEndian.Uint32(got[4*i:]), binary.LittleEndian.Uint32(r.content[4*i:]); g != w {
			return fmt.Errorf("word %d is %d, want %d", i, g, w)
		}
	}
	return nil
}

// wait starts an operation and waits for its end.
func (r *run) wait(start func(done func(error)) error) error {
	ended := make(chan error, 1)
	if err := start(func(err error) { ended <- err }); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return fmt.Errorf("not done within %v", patience)
	}
}
