package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Sockets of a migration. libvirt passes the same path to both nodes: on the
// target QEMU listens on it, on the source this driver does, and passes
// connections through the tunnel to the target's socket.

// socket returns the path of a stream's socket for libvirt and QEMU, or, if
// here is set, for this process.
func (d *Driver) socket(id api.InstanceID, s hypervisor.Stream, here bool) string {
	dir := d.opt.MigrationDir
	if here {
		dir = d.opt.MigrationDirHere
	}
	return filepath.Join(dir, string(id), string(s))
}

// socketDir creates the instance's directory, empty, in which QEMU may create
// its sockets.
func (d *Driver) socketDir(id api.InstanceID) (string, error) {
	dir := filepath.Join(d.opt.MigrationDirHere, string(id))
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	// Other users may traverse the directory, but not list it.
	if err := os.MkdirAll(d.opt.MigrationDirHere, 0o711); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, d.giveToQEMU(dir)
}

// relay passes connections to a source's sockets through the tunnel.
type relay struct {
	cancel    context.CancelCauseFunc // of the migration: a stream could not be opened
	tunnel    hypervisor.Tunnel
	dir       string
	listeners []net.Listener
	room      chan struct{}
	wg        sync.WaitGroup
	stop      context.CancelFunc
}

// relay listens on the sockets of the instance's streams until close is
// called.
func (d *Driver) relay(id api.InstanceID, tunnel hypervisor.Tunnel, failed context.CancelCauseFunc) (*relay, error) {
	dir, err := d.socketDir(id)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &relay{cancel: failed, tunnel: tunnel, dir: dir, room: make(chan struct{}, hypervisor.MaxStreams), stop: stop}
	for _, s := range []hypervisor.Stream{hypervisor.StreamLibvirt, hypervisor.StreamMemory, hypervisor.StreamDisks} {
		path := d.socket(id, s, true)
		l, err := net.Listen("unix", path)
		if err == nil {
			r.listeners = append(r.listeners, l)
			err = errors.Join(os.Chmod(path, 0o600), d.giveToQEMU(path))
		}
		if err != nil {
			r.close()
			return nil, err
		}
		r.wg.Go(func() { r.accept(ctx, l, s) })
	}
	return r, nil
}

func (r *relay) accept(ctx context.Context, l net.Listener, s hypervisor.Stream) {
	for {
		local, err := l.Accept()
		if err != nil {
			return // closed
		}
		select {
		case r.room <- struct{}{}:
		default:
			_ = local.Close()
			continue
		}
		r.wg.Go(func() {
			defer func() { <-r.room }()
			remote, err := r.tunnel.Open(ctx, s)
			if err != nil {
				_ = local.Close()
				r.cancel(errors.Join(api.Errorf(api.CodeUnavailable, "the target is not reachable"), fmt.Errorf("stream %s: %w", s, err)))
				return
			}
			_ = join(ctx, local, remote)
		})
	}
}

// close ends all streams and removes the sockets.
func (r *relay) close() {
	r.stop()
	for _, l := range r.listeners {
		_ = l.Close()
	}
	r.wg.Wait()
	_ = os.RemoveAll(r.dir)
}

// join copies in both directions until both have ended, one has failed or ctx
// ends, and closes both connections.
func join(ctx context.Context, a, b net.Conn) error {
	both := func() { _ = a.Close(); _ = b.Close() }
	stop := context.AfterFunc(ctx, both)
	defer stop()
	defer both()
	results := make(chan error, 2)
	one := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if err == nil && ok {
			err = half.CloseWrite() // the other direction may still have data
		}
		if err != nil || !ok {
			both()
		}
		results <- err
	}
	go one(a, b)
	go one(b, a)
	return cmp.Or(<-results, <-results)
}
