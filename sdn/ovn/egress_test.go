package ovn

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sdn"
)

var exits = []sdn.Exit{
	{Owner: "rtr-1", Project: "prj-1", External: "ext-1"},
	{Owner: "fip-4", Project: "prj-1", External: "ext-1", Source: netip.MustParseAddr("203.0.113.50")},
	{Owner: "fip-6", Project: "prj-1", External: "ext-1", Source: netip.MustParseAddr("2001:db8::50")},
	{Owner: "rtr-2", Project: "prj-2", External: "ext-2"},
}

func TestEgressFlows(t *testing.T) {
	var lines []string
	for _, f := range egressFlows(exits, 7, "ext-1") {
		lines = append(lines, f.owner+" "+f.match)
	}
	mac := outsideMAC("prj-1", "ext-1")
	want := strings.ReplaceAll(` in_port=7,icmp6,icmp_type=135,nw_ttl=255
 in_port=7,icmp6,icmp_type=136,nw_ttl=255
 in_port=7,dl_dst=MAC
rtr-1 in_port=7,dl_src=MAC,ip
rtr-1 in_port=7,dl_src=MAC,ipv6
fip-4 in_port=7,dl_src=MAC,ip,nw_src=203.0.113.50
fip-6 in_port=7,dl_src=MAC,ipv6,ipv6_src=2001:db8::50`, "MAC", mac)
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("egressFlows =\n%s\nwant\n%s", got, want)
	}
	if priorityOwn <= priorityRouters || priorityRouters <= priorityAddress || priorityAddress <= priorityRest || priorityRest <= 0 {
		t.Error("flow priorities are not in the order own, routers, address, rest, all above 0")
	}
}

func TestChangeFlows(t *testing.T) {
	want, start := egressFlows(exits, 7, "ext-1"), time.Unix(1e9, 0)
	have := []reading{}
	for _, f := range want {
		have = append(have, reading{f.key() | 5, 100})
	}
	seen := mergeCounts(nil, have, start)
	if remove, add := changeFlows(want, seen, start.Add(time.Hour), settled); len(remove)+len(add) != 0 {
		t.Errorf("changeFlows without differences = remove %v, add %v, want nothing", remove, add)
	}
	gone, left := want[5], append(want[:5:5], want[6])
	if remove, add := changeFlows(left, seen, start.Add(settled-1), settled); len(remove)+len(add) != 0 {
		t.Errorf("changeFlows before the count has settled = remove %v, add %v, want nothing", remove, add)
	}
	have[5].bytes = 150 // the count has changed
	late := mergeCounts(seen, have, start.Add(settled))
	if remove, _ := changeFlows(left, late, start.Add(settled+1), settled); len(remove) != 0 {
		t.Errorf("changeFlows just after a change of the count removes %v, want nothing", remove)
	}
	late = mergeCounts(late, have, start.Add(2*settled-1))
	remove, add := changeFlows(left, late, start.Add(2*settled), settled)
	if len(remove) != 1 || remove[0] != gone.key()|5 || len(add) != 0 {
		t.Errorf("changeFlows = remove %v, add %v, want to remove %#x only", remove, add, gone.key()|5)
	}
	// The same match for another owner is another flow.
	other := gone
	other.owner = "fip-9"
	if _, add := changeFlows(append(left, other), late, start, settled); len(add) != 1 || add[0] != other || add[0].key() == gone.key() {
		t.Errorf("changeFlows adds %v, want %v with another key", add, other)
	}
	text := script(remove, []flow{other}, 6)
	if !strings.HasPrefix(text, "delete cookie=0xba") || !strings.Contains(text, "/-1\nadd cookie=0xba") || !strings.Contains(text, ",reset_counts,actions=NORMAL\n") {
		t.Errorf("script = %q, want a deletion and an addition with reset_counts", text)
	}
}

// dumped is output of OVS 3.1.
const dumped = `NXST_FLOW reply (xid=0x4):
 cookie=0xba00000000001205, duration=3.100s, table=0, n_packets=12, n_bytes=1044, idle_age=0, priority=800,ip,in_port=2,dl_src=0a:01:02:03:04:05,nw_src=203.0.113.50 actions=NORMAL
 cookie=0x0, duration=3.100s, table=0, n_packets=1, n_bytes=18446744073709551615, priority=0 actions=NORMAL
`

func TestParseFlows(t *testing.T) {
	all, err := parseFlows(dumped)
	if err != nil || len(all) != 1 || all[0] != (reading{0xba00000000001205, 1044}) {
		t.Errorf("parseFlows = %+v, %v, want the flow with Basalt's cookie", all, err)
	}
	for _, bad := range []string{"cookie=0xzz, n_bytes=1, x", "cookie=0xba00000000001205, table=0", "cookie=0xba00000000001205, n_bytes=-1,", "cookie=0xba00000000001205, n_bytes=99999999999999999999,"} {
		if all, err := parseFlows(bad); err == nil {
			t.Errorf("parseFlows(%q) = %+v, want an error", bad, all)
		}
	}
}

func FuzzParseFlows(f *testing.F) {
	f.Add(dumped)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseFlows(text)
		if err != nil && all != nil {
			t.Errorf("parseFlows = %+v with an error, want none", all)
		}
		for _, c := range all {
			if c.cookie&cookieMarkMask != cookieMark {
				t.Errorf("parseFlows returned cookie %#x, want only cookies with mark %#x", c.cookie, cookieMark)
			}
		}
	})
}
