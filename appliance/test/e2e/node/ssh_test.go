package node_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// sshGateway: a user of the project signs in to the Debian guest through the gateway with the
// user's own key, which is unknown to the guest. OpenSSH is used on both ends. The image
// defines the user name.
func sshGateway(t *testing.T, w *world) {
	key, public := sshKeyFile(t)
	session := w.user(t, "ann@example.com", api.Grant{Role: api.RoleMember, Project: "one"})
	w.mustCLI(session, "ssh-key", "create", "laptop", "--file", public)
	w.mustCLI(operatorToken(t, w), "image", "set", "debian", "--default-user", "debian")
	if out := w.mustCLI(session, "instance", "connect", "main"); !strings.Contains(out, "one/main@") {
		t.Errorf("output of instance connect, want it to contain one/main@:\n%s", out)
	}
	in := func(args ...string) (string, int) {
		out, err := w.cli(session, append([]string{"instance", "ssh", "main", "-i", key}, args...)...)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if exit != nil {
			return out, exit.ExitCode()
		}
		return out, 0
	}
	if out, code := in("--", "whoami; hostname; exit 7"); out != "debian\nmain\n" || code != 7 {
		t.Errorf("ssh: output %q, exit code %d, want debian, main, and 7", out, code)
	}
	if out, code := in("--", "sudo whoami"); out != "root\n" || code != 0 {
		t.Errorf("ssh with sudo: output %q, exit code %d, want root and 0", out, code)
	}
	if out, code := in("--user", "nobody", "--", "true"); code != 255 || !strings.Contains(out, "does not accept the gateway as user nobody") {
		t.Errorf("ssh as a user that does not accept the gateway: output %q, exit code %d, want 255", out, code)
	}
	shellByAPI(t, w, session)
	trail := w.mustCLI(operatorToken(t, w), "audit", "list", "--actor", "ann@example.com")
	for _, op := range []string{"OpenSSH", "CloseSSH", "OpenInstanceShell", "CloseInstanceShell"} {
		if !strings.Contains(trail, op) {
			t.Errorf("audit log does not contain %s:\n%s", op, trail)
		}
	}
	w.mustCLI(session, "ssh-key", "delete", "laptop")
	if out, code := in("--", "true"); code != 255 {
		t.Errorf("ssh with a deleted key: output %q, exit code %d, want 255", out, code)
	}
}

// shellByAPI: the same without ssh and without a key, by the API's WebSocket.
func shellByAPI(t *testing.T, w *world, session string) {
	t.Helper()
	for _, c := range []struct {
		args []string
		out  string
		code int
	}{
		{[]string{"--", "whoami; hostname; exit 7"}, "debian\nmain\n", 7},
		{[]string{"--", "sudo whoami"}, "root\n", 0},
		{[]string{"--user", "nobody", "--", "true"}, "does not accept the gateway as user nobody", 5},
	} {
		out, err := w.cli(session, append([]string{"instance", "shell", "main"}, c.args...)...)
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, c.out) || code != c.code {
			t.Errorf("shell %q: output %q, exit code %d, want %q and %d", c.args, out, code, c.out, c.code)
		}
	}
}

// sshKeyFile creates a key and returns its private and its public file.
func sshKeyFile(t *testing.T) (private, public string) {
	t.Helper()
	p, s, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(s, "")
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewPublicKey(p)
	if err != nil {
		t.Fatal(err)
	}
	private = filepath.Join(t.TempDir(), "key")
	public = private + ".pub"
	for path, text := range map[string][]byte{private: pem.EncodeToMemory(block), public: ssh.MarshalAuthorizedKey(k)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public
}

// user creates a user with a password and returns the token of a session.
func (w *world) user(t *testing.T, email string, g api.Grant) string {
	t.Helper()
	const password = "correct horse battery"
	u, err := client.Of[api.User](w.operator).Create(w.ctx, api.User{Meta: api.Meta{Name: email}, Spec: api.UserSpec{Grants: []api.Grant{g}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.operator.SetPassword(w.ctx, u.Link.Token, password); err != nil {
		t.Fatal(err)
	}
	s, err := w.operator.Login(w.ctx, api.Credentials{Email: email, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return s.Token
}
