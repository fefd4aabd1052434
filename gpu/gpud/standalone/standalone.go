// Package standalone serves carrier (b) on one machine without a cluster: each
// connection to a unix socket becomes one worker on one vGPU.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// VGPU is the id of the only vGPU of a standalone gpud.
const VGPU = "standalone"

// Config configures a Server.
type Config struct {
	Listener   *net.UnixListener // accepts programs; Close closes it
	Worker     string            // path of basalt-worker
	Control    string            // gpud's socket
	MaxWorkers int               // connections at a time; 0: 64
	Sandbox    sandbox.Sandbox   // for the workers
	Log        *slog.Logger
}

// Server starts a worker for each connection.
type Server struct {
	cfg     Config
	workers sync.WaitGroup
	slots   chan struct{}
	silent  *silent
	cache   *os.File // of compiled code, for all workers; nil: none
}

const (
	defaultWorkers = 64
	// endWithin is how long workers may take to exit after SIGTERM.
	endWithin = 3 * time.Second
)

// New returns a Server after checking that the worker program can be started.
func New(cfg Config) (*Server, error) {
	if st, err := os.Stat(cfg.Worker); err != nil {
		return nil, fmt.Errorf("find worker: %w", err)
	} else if st.Mode()&0o111 == 0 || st.IsDir() {
		return nil, fmt.Errorf("worker %s is not an executable file", cfg.Worker)
	}
	if cfg.MaxWorkers <= 0 {
		cfg.MaxWorkers = defaultWorkers
	}
	return &Server{cfg: cfg, slots: make(chan struct{}, cfg.MaxWorkers), silent: newSilent()}, nil
}

// Run accepts connections until ctx ends; then it ends all workers and waits for
// them. token is the vGPU's secret, which is passed to the workers.
func (s *Server) Run(ctx context.Context, token string) error {
	stop := context.AfterFunc(ctx, func() { _ = s.cfg.Listener.Close() })
	defer stop()
	var err error
	if s.cache, err = codecache.Create(); err != nil {
		s.cfg.Log.Warn("programs compile their kernels at each start", "error", err)
	}
	defer func() { _ = s.cache.Close() }()
	defer s.workers.Wait()
	defer s.silent.close()
	for {
		conn, err := s.cfg.Listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			s.cfg.Log.Error("accept connection failed", "error", err) // for example, out of descriptors
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.workers.Go(func() { s.admit(ctx, conn, token) })
	}
}

// admit starts a worker for a connection once it has sent something, if there is
// room.
func (s *Server) admit(ctx context.Context, conn *net.UnixConn, token string) {
	if err := s.silent.await(conn); err != nil {
		s.cfg.Log.Debug("closed connection without hello", "error", err)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		s.serve(ctx, conn, token)
	default:
		s.cfg.Log.Warn("too many concurrent programs, refused connection", "limit", s.cfg.MaxWorkers)
		_ = conn.Close()
	}
}

// Close stops listening.
func (s *Server) Close() error {
	if err := s.cfg.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve runs one worker with the connection as its descriptor 3, the token readable
// from descriptor 4, and the cache as descriptor 5.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn, token string) {
	f, err := conn.File()
	_ = conn.Close() // f is a descriptor of its own
	if err != nil {
		s.cfg.Log.Error("hand over connection failed", "error", err)
		return
	}
	defer f.Close()
	secret, err := wire.PassToken(token)
	if err != nil {
		s.cfg.Log.Error("create token failed", "error", err)
		return
	}
	cmd := exec.CommandContext(ctx, s.cfg.Worker, "--carrier-fd", "3", "--token-fd", "4", "--gpud", s.cfg.Control, "--vgpu", VGPU)
	cmd.ExtraFiles = []*os.File{f, secret}
	if s.cache != nil {
		cmd.Args, cmd.ExtraFiles = append(cmd.Args, "--cache-fd", "5"), append(cmd.ExtraFiles, s.cache)
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = s.cfg.Sandbox.Apply(&syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true})
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	err = start(cmd)
	_, _ = f.Close(), secret.Close() // now only the worker has them
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("worker exited", "error", err)
	}
}
