package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/guests"
)

// guestsCommand contains the commands of basalt-guests.service, which runs them when the node
// shuts down and boots, independently of the running basaltd.
func guestsCommand(c *config) *cobra.Command {
	cmd := &cobra.Command{Use: "guests", Short: "Shut this node's guests down in order, and let them run again; systemd does it (basalt-guests.service)"}
	run := func(f func(context.Context, config, *slog.Logger) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			if c.file != "" {
				if err := readConfig(c.file, cmd.Flags()); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f(ctx, *c, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: utc})))
		}
	}
	cmd.AddCommand(
		&cobra.Command{Use: "stop", Args: cobra.NoArgs, RunE: run(stopGuests),
			Short: "Press the power buttons of all guests, wait until they are off (at most --stop-grace), and switch off who is left"},
		&cobra.Command{Use: "start", Args: cobra.NoArgs, RunE: run(func(_ context.Context, c config, _ *slog.Logger) error { return guests.Start(c.run) }),
			Short: "Let basaltd start the guests again that should run"})
	return cmd
}

// stopGuests shuts the guests down. It does not need the running basaltd, which may have ended.
func stopGuests(ctx context.Context, c config, log *slog.Logger) error {
	id, err := os.ReadFile(filepath.Join(c.data, "node-id"))
	if errors.Is(err, fs.ErrNotExist) { // basaltd has never run, so there is no guest
		return nil
	}
	if err != nil {
		return err
	}
	n := &node{log: log}
	defer func() { _ = n.Close() }()
	if err := n.openMachines(ctx, c, api.NodeID(id)); err != nil {
		return err
	}
	return guests.Stop(ctx, guests.Options{Machines: n.machines, Run: c.run, Grace: min(c.stopGrace, guests.MaxGrace), Log: log,
		Note: func(id api.InstanceID) error { return agent.NoteStopped(c.data, id) }})
}

// leavingCheckEvery is how often a node checks whether it is shutting down.
const leavingCheckEvery = 500 * time.Millisecond

// watchLeaving does the cluster's part of a shutdown: it transfers the leadership and has the
// shutdown reported.
func (n *node) watchLeaving(ctx context.Context) error {
	tick := time.NewTicker(leavingCheckEvery)
	defer tick.Stop()
	for was := false; ; {
		if is := n.leaving(); is != was {
			was = is
			n.log.Info("shutdown of the node", "guests", map[bool]string{true: "are being shut down", false: "may run"}[is])
			n.agent.LeavingChanged()
		}
		if was {
			n.transferLeadership(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// transferLeadership makes another node the leader, if there is one that is not shutting down.
func (n *node) transferLeadership(ctx context.Context) {
	if n.cluster == nil || !n.store.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	nodes, err := objects.Read(ctx, n.store, objects.Of[api.Node]())
	if err != nil || !anotherStays(objects.Map[api.Node](nodes), n.cluster.self.Node) {
		return // closing the store transfers the leadership if there is another node
	}
	if err := n.store.TransferLeadership(ctx); err != nil {
		n.log.Info("make another node lead failed", "error", err)
		return
	}
	n.log.Info("another node leads: this one is shutting down")
}

// transferLimit limits one attempt to transfer the leadership.
const transferLimit = 5 * time.Second

// anotherStays reports whether another node is ready and not shutting down: if all nodes shut
// down, the leadership would be transferred in circles.
func anotherStays(nodes map[string]api.Node, self api.NodeID) bool {
	for id, n := range nodes {
		if api.NodeID(id) != self && n.Assignment.State == api.NodeReady && !n.Status.ShuttingDown {
			return true
		}
	}
	return false
}
