// Command basaltd is a node of the cluster: API, replicated store, planner (on the leader) and
// node agent in one process. It may be stopped and started at any time; virtual machines and
// GPU work continue.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/debugserver"
)

// version is set by the linker.
var version = "dev"

// config is the configuration from the command line and the configuration file.
type config struct {
	file                        string
	data, run, listen, nodeName string
	peerListen                  []string // addresses
	peerGiven                   []string // from which they are: addresses, or roles of links
	setup, sharedDir, fence     string
	tlsCert, tlsKey             string
	sshListen, sshAddress       string
	appListen, appDomain        string
	appPort                     uint16
	appCert, appKey             string
	libvirt, gpud               string
	allowEmulation, directIO    bool
	vgpuBinary, workerBinary    string
	guestTools                  string
	upgradeProgram              string
	stopGrace, meterEvery       time.Duration
	recordDays                  int
	storageReserve              int64 // percent
	reservedCPUs                int64 // 0: computed
	storageOvercommit           int64 // percent
	election                    time.Duration
	compareEvery                time.Duration
	logLevel, debugListen       string
	network, encap, datapath    string
	underlay                    string
	external, resolvers         []string
	forbidden                   []string
	disks                       []string
	urlNetworks, noURLNetworks  []string
	proxies                     []string
	auditAnchors                []string
}

func main() {
	var c config
	cmd := &cobra.Command{
		Use:           "basaltd --data DIR",
		Short:         "Basalt's node daemon: API, store, planner and node agent",
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.file != "" {
				if err := readConfig(c.file, cmd.Flags()); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serve(ctx, c)
		},
	}
	beside := siblings()
	host, _ := os.Hostname()
	cmd.AddCommand(guestsCommand(&c), networkCommand(&c), mirrorCommand(), bootLoaderCommand())
	f := cmd.PersistentFlags()
	f.StringVar(&c.file, "config", "", "YAML file with these settings by name; the command line takes precedence")
	f.StringArrayVar(&c.peerListen, "peer-listen", nil, "HOST:PORT for the other nodes of the cluster, one for each network path, the main one first, or ROLE:PORT for the declared links with a role; without it the node is alone")
	f.DurationVar(&c.election, "election-timeout", 0, "time without a message from the leader after which another is elected; the same on all nodes; 0: 500ms")
	f.StringVar(&c.setup, "setup", "", "file that names the cluster to create or join at the first start")
	f.StringVar(&c.sharedDir, "shared-dir", "", "storage pool \"shared\": a directory that several nodes share at the same path, or nfs://SERVER/PATH, which basaltd mounts")
	f.Int64Var(&c.storageReserve, "storage-reserve-percent", defaultStorageReserve, "part of the file system of --data that is not used for volumes and images, so that the node itself can write; at least 256 MiB and at most 64 GiB")
	f.Int64Var(&c.storageOvercommit, "storage-overcommit-percent", defaultStorageOvercommit, "how much of the rest can be allocated to volumes and images together, which are thin-provisioned; 100: no overcommit")
	f.StringVar(&c.fence, "fence", "", "socket of basalt-fence; none: the node's instances are not stopped when it is cut off; empty: RUN/fence.sock")
	f.StringVar(&c.data, "data", "/var/lib/basalt", "directory of the node's state")
	f.StringVar(&c.run, "run", "/run/basalt", "directory of sockets, with a short path")
	f.StringVar(&c.listen, "listen", "127.0.0.1:7480", "address of the API: HOST:PORT, or ROLE:PORT for the addresses of the declared links with that role (all addresses if none is declared) and loopback, e.g. management:7480")
	f.StringVar(&c.sshListen, "ssh-listen", "", "HOST:PORT or ROLE:PORT of the SSH gateway, through which users reach their instances; the same port on all nodes; empty: none")
	f.StringVar(&c.sshAddress, "ssh-address", "", "HOST or HOST:PORT at which users reach the SSH gateway, if not the API's host with the port of --ssh-listen; the same on all nodes")
	f.StringVar(&c.appListen, "app-listen", "", "HOST:PORT or ROLE:PORT of the app gateway, through which browsers reach services of instances; the same port on all nodes; empty: none")
	f.StringVar(&c.appDomain, "app-domain", "", "domain of the app gateway: each port of each instance has a name below it, and *.DOMAIN must resolve to the nodes; the same on all nodes")
	f.Uint16Var(&c.appPort, "app-port", 0, "port under which users reach the app gateway, where that is not that of --app-listen; the same on all nodes")
	f.StringVar(&c.appCert, "app-cert", "", "file with the certificate of *.DOMAIN (PEM)")
	f.StringVar(&c.appKey, "app-key", "", "its key file (PEM)")
	f.StringVar(&c.nodeName, "node-name", cleanName(host), "name of this node")
	f.StringVar(&c.tlsCert, "tls-cert", "", "certificate file (PEM); required to listen on addresses other than loopback")
	f.StringVar(&c.tlsKey, "tls-key", "", "its key file (PEM)")
	f.StringVar(&c.libvirt, "libvirt", "qemu:///system", "libvirt connection")
	f.BoolVar(&c.directIO, "direct-io", false, "open the files of local and shared volumes with O_DIRECT and io_uring, if the node supports them; volumes in Ceph are not affected")
	f.Int64Var(&c.reservedCPUs, "reserved-cpus", 0, "CPUs that the node keeps for its own services, if spec.reservedCpus of the node is 0; 0: computed from what the node runs, and at least an eighth of them are never dedicated to an instance")
	f.BoolVar(&c.allowEmulation, "allow-emulation", false, "allow new instances on this node without KVM: they are emulated, which is slow; for trials")
	f.StringVar(&c.gpud, "gpud", "", "control socket of basalt-gpud; empty: RUN/gpud.sock")
	f.StringVar(&c.vgpuBinary, "vgpu-binary", beside("basalt-vgpu"), "basalt-vgpu")
	f.StringVar(&c.workerBinary, "worker-binary", beside("basalt-worker"), "basalt-worker")
	f.StringVar(&c.guestTools, "guest-tools", "", "directory of the guest tools, offered to guests on a disc; empty: none")
	f.StringVar(&c.upgradeProgram, "upgrade-program", "/usr/lib/basalt/upgrade", "program that installs another release on this node when the cluster is upgraded")
	f.DurationVar(&c.stopGrace, "stop-grace", time.Minute, "time a guest has to shut down before it is switched off")
	f.DurationVar(&c.meterEvery, "meter-every", 5*time.Minute, "how often usage is recorded")
	f.IntVar(&c.recordDays, "record-days", int(api.DefaultKeepRecords/day), "how many days usage records are kept; their sums are kept for ever; the same on all nodes")
	f.StringArrayVar(&c.urlNetworks, "url-network", nil, "CIDR of a private network in which images, webhooks and identity providers are allowed: tenants can then reach it; the same on all nodes")
	f.StringArrayVar(&c.noURLNetworks, "no-url-network", nil, "CIDR of a public network in which they are not allowed; the same on all nodes")
	f.StringArrayVar(&c.auditAnchors, "audit-anchor", nil, "where the leader stores the end of the audit trail every hour: file:/PATH, syslog:, syslog:udp://HOST:PORT, https://HOST/PATH; the same on all nodes")
	f.StringArrayVar(&c.proxies, "trusted-proxy", nil, "CIDR of proxies in front of the API, whose X-Forwarded-For names the client; without it the header is ignored")
	f.StringVar(&c.network, "network", "none", "ovn: instances have private networks; none: they have no network; the same on all nodes")
	f.StringVar(&c.encap, "encap", "", "this node's address for tunnels to other nodes; empty: that of the first --peer-listen")
	f.StringVar(&c.datapath, "datapath", "auto", "datapath of Open vSwitch: system (in the kernel), netdev (in user space), auto")
	f.StringVar(&c.underlay, "underlay", "", "with datapath netdev: the interface with the --encap address; it is added to a bridge")
	f.StringSliceVar(&c.forbidden, "forbid", nil, "RANGE,… that guests of the cluster cannot reach, in addition to the addresses of all nodes: management controllers (BMC), storage, other hosts")
	f.StringArrayVar(&c.external, "external", nil, "[NETWORK=]INTERFACE of an external network of guests; it is used for nothing else; without it, the declared links with role external")
	f.StringArrayVar(&c.resolvers, "resolver", nil, "ADDRESS[:PORT] of a resolver for external names that guests query; without it, those of /etc/resolv.conf")
	f.StringArrayVar(&c.disks, "disks", nil, "pattern of files whose loop devices count as disks too; for development")
	_ = f.MarkHidden("disks")
	f.DurationVar(&c.compareEvery, "compare-every", 2*time.Minute, "how often the nodes compare a part of their tables, 8 MiB; more often if all of them would take more than a day")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&c.debugListen, debugserver.Flag, "", debugserver.Usage+". Each basalt-vgpu that this node starts listens too, on RUN/vgpu/INSTANCE.debug")
	if err := cmd.ExecuteContext(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "basaltd:", err)
		os.Exit(exitCode(err))
	}
}

// exitForGood is the exit status after which systemd does not restart basaltd (EX_CONFIG of
// sysexits(3); RestartPreventExitStatus in basaltd.service).
const exitForGood = 78

func exitCode(err error) int {
	var damaged *store.Damaged
	var old *state.TooOld
	if errors.As(err, &damaged) || errors.As(err, &old) {
		return exitForGood
	}
	return 1
}

func serve(ctx context.Context, c config) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: utc}))
	if c.reservedCPUs < 0 {
		return fmt.Errorf("--reserved-cpus %d: want 0 or more", c.reservedCPUs)
	}
	debug, err := debugserver.Start(c.debugListen, log)
	if err != nil {
		return fmt.Errorf("serve profiles: %w", err)
	}
	if c.fence == "" {
		c.fence = filepath.Join(c.run, "fence.sock")
	}
	for {
		resolved, err := awaitPeerAddresses(ctx, c, log)
		if err == nil {
			err = live(ctx, resolved, log)
		}
		if !errors.Is(err, errBeginAnew) {
			return errors.Join(err, debug.Close())
		}
		log.Info("restarting all parts")
	}
}

// live runs the node until it ends or everything has to be opened again.
func live(ctx context.Context, c config, log *slog.Logger) error {
	if err := makeFolders(c); err != nil {
		return err
	}
	rec := membership.Record{}
	if c.clustered() {
		var err error
		if rec, err = membership.Load(membership.Dir(c.data)); err != nil {
			return fmt.Errorf("read the membership: %w", err)
		}
		if rec.State != api.SetupMember {
			if err := apply(ctx, c, rec, log); err != nil {
				return err
			}
			return errBeginAnew
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if rec.Rebuild {
		return runDamaged(ctx, c, rec, nil, log)
	}
	n, err := open(ctx, c, rec, log)
	var damaged *store.Damaged
	if errors.As(err, &damaged) && c.clustered() {
		return runDamaged(ctx, c, rec, err, log)
	}
	if damaged != nil {
		return fmt.Errorf("%w; a node alone has no other copy: put back a copy of all of %s, or move it away and begin anew; then: systemctl start basaltd", err, c.data)
	}
	if err != nil {
		return err
	}
	err = n.Run(ctx)
	cancel()
	return errors.Join(err, n.Close())
}

// makeFolders creates the node's folders. Other users cannot list them, because they contain
// keys, consoles and screens. QEMU runs as a user that gets access by the permissions that
// libvirt sets on the files.
func makeFolders(c config) error {
	for _, dir := range []string{c.data, c.run} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	return nil
}

// utc converts the times of log records to UTC.
func utc(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// siblings returns a function that returns the path of a program in the folder of this one.
func siblings() func(string) string {
	self, err := os.Executable()
	if err != nil {
		return func(name string) string { return name }
	}
	return func(name string) string { return filepath.Join(filepath.Dir(self), name) }
}

// cleanName converts a host name to a valid object name.
func cleanName(host string) string {
	var out []byte
	for _, c := range []byte(host) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-' && len(out) > 0:
			out = append(out, c)
		case c >= 'A' && c <= 'Z':
			out = append(out, c-'A'+'a')
		case c == '.':
			return string(out)
		}
	}
	if len(out) == 0 {
		return "node"
	}
	return string(out)
}
