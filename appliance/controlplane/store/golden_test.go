package store

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

var update = flag.Bool("update", false, "write this level's golden log")

// Every release makes of a log what every other one makes of it: the log that
// each feature level has left in testdata/golden gives the same tables. A change
// of what the state machine does belongs to a new level, from which on it does it
// (view.level); the golden logs of the levels before stay as they are.
func TestGoldenLogs(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	paths, err := filepath.Glob("testdata/golden/level-*.log")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	if last := fmt.Sprintf("testdata/golden/level-%d.log", Level); paths[len(paths)-1] != last {
		t.Errorf("there is no %s: go test -run TestGoldenLogs -update", last)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { replayGolden(t, path) })
	}
}

// replayGolden applies a log in pieces and compares the sums that it has after
// each: lines "TERM BASE64" are entries, "= SUM" is of the tables then.
func replayGolden(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	var piece []*raft.Log
	index := uint64(0)
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " ")
		if left != "=" {
			index++
			l := &raft.Log{Index: index, Type: raft.LogCommand}
			if _, err := fmt.Sscan(left, &l.Term); err != nil {
				t.Fatal(err)
			}
			if l.Data, err = base64.StdEncoding.DecodeString(right); err != nil {
				t.Fatal(err)
			}
			piece = append(piece, l)
			continue
		}
		f.ApplyBatch(piece)
		piece = nil
		if got, err := f.tables.sum(); err != nil || got != right {
			t.Fatalf("after entry %d the tables have the sum %s, %v; want %s", index, got, err, right)
		}
	}
	if err := lines.Err(); err != nil || index == 0 || len(piece) > 0 {
		t.Fatal(err, index, len(piece))
	}
}

func writeGolden(t *testing.T) {
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for i, l := range goldenEntries(t) {
		l.Index = uint64(i) + 1
		f.Apply(l)
		fmt.Fprintf(&out, "%d %s\n", l.Term, base64.StdEncoding.EncodeToString(l.Data))
		if i%10 == 9 || i == len(goldenEntries(t))-1 {
			sum, err := f.tables.sum()
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

// goldenEntries has every kind of command and of entry that this level writes.
func goldenEntries(t *testing.T) (all []*raft.Log) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	add := func(term uint64, data []byte) {
		all = append(all, &raft.Log{Type: raft.LogCommand, Term: term, Data: data})
	}
	batch := func(b api.Batch) []byte {
		at = at.Add(17 * time.Second)
		if b.At.IsZero() {
			b.At = at
		}
		raw, err := encodeBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	first, err := encodeSettled(settlement{Level: Level, ID: "0123456789abcdef", Members: []string{"node-a"}, AuditKey: []byte("of thirty-two bytes, all in all: ")})
	if err != nil {
		t.Fatal(err)
	}
	add(1, first)
	for k := 1; k <= 4; k++ { // objects, claims, records; batches with ids, the last one twice
		for client := range crashClients {
			add(1, batch(crashBatch(client, k)))
		}
	}
	add(1, batch(crashBatch(0, 4)))
	add(1, batch(quotaBatch()))
	add(1, batch(api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2", Name: "v", // beyond the quota
		Organization: "org-1", Project: "prj-1", Data: json.RawMessage(`{}`), Uses: api.Amounts{"a": 9}}}}))
	for _, e := range historyEntries(t)[:40] {
		add(2, e.data)
	}
	add(2, batch(api.Batch{Audit: &api.AuditNote{Actor: "key-1", Operation: "CreateFlavor"}, Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-e", Name: "e", Data: json.RawMessage(`{"a":"<&>"}`), Labels: map[string]string{"x": "y"}, Finalizers: []string{"f"},
			Raise: &api.Raise{Type: "a.b", Organization: "org-1"}}}}))
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
	add(3, termed(withTerm(t.Context(), 3), batch(crashBatch(1, 5))))
	add(3, termed(withTerm(t.Context(), 2), batch(crashBatch(1, 6)))) // of another term
	add(3, batch(api.Batch{Commands: []api.Command{api.ExpireRecords(crashOrg(0), at)}}))
	add(3, append([]byte{comparedVersion}, `{"bucket":"objects","key":"YQ=="}`...))
	add(3, oldEntry(t, 0, api.Batch{At: at, Commands: []api.Command{crashRecord(2, 9)}}).data)
	for _, b := range referenceBatches() {
		add(3, batch(b))
	}
	for _, b := range markBatches(at) {
		add(3, batch(b))
	}
	return all
}

// markBatches delete an organization with a mark of its use: refused when that has
// grown, also by a record that is not in the tables yet, and done when it has not.
func markBatches(at time.Time) []api.Batch {
	del := func(quantity uint64) api.Batch {
		return api.Batch{Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindOrganization, ID: "org-m", Expect: api.AnyRevision,
			Used: &api.UseMark{From: at.Truncate(time.Hour), Quantity: quantity}}}}
	}
	return []api.Batch{
		{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-m", Name: "m", Expect: api.AnyRevision, Data: json.RawMessage(`{}`)}}},
		{Commands: []api.Command{{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-m", Name: "use-m", Organization: "org-m", Project: "prj-m",
			Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-m", ResourceName: "m", Start: at, End: at.Add(time.Minute), Quantity: 5})}}},
		del(0), // refused
		del(5),
	}
}

// referenceBatches begin to refer, let go, and are refused, by strict and other
// batches.
func referenceBatches() []api.Batch {
	put := func(kind api.Kind, id string, spec any, finalizers ...string) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Expect: api.AnyRevision, Data: api.Encode(spec), Finalizers: finalizers}
	}
	del := func(kind api.Kind, id string, cascade bool) api.Command {
		return api.Command{Op: api.OpDelete, Kind: kind, ID: id, Expect: api.AnyRevision, Cascade: cascade}
	}
	var all []api.Batch
	add := func(strict bool, cmds ...api.Command) { all = append(all, api.Batch{Strict: strict, Commands: cmds}) }
	instance := put(api.KindInstance, "ins-r", api.InstanceSpec{Flavor: "flv-r", Image: "img-r", Vgpu: &api.VGPUSpec{Pool: "pool-r"}}, "agent")
	add(true, instance) // refused
	add(true, instance, put(api.KindImage, "img-r", api.ImageSpec{}, "agent"), put(api.KindFlavor, "flv-r", api.FlavorSpec{Vcpus: 1}), put(api.KindGPUPool, "pool-r", api.GPUPoolSpec{}))
	add(true, del(api.KindFlavor, "flv-r", false))    // refused
	add(false, del(api.KindGPUPool, "pool-r", false)) // refused
	add(false, put(api.KindVolume, "vol-r", api.VolumeSpec{Image: "img-none", Snapshot: "snap-none", Instance: "ins-r"}, "agent"))
	add(true, del(api.KindVolume, "vol-r", false)) // refused: the instance's
	add(true, put(api.KindInstance, "ins-r", api.InstanceSpec{Flavor: "flv-r"}), del(api.KindImage, "img-r", false))
	add(true, instance) // refused: the image is being deleted
	add(true, del(api.KindFlavor, "flv-r", true), del(api.KindInstance, "ins-r", false))
	return all
}
