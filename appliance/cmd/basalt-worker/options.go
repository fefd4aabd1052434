package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

type options struct {
	carrier int
	token   int // descriptor
	cache   int // descriptor
	gpud    string
	vgpu    string
	driver  string
	device  string
	limits  *worker.Limits // used without gpud
	check   string         // ID of a GPU to check; empty: none
	without string         // parts of the confinement that the check leaves out
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("basalt-worker", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.carrier, "carrier-fd", 3, "inherited `descriptor` of the guest's carrier socket")
	f.IntVar(&o.token, "token-fd", -1, "inherited `descriptor` to read the token of the vGPU from")
	f.IntVar(&o.cache, "cache-fd", -1, "inherited `descriptor` of the vGPU's cache of compiled code (default: none)")
	f.StringVar(&o.gpud, "gpud", "", "`path` of the control socket of basalt-gpud")
	f.StringVar(&o.vgpu, "vgpu", "", "`ID` of the vGPU")
	f.StringVar(&o.driver, "driver", "", "`name` of the driver: soft or cuda (default: the one that gpud sends)")
	f.StringVar(&o.device, "device", "", "`name` of the device (default: the one that gpud sends)")
	f.Func("standalone-limits", "vram=`SIZE`,name=NAME: run without gpud, with a vGPU of this size", func(s string) error {
		l, err := parseLimits(s)
		o.limits = &l
		return err
	})
	f.StringVar(&o.check, "check", "", "check the GPU of this `ID` by using it as a worker does, and exit (for basalt-gpud doctor)")
	f.StringVar(&o.without, "check-without", "", "`part` of the confinement that a check leaves out: landlock, seccomp, or both with a comma")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.check == "" && o.without != "":
		return o, errors.New("--check-without is set without --check")
	case o.check != "":
	case o.limits == nil && (o.gpud == "" || o.vgpu == ""):
		return o, errors.New("--gpud and --vgpu are required, or --standalone-limits (see --help)")
	case o.limits != nil && o.driver == "":
		o.driver = "soft"
	}
	return o, nil
}

// leavesOut reports whether a check leaves out a part of the confinement.
func (o options) leavesOut(part string) bool {
	return slices.Contains(strings.Split(o.without, ","), part)
}

// parseLimits parses vram=SIZE,name=NAME; sizes are in bytes or have a unit KiB, MiB or GiB.
func parseLimits(s string) (l worker.Limits, err error) {
	l.Name = "Basalt vGPU"
	for part := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "vram":
			if l.VRAM, err = parseSize(value); err != nil {
				return l, err
			}
		case "name":
			l.Name = value
		default:
			return l, fmt.Errorf("%q: want vram=SIZE or name=NAME", part)
		}
	}
	if l.VRAM == 0 {
		return l, errors.New("vram=SIZE is required")
	}
	return l, nil
}

func parseSize(s string) (uint64, error) {
	shift := 0
	for unit, n := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			s, shift = number, n
		}
	}
	n, err := strconv.ParseUint(s, 10, 64-shift)
	if err != nil {
		return 0, fmt.Errorf("%q: want a size in bytes, KiB, MiB or GiB, e.g. 8GiB", s)
	}
	return n << shift, nil
}
