package resolver

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func addrs(all ...string) (out []netip.Addr) {
	for _, s := range all {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func facts() Facts {
	return Facts{
		Domain: "shop.internal", Node: true,
		Names:  map[string][]netip.Addr{"web": addrs("10.64.0.5", "fd00:a1::5"), "db": addrs("10.64.0.6"), "pub": addrs("203.0.113.70")},
		Ranges: []netip.Prefix{netip.MustParsePrefix("10.64.0.0/24"), netip.MustParsePrefix("fd00:a1::/64"), netip.MustParsePrefix("203.0.113.64/26")},
		Hosts:  []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, HostNames: []string{"node1", "Node1.corp.example"},
	}
}

// TestZone checks queries and their answers in one line: "-" means forwarded.
func TestZone(t *testing.T) {
	z := NewZone(facts())
	for question, want := range map[string]string{
		"web.shop.internal. A":      "10.64.0.5",
		"WEB.Shop.Internal. A":      "10.64.0.5",
		"web.shop.internal. AAAA":   "fd00:a1::5",
		"web. A":                    "10.64.0.5",
		"db.shop.internal. AAAA":    "NOERROR soa shop.internal.",
		"db. AAAA":                  "NOERROR soa db.",
		"web.shop.internal. MX":     "NOERROR soa shop.internal.",
		"nobody.shop.internal. A":   "NXDOMAIN soa shop.internal.",
		"a.web.shop.internal. A":    "NXDOMAIN soa shop.internal.",
		"shop.internal. SOA":        "shop.internal. hostmaster.shop.internal. 1 3600 600 86400 5",
		"shop.internal. A":          "NOERROR soa shop.internal.",
		"internal. A":               "NOERROR soa internal.",
		"other.internal. A":         "NXDOMAIN soa internal.",
		"web.blue.internal. A":      "NXDOMAIN soa internal.",
		"nobody. A":                 "NXDOMAIN",
		"nobody. HTTPS":             "NXDOMAIN",
		"com. NS":                   "-",
		"com. DS":                   "-",
		". NS":                      "-",
		"example.com. A":            "-",
		"example.com. TXT":          "-",
		"internal.example.com. A":   "-",
		"node1. A":                  "NOERROR soa node1.",
		"node1.corp.example. A":     "NOERROR soa node1.corp.example.",
		"api.node1.corp.example. A": "NXDOMAIN soa node1.corp.example.",
		"node2.corp.example. A":     "-",
		"localhost. A":              "NOERROR soa localhost.",
		"printer.local. A":          "NXDOMAIN soa local.",
		"x.home.arpa. A":            "NXDOMAIN soa home.arpa.",

		"5.0.64.10.in-addr.arpa. PTR":        "web.shop.internal.",
		"7.0.64.10.in-addr.arpa. PTR":        "NXDOMAIN soa 0.64.10.in-addr.arpa.",
		"64.10.in-addr.arpa. NS":             "NOERROR soa 10.in-addr.arpa.",
		"1.1.168.192.in-addr.arpa. PTR":      "NXDOMAIN soa 168.192.in-addr.arpa.",
		"1.31.172.in-addr.arpa. PTR":         "NXDOMAIN soa 31.172.in-addr.arpa.",
		"1.0.32.172.in-addr.arpa. PTR":       "-",
		"1.0.127.100.in-addr.arpa. PTR":      "NXDOMAIN soa 127.100.in-addr.arpa.",
		"1.0.128.100.in-addr.arpa. PTR":      "-",
		"1.2.0.192.in-addr.arpa. PTR":        "NOERROR soa 1.2.0.192.in-addr.arpa.",
		"2.2.0.192.in-addr.arpa. PTR":        "-",
		"70.113.0.203.in-addr.arpa. PTR":     "pub.shop.internal.",
		"71.113.0.203.in-addr.arpa. PTR":     "NOERROR soa 71.113.0.203.in-addr.arpa.",
		"1.113.0.203.in-addr.arpa. PTR":      "-",
		"8.8.8.8.in-addr.arpa. PTR":          "-",
		reverse("fd00:a1::5") + " PTR":       "web.shop.internal.",
		reverse("fd00:a1::6") + " PTR":       "NXDOMAIN soa 0.0.0.0.0.0.0.0.1.a.0.0.0.0.d.f.ip6.arpa.",
		reverse("fdff::1") + " PTR":          "NXDOMAIN soa d.f.ip6.arpa.",
		reverse("fe80::1") + " PTR":          "NXDOMAIN soa 8.e.f.ip6.arpa.",
		reverse("febf::1") + " PTR":          "NXDOMAIN soa b.e.f.ip6.arpa.",
		reverse("::1") + " PTR":              "NOERROR soa " + reverse("::1"),
		reverse("2001:db8::1") + " PTR":      "-",
		"web.shop.internal. ANY":             "REFUSED",
		"shop.internal. AXFR":                "REFUSED",
		"example.com. IXFR":                  "REFUSED",
		"example.com. OPT":                   "REFUSED",
		"example.com. TYPE0":                 "REFUSED",
		"version.bind. TXT CH":               "REFUSED",
		"web.shop.internal. A CH":            "REFUSED",
		strings.Repeat("a.", 120) + "com. A": "-",
	} {
		words := strings.Fields(question)
		q := dns.Question{Name: words[0], Qtype: typeOf(words[1]), Qclass: dns.ClassINET}
		if len(words) == 3 {
			q.Qclass = dns.StringToClass[words[2]]
		}
		a, here := z.answer(q)
		if got := inWords(a, here); got != want {
			t.Errorf("answer to %s = %q, want %q", question, got, want)
		}
	}
}

func typeOf(s string) uint16 {
	if s == "TYPE0" {
		return 0
	}
	return dns.StringToType[s]
}

func reverse(a string) string { s, _ := dns.ReverseAddr(a); return s }

func inWords(a answer, here bool) string {
	if !here {
		return "-"
	}
	var words []string
	for _, r := range a.records {
		words = append(words, strings.TrimPrefix(r.String(), r.Header().String()))
	}
	slices.Sort(words)
	if len(words) == 0 {
		words = append(words, dns.RcodeToString[a.code])
	}
	if a.soa != nil {
		words = append(words, "soa", a.soa.Header().Name)
	}
	return strings.Join(words, " ")
}

// TestOddZones checks a network without a domain, and one with invalid names.
func TestOddZones(t *testing.T) {
	z := NewZone(Facts{Names: map[string][]netip.Addr{"web": addrs("10.0.0.5")}})
	if a, here := z.answer(dns.Question{Name: "5.0.0.10.in-addr.arpa.", Qtype: dns.TypePTR, Qclass: dns.ClassINET}); inWords(a, here) != "web." {
		t.Errorf("PTR without a domain = %s, want web.", inWords(a, here))
	}
	z = NewZone(Facts{Domain: "..", Names: map[string][]netip.Addr{"": addrs("10.0.0.5")}, HostNames: []string{".", ""}})
	if a, here := z.answer(dns.Question{Name: "example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}); here {
		t.Errorf("answer for an external name in a zone with invalid names = %s, want it forwarded", inWords(a, here))
	}
}

func TestResolvConf(t *testing.T) {
	got := parseResolvConf("# nameserver 1.2.3.4\nsearch x\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\n nameserver 192.0.2.1 # first\nnameserver nonsense\nnameserver\n")
	var words []string
	for _, s := range got {
		words = append(words, s.String())
	}
	if want := "127.0.0.53:53 [fe80::1%eth0]:53 192.0.2.1:53"; strings.Join(words, " ") != want {
		t.Errorf("servers = %q, want %q", words, want)
	}
	if s := resolvConf(t.TempDir() + "/none")(); len(s) != 0 {
		t.Errorf("servers of a missing file = %v, want none", s)
	}
}
