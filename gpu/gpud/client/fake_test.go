package client

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// fakeGPUD serves the worker stream: it grants everything and records the lines
// that it receives.
type fakeGPUD struct {
	t      *testing.T
	socket string
	stop   func() // closes all connections, as when gpud is killed

	mu     sync.Mutex // guards all below
	refuse string     // code for registrations; empty: accept them
	before func()     // called before a registration is answered
	heard  []wire.ToNode
	conns  map[net.Conn]bool
}

func startFake(t *testing.T) *fakeGPUD {
	t.Helper()
	f := &fakeGPUD{t: t, socket: filepath.Join(t.TempDir(), "s")}
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *fakeGPUD) start() {
	f.t.Helper()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.conns = map[net.Conn]bool{}
	f.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns[conn] = true
			f.mu.Unlock()
			all.Go(func() { f.serve(conn) })
		}
	})
	f.stop = func() {
		_ = l.Close()
		f.mu.Lock()
		for c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		all.Wait()
		f.stop = func() {}
	}
}

func (f *fakeGPUD) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, wire.MaxWorkerLine)
	if _, err := http.ReadRequest(in); err != nil {
		return
	}
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + wire.Upgrade + "\r\n\r\n"))
	for {
		m, err := wire.ReadToNode(in)
		if err != nil {
			if errors.Is(err, wire.ErrLine) {
				f.t.Error(err)
			}
			return
		}
		f.mu.Lock()
		f.heard = append(f.heard, m)
		refuse, before := f.refuse, f.before
		f.mu.Unlock()
		reply := wire.FromNode{Op: wire.OpReply, ID: m.ID}
		switch m.Op {
		case wire.OpRegister:
			if refuse != "" {
				_ = wire.Write(conn, wire.FromNode{Op: wire.OpReply, ID: m.ID, Code: refuse, Message: "the fake refuses"})
				return
			}
			if before != nil {
				before()
			}
			reply.Limits, reply.Device = &worker.Limits{Name: "fake", VRAM: 1 << 30}, &wire.Device{Driver: wire.DriverSoft}
		case wire.OpReserve:
			if m.Bytes > 1<<30 {
				reply.Code, reply.Message = wire.CodeOutOfMemory, "the fake has no more"
			}
		case wire.OpMemory:
			reply.Limits, reply.Used = &worker.Limits{VRAM: 1 << 30}, 5
		case wire.OpStatus:
			reply.Status = &abi.VGPUStatusReply{VRAMLimit: 1 << 30}
		case wire.OpAcquire:
			reply.GrantNanos = int64(time.Minute)
		}
		if m.ID != 0 {
			_ = wire.Write(conn, reply)
		}
		if m.Op == wire.OpBye {
			return
		}
	}
}

// broadcast sends a line to all workers.
func (f *fakeGPUD) broadcast(m wire.FromNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = wire.Write(c, m)
	}
}

func (f *fakeGPUD) refuseWith(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = code
}

// received returns the lines received with that operation.
func (f *fakeGPUD) received(op string) (lines []wire.ToNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.heard {
		if m.Op == op {
			lines = append(lines, m)
		}
	}
	return lines
}
