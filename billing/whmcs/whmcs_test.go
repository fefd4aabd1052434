// Package whmcs_test runs the WHMCS module's tests, which are in PHP, against a
// real basaltd. Its hypervisor is libvirt's test driver, which runs inside basaltd:
// no virtual machine runs, and everything else is as on a node.
package whmcs_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/daemontest"
)

const hint = `run "make setup", which installs what this needs`

func TestModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts a basaltd: a minute")
	}
	for _, tool := range []string{"php", "phpunit"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: %s", err, hint)
		}
	}
	n := node{Daemon: daemontest.Start(t, "test:///default", "")}
	n.fill(t)
	proxy := newProxy(t, n.URL)
	cmd := exec.CommandContext(t.Context(), "phpunit", "--no-configuration", "--do-not-cache-result", "--fail-on-risky", "tests/ModuleTest.php")
	cmd.Env = append(os.Environ(), "BASALT_HOST=127.0.0.1", "BASALT_PORT="+n.Port, "BASALT_PROXY_PORT="+proxy, "BASALT_RESELLER="+n.reseller,
		"BASALT_VIEWER="+n.viewer, "BASALT_SMARTY="+t.TempDir())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "OK") {
		t.Fatalf("phpunit: %v\n%s\n--- basaltd:\n%s", err, out, n.Log())
	}
	t.Logf("%s", out)
}

// node is a running basaltd with the keys of a seller.
type node struct {
	daemontest.Daemon
	reseller, viewer string // API keys
}

// fill creates the products to sell, and the seller.
func (n *node) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, vcpus := range map[string]int64{"gpu-small": 1, "gpu-large": 4, "gpu-huge": 128} {
		_, err := client.Of[api.Flavor](op).Create(ctx, api.Flavor{Meta: api.Meta{Name: name}, Spec: api.FlavorSpec{Vcpus: vcpus, MemoryBytes: 64 << 20, RootBytes: 1 << 30}})
		ok(err)
	}
	image, err := client.Of[api.Image](op).Create(ctx, api.Image{Meta: api.Meta{Name: "tiny"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	ok(err)
	disk := make([]byte, 1<<20)
	disk[510], disk[511] = 0x55, 0xaa // a boot sector
	_, err = op.PutImageContent(ctx, image.Meta.ID, bytes.NewReader(disk), int64(len(disk)))
	ok(err)
	medium, err := client.Of[api.Image](op).Create(ctx, api.Image{Meta: api.Meta{Name: "live"}, Spec: api.ImageSpec{Format: api.FormatISO, Public: true}})
	ok(err)
	copy(disk[16*2048:], "\x01CD001\x01")
	_, err = op.PutImageContent(ctx, medium.Meta.ID, bytes.NewReader(disk), int64(len(disk)))
	ok(err)
	org, err := client.Of[api.Organization](op).Create(ctx, api.Organization{Meta: api.Meta{Name: "seller"}, Spec: api.OrganizationSpec{Quota: api.Amounts{api.QuotaVCPUs: 64}}})
	ok(err)
	_, err = client.Of[api.User](op).Create(ctx, api.User{Meta: api.Meta{Name: "boss@example.com", Organization: org.Meta.ID},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleReseller, Organization: org.Meta.ID}}}})
	ok(err)
	project, err := client.Of[api.Project](op).Create(ctx, api.Project{Meta: api.Meta{Name: "own", Organization: org.Meta.ID}})
	ok(err)
	sells, err := client.Of[api.APIKey](op).Create(ctx, api.APIKey{Meta: api.Meta{Name: "whmcs", Organization: org.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleReseller}})
	ok(err)
	looks, err := client.Of[api.APIKey](op).Create(ctx, api.APIKey{Meta: api.Meta{Name: "looks", Project: project.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleViewer}})
	ok(err)
	n.reseller, n.viewer = sells.Secret, looks.Secret
}

// newProxy starts a proxy to basaltd that can drop responses, so that a request takes
// effect although the client gets no response. It returns the proxy's port.
func newProxy(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var swallow, hang, html atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers, _ := strconv.ParseInt(r.URL.Query().Get("answers"), 10, 64)
		switch {
		case r.URL.Path == "/swallow":
			swallow.Store(answers)
		case r.URL.Path == "/hang":
			hang.Store(answers)
		case r.URL.Path == "/html":
			html.Store(answers)
		case swallow.Load() > 0:
			swallow.Add(-1)
			proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
			panic(http.ErrAbortHandler)
		case hang.Load() > 0: // the request takes effect, and the client gives up before it gets the response
			hang.Add(-1)
			proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
			<-r.Context().Done()
		case html.Load() > 0:
			html.Add(-1)
			fmt.Fprint(w, "<html>hello</html>")
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
