// Package daemontest starts a real basaltd for tests from outside: a cluster of
// one, without networks, that ends with the test.
package daemontest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// Daemon runs.
type Daemon struct {
	URL, Port string
	Key       string // the operator's
	Run       string // its sockets: gpud's is expected here as gpud.sock
	Data      string // where it stores
	log       string
	process   *process
}

// process is one run of it after the other, on the same data.
type process struct {
	command []string
	log     *os.File
	cmd     *exec.Cmd
	done    chan struct{}
}

// Start starts a basaltd that is built with tags (none: empty) and waits until
// it answers. libvirt is its option of that name; more are options that have
// the last word.
func Start(t *testing.T, libvirt, tags string, more ...string) Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "basaltd") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := built.Program(t, "appliance/cmd/basaltd", strings.Fields(tags)...)
	address := port.Address(t)
	_, number, _ := net.SplitHostPort(address)
	d := Daemon{URL: "http://" + address, Port: number, Run: filepath.Join(dir, "run"), Data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log")}
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	d.process = &process{log: log, command: append([]string{bin, "--data", d.Data, "--run", d.Run, "--listen", address,
		"--libvirt", libvirt, "--allow-emulation", "--network", "none", "--meter-every", "1s"}, more...)}
	t.Cleanup(func() {
		d.Stop()
		_ = log.Close()
	})
	failed.Keep(t, func(f failed.Folder) { f.Files(d.log) })
	d.StartAgain(t)
	raw, err := os.ReadFile(filepath.Join(d.Data, "operator.key"))
	if err != nil {
		t.Fatal(err)
	}
	d.Key = strings.TrimSpace(string(raw))
	return d
}

// StartAgain after Stop, and wait until it answers.
func (d Daemon) StartAgain(t *testing.T) {
	t.Helper()
	p := d.process
	p.cmd, p.done = exec.Command(p.command[0], p.command[1:]...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // it is ended by a signal
		close(done)
	}(p.cmd, p.done)
	defer func() {
		if t.Failed() {
			t.Logf("basaltd's log ends:\n%s", d.Log())
		}
	}()
	patience.Until(t, 2*time.Minute, "basaltd answers", func() bool { // its operator's key is on disk before
		resp, err := http.Get(d.URL + "/v1/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Stop ends it as a service manager does; its data stays.
func (d Daemon) Stop() {
	p := d.process
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-patience.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.cmd = nil
}

// Log is the end of what it wrote.
func (d Daemon) Log() string {
	raw, _ := os.ReadFile(d.log)
	return string(raw[max(0, len(raw)-4000):])
}
