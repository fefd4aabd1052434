package main

import (
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// launches returns ring entries of kernels that are not waited for; the kernel's first
// parameter is a number.
func launches(n int, parameter uint64) (all []byte) {
	for range n {
		all = append(all, guesttest.Entry(abi.OpLaunch, 0, abi.NoSlot, abi.Launch{Stream: 1, Function: 3, GridX: 1, GridY: 1, GridZ: 1, BlockX: 1, BlockY: 1, BlockZ: 1},
			binary.LittleEndian.AppendUint64(nil, parameter))...)
	}
	return all
}

// publish writes entries at the start of the ring of a guest that has written none, and sends a
// doorbell.
func publish(g *guesttest.Guest, head uint64, entries []byte) error {
	copy(g.Shm.Bytes(g.Ring, g.Layout.RingSize), entries)
	g.Shm.Store64(abi.OffHead, head)
	return g.Kick()
}

// prepare creates a context, 1, and loads a module, 2, with the fake driver's kernel, 3.
func prepare(g *guesttest.Guest, kernel string) error {
	if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
		return err
	}
	copy(g.Shm.Bytes(g.Arena, g.Layout.ChunkSize), kernel)
	_, _, err := g.Call(abi.OpModuleLoad, abi.ModuleLoad{Ctx: 1, Module: 2, FirstFunction: 3, ImageOff: g.Arena, ImageLen: uint64(len(kernel)),
		OutOff: g.Arena + g.Layout.ChunkSize, OutLen: g.Layout.ChunkSize}, nil)
	return err
}

// leaving lists states of a session, with the fake driver, in which the program ends when the
// function returns.
var leaving = map[string]func(g *guesttest.Guest) error{
	"idle": func(*guesttest.Guest) error { return nil },
	"half a message": func(g *guesttest.Guest) error {
		_, err := g.Conn.Write(abi.CarrierHeader{Type: abi.MsgRegion, Length: 64, Argument: 1}.Append(nil)[:9])
		return err
	},
	"half an entry": func(g *guesttest.Guest) error {
		entry := launches(1, 1)
		return publish(g, uint64(len(entry)-8), entry)
	},
	"full ring": func(g *guesttest.Guest) error {
		size := g.Layout.RingSize
		one := uint64(len(launches(1, 0)))
		return publish(g, size/one*one, launches(int(size/one), 0))
	},
	"full ring of kernels that take long": func(g *guesttest.Guest) error {
		if err := prepare(g, "sleep"); err != nil {
			return err
		}
		for range 2 * g.Layout.RingSize / uint64(len(launches(1, 0))) {
			if g.Shm.Load64(abi.OffHead)-g.Shm.Load64(abi.OffTail) > g.Layout.RingSize-256 {
				return nil
			}
			if err := g.Put(launches(1, uint64(time.Hour))); err != nil {
				return err
			}
		}
		return nil
	},
	"half a graph": func(g *guesttest.Guest) error {
		if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
			return err
		}
		entry := guesttest.Entry(abi.OpGraphInstantiate, 0, 0, abi.GraphInstantiate{Ctx: 1, Exec: 9, NodesLen: 1 << 20, NodesRegion: 1}, nil)
		if err := g.Put(entry); err != nil {
			return err
		}
		_, err := g.Conn.Write(abi.CarrierHeader{Type: abi.MsgRegion, Length: 64, Argument: 1}.Append(nil))
		return err
	},
	"doorbells unread": func(g *guesttest.Guest) error {
		raw, err := g.Conn.SyscallConn()
		for sent := true; sent && err == nil; {
			sent, err = carrier.TryWrite(raw, carrier.Message{Type: abi.MsgKick})
		}
		return err
	},
	"a waiter asleep": func(g *guesttest.Guest) error {
		if err := prepare(g, "sleep"); err != nil {
			return err
		}
		if err := g.Put(launches(1, uint64(time.Hour))); err != nil {
			return err
		}
		slot, err := g.Start(abi.OpCtxSynchronize, 0, abi.CtxSynchronize{Ctx: 1}, nil)
		g.Shm.CAS32(g.Slots+uint64(slot)*abi.SlotSize+abi.SlotState, abi.SlotPending, abi.SlotSleeping)
		return err
	},
}

// TestWorkerEndsWhereverItsGuestLeaves: a worker ends with its program, in whatever state the
// session is.
func TestWorkerEndsWhereverItsGuestLeaves(t *testing.T) {
	bin := build(t)
	for name, leave := range leaving {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, g, ended := start(t, bin, "fake")
			if err := leave(g); err != nil {
				t.Fatal(err)
			}
			if err := g.Conn.Close(); err != nil { // the memory remains, because another process of the guest may have it
				t.Fatal(err)
			}
			defer g.Close()
			_ = wait(t, ended)
		})
	}
}

// TestWorkerSleeps: while the program exists and does nothing, its
// worker sleeps, in whatever state the session is.
func TestWorkerSleeps(t *testing.T) {
	bin := build(t)
	for name, leave := range leaving {
		if name == "half an entry" || name == "full ring" { // these end the worker
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, g, ended := start(t, bin, "fake")
			if err := leave(g); err != nil {
				t.Fatal(err)
			}
			patience.Until(t, 30*time.Second, "the worker uses no processor time", func() bool {
				before := processorTime(t, cmd)
				time.Sleep(300 * time.Millisecond) // the length of the measurement
				return processorTime(t, cmd)-before < 100*time.Millisecond
			})
			g.Close()
			_ = wait(t, ended)
		})
	}
}

// processorTime returns the processor time that a process has used, with a resolution of 10 ms.
func processorTime(t testing.TB, cmd *exec.Cmd) time.Duration {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] { // utime and stime of proc(5)
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ
}

// TestWorkerEndsWithGuest: a program that ends during the handshake leaves no worker
// behind.
func TestWorkerEndsWithGuest(t *testing.T) {
	bin := build(t)
	hello := carrier.Message{Type: abi.MsgHello, Body: guesttest.Hello().Append(nil)}
	for name, greet := range map[string]func(c *net.UnixConn) error{
		"nothing": func(*net.UnixConn) error { return nil },
		"half a hello": func(c *net.UnixConn) error {
			_, err := c.Write(abi.CarrierHeader{Type: abi.MsgHello, Length: abi.HelloSize}.Append(nil))
			return err
		},
		"hello": func(c *net.UnixConn) error { return carrier.Write(c, hello) },
		"region": func(c *net.UnixConn) error {
			g, fd, err := guesttest.Prepare(c, guesttest.DefaultLayout)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			body := abi.Region{Size: g.Shm.Size(), Extents: []abi.Extent{{Length: g.Shm.Size()}}}.Append(nil)
			if err := carrier.Write(c, hello); err != nil {
				return err
			}
			return carrier.Write(c, carrier.Message{Type: abi.MsgRegion, Body: body, FDs: []int{fd}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, ended := startProcess(t, bin, "fake", "64MiB")
			if err := greet(c); err != nil {
				t.Fatal(err)
			}
			c.Close()
			_ = wait(t, ended)
		})
	}
}
