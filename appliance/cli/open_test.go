package cli_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
)

// TestOpenWithoutDomain verifies that in a cluster without an app gateway "open" forwards a port
// with ssh, to the same port of this computer or to a free one, and prints an address whose host
// belongs to the app alone.
func TestOpenWithoutDomain(t *testing.T) {
	e := servertest.StartWith(t, func(o *server.Options) {
		o.Apps = nil
		o.SSHGateway = func(context.Context) (api.SSHGateway, error) {
			return api.SSHGateway{Host: "gw.example.com", Port: 2222, HostKey: "ssh-ed25519 AAAA"}, nil
		}
	})
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\necho \"$@\"\nexit 7\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	run := func(args ...string) (int, string) {
		var out, errs shown
		app := &cli.App{In: bytes.NewReader(nil), Out: &out, Err: &errs, Now: time.Now, ConfigDir: t.TempDir(), Getenv: func(name string) string {
			return map[string]string{"BASALT_SERVER": e.URL, "BASALT_TOKEN": e.Token, "BASALT_PROJECT": "web"}[name]
		}}
		code := app.Run(t.Context(), args)
		return code, out.String() + errs.String()
	}
	for _, line := range []string{"organization create acme", "project create web --organization acme", "flavor create small --vcpus 2 --memory 1GiB --root-size 2GiB",
		"image create debian --format raw --public", "instance create demo --flavor small --image debian"} {
		if code, out := run(strings.Fields(line)...); code != 0 {
			t.Fatalf("basalt %s = %d: %s", line, code, out)
		}
	}
	const port = "3000" // of the instance
	want := regexp.MustCompile(`http://3000-([0-9a-f]{12})\.localhost:([0-9]+)/`)
	open := func() (local string) {
		t.Helper()
		code, out := run("instance", "open", "demo", "--port", port)
		m := want.FindStringSubmatch(out)
		if code != 7 || m == nil {
			t.Fatalf("basalt instance open = %d, want the exit code of ssh, 7, and the address: %s", code, out)
		}
		if forward := "-L 127.0.0.1:" + m[2] + ":ins-" + m[1] + ":3000 -p 2222 -l web/demo "; !strings.Contains(out, forward) || !strings.Contains(out, " gw.example.com\n") {
			t.Errorf("ssh was run as %s, want %s to gw.example.com", out, forward)
		}
		return m[2]
	}
	open()
	l, err := net.Listen("tcp", "127.0.0.1:"+port) // if another program has it, that is as good
	if err == nil {
		defer l.Close()
	}
	if local := open(); local == port {
		t.Errorf("open while port %s is in use forwards port %s, want a free one", port, local)
	}
	if code, out := run("instance", "open", "demo"); code == 0 || !strings.Contains(out, "give --port") {
		t.Errorf("basalt instance open without a port = %d: %s", code, out)
	}
}
