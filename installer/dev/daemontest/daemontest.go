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

	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// Daemon runs.
type Daemon struct {
	URL, Port string
	Key       string // the operator's
	Run       string // its directory of sockets
	log       string
}

// Start a basaltd that is built with tags, and wait until it answers. libvirt
// says which hypervisor it has.
func Start(t *testing.T, libvirt, tags string) Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "basaltd") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, "basaltd")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", bin, "github.com/basalt-gpu/basalt/appliance/cmd/basaltd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	d := Daemon{URL: "http://" + address, Port: port, Run: filepath.Join(dir, "run"), log: filepath.Join(dir, "log")}
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--data", filepath.Join(dir, "data"), "--run", d.Run, "--listen", address,
		"--libvirt", libvirt, "--network", "none", "--meter-every", "1s")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended by a signal
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		_ = log.Close()
	})
	watch := patience.Start()
	for ; ; time.Sleep(100 * time.Millisecond) {
		raw, err := os.ReadFile(filepath.Join(dir, "data", "operator.key"))
		d.Key = strings.TrimSpace(string(raw))
		if resp, err2 := http.Get(d.URL + "/v1/healthz"); err == nil && err2 == nil {
			_ = resp.Body.Close()
			if d.Key != "" && resp.StatusCode == http.StatusOK {
				return d
			}
		}
		if watch.Over(2 * time.Minute) {
			t.Fatalf("basaltd does not answer:\n%s", d.Log())
		}
	}
}

// Log is the end of what it wrote.
func (d Daemon) Log() string {
	raw, _ := os.ReadFile(d.log)
	return string(raw[max(0, len(raw)-4000):])
}
