// Command basalt-worker executes the CUDA commands of one guest process. It is started by
// basalt-vgpu (a guest in a VM) or by a standalone basalt-gpud (a program on this host) with
// the guest's carrier socket as an inherited descriptor. It ends when the guest process does,
// or when gpud reports that the vGPU was deleted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/gpu/worker/stdio"
)

// The first stage changes attributes of its thread and then executes itself.
func init() { runtime.LockOSThread() }

// endTime limits the orderly cleanup. The kernel frees the rest, so that a tenant's memory is
// free within a second.
const endTime = 800 * time.Millisecond

// untouchedBytes is the size of a heap object that is never written and so takes no memory.
// Without it, the heap of a worker with small modules would be collected after every MiB of
// garbage from launches, which takes as long as the launches.
const untouchedBytes = 8 << 20

// maxLeft is how much of what a driver's library has written is logged, in bytes. A guest may
// have chosen the text.
const maxLeft = 1 << 10

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = confine(o)
	}
	if err == nil {
		err = endWithParent()
	}
	if err == nil {
		err = stdio.Separate()
	}
	if err == nil {
		runtime.UnlockOSThread()
		// The issuer polls on one of the Go scheduler's processors; the driver's goroutines
		// must not have to wait for that one.
		runtime.GOMAXPROCS(runtime.NumCPU() + 1)
		// The heap consists of a tenant's modules, which are rarely loaded: less garbage is
		// worth more than the time for collecting it.
		debug.SetGCPercent(50)
		untouched := make([]byte, untouchedBytes)
		if o.check != "" {
			err = check(o)
		} else {
			err = run(o)
		}
		runtime.KeepAlive(untouched)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "basalt-worker:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("program", "basalt-worker", "vgpu", o.vgpu)
	p, err := newProgram(ctx, o, log)
	if err != nil {
		return err
	}
	tooLong := func() {
		log.Warn("cleaning up takes too long; left to the kernel")
		os.Exit(1)
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(2*endTime, tooLong) }) // however busy the session is
	err = p.Run(ctx)
	freeing := time.AfterFunc(endTime, tooLong)
	if ctx.Err() != nil {
		err = nil // ended by a signal
	}
	err = errors.Join(err, p.Free())
	if text := stdio.Left(maxLeft); len(text) > 0 {
		log.Warn("the driver's library has written to stderr", "text", string(text))
	}
	if freeing.Stop() {
		if away := p.Await(ctx); away != nil && ctx.Err() == nil {
			log.Warn("usage since the connection to gpud was lost is not reported", "error", away)
		}
		time.AfterFunc(endTime, tooLong)
	}
	return errors.Join(err, p.Close())
}
