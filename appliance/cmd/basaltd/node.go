package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/agent"
	"github.com/basalt-gpu/basalt/appliance/leader"
	"github.com/basalt-gpu/basalt/appliance/plan"
	"github.com/basalt-gpu/basalt/appliance/store"
	"github.com/basalt-gpu/basalt/gpu/node/backend"
	"github.com/basalt-gpu/basalt/gpu/node/client"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// node is everything basaltd runs.
type node struct {
	log      *slog.Logger
	store    *store.Store
	machines hypervisor.Driver
	volumes  sds.Driver
	gpud     *client.Control
	agent    *agent.Agent
	api      *server.Server
	listener net.Listener
	local    net.Listener // the unix socket that the CLI uses unless told otherwise
	closers  []func() error
}

// open wires the node: nothing runs yet.
func open(ctx context.Context, c config, log *slog.Logger) (n *node, err error) {
	n = &node{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if err := checkListen(c); err != nil {
		return n, err
	}
	// Others on the machine may look into neither: keys, consoles, screens. QEMU
	// runs as a user that libvirt lets in by the files' own permissions.
	for _, dir := range []string{c.data, c.run} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return n, err
		}
	}
	id, err := nodeID(filepath.Join(c.data, "node-id"))
	if err != nil {
		return n, err
	}
	if n.store, err = store.Open(store.Options{Dir: filepath.Join(c.data, "store"), NodeID: string(id), Log: log}); err != nil {
		return n, err
	}
	n.closers = append(n.closers, n.store.Close)
	if err := bootstrap(ctx, n.store, filepath.Join(c.data, "operator.key"), log); err != nil {
		return n, fmt.Errorf("first objects: %w", err)
	}
	if n.volumes, err = openVolumes(c); err != nil {
		return n, err
	}
	n.closers = append(n.closers, n.volumes.Close)
	var accelerator hypervisor.Accelerator
	if n.machines, accelerator, err = openMachines(ctx, c, id, log); err != nil {
		return n, err
	}
	n.closers = append(n.closers, n.machines.Close)
	if c.gpud == "" {
		c.gpud = filepath.Join(c.run, "gpud.sock")
	}
	n.gpud = client.NewControl(c.gpud)
	n.closers = append(n.closers, func() error { n.gpud.Close(); return nil })
	runner, err := backend.New(backend.Options{Dir: filepath.Join(c.run, "vgpu"), Binary: c.vgpuBinary, Worker: c.workerBinary, GPUD: c.gpud, Log: log})
	if err != nil {
		return n, err
	}
	tools, err := toolsDisc(c)
	if err != nil {
		return n, err
	}
	n.agent = agent.New(agent.Options{
		NodeID: id, NodeName: c.nodeName, DataDir: c.data, RunDir: filepath.Join(c.run, "i"), Version: version,
		Store: only{n.store, agent.Kinds}, Machines: n.machines, Pools: map[string]sds.Driver{api.PoolLocal: n.volumes}, VGPUs: newVGPUs(n.gpud, runner),
		Accelerator: accelerator, ToolsDisc: tools, StopGrace: c.stopGrace, MeterEvery: c.meterEvery, Log: log,
	})
	if n.api, err = server.New(server.Options{Store: n.store, Runtime: runtime{n.agent}, Billing: books{n.store}, Version: version, Log: log}); err != nil {
		return n, err
	}
	if n.listener, err = listen(c); err != nil {
		return n, err
	}
	n.local, err = listenLocal(filepath.Join(c.run, "api.sock"))
	return n, err
}

// only is the store for somebody who cares for some kinds: usage records are
// many, and nobody but the books wants them.
type only struct {
	*store.Store
	kinds []api.Kind
}

func (o only) Watch(ctx context.Context, since int64) (<-chan api.Event, error) {
	return o.WatchKinds(ctx, since, o.kinds...)
}

// Run serves until ctx ends. Instances run on.
func (n *node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for what, f := range map[string]func(context.Context) error{
		"API":     func(ctx context.Context) error { return n.api.Serve(ctx, n.listener) },
		"socket":  func(ctx context.Context) error { return n.api.Serve(ctx, n.local) },
		"planner": n.plan,
		"agent":   n.agent.Run,
	} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		}()
	}
	n.log.Info("basaltd is up", "listen", n.listener.Addr().String(), "version", version)
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// plan runs the planner whenever this node leads.
func (n *node) plan(ctx context.Context) error {
	for ctx.Err() == nil {
		if !n.store.IsLeader() {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
			continue
		}
		term, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			for n.store.IsLeader() {
				select {
				case <-term.Done():
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		}()
		_ = leader.Run(term, only{n.store, plan.Kinds}, nil, n.log) // ends with the term
		cancel()
	}
	return nil
}

// Close lets go of everything, last opened first.
func (n *node) Close() error {
	var errs []error
	for _, l := range []net.Listener{n.listener, n.local} {
		if l != nil {
			_ = l.Close() // Serve has closed it already when it ran
		}
	}
	for i := len(n.closers) - 1; i >= 0; i-- {
		errs = append(errs, n.closers[i]())
	}
	n.closers = nil
	return errors.Join(errs...)
}

// checkListen refuses to send bearer keys in the clear over a network.
func checkListen(c config) error {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: want HOST:PORT", c.listen)
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	ip := net.ParseIP(host)
	if c.tlsCert == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: only loopback addresses are served without TLS; give --tls-cert and --tls-key", c.listen)
	}
	return nil
}

func listen(c config) (net.Listener, error) {
	l, err := net.Listen("tcp", c.listen)
	if err != nil || c.tlsCert == "" {
		return l, err
	}
	cert, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}), nil
}

// listenLocal serves everybody on the machine: requests need a key as they do
// over the network.
func listenLocal(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a run that was killed; the store's lock says that none lives
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o666)
}

// nodeID is drawn at the first start and never changes.
func nodeID(path string) (api.NodeID, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return api.NodeID(b), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	id := api.NewID(api.KindNode, random(6))
	return api.NodeID(id), writeFile(path, []byte(id), 0o644)
}
