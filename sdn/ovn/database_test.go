package ovn

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// database starts an ovsdb-server with one database of the installed schema.
func database(t testing.TB, schema string) string {
	t.Helper()
	return serve(t, schema).endpoint
}

// server is an ovsdb-server with one database.
type server struct {
	process
	endpoint, file, ctl string
}

func serve(t testing.TB, schema string) server {
	t.Helper()
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "sdn") // short: it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file, socket, ctl := filepath.Join(dir, "db"), filepath.Join(dir, "s"), filepath.Join(dir, "ctl")
	if out, err := exec.Command("ovsdb-tool", "create", file, schema).CombinedOutput(); err != nil {
		t.Fatalf("ovsdb-tool create: %v: %s", err, out)
	}
	cmd := exec.Command("ovsdb-server", "--remote=punix:"+socket, "--unixctl="+ctl, "--no-chdir", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	patience.Until(t, 10*time.Second, "an answer of ovsdb-server", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return server{process: process(cmd.Process.Pid), endpoint: "unix:" + socket, file: file, ctl: ctl}
}

// nbSchema returns the schema of the installed OVN, or of another one that is
// on PATH: BASALT_OVN_SCHEMAS is then the directory of its schemas.
func nbSchema(t testing.TB) string {
	installed := filepath.Join(cmp.Or(os.Getenv("BASALT_OVN_SCHEMAS"), "/usr/share/ovn"), "ovn-nb.ovsschema")
	if _, err := os.Stat(installed); err != nil {
		t.Skipf("host: %v", err)
	}
	return installed
}

func controller(t testing.TB) (*Controller, string) {
	endpoint := database(t, nbSchema(t))
	c := New(Options{NB: []string{endpoint}})
	t.Cleanup(func() { c.Close() })
	return c, endpoint
}

// crowd returns a topology of networks with the given number of ports each.
func crowd(networks, ports int) sdn.Topology {
	t := sdn.Topology{Cluster: "c1", Forbidden: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	t.External = []sdn.ExternalNetwork{{ID: "ext-1", Physical: "external", CIDR4: netip.MustParsePrefix("100.64.0.0/16"), Gateway4: netip.MustParseAddr("100.64.0.1"),
		Gateways: []api.NodeID{"node-a", "node-b", "node-c"}}}
	out := netip.MustParseAddr("100.64.1.0")
	for i := range networks {
		id, project := api.NetworkID(fmt.Sprintf("net-%04d", i)), api.ProjectID(fmt.Sprintf("prj-%04d", i))
		n := sdn.Network{ID: id, Project: project, CIDR4: netip.MustParsePrefix("10.64.0.0/24"), Gateway4: netip.MustParseAddr("10.64.0.1"),
			CIDR6: netip.MustParsePrefix(fmt.Sprintf("fd00:0:%x::/64", i)), Gateway6: netip.MustParseAddr(fmt.Sprintf("fd00:0:%x::1", i)),
			MTU: sdn.DefaultMTU, Domain: fmt.Sprintf("p%d.internal", i)}
		group := api.SecurityGroupID(fmt.Sprintf("sg-%04d", i))
		t.SecurityGroups = append(t.SecurityGroups, sdn.SecurityGroup{ID: group, Project: project, Rules: []sdn.Rule{
			{Direction: api.Ingress, Protocol: api.ProtocolAny, Group: group}, {Direction: api.Egress, Protocol: api.ProtocolAny}}})
		for j := range ports {
			p := sdn.Port{ID: sdn.PortOf(api.InstanceID(fmt.Sprintf("ins-%04d%04d", i, j)), 0), Network: id,
				MAC:      fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", i>>8, i&255, j>>8, j&255),
				Address4: netip.AddrFrom4([4]byte{10, 64, 0, byte(10 + j)}), Address6: netip.MustParseAddr(fmt.Sprintf("fd00:0:%x::%x", i, 10+j)),
				SecurityGroups: []api.SecurityGroupID{group}, Hostname: fmt.Sprintf("vm%d", j), Nodes: []api.NodeID{"node-a"}}
			t.Ports = append(t.Ports, p)
		}
		t.Networks = append(t.Networks, n)
		out = out.Next()
		t.Routers = append(t.Routers, sdn.Router{Project: project, External: "ext-1", Address4: out})
	}
	return t
}

// left returns the plan that remains, computed from the database's present
// content.
func left(t testing.TB, c *Controller, topology sdn.Topology) plan {
	t.Helper()
	db, err := c.nb.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := rows(topology)
	is, err := c.have(t.Context(), db, topology.Cluster, want)
	if err != nil {
		t.Fatal(err)
	}
	return diff(want, is)
}

func count(t testing.TB, c *Controller, table string) int {
	db, err := c.nb.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return db.Cache().Table(table).Len()
}

func apply(t testing.TB, c *Controller, topology sdn.Topology) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.Apply(ctx, topology); err != nil {
		t.Fatal(err)
	}
	if p := left(t, c, topology); !p.empty() {
		t.Fatalf("plan after Apply = %+v, want an empty one", p)
	}
}

func TestApplyToADatabase(t *testing.T) {
	c, endpoint := controller(t)
	// Rows of another owner, which are similar to Basalt's.
	db, err := c.nb.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.transact(t.Context(), db, []ovsdb.Operation{
		{Op: ovsdb.OperationInsert, Table: nb.LogicalSwitchTable, Row: ovsdb.Row{"name": "theirs"}},
		{Op: ovsdb.OperationInsert, Table: nb.PortGroupTable, Row: ovsdb.Row{"name": "their_group", "external_ids": ovsdb.OvsMap{GoMap: map[any]any{Owner: "another"}}}},
	}); err != nil {
		t.Fatal(err)
	}
	big := crowd(3, 4)
	apply(t, c, big)
	if n := count(t, c, nb.LogicalSwitchPortTable); n != 3*(4+2)+1+3 {
		t.Errorf("database has %d logical ports, want %d", n, 3*(4+2)+1+3)
	}

	// One port is removed, one is added, one changes its groups; a network is
	// removed.
	small := crowd(2, 4)
	small.Ports = append(small.Ports[:1], small.Ports[2:]...)
	small.Ports[0].SecurityGroups = nil
	p := small.Ports[1]
	p.ID, p.MAC, p.Address4, p.Address6 = sdn.PortOf("ins-new", 0), "52:54:00:00:00:77", netip.MustParseAddr("10.64.0.77"), netip.Addr{}
	small.Ports = append(small.Ports, p)
	apply(t, c, small)

	// Another leader takes over after Basalt's rows were changed by another
	// program.
	other := New(Options{NB: []string{endpoint}})
	t.Cleanup(func() { other.Close() })
	if p := left(t, other, small); !p.empty() {
		t.Errorf("plan of a second controller = %+v, want an empty one", p)
	}
	if err := c.transact(t.Context(), db, []ovsdb.Operation{
		{Op: ovsdb.OperationUpdate, Table: nb.LogicalSwitchTable, Row: ovsdb.Row{"name": "meddled", "external_ids": ovsdb.OvsMap{}},
			Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, "net-0000")}},
		{Op: ovsdb.OperationUpdate, Table: nb.PortGroupTable, Row: ovsdb.Row{"ports": ovsdb.OvsSet{}},
			Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, AllPorts)}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := other.nb.until(t.Context(), "the changes by another program", func() (bool, error) {
		db, err := other.nb.open(t.Context())
		if err != nil {
			return false, err
		}
		for _, m := range db.Cache().Table(nb.PortGroupTable).RowsShallow() {
			if pg := m.(*nb.PortGroup); pg.Name == AllPorts && len(pg.Ports) == 0 {
				return true, nil
			}
		}
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	apply(t, other, small)

	apply(t, other, sdn.Topology{Cluster: "c1"})
	for table, want := range map[string]int{nb.LogicalSwitchTable: 1, nb.LogicalSwitchPortTable: 0, nb.LogicalRouterTable: 0, nb.LogicalRouterPortTable: 0,
		nb.PortGroupTable: 3, nb.DHCPOptionsTable: 0, nb.DNSTable: 0, nb.NATTable: 0, nb.HAChassisGroupTable: 0, nb.AddressSetTable: 2} {
		if n := count(t, other, table); n != want {
			t.Errorf("after an empty topology table %s has %d rows, want %d", table, n, want)
		}
	}
}

func TestApplyRefusesContradictions(t *testing.T) {
	c := New(Options{NB: []string{"unix:/nowhere"}})
	bad := crowd(1, 2)
	bad.Ports[1].Address4 = bad.Ports[0].Address4
	if err := c.Apply(t.Context(), bad); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Apply of two ports with one address = %v, want invalid", err)
	}
	if err := c.Apply(t.Context(), crowd(1, 1)); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Apply without a database = %v, want unavailable", err)
	}
}

// BenchmarkApply measures Apply of 1,000 networks of 20 ports to an empty
// database, and of one more port.
func BenchmarkApply(b *testing.B) {
	networks, ports := 1000, 20
	for b.Loop() {
		b.StopTimer()
		c, _ := controller(b)
		full := crowd(networks, ports+1)
		less := full
		less.Ports = full.Ports[:len(full.Ports)-1]
		b.StartTimer()
		from := time.Now()
		if err := c.Apply(b.Context(), less); err != nil {
			b.Fatal(err)
		}
		all := time.Now()
		if err := c.Apply(b.Context(), full); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(all.Sub(from).Milliseconds()), "ms/all")
		b.ReportMetric(float64(time.Since(all).Milliseconds()), "ms/port")
	}
}

func prefixOf(s string) netip.Prefix { return netip.MustParsePrefix(s) }
