package ovn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/google/uuid"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Options are the options of a Controller.
type Options struct {
	// NB and SB are the databases' endpoints, one per member: "unix:/path",
	// "tcp:HOST:PORT" or "ssl:HOST:PORT".
	NB, SB []string
	TLS    *tls.Config // for ssl
}

// Controller implements sdn.Controller over OVN's databases.
type Controller struct {
	nb, sb *connection

	// applying is held by Apply and RetryGateways, which run one at a time. It guards
	// the following fields.
	applying  sync.Mutex
	unclaimed checkCounts // of RetryGateways
}

var _ sdn.Controller = (*Controller)(nil)

// New returns a Controller. It connects at its first use.
func New(o Options) *Controller {
	return &Controller{
		unclaimed: checkCounts{},
		nb:        &connection{name: "the OVN northbound database", endpoints: o.NB, tls: o.TLS, leader: true, database: nbModel, monitor: monitorNB},
		sb:        &connection{name: "the OVN southbound database", endpoints: o.SB, tls: o.TLS, leader: true, database: sbModel, monitor: monitorSB},
	}
}

// nbModel has only the tables that this package uses, so that a newer schema
// may lack the others.
func nbModel() (model.ClientDBModel, error) {
	all := map[string]model.Model{nb.NBGlobalTable: &nb.NBGlobal{}}
	for t, m := range tables {
		all[t] = m
	}
	return model.NewClientDBModel("OVN_Northbound", all)
}

func monitorNB(c client.Client) *client.Monitor {
	var options []client.MonitorOption
	for table, m := range tables {
		var fields []any
		for _, column := range slices.Concat(owned[table], watched[table]) {
			fields = append(fields, columnOf(m, column).Addr().Interface())
		}
		options = append(options, client.WithTable(m, fields...))
	}
	g := &nb.NBGlobal{}
	return c.NewMonitor(append(options, client.WithTable(g, &g.NbCfg, &g.SbCfg, &g.HvCfg))...)
}

// Apply makes the network match t.
func (c *Controller) Apply(ctx context.Context, t sdn.Topology) error {
	if _, problems := t.Check(); len(problems) > 0 {
		p := problems[0]
		return api.Errorf(api.CodeInvalid, "%s %s: %s", p.Kind, p.ID, p.Error.Message)
	}
	if t.Cluster == "" {
		return errors.New("sdn/ovn: Topology.Cluster is empty")
	}
	return c.write(ctx, t.Cluster, rows(t))
}

// write writes the differences to the wanted rows.
func (c *Controller) write(ctx context.Context, cluster string, want []unit) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	db, err := c.nb.open(ctx)
	if err != nil {
		return err
	}
	is, err := c.have(ctx, db, cluster, want)
	if err != nil {
		return err
	}
	p := diff(want, is)
	if p.empty() {
		return nil
	}
	var all [][]ovsdb.Operation
	for _, step := range [][][]change{p.part, p.write, p.sweep} {
		ts, err := transactions(step)
		if err != nil {
			return fmt.Errorf("sdn/ovn: %w", err)
		}
		all = append(all, ts...)
	}
	// The last transaction writes a mark: when the cache contains it, it contains
	// all changes, and the next Apply starts from there.
	revision := uuid.NewString()
	marker := rowID(cluster, nb.AddressSetTable, Forbidden4)
	all[len(all)-1] = append(all[len(all)-1], markOperation(marker, revision))
	for _, ops := range all {
		if err := c.transact(ctx, db, ops); err != nil {
			return err
		}
	}
	return c.nb.until(ctx, "the changes have not been confirmed", func() (bool, error) {
		s, ok := db.Cache().Table(nb.AddressSetTable).Row(marker).(*nb.AddressSet)
		return ok && s.ExternalIDs[revisionKey] == revision, nil
	})
}

func markOperation(row, revision string) ovsdb.Operation {
	key, _ := ovsdb.NewOvsSet([]string{revisionKey})
	value, _ := ovsdb.NewOvsMap(map[string]string{revisionKey: revision})
	return ovsdb.Operation{
		Op: ovsdb.OperationMutate, Table: nb.AddressSetTable,
		Where:     []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: row})},
		Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("external_ids", ovsdb.MutateOperationDelete, key), *ovsdb.NewMutation("external_ids", ovsdb.MutateOperationInsert, value)},
	}
}

func (c *Controller) transact(ctx context.Context, db client.Client, ops []ovsdb.Operation) error {
	results, err := db.Transact(ctx, ops...)
	if err != nil {
		return c.nb.unavailable(err)
	}
	if failed, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		return fmt.Errorf("sdn/ovn: OVN_Northbound: %w %v", err, failed)
	}
	return nil
}

// have returns the present rows of Basalt: those with its mark, and those with
// one of its UUIDs, even if their mark was changed.
func (c *Controller) have(ctx context.Context, db client.Client, cluster string, want []unit) (have, error) {
	// List waits until the cache is complete, also after a reconnection.
	var global []nb.NBGlobal
	if err := db.List(ctx, &global); err != nil {
		return nil, c.nb.unavailable(err)
	}
	if !db.Connected() {
		return nil, c.nb.unavailable(client.ErrNotConnected)
	}
	bearing := sync.OnceValue(func() map[string]bool { return uuidsOf(want) })
	h := have{}
	for table := range tables {
		h[table] = db.Cache().Table(table).RowsShallow()
		maps.DeleteFunc(h[table], func(id string, m model.Model) bool { return idsOf(m)[Owner] != cluster && !bearing()[id] })
	}
	return h, nil
}

// Close closes the connections; the databases do not change.
func (c *Controller) Close() error {
	c.nb.close()
	c.sb.close()
	return nil
}
