package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/auditor"
)

// From the flag to the alert, with a real file: without --audit-anchor the operator is
// told that the trail's end is kept nowhere; with one it is in the file, by the
// cluster's id, and nothing is wrong; and a file that has another end of the trail is
// told as a trail that was changed.
func TestAuditAnchor(t *testing.T) {
	p := alone(t, "--network", "none")
	p.start(t)
	op := operator(t, p)
	told := func(op *client.API, code api.AlertCode) (message string) {
		for a, err := range op.Alerts(t.Context()) {
			if err == nil && a.Code == code {
				message = a.Message
			}
		}
		return message
	}
	until(t, "the operator is told that there is no anchor", func() bool {
		return strings.Contains(told(op, api.AlertAuditUnanchored), "no anchor is configured")
	})
	if _, err := client.Of[api.Flavor](op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "noted"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: 1 << 20}}); err != nil {
		t.Fatal(err)
	}

	p.kill()
	path := filepath.Join(p.dir, "marks")
	p.command = append(p.command, "--audit-anchor", "file:"+path)
	p.start(t)
	op = operator(t, p)
	var kept auditor.Mark
	until(t, "the end of the trail is in the file", func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(raw, &kept) == nil
	})
	if kept.Seq == 0 || kept.Hash == "" || kept.Cluster == "" {
		t.Errorf("kept: %+v", kept)
	}
	until(t, "nothing is wrong", func() bool { return told(op, api.AlertAuditUnanchored) == "" })
	if m := told(op, api.AlertAuditChanged); m != "" {
		t.Errorf("the trail is told to be changed: %s", m)
	}

	p.kill()
	kept.Hash = strings.Repeat("0", len(kept.Hash))
	if err := os.WriteFile(path, append(api.Encode(kept), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	op = operator(t, p)
	until(t, "the operator is told that it was changed", func() bool {
		return strings.Contains(told(op, api.AlertAuditChanged), "its anchored hash is")
	})
}
