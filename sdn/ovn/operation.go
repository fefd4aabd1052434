package ovn

import (
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/mapper"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// maxOperations limits a transaction, unless one unit has more operations.
const maxOperations = 1000

// transactions combines groups of changes into as few transactions as
// maxOperations allows.
func transactions(groups [][]change) ([][]ovsdb.Operation, error) {
	var all [][]ovsdb.Operation
	var batch []change
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		ops, err := operations(batch)
		all, batch = append(all, ops), nil
		return err
	}
	for _, g := range groups {
		if len(batch)+len(g) > maxOperations {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		batch = append(batch, g...)
	}
	return all, flush()
}

// operations returns the operations of RFC 7047, section 5.2. All joins and
// parts of one set are combined into one operation.
func operations(changes []change) ([]ovsdb.Operation, error) {
	type set struct{ row, column string }
	joined := map[set]int{} // index of its operation
	ops := make([]ovsdb.Operation, 0, len(changes))
	for _, c := range changes {
		id := uuidOf(c.row)
		op := ovsdb.Operation{Table: c.table}
		if c.kind != create {
			op.Where = []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: id})}
		}
		switch c.kind {
		case create, update:
			row, err := encode(c)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", c.table, id, err)
			}
			op.Op, op.Row = ovsdb.OperationUpdate, row
			if c.kind == create {
				op.Op, op.UUID = ovsdb.OperationInsert, id
			}
		case remove:
			op.Op = ovsdb.OperationDelete
		case join, part:
			mutator := ovsdb.MutateOperationInsert
			if c.kind == part {
				mutator = ovsdb.MutateOperationDelete
			}
			at := set{id, c.column + " " + string(mutator)}
			if i, ok := joined[at]; ok {
				into := ops[i].Mutations[0].Value.(ovsdb.OvsSet)
				into.GoSet = append(into.GoSet, refs(c.uuids)...)
				ops[i].Mutations[0].Value = into
				continue
			}
			joined[at] = len(ops)
			op.Op = ovsdb.OperationMutate
			op.Mutations = []ovsdb.Mutation{*ovsdb.NewMutation(c.column, mutator, ovsdb.OvsSet{GoSet: refs(c.uuids)})}
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func refs(uuids []string) []any {
	s := make([]any, len(uuids))
	for i, u := range uuids {
		s[i] = ovsdb.UUID{GoUUID: u}
	}
	return s
}

// schema is the schema that the models were generated from; parsing it takes a
// while.
var schema = sync.OnceValue(nb.Schema)

// encode encodes the owned columns: all of a new row, the different ones of a
// changed row.
func encode(c change) (ovsdb.Row, error) {
	schema := schema()
	info, err := mapper.NewInfo(c.table, schema.Table(c.table), c.row)
	if err != nil {
		return nil, err
	}
	columns := c.columns
	if c.kind == create {
		columns = owned[c.table]
	}
	fields := make([]any, 0, len(columns))
	for _, column := range columns {
		if v := columnOf(c.row, column); c.kind == update || !v.IsZero() {
			fields = append(fields, v.Addr().Interface())
		}
	}
	return mapper.NewMapper(schema).NewRow(info, fields...)
}
