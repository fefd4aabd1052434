package cephtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// processes are daemons that are killed when the test ends.
type processes struct {
	logs string

	mu   sync.Mutex
	live map[string]*process
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Run implements deploy.Daemons.
func (p *processes) Run(ctx context.Context, name string, argv []string) error {
	if running, err := p.Running(ctx, name); err != nil || running {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(p.logs, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	// It is killed when this process ends in any way.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return err
	}
	d := &process{cmd, make(chan struct{})}
	p.live[name] = d
	go func() { _ = cmd.Wait(); close(d.done) }()
	return nil
}

// spawner runs functions on a thread that never ends: a child with Pdeathsig
// is killed when the thread that started it ends (prctl(2)).
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Running implements deploy.Daemons.
func (p *processes) Running(_ context.Context, name string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.live[name]
	if d == nil {
		return false, nil
	}
	select {
	case <-d.done:
		delete(p.live, name)
		return false, nil
	default:
		return true, nil
	}
}

// Stop implements deploy.Daemons.
func (p *processes) Stop(ctx context.Context, name string) error {
	return p.signal(ctx, name, syscall.SIGTERM)
}

// signal sends a signal that ends the daemon, and waits until it has ended.
func (p *processes) signal(ctx context.Context, name string, sig syscall.Signal) error {
	p.mu.Lock()
	d := p.live[name]
	p.mu.Unlock()
	if d == nil {
		return nil
	}
	if err := d.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", name, ctx.Err())
	}
}

// end kills all daemons.
func (p *processes) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.live {
		_ = d.cmd.Process.Kill()
	}
	for _, d := range p.live {
		<-d.done
	}
	p.live = map[string]*process{}
}
