package resolver

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// How long guests may remember: instances come and go.
const (
	ttl         = 10 // s, of a name
	negativeTTL = 5  // s, that there is no such name
)

// Facts that a Zone is made from.
type Facts struct {
	// Domain of the instances' names: "shop.internal".
	Domain string
	// Names of instances, in lower case and without Domain.
	Names map[string][]netip.Addr
	// Ranges of the network: only it knows the names of their addresses.
	Ranges []netip.Prefix
	// Servers are asked for names outside, in this order; Node: those of the
	// node are. Neither: nobody is.
	Servers []netip.AddrPort
	Node    bool
	// Hosts and HostNames are the cluster's own: nobody is asked for them.
	Hosts     []netip.Prefix
	HostNames []string
}

// Zone is what guests of one network are told. It does not change.
type Zone struct {
	facts Facts
	// names that there are; without records: there are others below.
	names map[string][]dns.RR
	// tops of what is answered here or not at all.
	tops map[string]bool
}

// NewZone of a network.
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

// keep what is at or below these names here.
func (z *Zone) keep(names ...string) {
	for _, n := range names {
		if _, ok := dns.IsDomainName(n); ok && n != "." {
			z.tops[n] = true
		}
	}
}

// add records; the names above are there with them.
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

// parent of a name; of the last label it is the root.
func parent(name string) string {
	if next, end := dns.NextLabel(name, 0); !end {
		return name[next:]
	}
	return "."
}

// top of what is kept here that the name is at or below; empty: of nothing.
func (z *Zone) top(name string) string {
	for n := name; n != "."; n = parent(n) {
		if z.tops[n] || hidden[n] {
			return n
		}
	}
	return ""
}

// answer to a question that is answered here.
type answer struct {
	code    int // dns.Rcode…
	records []dns.RR
	soa     dns.RR // of an answer without records
}

// answer what is known here; false: others know it.
func (z *Zone) answer(q dns.Question) (answer, bool) {
	switch {
	case q.Qclass != dns.ClassINET, q.Qtype == dns.TypeNone, q.Qtype == dns.TypeOPT, q.Qtype >= dns.TypeTKEY && q.Qtype <= dns.TypeANY:
		return answer{code: dns.RcodeRefused}, true // transfers, "any", and what is no record
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
		// A name without a dot is meant for here. Without a SOA nobody keeps
		// that: it may be a top-level domain's.
		return answer{code: dns.RcodeNameError}, true
	}
	return answer{}, false
}

// ofTopLevel are the records that a guest which checks signatures, or looks
// for name servers itself, asks top-level domains for.
var ofTopLevel = map[uint16]bool{dns.TypeNS: true, dns.TypeSOA: true, dns.TypeDS: true, dns.TypeDNSKEY: true}

// soa returns how long the absence of a name may be remembered (RFC 2308).
func soa(top string) dns.RR {
	h := header(top, dns.TypeSOA)
	h.Ttl = negativeTTL
	return &dns.SOA{Hdr: h, Ns: top, Mbox: "hostmaster." + top, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: negativeTTL}
}
