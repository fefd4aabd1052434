package deploy

import (
	"context"
	"net/netip"
	"os"
	"testing"
)

// allRun are daemons that are all running.
type allRun struct{}

func (allRun) Run(context.Context, string, []string) error   { return nil }
func (allRun) Stop(context.Context, string) error            { return nil }
func (allRun) Running(context.Context, string) (bool, error) { return true, nil }
func (allRun) LastOutput(context.Context, string) string     { return "" }

// TestSilentServerKeepsItsDatabase checks that the database of a server that
// runs and does not answer, as on an overloaded machine, is left unchanged.
func TestSilentServerKeepsItsDatabase(t *testing.T) {
	dir := t.TempDir()
	n, err := NewNode(Config{Paths: Paths{State: dir, Run: dir, OVSRun: dir}, Daemons: allRun{}, Unmanaged: func() bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	in := Intent{Node: "a", Members: []Member{{Node: "a", Address: netip.MustParseAddr("10.0.0.1")}},
		Bootstrap: Bootstrap{Generation: 1, Founder: "a", Clustered: true, NB: "c", SB: "c"}, TLS: TLS{"b", "c", "k"}}
	for _, d := range DBs {
		record := `{"server_id":"s","cluster_id":"c","local_address":"` + raft(in.Members[0], d) + `"}`
		if err := os.WriteFile(n.config.Paths.File(d, 1), []byte("OVSDB CLUSTER 1000 da39\n"+record+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o Observed
	o.Free = 1 << 40
	for d, to := range map[DB]*Database{NB: &o.NB, SB: &o.SB} {
		if *to, err = n.observeDB(t.Context(), d, in); err != nil {
			t.Fatal(err)
		}
	}
	actions, _ := Next(in, o, n.config.Paths)
	for _, a := range actions {
		if a.DB != "" && a.Verb != Run {
			t.Errorf("Next returned action %s, want none but run for a silent server", a)
		}
	}
}
