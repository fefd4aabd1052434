package agent_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// disc uploads an installation medium to a node.
func (w *testCluster) disc(h *testNode, id string) {
	w.t.Helper()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: id, Name: id, Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: api.FormatISO})})
	w.turn()
	content := make([]byte, 64<<10)
	copy(content[16*2048:], "\x01CD001\x01")
	if err := h.Agent().PutImage(h.ctx, api.ImageID(id), bytes.NewReader(content)); err != nil {
		w.t.Fatal(err)
	}
	w.report()
}

// media returns what is in the drives of the machine on the node: the IDs of images.
func (h *testNode) media(id api.InstanceID) []string {
	drives, err := h.machines.Drives(context.Background(), id)
	if err != nil {
		return nil
	}
	all := []string{}
	for _, v := range drives {
		all = append(all, strings.TrimPrefix(v.Medium, "/fake/images/"))
	}
	return all
}

func fromMedia(media ...api.ImageID) func(*api.InstanceSpec, *api.InstanceAssignment) {
	return func(s *api.InstanceSpec, _ *api.InstanceAssignment) { s.Media = media }
}

func (w *testCluster) wantMedia(h *testNode, want ...string) {
	w.t.Helper()
	w.until("media are "+strings.Join(want, ", "), func() bool { return slices.Equal(h.media("ins-1"), want) })
}

// TestMediaAreExchanged checks that media are inserted and ejected while the machine
// runs, that a guest that has locked a drive is reported, and that the machine starts
// with the media that it has now.
func TestMediaAreExchanged(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.disc(a, "img-2")
	w.disc(a, "img-3")
	w.create(a, "ins-1", api.PoolLocal, fromMedia("img-2"))
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	w.wantMedia(a, "img-2", "")
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{"", "img-3"} })
	w.wantMedia(a, "", "img-3")

	a.machines.Hold("ins-1", true)
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{"img-2"} })
	w.until("the locked drive is reported", func() bool {
		in, _ := w.instance("ins-1")
		return strings.Contains(in.Status.LastError, "locked its CD drive") && in.Status.Phase == api.InstanceRunning
	})
	w.pass(time.Minute)
	if n := strings.Count(strings.Join(a.machines.Calls(), "\n"), "SetMedium"); n > 12 {
		t.Errorf("%d attempts to change media, want few in a minute", n)
	}
	a.machines.Hold("ins-1", false)
	w.wantMedia(a, "img-2", "")
	w.until("the error is gone", func() bool { in, _ := w.instance("ins-1"); return in.Status.LastError == "" })

	w.edit("ins-1", func(s *api.InstanceSpec) {
		s.Power, s.BootFrom, s.Media = api.PowerStopped, api.BootMedium, []api.ImageID{"img-3"}
	})
	w.until("ins-1 stopped", func() bool { in, _ := w.instance("ins-1"); return in.Status.Phase == api.InstanceStopped })
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
	w.wantMedia(a, "img-3", "")
	if _, running, ok := a.machines.Domain("ins-1"); !ok || !running.BootMedium || len(running.Drives) != api.MaxMedia {
		t.Errorf("domain = %+v, want it to boot from the medium, with %d drives", running, api.MaxMedia)
	}
}

// TestMediaWithoutDrives checks that a machine that was started without drives gets
// its media with its next start, and says so.
func TestMediaWithoutDrives(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	w.disc(a, "img-2")
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", a) })
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{"img-2"} })
	w.until("its status says when", func() bool {
		in, _ := w.instance("ins-1")
		return strings.Contains(in.Status.Step, "next start") && in.Status.LastError == ""
	})
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Restarts++ })
	w.wantMedia(a, "img-2", "")
	w.until("ins-1 runs again", func() bool { return w.runsOn("ins-1", a) })
	if in, _ := w.instance("ins-1"); in.Status.Step != "" {
		t.Errorf("step = %q, want none", in.Status.Step)
	}
}

// TestRescue checks that an instance boots from its rescue medium, with and without
// media of its own, and from its disk after the rescue, even if the rescue system has
// locked the drive.
func TestRescue(t *testing.T) {
	w := newTestCluster(t, 1, false)
	a := w.nodes[0]
	w.upload(a, "img-1")
	for _, id := range []string{"img-2", "img-3", "img-4"} {
		w.disc(a, id)
	}
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.create(a, "ins-2", api.PoolLocal, fromMedia("img-3", "img-4"))
	for _, c := range []struct {
		id                string
		rescued, repaired []string
	}{
		{"ins-1", []string{"img-2", ""}, []string{}},
		{"ins-2", []string{"img-2", "img-4"}, []string{"img-3", "img-4"}},
	} {
		boots := func(medium bool, media []string) {
			t.Helper()
			w.until(c.id+" boots with its media", func() bool {
				in, _ := w.instance(c.id)
				_, d, ok := a.machines.Domain(api.InstanceID(c.id))
				return ok && in.Status.Phase == api.InstanceRunning && in.Status.Restarts == in.Spec.Restarts && d.BootMedium == medium &&
					slices.Equal(a.media(api.InstanceID(c.id)), media)
			})
		}
		w.until(c.id+" runs", func() bool { return w.runsOn(c.id, a) })
		w.edit(c.id, func(s *api.InstanceSpec) { s.Rescue = "img-2"; s.Restarts++ })
		boots(true, c.rescued)
		a.machines.Hold(api.InstanceID(c.id), true)
		w.edit(c.id, func(s *api.InstanceSpec) { s.Rescue = ""; s.Restarts++ })
		boots(false, c.repaired)
		if in, _ := w.instance(c.id); in.Status.LastError != "" {
			t.Errorf("%s: last error = %q, want none", c.id, in.Status.LastError)
		}
	}
}

// TestMediumIsFetched checks that a medium that is only on another node is fetched
// before the machine starts, and before one is inserted.
func TestMediumIsFetched(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.disc(a, "img-2")
	w.disc(a, "img-3")
	w.create(b, "ins-1", api.PoolLocal, fromMedia("img-2"))
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.wantMedia(b, "img-2", "")
	if b.has("img-3") {
		t.Error("b has img-3, want only what its instances need")
	}
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = append(s.Media, "img-3") })
	w.wantMedia(b, "img-2", "img-3")
}

// TestMigrateWithMedia checks that a machine keeps its media in their drives.
func TestMigrateWithMedia(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.disc(a, "img-2")
	w.create(a, "ins-1", api.PoolShared, fromMedia("", "img-2"))
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.wantMedia(a, "", "img-2")
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	w.wantMedia(b, "", "img-2")
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{""} })
	w.wantMedia(b, "", "")
}

// TestMigrateFetchesMedia checks the same with pools that nodes do not share: the
// target has to fetch the medium first.
func TestMigrateFetchesMedia(t *testing.T) {
	w, a, b := migrating(t, api.PoolLocal)
	w.disc(a, "img-2")
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media, s.Restarts = []api.ImageID{"img-2"}, s.Restarts+1 })
	w.wantMedia(a, "img-2", "")
	w.until("ins-1 runs on a", func() bool { return w.runsOn("ins-1", a) })
	w.moveTo(a, b)
	if p := w.ended(); p != api.MigrationSucceeded {
		t.Fatalf("migration phase = %s (%s), want %s", p, w.migration().Status.LastError, api.MigrationSucceeded)
	}
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	if got, err := b.machines.Drives(b.ctx, "ins-1"); err != nil || !b.has("img-2") || !slices.Equal(got, []hypervisor.Drive{{Medium: "/fake/images/img-2"}, {}}) {
		t.Errorf("drives on the target = %+v, %v, medium there: %t; want img-2 in the first", got, err, b.has("img-2"))
	}
}

// TestUnusedMediaAreDeleted checks that a medium leaves a node some hours after its last
// use, that it is kept where the cluster keeps it and where a machine has it, and that it
// is fetched again.
func TestUnusedMediaAreDeleted(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	w.upload(a, "img-1")
	w.disc(a, "img-2")
	w.create(b, "ins-1", api.PoolLocal, fromMedia("img-2"))
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })
	if w.sweeps(6 * time.Hour); !b.has("img-2") {
		t.Error("b has no img-2, want it while it is in a drive")
	}

	b.machines.Hold("ins-1", true)
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{""} })
	if w.sweeps(6 * time.Hour); !b.has("img-2") {
		t.Error("b has no img-2, want it while the guest has locked the drive with it")
	}
	b.machines.Hold("ins-1", false)
	w.wantMedia(b, "", "")
	w.report()
	if w.sweeps(30 * time.Minute); !b.has("img-2") {
		t.Error("b has no img-2 soon after its last use, want it kept for a while")
	}
	if w.sweeps(3 * time.Hour); b.has("img-2") || !a.has("img-2") || !b.has("img-1") {
		t.Errorf("img-2 on b: %t, on a, which has imported it: %t; img-1, which is no medium, on b: %t; want false, true, true", b.has("img-2"), a.has("img-2"), b.has("img-1"))
	}

	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{"img-2"} })
	w.wantMedia(b, "img-2", "")
	w.edit("ins-1", func(s *api.InstanceSpec) { s.Media = []api.ImageID{""} })
	w.wantMedia(b, "", "")
	w.node(b, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.turn()
	if w.sweeps(6 * time.Hour); !b.has("img-2") {
		t.Error("b has no img-2, want it kept on a voter")
	}
}
