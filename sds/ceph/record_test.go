package ceph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

func lines(t *testing.T, all ...record) []byte {
	t.Helper()
	var b strings.Builder
	for _, r := range all {
		r.Version = recordVersion
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", raw)
	}
	return []byte(b.String())
}

func TestFold(t *testing.T) {
	made := record{Do: create, Disk: "v.1", Image: "img-1", At: 5}
	by := func(do verb, node api.NodeID, epoch int64) record { return record{Do: do, Node: node, Epoch: epoch} }
	open := func(node api.NodeID, epoch int64, at string) record {
		return record{Do: opened, Node: node, Epoch: epoch, Client: at}
	}
	owner := func(node api.NodeID, epoch int64) sds.Owner { return sds.Owner{Node: node, Epoch: epoch} }
	had := func(node api.NodeID, epoch int64, released bool) *sds.Claim {
		return &sds.Claim{Owner: owner(node, epoch), Released: released}
	}
	over := owner("b", 2)
	for _, c := range []struct {
		name string
		log  []record
		disk string // the published disk; empty: none
		want state  // without made
	}{
		{"nothing", nil, "", state{}},
		{"made", []record{made}, "v.1", state{at: 5}},
		{"made by two", []record{made, {Do: create, Disk: "v.2"}}, "v.1", state{at: 5, never: []string{"v.2"}}},
		{"made anew", []record{made, {Do: recreate, Disk: "v.2", Epoch: 3}}, "v.2", state{at: 5, past: []string{"v.1"}}},
		{"made anew by two", []record{made, {Do: recreate, Disk: "v.2", Epoch: 3}, {Do: recreate, Disk: "v.3", Epoch: 3}, {Do: recreate, Disk: "v.4", Epoch: 2}},
			"v.2", state{at: 5, past: []string{"v.1"}, never: []string{"v.3", "v.4"}}},
		{"made anew out of nothing", []record{{Do: recreate, Disk: "v.2", At: 7}}, "v.2", state{at: 7}},
		{"deleted", []record{made, by(claim, "a", 1), {Do: remove}}, "", state{past: []string{"v.1"}}},
		{"deleted twice, and made again", []record{made, {Do: remove}, {Do: remove}, {Do: create, Disk: "v.2", At: 9}}, "v.2", state{at: 9, past: []string{"v.1"}}},
		{"an image's file goes with it", []record{{Do: create, Disk: "i.1", Sent: "i.1.f"}, {Do: remove}}, "", state{past: []string{"i.1", "i.1.f"}}},
		{"an image's deletion is taken back", []record{{Do: create, Disk: "i.1", Sent: "i.1.f"}, {Do: remove}, {Do: create, Disk: "i.1", Sent: "i.1.f"}}, "i.1", state{past: []string{}}},
		{"void before it came", []record{{Do: void, Disk: "v.1"}, made}, "", state{never: []string{"v.1"}}},
		{"void before it came, with another's", []record{made, {Do: void, Disk: "v.2"}, {Do: recreate, Disk: "v.2", Epoch: 3}}, "v.1", state{at: 5, never: []string{"v.2"}}},
		{"void too late", []record{made, {Do: void, Disk: "v.1"}}, "v.1", state{at: 5}},
		{"void after it went", []record{made, {Do: remove}, {Do: void, Disk: "v.1"}, {Do: void, Disk: "v.2"}, {Do: void, Disk: "v.2"}}, "", state{past: []string{"v.1"}, never: []string{"v.2"}}},
		{"void, and of another process there", []record{{Do: void, Disk: "v.0"}, made, {Do: create, Disk: "v.0"}}, "v.1", state{at: 5, never: []string{"v.0"}}},
		{"void of an image", []record{{Do: void, Disk: "i.1", Sent: "i.1.f"}, {Do: create, Disk: "i.1", Sent: "i.1.f"}}, "", state{never: []string{"i.1", "i.1.f"}}},
		{"claim of nothing", []record{by(claim, "a", 1)}, "", state{}},
		{"claimed", []record{made, by(claim, "a", 1)}, "v.1", state{at: 5, claim: had("a", 1, false)}},
		{"claimed by two in one epoch", []record{made, by(claim, "a", 1), by(claim, "b", 1)}, "v.1", state{at: 5, claim: had("a", 1, false)}},
		{"taken over", []record{made, by(claim, "a", 1), by(claim, "b", 2)}, "v.1", state{at: 5, claim: had("b", 2, false), fence: &over}},
		{"taken over and shut out", []record{made, by(claim, "a", 1), by(claim, "b", 2), by(fenced, "b", 2)}, "v.1", state{at: 5, claim: had("b", 2, false)}},
		{"a frozen node wakes up", []record{made, by(claim, "a", 1), by(claim, "b", 2), by(fenced, "b", 2), by(claim, "a", 1), by(release, "a", 1)},
			"v.1", state{at: 5, claim: had("b", 2, false)}},
		{"handed over", []record{made, by(claim, "a", 1), by(release, "a", 1), by(claim, "b", 2)}, "v.1", state{at: 5, claim: had("b", 2, false)}},
		{"released", []record{made, by(claim, "a", 1), by(release, "a", 1)}, "v.1", state{at: 5, claim: had("a", 1, true)}},
		{"released by another", []record{made, by(claim, "a", 1), by(release, "b", 1)}, "v.1", state{at: 5, claim: had("a", 1, false)}},
		{"whoever was to shut out died of it", []record{made, by(claim, "a", 1), by(claim, "c", 2), by(claim, "b", 3)}, "v.1",
			state{at: 5, claim: had("b", 3, false), fence: &sds.Owner{Node: "b", Epoch: 3}}},
		{"a later epoch of one node", []record{made, by(claim, "a", 1), by(claim, "a", 2)}, "v.1", state{at: 5, claim: had("a", 2, false)}},
		{"opened", []record{made, by(claim, "a", 1), open("a", 1, "c1"), open("a", 1, "c1")}, "v.1", state{at: 5, claim: had("a", 1, false), clients: []client{{"a", "c1"}}}},
		{"opened by who is not the owner", []record{made, by(claim, "a", 2), open("a", 1, "c1"), open("b", 2, "c2")}, "v.1", state{at: 5, claim: had("a", 2, false)}},
		{"opened and taken over", []record{made, by(claim, "a", 1), open("a", 1, "c1"), by(claim, "b", 2)}, "v.1",
			state{at: 5, claim: had("b", 2, false), fence: &over, clients: []client{{"a", "c1"}}}},
		{"opened and shut out", []record{made, by(claim, "a", 1), open("a", 1, "c1"), by(claim, "b", 2), open("b", 2, "c2"), by(fenced, "b", 2)}, "v.1",
			state{at: 5, claim: had("b", 2, false), clients: []client{{"b", "c2"}}}},
		{"opened and released", []record{made, by(claim, "a", 1), open("a", 1, "c1"), by(release, "a", 1)}, "v.1", state{at: 5, claim: had("a", 1, true)}},
		{"rolled back", []record{made, {Do: rollback, Count: 2, Snapshot: "s"}, {Do: rolled, Count: 2}}, "v.1", state{at: 5, rollbacks: 2}},
		{"rolled back by two", []record{made, {Do: rollback, Count: 2, Snapshot: "s"}, {Do: rollback, Count: 2, Snapshot: "r"}, {Do: rolled, Count: 2}, {Do: rolled, Count: 2}, {Do: rollback, Count: 1}},
			"v.1", state{at: 5, rollbacks: 2}},
	} {
		got, err := fold(lines(t, c.log...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		disk := ""
		if got.made != nil {
			disk = got.made.Disk
		}
		if disk != c.disk {
			t.Errorf("%s: disk = %q, want %q", c.name, disk, c.disk)
		}
		for _, d := range got.over() {
			if got.names(d) {
				t.Errorf("%s: disk %s is both named and not needed", c.name, d)
			}
		}
		got.made, got.last = nil, 0
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(state{}, record{})); diff != "" {
			t.Errorf("%s: state mismatch (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := fold([]byte(`{"v":2,"do":"create"}` + "\n")); api.CodeOf(err) != api.CodeState {
		t.Errorf("fold of a later version = %v, want wrong_state", err)
	}
	pending, err := fold(lines(t, made, record{Do: rollback, Count: 1, Snapshot: "s", SizeBytes: 7}))
	if err != nil || pending.pending == nil || pending.pending.SizeBytes != 7 || pending.rollbacks != 0 {
		t.Errorf("fold of a rollback that has not ended = %+v, %v, want it pending with 7 bytes", pending, err)
	}
}

// FuzzFold checks that in any order of the nodes' lines the owner is the one
// with the highest claimed epoch, and the first within its epoch.
func FuzzFold(f *testing.F) {
	f.Add(lines(&testing.T{}, record{Do: create, Disk: "v.1"}, record{Do: claim, Node: "a", Epoch: 3}, record{Do: claim, Node: "b", Epoch: 4}))
	f.Add([]byte("{\"v\":1}\n{\"v\":1,\"do\":\"delete\"}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := fold(raw)
		if err != nil {
			return
		}
		if s.made == nil && (s.claim != nil || s.fence != nil || s.pending != nil || s.rollbacks != 0) {
			t.Errorf("state without a disk = %+v, want no claim, fence or rollback", s)
		}
		if s.fence != nil && (s.claim == nil || s.fence.Epoch > s.claim.Epoch) {
			t.Errorf("fence %+v is newer than the claim %+v", s.fence, s.claim)
		}
		if s.pending != nil && s.pending.Count <= s.rollbacks {
			t.Errorf("pending rollback %+v after %d, want a higher count", s.pending, s.rollbacks)
		}
		for _, d := range s.over() {
			if s.names(d) {
				t.Errorf("disk %s is both named and not needed", d)
			}
		}
		again, err := fold(raw)
		if err != nil || cmp.Diff(s, again, cmp.AllowUnexported(state{}, record{})) != "" {
			t.Errorf("two calls of fold differ: %v", err)
		}
	})
}
