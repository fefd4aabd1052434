package fence

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxConns = 16
	idleConn = time.Minute
	sendWait = 5 * time.Second
	// diskWait is longer than clients wait: it only frees their connections.
	diskWait = 2 * slow
)

// listen listens on the socket, which only root may open. An existing socket is an
// ended process's: the lock on the state has been taken before.
func listen(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// serve accepts connections until the listener is closed, and returns when the last
// connection has ended.
func (d *Daemon) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxConns)
	for {
		conn, err := d.ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil {
			d.o.Log.Error("accept a connection failed", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(Scan): // for example out of descriptors
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			d.connection(ctx, conn)
		})
	}
}

func (d *Daemon) connection(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	if !trusted(conn) {
		d.o.Log.Warn("refused connection of a user other than root")
		return
	}
	in := bufio.NewScanner(conn)
	in.Buffer(make([]byte, 4096), maxLine)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(idleConn))
		if !in.Scan() {
			return
		}
		r, err := DecodeRequest(in.Bytes())
		reply := Reply{V: version}
		if err != nil {
			reply.Error = err.Error()
		} else {
			c := call{r, make(chan Reply, 1)}
			select {
			case d.calls <- c:
			case <-ctx.Done():
				return
			}
			select {
			case reply = <-c.reply:
			case <-time.After(diskWait):
				reply.Error = "done, but the disk with the state file does not respond"
			case <-ctx.Done():
				return
			}
		}
		b, err := json.Marshal(reply)
		if err != nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(sendWait))
		if _, err := conn.Write(append(b, '\n')); err != nil {
			return
		}
	}
}

// trusted reports whether the peer is root, or, for tests, the user of this
// process.
func trusted(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return false
	}
	return cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
}
