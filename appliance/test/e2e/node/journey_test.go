package node_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
)

// python is Debian's, which has aiosmtpd.
const python = "/usr/bin/python3"

// journey: a stranger signs up by mail and runs nvidia-smi over SSH, in a browser alone and in
// few interactions. The story is ui/e2e/journey.mjs.
func journey(t *testing.T, w *world) {
	portaltest.Built(t)
	w.keepPictures(t)
	operator := operatorToken(t, w)
	box := w.mailServer(t)
	w.mustCLI(operator, "sign-up-settings", "set", "--enable", "--terms-url", "https://example.com/terms", "--terms-version", "2026-11", "--credit", "10 EUR")
	w.mustCLI(operator, "image", "set", "small", "--default-user", "debian")
	views := []string{"desktop"}
	if layer.Long() {
		views = append(views, "phone", "keyboard")
	}
	for _, view := range views {
		organization := "stranger-" + view
		portaltest.RunStory(t, "journey.mjs", w.log, "PORTAL=http://"+w.listen, "EMAIL="+view+"@example.com", "ORGANIZATION="+organization, "MAILBOX="+box, "VIEW="+view)
		for in, err := range client.Of[api.Instance](w.operator).All(w.ctx, client.Query{Organization: organization}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Of[api.Instance](w.operator).Delete(w.ctx, in.Meta.ID); err != nil {
				t.Fatal(err)
			}
		}
		patience.Until(t, time.Minute, "the instance of "+organization+" is deleted", func() bool {
			page, err := client.Of[api.Instance](w.operator).Page(w.ctx, client.Query{Organization: organization})
			return err == nil && len(page.Items) == 0
		})
	}
}

// mailServer starts a mail server, which the cluster then uses, and returns its maildir.
func (w *world) mailServer(t *testing.T) (box string) {
	t.Helper()
	at := port.Address(t)
	host, number, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	box = filepath.Join(t.TempDir(), "box")
	server := exec.CommandContext(w.ctx, python, "-m", "aiosmtpd", "-n", "-l", at, "-c", "aiosmtpd.handlers.Mailbox", box)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	w.mustCLI(operatorToken(t, w), "mail", "set", "--enable", "--smtp-server", host, "--port", number, "--security", "none", "--sender", "cloud@example.com", "--portal-url", "http://"+w.listen)
	return box
}
