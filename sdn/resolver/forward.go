package resolver

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Limits of asking others.
const (
	tryTime    = 2 * time.Second // one server
	askTime    = 5 * time.Second // all of them; a guest asks again after as much
	maxServers = 3
	rereadTime = 5 * time.Second // /etc/resolv.conf may change
)

// Forwarder asks resolvers outside. Its sockets are opened where it runs: in
// the node's namespace.
type Forwarder struct {
	node  func() []netip.AddrPort
	slots chan struct{}
}

// NewForwarder asks the given resolvers where a network names none; without
// any, those of the node's /etc/resolv.conf.
func NewForwarder(servers []netip.AddrPort) *Forwarder {
	f := &Forwarder{slots: make(chan struct{}, nodePending), node: func() []netip.AddrPort { return servers }}
	if len(servers) == 0 {
		f.node = resolvConf("/etc/resolv.conf")
	}
	return f
}

var (
	errNobody = errors.New("no upstream resolver is configured")
	errBusy   = errors.New("too many concurrent queries")
)

// servers to ask for the network.
func (f *Forwarder) servers(z *Zone) []netip.AddrPort {
	all := z.facts.Servers
	if len(all) == 0 && z.facts.Node {
		all = f.node()
	}
	return all[:min(len(all), maxServers)]
}

// ask the servers in turn. The answer is one to this question.
func (f *Forwarder) ask(ctx context.Context, q *question, servers []netip.AddrPort) (last *dns.Msg, err error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err = errNobody
	for _, s := range servers {
		m, e := exchange(ctx, q, s)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		last = m
		if m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError {
			break // the others would not know better
		}
	}
	if last != nil {
		return last, nil
	}
	return nil, err
}

// exchange with one server; by TCP when its answer is too long for UDP.
func exchange(ctx context.Context, q *question, server netip.AddrPort) (*dns.Msg, error) {
	out := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id(), RecursionDesired: true, CheckingDisabled: q.noCheck}, Question: []dns.Question{q.q}, Extra: []dns.RR{option(q.dnssec)}}
	var cut *dns.Msg
	for _, network := range []string{"udp", "tcp"} {
		c := dns.Client{Net: network, Timeout: tryTime}
		m, _, err := c.ExchangeContext(ctx, out, server.String())
		switch {
		case err != nil && cut != nil:
			return cut, nil // it says so
		case err != nil:
			return nil, err
		case !m.Response || len(m.Question) != 1 || !strings.EqualFold(m.Question[0].Name, q.q.Name) || m.Question[0].Qtype != q.q.Qtype || m.Question[0].Qclass != q.q.Qclass:
			return nil, errors.New("the response is to another query")
		case !m.Truncated:
			return m, nil
		}
		cut = m
	}
	return cut, nil
}

// resolvConf gives the file's name servers, read again now and then.
func resolvConf(path string) func() []netip.AddrPort {
	var mu sync.Mutex
	var at time.Time
	var servers []netip.AddrPort
	return func() []netip.AddrPort {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) > rereadTime {
			at = time.Now()
			text, err := os.ReadFile(path)
			if err != nil {
				text = nil // it may come back
			}
			servers = parseResolvConf(string(text))
		}
		return servers
	}
}

func parseResolvConf(text string) (servers []netip.AddrPort) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil {
			servers = append(servers, netip.AddrPortFrom(a, 53))
		}
	}
	return servers
}
