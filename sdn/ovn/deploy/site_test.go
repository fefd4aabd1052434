package deploy

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// site is a cluster of nodes, each in its own network namespace, connected by
// a bridge, with the cluster's leader, which decides.
type site struct {
	t         *testing.T
	prefix    string
	dir       string
	ca        pki.CA
	nodes     []*testNode // that are running
	all       []*testNode
	bootstrap Bootstrap
	members   []Member
	reports   map[string]Report
	silence   time.Duration
	tls       bool
	withheld  string // the daemon that is not started
}

// withholding runs all daemons except the site's withheld one.
type withholding struct {
	Daemons
	site *site
}

func (w withholding) Run(ctx context.Context, name string, argv []string) error {
	if name == w.site.withheld {
		return nil
	}
	return w.Daemons.Run(ctx, name, argv)
}

var sites int

func newSite(t *testing.T, nodes int, tls bool) *site {
	t.Helper()
	needHost(t)
	sites++
	removeLeftovers()
	// Paths of unix sockets must be short: not t.TempDir.
	dir, err := os.MkdirTemp("", fmt.Sprintf("ovndep-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, prefix: fmt.Sprintf("od%d-%d", os.Getpid(), sites), dir: dir, reports: map[string]Report{}, tls: tls}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	netns.Add(t, s.prefix+"-sw")
	command(t, "ip", "-n", s.prefix+"-sw", "link", "add", "sw0", "type", "bridge")
	command(t, "ip", "-n", s.prefix+"-sw", "link", "set", "sw0", "up")
	if s.ca, err = pki.NewCA("test", time.Now()); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		s.all = append(s.all, s.node(i+1))
	}
	s.nodes = slices.Clone(s.all)
	failed.Keep(t, s.evidence)
	return s
}

// identity returns a certificate on disk, as the cluster's PKI stores it.
func (s *site) identity(n *testNode) TLS {
	s.t.Helper()
	key, csr, err := pki.NewRequest()
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := s.ca.Sign(csr, pki.NodeIdentity{Cluster: "test", Node: api.NodeID(n.id), Name: n.id, IPs: []netip.Addr{n.address}}, time.Now(), time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(n.dir, "pki")
	if _, err := pki.Create(dir, s.ca.CertPEM, cert, key); err != nil {
		s.t.Fatal(err)
	}
	return TLS{Bundle: dir + "/ca.pem", Cert: dir + "/node.crt", Key: dir + "/node.key"}
}

func (s *site) intent(n *testNode) Intent {
	in := Intent{Node: n.id, Encap: n.address, Datapath: Netdev, Underlay: "eth0", Members: s.members, Bootstrap: s.bootstrap, TLS: n.tls}
	for _, n := range s.nodes {
		in.Nodes = append(in.Nodes, n.id)
	}
	return in
}

// round lets the leader decide and each node execute a step.
func (s *site) round(nodes ...*testNode) {
	s.t.Helper()
	s.bootstrap = Decide(s.bootstrap, s.members, s.tls, s.reports, s.silence)
	reports := make([]Report, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		in := s.intent(n)
		all.Go(func() {
			n.inside(func() {
				var err error
				if reports[i], err = n.Step(context.Background(), in); err != nil {
					s.t.Logf("%s: %v", n.id, err) // on a busy machine; the next step observes again
				}
			})
		})
	}
	all.Wait()
	for i, n := range nodes {
		s.reports[n.id] = reports[i]
	}
}

// until runs rounds until ok returns true.
func (s *site) until(what string, ok func() bool, nodes ...*testNode) {
	s.t.Helper()
	for w := patience.Start(); ; {
		s.round(nodes...)
		if s.t.Failed() {
			s.t.FailNow()
		}
		if ok() {
			return
		}
		if w.Over(3 * time.Minute) {
			s.t.Logf("%+v", s.bootstrap)
			for _, n := range nodes {
				s.t.Logf("%s: %+v, alone %v", n.id, s.reports[n.id], n.alone)
			}
			s.t.Fatalf("waited 3 min for: %s", what)
		}
		time.Sleep(50 * time.Millisecond) // the period of an agent, shortened
	}
}

func member(n *testNode) Member { return Member{Node: n.id, Address: n.address} }

func (s *site) whole(nodes ...*testNode) func() bool {
	return func() bool {
		for _, n := range nodes {
			r := s.reports[n.id]
			_, member := Intent{Members: s.members}.member(n.id)
			if !r.Chassis || len(r.Problems) > 0 || member && (!r.NB.Settled || !r.SB.Settled || r.NB.Cluster != s.bootstrap.NB) {
				return false
			}
		}
		return s.bootstrap.NB != "" && s.bootstrap.SB != ""
	}
}
