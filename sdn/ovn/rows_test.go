package ovn

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/google/go-cmp/cmp"
	"github.com/ovn-kubernetes/libovsdb/model"
)

var golden = flag.Bool("update", false, "write the golden files")

// text formats the rows of units, with names in place of UUIDs.
func text(units []unit) string {
	names := map[string]string{}
	each := func(f func(model.Model, string)) {
		for _, u := range units {
			f(u.root, "")
			for _, c := range u.children {
				f(c, "\t")
			}
		}
	}
	each(func(m model.Model, _ string) { names[uuidOf(m)] = tableOf(m) + " " + nameOf(m) })
	var b strings.Builder
	each(func(m model.Model, indent string) {
		fmt.Fprintf(&b, "%s%s\n", indent, names[uuidOf(m)])
		for _, column := range owned[tableOf(m)] {
			if v := columnOf(m, column); !v.IsZero() && column != "external_ids" && column != "name" {
				fmt.Fprintf(&b, "%s\t%s: %s\n", indent, column, value(v, names))
			}
		}
	})
	return b.String()
}

// nameOf returns a readable name of a row.
func nameOf(m model.Model) string {
	for _, column := range []string{"name", "chassis_name", "vip", "cidr", "logical_ip", "ip_prefix"} {
		if slices.Contains(owned[tableOf(m)], column) {
			if v := columnOf(m, column); v.Kind() == reflect.String && v.String() != "" {
				return v.String()
			} else if v.Kind() == reflect.Pointer && !v.IsNil() {
				return v.Elem().String()
			}
		}
	}
	return columnOf(m, "external_ids").Interface().(map[string]string)[Of]
}

func value(v reflect.Value, names map[string]string) string {
	named := func(s string) string {
		if n, ok := names[s]; ok {
			return "<" + n + ">"
		}
		return s
	}
	switch x := v.Interface().(type) {
	case []string:
		var all []string
		for _, s := range x {
			all = append(all, named(s))
		}
		return strings.Join(all, ", ")
	case map[string]string:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			all = append(all, k+"="+x[k])
		}
		return strings.Join(all, "; ")
	case *string:
		return named(*x)
	case *int:
		return fmt.Sprint(*x)
	default:
		return fmt.Sprint(x)
	}
}

func TestRowsAreGolden(t *testing.T) {
	top := crowd(2, 2)
	top.Networks[1].Isolated = true
	top.Routers = top.Routers[:1]
	top.Ports[1].Nodes = []api.NodeID{"node-a", "node-b"}
	top.External[0].VLAN = 7
	red := top.Networks[0]
	top.FloatingIPs = []sdn.FloatingIP{{ID: "fip-1", Project: red.Project, External: top.External[0].ID, Address: top.Routers[0].Address4.Next(), Port: top.Ports[0].ID, Target: top.Ports[0].Address4}}
	top.LoadBalancers = []sdn.LoadBalancer{{ID: "lb-1", Project: red.Project, Network: red.ID, Address: sdn.HealthAddress(red.CIDR4).Prev(), Protocol: api.ProtocolTCP, Port: 80, Health: true,
		External: top.External[0].ID, Floating: top.FloatingIPs[0].Address.Next(), Backends: []sdn.Backend{{Port: top.Ports[0].ID, Address: top.Ports[0].Address4, Target: 8080}, {Port: top.Ports[1].ID, Address: top.Ports[1].Address4, Target: 8080}}}}
	top.SecurityGroups[0].Rules = append(top.SecurityGroups[0].Rules,
		sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolTCP, FirstPort: 80, LastPort: 80, Peer: prefixOf("192.0.2.0/24")},
		sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolUDP, FirstPort: 8000, LastPort: 8080, Peer: prefixOf("2001:db8::1/128")},
		sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolICMP}, sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolICMP6},
		sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolTCP, Peer: prefixOf("0.0.0.0/0")}, sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolICMP})
	if _, problems := top.Check(); len(problems) > 0 {
		t.Fatalf("Check of the test's topology = %+v, want no problems", problems)
	}
	got := text(rows(top))
	const path = "testdata/rows.txt"
	if *golden {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("rows mismatch; if intended, run with -update (-want +got):\n%s", d)
	}
}

// TestRowsReferToRows checks that a row comes after the rows that it refers
// to, and that all of them exist.
func TestRowsReferToRows(t *testing.T) {
	seen := map[string]bool{}
	for _, u := range rows(crowd(3, 3)) {
		for _, m := range append(u.children, u.root) {
			if seen[uuidOf(m)] {
				t.Errorf("%s %s exists twice, want once", tableOf(m), nameOf(m))
			}
			seen[uuidOf(m)] = true
		}
		for _, m := range append(u.children, u.root) {
			for _, column := range owned[tableOf(m)] {
				if !references(tableOf(m), column) || tableOf(m) == "Port_Group" && column == "ports" {
					continue
				}
				for _, id := range columnOf(m, column).Interface().([]string) {
					if !seen[id] {
						t.Errorf("%s %s: column %s refers to a row %s that does not exist before it", tableOf(m), nameOf(m), column, id)
					}
				}
			}
		}
	}
}

// TestGatewaysStay checks that removing a gateway moves only the projects that
// used it.
func TestGatewaysStay(t *testing.T) {
	first := func(gateways ...api.NodeID) map[api.ProjectID]string {
		m := map[api.ProjectID]string{}
		for i := range 200 {
			p := api.ProjectID(fmt.Sprint("prj-", i))
			r := newRower(sdn.Topology{Cluster: "c"})
			r.gatewayGroup(p, gateways)
			m[p] = nameOf(r.gateways[0].children[0])
		}
		return m
	}
	before, after := first("a", "b", "c", "d"), first("a", "b", "c")
	count := map[string]int{}
	for p, g := range before {
		count[g]++
		if g != "d" && after[p] != g {
			t.Errorf("gateway of %s changed from %s to %s, want it unchanged", p, g, after[p])
		}
	}
	for g, n := range count {
		if n < 25 {
			t.Errorf("%s is the gateway of %d of 200 projects, want at least 25", g, n)
		}
	}
}
