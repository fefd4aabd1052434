package nb

import (
	_ "embed"
	"encoding/json"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

//go:embed ovn-nb.ovsschema
var schema []byte

// Schema returns the schema of the database in the oldest supported release.
func Schema() ovsdb.DatabaseSchema {
	var s ovsdb.DatabaseSchema
	if err := json.Unmarshal(schema, &s); err != nil {
		panic("sdn/ovn/nb: " + err.Error()) // the schema is embedded, so this is a build error
	}
	return s
}
