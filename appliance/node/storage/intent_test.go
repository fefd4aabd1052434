package storage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

func TestIntent(t *testing.T) {
	nodes, disks := map[string]api.Node{}, map[string]api.Disk{}
	f := storage.Bootstrap{FSID: "f", Port: deploy.MonPort, Replicas: 3, FailureDomain: "host"}
	for i, n := range []api.NodeID{"node-1", "node-2", "node-3"} {
		nodes[string(n)] = api.Node{Meta: api.Meta{ID: string(n)}, Spec: api.NodeSpec{PeerAddresses: []string{fmt.Sprintf("10.0.0.%d:7481", i+1)}}}
		f.Mons = append(f.Mons, n)
	}
	for _, o := range []storage.OSD{{Disk: "disk-a", Node: "node-1"}, {Disk: "disk-b", Node: "node-1"}, {Disk: "disk-c", Node: "node-1"}, {Disk: "disk-d", Node: "node-2"}} {
		o.UUID = "uuid-" + string(o.Disk)
		f.OSDs = append(f.OSDs, o)
		disks[string(o.Disk)] = api.Disk{Meta: api.Meta{ID: string(o.Disk)}, Status: api.DiskStatus{Node: o.Node}}
	}
	f.Pools = []storage.ClassPool{{Class: "hdd", Replicas: 2, Leaving: true, Drop: true}, {Class: "ssd", Replicas: 2}}
	f.Tables = []storage.Table{{Disk: "disk-n", Node: "node-1", UUID: "uuid-n", Wipe: true, Taken: true}, {Disk: "disk-o", Node: "node-2", UUID: "uuid-o"}}
	in := intent(f, nodes, disks, place{node: "node-1", dir: "/x", blocks: map[string]Block{
		"disk-n": {Path: "/dev/nvme0n1"},
		"disk-a": {Path: "/dev/sda", ByID: "/dev/disk/by-id/a"},
		"disk-b": {Path: "/dev/sdb", Held: "it is mounted at /srv"},
	}})
	var paths []string
	for _, d := range in.Disks {
		paths = append(paths, d.Path)
	}
	// A disk that something else mounted is left out, and a missing one has no
	// other disk's path.
	if want := []string{"/dev/disk/by-id/a", "/x/gone/disk-c", "/dev/unknown"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths of the disks = %q, want %q", paths, want)
	}
	if len(in.Tables) != 1 || in.Tables[0].Path != "/dev/nvme0n1" || in.Tables[0].Wipe || !in.Tables[0].Taken {
		t.Errorf("disks for databases = %+v, want /dev/nvme0n1, which is not wiped again", in.Tables)
	}
	if len(in.Pools) != 2 || in.Pools[1].Name != "basalt-ssd" || in.Pools[1].Class != "ssd" || !reflect.DeepEqual(in.Drop, []string{"basalt-hdd"}) {
		t.Errorf("pools = %+v, to delete %v, want basalt, basalt-ssd, and basalt-hdd to delete", in.Pools, in.Drop)
	}
	if len(in.Mons) != 3 || in.Mons[1].Address.String() != "10.0.0.2:3300" || in.Pools[0].Replicas != 3 || in.Pools[0].FailureDomain != "host" {
		t.Errorf("intent = %+v, want three monitors at port 3300 and a pool with 3 replicas on hosts", in)
	}
}

// TestIntentOnStorageNetwork checks that all of Ceph uses the addresses of the storage
// network, if the leader has decided so.
func TestIntentOnStorageNetwork(t *testing.T) {
	nodes := map[string]api.Node{"node-1": {Spec: api.NodeSpec{PeerAddresses: []string{"10.0.0.1:7481"}}}}
	f := storage.Bootstrap{FSID: "f", Port: deploy.MonPort, Mons: []api.NodeID{"node-1"}}
	at := place{node: "node-2", storage: netip.MustParseAddr("198.51.100.2")}
	if in := intent(f, nodes, nil, at); in.Address.IsValid() || in.Mons[0].Address.String() != "10.0.0.1:3300" {
		t.Errorf("intent on the main path = own address %v, monitors %v; want none of its own, 10.0.0.1", in.Address, in.Mons)
	}
	f.Addresses = map[api.NodeID]netip.Addr{"node-1": netip.MustParseAddr("198.51.100.1")}
	if in := intent(f, nodes, nil, at); in.Address != at.storage || in.Mons[0].Address.String() != "198.51.100.1:3300" {
		t.Errorf("intent on the storage network = own address %v, monitors %v; want 198.51.100.2, 198.51.100.1", in.Address, in.Mons)
	}
}

// TestIntentOfEncryptedDisks checks that a node gets the keys of its own OSDs, and knows
// which of the others are encrypted; a key that does not open is reported.
func TestIntentOfEncryptedDisks(t *testing.T) {
	f := storage.Bootstrap{FSID: "f", OSDs: []storage.OSD{
		{Disk: "disk-a", Node: "node-1", UUID: "uuid-a", Key: "good"}, {Disk: "disk-b", Node: "node-1", UUID: "uuid-b", Key: "bad"},
		{Disk: "disk-c", Node: "node-1", UUID: "uuid-c"}, {Disk: "disk-d", Node: "node-2", UUID: "uuid-d", Key: "good"},
	}}
	opened := keysFunc(func(osd, sealed string) (string, error) {
		if sealed != "good" || osd != "uuid-a" {
			return "", errors.New("it does not open")
		}
		return "hidden", nil
	})
	keys, err := (&Node{Self: "node-1", Keys: opened}).keysOf(t.Context(), f)
	if err == nil || !strings.Contains(err.Error(), "disk-b") || strings.Contains(err.Error(), "disk-d") {
		t.Errorf("keysOf = %v, want an error of disk-b only", err)
	}
	var got []string
	for _, d := range intent(f, nil, nil, place{node: "node-1", keys: keys}).Disks {
		switch c := d.Crypt; {
		case c == nil:
			got = append(got, "plain")
		case c.Lacks != "":
			got = append(got, "lacks key: "+c.Lacks)
		default:
			got = append(got, fmt.Sprint(c.Key == deploy.Secret{}))
		}
	}
	if want := []string{"false", "lacks key: it does not open", "plain", "true"}; !reflect.DeepEqual(got, want) {
		t.Errorf("encryption of the disks = %q, want %q", got, want)
	}
}

type keysFunc func(osd, sealed string) (string, error)

func (f keysFunc) OpenOSDKey(_ context.Context, osd, sealed string) (string, error) {
	return f(osd, sealed)
}

// TestIntentWipesOnce checks that a disk that is in Ceph is not wiped again.
func TestIntentWipesOnce(t *testing.T) {
	for taken, want := range map[bool]bool{false: true, true: false} {
		f := storage.Bootstrap{FSID: "f", OSDs: []storage.OSD{{Disk: "disk-a", Node: "node-1", UUID: "uuid-1", Taken: taken, Wipe: true}}}
		in := intent(f, nil, nil, place{node: "node-1", address: netip.MustParseAddr("127.0.0.1"), blocks: map[string]Block{"disk-a": {Path: "/dev/sda"}}})
		if len(in.Disks) != 1 || in.Disks[0].Wipe != want {
			t.Errorf("taken %v: disks = %+v, want one with Wipe %v", taken, in.Disks, want)
		}
	}
}
