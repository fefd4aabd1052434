package node_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

// outside is the network outside the node: a network namespace with a web server, at the end of
// a link that is the node's external network, and a DNS resolver on the node's loopback.
//
//	guest ─ router ─ OVN ─ bx-external ─ link ══ out0 203.0.113.1 (web server that returns the client's address)
type outside struct {
	ns, cable string
	resolver  string // ADDRESS:PORT
}

const (
	outsideName    = "www.outside.example"
	outsideAddress = "203.0.113.1"
)

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{ns: fmt.Sprintf("basalt-out-%d", os.Getpid()), cable: fmt.Sprintf("bo%d", os.Getpid())}
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "delete", o.cable).Run() // before the namespace, which is deleted asynchronously
		_ = exec.Command("ip", "netns", "delete", o.ns).Run()
	})
	for _, words := range []string{
		"netns add " + o.ns,
		"link add " + o.cable + " type veth peer name out0 netns " + o.ns,
		"-n " + o.ns + " link set lo up",
		"-n " + o.ns + " address add " + outsideAddress + "/24 dev out0",
		"-n " + o.ns + " link set out0 up",
		"link set " + o.cable + " up",
	} {
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", words, err, out)
		}
	}
	var web net.Listener
	o.inside(t, func() (err error) {
		if err = ethtool.SetOffload("out0", false); err != nil { // a userspace switch does not complete checksums
			return err
		}
		web, err = net.Listen("tcp4", outsideAddress+":80")
		return err
	})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "outside sees %s", host)
	})}
	go func() { _ = server.Serve(web) }()
	t.Cleanup(func() { _ = server.Close() })
	o.names(t)
	return o
}

// names starts the DNS server on the node's loopback, like an operator's resolver.
func (o *outside) names(t *testing.T) {
	t.Helper()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.resolver = udp.LocalAddr().String()
	server := &dns.Server{PacketConn: udp, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		if name := strings.ToLower(q.Question[0].Name); name != outsideName+"." {
			m.Rcode = dns.RcodeNameError
		} else if q.Question[0].Qtype == dns.TypeA {
			a, err := dns.NewRR(outsideName + ". 60 IN A " + outsideAddress)
			if err != nil {
				t.Error(err)
			}
			m.Answer = []dns.RR{a}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
}

// inside runs f in the namespace.
func (o *outside) inside(t *testing.T, f func() error) {
	t.Helper()
	if err := netns.Do(o.ns, f); err != nil {
		t.Fatal(err)
	}
}

// get sends a request to a web server from outside and returns the body.
func (o *outside) get(at string, within time.Duration) (body string, err error) {
	err = netns.Do(o.ns, func() error {
		c, err := net.DialTimeout("tcp4", at, within)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(within))
		if _, err := io.WriteString(c, "GET /page HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		raw, err := io.ReadAll(c)
		_, body, _ = strings.Cut(string(raw), "\r\n\r\n")
		return err
	})
	return body, err
}
