package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Daemons runs programs that outlive this process; appliance/node/supervisor
// implements it.
type Daemons interface {
	Run(ctx context.Context, name string, argv []string) error
	Stop(ctx context.Context, name string) error
	Running(ctx context.Context, name string) (bool, error)
	// LastOutput returns the daemon's last output, for messages.
	LastOutput(ctx context.Context, name string) string
}

// Config is the configuration of a node.
type Config struct {
	Paths   Paths
	Daemons Daemons
	// Unmanaged reports whether the distribution's service runs Open vSwitch; nil:
	// see Unmanaged.
	Unmanaged func() bool
	// Election is the time after which a member without a leader starts an
	// election, in a cluster that is founded (0: 5 s).
	Election time.Duration
	// Patience is how long a member may have no leader, while others have one,
	// before it counts as removed from the cluster (0: 1 min). It must be much
	// longer than an election, and than the delay of a new member's first report.
	Patience time.Duration
	// Log is called with every action before it is executed; may be nil.
	Log func(Action)
}

// Node executes the actions of Next on one node.
type Node struct {
	config Config

	mu sync.Mutex // one step at a time
	// module is the directory of the kernel module.
	module string
	// probed means that modprobe has run to its end.
	probed bool
	// current is the modification time of the schema file with which a database
	// was found up to date.
	current map[string]time.Time
	// alone is since when a server that is a member has had no leader.
	alone map[string]time.Time
}

// NewNode creates the directories.
func NewNode(c Config) (*Node, error) {
	for _, dir := range []string{c.Paths.State, c.Paths.Run, c.Paths.OVSRun} {
		if dir == "" || dir[0] != '/' {
			return nil, fmt.Errorf("folder %q: want an absolute path", dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if c.Unmanaged == nil {
		c.Unmanaged = Unmanaged
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	if c.Election == 0 {
		c.Election = 5 * time.Second
	}
	return &Node{config: c, module: "/sys/module/openvswitch", current: map[string]time.Time{}, alone: map[string]time.Time{}}, nil
}

// Unmanaged reports whether the distribution's service runs Open vSwitch: if
// systemd is the init process and has openvswitch-switch.service, and it is
// not masked. Basalt's package masks it, so that Basalt runs Open vSwitch on a
// node.
func Unmanaged() bool {
	for _, path := range []string{"/run/systemd/system", "/lib/systemd/system/openvswitch-switch.service"} {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	to, err := os.Readlink("/etc/systemd/system/openvswitch-switch.service")
	return err != nil || to != os.DevNull
}

// Step observes the node, executes the next actions, and observes it again. A
// failed action is a problem in the report; an error means that no report is
// possible.
func (n *Node) Step(ctx context.Context, in Intent) (Report, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := check(in); err != nil {
		return Report{}, err
	}
	o, err := n.observe(ctx, in)
	if err != nil {
		return Report{}, err
	}
	actions, _ := Next(in, o, n.config.Paths)
	failed := map[Part]error{}
	for _, a := range actions {
		if failed[a.Part] != nil {
			continue
		}
		if n.config.Log != nil {
			n.config.Log(a)
		}
		if err := n.act(ctx, a); err != nil {
			failed[a.Part] = fmt.Errorf("%s: %w", a.Verb, err)
		}
	}
	if o, err = n.observe(ctx, in); err != nil {
		return Report{}, err
	}
	_, problems := Next(in, o, n.config.Paths)
	for _, part := range []Part{PartSwitch, PartNB, PartSB, PartNorthd, PartChassis} {
		if err := failed[part]; err != nil {
			problems = append(problems, Problem{Part: part, What: err.Error()})
		}
	}
	return report(in, o, n.config.Paths, problems), nil
}

func check(in Intent) error {
	switch {
	case in.Node == "" || strings.ContainsAny(in.Node, "\"\\ \n"):
		return fmt.Errorf("node ID %q is not valid", in.Node)
	case !in.Encap.IsValid():
		return errors.New("the tunnel address is missing")
	case len(in.Members) > MaxMembers:
		return fmt.Errorf("%d members, want at most %d", len(in.Members), MaxMembers)
	}
	for _, m := range in.Members {
		if in.Bootstrap.Clustered && !m.Address.IsValid() {
			return fmt.Errorf("member %s has no address", m.Node)
		}
	}
	for physical, link := range in.External {
		if strings.ContainsAny(physical, ":, \n\"") || physical == "" || len(link) > 15 || link == "" {
			return fmt.Errorf("external network %q on interface %q: invalid name", physical, link)
		}
	}
	return nil
}

func report(in Intent, o Observed, p Paths, problems []Problem) Report {
	n := next{Intent: in, o: o, paths: p}
	r := Report{Generation: in.Bootstrap.Generation, Datapath: n.datapath(), Problems: problems}
	_, member := in.member(in.Node)
	db := func(d DB) (r DatabaseReport) {
		o := o.db(d)
		if !member || in.Bootstrap.Generation == 0 {
			return r
		}
		if o.File == Good && o.Clustered == in.Bootstrap.Clustered {
			r.Cluster = o.Cluster
			if !o.Clustered {
				r.Cluster = single
				r.Settled = o.Running
				r.Leads = o.Running
			}
		}
		if o.Clustered {
			r.Settled, r.Leads = o.Status.settled(), o.Status.leads()
			r.Joining = o.Status.joining()
			if r.Leads {
				r.Term = o.Status.Term
				for _, s := range o.Status.Servers {
					r.Servers = append(r.Servers, s.Short)
				}
			}
		}
		r.Lost = o.File == Absent && in.Bootstrap.id(d) != "" && len(in.others(d)) == 0
		return r
	}
	r.NB, r.SB = db(NB), db(SB)
	for _, physical := range sorted(in.External) {
		if n.usable(physical) {
			r.Physical = append(r.Physical, physical)
		}
	}
	r.Chassis = o.Switch.Daemon && o.Switch.Configured != nil && o.Controller && o.Connected
	return r
}

// single is used as the ID of a database that is not clustered.
const single = "single"

// Close does nothing: all daemons keep running.
func (n *Node) Close() error { return nil }

// Down stops OVN and Basalt's Open vSwitch on this node, and keeps the files.
// Guests lose their network.
func (n *Node) Down(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all error
	for _, name := range []string{"ovn-controller", "ovn-northd", "ovn-sb", "ovn-nb", "ovs-vswitchd", "ovs-db"} {
		all = errors.Join(all, n.config.Daemons.Stop(ctx, name))
	}
	return all
}

const (
	toolTime  = 20 * time.Second
	maxOutput = 4 << 20 // bytes
)

// command runs a tool and returns its standard output.
func (n *Node) command(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "OVN_RUNDIR="+n.config.Paths.Run, "OVS_RUNDIR="+n.config.Paths.OVSRun, "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, bad := limited{left: maxOutput}, limited{left: 4 << 10}
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), &toolError{tool: argv[0], words: strings.TrimSpace(bad.String()), err: err}
	}
	if out.left == 0 {
		return "", fmt.Errorf("output of %s is larger than %d bytes", argv[0], maxOutput)
	}
	return out.String(), nil
}

type toolError struct {
	tool, words string
	err         error
}

func (e *toolError) Error() string {
	if e.words != "" {
		return e.words
	}
	return e.tool + ": " + e.err.Error()
}

func (e *toolError) Unwrap() error { return e.err }

// limited stores the first bytes and drops the rest.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	_, _ = l.Buffer.Write(p[:keep]) // to memory
	return len(p), nil
}
