// Package daemontest starts a real basaltd for black-box tests: a cluster of one node, without
// networks, that ends with the test.
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

// Daemon is a running basaltd.
type Daemon struct {
	URL, Port string
	Key       string // the operator's API key
	Run       string // folder of its sockets; gpud's is expected here as gpud.sock
	Data      string // its data folder
	log       string
	process   *process
}

// process is the current process of the daemon. Processes run one after the other on the same
// data.
type process struct {
	command []string
	log     *os.File
	cmd     *exec.Cmd
	done    chan struct{}
}

// Start starts a basaltd that is built with tags (separated by spaces; may be empty) and waits
// until it answers. libvirt is the value of its option --libvirt; more options are appended and
// take precedence.
func Start(t *testing.T, libvirt, tags string, more ...string) Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "basaltd") // the length of socket paths is limited
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

// StartAgain starts the daemon after Stop, and waits until it answers.
func (d Daemon) StartAgain(t *testing.T) {
	t.Helper()
	p := d.process
	p.cmd, p.done = exec.Command(p.command[0], p.command[1:]...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // a signal ends it, which is an error
		close(done)
	}(p.cmd, p.done)
	defer func() {
		if t.Failed() {
			t.Logf("end of basaltd's log:\n%s", d.Log())
		}
	}()
	patience.Until(t, 2*time.Minute, "basaltd answers", func() bool { // by then the operator's key is on disk
		resp, err := http.Get(d.URL + "/v1/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Stop ends the daemon with SIGTERM, as a service manager does, and after 30 s with SIGKILL.
// Its data is kept.
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

// Log returns the last 4000 bytes of its log.
func (d Daemon) Log() string {
	raw, _ := os.ReadFile(d.log)
	return string(raw[max(0, len(raw)-4000):])
}
