package upgrade

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// others are other nodes with packages; what a node sends may have any content.
type others map[api.NodeID]map[string]string

func (o others) Nodes() (ids []api.NodeID) {
	for id := range o {
		ids = append(ids, id)
	}
	return append(ids, "node-self")
}

func (o others) FetchPackage(_ context.Context, from api.NodeID, sum string) (io.ReadCloser, error) {
	if from == "node-self" {
		panic("a node asks itself")
	}
	content, ok := o[from][sum]
	if !ok {
		return nil, api.Errorf(api.CodeNotFound, "package %s does not exist on this node", sum)
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func packageOf(content string) api.UpgradePackage {
	sum := sha256.Sum256([]byte(content))
	return api.UpgradePackage{Name: "basalt", SizeBytes: int64(len(content)), Sha256: hex.EncodeToString(sum[:])}
}

// agentOf returns an agent whose program is a shell script.
func agentOf(t *testing.T, peers others, script string) *Agent {
	t.Helper()
	dir := t.TempDir()
	a := &Agent{Self: "node-self", Version: "1", Packages: Packages{Dir: filepath.Join(dir, "packages")}, Peers: peers, Dir: dir,
		Program: filepath.Join(dir, "program"), Socket: "/run/api.sock", Log: slog.New(slog.DiscardHandler),
		started: map[string]time.Time{}, refused: map[string]string{}}
	if err := os.WriteFile(a.Program, []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAgentFetches(t *testing.T) {
	p := packageOf("release 2")
	u := api.Upgrade{Meta: api.Meta{ID: "upg-1"}, Spec: api.UpgradeSpec{Version: "2", Packages: []api.UpgradePackage{p}}}
	for name, c := range map[string]struct {
		peers others
		ok    bool
		says  string
	}{
		"one has it":            {others{"node-b": {}, "node-c": {p.Sha256: "release 2"}}, true, ""},
		"one sends another":     {others{"node-b": {p.Sha256: "something"}}, false, "received 9 bytes, want 9"},
		"one sends half":        {others{"node-b": {p.Sha256: "relea"}}, false, "received 5 bytes, want 9"},
		"nobody has it":         {others{"node-b": {}}, false, "no node has package basalt"},
		"a bad one, and a good": {others{"node-b": {p.Sha256: "bad"}, "node-c": {p.Sha256: "release 2"}}, true, ""},
	} {
		a := agentOf(t, c.peers, "exit 1")
		s := a.advance(t.Context(), u)
		if name == "one sends another" {
			c.says = "received package has SHA-256 sum"
		}
		if s.Fetched != c.ok || !strings.Contains(s.Message, c.says) {
			t.Errorf("%s: status = %+v, want fetched: %t, with a message containing %q", name, s, c.ok, c.says)
		}
		if raw, err := os.ReadFile(a.Packages.Path(p.Sha256)); c.ok != (err == nil && string(raw) == "release 2") {
			t.Errorf("%s: stored package = %q, error %v; want it stored: %t", name, raw, err, c.ok)
		}
		if s.Result != "" {
			t.Errorf("%s: result = %s although it is not this node's turn, want none", name, s.Result)
		}
	}
	a := agentOf(t, others{}, "exit 1")
	if a.Version = "2"; !a.advance(t.Context(), u).Fetched {
		t.Error("Fetched of a node that runs the release = false, want true")
	}
}

func TestAgentInstalls(t *testing.T) {
	u := api.Upgrade{Meta: api.Meta{ID: "upg-1"}, Spec: api.UpgradeSpec{Version: "2"},
		Status: api.UpgradeStatus{Attempt: 3, Nodes: []api.UpgradeNode{{Node: "node-self", Phase: api.UpgradeNodeInstalling}}}}
	outcome := func(result string) string {
		return fmt.Sprintf(`echo '{"id": "upg-1-3", "result": "%s", "message": "words"}' >outcome.json`, result)
	}
	for name, c := range map[string]struct {
		script string
		want   api.NodeUpgrade // after the second step
	}{
		"works":              {outcome("Done"), api.NodeUpgrade{Attempt: 3, Result: api.UpgradeResultDone, Message: "words"}},
		"goes back":          {outcome("RolledBack"), api.NodeUpgrade{Attempt: 3, Result: api.UpgradeResultRolledBack, Message: "words"}},
		"says anything else": {outcome("Maybe"), api.NodeUpgrade{Attempt: 3, Result: api.UpgradeResultFailed, Message: "words"}},
		"is at it":           {"true", api.NodeUpgrade{}},
		"does not start":     {"echo no room; exit 4", api.NodeUpgrade{Attempt: 3, Result: api.UpgradeResultFailed, Message: ": exit status 4: no room"}},
		"of another attempt": {`echo '{"id": "upg-1-2", "result": "Done"}' >outcome.json`, api.NodeUpgrade{}},
		"writes no JSON":     {"echo half >outcome.json", api.NodeUpgrade{}},
	} {
		a := agentOf(t, nil, `echo "$@" >>calls`+"\n"+c.script+"\n")
		a.advance(t.Context(), u)
		got := a.advance(t.Context(), u)
		c.want.Upgrade, c.want.Fetched = "upg-1", true
		if strings.HasPrefix(c.want.Message, ":") {
			c.want.Message = a.Program + c.want.Message
		}
		if got != c.want {
			t.Errorf("%s: status after the second step:\n got %+v\nwant %+v", name, got, c.want)
		}
		calls, err := os.ReadFile(filepath.Join(a.Dir, "calls"))
		want := "start --id upg-1-3 --version 2 --socket /run/api.sock --outcome " + a.file() + "\n"
		if err != nil || string(calls) != want {
			t.Errorf("%s: calls of the program = %q, error %v; want %q", name, calls, err, want)
		}
	}
	a := agentOf(t, nil, "touch called\n")
	u.Status.Nodes[0].Node = "node-other"
	if s := a.advance(t.Context(), u); s.Result != "" {
		t.Errorf("status during another node's turn = %+v, want no result", s)
	}
	if _, err := os.Stat(filepath.Join(a.Dir, "called")); err == nil {
		t.Error("the program was called during another node's turn, want no call")
	}
}

func TestPackages(t *testing.T) {
	p := Packages{Dir: filepath.Join(t.TempDir(), "packages")}
	named, old, young := packageOf("named"), packageOf("old"), packageOf("young")
	for content, want := range map[string]api.UpgradePackage{"named": named, "old": old, "young": young} {
		if err := p.Put(t.Context(), want.Sha256, strings.NewReader(content), -1); err != nil {
			t.Fatal(err)
		}
	}
	for sum, content := range map[string]string{packageOf("x").Sha256: "y", "../../x": "x", "": "x"} {
		if err := p.Put(t.Context(), sum, strings.NewReader(content), -1); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("Put(%q, %q): error %v, want code %s", sum, content, err, api.CodeInvalid)
		}
	}
	if err := p.Put(t.Context(), packageOf("x").Sha256, bytes.NewReader(nil), api.MaxUpgradePackageBytes+1); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Put of a package that is too large: error %v, want code %s", err, api.CodeInvalid)
	}
	if _, err := p.Open("../packages"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("Open outside of the directory: error %v, want code %s", err, api.CodeNotFound)
	}
	now := time.Now()
	half := filepath.Join(p.Dir, ".new-123")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.Path(named.Sha256), p.Path(old.Sha256), half} {
		if err := os.Chtimes(path, now, now.Add(-2*keepFor)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Sweep([]api.UpgradePackage{named}, now); err != nil {
		t.Fatal(err)
	}
	if !p.Has(named.Sha256) || p.Has(old.Sha256) || !p.Has(young.Sha256) {
		t.Errorf("after the sweep: named %t, old %t, young %t; want only the old one removed", p.Has(named.Sha256), p.Has(old.Sha256), p.Has(young.Sha256))
	}
	files, err := os.ReadDir(p.Dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%d files left, error %v; want 2 files", len(files), err)
	}
	for i := range maxFiles {
		content := fmt.Sprint("more ", i)
		err = p.Put(t.Context(), packageOf(content).Sha256, strings.NewReader(content), -1)
	}
	if api.CodeOf(err) != api.CodeState {
		t.Errorf("Put beyond %d packages: error %v, want code %s", maxFiles, err, api.CodeState)
	}
}
