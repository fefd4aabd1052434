package ceph

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// TestDecode decodes output of Ceph 16.2, except for that of the watcher.
func TestDecode(t *testing.T) {
	used, err := decodeUsage([]byte(`{"images":[{"name":"v.1","id":"1029f","snapshot":"snap-1","snapshot_id":4,"provisioned_size":8388608,"used_size":4194304},{"name":"v.1","id":"1029f","provisioned_size":16777216,"used_size":4194304},{"name":"v.2","id":"102","provisioned_size":512,"used_size":0}],"total_provisioned_size":8388608,"total_used_size":4194304}`))
	want := map[string]usage{"v.1": {16 << 20, 8 << 20}, "v.2": {512, 0}}
	if diff := cmp.Diff(want, used, cmp.AllowUnexported(usage{})); diff != "" || err != nil {
		t.Errorf("decodeUsage: %v, mismatch (-want +got):\n%s", err, diff)
	}
	snaps, err := decodeSnaps([]byte(`[{"id":9,"name":"read.x","size":8388608,"protected":"true","timestamp":"Sat Nov 21 22:55:00 2026"},{"id":4,"name":"snap-1","size":8388608,"protected":"true","timestamp":"Sun Nov  1 02:05:00 2026"},{"id":5,"name":"snap-2","size":8388608,"protected":"false","timestamp":"Sun Nov  1 02:05:00 2026"}]`))
	if err != nil || len(snaps) != 3 || snaps[0].Name != "snap-1" || !snaps[0].kept() || snaps[1].kept() || snaps[2].kept() {
		t.Errorf("decodeSnaps = %+v, %v, want snap-1 first and it alone kept", snaps, err)
	}
	if s, err := snaps[0].public("vol-1", 1<<20); err != nil || s.SizeBytes != 7<<20 || s.CreatedAt.Format("2006-01-02T15:04:05Z07:00") != "2026-11-01T02:05:00Z" {
		t.Errorf("said of snap-1 = %+v, %v, want 7 MiB at 2026-11-01T02:05:00Z", s, err)
	}
	watch, err := decodeWatchers([]byte(`{"watchers":[{"address":"10.0.0.1:0/4711","client":4123,"cookie":94}]}`))
	if err != nil || len(watch) != 1 || watch[0] != "10.0.0.1:0/4711" {
		t.Errorf("decodeWatchers = %v, %v, want 10.0.0.1:0/4711", watch, err)
	}
	space, err := decodeSpace([]byte(`{"pools":[{"name":"other","stats":{}},{"name":"basalt","id":1,"stats":{"stored":100,"max_avail":1000,"quota_bytes":300}}]}`), "basalt", sds.Space{})
	if err != nil || space != (sds.Space{TotalBytes: 300, FreeBytes: 200}) {
		t.Errorf("decodeSpace = %+v, %v, want 300 bytes in total and 200 free", space, err)
	}
	// Ceph's source (PGMapDigest::dump_object_stat_sum) divides the pool's space
	// by the number of copies times (num_object_copies - num_objects_degraded) /
	// num_object_copies. While an OSD is down or objects move, more may be
	// counted as degraded than there are copies: then the result is negative, and
	// does not describe the space.
	for last, want := range map[sds.Space]sds.Space{
		{}:                                 {TotalBytes: 100},
		{TotalBytes: 1000, FreeBytes: 950}: {TotalBytes: 1000, FreeBytes: 900},
		{TotalBytes: 60, FreeBytes: 60}:    {TotalBytes: 100},
	} {
		space, err = decodeSpace([]byte(`{"pools":[{"name":"basalt","stats":{"stored":100,"max_avail":18446744072112852352}}]}`), "basalt", last)
		if err != nil || space != want {
			t.Errorf("decodeSpace after %+v = %+v, %v, want %+v", last, space, err, want)
		}
	}
	// A manager that has just started.
	if _, err := decodeSpace([]byte(`{"pools":[]}`), "basalt", sds.Space{}); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("decodeSpace without the pool = %v, want %s", err, api.CodeUnavailable)
	}
}

func TestLockers(t *testing.T) {
	got, err := decodeLockers([]byte(`[{"id":"auto 94","locker":"client.4157","address":"10.0.0.1:0/4711"}]`))
	if err != nil || !slices.Equal(got, []string{"10.0.0.1:0/4711"}) {
		t.Errorf("decodeLockers = %v, %v, want 10.0.0.1:0/4711", got, err)
	}
	for _, none := range []string{"[]", "", "\n"} {
		if got, err := decodeLockers([]byte(none)); err != nil || len(got) != 0 {
			t.Errorf("decodeLockers(%q) = %v, %v, want none", none, got, err)
		}
	}
	for _, bad := range []string{`[{"address":"--help"}]`, `{`} {
		if got, err := decodeLockers([]byte(bad)); err == nil {
			t.Errorf("decodeLockers(%q) = %v, want an error", bad, got)
		}
	}
}

func TestClientAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:0/4711": "10.0.0.1", "v1:10.0.0.1:0/1": "10.0.0.1", "[fd00::1]:0/9": "fd00::1", "v2:[fd00::1]:0/9": "fd00::1",
	} {
		if got, err := clientAddress(in); err != nil || got != netip.MustParseAddr(want) {
			t.Errorf("clientAddress(%q) = %v, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "10.0.0.1", "10.0.0.1:0", "--help/1", "a:b/c"} {
		if got, err := clientAddress(in); err == nil {
			t.Errorf("clientAddress(%q) = %v, want an error", in, got)
		}
	}
}

func TestNames(t *testing.T) {
	d := &Driver{opt: Options{Node: "node-a"}, session: nodeMark("node-a") + "xxxxxxxx"}
	disk, letGo := d.newDisk(volumes, "vol-1")
	k, id, session, ok := ownerOf(disk)
	if k != volumes || id != "vol-1" || session != d.session || !ok {
		t.Errorf("ownerOf(%s) = %s %s %s %v, want volume vol-1 and session %s", disk, k, id, session, ok, d.session)
	}
	if !d.own(session) || !d.own(nodeMark("node-a")+"yyyyyyyy") || d.own(nodeMark("node-b")+"yyyyyyyy") {
		t.Error("own does not report exactly the sessions of node-a")
	}
	if !d.held.has(disk) || d.held.has(sent(disk)) {
		t.Errorf("disk %s is not held by the process that creates it, or its received file is held too", disk)
	}
	if letGo(); d.held.has(disk) {
		t.Errorf("disk %s is still held after letGo", disk)
	}
	if _, _, _, ok := ownerOf("somebody-elses-image"); ok {
		t.Error("ownerOf a foreign image succeeded, want failure")
	}
	disk, _ = d.newDisk(images, "img-1")
	if k, id, _, ok := ownerOf(sent(disk)); k != images || id != "img-1" || !ok {
		t.Errorf("ownerOf(%s) = %s %s %v, want image img-1", sent(disk), k, id, ok)
	}
}

func TestMark(t *testing.T) {
	at := time.Unix(1795312345, 0)
	when, k, id, ok := parseMark(markOf(at, volumes, "vol.1"))
	if !when.Equal(at) || k != volumes || id != "vol.1" || !ok {
		t.Errorf("parseMark = %v %s %s %v, want %v, volume vol.1", when, k, id, ok, at)
	}
	if markOf(at, volumes, "v") >= markOf(at.Add(time.Second), images, "i") {
		t.Error("markOf a later time sorts before an earlier one, want the order of time")
	}
	for _, bad := range []string{"", "1", "1.volume", "1.volume.", "x.volume.vol-1", "1.key.vol-1"} {
		if _, _, _, ok := parseMark(bad); ok {
			t.Errorf("parseMark(%q) succeeded, want failure", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"images":[{"name":"v","used_size":-1}],"watchers":[{"address":"x"}],"pools":[{"name":"basalt"}]}`))
	f.Add([]byte(`[{"id":1,"name":"x","timestamp":"x"}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		used, _ := decodeUsage(raw)
		for _, u := range used {
			if u.allocated < 0 {
				t.Errorf("decodeUsage = %+v, want no negative value", u)
			}
		}
		if s, err := decodeSpace(raw, "basalt", sds.Space{}); err == nil && (s.FreeBytes < 0 || s.TotalBytes < s.FreeBytes) {
			t.Errorf("decodeSpace = %+v, want 0 <= free <= total", s)
		}
		snaps, _ := decodeSnaps(raw)
		for _, s := range snaps {
			_, _ = s.public("vol-1", 0)
		}
		_, _ = decodeWatchers(raw)
		_, _ = decodeTrash(raw)
		if at, k, id, ok := parseMark(string(raw)); ok && at.Unix() >= 0 {
			if again, _, _, ok := parseMark(markOf(at, k, id)); !ok || !again.Equal(at) {
				t.Errorf("mark %q of time %v does not round-trip", raw, at)
			}
		}
	})
}
