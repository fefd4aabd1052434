package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// own is the address of the malicious server that basaltd may fetch from; the one that
// nothing may reach is at 127.0.0.1.
const own = "127.0.0.2"

// certificate writes a certificate for 127.0.0.1 and its key to two files.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// daemon starts a basaltd with TLS, and with instances and networks in memory, and
// returns the options for the program.
func daemon(t *testing.T, more ...string) options {
	t.Helper()
	bin := built.Program(t, "appliance/cmd/basaltd", "basalt_fake")
	dir, err := os.MkdirTemp("/tmp", "attack") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cert, key := certificate(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	data := filepath.Join(dir, "data")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, append([]string{"--data", data, "--run", filepath.Join(dir, "run"), "--listen", address, "--tls-cert", cert, "--tls-key", key,
		"--libvirt", "fake:", "--network", "fake", "--fence", "none", "--meter-every", "1s"}, more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		_ = log.Close()
	})
	failed.Keep(t, func(f failed.Folder) { f.Files(log.Name()) })
	o := options{server: "https://" + address, keyFile: filepath.Join(data, "operator.key"), caFile: cert, own: own, tokens: 10_000}
	w, err := newWire(o)
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 2*time.Minute, "basaltd answers", func() bool {
		a, err := w.once(t.Context(), "", http.MethodGet, "/v1/healthz", nil)
		return err == nil && a.ok()
	})
	return o
}

// attack runs the program.
func attack(t *testing.T, o options) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code, err := run(t.Context(), o, &out)
	if err != nil {
		t.Error(err)
	}
	failed.Keep(t, func(f failed.Folder) { f.Text("attack.txt", out.String()) })
	return code, out.String()
}

// TestAttack checks that a real basaltd withstands everything that the program tries,
// and that nothing is left except the organization that owes for its usage.
func TestAttack(t *testing.T) {
	o := daemon(t, "--url-network", own+"/32")
	code, said := attack(t, o)
	if testing.Verbose() {
		t.Log("\n" + said)
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "THROUGH") || strings.HasPrefix(line, "left out") {
			t.Error(line)
		}
	}
	if code != exitHeld {
		t.Errorf("exit code = %d, want %d", code, exitHeld)
	}
	const least = 190
	if n := strings.Count(said, "held  "); n < least {
		t.Errorf("%d tries were held, want at least %d", n, least)
	}
	nothingLeft(t, o)
}

func nothingLeft(t *testing.T, o options) {
	t.Helper()
	raw, err := os.ReadFile(o.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWire(o)
	if err != nil {
		t.Fatal(err)
	}
	op, err := client.New(client.Options{Server: o.server, Token: strings.TrimSpace(string(raw)), TLS: w.tls})
	if err != nil {
		t.Fatal(err)
	}
	for org, err := range client.Of[api.Organization](op).All(t.Context(), client.Query{}) {
		if err != nil || !strings.HasSuffix(org.Meta.Name, "-debtor") { // kept until it is invoiced
			t.Errorf("organization %s is left, error %v; want only the debtor", org.Meta.Name, err)
		}
	}
	none(t, "project", client.Of[api.Project](op))
	none(t, "user", client.Of[api.User](op))
	none(t, "image", client.Of[api.Image](op))
	none(t, "volume", client.Of[api.Volume](op))
	none(t, "network", client.Of[api.Network](op))
	none(t, "webhook", client.Of[api.Webhook](op))
	for b, err := range client.Of[api.PriceBook](op).All(t.Context(), client.Query{}) {
		if err != nil || b.Meta.Name != api.DefaultPriceBook && !strings.HasSuffix(b.Meta.Name, "-dear") {
			t.Errorf("price book %s is left, error %v; want only the debtor's", b.Meta.Name, err)
		}
	}
	for k, err := range client.Of[api.APIKey](op).All(t.Context(), client.Query{}) {
		if err != nil || k.Meta.Name != "first-operator" {
			t.Errorf("API key %s is left, error %v; want only the first operator's", k.Meta.Name, err)
		}
	}
}

func none[T any](t *testing.T, what string, all client.Collection[T]) {
	t.Helper()
	page, err := all.Page(t.Context(), client.Query{})
	if err != nil || len(page.Items) > 0 {
		t.Errorf("%d objects of kind %s are left, error %v; want none", len(page.Items), what, err)
	}
}

// TestAttackSeesAHole checks that a basaltd that allows access to its own machine is
// detected.
func TestAttackSeesAHole(t *testing.T) {
	o := daemon(t, "--url-network", "127.0.0.0/8", "--trusted-proxy", "127.0.0.1/32")
	o.only = `^A2 an image at 127\.0\.0\.1$|^A2 a webhook at 127|ports apart|redirects to http://127|^A3 forged X-|A3 wrong tokens with`
	code, said := attack(t, o)
	if code != exitThrough || strings.Count(said, "THROUGH") != 6 {
		t.Errorf("exit code = %d, want %d with 6 tries that got through:\n%s", code, exitThrough, said)
	}
}

// TestBadOptions checks that invalid options are reported before anything is created.
func TestBadOptions(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("bslt_x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]options{
		"--server": {server: "ftp://x"}, "--key-file": {server: "https://x", keyFile: key + "-not"}, "--ca": {server: "https://x", keyFile: key, caFile: key},
		"--only": {server: "https://x", keyFile: key, only: "("}, "refused": {server: "https://127.0.0.1:1", keyFile: key},
	} {
		code, err := run(t.Context(), o, &bytes.Buffer{})
		if code != exitUntried || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run with invalid options = %d, %v; want %d and an error with %q", code, err, exitUntried, want)
		}
	}
}
