package cli_test

import (
	"context"
	"io"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestScreen verifies that viewers that connect to the printed address see the screen, one
// after the other, and that the command ends when it is cancelled.
func TestScreen(t *testing.T) {
	e := servertest.Start(t, nil)
	makeInstance(t, e)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	app := &cli.App{In: out, Out: in, Err: io.Discard, Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"BASALT_SERVER": e.URL, "BASALT_TOKEN": e.Token, "BASALT_PROJECT": "web"}[name]
	}}
	code := make(chan int, 1)
	go func() {
		code <- app.Run(ctx, []string{"instance", "vnc", "demo"})
		_ = in.Close()
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`vnc://(127\.0\.0\.1:[0-9]+)\n`).FindSubmatch(line[:n])
	if at == nil {
		t.Fatalf("output = %q, want a vnc:// address on 127.0.0.1", line[:n])
	}
	for range 2 {
		viewer, err := net.Dial("tcp", string(at[1]))
		if err != nil {
			t.Fatal(err)
		}
		patience.Limit(t, 30*time.Second, viewer)
		version := make([]byte, 12)
		if _, err := io.ReadFull(viewer, version); err != nil || string(version) != "RFB 003.008\n" {
			t.Errorf("server's version = %q (%v), want \"RFB 003.008\\n\"", version, err)
		}
		if _, err := viewer.Write(version); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(viewer, version); err != nil || string(version) != "RFB 003.008\n" {
			t.Errorf("echoed version = %q (%v), want \"RFB 003.008\\n\"", version, err)
		}
		_ = viewer.Close()
	}
	stop()
	if got := patience.Receive(t, 30*time.Second, "the end of basalt instance vnc", code); got != 0 {
		t.Errorf("exit code = %d, want 0", got)
	}
}
