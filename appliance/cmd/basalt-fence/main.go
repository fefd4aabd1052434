// Command basalt-fence kills the instances of this node whose lease has expired, and feeds the
// watchdog as long as it is able to. See package fence.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/basalt-gpu/basalt/appliance/node/fence"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "basalt-fence:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, level, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: utc}))
	if err := fence.Harden(); err != nil {
		o.Log.Warn("this process can be starved", "error", err)
	}
	d, err := fence.New(o)
	if err != nil {
		return fmt.Errorf("start the fence: %w", err)
	}
	return d.Run(ctx)
}

const usage = `basalt-fence kills the instances whose lease is over and feeds the watchdog.

  basalt-fence --socket /run/basalt/fence.sock --state /var/lib/basalt/fence --watchdog /dev/watchdog

`

func parse(args []string) (o fence.Options, level slog.Level, err error) {
	f := flag.NewFlagSet("basalt-fence", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by main
	f.StringVar(&o.Socket, "socket", "", "`path` of the Unix socket that basaltd connects to")
	f.StringVar(&o.State, "state", "", "`directory` for the state")
	f.StringVar(&o.Watchdog, "watchdog", "none", "`path` of the watchdog device, or of a unix socket or FIFO that stands in for one; none: no watchdog")
	f.DurationVar(&o.Grace, "grace", fence.DefaultGrace, "how long killing instances may take before the machine is reset by its watchdog; at most the default, which the cluster relies on")
	f.TextVar(&level, "log-level", slog.LevelInfo, "`level` of log messages: debug, info, warn or error")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		fmt.Print(usage)
		f.PrintDefaults()
		return o, level, err
	} else if err != nil {
		return o, level, fmt.Errorf("%w (see --help)", err)
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.Socket == "":
		err = errors.New("--socket is required")
	case o.State == "":
		err = errors.New("--state is required")
	case o.Watchdog == "":
		err = errors.New("--watchdog is empty: want a path or none")
	case o.Grace <= 0 || o.Grace > fence.DefaultGrace:
		err = fmt.Errorf("--grace is %s: want more than 0 and at most %s", o.Grace, fence.DefaultGrace)
	}
	return o, level, err
}

// utc converts the times of log records to UTC.
func utc(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
