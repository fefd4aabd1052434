// Command basalt-gpud is the GPU daemon of a node: inventory, leases, VRAM
// ledger and meter. With --standalone it serves programs on this machine;
// doctor reports whether this machine's GPUs can be used, and driver installs
// NVIDIA's driver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/basalt-gpu/basalt/appliance/debugserver"
)

func main() {
	err := run(os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "basalt-gpud:", err)
		os.Exit(exitStatus(err))
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(args) > 0 {
		switch args[0] {
		case "doctor":
			return runDoctor(ctx, args[1:])
		case "driver":
			return runDriver(ctx, args[1:])
		}
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.level}))
	debug, err := debugserver.Start(o.debugListen, log)
	if err != nil {
		return fmt.Errorf("serve profiles: %w", err)
	}
	d, err := newDaemon(o, log)
	if err != nil {
		return errors.Join(err, debug.Close())
	}
	return errors.Join(d.Run(ctx), d.Close(), debug.Close())
}
