// Command basalt is the command line of a Basalt cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/basalt-gpu/basalt/appliance/cli"
)

// version is set by the linker.
var version = "dev"

func main() {
	cli.Version = version
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:])
	cancel()
	os.Exit(code)
}
