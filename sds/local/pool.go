package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

const (
	markerName = "pool.json"
	locksName  = "locks"
	probeTime  = 10 * time.Second
)

// marker is a file in the root of a shared pool. A mount point without its
// mount is an empty directory: without the marker it is not a pool.
type marker struct {
	Version int    `json:"version"` // 1
	ID      string `json:"id"`
}

// openPool returns the ID of the pool in the directory; an empty directory
// becomes a new pool, unless this node remembers one.
func openPool(opt Options) (string, error) {
	known, err := remembered(opt.Remember)
	if err != nil {
		return "", err
	}
	if err := checkMarker(opt.Dir, known); err != nil {
		return "", err
	}
	for range 3 { // another node may be creating it at the same time
		id, err := readMarker(opt.Dir)
		switch {
		case err == nil:
			return id, remember(opt.Remember, known, id)
		case !errors.Is(err, fs.ErrNotExist):
			return "", explain(err)
		}
		empty, err := isEmpty(opt.Dir)
		if err != nil {
			return "", explain(err)
		}
		if !empty {
			if _, err := readMarker(opt.Dir); err == nil {
				continue // it was created meanwhile
			}
			return "", api.Errorf(api.CodeState, "%s is not empty and not a storage pool", opt.Dir).
				WithHint("use an empty directory, or one that contains a pool")
		}
		if err := makeMarker(opt.Dir); err != nil {
			return "", explain(err)
		}
	}
	return "", api.Errorf(api.CodeUnavailable, "the storage pool in %s is not stable: it keeps appearing and disappearing", opt.Dir)
}

// checkMarker returns an error if the directory does not contain the known
// pool.
func checkMarker(dir, known string) error {
	id, err := readMarker(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known == "":
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return unavailable(dir, "the directory does not exist", err)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return unavailable(dir, "it does not contain pool "+known, nil)
	case err != nil:
		return unavailable(dir, "it is not readable", err)
	case known != "" && id != known:
		return unavailable(dir, "it contains pool "+id+", want "+known, nil)
	}
	return nil
}

func unavailable(dir, why string, cause error) error {
	e := api.Errorf(api.CodeUnavailable, "the shared storage pool in %s is not available: %s", dir, why).
		WithHint("check that the directory is mounted on this node")
	if cause == nil {
		return e
	}
	return errors.Join(e, cause)
}

func readMarker(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, markerName))
	if err != nil {
		return "", err
	}
	var m marker
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("%s in %s: %w", markerName, dir, err)
	}
	if m.Version != 1 || m.ID == "" {
		return "", api.Errorf(api.CodeState, "the storage pool in %s has unsupported version %d", dir, m.Version).WithHint("upgrade this node")
	}
	return m.ID, nil
}

// makeMarker creates one complete marker, even if several nodes do so at once.
func makeMarker(dir string) error {
	tmp, err := os.MkdirTemp(dir, ".pool-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, markerName)
	if err := writeMeta(file, marker{Version: 1, ID: "pool-" + strings.ToLower(rand.Text())}); err != nil {
		return err
	}
	if err := os.Link(file, filepath.Join(dir, markerName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.Sync(dir)
}

// isEmpty reports whether the directory contains only what file systems and
// incomplete pools leave.
func isEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "lost+found" && !strings.HasPrefix(e.Name(), ".pool-") && !strings.HasPrefix(e.Name(), ".nfs") {
			return false, err
		}
	}
	return true, err
}

// remembered returns the pool that this node had at its last start.
func remembered(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}

func remember(file, known, id string) error {
	if file == "" || known == id {
		return nil
	}
	return atomicfile.WriteFile(file, []byte(id+"\n"), 0o600)
}

// PoolID implements sds.Driver.
func (s *Store) PoolID() string { return s.pool }

// checkPool starts every method: the pool must be present. A call to a server
// that does not respond blocks regardless of contexts: one goroutine makes the
// call for all, and they wait for a limited time only.
func (s *Store) checkPool(ctx context.Context) error {
	if err := ctx.Err(); err != nil || s.pool == "" && s.opt.Present == nil {
		return err
	}
	if s.pool == "" {
		return s.probe.run(ctx, s.opt.Present)
	}
	return s.probe.run(ctx, func() error { return checkMarker(s.opt.Dir, s.pool) })
}

// probe runs one check at a time. The zero value is ready to use.
type probe struct {
	mu  sync.Mutex
	now *check // nil: none in progress
}

type check struct {
	done chan struct{}
	err  error // valid when done is closed
}

func (p *probe) run(ctx context.Context, at func() error) error {
	p.mu.Lock()
	l := p.now
	if l == nil {
		l = &check{done: make(chan struct{})}
		p.now = l
		go func() {
			l.err = at()
			p.mu.Lock()
			p.now = nil
			p.mu.Unlock()
			close(l.done)
		}()
	}
	p.mu.Unlock()
	late := time.NewTimer(probeTime)
	defer late.Stop()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return api.Errorf(api.CodeUnavailable, "the shared storage has not responded for %v", probeTime).
			WithHint("check its server and the network to it")
	}
}

// isUnavailable reports whether err is one of a file system that is not
// available.
func isUnavailable(err error) bool {
	var network *net.OpError // from an image's source, not the file system
	if errors.As(err, &network) {
		return false
	}
	for _, e := range []error{unix.ESTALE, unix.ENOTCONN, unix.ETIMEDOUT, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.EIO, unix.ENODEV} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
