package libvirt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// TestMain lets this binary act as a source's agent that is killed.
func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		if err := runAgent(order); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

// crashes returns a Crash for everything that takes part in a migration from a
// to b.
func crashes(a, b *testNode, source *Driver) []drivertest.Crash {
	agent := &killableDriver{Driver: source}
	libvirtd := func(n *testNode) func(*testing.T, api.InstanceID) {
		return func(t *testing.T, _ api.InstanceID) { n.killProgram(t, "libvirtd\x00") }
	}
	qemu := func(n *testNode) func(*testing.T, api.InstanceID) {
		return func(t *testing.T, id api.InstanceID) { n.killProgram(t, "guest="+hypervisor.DomainName(id)+",") }
	}
	return []drivertest.Crash{
		{Name: "SourceAgent", Do: agent.kill, Source: func(*testing.T) drivertest.Machine { return agent }},
		{Name: "SourceLibvirtd", Do: libvirtd(a)}, {Name: "TargetLibvirtd", Do: libvirtd(b)},
		{Name: "SourceQEMU", Do: qemu(a)},
		{Name: "TargetQEMU", Do: qemu(b)},
	}
}

// killProgram kills the node's process whose command line contains text.
func (n *testNode) killProgram(t *testing.T, text string) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", n.init.Process.Pid, n.init.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		if line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline")); err != nil || !strings.Contains(string(line), text) {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(child, &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s has no process with %q in its command line", n.name, text)
}

// killableDriver is a driver whose Migrate runs in a separate process, so that
// an agent can be killed. The embedded Driver is what the agent uses after its
// restart.
type killableDriver struct {
	*Driver

	mu    sync.Mutex
	agent *os.Process // nil: none is running
}

const orderVariable = "BASALT_TEST_MIGRATE"

// order is the instruction to the process, as JSON in its environment.
type order struct {
	URI, MigrationDirHere, TunnelSocket string
	Node                                api.NodeID
	ID                                  api.InstanceID
	Target                              hypervisor.Domain
	CopyDisks                           []string
	BandwidthBytesPerSecond             int64
}

// kill kills the agent.
func (m *killableDriver) kill(t *testing.T, _ api.InstanceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.agent.Kill(); err != nil {
		t.Fatal(err)
	}
}

func (m *killableDriver) Migrate(ctx context.Context, id api.InstanceID, o hypervisor.MigrateOptions) (hypervisor.MigrationResult, error) {
	none := hypervisor.MigrationResult{}
	m.mu.Lock()
	busy := m.agent != nil
	m.mu.Unlock()
	if busy {
		return m.Driver.Migrate(ctx, id, o)
	}
	dir, err := os.MkdirTemp("", "basalt-lv-")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "tunnel"))
	if err != nil {
		return none, err
	}
	defer l.Close()
	go serveTunnel(ctx, l, o.Tunnel)
	text, err := json.Marshal(order{
		URI: m.opt.URI, MigrationDirHere: m.opt.MigrationDirHere, TunnelSocket: l.Addr().String(), Node: m.opt.Node,
		ID: id, Target: o.Target, CopyDisks: o.CopyDisks, BandwidthBytesPerSecond: o.BandwidthBytesPerSecond,
	})
	if err != nil {
		return none, err
	}
	agent := exec.Command(os.Args[0])
	agent.Env = append(os.Environ(), orderVariable+"="+string(text))
	agent.Stderr = os.Stderr
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	told, err := agent.StdoutPipe()
	if err != nil {
		return none, err
	}
	if err := agent.Start(); err != nil {
		return none, err
	}
	m.set(agent.Process)
	defer m.set(nil)
	for lines := bufio.NewScanner(told); lines.Scan(); {
		var p hypervisor.MigrationProgress
		if err := json.Unmarshal(lines.Bytes(), &p); err == nil && o.Progress != nil {
			o.Progress(p)
		}
	}
	return none, agent.Wait()
}

func (m *killableDriver) set(agent *os.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agent = agent
}

// serveTunnel opens a stream for each connection, which starts with the
// stream's name.
func serveTunnel(ctx context.Context, l net.Listener, tunnel hypervisor.Tunnel) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			name := make([]byte, 16)
			if _, err := io.ReadFull(conn, name); err == nil {
				if stream, err := tunnel.Open(ctx, hypervisor.Stream(strings.TrimSpace(string(name)))); err == nil {
					_ = join(ctx, conn, stream)
				}
			}
			_ = conn.Close()
		}()
	}
}

// runAgent is the main function of the agent's process.
func runAgent(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	d, err := Open(context.Background(), Options{URI: o.URI, MigrationDirHere: o.MigrationDirHere, Node: o.Node})
	if err != nil {
		return err
	}
	ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
	defer cancel()
	say := json.NewEncoder(os.Stdout)
	_, err = d.Migrate(ctx, o.ID, hypervisor.MigrateOptions{
		Target: o.Target, Tunnel: socketTunnel(o.TunnelSocket), CopyDisks: o.CopyDisks, BandwidthBytesPerSecond: o.BandwidthBytesPerSecond,
		Progress: func(p hypervisor.MigrationProgress) { _ = say.Encode(p) },
	})
	return errors.Join(err, d.Close())
}

// socketTunnel is the client of serveTunnel.
type socketTunnel string

func (s socketTunnel) Open(ctx context.Context, stream hypervisor.Stream) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", string(s))
	if err == nil {
		_, err = fmt.Fprintf(conn, "%-16s", stream)
	}
	return conn, err
}
