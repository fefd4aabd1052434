package resolver

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Times for which guests may cache; they are short, because instances come and
// go.
const (
	ttl         = 10 // s, for a name
	negativeTTL = 5  // s, for a missing name
)

// Facts are what a Zone is built from.
type Facts struct {
	// Domain is the domain of the instances' names: "shop.internal".
	Domain string
	// Names of instances, in lower case and without Domain.
	Names map[string][]netip.Addr
	// Ranges are the ranges of the network: names of their addresses are never
	// forwarded.
	Ranges []netip.Prefix
	// Servers are queried for external names, in this order; if Node is set,
	// those of the node are. With neither, nothing is forwarded.
	Servers []netip.AddrPort
	Node    bool
	// Hosts and HostNames are the cluster's own: they are never forwarded.
	Hosts     []netip.Prefix
	HostNames []string
}

// Zone is what guests of one network can look up. It is immutable.
type Zone struct {
	facts Facts
	// names are the existing names; one without records has others below it.
	names map[string][]dns.RR
	// tops are the top names that are answered from the zone or not at all.
	tops map[string]bool
}

// NewZone returns the zone of a network.
func NewZone(f Facts) *Zone {
	z := &Zone{facts: f, names: map[string][]dns.RR{}, tops: map[string]bool{}}
	for _, p := range slices.Concat(f.Ranges, f.Hosts) {
		z.keep(reverseZones(p)...)
	}
	for _, name := range f.HostNames {
		z.keep(dns.CanonicalName(name))
	}
	domain := "."
	if f.Domain != "" {
		domain = dns.CanonicalName(f.Domain)
		z.keep(domain)
	}
	for _, short := range slices.Sorted(maps.Keys(f.Names)) {
		name, long := dns.CanonicalName(short), dns.CanonicalName(short+"."+strings.TrimSuffix(domain, "."))
		for _, a := range f.Names[short] {
			z.add(name, address(name, a))
			if long != name {
				z.add(long, address(long, a))
			}
			if back, err := dns.ReverseAddr(a.String()); err == nil {
				z.add(back, &dns.PTR{Hdr: header(back, dns.TypePTR), Ptr: long})
			}
		}
	}
	return z
}

// keep marks names that are, with all names below, not forwarded.
func (z *Zone) keep(names ...string) {
	for _, n := range names {
		if _, ok := dns.IsDomainName(n); ok && n != "." {
			z.tops[n] = true
		}
	}
}

// add adds records, and makes the names above exist.
func (z *Zone) add(name string, records ...dns.RR) {
	z.names[name] = append(z.names[name], records...)
	for above := parent(name); z.top(above) != ""; above = parent(above) {
		if _, there := z.names[above]; !there {
			z.names[above] = nil
		}
	}
}

func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

func address(name string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: header(name, dns.TypeA), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: a.AsSlice()}
}

// parent returns the parent of a name; of the last label it is the root.
func parent(name string) string {
	if next, end := dns.NextLabel(name, 0); !end {
		return name[next:]
	}
	return "."
}

// top returns the name in tops or hidden that the name is equal to or below;
// empty if there is none.
func (z *Zone) top(name string) string {
	for n := name; n != "."; n = parent(n) {
		if z.tops[n] || hidden[n] {
			return n
		}
	}
	return ""
}

// answer is the answer to a query that is not forwarded.
type answer struct {
	code    int // dns.Rcode…
	records []dns.RR
	soa     dns.RR // of an answer without records
}

// answer answers from the zone; false: the query must be forwarded.
func (z *Zone) answer(q dns.Question) (answer, bool) {
	switch {
	case q.Qclass != dns.ClassINET, q.Qtype == dns.TypeNone, q.Qtype == dns.TypeOPT, q.Qtype >= dns.TypeTKEY && q.Qtype <= dns.TypeANY:
		return answer{code: dns.RcodeRefused}, true // transfers, "any", and types that are not records
	}
	name := dns.CanonicalName(q.Name)
	top := z.top(name)
	records, known := z.names[name]
	switch {
	case known || top == name:
		var a answer
		for _, r := range records {
			if r.Header().Rrtype == q.Qtype {
				a.records = append(a.records, dns.Copy(r))
			}
		}
		switch {
		case len(a.records) > 0:
		case top == name && q.Qtype == dns.TypeSOA:
			a.records = []dns.RR{soa(top)}
		case top == "": // a name without its domain
			a.soa = soa(name)
		default:
			a.soa = soa(top)
		}
		return a, true
	case top != "":
		return answer{code: dns.RcodeNameError, soa: soa(top)}, true
	case dns.CountLabel(name) == 1 && !ofTopLevel[q.Qtype]:
		// A name without a dot is meant locally. Without a SOA the answer is not
		// cached: the name may also be a top-level domain.
		return answer{code: dns.RcodeNameError}, true
	}
	return answer{}, false
}

// ofTopLevel are the record types that a guest which checks signatures, or
// resolves by itself, queries top-level domains for.
var ofTopLevel = map[uint16]bool{dns.TypeNS: true, dns.TypeSOA: true, dns.TypeDS: true, dns.TypeDNSKEY: true}

// soa returns the record that limits the caching of a missing name (RFC 2308).
func soa(top string) dns.RR {
	h := header(top, dns.TypeSOA)
	h.Ttl = negativeTTL
	return &dns.SOA{Hdr: h, Ns: top, Mbox: "hostmaster." + top, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: negativeTTL}
}
