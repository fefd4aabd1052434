// Command basalt-vgpu is the vGPU of one VM: the vhost-user back-end that QEMU connects to. It
// starts a basalt-worker for each guest process that uses the vGPU, and ends with the VM.
//
// SIGUSR2 makes it re-execute its binary in place, which is how it is upgraded without an
// effect on QEMU, the guest and the workers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/debugserver"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// The workers have a parent-death signal for the thread that started them, and the exec of an
// upgrade keeps only the main thread, so the loop runs on that thread.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "basalt-vgpu:", err)
		}
		os.Exit(1)
	}
}

type config struct {
	socket, group, gpud, vgpu, worker, user string
	debugListen                             string
	token, handover                         int
	versions                                bool
	cgroups                                 []string
}

func parse(args []string, stderr io.Writer) (c config, err error) {
	f := flag.NewFlagSet("basalt-vgpu", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.socket, "socket", "", "`path` of the vhost-user socket to listen on")
	f.StringVar(&c.group, "socket-group", "", "`group` that may connect to the socket besides this user (QEMU's)")
	f.StringVar(&c.gpud, "gpud", "", "`path` of the control socket of basalt-gpud, for the workers")
	f.StringVar(&c.vgpu, "vgpu", "", "`ID` of the vGPU")
	f.StringVar(&c.worker, "worker", "", "`path` of basalt-worker (default: in the directory of this program)")
	f.StringVar(&c.user, "worker-user", "", "`user` that workers run as when started by root (default: basalt-worker if it exists)")
	f.Func("cgroup", "`directory` of a control group to join with all workers; can be repeated, for control groups version 1", func(dir string) error {
		c.cgroups = append(c.cgroups, dir)
		return nil
	})
	f.StringVar(&c.debugListen, debugserver.Flag, "", debugserver.Usage)
	f.IntVar(&c.token, "token-fd", -1, "inherited `descriptor` to read the token of the vGPU from, with which its workers authenticate to basalt-gpud")
	f.IntVar(&c.handover, "handover-fd", -1, "internal: `descriptor` of the state of the program that this one replaces")
	f.BoolVar(&c.versions, "handover-version", false, "print the version of handed-over state that this program reads, and exit")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case c.versions:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.socket == "" || c.vgpu == "":
		err = errors.New("--socket and --vgpu are required (see --help)")
	}
	return c, err
}

func run(args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if c.versions {
		_, err := fmt.Fprintln(stdout, vhostgpu.HandoverVersion)
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := cgroup.Join(c.cgroups); err != nil {
		return fmt.Errorf("join the control group: %w", err)
	}
	// basaltd, which starts this process, is better protected from the OOM killer than a
	// tenant's processes.
	if err := cgroup.SetOOMScore(cgroup.OOMScoreUsual); err != nil {
		return fmt.Errorf("set the OOM score: %w", err)
	}
	if c.worker == "" {
		c.worker = filepath.Join(filepath.Dir(self), "basalt-worker")
	}
	// Before anything that a caller can observe, because SIGUSR2 would end the process until
	// then.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGUSR2)
	// The reader of the log and the parent process may end while the VM continues.
	signal.Ignore(unix.SIGPIPE, unix.SIGHUP)
	log := slog.New(vhostgpu.LimitLog(slog.NewTextHandler(stderr, nil), 100, 1)).With("vgpu", c.vgpu)
	debug, err := debugserver.Start(c.debugListen, log)
	if err != nil && c.handover >= 0 { // missing profiles must not end the vGPU of a running VM
		log.Warn("cannot serve profiles", "error", err)
	} else if err != nil {
		return fmt.Errorf("serve profiles: %w", err)
	}
	defer func() { _ = debug.Close() }()
	workers, open, err := sandbox.For(c.user)
	if err != nil {
		return fmt.Errorf("confine workers as user %q: %w", c.user, err)
	}
	if open != "" && c.handover < 0 {
		log.Warn("workers are not fully confined", "reason", open)
	}
	spawner := vhostgpu.WorkerProcess{Binary: c.worker, GPUD: c.gpud, VGPU: c.vgpu, Sandbox: workers.Apply}
	// The program that replaces this one at an upgrade creates a new cache.
	if spawner.Cache, err = codecache.Create(); err != nil {
		log.Warn("programs compile their kernels at each start", "error", err)
	}
	defer func() { _ = spawner.Cache.Close() }()
	if c.token >= 0 {
		token, err := wire.TakeToken(c.token)
		if err != nil {
			return fmt.Errorf("read the token of the vGPU: %w", err)
		}
		spawner.Token = func() (*os.File, error) { return wire.PassToken(token) }
	}

	var s *vhostgpu.Server
	if c.handover >= 0 {
		s, err = vhostgpu.TakeOver(c.handover, spawner, vhostgpu.DefaultLimits(), log)
	} else {
		var group int
		if group, err = groupID(c.group); err != nil {
			return err
		}
		s, err = vhostgpu.Listen(c.socket, group, spawner, vhostgpu.DefaultLimits(), log)
	}
	if err != nil {
		return fmt.Errorf("serve the vGPU on %s: %w", c.socket, err)
	}
	defer func() { _ = s.Close() }()

	stop, upgrade := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for sig := range signals {
			to := stop
			if sig == unix.SIGUSR2 {
				to = upgrade
			}
			select {
			case to <- struct{}{}:
			default: // requested already
			}
			s.Wake()
		}
	}()
	return s.Run(stop, upgrade, func() error {
		args := []string{"--socket", c.socket, "--socket-group", c.group, "--gpud", c.gpud, "--vgpu", c.vgpu, "--worker", c.worker, "--worker-user", c.user, "--" + debugserver.Flag, c.debugListen}
		if spawner.Token == nil {
			return s.HandOver(self, args)
		}
		token, err := spawner.Token()
		if err != nil {
			return err
		}
		defer func() { _ = token.Close() }() // reached only if the upgrade has failed
		fd := int(token.Fd())
		return s.HandOver(self, append(args, "--token-fd", strconv.Itoa(fd)), fd)
	})
}

// groupID returns the ID of a group; -1 for no group.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1, err
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return -1, fmt.Errorf("parse ID of group %s: %w", name, err)
	}
	return gid, nil
}
