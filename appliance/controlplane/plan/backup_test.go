package plan

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// The node with the volume copies it; another one does if the pool is shared and that
// node is lost. A running copy stays where it is as long as that node can read the
// volume.
func TestWhoCopies(t *testing.T) {
	for name, c := range map[string]struct {
		pool, at, has string
		phase         api.BackupPhase
		lost          bool // the volume's node is lost
		want          string
		keeps         bool
	}{
		"the volume's node":              {pool: "local", at: "n2", want: "n2"},
		"as it is":                       {pool: "local", at: "n2", has: "n2", keeps: true},
		"its node is lost":               {pool: "local", at: "n2", lost: true, want: ""},
		"shared, its node is lost":       {pool: "shared", at: "n2", has: "n2", lost: true, want: "n1"},
		"it has moved before it began":   {pool: "shared", at: "n3", has: "n2", phase: api.BackupPending, want: "n3"},
		"it has moved while it runs":     {pool: "shared", at: "n3", has: "n2", phase: api.BackupRunning, keeps: true},
		"it has moved and cannot be had": {pool: "local", at: "n3", has: "n2", phase: api.BackupRunning, want: "n3"},
		"it is over":                     {pool: "shared", at: "n3", has: "n2", phase: api.BackupSucceeded, keeps: true},
	} {
		s := three().data("data", c.pool, api.NodeID(c.at), "")
		if c.lost {
			n := s.Nodes[c.at]
			n.Assignment.State = api.NodeLost
			s.Nodes[c.at] = n
		}
		b := api.Backup{Meta: api.Meta{ID: "b"}, Spec: api.BackupSpec{Volume: "data"}, Assignment: api.BackupAssignment{Node: api.NodeID(c.has)}, Status: api.BackupStatus{Phase: c.phase}}
		cmds := planBackup(s, b, now)
		if c.keeps {
			if len(cmds) > 0 {
				t.Errorf("%s: planned assignment %s, want none", name, cmds[0].Data)
			}
			continue
		}
		if len(cmds) != 1 {
			t.Errorf("%s: planned %d commands, want 1", name, len(cmds))
			continue
		}
		if a := decode[api.Backup](t, api.Object{Assignment: cmds[0].Data}).Assignment; string(a.Node) != c.want || (a.Node == "") != (a.Reason != "") {
			t.Errorf("%s: planned assignment %+v, want node %q", name, a, c.want)
		}
	}
}
