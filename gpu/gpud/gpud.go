package gpud

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// Server is a gpud.
type Server struct {
	cfg      Config
	core     *core
	finder   finder
	real     []sched.GPUID // NVIDIA cards in the inventory; belongs to the goroutine that uses finder
	unusable atomic.Pointer[[]wire.UnusableGPU]
	lock     *os.File
	listener *net.UnixListener
	http     *http.Server
}

// New locks the state directory and opens the socket; it serves nothing before
// Run.
func New(cfg Config) (_ *Server, err error) {
	cfg.setDefaults()
	s := &Server{cfg: cfg, core: newCore(cfg), finder: finder{root: "/", open: openNVIDIA, prepare: loadUnifiedMemory}}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.lock, err = lockDir(cfg.StateDir); err != nil {
		return nil, err
	}
	if err := atomicfile.Sweep(time.Now(), cfg.StateDir); err != nil {
		return nil, err
	}
	if err := s.core.load(); err != nil {
		return nil, err
	}
	cards, err := madeCards(cfg, s.core.uuids)
	if err != nil {
		return nil, err
	}
	if !cfg.NoNVIDIA {
		cards = append(cards, s.find(context.Background())...)
	}
	s.logCards(cards)
	s.core.addCards(cards)
	if s.listener, err = Listen(cfg.Socket, cfg.WorkerGroup); err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ConnContext: withPeer,
		ErrorLog: log.New(logWriter{cfg}, "", 0),
	}
	return s, nil
}

// logCards logs cards that are added to the inventory.
func (s *Server) logCards(cards []cardInfo) {
	for _, c := range cards {
		if c.Driver == wire.DriverNull {
			s.cfg.Log.Warn("null GPU configured: it computes nothing and is for benchmarks and tests only", "id", c.ID)
		}
		s.cfg.Log.Info("found GPU", "id", c.ID, "driver", c.Driver, "name", c.Name, "vram", FormatSize(c.VRAM), "uuid", c.UUID)
	}
}

// Run serves until ctx ends. The state is on disk when it returns.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.core.run(ctx) })
	all.Go(func() { s.watchCards(ctx) })
	all.Go(func() {
		<-ctx.Done()
		_ = s.http.Close()
	})
	err := s.http.Serve(s.listener)
	cancel()
	all.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close releases the state directory and the socket. Workers continue; they wait
// for the next gpud.
func (s *Server) Close() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.finder.close()
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Listen creates a unix socket at path, replacing one that a dead process left.
// group, when positive, is the group that may open it besides the owner.
func Listen(path string, group int) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("listen on %s: another process is already listening", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o600)
	if group > 0 {
		mode = 0o660
		err = os.Chown(path, -1, group)
	}
	if err = errors.Join(err, os.Chmod(path, mode)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// logWriter logs net/http's errors.
type logWriter struct{ cfg Config }

func (w logWriter) Write(b []byte) (int, error) {
	w.cfg.Log.Warn("HTTP server error", "message", string(b))
	return len(b), nil
}
