package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestMoney tests the operator's business pages: the whole wizard on an empty cluster, then a
// customer that is created, priced, pays and is suspended. The cluster has only its initial
// objects and an operator.
func TestMoney(t *testing.T) {
	n := start(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	n.user(t.Context(), t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
	n.tell(t, "operator-money.mjs", "EMAIL=op@example.com")
}
