package ovn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/vs"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// ChassisOptions are the options of a node's Chassis.
type ChassisOptions struct {
	// DB is the endpoint of the node's Open vSwitch:
	// "unix:/run/openvswitch/db.sock".
	DB string
	// Bridge is the bridge that instances are connected to; empty: br-int.
	Bridge string
	// UID of the user that opens the taps (QEMU's); 0: root.
	UID int
	// ControllerSocket is ovn-controller's unixctl socket; empty: Health does not
	// check ovn-controller.
	ControllerSocket string
	// Settled is how long the count of an exit that is not requested any more
	// must be unchanged before its counter is removed; 0: 5 s.
	Settled time.Duration
	// Namespace, when not nil, runs a function in the node's network namespace,
	// where one process simulates several nodes on one machine.
	Namespace func(func() error) error
}

// Chassis implements sdn.Chassis over the node's Open vSwitch.
//
// A port is a row with the tap's name, and the tap. The row is written first
// and removed last: it records which port the tap belongs to, so Ports finds
// whatever a crash leaves.
type Chassis struct {
	o  ChassisOptions
	db *connection

	egress egress
}

var _ sdn.Chassis = (*Chassis)(nil)

// NewChassis returns the node's chassis. It connects at its first use.
func NewChassis(o ChassisOptions) *Chassis {
	o.Bridge = cmp.Or(o.Bridge, "br-int")
	o.Settled = cmp.Or(o.Settled, settled)
	if o.Namespace == nil {
		o.Namespace = func(f func() error) error { return f() }
	}
	return &Chassis{o: o, db: &connection{name: "the Open vSwitch database", endpoints: []string{o.DB}, database: vsModel, monitor: monitorVS}}
}

func vsModel() (model.ClientDBModel, error) {
	return model.NewClientDBModel("Open_vSwitch", map[string]model.Model{
		vs.OpenvSwitchTable: &vs.OpenvSwitch{}, vs.BridgeTable: &vs.Bridge{}, vs.PortTable: &vs.Port{}, vs.InterfaceTable: &vs.Interface{},
	})
}

func monitorVS(c client.Client) *client.Monitor {
	o, b, p, i := &vs.OpenvSwitch{}, &vs.Bridge{}, &vs.Port{}, &vs.Interface{}
	return c.NewMonitor(
		client.WithTable(o, &o.CurCfg, &o.NextCfg, &o.ExternalIDs), client.WithTable(b, &b.Name, &b.Ports, &b.DatapathType),
		client.WithTable(p, &p.Name, &p.Interfaces, &p.ExternalIDs),
		client.WithTable(i, &i.Name, &i.ExternalIDs, &i.MTURequest, &i.MTU, &i.Ofport, &i.Error))
}

// Keys of Interface.external_ids. iface-id and ovn-installed are OVN's.
const (
	ifaceID      = "iface-id"
	ovnInstalled = "ovn-installed"
	attachedMAC  = "attached-mac"
	ourPort      = "port" // the value of Owner for ports of instances
)

// tapName returns the name of a port's tap, which never changes.
func tapName(id sdn.PortID) string {
	h := sha256.Sum256([]byte(id))
	return "bt" + hex.EncodeToString(h[:6])
}

// Plug creates and connects the tap of a port.
func (c *Chassis) Plug(ctx context.Context, p sdn.Plug) (sdn.Tap, error) {
	if _, ok := p.Port.Instance(); !ok {
		return sdn.Tap{}, api.Errorf(api.CodeInvalid, "%q is not a valid port ID of an instance", p.Port)
	}
	db, bridge, err := c.bridge(ctx)
	if err != nil {
		return sdn.Tap{}, err
	}
	tap := sdn.Tap{Name: tapName(p.Port), MTU: cmp.Or(p.MTU, sdn.DefaultMTU), NoOffload: bridge.DatapathType == "netdev"}
	ids := map[string]string{Owner: ourPort, ifaceID: string(p.Port), attachedMAC: p.MAC, "iface-status": "active"}
	ops := c.newPort(tap, bridge.UUID, ids)
	if i := c.find(db, tap.Name); i != nil {
		ops = changePort(i, tap, ids)
	}
	if err := c.transact(ctx, db, ops); err != nil {
		return sdn.Tap{}, err
	}
	if err := c.o.Namespace(func() error { return makeTap(ctx, tap.Name, c.o.UID, p.Queues > 1) }); err != nil {
		return sdn.Tap{}, fmt.Errorf("sdn/ovn: create tap of port %s: %w", p.Port, err)
	}
	// The switch leaves the flags alone only after it has added the device. While
	// it adds it, ovs-vswitchd 3.1 (netdev-linux.c, update_flags) sets PROMISC by
	// writing all flags as they were when it opened the device: the device would
	// be down again for good.
	if err := c.awaitSwitch(ctx, db); err != nil {
		return sdn.Tap{}, err
	}
	if err := c.o.Namespace(func() error { return setLink(tap.Name, tap.MTU) }); err != nil {
		return sdn.Tap{}, fmt.Errorf("sdn/ovn: create tap of port %s: %w", p.Port, err)
	}
	if p.Now {
		return tap, nil
	}
	return tap, c.db.until(ctx, fmt.Sprintf("port %s is not active", p.Port), func() (bool, error) {
		i := c.find(db, tap.Name)
		return i != nil && i.ExternalIDs[ovnInstalled] == "true", nil
	})
}

func (c *Chassis) newPort(tap sdn.Tap, bridge string, ids map[string]string) []ovsdb.Operation {
	return []ovsdb.Operation{
		{Op: ovsdb.OperationInsert, Table: vs.InterfaceTable, UUIDName: "i", Row: ovsdb.Row{"name": tap.Name, "mtu_request": tap.MTU, "external_ids": ovsMap(ids)}},
		{Op: ovsdb.OperationInsert, Table: vs.PortTable, UUIDName: "p", Row: ovsdb.Row{"name": tap.Name, "interfaces": ovsdb.UUID{GoUUID: "i"}, "external_ids": ovsMap(map[string]string{Owner: ourPort})}},
		{Op: ovsdb.OperationMutate, Table: vs.BridgeTable, Where: byUUID(bridge),
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("ports", ovsdb.MutateOperationInsert, ovsdb.OvsSet{GoSet: []any{ovsdb.UUID{GoUUID: "p"}}})}},
	}
}

// changePort updates an existing port: only the given keys of external_ids.
func changePort(i *vs.Interface, tap sdn.Tap, ids map[string]string) []ovsdb.Operation {
	keys := make([]any, 0, len(ids))
	for k, v := range ids {
		if i.ExternalIDs[k] != v {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 && i.MTURequest != nil && *i.MTURequest == tap.MTU {
		return nil
	}
	return []ovsdb.Operation{
		{Op: ovsdb.OperationUpdate, Table: vs.InterfaceTable, Where: byUUID(i.UUID), Row: ovsdb.Row{"mtu_request": tap.MTU}},
		{Op: ovsdb.OperationMutate, Table: vs.InterfaceTable, Where: byUUID(i.UUID), Mutations: []ovsdb.Mutation{
			*ovsdb.NewMutation("external_ids", ovsdb.MutateOperationDelete, ovsdb.OvsSet{GoSet: keys}),
			*ovsdb.NewMutation("external_ids", ovsdb.MutateOperationInsert, ovsMap(ids))}},
	}
}

// awaitSwitch waits until the switch has applied its configuration as of this
// call.
func (c *Chassis) awaitSwitch(ctx context.Context, db client.Client) error {
	for id := range db.Cache().Table(vs.OpenvSwitchTable).RowsShallow() {
		results, err := c.results(ctx, db, []ovsdb.Operation{
			{Op: ovsdb.OperationMutate, Table: vs.OpenvSwitchTable, Where: byUUID(id), Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("next_cfg", ovsdb.MutateOperationAdd, 1)}},
			{Op: ovsdb.OperationSelect, Table: vs.OpenvSwitchTable, Where: byUUID(id), Columns: []string{"next_cfg"}},
		})
		if err != nil {
			return err
		}
		if len(results[1].Rows) != 1 {
			return c.db.unavailable(client.ErrNotConnected) // it has another database
		}
		asked, ok := results[1].Rows[0]["next_cfg"].(float64)
		if !ok {
			return fmt.Errorf("sdn/ovn: Open_vSwitch: next_cfg is %v", results[1].Rows[0]["next_cfg"])
		}
		return c.db.until(ctx, "ovs-vswitchd has not applied the configuration", func() (bool, error) {
			o, ok := db.Cache().Table(vs.OpenvSwitchTable).Row(id).(*vs.OpenvSwitch)
			return ok && o.CurCfg >= int(asked), nil
		})
	}
	return c.db.unavailable(client.ErrNotConnected)
}

// Unplug removes the tap.
func (c *Chassis) Unplug(ctx context.Context, id sdn.PortID) error {
	db, bridge, err := c.bridge(ctx)
	if err != nil {
		return err
	}
	name := tapName(id)
	if err := c.o.Namespace(func() error { return removeTap(ctx, name) }); err != nil {
		return fmt.Errorf("sdn/ovn: delete tap of port %s: %w", id, err)
	}
	for port, m := range db.Cache().Table(vs.PortTable).RowsShallow() {
		if m.(*vs.Port).Name != name {
			continue
		}
		if err := c.transact(ctx, db, []ovsdb.Operation{{Op: ovsdb.OperationMutate, Table: vs.BridgeTable, Where: byUUID(bridge.UUID),
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("ports", ovsdb.MutateOperationDelete, ovsdb.OvsSet{GoSet: []any{ovsdb.UUID{GoUUID: port}}})}}}); err != nil {
			return err
		}
	}
	return c.db.until(ctx, "the port was not removed", func() (bool, error) { return c.find(db, name) == nil, nil })
}

// Ports returns the ports that are plugged on this node.
func (c *Chassis) Ports(ctx context.Context) ([]sdn.Plugged, error) {
	db, bridge, err := c.bridge(ctx)
	if err != nil {
		return nil, err
	}
	var all []sdn.Plugged
	for _, m := range db.Cache().Table(vs.InterfaceTable).RowsShallow() {
		i := m.(*vs.Interface)
		if i.ExternalIDs[Owner] != ourPort {
			continue
		}
		p := sdn.Plugged{Port: sdn.PortID(i.ExternalIDs[ifaceID]), MAC: i.ExternalIDs[attachedMAC], Installed: i.ExternalIDs[ovnInstalled] == "true",
			Tap: sdn.Tap{Name: i.Name, NoOffload: bridge.DatapathType == "netdev"}}
		if i.MTURequest != nil {
			p.Tap.MTU = *i.MTURequest
		}
		if i.Error != nil {
			p.Error = *i.Error
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b sdn.Plugged) int { return strings.Compare(string(a.Port), string(b.Port)) })
	return all, nil
}

// Health returns nil if the switch applies its configuration and
// ovn-controller is connected.
func (c *Chassis) Health(ctx context.Context) error {
	db, _, err := c.bridge(ctx)
	if err != nil {
		return err
	}
	if err := c.awaitSwitch(ctx, db); err != nil {
		return err
	}
	if c.o.ControllerSocket == "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, "ovn-appctl", "-t", c.o.ControllerSocket, "connection-status").CombinedOutput()
	if err != nil {
		return api.Errorf(api.CodeUnavailable, "ovn-controller is not responding: %s", strings.TrimSpace(string(out)))
	}
	if s := strings.TrimSpace(string(out)); s != "connected" {
		return api.Errorf(api.CodeUnavailable, "ovn-controller is not connected to the OVN southbound database")
	}
	return nil
}

// Close closes the connection; plugged ports remain.
func (c *Chassis) Close() error {
	c.db.close()
	return nil
}

// bridge returns the connected client and the bridge that instances are
// connected to. ovn-controller creates the bridge.
func (c *Chassis) bridge(ctx context.Context) (client.Client, *vs.Bridge, error) {
	db, err := c.db.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []vs.OpenvSwitch
	if err := db.List(ctx, &all); err != nil || !db.Connected() {
		return nil, nil, c.db.unavailable(cmp.Or(err, client.ErrNotConnected))
	}
	for _, m := range db.Cache().Table(vs.BridgeTable).RowsShallow() {
		if b := m.(*vs.Bridge); b.Name == c.o.Bridge {
			return db, b, nil
		}
	}
	return nil, nil, api.Errorf(api.CodeUnavailable, "bridge %s does not exist yet", c.o.Bridge)
}

func (c *Chassis) find(db client.Client, tap string) *vs.Interface {
	for _, m := range db.Cache().Table(vs.InterfaceTable).RowsShallow() {
		if i := m.(*vs.Interface); i.Name == tap {
			return i
		}
	}
	return nil
}

func (c *Chassis) transact(ctx context.Context, db client.Client, ops []ovsdb.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	_, err := c.results(ctx, db, ops)
	return err
}

// results executes a transaction and returns the results, one per operation.
func (c *Chassis) results(ctx context.Context, db client.Client, ops []ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	results, err := db.Transact(ctx, ops...)
	if err != nil {
		return nil, c.db.unavailable(err)
	}
	if failed, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		return nil, fmt.Errorf("sdn/ovn: Open_vSwitch: %w %v", err, failed)
	}
	return results, nil
}

func byUUID(id string) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: id})}
}

func ovsMap(m map[string]string) ovsdb.OvsMap {
	o, _ := ovsdb.NewOvsMap(m)
	return o
}
