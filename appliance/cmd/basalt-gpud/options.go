package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/debugserver"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// options are the options of the command line.
type options struct {
	state, socket, worker, group, user string
	debugListen                        string
	standalone, noNVIDIA, interop      bool
	maxWorkers                         int
	soft                               softGPUs
	null                               nullGPUs
	swap                               uint64
	level                              slog.Level
}

// softGPUs collects --soft-gpu.
type softGPUs []gpud.SoftGPU

func (s *softGPUs) String() string { return "" }

func (s *softGPUs) Set(v string) error {
	g, err := gpud.ParseSoftGPU(v, len(*s))
	if err == nil {
		*s = append(*s, g)
	}
	return err
}

// nullGPUs collects --null-gpu.
type nullGPUs []gpud.NullGPU

func (s *nullGPUs) String() string { return "" }

func (s *nullGPUs) Set(v string) error {
	g, err := gpud.ParseNullGPU(v, len(*s))
	if err == nil {
		*s = append(*s, g)
	}
	return err
}

const usage = `basalt-gpud allocates virtual GPUs of the GPUs of this machine to workers.

On a node:
  basalt-gpud --state DIR --socket PATH [--soft-gpu name=soft0,vram=8GiB,sms=4]…

To check whether the NVIDIA GPUs of this machine can be used:
  basalt-gpud doctor

To install NVIDIA's driver:
  basalt-gpud driver install --accept-nvidia-license
  basalt-gpud driver status

Standalone, for CUDA programs on this machine, with or without a GPU:
  basalt-gpud --standalone --soft-gpu vram=8GiB --socket PATH
  BASALT_GPU=unix:PATH LD_LIBRARY_PATH=build/guest/lib ./program

`

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("basalt-gpud", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by main
	f.StringVar(&o.state, "state", "", "`directory` for the ledger and the meter (default with --standalone: beside the socket)")
	f.StringVar(&o.socket, "socket", "", "`path` of the Unix socket of the control API; with --standalone that of programs, and the control API is PATH.control")
	f.Var(&o.soft, "soft-gpu", "add a soft GPU, which runs on the CPU: `name=…,vram=8GiB,model=a100,sms=4,cc=9.0`; only vram is required; can be repeated. model is the GPU that it reports to be, with its limits: "+strings.Join(model.Names(), ", ")+". cc is the compute capability that it reports: libraries choose their kernels by it. check=memory,race,init (or some of them) stops kernels with such errors. engine="+strings.Join(model.Engines(), ", ")+" is how it runs instructions (docs/soft-gpu.md). fault=ecc, lost, hang, slow or throttled injects a fault, for tests and demonstrations")
	f.Var(&o.null, "null-gpu", "add a null GPU, which computes nothing and completes all work at once, to measure and test everything but the GPU itself: `name=…,vram=8GiB,sms=4` as for --soft-gpu. Results of programs on it are wrong")
	f.Func("swap", "`size` of the memory of this machine, e.g. 8GiB, to which VRAM that does not fit on a GPU is swapped; each GPU has as much (default: none)", func(v string) (err error) {
		o.swap, err = gpud.ParseSize(v)
		return err
	})
	f.BoolVar(&o.interop, "interop", false, "let programs run that are linked with NVIDIA's runtime library, by answering its check of the driver (docs/vendor-interop.md; check that your license allows it)")
	f.BoolVar(&o.noNVIDIA, "no-nvidia", false, "do not use NVIDIA GPUs")
	f.StringVar(&o.group, "worker-group", "", "`group` of the workers, which may open the socket besides this user (default when run by root: basalt-worker if it exists)")
	f.StringVar(&o.user, "worker-user", "", "`user` that workers run as when started by root (with --standalone; default: basalt-worker if it exists)")
	f.BoolVar(&o.standalone, "standalone", false, "serve programs on this machine, with one worker for each connection to --socket")
	f.StringVar(&o.worker, "worker", "", "`path` of basalt-worker (with --standalone; default: in the directory of this program)")
	f.IntVar(&o.maxWorkers, "max-workers", 64, "most programs at a time (with --standalone)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "`level` of log messages: debug, info, warn or error")
	f.StringVar(&o.debugListen, debugserver.Flag, "", debugserver.Usage)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		fmt.Print(usage)
		f.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w (see --help)", err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.socket == "" {
		return o, errors.New("--socket is required")
	}
	if o.state == "" && o.standalone {
		o.state = o.socket + ".state"
	}
	if o.state == "" {
		return o, errors.New("--state is required")
	}
	if o.worker == "" {
		o.worker = besideThis("basalt-worker")
	}
	return o, nil
}

// makesCards reports whether a soft or null GPU is requested.
func (o options) makesCards() bool { return o.firstMade() != "" }

// firstMade returns the name of the first soft GPU, or else of the first null GPU, or "".
func (o options) firstMade() string {
	switch {
	case len(o.soft) > 0:
		return o.soft[0].Name
	case len(o.null) > 0:
		return o.null[0].Name
	}
	return ""
}

// groupID returns the ID of --worker-group, or of the workers' default group; 0 if there is
// none.
func (o options) groupID() (int, error) {
	if o.group == "" {
		g, err := user.LookupGroup(sandbox.DefaultUser)
		if err != nil || os.Geteuid() != 0 {
			return 0, nil //nolint:nilerr // no such group: nobody else needs the socket
		}
		return number(g)
	}
	if n, err := strconv.Atoi(o.group); err == nil {
		return n, nil
	}
	g, err := user.LookupGroup(o.group)
	if err != nil {
		return 0, err
	}
	return number(g)
}

// number returns the ID of a group.
func number(g *user.Group) (int, error) {
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return 0, fmt.Errorf("parse ID of group %s: %w", g.Name, err)
	}
	return id, nil
}
