package drivertest

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds"
)

// RunShared runs the suite for two drivers of one pool; open creates an empty
// pool for one test and returns two drivers of it. Tests named in except are
// left out.
func RunShared(t *testing.T, open func(t *testing.T) (a, b sds.Driver), except ...string) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, a, b sds.Driver)
	}{
		{"SeeTheSame", testSeeTheSame}, {"Claims", testClaims}, {"ClaimRace", testClaimRace},
		{"SameVolumeAtOnce", testSameVolumeAtOnce}, {"ImageAgainstVolume", testImageAgainstVolume}, {"Orphans", testOrphans}, {"State", testState},
	} {
		if slices.Contains(except, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			c.test(t, a, b)
		})
	}
}

func testSeeTheSame(t *testing.T, a, b sds.Driver) {
	ctx := t.Context()
	if a.PoolID() == "" || a.PoolID() != b.PoolID() || !a.Capabilities().Shared {
		t.Errorf("pool IDs = %q and %q with %+v, want the same and Shared", a.PoolID(), b.PoolID(), a.Capabilities())
	}
	importImage(t, a, "img-1")
	if img, err := b.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.QCOW2, Content: failing{}}); err != nil || img.ID != "img-1" {
		t.Errorf("ImportImage of an image in the pool = %+v, %v, want the existing one", img, err)
	}
	if _, err := b.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "delete of an image in use", a.DeleteImage(ctx, "img-1"), api.CodeInUse)
	if _, err := a.ResizeVolume(ctx, "vol-1", 9*mib, sds.Access{}); err != nil {
		t.Errorf("ResizeVolume: %v", err)
	}
	if v, err := b.Volume(ctx, "vol-1"); err != nil || v.SizeBytes != 9*mib {
		t.Errorf("Volume from the other node = %+v, %v, want %d bytes", v, err, 9*mib)
	}
	if v, err := a.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 1}); err != nil || v.SizeBytes != 2*mib {
		t.Errorf("RecreateVolume = %+v, %v, want %d bytes", v, err, 2*mib)
	}
	if err := b.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
	_, err := a.Volume(ctx, "vol-1")
	wantCode(t, "deleted by the other", err, api.CodeNotFound)
}

func testClaims(t *testing.T, a, b sds.Driver) {
	ctx := t.Context()
	node := func(n api.NodeID, epoch int64) sds.Owner { return sds.Owner{Node: n, Epoch: epoch} }
	wantCode(t, "claim of a missing volume", a.ClaimVolume(ctx, "vol-1", node("node-a", 1)), api.CodeNotFound)
	if err := a.ReleaseVolume(ctx, "vol-1", node("node-a", 1)); err != nil {
		t.Errorf("ReleaseVolume of a missing volume: %v", err)
	}
	importImage(t, a, "img-1")
	if _, err := a.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Owner(ctx, "vol-1"); err != nil || got != (sds.Owner{}) {
		t.Errorf("Owner of an unclaimed volume = %+v, %v, want none", got, err)
	}
	for i, c := range []struct {
		by      sds.Driver
		release bool
		who     sds.Owner
		code    api.Code
		owner   sds.Owner // afterwards
	}{
		{a, false, node("node-a", 2), "", node("node-a", 2)},
		{a, false, node("node-a", 2), "", node("node-a", 2)},
		{b, false, node("node-b", 2), api.CodeState, node("node-a", 2)},
		{b, false, node("node-b", 1), api.CodeState, node("node-a", 2)},
		{a, false, node("node-a", 1), "", node("node-a", 2)},
		{b, true, node("node-b", 2), "", node("node-a", 2)}, // not its own claim
		{b, false, node("node-b", 10), "", node("node-b", 10)},
		{a, true, node("node-a", 2), "", node("node-b", 10)}, // taken over
		{a, false, node("node-a", 9), api.CodeState, node("node-b", 10)},
		{b, true, node("node-b", 10), "", sds.Owner{}},
		{b, true, node("node-b", 10), "", sds.Owner{}},
		{a, false, node("node-a", 10), api.CodeState, sds.Owner{}}, // the epoch still counts
		{b, false, node("node-b", 9), api.CodeState, sds.Owner{}},
		{b, false, node("node-b", 10), "", node("node-b", 10)},
		{a, false, node("node-a", 11), "", node("node-a", 11)},
	} {
		verb := c.by.ClaimVolume
		if c.release {
			verb = c.by.ReleaseVolume
		}
		if err := verb(ctx, "vol-1", c.who); c.code == "" && err != nil || c.code != "" && (err == nil || api.CodeOf(err) != c.code) {
			t.Errorf("step %d: error = %v, want code %q", i, err, c.code)
		}
		for _, d := range []sds.Driver{a, b} {
			if got, err := d.Owner(ctx, "vol-1"); err != nil || got != c.owner {
				t.Errorf("step %d: Owner = %+v, %v, want %+v", i, got, err, c.owner)
			}
		}
	}
	if _, err := b.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 1}); err != nil {
		t.Errorf("RecreateVolume: %v", err)
	}
	if got, err := a.Owner(ctx, "vol-1"); err != nil || got != node("node-a", 11) {
		t.Errorf("Owner after RecreateVolume = %+v, %v, want node-a with epoch 11", got, err)
	}
}

// testClaimRace checks that of many concurrent claims in one epoch one
// succeeds, and that the highest epoch wins.
func testClaimRace(t *testing.T, a, b sds.Driver) {
	if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	for n := range rounds(10, 3) {
		epoch := int64(2*n + 1)
		var won, top atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			d := []sds.Driver{a, b}[i%2]
			o := sds.Owner{Node: api.NodeID(fmt.Sprintf("node-%d", i)), Epoch: epoch + int64(i/7)} // one of them has a higher epoch
			wg.Go(func() {
				switch err := d.ClaimVolume(t.Context(), "vol-1", o); {
				case err == nil && o.Epoch > epoch:
					top.Add(1)
				case err == nil:
					won.Add(1)
				case api.CodeOf(err) != api.CodeState:
					t.Errorf("ClaimVolume by %s: %v, want nil or wrong_state", o.Node, err)
				}
			})
		}
		wg.Wait()
		if won.Load() > 1 || top.Load() != 1 {
			t.Errorf("successful claims = %d in epoch %d and %d in epoch %d, want at most 1 and exactly 1", won.Load(), epoch, top.Load(), epoch+1)
		}
		if got, err := b.Owner(t.Context(), "vol-1"); err != nil || got != (sds.Owner{Node: "node-7", Epoch: epoch + 1}) {
			t.Errorf("Owner = %+v, %v, want node-7 with epoch %d", got, err, epoch+1)
		}
	}
}

// testSameVolumeAtOnce lets both nodes create, grow, recreate and delete the
// same volume: the only errors are about a volume that exists or does not
// exist.
func testSameVolumeAtOnce(t *testing.T, a, b sds.Driver) {
	importImage(t, a, "img-1")
	var wg sync.WaitGroup
	for i, d := range []sds.Driver{a, b, a, b} {
		wg.Go(func() {
			for n := range rounds(6, 2) {
				ctx := t.Context()
				_, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
				allow(t, "create", err, api.CodeNotFound) // deleted between its creation and the query
				_, err = d.ResizeVolume(ctx, "vol-1", 4*mib, sds.Access{})
				allow(t, "resize", err, api.CodeNotFound)
				_, err = d.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: int64(4*n + i)})
				allow(t, "recreate", err, api.CodeState, api.CodeNotFound)
				_, err = d.Volumes(ctx)
				allow(t, "list", err)
				allow(t, "delete", d.DeleteVolume(ctx, "vol-1"))
			}
		})
	}
	wg.Wait()
	if all, err := b.Volumes(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("Volumes at the end = %+v, %v, want none", all, err)
	}
}

// testImageAgainstVolume checks that an image is never deleted while a volume
// is being created from it.
func testImageAgainstVolume(t *testing.T, a, b sds.Driver) {
	for range rounds(8, 3) {
		importImage(t, a, "img-1")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
			allow(t, "create", err, api.CodeNotFound)
		})
		wg.Go(func() { allow(t, "delete", b.DeleteImage(t.Context(), "img-1"), api.CodeInUse) })
		wg.Wait()
		_, volume := a.Volume(t.Context(), "vol-1")
		_, image := b.Image(t.Context(), "img-1")
		if volume == nil && image != nil {
			t.Fatalf("the volume exists and its image does not: %v", image)
		}
		if err := a.DeleteVolume(t.Context(), "vol-1"); err != nil {
			t.Fatal(err)
		}
	}
}

func testOrphans(t *testing.T, a, b sds.Driver) {
	for _, id := range []api.VolumeID{"vol-1", "vol-2"} {
		if _, err := a.CreateVolume(t.Context(), sds.VolumeCreate{ID: id, SizeBytes: mib}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.Volumes(t.Context())
	if err != nil || len(all) != 2 || all[0].Age < 0 || all[0].Age > time.Hour {
		t.Fatalf("Volumes = %+v, %v, want two with an age of less than an hour", all, err)
	}
	known := func(id api.VolumeID) bool { return id == "vol-1" }
	if got := sds.Orphans(all, time.Hour, known); len(got) != 0 {
		t.Errorf("Orphans with a minimum age = %+v, want none", got)
	}
	if got := sds.Orphans(all, 0, known); len(got) != 1 || got[0].ID != "vol-2" {
		t.Errorf("Orphans = %+v, want vol-2", got)
	}
}

// rounds counts to all; where a round takes seconds, as over a real cluster,
// it only starts few, and all in the long tests.
func rounds(all, few int) iter.Seq[int] {
	const enough = 4 * time.Second
	return func(yield func(int) bool) {
		began := time.Now()
		for n := range all {
			if n >= few && !layer.Long() && time.Since(began) > enough || !yield(n) {
				return
			}
		}
	}
}

func allow(t *testing.T, what string, err error, codes ...api.Code) {
	t.Helper()
	for _, c := range codes {
		if err != nil && api.CodeOf(err) == c {
			return
		}
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
