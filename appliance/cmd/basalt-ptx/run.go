package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// launch is the command line of basalt-ptx run.
type launch struct {
	file, kernel string
	args         []argument
	grid, block  [3]uint32
	shared       uint
	device       device.Options
}

// runRun runs a kernel of a file and prints its buffers.
func runRun(args []string, out, errs io.Writer) int {
	l, err := parseLaunch(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return allRun
	case err != nil:
		fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
		return failed
	}
	images, err := readImages(l.file)
	if err != nil {
		fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
		return failed
	}
	if err := l.run(images, out, errs); err != nil {
		fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
		return refused
	}
	return allRun
}

func parseLaunch(args []string, errs io.Writer) (l launch, err error) {
	l.grid, l.block = [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}
	l.device.VRAM = 1 << 30
	flags := flag.NewFlagSet("basalt-ptx run", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage); flags.PrintDefaults() }
	flags.Func("grid", "blocks, `X[,Y[,Z]]` (default 1)", func(v string) error { return parseDims(v, &l.grid) })
	flags.Func("block", "threads of a block, `X[,Y[,Z]]` (default 1)", func(v string) error { return parseDims(v, &l.block) })
	flags.UintVar(&l.shared, "shared", 0, "`bytes` of dynamic shared memory")
	flags.Func("model", "card that the device says it is: `one of` "+strings.Join(model.Names(), ", "), func(v string) (err error) {
		l.device.Model, err = model.Find(v)
		return err
	})
	flags.Func("check", "mistakes to look for: `some of` memory,race,init", func(v string) (err error) {
		l.device.Check, err = model.ParseChecks(v)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return l, err
	}
	if flags.NArg() < 2 {
		return l, errors.New("run: want FILE and KERNEL: list the kernels of a file with basalt-ptx check FILE")
	}
	l.file, l.kernel = flags.Arg(0), flags.Arg(1)
	for _, a := range flags.Args()[2:] {
		arg, err := parseArgument(a)
		if err != nil {
			return l, err
		}
		l.args = append(l.args, arg)
	}
	return l, nil
}

func parseDims(s string, into *[3]uint32) error {
	parts := strings.Split(s, ",")
	if len(parts) > len(into) {
		return fmt.Errorf("%q: want at most three numbers, X,Y,Z", s)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || n == 0 {
			return fmt.Errorf("%q: want a positive number", p)
		}
		into[i] = uint32(n)
	}
	return nil
}

// run creates a device, runs the kernel of the first image that has it, and prints the buffers.
func (l *launch) run(images [][]byte, out, errs io.Writer) (err error) {
	d, err := device.New(l.device)
	if err != nil {
		return fmt.Errorf("create the device: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.NewContext(0, nil, worker.NewWindow(abi.Windows()[0]))
	if err != nil {
		return fmt.Errorf("create a context: %w", err)
	}
	if p, ok := c.(worker.Printer); ok {
		p.PrintTo(func(to uint32, text []byte) {
			if to == abi.OutputStderr {
				_, _ = errs.Write(text)
				return
			}
			_, _ = out.Write(text)
		})
	}
	f, info, err := l.find(c, images)
	if err != nil {
		return err
	}
	params, err := l.params(c, info)
	if err != nil {
		return err
	}
	if uint64(l.shared) > uint64(info.Attributes[8]) { // MAX_DYNAMIC_SHARED_SIZE_BYTES
		if err := c.FuncSetAttribute(f, 8, int32(min(l.shared, 1<<30))); err != nil {
			return fmt.Errorf("set shared memory to %d bytes: %w", l.shared, err)
		}
	}
	done := make(chan error, 1)
	if err := c.Launch(nil, f, worker.Launch{Grid: l.grid, Block: l.block, Shared: uint32(l.shared), Params: params}, func(err error) { done <- err }); err != nil {
		return fmt.Errorf("launch kernel %s: %w", l.kernel, err)
	}
	if err := <-done; err != nil {
		return err
	}
	for i := range l.args {
		if err := l.args[i].print(c, i, out); err != nil {
			return err
		}
	}
	return nil
}

// find loads the images until one contains the kernel.
func (l *launch) find(c worker.Context, images [][]byte) (worker.Function, abi.FunctionInfo, error) {
	for _, image := range images {
		_, funcs, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil && len(images) == 1 {
			return nil, abi.FunctionInfo{}, fmt.Errorf("%s: %w\n%s", l.file, err, info.ErrorLog)
		}
		for i, f := range info.Functions {
			switch {
			case f.Name != l.kernel:
			case f.Refused != "":
				return nil, f, fmt.Errorf("kernel %s: %s", f.Name, f.Refused)
			default:
				return funcs[i], f, nil
			}
		}
	}
	return nil, abi.FunctionInfo{}, fmt.Errorf("%s has no kernel %s: list its kernels with basalt-ptx check", l.file, l.kernel)
}

// params creates the buffers and lays out the arguments as the kernel's parameters.
func (l *launch) params(c worker.Context, f abi.FunctionInfo) ([]byte, error) {
	if len(l.args) != len(f.Params) {
		return nil, fmt.Errorf("kernel %s: %d arguments, want %d", f.Name, len(l.args), len(f.Params))
	}
	var params []byte
	for i := range l.args {
		value, err := l.args[i].value(c)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		p := f.Params[i]
		if len(value) != int(p.Size) {
			return nil, fmt.Errorf("kernel %s: argument %d (%s) has %d bytes, want the %d of the parameter", f.Name, i, l.args[i].text, len(value), p.Size)
		}
		params = append(params, make([]byte, int(p.Offset)+len(value)-len(params))...)
		copy(params[p.Offset:], value)
	}
	return params, nil
}
