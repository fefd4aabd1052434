package ovn

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// BenchmarkTopology measures writing networks of 20 ports to OVN's databases
// and processing them in ovn-northd, without any chassis, and then one more
// port. The baseline is the same switches and ports alone, without routers,
// DHCP, security groups and metadata, written in the same way. 1,000 networks
// take minutes.
func BenchmarkTopology(b *testing.B) {
	for _, networks := range []int{25, 50, 100, 200, 1000} {
		b.Run(fmt.Sprintf("networks=%d", networks), func(b *testing.B) {
			b.Run("rows=basalt", func(b *testing.B) {
				topology(b, networks, 20, func(c *Controller, t sdn.Topology) error { return c.Apply(b.Context(), t) })
			})
			b.Run("rows=plain", func(b *testing.B) {
				topology(b, networks, 20, func(c *Controller, t sdn.Topology) error { return c.write(b.Context(), t.Cluster, plain(t)) })
			})
		})
	}
}

func topology(b *testing.B, networks, ports int, write func(*Controller, sdn.Topology) error) {
	full := crowd(networks, ports)
	less := full
	less.Ports = full.Ports[:len(full.Ports)-1]
	for b.Loop() {
		north := serve(b, nbSchema(b))
		south := serve(b, filepath.Join(filepath.Dir(nbSchema(b)), "ovn-sb.ovsschema"))
		daemon := northd(b, north, south)
		c := New(Options{NB: []string{north.endpoint}})
		settle(b, north)
		for _, step := range []struct {
			name string
			of   sdn.Topology
		}{{"all", less}, {"port", full}} {
			from, worked, stored := time.Now(), daemon.cpu(b), south.cpu(b)
			if err := write(c, step.of); err != nil {
				b.Fatal(err)
			}
			written := time.Now()
			settle(b, north)
			b.ReportMetric(written.Sub(from).Seconds(), step.name+"-s")
			b.ReportMetric(time.Since(written).Seconds(), step.name+"-settle-s")
			b.ReportMetric(daemon.cpu(b)-worked, step.name+"-northd-cpu-s")
			b.ReportMetric(south.cpu(b)-stored, step.name+"-sb-cpu-s")
		}
		if n := count(b, c, nb.LogicalSwitchPortTable); n < networks*ports {
			b.Fatalf("database has %d logical ports, want at least %d", n, networks*ports)
		}
		flows := south.rows(b, "Logical_Flow")
		b.ReportMetric(float64(flows), "flows")
		b.ReportMetric(float64(flows)/float64(networks*ports), "flows/port")
		b.ReportMetric(south.size(b), "sb-MiB")
		b.ReportMetric(south.peak(b), "sb-peak-MiB")
		b.ReportMetric(daemon.peak(b), "northd-peak-MiB")
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		daemon.kill()
		north.kill()
		south.kill()
	}
}

// plain returns the baseline's rows: the networks' switches with the
// instances' ports. The address sets are included for the mark that the
// Controller writes.
func plain(t sdn.Topology) (units []unit) {
	for _, u := range rows(t) {
		switch root := u.root.(type) {
		case *nb.AddressSet:
			units = append(units, u)
		case *nb.LogicalSwitch:
			ls := *root
			ls.Ports, ls.OtherConfig = nil, nil
			bare := unit{root: &ls}
			for _, m := range u.children {
				if p := *m.(*nb.LogicalSwitchPort); p.Type == "" {
					p.Dhcpv4Options, p.Dhcpv6Options = nil, nil
					ls.Ports = append(ls.Ports, p.UUID)
					bare.children = append(bare.children, &p)
				}
			}
			units = append(units, bare)
		}
	}
	return units
}
