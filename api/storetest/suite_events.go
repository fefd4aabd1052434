package storetest

import (
	"encoding/json"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

func testEvents(t *tester) {
	put := func(kind api.Kind, id, org, spec string, event *api.CommandEvent) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: org, Expect: api.AnyRevision, Data: json.RawMessage(spec), Event: event}
	}
	report := func(id, status string) api.Command {
		return api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: json.RawMessage(status)}
	}
	apply := func(n int, cmds ...api.Command) {
		t.Helper()
		if _, err := t.apply(n, cmds...); err != nil {
			t.Fatal(err)
		}
	}
	budget := &api.CommandEvent{Type: "budget.reached", Organization: "org-2", Data: json.RawMessage(`{"percent":80}`)}
	apply(1, put(api.KindInstance, "ins-1", "org-1", `{}`, nil), report("ins-1", `{"phase":"Creating"}`))
	apply(2, report("ins-1", `{"phase":"Running"}`), report("ins-1", `{"phase":"Running","step":"x"}`))
	apply(3, put(api.KindInstance, "ins-1", "org-1", `{}`, budget))   // changes nothing
	apply(4, put(api.KindFlavor, "flv-1", "", `{}`, nil))             // raises no event
	apply(5, put(api.KindFlavor, "flv-1", "", `{"vcpus":1}`, budget)) // but this one does
	apply(6, put(api.KindInstance, "ins-2", "org-1", `{}`, &api.CommandEvent{Type: "a.b"}), report("ins-2", `{"phase":"Failed","lastError":"no disk","cause":{"code":"storage-full","plain":true}}`))
	apply(7, put(api.KindOrganization, "org-9", "org-1", `{}`, nil))
	apply(8, put(api.KindOrganization, "org-9", "org-1", `{"suspended":{"reason":"x"}}`, nil), put(api.KindOrganization, "org-9", "org-1", `{}`, nil))
	apply(10, api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision})
	if _, err := t.apply(11, put(api.KindInstance, "ins-3", "org-1", `{}`, nil), report("ins-none", `{}`)); err == nil {
		t.Error("a batch with a report for a missing object was accepted, want an error")
	}
	for _, bad := range []api.CommandEvent{{Type: "Nope"}, {Type: "a.b", Data: json.RawMessage("{")}, {Type: "a.b", Organization: "o\x00"}} {
		t.fails(api.CodeInvalid, put(api.KindInstance, "ins-4", "org-1", `{}`, &bad))
	}

	all := []string{"instance.created", "instance.running", "budget.reached", "instance.created", "a.b", "instance.failed",
		"organization.created", "organization.suspended", "organization.resumed", "instance.deleted"}
	for _, c := range []struct {
		org  string
		want []string
	}{{"", all}, {"org-1", []string{"instance.created", "instance.running", "instance.created", "a.b", "instance.failed", "instance.deleted"}},
		{"org-2", []string{"budget.reached"}}, {"org-9", all[6:9]}, {"org", nil}} {
		for limit := 1; limit < 12; limit++ {
			for _, newest := range []bool{false, true} {
				var got []string
				last := int64(0)
				for q := (api.EventQuery{Organization: c.org, Limit: limit, Newest: newest}); ; {
					p, err := t.s.Events(t.ctx, q)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range p.Items {
						if seq, ok := api.EventSeq(e.ID); !ok || seq != e.Seq || last != 0 && (seq > last) == newest {
							t.Errorf("event %+v follows sequence %d, want it in order and with an ID of its sequence", e, last)
						}
						got, last, q.After = append(got, e.Type), e.Seq, e.Seq
					}
					if !p.More {
						break
					}
				}
				if newest {
					slices.Reverse(got)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("events of %q with limit %d = %q, want %q", c.org, limit, got, c.want)
				}
			}
		}
	}
	p, err := t.s.Events(t.ctx, api.EventQuery{Organization: "org-1", Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Items[4]; !e.Timestamp.Equal(at(6)) || string(e.Data) != `{"kind":"Instance","id":"ins-2","name":"ins-2","organization":"org-1","phase":"Failed","error":"no disk","revision":8}` {
		t.Errorf("event has time %v and data %s, want %v and the object ins-2", e.Timestamp, e.Data, at(6))
	}
	_, err = t.s.Events(t.ctx, api.EventQuery{})
	t.wantCode(api.CodeInvalid, err)
}
