package mail

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Operators get a message about an alert once, when it has lasted, and again when it
// has returned; about several at a time in one message.
func TestAlertsAreMailed(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, func(s *api.MailSettingsSpec) { s.AlertsTo = []string{"ops@example.com"} })
	alert := func(name string) api.Alert {
		return api.Alert{Code: api.AlertNodeLost, Severity: api.AlertCritical, Kind: api.KindNode, ID: name, Message: "node " + name + " is lost", Hint: "see to its power"}
	}
	var now atomic.Pointer[[]api.Alert]
	set := func(a ...api.Alert) { now.Store(&a) }
	set(alert("n1"), alert("n2"), api.Alert{Code: api.AlertMailFailing, Message: "mail"})
	m := New(Options{Store: h.store, Now: h.clock, Wait: h.wait, Connect: time.Minute, Send: time.Minute,
		Alerts: func(context.Context) ([]api.Alert, error) { return *now.Load(), nil }})
	pass := func(d time.Duration) {
		t.Helper()
		for range d / time.Minute {
			h.wait(t.Context(), time.Minute)
			for range 4 { // alarm, deliver, tidy, nothing
				if _, err := m.step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	expect := func(step string, want int, words ...string) {
		t.Helper()
		got := p.taken()
		if len(got) != want {
			t.Fatalf("%s: messages = %d, want %d", step, len(got), want)
		}
		for _, w := range words {
			if part := parse(t, got[want-1].raw).parts[0]; !strings.Contains(part, w) {
				t.Errorf("%s: message =\n%s\nwant it to contain %q", step, part, w)
			}
		}
	}
	pass(time.Minute)
	expect("first look", 0)
	pass(time.Minute)
	expect("second look", 1, "node n1 is lost", "node n2 is lost", "see to its power")
	pass(30 * time.Minute)
	expect("as before", 1)
	set(alert("n1"))
	pass(time.Minute)
	set(alert("n1"), alert("n2"))
	pass(2 * time.Minute)
	expect("n2 again", 2, "node n2 is lost")
	set(alert("n1"), alert("n2"), alert("n3"))
	pass(5 * time.Minute)
	expect("n3 too soon", 2)
	pass(15 * time.Minute)
	expect("n3 after a rest", 3, "node n3 is lost")
}

// A message lists few alerts, and the number of the others.
func TestDigest(t *testing.T) {
	var many []api.Alert
	for i := range 30 {
		many = append(many, api.Alert{Severity: api.AlertWarning, Message: fmt.Sprint("trouble ", i)})
	}
	d := digest(many)
	if d["first"] != "trouble 0" || d["more"] != "29" || d["unnamed"] != "20" || strings.Count(d["alerts"], "trouble") != namedAlarm {
		t.Errorf("digest = %q, want the first alert, 29 more, and 20 that are not listed", d)
	}
}
