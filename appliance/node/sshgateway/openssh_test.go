package sshgateway

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// plainly is a sealer that does not encrypt.
type plainly struct{}

func (plainly) Seal(_ context.Context, s string) (string, error) { return s, nil }
func (plainly) Open(_ context.Context, s string) (string, error) { return s, nil }

// world is a gateway with one instance, whose sshd is OpenSSH's on the loopback
// interface.
type world struct {
	dir       string
	gateway   string // host:port
	authority *Authority
	key       string // file of the client's key
	port      int    // port of the guest's sshd
	sshdPID   int

	mu       sync.Mutex // guards the following fields
	owner    string     // fingerprint of the admitted key
	hostKeys []string   // host keys that the gateway has checked
	badHost  bool
	end      map[api.SSHKeyID]context.CancelFunc
	record   []string
	dialed   func() (net.Conn, error) // used instead of sshd unless nil
	access   Access
}

func (w *world) Known(f string) bool { return f == w.owner }

func (w *world) Admit(_ context.Context, f string, t Target, _ string) (Access, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f != w.owner || t.Instance != w.access.Name {
		return Access{}, api.Errorf(api.CodeNotFound, "Instance %s does not exist", t.Instance)
	}
	return w.access, nil
}

func (w *world) While(ctx context.Context, a Access) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end[a.Key] = cancel
	return ctx, cancel, nil
}

func (w *world) HostKey(_ context.Context, _ Access, key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hostKeys = append(w.hostKeys, key)
	if w.badHost {
		return api.Errorf(api.CodeConflict, "the host key of instance demo has changed")
	}
	return nil
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record = append(w.record, what)
}

func (w *world) Opened(_ context.Context, a Access, from string) error {
	w.note("opened " + a.Login + " " + from)
	return nil
}

func (w *world) Closed(_ context.Context, a Access, _ string, lasted time.Duration) error {
	if lasted <= 0 {
		return errors.New("no time has passed")
	}
	w.note("closed " + a.Login)
	return nil
}

func (w *world) Dial(ctx context.Context, _ api.NodeID, _ api.InstanceID, port uint16) (net.Conn, error) {
	w.mu.Lock()
	dialed := w.dialed
	w.mu.Unlock()
	if dialed != nil {
		return dialed()
	}
	if port == sshPort {
		port = uint16(w.port)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func tool(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path := filepath.Join(dir, name); executable(path) {
			return path
		}
	}
	t.Skip(name + " is not installed: apt-get install openssh-client openssh-server")
	return ""
}

func executable(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0
}

// newKey writes a private key in OpenSSH's format and returns its public key.
func newKey(t testing.TB, path string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newWorld(t testing.TB) *world {
	t.Helper()
	tool(t, "ssh")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: t.TempDir(), authority: NewAuthority(memstore.New(), plainly{}), end: map[api.SSHKeyID]context.CancelFunc{}}
	w.access = Access{Instance: "ins-4f9c2a7be01d", Name: "demo", Node: "node-1", Addresses: []netip.Addr{netip.MustParseAddr("10.64.0.5")}, GuestUser: me.Username, User: "usr-1", Login: "ann@example.com", Key: "sshkey-1"}
	w.key = filepath.Join(w.dir, "key")
	w.owner = ssh.FingerprintSHA256(newKey(t, w.key))
	w.sshd(t, "ins-4f9c2a7be01d")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.gateway = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(Options{Authority: w.authority, Directory: w, Dialer: w}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v, want %v", err, context.Canceled)
		}
	})
	return w
}

// sshd starts OpenSSH's sshd, which trusts the CA for the principal and has sftp.
func (w *world) sshd(t testing.TB, principal string) {
	t.Helper()
	sshd := tool(t, "sshd")
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // for its privilege separation
			t.Fatal(err)
		}
	}
	ca, err := w.authority.UserCA(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	own, err := os.ReadFile(w.key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(w.dir, name) }
	newKey(t, at("host"))
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("authorized", fmt.Sprintf("cert-authority,principals=%q %s basalt\n%s\n", principal, ca, ssh.MarshalAuthorizedKey(signer.PublicKey())))
	write("sshd_config", fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nMaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n",
		w.port, at("host"), at("authorized")))
	cmd := exec.Command(sshd, "-D", "-e", "-f", at("sshd_config")) //nolint:gosec // found above
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.sshdPID = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", said.String())
		}
	})
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.port))
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("sshd does not answer: %v\n%s", err, said.String())
		}
	}
}

// options returns options of OpenSSH's programs with the gateway's host key in
// known_hosts.
func (w *world) options(t testing.TB) []string {
	t.Helper()
	line, _, err := w.authority.HostKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(w.gateway)
	known := filepath.Join(w.dir, "known_hosts")
	if err := os.WriteFile(known, fmt.Appendf(nil, "[%s]:%s %s\n", host, port, line), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-F", "none", "-i", w.key, "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + known, "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "Port=" + port}
}

// ssh runs ssh with the arguments after the options.
func (w *world) ssh(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "ssh"), append(w.options(t), args...)...) //nolint:gosec // found above
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &err
	runErr := cmd.Run()
	var exit *exec.ExitError
	if runErr != nil && !errors.As(runErr, &exit) {
		t.Fatal(runErr)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// TestSessions checks that OpenSSH's client runs programs with standard input,
// output and error, exit status, environment and terminal.
func TestSessions(t *testing.T) {
	w := newWorld(t)
	out, stderr, code := w.ssh(t, "some input", "web/demo@127.0.0.1", "cat; echo told >&2; exit 7")
	if out != "some input" || stderr != "told\n" || code != 7 {
		t.Errorf("cat: stdout %q, stderr %q, status %d; want the input, told, and 7", out, stderr, code)
	}
	out, stderr, code = w.ssh(t, "", "-tt", w.access.GuestUser+"%web/demo@127.0.0.1", "tty && stty size")
	if code != 0 || !strings.HasPrefix(out, "/dev/pts/") {
		t.Errorf("tty with a terminal: stdout %q, stderr %q, status %d; want /dev/pts/… and 0", out, stderr, code)
	}
	if out, _, code = w.ssh(t, "echo from the shell\n", "demo@127.0.0.1"); code != 0 || !strings.Contains(out, "from the shell") {
		t.Errorf("shell: stdout %q, status %d; want the echoed words and 0", out, code)
	}
	if _, stderr, code = w.ssh(t, "", "demo@127.0.0.1", "kill -TERM $$"); code != 255 { // ssh's own, for a signal
		t.Errorf("program ended by a signal: stderr %q, status %d, want 255", stderr, code)
	}
	large := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB: more than a window
	if out, stderr, code = w.ssh(t, large, "demo@127.0.0.1", "cat"); out != large || code != 0 {
		t.Errorf("cat of 4 MiB: %d bytes, stderr %q, status %d; want the same bytes and 0", len(out), stderr, code)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.record, "opened ann@example.com 127.0.0.1") || !slices.Contains(w.record, "closed ann@example.com") {
		t.Errorf("record = %q, want a connection opened and closed by ann@example.com", w.record)
	}
}

// TestFiles copies files in both directions, by sftp and by scp, which uses sftp
// too.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	from, to := filepath.Join(w.dir, "from"), filepath.Join(w.dir, "to")
	content := bytes.Repeat([]byte("file\n"), 100_000)
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool(t, "sftp"), append(w.options(t), "-b", "-", "web/demo@127.0.0.1")...) //nolint:gosec // found above
	cmd.Stdin = strings.NewReader(fmt.Sprintf("put %s %s\nget %s %s.back\n", from, to, to, to))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sftp: %v\n%s", err, out)
	}
	for _, path := range []string{to, to + ".back"} {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("file %s has %d bytes, error %v, want %d bytes", path, len(got), err, len(content))
		}
	}
	cmd = exec.CommandContext(t.Context(), tool(t, "scp"), append(w.options(t), "-s", from, "scp://web%2Fdemo@"+w.gateway+"/"+to+".scp")...) //nolint:gosec // found above
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scp: %v\n%s", err, out)
	}
	if got, err := os.ReadFile(to + ".scp"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("file copied by scp has %d bytes, error %v, want %d bytes", len(got), err, len(content))
	}
}

// TestForwards checks that -W and -J connect to the instance and its localhost, and
// to nothing else.
func TestForwards(t *testing.T) {
	w := newWorld(t)
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	port := echo.Addr().(*net.TCPAddr).Port
	for _, host := range []string{"localhost", "127.0.0.1", "demo", "10.64.0.5", "ins-4f9c2a7be01d"} {
		out, stderr, code := w.ssh(t, "through", "-W", fmt.Sprintf("%s:%d", host, port), "web/demo@127.0.0.1")
		if out != "through" || code != 0 {
			t.Errorf("ssh -W %s: stdout %q, stderr %q, status %d; want the echo and 0", host, out, stderr, code)
		}
	}
	for _, host := range []string{"example.com", "10.64.0.6", "169.254.169.254", "demo.evil"} {
		out, stderr, code := w.ssh(t, "through", "-W", fmt.Sprintf("%s:%d", host, port), "web/demo@127.0.0.1")
		if out != "" || code == 0 || !strings.Contains(stderr, "only to the instance itself") {
			t.Errorf("ssh -W %s: stdout %q, stderr %q, status %d; want it refused", host, out, stderr, code)
		}
	}
	// As with -J: the client's own key signs in to the guest's sshd.
	proxy := append([]string{tool(t, "ssh")}, append(w.options(t), "-W", "demo:22", "web/demo@127.0.0.1")...)
	cmd := exec.CommandContext(t.Context(), tool(t, "ssh"), "-F", "none", "-i", w.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", //nolint:gosec // found above
		"-o", "ProxyCommand="+strings.Join(proxy, " "), w.access.GuestUser+"@demo", "echo jumped")
	if out, err := cmd.Output(); err != nil || string(out) != "jumped\n" {
		t.Errorf("ssh through the gateway as a jump host: stdout %q, error %v; want jumped", out, err)
	}
	if _, _, code := w.ssh(t, "", "-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:localhost:1", "web/demo@127.0.0.1"); code == 0 {
		t.Error("ssh -R: status 0, want it refused")
	}
}

// TestRefused checks that a client without a user's key is not admitted, and that
// one without the right to an instance gets an error that names the missing right.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{"web/other": "Instance other does not exist", "we b/demo": "want project/instance", "a%b%demo": "want project/instance"} {
		out, stderr, code := w.ssh(t, "", "-l", name, "127.0.0.1", "echo in")
		if out != "" || code != 255 || !strings.Contains(stderr, want) {
			t.Errorf("ssh as %s: stdout %q, stderr %q, status %d; want 255 with %q", name, out, stderr, code, want)
		}
	}
	w.mu.Lock()
	w.badHost = true
	w.mu.Unlock()
	if out, stderr, code := w.ssh(t, "", "demo@127.0.0.1", "echo in"); out != "" || code != 255 || !strings.Contains(stderr, "has changed") {
		t.Errorf("ssh to a guest with another host key: stdout %q, stderr %q, status %d; want 255 and that it has changed", out, stderr, code)
	}
	owner := w.key
	w.key = filepath.Join(w.dir, "other")
	newKey(t, w.key)
	if out, stderr, code := w.ssh(t, "", "demo@127.0.0.1", "echo in"); out != "" || code != 255 || !strings.Contains(stderr, "Permission denied (publickey)") {
		t.Errorf("ssh with an unknown key: stdout %q, stderr %q, status %d; want 255 and permission denied", out, stderr, code)
	}
	w.key = owner
}

// TestCertificateIsForOneInstance checks that the certificate for one instance is
// not valid for another.
func TestCertificateIsForOneInstance(t *testing.T) {
	w := newWorld(t)
	w.sshd(t, "ins-000000000000")
	out, stderr, code := w.ssh(t, "", "demo@127.0.0.1", "echo in")
	if out != "" || code != 255 || !strings.Contains(stderr, "does not accept the gateway") {
		t.Errorf("ssh to a guest with another ID: stdout %q, stderr %q, status %d; want 255 and that it is not accepted", out, stderr, code)
	}
}

// TestEndsWithTheRight checks that a connection ends with the right to it, whatever
// it is doing.
func TestEndsWithTheRight(t *testing.T) {
	w := newWorld(t)
	cmd := exec.CommandContext(t.Context(), tool(t, "ssh"), append(w.options(t), "demo@127.0.0.1", "echo up; sleep 600")...) //nolint:gosec // found above
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.end["sshkey-1"]()
	w.mu.Unlock()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 255 {
		t.Errorf("ssh after its right ended: %v, want status 255", err)
	}
}

// TestHostileGuests checks that a guest which answers garbage, or nothing, makes
// only the session fail that was opened to it, and that the next client is served.
func TestHostileGuests(t *testing.T) {
	w := newWorld(t)
	for what, say := range map[string]func(c net.Conn){
		"nothing, and it closes": func(net.Conn) {},
		"rubbish":                func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xff, 0x00, 0x0a}, 1<<16)) },
		"a long version":         func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("x"), 1<<20)) },
		"a version, and rubbish": func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			_, _ = c.Write(bytes.Repeat([]byte{0xff}, 1<<16))
		},
		"an empty packet": func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\x00\x00\x00\x01\x00") },
	} {
		w.mu.Lock()
		w.dialed = func() (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				say(far)
			}()
			return near, nil
		}
		w.mu.Unlock()
		if out, stderr, code := w.ssh(t, "", "demo@127.0.0.1", "echo in"); out != "" || code != 255 || !strings.Contains(stderr, "does not respond as an SSH server") {
			t.Errorf("guest that sends %s: stdout %q, stderr %q, status %d; want 255 and that it does not respond", what, out, stderr, code)
		}
	}
	w.mu.Lock()
	w.dialed = nil
	w.mu.Unlock()
	if out, stderr, code := w.ssh(t, "", "demo@127.0.0.1", "echo in"); out != "in\n" || code != 0 {
		t.Errorf("ssh after the hostile guests: stdout %q, stderr %q, status %d; want in and 0", out, stderr, code)
	}
}
