package nb

import (
	_ "embed"
	"encoding/json"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

//go:embed ovn-nb.ovsschema
var schema []byte

// Schema returns that of the database, as the oldest release has it that we run on.
func Schema() ovsdb.DatabaseSchema {
	var s ovsdb.DatabaseSchema
	if err := json.Unmarshal(schema, &s); err != nil {
		panic("sdn/ovn/nb: " + err.Error()) // it is part of the program
	}
	return s
}
