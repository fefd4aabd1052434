// Package statetest has helpers that the tests of the state machine, of the node and of
// backups share: batches to write, and functions that read tables.
package statetest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Clients is how many clients write at once in tests of crashes.
const Clients = 4

// Batch returns the k-th write of a client: two objects with the same number, and a
// record. A partly applied batch is recognizable.
func Batch(client, k int) api.Batch {
	data := fmt.Appendf(nil, `{"n":%d,"pad":"%0*d"}`, k, 1+k*37%3000, k)
	put := func(half string) api.Command {
		id := fmt.Sprintf("flv-%s%d", half, client)
		return api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id, Expect: api.AnyRevision, Data: data}
	}
	a := put("a")
	if k%2 == 0 {
		a.Claims = []string{fmt.Sprintf("k/%d/%d", client, k)}
	}
	return api.Batch{ID: fmt.Sprintf("c%d-%d", client, k), Commands: []api.Command{a, put("b"), Record(client, k)}}
}

// Record returns the command that records that the client used k in the k-th second.
func Record(client, k int) api.Command {
	end := Began.Add(time.Duration(k) * time.Second)
	return api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%d-%08d", client, k), Organization: Org(client), Project: "prj-1",
		Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: fmt.Sprint("ins-", client), ResourceName: "n", Start: end.Add(-time.Second), End: end, Quantity: int64(k)})}
}

// Org returns the organization of a client.
func Org(client int) string { return fmt.Sprint("org-", client) }

// Began is when the first usage record of Use begins.
var Began = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

// Use returns a batch that records the n-th quarter of an hour of three instances.
func Use(n int) api.Batch {
	b := api.Batch{At: Began}
	end := Began.Add(time.Duration(n+1) * 15 * time.Minute)
	for i := range 3 {
		b.Commands = append(b.Commands, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%d-%d", n, i),
			Organization: fmt.Sprint("org-", i%2), Project: "prj-1", Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU,
				Resource: fmt.Sprint("ins-", i), ResourceName: fmt.Sprint("name-", n), Start: end.Add(-15 * time.Minute), End: end, Quantity: int64(100*n + i)})})
	}
	return b
}

// Claims returns a batch that creates a flavor that holds names.
func Claims(id string, names ...string) api.Batch {
	return api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision, Data: []byte(`{}`), Claims: names}}}
}

// Quotas returns a batch that creates an organization with a limit, and objects that
// reach it.
func Quotas() api.Batch {
	put := func(kind api.Kind, id, organization, project string, uses, limits api.Amounts) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: organization, Project: project,
			Data: json.RawMessage(`{}`), Uses: uses, Limits: limits}
	}
	return api.Batch{Commands: []api.Command{
		// A backup is in the order of kinds: one of the objects with amounts comes
		// before the project and the organization, one after.
		put(api.KindOrganization, "org-1", "", "", nil, api.Amounts{"a": 8}),
		put(api.KindProject, "prj-1", "org-1", "", nil, nil),
		put(api.KindFloatingIP, "fip-1", "org-1", "prj-1", api.Amounts{"a": 3}, nil),
		put(api.KindVolume, "vol-1", "org-1", "prj-1", api.Amounts{"a": 5, "b": 2}, nil),
	}}
}

// References returns batches, strict and others, that add references, drop them, and are
// refused.
func References() []api.Batch {
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

// Marks returns batches that delete an organization with a mark of its use: refused
// when the use has grown, also by a record that is not in the tables yet, and accepted
// when it has not.
func Marks(at time.Time) []api.Batch {
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

// Meters are the meters of an instance with a virtual GPU, in the order of keys.
var Meters = []api.Meter{api.MeterGPU, api.MeterMemory, api.MeterVCPU, api.MeterVRAM}

// Sum returns a digest of all state, except for the index of the last applied entry:
// entries without commands change that at other moments.
func Sum(tx *bbolt.Tx) (string, error) {
	h := sha256.New()
	err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		fmt.Fprintf(h, "%q %d\n", name, b.Sequence())
		return b.ForEach(func(k, value []byte) error {
			if string(name) != "meta" || string(k) != "applied" {
				fmt.Fprintf(h, "%q %q\n", k, value)
			}
			return nil
		})
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// Contents returns all keys and values of tables, by bucket, except for the buckets in
// but.
func Contents(tx *bbolt.Tx, but ...string) (map[string]string, error) {
	out := map[string]string{}
	err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if slices.Contains(but, string(name)) {
			return nil
		}
		return b.ForEach(func(k, raw []byte) error {
			out[fmt.Sprintf("%s %q", name, k)] = string(raw)
			return nil
		})
	})
	return out, err
}

// Differences returns the keys whose values differ between two contents.
func Differences(got, want map[string]string) (out []string) {
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			out = append(out, fmt.Sprintf("%s is %q, want %q", k, g, w))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			out = append(out, k+" exists, want it absent")
		}
	}
	return out
}

// ReferenceIndex returns the index of references as text, or "none" before it exists.
func ReferenceIndex(tx *bbolt.Tx) string {
	b := tx.Bucket([]byte("references"))
	if b == nil {
		return "none"
	}
	var out strings.Builder
	_ = b.ForEach(func(k, _ []byte) error { // never fails
		out.WriteString(strings.ReplaceAll(string(k), "\x00", "/") + "\n")
		return nil
	})
	return out.String()
}
