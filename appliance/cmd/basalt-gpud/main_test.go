package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/standalone"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"--standalone", "--socket", "/run/s", "--soft-gpu", "vram=8GiB", "--soft-gpu", "name=b,vram=512MiB,sms=2"})
	if err != nil || o.state != "/run/s.state" || len(o.soft) != 2 || o.soft[0].Name != "soft0" || o.soft[1].SMs != 2 || filepath.Base(o.worker) != "basalt-worker" {
		t.Errorf("parse of standalone options = %+v, error %v, want two soft GPUs and the default state and worker", o, err)
	}
	o, err = parse([]string{"--socket", "/run/s", "--state", "/x", "--null-gpu", "name=n,vram=4GiB", "--null-gpu", "vram=1GiB,sms=2", "--soft-gpu", "vram=8GiB"})
	if err != nil || len(o.null) != 2 || o.null[0].Name != "n" || o.null[0].VRAM != 4<<30 || o.null[1].Name != "null1" || o.null[1].SMs != 2 || o.firstMade() != "soft0" {
		t.Errorf("parse with null GPUs = %+v, error %v, want two null GPUs and soft0 as the first GPU", o, err)
	}
	for want, args := range map[string][]string{
		"null GPU \"vram=eight\"": {"--socket", "x", "--state", "y", "--null-gpu", "vram=eight"},
		"null GPU null0: vram":    {"--socket", "x", "--state", "y", "--null-gpu", "vram=1MiB"},
		"--socket is required":    {"--state", "x"},
		"--state is required":     {"--socket", "x"},
		"e.g. 8GiB":               {"--socket", "x", "--state", "y", "--soft-gpu", "vram=eight"},
		"want B, KiB":             {"--socket", "x", "--state", "y", "--soft-gpu", "vram=8GB"},
		"unexpected argument":     {"--socket", "x", "--state", "y", "more"},
		"not defined":             {"--sockets", "x"},
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse(%q): error %v, want %q", args, err, want)
		}
	}
}

func TestStandalone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	o, err := parse([]string{"--standalone", "--socket", socket, "--soft-gpu", "vram=1GiB", "--worker", os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- errors.Join(d.Run(ctx), d.Close()) }()
	c := client.NewControl(socket + ".control")
	defer c.Close()
	patience.Until(t, 20*time.Second, "the vGPU exists", func() bool {
		all, err := c.VGPUs(t.Context())
		return err == nil && len(all) == 1 && all[0].ID == standalone.VGPU && all[0].VRAMBytes == 1<<30
	})
	if _, err := newDaemon(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another gpud") {
		t.Errorf("second gpud on the socket: error %v, want another gpud", err)
	}
	stop()
	if err := patience.Receive(t, 20*time.Second, "gpud stops", ran); err != nil {
		t.Errorf("end of gpud: %v", err)
	}
	for _, path := range []string{socket, socket + ".control"} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("socket %s after the end: error %v, want it removed", path, err)
		}
	}
}

// TestStandaloneStoppedAtOnce: stopping gpud during its start is not an error.
func TestStandaloneStoppedAtOnce(t *testing.T) {
	o, err := parse([]string{"--standalone", "--socket", filepath.Join(t.TempDir(), "s"), "--soft-gpu", "vram=1GiB", "--worker", os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := errors.Join(d.Run(ctx), d.Close()); err != nil {
		t.Errorf("Run with a canceled context: %v", err)
	}
}

// TestStandaloneNull: a null GPU exists only on request, and is recognizable by its name.
func TestStandaloneNull(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // drivers of the GPUs
	}{
		{[]string{"--null-gpu", "vram=1GiB"}, "null"},
		{[]string{"--soft-gpu", "vram=1GiB"}, "soft"},
		{[]string{"--soft-gpu", "name=a,vram=1GiB", "--null-gpu", "name=b,vram=1GiB"}, "soft null"},
	} {
		socket := filepath.Join(t.TempDir(), "s")
		o, err := parse(append([]string{"--standalone", "--socket", socket, "--worker", os.Args[0]}, c.args...))
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDaemon(o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- errors.Join(d.Run(ctx), d.Close()) }()
		control := client.NewControl(socket + ".control")
		patience.Until(t, 20*time.Second, "the vGPU exists", func() bool {
			all, err := control.VGPUs(t.Context())
			return err == nil && len(all) == 1
		})
		gpus, err := control.GPUs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var drivers []string
		for _, g := range gpus {
			drivers = append(drivers, g.Driver)
			if named := strings.Contains(g.Name, "computes nothing"); named != (g.Driver == wire.DriverNull) {
				t.Errorf("%v: name of GPU %s with driver %s = %q, want \"computes nothing\" only for null GPUs", c.args, g.ID, g.Driver, g.Name)
			}
		}
		if got := strings.Join(drivers, " "); got != c.want {
			t.Errorf("%v: drivers = %q, want %q", c.args, got, c.want)
		}
		control.Close()
		stop()
		if err := patience.Receive(t, 20*time.Second, "gpud stops", ran); err != nil {
			t.Errorf("end of gpud: %v", err)
		}
	}
	o, err := parse([]string{"--standalone", "--socket", filepath.Join(t.TempDir(), "s"), "--soft-gpu", "name=x,vram=1GiB", "--null-gpu", "name=x,vram=1GiB"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newDaemon(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), `two soft or null GPUs have the name "x"`) {
		t.Errorf("two GPUs with one name: error %v, want that both have the name x", err)
	}
}

func TestStandaloneRefusals(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for want, args := range map[string][]string{
		"needs a card":   {"--no-nvidia"},
		"worker":         {"--soft-gpu", "vram=1GiB", "--worker", socket + "/none"},
		"--worker-user":  {"--soft-gpu", "vram=1GiB", "--worker-user", "no-such-user"},
		"--worker-group": {"--soft-gpu", "vram=1GiB", "--worker-group", "no such group"},
	} {
		o, err := parse(append([]string{"--standalone", "--socket", socket}, args...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newDaemon(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("newDaemon with %q: error %v, want %q", args, err, want)
		}
	}
}
