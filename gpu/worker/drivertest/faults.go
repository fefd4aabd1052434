package drivertest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func testPoison(x *tester) {
	ctx, other := x.context(), x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	s := x.stream(ctx, worker.StreamNonBlocking)
	done, wait := x.done()
	x.check(ctx.Launch(s, k["fault"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, done))
	x.want(wait(), abi.ErrIllegalAddress)
	later := map[string]error{
		"notify":       x.sync(ctx),
		"stream query": ctx.StreamQuery(s),
		"launch":       x.await(func(done func(error)) error { return ctx.Launch(s, k["store"], one(p, 1), done) }),
		"copy":         x.await(func(done func(error)) error { return ctx.CopyHtoD(nil, p, make([]byte, 8), done) }),
	}
	_, later["alloc"] = ctx.MemAlloc(8)
	for name, err := range later {
		if !errors.Is(err, abi.ErrIllegalAddress) {
			x.Errorf("%s after a fault = %v, want %v", name, err, abi.ErrIllegalAddress)
		}
	}
	if x.o.FaultsEndAll {
		_, err := other.MemAlloc(8)
		x.want(err, abi.ErrIllegalAddress)
		return
	}
	// Another context is not affected.
	q := x.alloc(other, 8)
	x.check(x.await(func(done func(error)) error { return other.Launch(nil, x.kernels(other)["store"], one(q, 3), done) }))
	if got := x.read64(other, nil, q); got != 3 {
		x.Errorf("value stored by a kernel of another context = %d, want 3", got)
	}
}

func testModuleErrors(x *tester) {
	ctx := x.context()
	for name, image := range map[string]string{
		"nothing":  "",
		"no PTX":   "this is no image",
		"cut":      Kernels[:len(Kernels)/2],
		"no comma": ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n\tmov.u32 1 2;\n\tret;\n}\n",
	} {
		if x.o.Image != nil && name == "nothing" {
			continue
		}
		if x.o.NoData && name == "no comma" {
			continue // it does not examine bodies
		}
		m, _, info, err := ctx.ModuleLoad([]byte(image), worker.ModuleOptions{})
		var r abi.Result
		if !errors.As(err, &r) || r != abi.ErrInvalidPTX && r != abi.ErrInvalidImage && r != abi.ErrUnsupportedPTX && r != abi.ErrNoBinaryForGPU {
			x.Errorf("%s: ModuleLoad = %v, %v, want an error about the image", name, m, err)
		}
		if info.ErrorLog == "" && name != "nothing" && name != "no PTX" {
			x.Errorf("%s: the error log is empty", name)
		}
	}
	x.check(x.sync(ctx)) // the context is not affected
}

// testUnknownInstruction checks that a device refuses a module with an
// instruction that it does not support, or only the kernel that contains it when
// that is used, and that it names the instruction.
func testUnknownInstruction(x *tester) {
	ctx := x.context()
	for _, inst := range []string{"frobnicate.u32 1, 2;", "mov.u32 %r1, 2;"} {
		image := ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n\t" + inst + "\n\tret;\n}\n.visible .entry good()\n{\n\tret;\n}\n"
		_, funcs, info, err := ctx.ModuleLoad([]byte(image), worker.ModuleOptions{})
		if info.ErrorLog == "" {
			x.Errorf("%s: the error log is empty", inst)
		}
		if errors.Is(err, abi.ErrInvalidPTX) {
			continue // like libcuda
		}
		x.check(err)
		for i, f := range info.Functions {
			err := x.await(func(done func(error)) error { return ctx.Launch(nil, funcs[i], one(), done) })
			told := x.o.NoReasons || f.Refused != "" && err != nil && strings.Contains(err.Error(), inst)
			if f.Name == "k" && (!errors.Is(err, abi.ErrNoBinaryForGPU) || !told) {
				x.Errorf("%s: launch = %v, want %v with the instruction; the kernel's record has %q", inst, err, abi.ErrNoBinaryForGPU, f.Refused)
			}
			if f.Name != "k" && err != nil {
				x.Errorf("launch of the other kernel = %v, want no error", err)
			}
		}
	}
	x.check(x.sync(ctx)) // the context is not affected
}

func testModuleInfo(x *tester) {
	ctx := x.context()
	m, _, info, err := ctx.ModuleLoad(append([]byte(Kernels), 0), worker.ModuleOptions{OptLevel: 4})
	x.check(err)
	want := map[string][]abi.ParamInfo{
		"store": {{Offset: 0, Size: 8}, {Offset: 8, Size: 8}},
		"delay": {{Offset: 0, Size: 8}, {Offset: 8, Size: 8}, {Offset: 16, Size: 8}},
		"fault": nil,
		"add":   {{Offset: 0, Size: 8}, {Offset: 8, Size: 8}, {Offset: 16, Size: 8}, {Offset: 24, Size: 4}},
	}
	if len(info.Functions) != len(want) {
		x.Errorf("functions = %+v, want %d", info.Functions, len(want))
	}
	for _, f := range info.Functions {
		p, ok := want[f.Name]
		if !ok || len(p) != len(f.Params) {
			x.Errorf("%s: parameters = %v, want %v", f.Name, f.Params, p)
			continue
		}
		for i := range p {
			if p[i] != f.Params[i] {
				x.Errorf("%s: parameters = %v, want %v", f.Name, f.Params, p)
			}
		}
		if f.Attributes[0] <= 0 { // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
			x.Errorf("%s: attributes = %v, want a positive maximum of threads per block", f.Name, f.Attributes)
		}
	}
	x.check(ctx.ModuleUnload(m))
}

func testGlobals(x *tester) {
	ctx := x.context()
	_, _, info, err := ctx.ModuleLoad([]byte(Kernels), worker.ModuleOptions{})
	x.check(err)
	if len(info.Globals) != 1 || info.Globals[0].Name != "numbers" || info.Globals[0].Size != 16 {
		x.Fatalf("globals = %+v, want numbers of 16 bytes", info.Globals)
	}
	got := x.read(ctx, nil, info.Globals[0].Address, 16)
	if !bytes.Equal(got, x.kept([]byte{11, 0, 0, 0, 22, 0, 0, 0, 33, 0, 0, 0, 44, 0, 0, 0})) {
		x.Errorf("numbers = % x, want 11, 22, 33 and 44", got)
	}
}

func testLaunchErrors(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p := x.alloc(ctx, 8)
	for name, l := range map[string]worker.Launch{
		"too many threads":       {Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1 << 20, 1, 1}, Params: params(p, 1)},
		"too much shared memory": {Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Shared: 1 << 30, Params: params(p, 1)},
	} {
		if err := ctx.Launch(nil, k["store"], l, nil); err == nil {
			x.Errorf("%s: the launch returned no error", name)
		}
	}
	x.check(x.sync(ctx)) // errors of the call do not poison the context
}
