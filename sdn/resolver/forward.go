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

// Limits of forwarding.
const (
	tryTime    = 2 * time.Second // for one server
	askTime    = 5 * time.Second // for all of them; guests repeat a query after as long
	maxServers = 3
	rereadTime = 5 * time.Second // interval of reading /etc/resolv.conf
)

// Forwarder forwards queries to other resolvers. Its sockets are opened in the
// namespace of the calling thread: the node's.
type Forwarder struct {
	node  func() []netip.AddrPort
	slots chan struct{}
}

// NewForwarder returns a Forwarder that uses the given resolvers for a network
// without its own; if there are none, those of the node's /etc/resolv.conf.
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

// servers returns the servers for the network.
func (f *Forwarder) servers(z *Zone) []netip.AddrPort {
	all := z.facts.Servers
	if len(all) == 0 && z.facts.Node {
		all = f.node()
	}
	return all[:min(len(all), maxServers)]
}

// ask queries the servers in turn. The answer matches the query.
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
			break // the other servers would give the same answer
		}
	}
	if last != nil {
		return last, nil
	}
	return nil, err
}

// exchange queries one server, over TCP if its answer is too long for UDP.
func exchange(ctx context.Context, q *question, server netip.AddrPort) (*dns.Msg, error) {
	out := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id(), RecursionDesired: true, CheckingDisabled: q.noCheck}, Question: []dns.Question{q.q}, Extra: []dns.RR{option(q.dnssec)}}
	var cut *dns.Msg
	for _, network := range []string{"udp", "tcp"} {
		c := dns.Client{Net: network, Timeout: tryTime}
		m, _, err := c.ExchangeContext(ctx, out, server.String())
		switch {
		case err != nil && cut != nil:
			return cut, nil // it is marked as truncated
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

// resolvConf returns a function that returns the file's name servers, reading
// it again at most every rereadTime.
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
				text = nil // the file may be replaced later
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
