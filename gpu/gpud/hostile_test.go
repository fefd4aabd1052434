package gpud_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// rawWorker is a worker stream without the client library.
type rawWorker struct {
	t    testing.TB
	node *testNode
	conn net.Conn
	in   *bufio.Reader
}

func (n *testNode) raw() *rawWorker {
	n.t.Helper()
	conn, err := net.Dial("unix", n.cfg.Socket)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	patience.Limit(n.t, 20*time.Second, conn)
	w := &rawWorker{n.t, n, conn, bufio.NewReaderSize(conn, wire.MaxNodeLine)}
	fmt.Fprintf(conn, "POST /v1/worker HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", wire.Upgrade)
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		n.t.Fatalf("upgrade of the worker stream = %v, %v, want status 101", resp, err)
	}
	return w
}

func (w *rawWorker) send(m any) {
	w.t.Helper()
	switch m := m.(type) {
	case string:
		_, _ = w.conn.Write([]byte(m))
	default:
		_ = wire.Write(w.conn, m)
	}
}

func (w *rawWorker) receive() (m wire.FromNode, err error) { return wire.ReadFromNode(w.in) }

func (w *rawWorker) register(vgpu string, held uint64, totals worker.Totals) wire.FromNode {
	w.t.Helper()
	w.send(wire.ToNode{Op: wire.OpRegister, ID: 1, Register: &wire.Register{
		Version: wire.Version, VGPU: vgpu, Token: w.node.tokens[vgpu], Session: "0123456789abcdef-raw", Held: held, Totals: totals,
	}})
	m, err := w.receive()
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// TestHostileLines checks that a worker, whatever it sends, loses only its own
// connection.
func TestHostileLines(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	n.put("b", gib, 0)
	honest := n.dial("b")
	long := strings.Repeat("x", 10*wire.MaxWorkerLine)
	for name, lines := range map[string][]any{
		"not JSON":          {"hello\n"},
		"endless":           {long},
		"acquire first":     {wire.ToNode{Op: wire.OpAcquire, ID: 1}},
		"registers twice":   {wire.ToNode{Op: wire.OpRegister, ID: 2, Register: &wire.Register{Version: 1, VGPU: "a", Token: n.tokens["a"], Session: "0123456789abcdef-raw"}}},
		"unknown operation": {wire.ToNode{Op: "format", ID: 2}},
		"long line later":   {`{"op":"yield","name":"` + long + "\"}\n"},
		"reserves nothing":  {wire.ToNode{Op: wire.OpReserve, ID: 2}},
	} {
		w := n.raw()
		if name != "not JSON" && name != "endless" && name != "acquire first" {
			if m := w.register("a", 0, worker.Totals{}); m.Code != "" {
				t.Fatalf("%s: answer to the registration = %+v, want no error", name, m)
			}
		}
		for _, l := range lines {
			w.send(l)
		}
		if m, err := w.receive(); err == nil {
			t.Errorf("%s: answer = %+v, want the connection closed", name, m)
		}
		if _, _, err := honest.Memory(); err != nil {
			t.Errorf("%s: memory query of another worker = %v, want no error", name, err)
		}
	}
	eventually(t, "the sessions' end", func() bool { return len(n.vgpu("a").Processes) == 0 })
}

func TestHostileRegistrations(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	for name, c := range map[string]struct {
		vgpu string
		held uint64
		want string
	}{
		"more than the limit": {"a", gib + 1, wire.CodeInvalid},
		"more than there is":  {"a", 1<<64 - 1, wire.CodeInvalid},
		"no such vGPU":        {"../a", 0, wire.CodeNotFound},
	} {
		if m := n.raw().register(c.vgpu, c.held, worker.Totals{}); m.Code != c.want {
			t.Errorf("%s: answer to the registration = %+v, want code %q", name, m, c.want)
		}
	}
	// Work from before gpud knew the worker is not billed, nor is work that is
	// impossible.
	w := n.raw()
	before := worker.Totals{GPUNanos: 1 << 60, Launches: 1 << 60}
	if m := w.register("a", 0, before); m.Code != "" {
		t.Fatalf("answer to the registration = %+v, want no error", m)
	}
	lie := before
	lie.GPUNanos += 1 << 50
	lie.Launches += 3
	w.send(wire.ToNode{Op: wire.OpTotals, ID: 5, Totals: &lie})
	if m, err := w.receive(); err != nil || m.ID != 5 {
		t.Fatalf("answer to the totals = %+v, %v, want ID 5", m, err)
	}
	if u := n.vgpu("a").Usage; u.GPUNanos > uint64(time.Millisecond) || u.Launches != 3 {
		t.Errorf("usage after false totals = %+v, want at most 1ms and 3 launches", u)
	}
	// Releasing more than is held releases all of it and no more.
	w.send(wire.ToNode{Op: wire.OpRelease, Bytes: 1 << 62})
	w.send(wire.ToNode{Op: wire.OpMemory, ID: 6})
	if m, err := w.receive(); err != nil || m.Used != 0 || m.Limits.VRAM != gib {
		t.Errorf("answer to the memory query = %+v, %v, want 0 bytes in use of 1 GiB", m, err)
	}
}

// TestWorkerThatDoesNotRead checks that a worker that sends requests and never
// reads loses its connection.
func TestWorkerThatDoesNotRead(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	w := n.raw()
	if m := w.register("a", 0, worker.Totals{}); m.Code != "" {
		t.Fatalf("answer to the registration = %+v, want no error", m)
	}
	line, _ := json.Marshal(wire.ToNode{Op: wire.OpStatus, ID: 9})
	line = append(line, '\n')
	for i := 0; ; i++ {
		if _, err := w.conn.Write(line); err != nil {
			break // closed
		}
		if i > 10_000_000 {
			t.Fatalf("gpud still accepts requests after %d unread answers", i)
		}
	}
	if _, err := n.control.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestControlRejectsInvalidRequests(t *testing.T) {
	n := newTestNode(t)
	for name, req := range map[string]string{
		"no JSON":       "PUT /v1/vgpus/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"unknown field": "PUT /v1/vgpus/a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"gpus\":1}",
		"huge":          "PUT /v1/vgpus/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{\"gpu\":\"" + strings.Repeat("x", 200_000),
		"no upgrade":    "POST /v1/worker HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	} {
		conn, err := net.Dial("unix", n.cfg.Socket)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = conn.Write([]byte(req))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode/100 != 4 {
			t.Errorf("%s: answer = %v, %v, want status 4xx", name, resp, err)
		}
		_ = conn.Close()
	}
}
