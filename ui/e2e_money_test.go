package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestMoney is the operator's business: the wizard on an empty cluster to its
// end, then a customer that is made, priced, paid by and suspended. The cluster
// has nothing but what it began with, and an operator.
func TestMoney(t *testing.T) {
	n := start(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	n.user(t.Context(), t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
	n.tell(t, "operator-money.mjs", "EMAIL=op@example.com")
}
