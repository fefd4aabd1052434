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

// What belongs to nobody is listed until it is swept; what is in use is not.
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
		t.Errorf("%v %v", got, err)
	}
	if _, err := n.agent.Leaks(ctx, "node-2"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("it speaks for another: %v", err)
	}
	n.start()
	n.image()
	n.instance("ins-0001")
	n.phase("ins-0001", api.InstanceRunning)
	n.until("swept, but for the volume", func() bool {
		got, err := n.agent.Leaks(ctx, "node-1")
		return err == nil && len(got) == 1 && got[0].ID == "vol-0000"
	})
}
