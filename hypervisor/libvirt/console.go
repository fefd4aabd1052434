package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// console is a connection to the serial port's socket of QEMU. QEMU serves one
// client and lets others wait without a response, so there is one holder.
type console struct {
	net.Conn
	release func()
}

// Read returns io.EOF when QEMU has ended. The kernel returns ECONNRESET if
// QEMU had not read everything that was written.
func (c *console) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, unix.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// Close releases the console.
func (c *console) Close() error {
	c.release()
	return c.Conn.Close()
}

// Console implements hypervisor.Driver.
func (d *Driver) Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	o, err := d.running(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &console{}
	c.release = sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.consoles, id)
	})
	d.mu.Lock()
	_, taken := d.consoles[id]
	if !taken {
		d.consoles[id] = c
	}
	d.mu.Unlock()
	if taken {
		return nil, api.Errorf(api.CodeInUse, "the console of instance %s is in use by another client", id)
	}
	if c.Conn, err = (&net.Dialer{}).DialContext(ctx, "unix", o.SerialSocket); err != nil {
		c.release()
		return nil, fmt.Errorf("open console of instance %s: %w", id, err)
	}
	return c, nil
}

// Screen implements hypervisor.Driver.
func (d *Driver) Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	o, err := d.running(ctx, id)
	if err != nil {
		return nil, err
	}
	if o.VNCSocket == "" {
		return nil, hypervisor.NoScreen(id)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", o.VNCSocket)
	if err != nil {
		return nil, fmt.Errorf("open screen of instance %s: %w", id, err)
	}
	return c, nil
}

// ConsoleLog implements hypervisor.Driver.
func (d *Driver) ConsoleLog(ctx context.Context, id api.InstanceID, limit int64) ([]byte, error) {
	o, err := with(ctx, d, id, func(dom *lv.Domain) (hypervisor.Owned, error) { return d.owned(dom, 0) })
	if err != nil {
		return nil, err
	}
	f, err := openLog(o.SerialLog, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the domain was never started
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tail(f, min(max(limit, 0), hypervisor.MaxConsoleLog))
}

// running returns the values in the XML of a running domain; wrong_state if it
// does not run.
func (d *Driver) running(ctx context.Context, id api.InstanceID) (hypervisor.Owned, error) {
	return with(ctx, d, id, func(dom *lv.Domain) (hypervisor.Owned, error) {
		st, err := active(dom)
		if err != nil {
			return hypervisor.Owned{}, err
		}
		if !st.Active() || st == hypervisor.Incoming {
			return hypervisor.Owned{}, api.Errorf(api.CodeState, "instance %s is not running", id)
		}
		return d.owned(dom, 0)
	})
}

// openLog opens a console log, which must be a plain file.
func openLog(path string, mode int) (*os.File, error) {
	f, err := os.OpenFile(path, mode|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("console log %s is not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// tail reads at most the last limit bytes.
func tail(f *os.File, limit int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := min(st.Size(), limit)
	text := make([]byte, n)
	got, err := f.ReadAt(text, st.Size()-n)
	if err != nil && !errors.Is(err, io.EOF) { // it may have been trimmed meanwhile
		return nil, err
	}
	return text[:got], nil
}

// trimLogs truncates every console log that has grown past its limit to its
// end. QEMU opens the file for appending, so it continues at its new end;
// output during the truncation is lost.
func (d *Driver) trimLogs(ctx context.Context) {
	logs, err := call(ctx, d, "", func(s *session) ([]string, error) {
		found, err := d.listOwned(s)
		var logs []string
		for _, m := range found {
			if st, err := active(&m.dom); err == nil && st != hypervisor.Incoming {
				if o, err := d.owned(&m.dom, 0); err == nil {
					logs = append(logs, o.SerialLog)
				}
			}
			_ = m.dom.Free()
		}
		return logs, err
	})
	if err != nil {
		return // tried again in the next round
	}
	for _, path := range logs {
		if err := trim(path, d.opt.MaxLogBytes); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.opt.Logf("libvirt: write console log failed: %v", err)
		}
	}
}

func trim(path string, limit int64) error {
	f, err := openLog(path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() <= limit {
		return err
	}
	text, err := tail(f, limit/4)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return err
}
