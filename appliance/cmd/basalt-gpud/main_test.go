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
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all, err := c.VGPUs(t.Context())
		if err == nil && len(all) == 1 && all[0].ID == standalone.VGPU && all[0].VRAMBytes == 1<<30 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v, %v", all, err)
		}
	}
	if _, err := newDaemon(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another gpud") {
		t.Errorf("a second one: %v", err)
	}
	stop()
	select {
	case err := <-ran:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not stop")
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
