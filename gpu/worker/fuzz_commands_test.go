package worker_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// rawArgs are encoded arguments.
type rawArgs []byte

func (r rawArgs) Append(b []byte) []byte { return append(b, r...) }

// structSeedOut is an offset in the arena of a session of guesttest.
const structSeedOut = 1 << 20

// everyOp returns all commands of the channel.
func everyOp() (all []abi.Op) {
	for op := range abi.Op(1 << 10) {
		if _, ok := op.ArgSize(); ok && op != abi.OpNop {
			all = append(all, op)
		}
	}
	return all
}

// argsOf cuts the fuzzer's bytes to the size of a command's arguments. With
// small, it makes its words small, like the handles of existing objects.
func argsOf(op abi.Op, made []byte, small bool) rawArgs {
	n, _ := op.ArgSize()
	args := make(rawArgs, n)
	copy(args, made)
	for at := 0; small && at+8 <= n; at += 8 {
		binary.LittleEndian.PutUint64(args[at:], uint64(args[at]%8))
	}
	return args
}

// FuzzCommands executes every command of the table, with any arguments, in a
// session that has one object of each kind: it is answered, or ends the session,
// and its resources are freed.
func FuzzCommands(f *testing.F) {
	for i := range everyOp() {
		f.Add(byte(i), byte(i), []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3}, true)
		f.Add(byte(i), byte(7*i), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff}, false)
	}
	ops := everyOp()
	for _, c := range structCalls {
		n := byte(slices.Index(ops, c.op))
		f.Add(n, n, c.args(structSeedOut).Append(nil), false)
	}
	f.Fuzz(func(t *testing.T, first, second byte, made []byte, small bool) {
		driver := fakedriver.New(fakedriver.Options{})
		host := worker.NewLocalHost(worker.Limits{VRAM: vram})
		a, b, err := guesttest.Pair()
		if err != nil {
			t.Fatal(err)
		}
		s, err := worker.NewSession(b, driver, host, worker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(context.Background()) }()
		g, err := guesttest.Dial(a, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range []struct {
			op   abi.Op
			args guesttest.Args
		}{
			{abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}}, {abi.OpStreamCreate, abi.StreamCreate{Ctx: 1, Stream: 2}},
			{abi.OpEventCreate, abi.EventCreate{Ctx: 1, Event: 3}},
		} {
			if _, _, err := g.Call(made.op, made.args, nil); err != nil {
				t.Fatalf("%v: %v, want no error", made.op, err)
			}
		}
		for _, n := range []byte{first, second} {
			op := ops[int(n)%len(ops)]
			var inline []byte
			if op.TakesInline() {
				inline = made
			}
			if slot, err := g.Start(op, 0, argsOf(op, made, small), inline); err == nil {
				_, _, _ = g.Wait(slot) // an error of the command, or the session's end
			}
		}
		_ = a.CloseWrite()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the session did not end within 20s")
		}
		g.Close()
		if used := driver.Used(); used != 0 {
			t.Errorf("%d bytes of device memory in use after the session's end, want 0", used)
		}
		if free, _, _ := host.Memory(); free != vram {
			t.Errorf("%d bytes reserved at the host after the session's end, want 0", vram-free)
		}
	})
}
