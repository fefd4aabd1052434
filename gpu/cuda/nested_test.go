package cuda

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

// TestNestedCard runs the drivers' suite, as on a real card, on a soft GPU behind
// the guest library and the strict layer. It runs the tests of waiting a second
// time, with kernels that take time.
func TestNestedCard(t *testing.T) {
	card := nested.Start(t, "", "256MiB")
	card.Rerun(t, "^(TestCard|TestCardCopiesDelayNoOthers|TestCardCompiledCode)$")
	card.Rerun(t, "^TestCard$/^(Stream|Default|NonBlocking|MemFreeAsync|Notify|Events|Elapsed|Gate|Destroy|Copies|ManyCommands)",
		nested.SlowKernels(2*time.Millisecond))
	t.Run("Rules", func(t *testing.T) { testRules(t, card) })
}

// brokenRules each violate a rule of the driver API, with p of 64 bytes and a kernel
// f; the strict layer must report it.
var brokenRules = map[string]func(c, other *context, p uint64, f uintptr) error{
	"is not in pinned host memory": func(c, _ *context, p uint64, _ uintptr) error {
		return pinned(make([]byte, 64), func(from uintptr) error { return c.call(cuMemcpyHtoDAsync, uintptr(p), from, 64, c.zero) })
	},
	"pass the end of memory": func(c, _ *context, p uint64, _ uintptr) error {
		return c.call(cuMemsetD8Async, uintptr(p), 0, 65, c.zero)
	},
	"is not in device memory": func(c, _ *context, p uint64, _ uintptr) error {
		return errors.Join(c.call(cuMemFree, uintptr(p)), c.call(cuMemsetD8Async, uintptr(p), 0, 1, c.zero))
	},
	"is not a multiple of": func(c, _ *context, p uint64, _ uintptr) error {
		return c.call(cuMemsetD32Async, uintptr(p+2), 0, 1, c.zero)
	},
	"has been destroyed": func(c, _ *context, _ uint64, _ uintptr) error {
		return errors.Join(c.call(cuEventDestroy, c.begin), c.call(cuEventRecord, c.begin, c.clock))
	},
	"is of context": func(c, other *context, _ uint64, _ uintptr) error { return c.call(cuStreamSynchronize, other.zero) },
	"no context is current": func(c, _ *context, p uint64, _ uintptr) error {
		return errors.Join(c.d.lib.call(0, cuCtxSetCurrent, 0), c.d.lib.call(0, cuMemFree, uintptr(p)))
	},
	"it waits for kernels": func(c, _ *context, p uint64, f uintptr) error {
		return errors.Join(c.call(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, c.zero, 0, 0), c.call(cuMemFree, uintptr(p)))
	},
	"after work that is not known to be over": func(c, _ *context, _ uint64, f uintptr) error {
		return errors.Join(c.call(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, c.zero, 0, 0),
			c.call(cuEventRecord, c.begin, c.zero), c.call(cuEventSynchronize, c.begin))
	},
	"want PRINTF_FIFO_SIZE": func(c, _ *context, _ uint64, _ uintptr) error { return c.call(cuCtxSetLimit, 0, 1024) },
	"were changed before the copy": func(c, _ *context, p uint64, _ uintptr) error {
		k := c.staging[0]
		err := c.call(cuMemcpyHtoDAsync, uintptr(p), k.address, 64, c.zero)
		k.bytes[7]++
		return errors.Join(err, c.call(cuStreamSynchronize, c.zero))
	},
	"are not in whole granules": func(c, _ *context, _ uint64, _ uintptr) error {
		_, err := c.create(c.d.granule + 4096)
		return err
	},
	"is not a power of two": func(c, _ *context, p uint64, _ uintptr) error {
		out := newOut[uint64]()
		defer out.free()
		return c.call(cuMemAddressReserve, out.at(), uintptr(c.d.granule), 3, 0, 0)
	},
	"are not whole pages": func(c, _ *context, _ uint64, _ uintptr) error { return c.d.reserveAt(0, 100) },
	"are not a reservation": func(c, _ *context, _ uint64, _ uintptr) error {
		part := c.virtual.window.Device()
		return c.d.lib.call(0, cuMemAddressFree, uintptr(part.Base), uintptr(c.d.granule))
	},
	"memory is still mapped": func(c, _ *context, _ uint64, _ uintptr) error {
		_, err := c.newBlock(c.d.granule)
		part := c.virtual.window.Device()
		return errors.Join(err, c.d.lib.call(0, cuMemAddressFree, uintptr(part.Base), uintptr(part.Size)))
	},
	"are not in one reservation": func(c, _ *context, _ uint64, _ uintptr) error {
		handle, err := c.create(c.d.granule)
		return errors.Join(err, c.attach(&piece{address: c.virtual.window.Host().Base, size: c.d.granule}, handle))
	},
	"is mapped at": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(c.d.granule)
		return errors.Join(err, c.attach(b.pieces[0], b.pieces[0].handle))
	},
	"are more than": func(c, _ *context, _ uint64, _ uintptr) error {
		handle, err := c.create(c.d.granule)
		return errors.Join(err, c.attach(&piece{address: c.virtual.window.Base, size: 2 * c.d.granule}, handle))
	},
	"are not whole mappings": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(2 * c.d.granule)
		return errors.Join(err, c.call(cuMemUnmap, uintptr(b.address), uintptr(c.d.granule)))
	},
	"is not memory, or was released": func(c, _ *context, _ uint64, _ uintptr) error {
		handle, err := c.create(c.d.granule)
		return errors.Join(err, c.call(cuMemRelease, uintptr(handle)), c.call(cuMemRelease, uintptr(handle)))
	},
	"nothing is mapped at": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(c.d.granule)
		return errors.Join(err, c.clear(b.address, c.d.granule+1, c.zero))
	},
	"is mapped without access": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(c.d.granule)
		return errors.Join(err, c.setAccess(b.address, c.d.granule, worker.AccessNone), c.clear(b.address, 8, c.zero))
	},
	"of a location of type": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(c.d.granule)
		return errors.Join(err, c.setAccess(b.address, c.d.granule, 2))
	},
	"was not created for handles": func(c, _ *context, _ uint64, _ uintptr) error {
		fd := newOut[int32]()
		defer fd.free()
		handle, err := c.create(c.d.granule)
		return errors.Join(err, c.call(cuMemExportToShareableHandle, fd.at(), uintptr(handle), fileDescriptor, 0))
	},
	"is still held": func(c, _ *context, _ uint64, _ uintptr) error {
		_, err := c.create(c.d.granule)
		return errors.Join(err, c.Destroy())
	},
	"is still mapped": func(c, _ *context, _ uint64, _ uintptr) error {
		b, err := c.newBlock(c.d.granule)
		return errors.Join(err, c.call(cuMemRelease, uintptr(b.pieces[0].handle)), c.Destroy())
	},
	"was never recorded": func(c, _ *context, _ uint64, _ uintptr) error {
		ms := newOut[float32]()
		defer ms.free()
		return c.call(cuEventElapsedTime, ms.at(), c.begin, c.begin)
	},
}

// testRules violates each rule in a process of its own, which the layer ends.
func testRules(t *testing.T, card *nested.Card) {
	for rule := range brokenRules {
		out, err := card.Run(t, "^TestBrokenRule$", "BROKEN_RULE="+rule)
		if err == nil || !strings.Contains(string(out), "\nstrict: cu") || !strings.Contains(string(out), rule) {
			t.Errorf("%s: %v, want that the strict layer ends the process with this rule\n%s", rule, err, out)
		}
	}
}

// TestBrokenRule violates the rule that testRules selects.
func TestBrokenRule(t *testing.T) {
	breaks := brokenRules[os.Getenv("BROKEN_RULE")]
	if breaks == nil {
		return // only TestNestedCard runs it
	}
	runtime.LockOSThread() // a rule is about its current context
	d := card(t)
	var contexts [2]*context
	for i := range contexts {
		ctx, err := d.NewContext(0, &gate{}, drivertest.Window(t, abi.MaxWindow))
		if err != nil {
			t.Fatal(err)
		}
		contexts[i] = ctx.(*context)
	}
	_, f, _, err := contexts[0].ModuleLoad([]byte(emptyPTX), worker.ModuleOptions{OptLevel: 4})
	if err != nil {
		t.Fatal(err)
	}
	out := newOut[uint64]()
	defer out.free()
	if err := contexts[0].call(cuMemAlloc, out.at(), 64); err != nil {
		t.Fatal(err)
	}
	p := *out.value
	t.Errorf("the strict layer did not end this process; the call returned %v", breaks(contexts[0], contexts[1], p, f[0].(*kernel).handle))
}
