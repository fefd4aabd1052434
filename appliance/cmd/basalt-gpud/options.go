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

// options are the command line.
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

const usage = `basalt-gpud gives virtual GPUs of this machine's cards to workers.

On a node:
  basalt-gpud --state DIR --socket PATH [--soft-gpu name=soft0,vram=8GiB,sms=4]…

To see whether this machine's NVIDIA cards are fit for it:
  basalt-gpud doctor

Alone, for CUDA programs on this machine, with or without a GPU:
  basalt-gpud --standalone --soft-gpu vram=8GiB --socket PATH
  BASALT_GPU=unix:PATH LD_LIBRARY_PATH=build/guest/lib ./program

`

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("basalt-gpud", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by main
	f.StringVar(&o.state, "state", "", "`directory` of the ledger and the meter (standalone: default beside the socket)")
	f.StringVar(&o.socket, "socket", "", "unix socket: the control API; with --standalone the one for programs, and the control API is PATH.control")
	f.Var(&o.soft, "soft-gpu", "a GPU made of CPU: `name=…,vram=8GiB,model=a100,sms=4,cc=9.0`; only vram is needed; may be given again. model is the card that it says it is, with its limits: "+strings.Join(model.Names(), ", ")+". cc is the compute capability that it says it has: libraries choose their kernels by it. check=memory,race,init (or some) ends kernels that make such mistakes. engine="+strings.Join(model.Engines(), ", ")+" is how it runs instructions (docs/soft-gpu.md). fault=ecc, lost, hang, slow or throttled breaks it, for tests and demonstrations")
	f.Var(&o.null, "null-gpu", "a GPU that computes nothing and completes all work at once, to measure and to test what lies before a card; `name=…,vram=8GiB,sms=4` as for --soft-gpu. Results of programs on it are wrong")
	f.Func("swap", "memory of this machine, `size` as in 8GiB, for what does not fit on a card; each card has as much (default: none)", func(v string) (err error) {
		o.swap, err = gpud.ParseSize(v)
		return err
	})
	f.BoolVar(&o.interop, "interop", false, "let programs that were linked with NVIDIA's runtime library run: their question whether the driver is NVIDIA's is answered (docs/vendor-interop.md; your licence is yours to check)")
	f.BoolVar(&o.noNVIDIA, "no-nvidia", false, "leave NVIDIA cards alone")
	f.StringVar(&o.group, "worker-group", "", "`group` that may open the socket besides this user: the workers' (default, as root: basalt-worker if there is one)")
	f.StringVar(&o.user, "worker-user", "", "`user` that workers run as, when started by root (standalone; default: basalt-worker if there is one)")
	f.BoolVar(&o.standalone, "standalone", false, "serve programs on this machine: one worker for each connection to --socket")
	f.StringVar(&o.worker, "worker", "", "`path` of basalt-worker (standalone; default: beside this program)")
	f.IntVar(&o.maxWorkers, "max-workers", 64, "programs at a time (standalone)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	f.StringVar(&o.debugListen, debugserver.Flag, "", debugserver.Usage)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		fmt.Print(usage)
		f.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w (--help tells more)", err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.socket == "" {
		return o, errors.New("--socket is needed")
	}
	if o.state == "" && o.standalone {
		o.state = o.socket + ".state"
	}
	if o.state == "" {
		return o, errors.New("--state is needed")
	}
	if o.worker == "" {
		o.worker = besideThis("basalt-worker")
	}
	return o, nil
}

// makesCards reports whether a soft or null GPU is asked for.
func (o options) makesCards() bool { return o.firstMade() != "" }

// firstMade is the name of the first soft GPU, or else of the first null GPU;
// empty when there is neither.
func (o options) firstMade() string {
	switch {
	case len(o.soft) > 0:
		return o.soft[0].Name
	case len(o.null) > 0:
		return o.null[0].Name
	}
	return ""
}

// groupID is the number of --worker-group, or of the workers' usual group;
// 0 when there is none.
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

// number is the ID of a group.
func number(g *user.Group) (int, error) {
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return 0, fmt.Errorf("parse ID of group %s: %w", g.Name, err)
	}
	return id, nil
}
