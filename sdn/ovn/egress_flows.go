package ovn

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// What leaves a node is counted by flows on the bridge of the physical network
// with the switch's default action (NORMAL). ovn-controller manages the flows
// of br-int only and leaves these alone.
//
//	from br-int's patch port:
//	  neighbor discovery                          not counted: protocol of the network
//	  to another router of the cluster            not counted: internal
//	  from the router's MAC, floating address     counted for the floating IP
//	  from the router's MAC, any other IP         counted for the router
//
// A guest cannot have its traffic counted for another: its frames reach the
// bridge through its project's router, which sends from its own MAC. In the
// guest's network, port security drops source addresses that are not the
// guest's, and everything else that leaves from the router counts for the
// router.
const (
	priorityOwn = 1000 - 100*iota
	priorityRouters
	priorityAddress
	priorityRest
)

// A flow's cookie is its whole identity: Basalt's mark (8 bits), a hash of
// owner and match (48), and a number that distinguishes two lives of the same
// flow (8). So only the cookie of a flow must be read back.
const (
	cookieMark     = uint64(0xba) << 56
	cookieMarkMask = uint64(0xff) << 56
	cookieLife     = uint64(0xff)
)

type flow struct {
	owner    string // empty: not counted
	priority int
	match    string
}

// key returns the cookie without the number of its life.
func (f flow) key() uint64 {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", f.owner, f.priority, f.match))
	return cookieMark | binary.BigEndian.Uint64(h[:])>>8&^cookieLife
}

// add returns the line for ovs-ofctl(8) add-flows. Without reset_counts, a
// flow that replaces another would continue its count.
func (f flow) add(life uint8) string {
	return fmt.Sprintf("cookie=%#x,priority=%d,%s,reset_counts,actions=NORMAL", f.key()|uint64(life), f.priority, f.match)
}

// egressFlows returns the flows of the bridge that connects the external
// network to br-int by the port.
func egressFlows(exits []sdn.Exit, port int, x api.ExternalNetworkID) (all []flow) {
	add := func(owner string, priority int, format string, args ...any) {
		all = append(all, flow{owner, priority, fmt.Sprintf("in_port=%d,", port) + fmt.Sprintf(format, args...)})
	}
	for _, kind := range []int{135, 136} { // solicitation, advertisement; RFC 4861: both have hop limit 255, which is never forwarded
		add("", priorityOwn, "icmp6,icmp_type=%d,nw_ttl=255", kind)
	}
	for _, e := range exits {
		mac := outsideMAC(e.Project, x)
		switch {
		case e.External != x:
		case !e.Source.IsValid():
			add("", priorityRouters, "dl_dst=%s", mac)
			add(e.Owner, priorityRest, "dl_src=%s,ip", mac)
			add(e.Owner, priorityRest, "dl_src=%s,ipv6", mac)
		case e.Source.Is4():
			add(e.Owner, priorityAddress, "dl_src=%s,ip,nw_src=%s", mac, e.Source)
		default:
			add(e.Owner, priorityAddress, "dl_src=%s,ipv6,ipv6_src=%s", mac, e.Source)
		}
	}
	return all
}

// reading is the count of an existing flow.
type reading struct {
	cookie, bytes uint64
}

// parseFlows parses the cookies and counts in the output of ovs-ofctl
// dump-flows, of flows with Basalt's mark.
func parseFlows(text string) (all []reading, err error) {
	for line := range strings.Lines(text) {
		line, isFlow := strings.CutPrefix(strings.TrimSpace(line), "cookie=")
		if !isFlow {
			continue
		}
		var c reading
		hex, rest, _ := strings.Cut(line, ",")
		if c.cookie, err = strconv.ParseUint(strings.TrimPrefix(hex, "0x"), 16, 64); err != nil {
			return nil, fmt.Errorf("decode cookie of flow %q: %w", line, err)
		}
		_, rest, ok := strings.Cut(rest, " n_bytes=")
		digits, _, _ := strings.Cut(rest, ",")
		if c.bytes, err = strconv.ParseUint(digits, 10, 64); !ok || err != nil {
			return nil, fmt.Errorf("flow %q has no byte count", line)
		}
		if c.cookie&cookieMarkMask == cookieMark {
			all = append(all, c)
		}
	}
	return all, nil
}

// seen is the value of a counter, and when it last changed.
type seen struct {
	bytes uint64
	since time.Time
}

// settled is the default of ChassisOptions.Settled. The switch updates counts
// about once a second, and later when it is busy.
const settled = 5 * time.Second

// mergeCounts merges the present counts into those seen before.
func mergeCounts(before map[uint64]seen, have []reading, now time.Time) map[uint64]seen {
	next := map[uint64]seen{}
	for _, c := range have {
		s, known := before[c.cookie]
		if !known || s.bytes != c.bytes {
			s = seen{c.bytes, now}
		}
		next[c.cookie] = s
	}
	return next
}

// changeFlows returns the changes from the present to the wanted flows. An
// obsolete flow stays until its count has settled, so that its last bytes are
// reported.
func changeFlows(want []flow, have map[uint64]seen, now time.Time, settled time.Duration) (remove []uint64, add []flow) {
	wanted, there := map[uint64]bool{}, map[uint64]bool{}
	for _, f := range want {
		wanted[f.key()] = true
	}
	for cookie, s := range have {
		there[cookie&^cookieLife] = true
		if !wanted[cookie&^cookieLife] && now.Sub(s.since) >= settled {
			remove = append(remove, cookie)
		}
	}
	for _, f := range want {
		if !there[f.key()] {
			there[f.key()] = true
			add = append(add, f)
		}
	}
	slices.Sort(remove)
	return remove, add
}

// script returns the input of ovs-ofctl add-flows.
func script(remove []uint64, add []flow, life uint8) string {
	var b strings.Builder
	for _, cookie := range remove {
		fmt.Fprintf(&b, "delete cookie=%#x/-1\n", cookie)
	}
	for _, f := range add {
		fmt.Fprintf(&b, "add %s\n", f.add(life))
	}
	return b.String()
}
