package ovn

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/basalt-gpu/basalt/sdn/ovn/sb"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

func sbModel() (model.ClientDBModel, error) {
	return model.NewClientDBModel("OVN_Southbound", map[string]model.Model{
		sb.SBGlobalTable: &sb.SBGlobal{}, sb.ChassisTable: &sb.Chassis{}, sb.ChassisPrivateTable: &sb.ChassisPrivate{},
		sb.EncapTable: &sb.Encap{}, sb.PortBindingTable: &sb.PortBinding{}, sb.ServiceMonitorTable: &sb.ServiceMonitor{},
	})
}

func monitorSB(c client.Client) *client.Monitor {
	g, ch, cp, e, pb, sm := &sb.SBGlobal{}, &sb.Chassis{}, &sb.ChassisPrivate{}, &sb.Encap{}, &sb.PortBinding{}, &sb.ServiceMonitor{}
	return c.NewMonitor(
		client.WithTable(g, &g.NbCfg), client.WithTable(ch, &ch.Name, &ch.Hostname, &ch.Encaps), client.WithTable(cp, &cp.Name, &cp.NbCfg),
		client.WithTable(e, &e.IP, &e.ChassisName), client.WithTable(pb, &pb.LogicalPort, &pb.Type, &pb.Chassis, &pb.Up),
		client.WithTable(sm, &sm.LogicalPort, &sm.IP, &sm.Port, &sm.Protocol, &sm.Status))
}

// Observe returns the state of the network.
func (c *Controller) Observe(ctx context.Context) (sdn.State, error) {
	north, err := c.nb.open(ctx)
	if err != nil {
		return sdn.State{}, err
	}
	south, err := c.sb.open(ctx)
	if err != nil {
		return sdn.State{}, err
	}
	var global []sb.SBGlobal
	if err := south.List(ctx, &global); err != nil || !south.Connected() {
		return sdn.State{}, c.sb.unavailable(client.ErrNotConnected)
	}
	s := sdn.State{Ports: map[sdn.PortID]sdn.PortState{}, Chassis: map[api.NodeID]sdn.ChassisState{},
		Gateways: map[api.ProjectID]api.NodeID{}, Backends: map[api.LoadBalancerID]sdn.BackendState{}}
	asked := 0
	for _, g := range global {
		asked = g.NbCfg
	}
	names := chassis(south, asked, s.Chassis)
	redirects := map[string]api.ProjectID{} // of the routers' external ports
	for _, m := range north.Cache().Table(nb.LogicalRouterTable).RowsShallow() {
		r := m.(*nb.LogicalRouter)
		for _, id := range r.Ports {
			if r.Name != RouterName(api.ProjectID(r.ExternalIDs[Of])) {
				continue // a branch
			}
			if p, ok := north.Cache().Table(nb.LogicalRouterPortTable).Row(id).(*nb.LogicalRouterPort); ok && p.HaChassisGroup != nil {
				redirects[redirectName(p.Name)] = api.ProjectID(r.ExternalIDs[Of])
			}
		}
	}
	for _, m := range south.Cache().Table(sb.PortBindingTable).RowsShallow() {
		b := m.(*sb.PortBinding)
		var node api.NodeID
		if b.Chassis != nil {
			node = names[*b.Chassis]
		}
		if project, ok := redirects[b.LogicalPort]; ok && node != "" {
			s.Gateways[project] = node
		} else if id := sdn.PortID(b.LogicalPort); b.Type == "" {
			if _, ours := id.Instance(); ours {
				s.Ports[id] = sdn.PortState{Up: b.Up != nil && *b.Up, Node: node}
			}
		}
	}
	backends(north, south, s.Backends)
	return s, nil
}

// chassis returns the chassis by their row's UUID, and adds their states.
func chassis(south client.Client, asked int, into map[api.NodeID]sdn.ChassisState) map[string]api.NodeID {
	current, encaps, names := map[string]bool{}, map[string]netip.Addr{}, map[string]api.NodeID{}
	for _, m := range south.Cache().Table(sb.ChassisPrivateTable).RowsShallow() {
		p := m.(*sb.ChassisPrivate)
		current[p.Name] = p.NbCfg >= asked
	}
	for _, m := range south.Cache().Table(sb.EncapTable).RowsShallow() {
		e := m.(*sb.Encap)
		encaps[e.ChassisName], _ = netip.ParseAddr(e.IP)
	}
	for id, m := range south.Cache().Table(sb.ChassisTable).RowsShallow() {
		ch := m.(*sb.Chassis)
		names[id] = api.NodeID(ch.Name)
		into[api.NodeID(ch.Name)] = sdn.ChassisState{Hostname: ch.Hostname, Encap: encaps[ch.Name], Current: current[ch.Name]}
	}
	return names
}

// backends adds the results of health checks (Service_Monitor) of load
// balancers with health checks (Load_Balancer.ip_port_mappings).
func backends(north, south client.Client, into map[api.LoadBalancerID]sdn.BackendState) {
	type check struct{ port, address, protocol string }
	up := map[check]bool{}
	for _, m := range south.Cache().Table(sb.ServiceMonitorTable).RowsShallow() {
		s := m.(*sb.ServiceMonitor)
		if s.Status != nil && *s.Status == sb.ServiceMonitorStatusOnline && s.Protocol != nil {
			up[check{s.LogicalPort, s.IP + ":" + strconv.Itoa(s.Port), *s.Protocol}] = true
		}
	}
	for _, m := range north.Cache().Table(nb.LoadBalancerTable).RowsShallow() {
		lb := m.(*nb.LoadBalancer)
		if len(lb.HealthCheck) == 0 || lb.Protocol == nil {
			continue
		}
		var state sdn.BackendState
		for _, targets := range lb.Vips {
			state = sdn.BackendState{} // every address has the same backends
			for target := range strings.SplitSeq(targets, ",") {
				address, _, _ := strings.Cut(target, ":")
				port, _, _ := strings.Cut(lb.IPPortMappings[address], ":")
				if up[check{port, target, *lb.Protocol}] {
					state.Up++
				} else if target != "" {
					state.Down++
				}
			}
		}
		into[api.LoadBalancerID(lb.ExternalIDs[Of])] = state
	}
}

// Settle waits until every chassis has applied the present content of the
// databases (ovn-nbctl --wait=hv). It does not return while a chassis is dead,
// until ctx ends.
func (c *Controller) Settle(ctx context.Context) error {
	db, err := c.nb.open(ctx)
	if err != nil {
		return err
	}
	var global []nb.NBGlobal
	if err := db.List(ctx, &global); err != nil || len(global) != 1 {
		return c.nb.unavailable(client.ErrNotConnected)
	}
	where := []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: global[0].UUID})}
	if err := c.transact(ctx, db, []ovsdb.Operation{{Op: ovsdb.OperationMutate, Table: nb.NBGlobalTable, Where: where,
		Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("nb_cfg", ovsdb.MutateOperationAdd, 1)}}}); err != nil {
		return err
	}
	want := global[0].NbCfg + 1
	return c.nb.until(ctx, "not every node has applied the configuration", func() (bool, error) {
		g, ok := db.Cache().Table(nb.NBGlobalTable).Row(global[0].UUID).(*nb.NBGlobal)
		return ok && g.HvCfg >= want, nil
	})
}
