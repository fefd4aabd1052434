package ui_test

import (
	"bytes"
	"context"
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
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

const hint = `run "make setup ui", which installs and builds what this needs`

// TestPortal drives the portal in a real browser against a real basaltd, whose
// hypervisor is a pretended one: machines run in name only, and everything else
// is as on a node. What is looked at stands in e2e/portal.mjs.
func TestPortal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts a basaltd and a browser: two minutes")
	}
	if _, err := os.Stat("dist/index.html.gz"); err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	n := start(t)
	n.fill(t)
	shots := os.Getenv("BASALT_SHOTS")
	if shots == "" {
		shots = t.TempDir()
	}
	cmd := exec.CommandContext(t.Context(), node(t), "e2e/portal.mjs")
	cmd.Env = append(os.Environ(), "PORTAL="+n.url, "OPERATOR="+n.key, "EMAIL=ann@example.com", "PASSWORD="+secret, "BROWSER="+browser, "SHOTS="+shots)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(n.log)
		t.Fatalf("%v\n%s\n--- basaltd:\n%s", err, out, log[max(0, len(log)-4000):])
	}
	t.Logf("%s", out)
}

const secret = "correct horse battery staple"

// node is the Node.js that built the portal: the machine's, or make ui's own.
func node(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../installer/dev/node.sh", "path").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	return strings.TrimSpace(string(out))
}

// daemon is a running basaltd.
type daemon struct{ url, log, key string }

func start(t *testing.T) daemon {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "portal") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, "basaltd")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "basalt_fake", "-o", bin, "../appliance/cmd/basaltd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	n := daemon{url: "http://" + address, log: filepath.Join(dir, "log")}
	log, err := os.Create(n.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--data", filepath.Join(dir, "data"), "--run", filepath.Join(dir, "run"), "--listen", address,
		"--libvirt", "fake:", "--network", "none", "--meter-every", "1s")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		_ = log.Close()
	})
	watch := patience.Start()
	for ; ; time.Sleep(100 * time.Millisecond) {
		raw, err := os.ReadFile(filepath.Join(dir, "data", "operator.key"))
		n.key = strings.TrimSpace(string(raw))
		if resp, err2 := http.Get(n.url + "/v1/healthz"); err == nil && err2 == nil {
			_ = resp.Body.Close()
			if n.key != "" && resp.StatusCode == http.StatusOK {
				return n
			}
		}
		if watch.Over(2 * time.Minute) {
			raw, _ := os.ReadFile(n.log)
			t.Fatalf("basaltd does not answer:\n%s", raw)
		}
	}
}

// fill makes an organization with a project, an image and an app, Ann,
// who administers it, and an operator.
func (n daemon) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	op, err := client.New(client.Options{Server: n.url, Token: n.key})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	_, err = op.Flavors().Create(ctx, api.Flavor{Meta: api.Meta{Name: "tiny"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: 1 << 30}})
	ok(err)
	image, err := op.Images().Create(ctx, api.Image{Meta: api.Meta{Name: "debian-12"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	ok(err)
	disk := make([]byte, 1<<20)
	disk[510], disk[511] = 0x55, 0xaa // a boot sector
	_, err = op.PutImageContent(ctx, image.Meta.ID, bytes.NewReader(disk), int64(len(disk)))
	ok(err)
	_, err = op.Apps().Create(ctx, api.App{Meta: api.Meta{Name: "notebook"}, Spec: api.AppSpec{DisplayName: "Notebook", Version: "1", Image: "debian-12",
		Description: "Notebooks in the browser.", Notes: "Its token is in /etc/notebook.", Ports: []api.AppPort{{Port: 8888, Name: "Web"}}}})
	ok(err)
	org, err := op.Organizations().Create(ctx, api.Organization{Meta: api.Meta{Name: "acme"},
		Spec: api.OrganizationSpec{DisplayName: "Acme Ltd", Quota: api.Amounts{api.QuotaVCPUs: 16, api.QuotaInstances: 40}}})
	ok(err)
	_, err = op.Projects().Create(ctx, api.Project{Meta: api.Meta{Name: "render", Organization: org.Meta.ID}, Spec: api.ProjectSpec{Quota: api.Amounts{api.QuotaVCPUs: 8}}})
	ok(err)
	n.user(ctx, t, op, "ann@example.com", org.Meta.ID, api.Grant{Role: api.RoleAdmin, Organization: org.Meta.ID})
	n.user(ctx, t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
}

func (n daemon) user(ctx context.Context, t *testing.T, op *client.API, email, org string, grant api.Grant) {
	t.Helper()
	u, err := op.Users().Create(ctx, api.User{Meta: api.Meta{Name: email, Organization: org},
		Spec: api.UserSpec{DisplayName: "Ann", Grants: []api.Grant{grant}}})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"token":"` + u.Link.Token + `","password":"` + secret + `"}`
	resp, err := http.Post(n.url+"/v1/password/link", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the password of %s: %s", email, resp.Status)
	}
}
