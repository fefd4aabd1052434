package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// TestFirstRun does an operator's first run and a reseller's first customer in few
// interactions, with a keyboard alone; the long layer also with a mouse and on a phone:
// e2e/first-run.mjs.
func TestFirstRun(t *testing.T) {
	for _, view := range []string{"keyboard", "desktop", "phone"} {
		t.Run(view, func(t *testing.T) {
			if view != "keyboard" {
				layer.NeedLong(t, "TestFirstRun/keyboard")
			}
			firstRun(t, view)
		})
	}
}

func firstRun(t *testing.T, view string) {
	n := start(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	n.user(t.Context(), t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
	n.tell(t, "first-run.mjs", "EMAIL=op@example.com", "RESELLER=sales@north.example", "OPERATOR="+n.Key, "VIEW="+view)
}
