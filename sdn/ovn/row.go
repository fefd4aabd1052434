package ovn

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// tables are the tables that this package writes, with their rows' types.
var tables = map[string]model.Model{
	nb.AddressSetTable: &nb.AddressSet{}, nb.HAChassisGroupTable: &nb.HAChassisGroup{}, nb.HAChassisTable: &nb.HAChassis{},
	nb.DHCPOptionsTable: &nb.DHCPOptions{}, nb.DNSTable: &nb.DNS{}, nb.LoadBalancerTable: &nb.LoadBalancer{},
	nb.LoadBalancerHealthCheckTable: &nb.LoadBalancerHealthCheck{}, nb.PortGroupTable: &nb.PortGroup{}, nb.ACLTable: &nb.ACL{},
	nb.LogicalSwitchTable: &nb.LogicalSwitch{}, nb.LogicalSwitchPortTable: &nb.LogicalSwitchPort{},
	nb.LogicalRouterTable: &nb.LogicalRouter{}, nb.LogicalRouterPortTable: &nb.LogicalRouterPort{},
	nb.LogicalRouterStaticRouteTable: &nb.LogicalRouterStaticRoute{}, nb.NATTable: &nb.NAT{},
	nb.LogicalRouterPolicyTable: &nb.LogicalRouterPolicy{},
}

// field is an owned field of a row.
type field struct {
	column    string
	index     int
	reference bool // see references
}

// layout is the layout of the rows: table by type, field by column, and the
// owned fields by table.
var layout = sync.OnceValue(func() (l struct {
	table  map[reflect.Type]string
	fields map[reflect.Type]map[string]int
	owned  map[string][]field
}) {
	l.table, l.fields, l.owned = map[reflect.Type]string{}, map[reflect.Type]map[string]int{}, map[string][]field{}
	for name, m := range tables {
		t := reflect.TypeOf(m).Elem()
		l.table[t], l.fields[t] = name, map[string]int{}
		for i := range t.NumField() {
			l.fields[t][t.Field(i).Tag.Get("ovsdb")] = i
		}
		for _, column := range owned[name] {
			l.owned[name] = append(l.owned[name], field{column, l.fields[t][column], references(name, column)})
		}
	}
	return l
})

func tableOf(m model.Model) string { return layout().table[reflect.TypeOf(m).Elem()] }

func columnOf(m model.Model, column string) reflect.Value {
	v := reflect.ValueOf(m).Elem()
	i, ok := layout().fields[v.Type()][column]
	if !ok {
		panic(fmt.Sprintf("sdn/ovn: %s has no column %s", v.Type(), column)) // the table `owned` is wrong
	}
	return v.Field(i)
}

// idsOf returns a row's external_ids.
func idsOf(m model.Model) map[string]string {
	return *columnOf(m, "external_ids").Addr().Interface().(*map[string]string)
}

func uuidOf(m model.Model) string { return columnOf(m, "_uuid").String() }
