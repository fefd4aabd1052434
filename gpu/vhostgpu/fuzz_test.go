package vhostgpu

import (
	"io"
	"log/slog"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
	"github.com/basalt-gpu/basalt/hypervisor/virtio/drivertest"
)

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// FuzzCommands checks that each command of a guest gets its own response, at once
// or when its context ends, and that no resources are left after a reset.
func FuzzCommands(f *testing.F) {
	command := func(typ, ctx uint32, body []byte) []byte {
		b := append(words(typ, 0, 0, 0, ctx, 0), body...)
		return append([]byte{byte(len(b)), byte(len(b) >> 8)}, b...)
	}
	var seed []byte
	for _, c := range [][]byte{
		command(cmdCtxCreate, 1, make([]byte, 72)),
		command(cmdResourceCreate3D, 0, words(10, 0, 0, 0)),
		command(cmdResourceAttach, 0, append(append(words(10, 1), le.AppendUint64(nil, drivertest.Base)...), words(0x4000, 0)...)),
		command(cmdCtxAttachResource, 1, words(10, 0)),
		command(cmdSubmit3D, 1, submission(abi.MsgHello, 0, make([]byte, abi.HelloSize))),
		command(cmdSubmit3D, 1, submission(abi.MsgRegion, 0, regionOf(10, 4))),
		command(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil)),
		command(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil)),
		command(cmdSubmit3D, 1, submission(abi.MsgDropRegion, 0, nil)),
		command(cmdResourceUnref, 0, words(10, 0)),
		command(cmdCtxDestroy, 1, nil),
	} {
		seed = append(seed, c...)
	}
	f.Add(seed)
	mem := drivertest.NewGuest(f, 1<<20)
	layout := drivertest.NewDriver(mem, 64)
	memory := mem.Map()
	f.Fuzz(func(t *testing.T, b []byte) {
		loop, err := NewLoop()
		if err != nil {
			t.Fatal(err)
		}
		defer loop.Close()
		spawner := &mutes{}
		defer spawner.close()
		d := New(loop, spawner, DefaultLimits(), discard)
		d.SetMemory(memory)
		clear(mem.Mem)
		q, err := virtio.NewQueue(memory, layout.Layout, virtio.Position{}, d.Features(), d.Limits())
		if err != nil {
			t.Fatal(err)
		}
		d.queues[controlQueue].q = q
		d.queues[controlQueue].fds.Call = -1
		for n := 0; len(b) > 2 && n < 64; n++ {
			size := min(int(le.Uint16(b)), len(b)-2)
			c := &virtio.Chain{Head: uint16(n), Readable: [][]byte{b[2:][:size]}, In: uint64(size)}
			d.handle(place{controlQueue, c.Head}, c)
			b = b[2+size:]
			if d.deadlines(spawner.now()); loop.Poll(0) != nil {
				t.Fatal("Poll returned an error")
			}
		}
		d.Reset()
		if len(d.contexts)+len(d.resources)+d.extents+d.attachments+len(d.ending)+len(loop.handlers) != 0 {
			t.Fatalf("resources left after a reset: %+v", d)
		}
	})
}
