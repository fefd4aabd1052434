package ovn

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// owned are the columns that this package writes, by table. Every other column
// belongs to OVN or to an operator. Nothing is written to DNS: rows of earlier
// versions are removed.
var owned = map[string][]string{
	nb.AddressSetTable:               {"name", "addresses", "external_ids"},
	nb.HAChassisGroupTable:           {"name", "ha_chassis", "external_ids"},
	nb.HAChassisTable:                {"chassis_name", "priority", "external_ids"},
	nb.DHCPOptionsTable:              {"cidr", "options", "external_ids"},
	nb.DNSTable:                      {"records", "external_ids"},
	nb.LoadBalancerTable:             {"name", "protocol", "vips", "ip_port_mappings", "options", "health_check", "external_ids"},
	nb.LoadBalancerHealthCheckTable:  {"vip", "options", "external_ids"},
	nb.PortGroupTable:                {"name", "ports", "acls", "external_ids"},
	nb.ACLTable:                      {"name", "direction", "priority", "action", "match", "options", "external_ids"},
	nb.LogicalSwitchTable:            {"name", "ports", "acls", "load_balancer", "dns_records", "other_config", "external_ids"},
	nb.LogicalSwitchPortTable:        {"name", "type", "addresses", "port_security", "options", "dhcpv4_options", "dhcpv6_options", "tag", "external_ids"},
	nb.LogicalRouterTable:            {"name", "ports", "static_routes", "policies", "nat", "load_balancer", "options", "external_ids"},
	nb.LogicalRouterPortTable:        {"name", "mac", "networks", "ipv6_ra_configs", "ha_chassis_group", "external_ids"},
	nb.LogicalRouterStaticRouteTable: {"ip_prefix", "nexthop", "output_port", "external_ids"},
	nb.LogicalRouterPolicyTable:      {"priority", "match", "action", "nexthops", "external_ids"},
	nb.NATTable:                      {"type", "external_ip", "logical_ip", "external_ids"},
}

// watched are columns that are only read, see RetryGateways.
var watched = map[string][]string{nb.LogicalRouterPortTable: {"options"}}

// roots are the tables whose rows exist without references to them, in the
// order in which they are written. They are swept in the opposite order.
var roots = []string{
	nb.AddressSetTable, nb.HAChassisGroupTable, nb.DHCPOptionsTable, nb.DNSTable, nb.LoadBalancerTable,
	nb.PortGroupTable, nb.LogicalSwitchTable, nb.LogicalRouterTable,
}

// have are Basalt's rows in the database: table, UUID, row.
type have map[string]map[string]model.Model

// change is a change of one row.
type change struct {
	table string
	row   model.Model // the wanted row; for a deletion the present one
	kind  kind
	// columns are the columns of an update.
	columns []string
	// column and uuids are those of a join or part.
	column string
	uuids  []string
}

type kind int

const (
	create kind = iota
	update
	remove
	// join and part add to and remove from a set of references of any size.
	join
	part
)

// plan are the required changes, in this order. Each step is a list of groups
// of changes; a group must be executed in one transaction.
type plan struct {
	// part: references that are not wanted any more. Rows that exist only by
	// references disappear.
	part [][]change
	// write: new and changed rows.
	write [][]change
	// sweep: rows of roots that are not wanted any more.
	sweep [][]change
}

func (p plan) empty() bool { return len(p.part)+len(p.write)+len(p.sweep) == 0 }

// diff returns the plan from the present rows to the wanted ones.
func diff(want []unit, h have) plan {
	var p plan
	wanted := map[string]bool{}
	memberships := sync.OnceValue(func() map[string][]*nb.PortGroup { return membershipsOf(want) })
	for _, u := range want {
		var parts, writes []change
		for _, c := range u.children {
			w, _ := compare(c, h)
			writes = append(writes, w...)
			if lsp, ok := c.(*nb.LogicalSwitchPort); ok && len(w) > 0 && w[0].kind == create {
				// A new port joins its groups in the same transaction: without them it
				// would be unprotected.
				for _, pg := range memberships()[lsp.UUID] {
					writes = append(writes, change{table: nb.PortGroupTable, row: pg, kind: join, column: "ports", uuids: []string{lsp.UUID}})
				}
			}
		}
		w, pt := compare(u.root, h)
		writes, parts = append(w, writes...), append(parts, pt...)
		wanted[uuidOf(u.root)] = true
		if len(writes) > 0 {
			p.write = append(p.write, writes)
		}
		if len(parts) > 0 {
			p.part = append(p.part, parts)
		}
	}
	for _, table := range slices.Backward(roots) {
		for _, id := range slices.Sorted(maps.Keys(h[table])) {
			if !wanted[id] {
				gone := []change{{table: table, row: h[table][id], kind: remove}}
				if table == nb.LogicalSwitchTable || table == nb.LogicalRouterTable {
					// Names of ports are unique in the whole database: they must be free
					// before another port can use them.
					p.part = append(p.part, gone)
				} else {
					p.sweep = append(p.sweep, gone)
				}
			}
		}
	}
	return p
}

func membershipsOf(want []unit) map[string][]*nb.PortGroup {
	m := map[string][]*nb.PortGroup{}
	for _, u := range want {
		if pg, ok := u.root.(*nb.PortGroup); ok {
			for _, p := range pg.Ports {
				m[p] = append(m[p], pg)
			}
		}
	}
	return m
}

// compare compares one row with the present one. It returns what to write, and
// what to remove from its sets of references before.
func compare(want model.Model, h have) (write, parts []change) {
	table := tableOf(want)
	is := h[table][uuidOf(want)]
	if is == nil {
		if pg, ok := want.(*nb.PortGroup); ok {
			c := *pg
			c.Ports = slices.DeleteFunc(slices.Clone(pg.Ports), func(id string) bool { return h[nb.LogicalSwitchPortTable][id] == nil })
			want = &c // new ports join in the transaction that creates them
		}
		return []change{{table: table, row: want, kind: create}}, nil
	}
	var columns []string
	a, b := reflect.ValueOf(want).Elem(), reflect.ValueOf(is).Elem()
	for _, f := range layout().owned[table] {
		w, i, column := a.Field(f.index), b.Field(f.index), f.column
		if !f.reference {
			if !same(column, w, i) {
				columns = append(columns, column)
			}
			continue
		}
		added, gone := setDiff(*as[[]string](w), *as[[]string](i))
		if table == nb.PortGroupTable && column == "ports" {
			added = slices.DeleteFunc(added, func(id string) bool { return h[nb.LogicalSwitchPortTable][id] == nil })
		}
		if len(gone) > 0 {
			parts = append(parts, change{table: table, row: want, kind: part, column: column, uuids: gone})
		}
		if len(added) > 0 {
			write = append(write, change{table: table, row: want, kind: join, column: column, uuids: added})
		}
	}
	if len(columns) > 0 {
		write = append([]change{{table: table, row: want, kind: update, columns: columns}}, write...)
	}
	return write, parts
}

// references reports whether a column is a set of references that may be long
// and refers to rows of Basalt.
func references(table, column string) bool {
	switch column {
	case "ports", "acls", "nat", "static_routes", "policies", "load_balancer", "dns_records", "health_check", "ha_chassis":
		return true
	}
	return false
}

func setDiff(want, is []string) (added, gone []string) {
	if slices.Equal(want, is) {
		return nil, nil
	}
	w, i := setOf(want), setOf(is)
	for _, x := range want {
		if !i[x] {
			added = append(added, x)
		}
	}
	for _, x := range is {
		if !w[x] {
			gone = append(gone, x)
		}
	}
	return added, gone
}

func setOf(xs []string) map[string]bool {
	m := make(map[string]bool, len(xs))
	for _, x := range xs {
		m[x] = true
	}
	return m
}

// same reports whether two fields of rows are equal: sets in any order, and
// nil equals empty.
func same(column string, a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		added, gone := setDiff(*as[[]string](a), *as[[]string](b))
		return len(added)+len(gone) == 0
	case reflect.Map:
		x, y := *as[map[string]string](a), *as[map[string]string](b)
		if column != "external_ids" {
			return maps.Equal(x, y)
		}
		for k, v := range x { // other programs may add keys to Basalt's rows
			if y[k] != v {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Elem().Equal(b.Elem())
	default:
		return a.Equal(b)
	}
}

// as returns a pointer to a field: unlike Interface it copies nothing.
func as[T any](field reflect.Value) *T { return field.Addr().Interface().(*T) }
