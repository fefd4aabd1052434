package state

import (
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// settleAt raises the tables' level with a log entry.
func settleAt(t *testing.T, tb *tables, index uint64, level int) {
	t.Helper()
	raw, err := EncodeSettlement(Settlement{Level: level, ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, tb, Entry{index, raw})
}

// Below its level the state machine checks no references and keeps no index; when the
// cluster reaches the level, the index is built from the existing objects, and dangling
// references refuse nothing.
func TestReferencesBeginWithTheirLevel(t *testing.T) {
	old, from := bare(t), bare(t)
	settleAt(t, from, 1, referencesLevel)
	settleAt(t, old, 1, referencesLevel-1)
	index := uint64(1)
	for _, b := range statetest.References() {
		index++
		if answers, _ := mustApply(t, old, logEntry(t, index, b)); answers[0].Refused != nil && answers[0].Refused.Code != api.CodeNotFound && answers[0].Refused.Code != api.CodeState {
			t.Errorf("level %d refused a batch for its references: %v", referencesLevel-1, answers[0].Refused)
		}
	}
	if got := indexOf(t, old); got != "none" {
		t.Errorf("index at level %d = %s, want none", referencesLevel-1, got)
	}
	put := func(kind api.Kind, id string, spec any) api.Batch {
		return api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Expect: api.AnyRevision, Data: api.Encode(spec)}}}
	}
	for _, b := range []api.Batch{
		put(api.KindFlavor, "flv-1", api.FlavorSpec{}),
		put(api.KindInstance, "ins-1", api.InstanceSpec{Flavor: "flv-1", Image: "img-none"}), // dangles
		put(api.KindSecurityGroup, "sg-1", api.SecurityGroupSpec{Rules: []api.SecurityRule{{Group: "sg-none"}}}),
	} {
		index++
		mustApply(t, old, logEntry(t, index, b))
		mustApply(t, from, logEntry(t, index, b))
	}
	settleAt(t, old, index+1, referencesLevel)
	if got := indexOf(t, old); !strings.Contains(got, "Flavor/flv-1//Instance/ins-1\n") || !strings.Contains(got, "Image/img-none//Instance/ins-1\n") {
		t.Errorf("index after raising the level lacks references of existing objects:\n%s", got)
	}
	for name, tb := range map[string]*tables{"raised": old, "begun so": from} {
		del := logEntry(t, index+2, api.Batch{Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision}}})
		if answers, _ := mustApply(t, tb, del); answers[0].Refused == nil || answers[0].Refused.Code != api.CodeInUse {
			t.Errorf("%s: delete a flavor in use: %+v, want it refused with %s", name, answers[0], api.CodeInUse)
		}
		b := put(api.KindInstance, "ins-1", api.InstanceSpec{Flavor: "flv-1", Image: "img-none", UserData: "b"})
		b.Strict = true
		if answers, _ := mustApply(t, tb, logEntry(t, index+3, b)); answers[0].Refused != nil {
			t.Errorf("%s: change of an object with a dangling reference was refused: %v", name, answers[0].Refused)
		}
	}
}

// After every change the updated index equals an index built from the objects.
func TestReferenceIndexFollows(t *testing.T) {
	tb := bare(t)
	settleAt(t, tb, 1, Level)
	for i, b := range statetest.References() {
		answers, _ := mustApply(t, tb, logEntry(t, uint64(i)+2, b))
		if r := answers[0].Refused; r != nil && r.Code != api.CodeInUse && r.Code != api.CodeNotFound {
			t.Fatalf("batch %d refused with %v, want code %s or %s", i, r, api.CodeInUse, api.CodeNotFound)
		}
		followed := indexOf(t, tb)
		if err := tb.db.Update(func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket(bucketRefs); err != nil {
				return err
			}
			return ViewOf(tx).indexReferences()
		}); err != nil {
			t.Fatal(err)
		}
		if made := indexOf(t, tb); made != followed {
			t.Fatalf("index after %+v =\n%s\nwant\n%s", b.Commands, followed, made)
		}
	}
	if got := indexOf(t, tb); !strings.Contains(got, "Snapshot/snap-none//Volume/vol-r") {
		t.Errorf("index lacks the snapshot of volume vol-r:\n%s", got)
	}
}

// BenchmarkReferences measures a command in the state machine with and without
// references, among 10,000 instances of one flavor: one that creates an instance, one
// that reports, and a delete that is refused. "decide" is the state machine alone;
// "commit" includes the tables and the disk, with 256 entries per transaction.
func BenchmarkReferences(b *testing.B) {
	const instances = 10_000
	put := func(n int, strict bool) api.Batch {
		return api.Batch{Strict: strict, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindInstance, ID: fmt.Sprint("ins-", n), Name: fmt.Sprint("n", n), Expect: api.AnyRevision,
			Data: api.Encode(api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Networks: []api.InstanceNetwork{{Network: "net-1"}}})}}}
	}
	for _, level := range []int{referencesLevel - 1, referencesLevel} {
		tb := bare(b)
		var first []api.Command
		for kind, id := range map[api.Kind]string{api.KindFlavor: "flv-1", api.KindImage: "img-1", api.KindNetwork: "net-1"} {
			first = append(first, api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Data: []byte(`{}`)})
		}
		raw, err := EncodeSettlement(Settlement{Level: level, ID: "one"})
		if err != nil {
			b.Fatal(err)
		}
		mustApply(b, tb, Entry{1, raw}, logEntry(b, 2, api.Batch{Commands: first}))
		index := uint64(2)
		var group []Entry
		for n := range instances {
			index++
			if group = append(group, logEntry(b, index, put(n, false))); len(group) == 500 {
				mustApply(b, tb, group...)
				group = nil
			}
		}
		made := instances
		for name, batch := range map[string]func() api.Batch{
			"make": func() api.Batch { made++; return put(made, true) },
			"report": func() api.Batch {
				made++
				return api.Batch{Commands: []api.Command{{Op: api.OpReport, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision, Data: fmt.Appendf(nil, `{"n":%d}`, made)}}}
			},
			"delete-refused": func() api.Batch {
				id := "flv-1"
				if level < referencesLevel {
					id = "flv-none" // it would be deleted
				}
				return api.Batch{Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision}}}
			},
		} {
			b.Run(fmt.Sprintf("decide/%s/level-%d", name, level), func(b *testing.B) {
				b.ReportAllocs()
				if err := tb.read(func(v View) error {
					for range b.N {
						batch := batch()
						_, _ = newTxn(v, v.Revision(), batch.At).apply(batch) // refused or not
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			})
			b.Run(fmt.Sprintf("commit/%s/level-%d", name, level), func(b *testing.B) {
				var group []Entry
				for range b.N {
					index++
					group = append(group, logEntry(b, index, batch()))
				}
				b.ReportAllocs()
				b.ResetTimer()
				for len(group) > 0 { // 256 per transaction, as Raft passes them
					n := min(256, len(group))
					mustApply(b, tb, group[:n]...)
					group = group[n:]
				}
			})
		}
	}
}
