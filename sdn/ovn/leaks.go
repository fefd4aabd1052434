package ovn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// Leaks returns the rows with the cluster's mark that are not wanted by t. The
// next Apply that changes something removes them.
func (c *Controller) Leaks(ctx context.Context, t sdn.Topology) ([]api.Leak, error) {
	if t.Cluster == "" {
		return nil, errors.New("sdn/ovn: Topology.Cluster is empty")
	}
	db, err := c.nb.open(ctx)
	if err != nil {
		return nil, err
	}
	want := rows(t)
	is, err := c.have(ctx, db, t.Cluster, want)
	if err != nil {
		return nil, err
	}
	return leaks(want, is), nil
}

// leaks returns the rows that are present and not wanted: one entry per object
// that had rows, in the order of the objects' IDs.
func leaks(want []unit, h have) []api.Leak {
	wanted := uuidsOf(want)
	left := map[string]map[string][]string{} // object's ID, table, names of rows
	for table, ms := range h {
		for id, m := range ms {
			if wanted[id] {
				continue
			}
			of := idsOf(m)[Of]
			if of == "" {
				of = id // the row belongs to no object
			}
			if left[of] == nil {
				left[of] = map[string][]string{}
			}
			left[of][table] = append(left[of][table], rowName(m, id))
		}
	}
	all := make([]api.Leak, 0, len(left))
	for _, of := range slices.Sorted(maps.Keys(left)) {
		kind, ok := api.KindOfID(of)
		if !ok {
			kind = api.KindOVN
		}
		all = append(all, api.Leak{Kind: string(kind), ID: of, What: "in OVN: " + describeRows(left[of])})
	}
	return all
}

// describeRows lists rows by table: a single row by its name, several by their
// number.
func describeRows(tables map[string][]string) string {
	var all []string
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if names := tables[table]; len(names) > 1 {
			all = append(all, fmt.Sprintf("%d rows of %s", len(names), table))
		} else {
			all = append(all, table+" "+names[0])
		}
	}
	return strings.Join(all, ", ")
}

// rowName returns the name by which ovn-nbctl finds the row.
func rowName(m model.Model, id string) string {
	if i, ok := layout().fields[reflect.TypeOf(m).Elem()]["name"]; ok {
		if name, ok := reflect.ValueOf(m).Elem().Field(i).Interface().(string); ok && name != "" {
			return name
		}
	}
	return id
}
