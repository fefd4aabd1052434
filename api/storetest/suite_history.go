package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

func testHistory(t *tester) {
	n := 0
	apply := func(asked string, cmds ...api.Command) {
		t.Helper()
		n++
		b := api.Batch{At: at(n), Commands: cmds}
		if asked != "" {
			b.Audit = &api.AuditNote{Actor: "key-1", Operation: asked}
		}
		if _, err := t.s.Apply(t.ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	put := func(id, spec string) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Expect: api.AnyRevision, Data: json.RawMessage(spec)}
	}
	report := func(id, status string) api.Command {
		return api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: json.RawMessage(status)}
	}
	check := func(id api.InstanceID, want ...string) {
		t.Helper()
		all, err := t.s.History(t.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, e := range all {
			got = append(got, fmt.Sprintf("%s %s %q", e.Operation, e.State, e.Message))
			if i > 0 && e.Revision >= all[i-1].Revision {
				t.Errorf("entry %+v follows %+v, want the newest first", e, all[i-1])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("history of %s = %q, want %q", id, got, want)
		}
	}

	apply("CreateInstance", put("ins-1", `{}`))
	apply("", report("ins-1", `{"phase":"Creating"}`))
	apply("", report("ins-1", `{"phase":"Creating","step":"copying"}`)) // not part of the history
	apply("", report("ins-1", `{"phase":"Running"}`))
	apply("StopInstance", put("ins-1", `{"power":"Stopped"}`))
	apply("", report("ins-1", `{"phase":"Failed","lastError":"no disk"}`))
	apply("", put("ins-2", `{}`), api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: json.RawMessage(`{}`)})
	check("ins-1", ` Failed "no disk"`, `StopInstance Running ""`, ` Running ""`, ` Creating ""`, `CreateInstance Pending ""`)
	check("ins-2", ` Pending ""`)
	check("ins-3")

	for i := range 2 * api.MaxHistory {
		apply("", report("ins-2", fmt.Sprintf(`{"phase":"Failed","lastError":"%d"}`, i)))
	}
	all, err := t.s.History(t.ctx, "ins-2")
	if err != nil || len(all) != api.MaxHistory || all[0].Message != fmt.Sprint(2*api.MaxHistory-1) || all[api.MaxHistory-1].Message != fmt.Sprint(api.MaxHistory) || !all[0].At.Equal(at(n)) {
		t.Errorf("history has %d entries, error %v; want the last %d", len(all), err, api.MaxHistory)
	}
	apply("", api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-2", Expect: api.AnyRevision})
	check("ins-2")
	check("ins-1", ` Failed "no disk"`, `StopInstance Running ""`, ` Running ""`, ` Creating ""`, `CreateInstance Pending ""`)
}
