package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/controlplane/auditor"
	"github.com/basalt-gpu/basalt/appliance/controlplane/forecast"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offers"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/planner"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/upgrade"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/guests"
	"github.com/basalt-gpu/basalt/gpu/gpud/backend"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/capability"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/ui"
)

// node is everything that basaltd runs.
type node struct {
	log      *slog.Logger
	store    *store.Store
	cache    *watchcache.Cache // the objects on which the parts of this node act
	cluster  *cluster          // nil: the node is alone
	machines hypervisor.Driver
	probed   string // file with the cached accelerator; empty: no probe is needed
	// accelerator is the accelerator of instances, if known at the start.
	accelerator hypervisor.Accelerator
	pools       map[string]sds.Driver
	gpud        *client.Control
	network     *fabric // nil: there are no networks
	storage     *nodeStorage
	upgrade     *upgrades     // nil: the node is alone
	keep        time.Duration // how long usage records are kept

	compareEvery time.Duration   // interval of comparing the nodes' tables
	proxies      []netip.Prefix  // trusted proxies before the API
	leaving      func() bool     // reports whether the node's guests are being shut down, or have been
	urls         outbound.Policy // policy for URLs that tenants choose
	sealed       *secrets.KeyStore
	guests       *guestDialer
	ssh          *sshService // nil: no SSH gateway
	apps         *appService // nil: no app gateway
	portals      *portalCerts
	anchors      []auditor.Anchor // of the audit log
	agent        *agent.Agent
	api          *server.Server
	listener     net.Listener
	firewall     func(context.Context) error // nil: this is not an installed node
	followPeers  func(context.Context) error // nil: --peer-listen names no role
	local        net.Listener                // the unix socket that the CLI uses unless told otherwise
	broken       chan error                  // why the store of a node without a cluster has failed; one at most
	closers      []func() error
}

// open creates the parts of the node; nothing is started yet.
func open(ctx context.Context, c config, rec membership.Record, log *slog.Logger) (n *node, err error) {
	n = &node{log: log, compareEvery: c.compareEvery, leaving: func() bool { return guests.Leaving(c.run) }, broken: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if err := checkListen(c); err != nil {
		return n, err
	}
	if n.keep, err = keepRecords(c.recordDays); err != nil {
		return n, err
	}
	for _, text := range c.auditAnchors {
		a, err := auditor.Parse(text)
		if err != nil {
			return n, fmt.Errorf("--audit-anchor: %w", err)
		}
		n.anchors = append(n.anchors, a)
	}
	if n.proxies, err = prefixes("--trusted-proxy", c.proxies); err != nil {
		return n, err
	}
	id, err := nodeID(filepath.Join(c.data, "node-id"))
	if err != nil {
		return n, err
	}
	began := time.Now()
	if err := n.openStore(ctx, c, rec, id); err != nil {
		return n, err
	}
	if err := n.openURLs(c); err != nil {
		return n, err
	}
	// The store is open, so no other process writes here.
	if err := atomicfile.Sweep(began, c.data, filepath.Join(c.data, "store"), membership.Dir(c.data), filepath.Join(c.data, "usage"), filepath.Join(c.data, "ceph"), tunnelKeys(c)); err != nil {
		return n, fmt.Errorf("remove incomplete files: %w", err)
	}
	reserve, err := checkStorage(c)
	if err != nil {
		return n, err
	}
	n.pools, err = openPools(ctx, c, reserve, n.imageURLs())
	for _, p := range n.pools {
		n.closers = append(n.closers, p.Close)
	}
	if err != nil {
		return n, err
	}
	if err := n.openMachines(ctx, c, id); err != nil {
		return n, err
	}
	if c.gpud == "" {
		c.gpud = filepath.Join(c.run, "gpud.sock")
	}
	n.gpud = client.NewControl(c.gpud)
	n.closers = append(n.closers, func() error { n.gpud.Close(); return nil })
	groups, unbounded := cgroup.Open()
	if unbounded != nil {
		log.Warn("resources of vGPU workers on this node are not limited", "error", unbounded)
	}
	runner, err := backend.New(backend.Options{Dir: filepath.Join(c.run, "vgpu"), Binary: c.vgpuBinary, Worker: c.workerBinary, GPUD: c.gpud, Groups: groups, Debug: c.debugListen != "", Log: log})
	if err != nil {
		return n, fmt.Errorf("prepare the backends of vGPUs in %s: %w", c.run, err)
	}
	tools, err := toolsDisc(c)
	if err != nil {
		return n, err
	}
	sealed := secrets.NewKeyStore(n.store)
	n.sealed = sealed
	n.portals = newPortalCerts(n.store, sealed.Open, c.tlsCert != "", n.log)
	cards := newVGPUs(n.gpud, runner)
	ao := agent.Options{
		NodeID: id, NodeName: c.nodeName, DataDir: c.data, RunDir: filepath.Join(c.run, "i"), Version: version,
		Changes: n.cache, Store: n.store, Machines: n.machines, Pools: n.pools, VGPUs: cards, Cards: cards,
		Accelerator: n.accelerator, RefuseEmulation: n.probed != "" && !c.allowEmulation, ToolsDisc: tools, StopGrace: c.stopGrace, MeterEvery: c.meterEvery, Log: log,
	}
	if n.probed != "" && c.directIO { // a fake hypervisor opens no files
		ao.OpenFiles = (&capability.Files{Log: log}).Modes
	}
	if err := n.openStorage(c, id); err != nil {
		return n, err
	}
	ao.Runs = n.runs
	ao.Leaving, ao.StorageReserve, ao.StorageOvercommit = n.leaving, reserve, c.storageOvercommit
	ao.WorkerLimits = func() error { return unbounded } //nolint:wrapcheck // it is the reason that the node reports
	ao.MachineStates = func() bool { return sealsStates(n.store) }
	ao.Keys, ao.Ceph, ao.Disks = keys{sealed, n.storage.node}, n.storage.node, n.storage.node.Pools
	if kept, err := openBackups(c, sealed); err == nil {
		ao.Backups = kept
	} else { // instances do not depend on backups
		log.Error("backups are not available until basaltd is restarted", "error", err)
	}
	if err := n.openNetwork(c, id); err != nil {
		return n, err
	}
	if n.network != nil {
		ao.Ports, ao.Links, ao.Encryption = n.network, n.network.links(c), n.network.node.Encryption
	}
	n.openGuests()
	if err := n.openSSH(c); err != nil {
		return n, err
	}
	if err := n.openApps(c); err != nil {
		return n, err
	}
	if n.ssh != nil {
		ao.SSHAuthority, n.network.guests.SSHAuthority = n.ssh.authority.UserCA, n.ssh.authority.UserCA
	}
	ao.Hardware = n.hardwareChecks(c)
	ao.HugePages = n.hugePages()
	ao.Cells, ao.ReservedCPUs = n.cells(), c.reservedCPUs
	if n.cluster != nil {
		n.cluster.agentOptions(&ao)
		n.openUpgrades(c, id, &ao)
	}
	n.agent = agent.New(ao)
	n.storage.agent = n.agent
	if n.cluster != nil {
		n.cluster.serveAgent(n.agent)
	}
	so := server.Options{Store: n.store, Runtime: n.runtime(), Billing: invoicing.Billing{Store: n.store}, Payments: n.payments(n.store), Tracer: n.tracer(), Offers: n.offers(), Capacity: forecast.New(n.store, time.Now), Version: version, Log: log,
		Room: planner.NewRoom(n.cache, n.cluster != nil), Networking: n.network != nil, NewVolumeKey: sealed.NewKey, Secrets: sealed, Unavailable: n.unavailable(), URLs: n.urls}
	if n.ssh != nil {
		so.SSHGateway, so.Shells = n.ssh.info, n.ssh
	}
	if n.apps != nil {
		so.Apps = n.apps
	}
	if n.cluster != nil {
		so.Packages = n.upgrade.agent.Packages
		so.Cluster, so.Elsewhere, so.Stale, so.Refusals = n.cluster, n.elsewhere, store.Stale, n.refusals
	}
	if n.api, err = server.New(so); err != nil {
		return n, fmt.Errorf("create the API server: %w", err)
	}
	if n.cluster != nil {
		n.cluster.server.HandleAPI(forwarded(n.api))
		n.cluster.serveRefusals(n.api.RefusedSignIns)
	}
	if c.run == installed {
		n.firewall = n.keepFirewall(c)
	}
	if n.cluster != nil && c.peerGiven != nil {
		n.followPeers = n.cluster.followPeerAddresses(c)
	}
	if n.listener, err = n.listen(c); err != nil {
		return n, err
	}
	n.local, err = listenLocal(filepath.Join(c.run, "api.sock"))
	return n, err
}

// offers returns the service that computes what fits and its cost from this node's copy of the
// objects.
func (n *node) offers() *offers.Service {
	svc := offers.New(offers.Options{Cache: n.cache, Prices: invoicing.Billing{Store: n.store}, Networking: n.network != nil, Watched: n.cluster != nil})
	n.closers = append(n.closers, func() error { svc.Close(); return nil })
	return svc
}

const day = 24 * time.Hour

// keepRecords returns how long usage records are kept, or an error if days is out of range.
func keepRecords(days int) (time.Duration, error) {
	const most = 36_500
	if least := int(api.MinKeepRecords / day); days < least || days > most {
		return 0, fmt.Errorf("--record-days %d: want %d to %d, as open periods need their usage records", days, least, most)
	}
	return time.Duration(days) * day, nil
}

// openStore opens the store, and with it the connections to the other nodes.
func (n *node) openStore(ctx context.Context, c config, rec membership.Record, id api.NodeID) (err error) {
	o := store.Options{Dir: filepath.Join(c.data, "store"), NodeID: string(id), Log: n.log, Broken: func(why error) { n.broken <- afterBroken(why) }}
	founder := true
	if c.clustered() {
		self, err := selfOf(c, id)
		if err != nil {
			return err
		}
		if n.cluster, err = openWire(c, rec, self, n.log); err != nil {
			return err
		}
		n.closers = append(n.closers, n.cluster.close)
		if err := n.cluster.recoverAlone(o.Dir); err != nil {
			return err
		}
		o = n.cluster.storeOptions(o)
		o.Election = c.election
		founder = rec.Founder
	}
	if n.store, err = store.Open(o); err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	n.closers = append(n.closers, n.store.Close)
	n.cache = watchcache.New(n.store, n.log, slices.Concat(plan.Kinds, agent.Kinds, network.Kinds, storage.Kinds, upgrade.Kinds, offboarding.Kinds, sshKinds, portalKinds)...)
	if n.cluster != nil {
		n.cluster.openStore(ctx, n.store)
		if err := n.cluster.removeOthers(ctx); err != nil {
			return err
		}
	}
	if !founder {
		return nil // the founder has created the first objects
	}
	if err := bootstrap(ctx, n.store, filepath.Join(c.data, "operator.key"), n.log); err != nil {
		return fmt.Errorf("create first objects: %w", err)
	}
	return nil
}

// elsewhere returns a handler that forwards a request to the node that can answer it, or nil if
// that is this node.
func (n *node) elsewhere(id api.NodeID) http.Handler {
	if id == n.cluster.self.Node {
		return nil
	}
	return n.cluster.client.ProxyTo(id)
}

// forwarded sets the origin of requests that another node has forwarded to the address that
// this node reports, because its own connection has none.
func forwarded(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, auth.Originating(r, r.Header.Get("X-Forwarded-For")))
	})
}

// Run serves until ctx ends. Instances continue to run.
func (n *node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	parts := map[string]func(context.Context) error{
		"API": func(ctx context.Context) error {
			return n.api.ServeWith(ctx, n.listener, server.StrictTransport(auth.BehindProxies(n.proxies, ui.Handler(n.api))), nil)
		},
		"socket": n.serveLocal,
		"cache":  n.cache.Run,
		"portal certificates": func(ctx context.Context) error {
			return n.cache.Follow(ctx, portalKinds, n.portals.follow)
		},
		"planner": n.plan,
		"agent":   n.agent.Run,
		"KVM":     n.watchAccelerator,
		"leaving": n.watchLeaving,
		"store": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case why := <-n.broken:
				return why
			}
		},
	}
	if n.followPeers != nil {
		parts["addresses for other nodes"] = n.followPeers
	}
	if n.firewall != nil {
		parts["firewall"] = n.firewall
	}
	if n.network != nil {
		maps.Copy(parts, n.network.run())
	}
	if n.ssh != nil {
		maps.Copy(parts, n.ssh.run())
	}
	if n.apps != nil {
		parts["app gateway"] = n.apps.serve
	}
	maps.Copy(parts, n.storage.run())
	if n.cluster != nil {
		maps.Copy(parts, n.cluster.run())
		parts["upgrade"] = n.upgrade.agent.Run
		parts["restart"] = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case why := <-n.cluster.restart:
				return why
			}
		}
	}
	for what, f := range parts {
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

// serveLocal serves the API and the setup calls on the node's own socket.
func (n *node) serveLocal(ctx context.Context) error {
	if n.cluster == nil {
		return n.api.Serve(ctx, n.local)
	}
	mux := http.NewServeMux()
	setup := membership.Handler(n.cluster)
	mux.Handle("/v1/setup", setup)
	mux.Handle("/v1/setup/", setup)
	mux.Handle("/", n.api)
	return n.api.ServeWith(ctx, n.local, mux, membership.WithPeer)
}

// plan runs the planner and the leader's other tasks whenever this node is the leader, for one
// term at a time: their decisions are written in that term or not at all.
func (n *node) plan(ctx context.Context) error {
	for ctx.Err() == nil {
		elected := n.store.LeadershipChanged()
		in := n.store.LeaderTerm()
		if in == 0 {
			select {
			case <-ctx.Done():
			case <-elected:
			}
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			for {
				elected := n.store.LeadershipChanged()
				if n.store.LeaderTerm() != in {
					return
				}
				select {
				case <-ctx.Done():
					return
				case <-elected:
				}
			}
		}()
		var health planner.Health
		if n.cluster != nil {
			health = func() (string, map[string]plan.Health) { return n.cluster.health(in) }
		}
		var wg sync.WaitGroup
		if n.network != nil {
			wg.Go(func() { n.network.lead(ctx, n, in) })
		}
		wg.Go(func() { n.raise(ctx, in, n.log) })
		if n.cluster != nil {
			wg.Go(func() { n.cluster.compare(ctx, in, n.compareEvery, n.log) })
			wg.Go(func() { n.upgrade.lead(ctx, in) })
			wg.Go(func() { n.cluster.replaceCA(ctx) })
		}
		wg.Go(func() { n.storage.lead(ctx, n, in) })
		wg.Go(func() { offboarding.Run(ctx, n.cache, ending{n.store, in}, n.log) })
		wg.Go(func() {
			(&invoicing.Job{Billing: invoicing.Billing{Store: n.store}, Store: term{n.store, in}, Changes: n.store, Log: n.log}).Run(ctx)
		})
		wg.Go(func() {
			invoicing.Retention{Records: n.store, Store: term{n.store, in}, Keep: n.keep, Log: n.log}.Run(ctx)
		})
		wg.Go(func() { n.audit(ctx, term{n.store, in}) })
		wg.Go(func() { _ = n.webhooks(term{n.store, in}).Run(ctx) })
		wg.Go(func() { _ = n.mailer(term{n.store, in}).Run(ctx) })
		wg.Go(func() { _ = n.bounces(term{n.store, in}).Run(ctx) })
		wg.Go(func() { _ = payment.NewCollector(n.payments(hookTerm{term{n.store, in}})).Run(ctx) })
		wg.Go(func() { n.vatChecker(term{n.store, in}).Run(ctx) })
		wg.Go(func() { n.certificates(term{n.store, in}).Run(ctx) })
		_ = planner.Run(ctx, n.cache, term{n.store, in}, health, n.log) // ends with the term
		wg.Wait()
		cancel()
	}
	return nil
}

// term is the store restricted to one term: writes fail in any other.
type term struct {
	store *store.Store
	in    uint64
}

func (t term) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	return t.store.ApplyInTerm(ctx, t.in, b) //nolint:wrapcheck // the caller says what it writes
}

// ending is the store of the offboarding, restricted to one term.
type ending struct {
	*store.Store
	in uint64
}

func (e ending) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	return e.ApplyInTerm(ctx, e.in, b) //nolint:wrapcheck // the caller says what it writes
}

// Close closes everything in reverse order of opening.
func (n *node) Close() error {
	var errs []error
	for _, l := range []net.Listener{n.listener, n.local} {
		if l != nil {
			_ = l.Close() // closed already if Serve has run
		}
	}
	for i := len(n.closers) - 1; i >= 0; i-- {
		errs = append(errs, n.closers[i]())
	}
	n.closers = nil
	return errors.Join(errs...)
}

// checkListen rejects addresses at which API keys would be sent unencrypted over a network.
func checkListen(c config) error {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: want HOST:PORT", c.listen)
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key must be given together")
	}
	ip := net.ParseIP(host)
	if c.tlsCert == "" && !c.clustered() && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: only loopback addresses are served without TLS; give --tls-cert and --tls-key", c.listen)
	}
	return nil
}

// listen opens the API's port: with TLS by the given certificate, else by the cluster's
// certificate, else, on a loopback address, without TLS.
func (n *node) listen(c config) (net.Listener, error) {
	l, err := listenAt(c, "API", c.listen, n.log)
	switch {
	case err != nil:
		return nil, err
	case c.tlsCert == "" && n.cluster != nil:
		return tls.NewListener(l, n.portals.beside(n.cluster.certificates.APIConfig())), nil
	case c.tlsCert == "":
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	conf := pki.ForBrowsers("http/1.1")
	conf.Certificates = []tls.Certificate{cert}
	return tls.NewListener(l, n.portals.beside(conf)), nil
}

// listenLocal opens a unix socket for all users of the machine: requests need a key, as they do
// over the network.
func listenLocal(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a killed process; the store's lock ensures that none is running
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o666)
}

// nodeID reads the node's ID. It is generated at the first start and never changes.
func nodeID(path string) (api.NodeID, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return api.NodeID(b), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	id := api.NewID(api.KindNode, random(6))
	return api.NodeID(id), atomicfile.WriteFile(path, []byte(id), 0o644)
}
