package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
)

// TestLeaks checks that what belongs to no object is listed until it is swept, and
// that what is in use is not.
func TestLeaks(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	ctx := context.Background()
	if _, err := n.volumes.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-0000", SizeBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	n.vgpus.slices["ins-0000"] = true
	for _, dir := range []string{"instances", "run"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir, "ins-0000"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.prepare()
	got, err := n.agent.Leaks(ctx, "node-1")
	want := "{ins-0000 Instance virtual GPU, files, sockets}"
	if err != nil || len(got) != 2 || fmt.Sprint(got[0]) != want || got[1].ID != "vol-0000" || !strings.HasPrefix(got[1].What, "in pool local, unknown to the cluster; kept until ") {
		t.Errorf("leaks = %v, error %v; want %s and vol-0000", got, err, want)
	}
	if _, err := n.agent.Leaks(ctx, "node-2"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Leaks of another node: error %v, want code %s", err, api.CodeUnavailable)
	}
	n.start()
	n.image()
	n.instance("ins-0001")
	n.phase("ins-0001", api.InstanceRunning)
	n.until("everything swept but vol-0000", func() bool {
		got, err := n.agent.Leaks(ctx, "node-1")
		return err == nil && len(got) == 1 && got[0].ID == "vol-0000"
	})
}
