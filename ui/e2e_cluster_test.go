package ui_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestOperatorCluster tests the operator's technical pages with a soft GPU:
// e2e/operator-cluster.mjs.
func TestOperatorCluster(t *testing.T) {
	n := start(t)
	n.fill(t)
	n.card(t)
	image := filepath.Join(t.TempDir(), "My_Disk.raw")
	disk := make([]byte, 8<<20)
	disk[510], disk[511] = 0x55, 0xaa // a boot sector
	if err := os.WriteFile(image, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	n.tell(t, "operator-cluster.mjs", "IMAGE="+image, "TARGET="+t.TempDir())
}

// card starts a basalt-gpud next to basaltd, waits for its GPU, and creates an instance that
// has half of it.
func (n daemon) card(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	dir := t.TempDir()
	bin := built.Program(t, "appliance/cmd/basalt-gpud")
	cmd := exec.Command(bin, "--no-nvidia", "--soft-gpu", "vram=8GiB", "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(n.Run, "gpud.sock"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it exits by a signal
	})
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "a card is reported", func() bool { return count(ctx, t, client.Of[api.GPU](op)) > 0 })
	_, err = client.Of[api.Instance](op).Create(ctx, api.Instance{Meta: api.Meta{Name: "train-1", Project: "render"}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "debian-12",
		Vgpu: &api.VGPUSpec{VramBytes: 4 << 30, SharePercent: 50}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Of[api.Instance](op).Create(ctx, api.Instance{Meta: api.Meta{Name: "web-1", Project: "render"}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "debian-12"}})
	if err != nil {
		t.Fatal(err)
	}
}

func count[T any](ctx context.Context, t *testing.T, c client.Collection[T]) (n int) {
	t.Helper()
	for _, err := range c.All(ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
