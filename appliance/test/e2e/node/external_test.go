package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// external: the guest reaches an external network, and is reached through a floating IP and a
// load balancer; then all of them are deleted again.
func external(t *testing.T, w *world) {
	g, operator := w.debian, operatorToken(t, w)
	const ask = `python3 -c 'from urllib.request import urlopen; print(urlopen("http://` + outsideName + `/", timeout=5).read().decode())'`
	out := func() (string, bool) {
		r, err := g.c.Exec(w.ctx, g.id, api.ExecRequest{Argv: []string{"sh", "-c", ask}, TimeoutSeconds: execLimit})
		return strings.TrimSpace(string(r.Stdout)), err == nil && r.ExitCode == 0
	}
	if answer, ok := out(); ok {
		t.Fatalf("answer from outside without an external network = %q, want none", answer)
	}
	w.mustCLI(operator, "external-network", "create", "internet", "--cidr4", "203.0.113.0/24", "--gateway4", outsideAddress,
		"--ranges4", "203.0.113.10-203.0.113.50", "--default")
	var router api.Router
	patience.Until(t, 2*time.Minute, "the project's router is ready", func() bool {
		page, err := client.Of[api.Router](w.tenant).Page(w.ctx, client.Query{Project: "one"})
		if err != nil || len(page.Items) != 1 {
			return false
		}
		router = page.Items[0]
		return router.Status.Phase == api.NetworkReady && router.Status.Node == api.NodeID(w.id)
	})
	var answer string
	took := patience.Until(t, 2*time.Minute, "an answer from outside", func() (ok bool) { answer, ok = out(); return ok })
	if want := "outside sees " + router.Assignment.Address4; answer != want {
		t.Errorf("answer from outside = %q, want %q", answer, want)
	}
	t.Logf("the guest reaches outside %v after its router is ready", took)
	notMore := egress(t, w, router.Meta.ID)
	if text := w.mustCLI(operator, "network", "trace", "main", outsideAddress, "tcp/80", "--project", "one"); !strings.Contains(text, "OVN agrees") {
		t.Errorf("output of the operator's trace, want \"OVN agrees\":\n%s", text)
	}

	g.sh(t, `mkdir -p /root/www && echo from main >/root/www/page && cd /root/www && setsid python3 -m http.server 8080 </dev/null >/dev/null 2>&1 &`)
	floating, balanced := floatingIP(t, w, "www", "--instance", "main"), floatingIP(t, w, "balanced")
	answers := func(at string) {
		t.Helper()
		var body string
		var err error
		took := patience.Until(t, 2*time.Minute, at+" answers", func() bool { body, err = w.outside.get(at, 5*time.Second); return err == nil && body != "" })
		if body != "from main\n" {
			t.Errorf("answer of %s = %q, want \"from main\\n\"", at, body)
		}
		t.Logf("%s answers after %v", at, took)
	}
	silent := func(at string) {
		t.Helper()
		patience.Until(t, time.Minute, at+" does not answer", func() bool { _, err := w.outside.get(at, 3*time.Second); return err != nil })
	}
	silent(floating + ":8080") // the default group allows no connections from outside
	group := func(allow ...string) {
		t.Helper()
		args := []string{"security-group", "set", "default", "--project", "one"}
		for _, rule := range append(allow, "ingress any from group self", "egress any") {
			args = append(args, "--allow", rule)
		}
		w.mustCLI(w.token, args...)
	}
	group("ingress tcp 8080 from 203.0.113.0/24")
	answers(floating + ":8080")
	patience.Until(t, time.Minute, "the guest uses its floating IP", func() bool { answer, _ := out(); return answer == "outside sees "+floating })
	www, err := client.Of[api.FloatingIP](w.tenant).Get(w.ctx, "www", client.Query{Project: "one"})
	if err != nil {
		t.Fatal(err)
	}
	notMore() // after the time that the floating IP and its rules took
	notMore = egress(t, w, www.Meta.ID)

	w.mustCLI(w.token, "load-balancer", "create", "front", "--project", "one", "--port", "80", "--backend", "main:8080", "--floating-ip", "balanced")
	answers(balanced + ":80")

	w.mustCLI(w.token, "load-balancer", "delete", "front", "--project", "one")
	silent(balanced + ":80")
	group()
	silent(floating + ":8080")
	group("ingress tcp 8080")
	answers(floating + ":8080")
	notMore()
	w.mustCLI(w.token, "floating-ip", "delete", "www", "--project", "one")
	silent(floating + ":8080")
	w.mustCLI(w.token, "floating-ip", "delete", "balanced", "--project", "one")
	group()
	w.mustCLI(operator, "external-network", "delete", "internet")
	patience.Until(t, time.Minute, "the guest does not reach outside any more", func() bool { _, ok := out(); return !ok })
	patience.Until(t, time.Minute, "the router is deleted", func() bool {
		page, err := client.Of[api.Router](w.tenant).Page(w.ctx, client.Query{Project: "one"})
		return err == nil && len(page.Items) == 0
	})
	w.nothingLeft(t)
}

// floatingIP creates a floating IP of the tenant and returns its address.
func floatingIP(t *testing.T, w *world, name string, flags ...string) string {
	t.Helper()
	w.mustCLI(w.token, append([]string{"floating-ip", "create", name, "--project", "one"}, flags...)...)
	var f api.FloatingIP
	patience.Until(t, time.Minute, "floating IP "+name, func() bool {
		var err error
		f, err = client.Of[api.FloatingIP](w.tenant).Get(w.ctx, name, client.Query{Project: "one"})
		return err == nil && f.Status.Phase == api.NetworkReady
	})
	return f.Assignment.Address
}

// egress checks that the traffic that the guest sends is recorded for the resource by
// which it leaves, including packet headers. The returned function checks that not more
// is recorded; it is to be called later.
func egress(t *testing.T, w *world, resource string) (notMore func()) {
	t.Helper()
	const sent = 400 << 10
	recorded := func() int64 { return w.recorded(t, resource)[api.MeterEgress] }
	before := recorded()
	w.debian.sh(t, fmt.Sprintf(`python3 -c 'from urllib.request import urlopen; urlopen("http://%s/", data=bytes(%d), timeout=60).read()'`, outsideName, sent))
	took := patience.Until(t, time.Minute, "the sent bytes are recorded", func() bool { return recorded()-before >= sent })
	t.Logf("%d bytes were sent by %s, recorded after %v", sent, resource, took)
	return func() {
		t.Helper()
		if got := recorded() - before; got > sent*12/10 {
			t.Errorf("egress recorded for %s = %d bytes, want at most %d after %d bytes and a few requests were sent", resource, got, sent*12/10, sent)
		}
	}
}
