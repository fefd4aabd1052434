package state

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

var update = flag.Bool("update", false, "write this level's golden log")

// Every release must apply a log in the same way: the log that each feature level has
// left in testdata/golden results in the same tables. A change of the state machine's
// behavior belongs to a new level, and takes effect from that level on (View.Level);
// the golden logs of the levels before stay as they are.
func TestGoldenLogs(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	paths, err := filepath.Glob("testdata/golden/level-*.log")
	if err != nil || len(paths) == 0 {
		t.Fatalf("golden logs = %v, %v; want at least one", paths, err)
	}
	if last := fmt.Sprintf("testdata/golden/level-%d.log", Level); !slices.Contains(paths, last) {
		t.Errorf("golden logs = %v, want one of this level, %s: run go test -run TestGoldenLogs -update", paths, last)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { replayGolden(t, path) })
	}
}

// replayGolden applies a log in pieces and compares the digest after each: lines "TERM
// BASE64" are entries, "= SUM" is the digest of the tables at that point.
func replayGolden(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tb := bare(t)
	var piece []goldenEntry
	index := uint64(0)
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " ")
		if left != "=" {
			index++
			l := goldenEntry{index: index}
			if _, err := fmt.Sscan(left, &l.term); err != nil {
				t.Fatal(err)
			}
			if l.data, err = base64.StdEncoding.DecodeString(right); err != nil {
				t.Fatal(err)
			}
			piece = append(piece, l)
			continue
		}
		applyGolden(t, tb, piece)
		piece = nil
		if got, err := tb.sum(); err != nil || got != right {
			t.Fatalf("digest of the tables after entry %d = %s, %v; want %s", index, got, err, right)
		}
	}
	if err := lines.Err(); err != nil || index == 0 || len(piece) > 0 {
		t.Fatalf("read %s: %v, %d entries, %d of them after the last digest; want entries and none after it", path, err, index, len(piece))
	}
}

// goldenEntry is an entry of a log, and the term that it was written in.
type goldenEntry struct {
	index, term uint64
	data        []byte
}

// applyGolden applies entries as a node does: entries of another term have no effect.
func applyGolden(t *testing.T, tb *tables, all []goldenEntry) {
	t.Helper()
	var entries []Entry
	for _, l := range all {
		if raw, holds := OfTerm(l.data, l.term); holds {
			entries = append(entries, Entry{l.index, raw})
		}
	}
	if len(entries) > 0 {
		mustApply(t, tb, entries...)
	}
}

func writeGolden(t *testing.T) {
	tb := bare(t)
	var out bytes.Buffer
	for i, l := range goldenEntries(t) {
		l.index = uint64(i) + 1
		applyGolden(t, tb, []goldenEntry{l})
		fmt.Fprintf(&out, "%d %s\n", l.term, base64.StdEncoding.EncodeToString(l.data))
		if i%10 == 9 || i == len(goldenEntries(t))-1 {
			sum, err := tb.sum()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "= %s\n", sum)
		}
	}
	if err := os.WriteFile(fmt.Sprintf("testdata/golden/level-%d.log", Level), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goldenEntries returns entries with every kind of command and of entry that this level
// writes.
func goldenEntries(t *testing.T) (all []goldenEntry) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	add := func(term uint64, data []byte) {
		all = append(all, goldenEntry{term: term, data: data})
	}
	batch := func(b api.Batch) []byte {
		at = at.Add(17 * time.Second)
		if b.At.IsZero() {
			b.At = at
		}
		raw, err := EncodeBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	first, err := EncodeSettlement(Settlement{Level: Level, ID: "0123456789abcdef", Members: []string{"node-a"}, AuditKey: []byte("of thirty-two bytes, all in all: ")})
	if err != nil {
		t.Fatal(err)
	}
	add(1, first)
	for k := 1; k <= 4; k++ { // objects, claims, records; batches with IDs, the last one twice
		for client := range statetest.Clients {
			add(1, batch(statetest.Batch(client, k)))
		}
	}
	add(1, batch(statetest.Batch(0, 4)))
	add(1, batch(statetest.Quotas()))
	add(1, batch(api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2", Name: "v", // beyond the quota
		Organization: "org-1", Project: "prj-1", Data: json.RawMessage(`{}`), Uses: api.Amounts{"a": 9}}}}))
	for _, e := range historyEntries(t)[:40] {
		add(2, e.Data)
	}
	add(2, batch(api.Batch{Audit: &api.AuditNote{Actor: "key-1", Operation: "CreateFlavor"}, Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-e", Name: "e", Data: json.RawMessage(`{"a":"<&>"}`), Labels: map[string]string{"x": "y"}, Finalizers: []string{"f"},
			Event: &api.CommandEvent{Type: "a.b", Organization: "org-1"}}}}))
	for _, c := range []api.Command{ // renamed, assigned, reported, deleted, forgotten; refused ones among them
		{Op: api.OpPutSpec, Name: "e2", Data: json.RawMessage(`{}`), Claims: []string{"n/1"}},
		{Op: api.OpAssign, Data: json.RawMessage(`{"node":"node-a"}`), Claims: []string{"n/2"}},
		{Op: api.OpReport, Data: json.RawMessage(`{"phase":"Running"}`)},
		{Op: api.OpPutSpec, Expect: 1, Data: json.RawMessage(`{"late":true}`)},
		{Op: api.OpDelete},
		{Op: api.OpForget, Finalizer: "none"},
		{Op: api.OpForget, Finalizer: "f"},
		{Op: api.OpReport, Data: json.RawMessage(`{}`)},
	} {
		c.Kind, c.ID = api.KindFlavor, "flv-e"
		if c.Expect == 0 {
			c.Expect = api.AnyRevision
		}
		add(2, batch(api.Batch{Commands: []api.Command{c}}))
	}
	add(3, InTerm(3, batch(statetest.Batch(1, 5))))
	add(3, InTerm(2, batch(statetest.Batch(1, 6)))) // of another term
	add(3, batch(api.Batch{Commands: []api.Command{api.ExpireRecords(statetest.Org(0), at)}}))
	add(3, append([]byte{comparedVersion}, `{"bucket":"objects","key":"YQ=="}`...))
	add(3, oldEntry(t, 0, api.Batch{At: at, Commands: []api.Command{statetest.Record(2, 9)}}).Data)
	for i, model := range []string{"NVIDIA L4", "", "NVIDIA L4", "NVIDIA H100"} {
		c := statetest.Record(2, 20+i)
		r, err := api.RecordOf(c, at)
		if err != nil {
			t.Fatal(err)
		}
		r.Spec.Model, r.Spec.Pool = model, "default"
		c.Data = api.Encode(r.Spec)
		add(3, batch(api.Batch{Commands: []api.Command{c}}))
	}
	for _, b := range statetest.References() {
		add(3, batch(b))
	}
	for _, b := range statetest.Marks(at) {
		add(3, batch(b))
	}
	return all
}
