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

// TestAuditAnchor tests --audit-anchor with a real file. Without the flag the operator gets an
// alert that the end of the audit log is stored nowhere else. With it the file contains the end
// under the cluster's ID, and there is no alert. If the file contains another end, an alert
// reports that the audit log was changed.
func TestAuditAnchor(t *testing.T) {
	p := alone(t, "--network", "none")
	p.start(t)
	op := operator(t, p)
	alertMessage := func(op *client.API, code api.AlertCode) (message string) {
		for a, err := range op.Alerts(t.Context()) {
			if err == nil && a.Code == code {
				message = a.Message
			}
		}
		return message
	}
	until(t, "an alert reports that there is no anchor", func() bool {
		return strings.Contains(alertMessage(op, api.AlertAuditUnanchored), "no anchor is configured")
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
	until(t, "the file contains the end of the audit log", func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(raw, &kept) == nil
	})
	if kept.Seq == 0 || kept.Hash == "" || kept.Cluster == "" {
		t.Errorf("mark in the file = %+v, want sequence, hash and cluster", kept)
	}
	until(t, "the alert ends", func() bool { return alertMessage(op, api.AlertAuditUnanchored) == "" })
	if m := alertMessage(op, api.AlertAuditChanged); m != "" {
		t.Errorf("alert of an unchanged audit log: %q, want none", m)
	}

	p.kill()
	kept.Hash = strings.Repeat("0", len(kept.Hash))
	if err := os.WriteFile(path, append(api.Encode(kept), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	op = operator(t, p)
	until(t, "an alert reports that the audit log was changed", func() bool {
		return strings.Contains(alertMessage(op, api.AlertAuditChanged), "its anchored hash is")
	})
}
