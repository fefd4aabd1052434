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

	"github.com/basalt-gpu/basalt/gpu/node/client"
	"github.com/basalt-gpu/basalt/gpu/node/standalone"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"--standalone", "--socket", "/run/s", "--soft-gpu", "vram=8GiB", "--soft-gpu", "name=b,vram=512MiB,sms=2"})
	if err != nil || o.state != "/run/s.state" || len(o.soft) != 2 || o.soft[0].Name != "soft0" || o.soft[1].SMs != 2 || filepath.Base(o.worker) != "basalt-worker" {
		t.Errorf("%+v, %v", o, err)
	}
	for want, args := range map[string][]string{
		"--socket is needed":  {"--state", "x"},
		"--state is needed":   {"--socket", "x"},
		"as in 8GiB":          {"--socket", "x", "--state", "y", "--soft-gpu", "vram=eight"},
		"must be B, KiB":      {"--socket", "x", "--state", "y", "--soft-gpu", "vram=8GB"},
		"unexpected argument": {"--socket", "x", "--state", "y", "more"},
		"not defined":         {"--sockets", "x"},
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
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
	patience.Until(t, 20*time.Second, "it has its vGPU", func() bool {
		all, err := c.VGPUs(t.Context())
		return err == nil && len(all) == 1 && all[0].ID == standalone.VGPU && all[0].VRAMBytes == 1<<30
	})
	if _, err := newDaemon(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another gpud") {
		t.Errorf("a second one: %v", err)
	}
	stop()
	if err := patience.Receive(t, 20*time.Second, "it stops", ran); err != nil {
		t.Error(err)
	}
	for _, path := range []string{socket, socket + ".control"} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s stayed behind: %v", path, err)
		}
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
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
