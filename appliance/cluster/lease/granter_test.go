package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const second = Instant(time.Second)

var three = []Member{{ID: "a", Name: "node1"}, {ID: "b", Name: "node2"}, {ID: "c", Name: "node3"}}

func beat(n api.NodeID, epoch int64) Heartbeat {
	return Heartbeat{V: wireVersion, Node: n, Epoch: epoch}
}

func of(vs []Verdict, n api.NodeID) Verdict {
	for _, v := range vs {
		if v.Node == n {
			return v
		}
	}
	return Verdict{State: -1}
}

// blind records that from reaches about on no path.
func (g *Granter) blind(at Instant, from, about api.NodeID) {
	g.RecordReports(at, from, []PathReport{{about, "1", false}, {about, "2", false}})
}

func elected(members ...Member) *Granter {
	g := NewGranter("a")
	g.Elected(100*second, 7, members)
	return g
}

func TestGranting(t *testing.T) {
	g := elected(three...)
	for _, c := range []struct {
		name string
		term uint64
		h    Heartbeat
		want func(Answer) bool
	}{
		{"member", 7, beat("b", 0), func(a Answer) bool { return a.Granted && a.TTL == TTL }},
		{"another term", 8, beat("b", 0), func(a Answer) bool { return a.NotLeader && !a.Granted }},
		{"stranger", 7, beat("x", 0), func(a Answer) bool { return !a.Granted && a.Refused == 0 }},
		{"an epoch that is not yet", 7, beat("b", 1), func(a Answer) bool { return !a.Granted && a.Refused == 0 }},
	} {
		if a := g.Receive(101*second, 101*second, c.term, c.h); !c.want(a) {
			t.Errorf("%s: unexpected answer %+v", c.name, a)
		}
	}
	lost := []Member{three[0], {ID: "b", Name: "node2", Epoch: 1, Lost: true}, three[2]}
	g.Members(102*second, lost)
	if a := g.Receive(103*second, 103*second, 7, beat("b", 0)); a.Refused != 1 {
		t.Errorf("heartbeat of an older epoch: got %+v, want refused with epoch 1", a)
	}
	if a := g.Receive(103*second, 103*second, 7, beat("b", 1)); a.Granted || a.Refused != 0 {
		t.Errorf("heartbeat of a lost node: got %+v, want neither granted nor refused", a)
	}
	if v := of(g.Verdicts(104*second), "b"); v.State != Alive || !strings.Contains(v.Why, "it is back") {
		t.Errorf("verdict on a returned node: %+v", v)
	}
	if v := of(g.Verdicts(104*second+Instant(Silence)), "b"); v.State != Fenced {
		t.Errorf("verdict on a lost node: %+v, want Fenced", v)
	}
	g.Members(104*second, three) // an outdated list changes nothing
	if a := g.Receive(104*second, 104*second, 7, beat("b", 0)); a.Refused != 1 {
		t.Errorf("after an outdated list of members: got %+v, want refused with epoch 1", a)
	}
	lost[1].Lost = false
	g.Members(105*second, lost)
	if a := g.Receive(106*second, 106*second, 7, beat("b", 1)); !a.Granted {
		t.Errorf("heartbeat of a node that is Ready again: got %+v, want granted", a)
	}
	g.Members(107*second, three[:1])
	if a := g.Receive(107*second, 107*second, 7, beat("b", 1)); a.Granted {
		t.Error("lease granted to a removed node")
	}
	g.Deposed()
	if a := g.Receive(108*second, 108*second, 7, beat("a", 0)); !a.NotLeader || len(g.Verdicts(108*second)) != 0 {
		t.Errorf("answer after Deposed: %+v", a)
	}
}

func TestSuspicion(t *testing.T) {
	g := elected(three...)
	alive := func(now Instant) {
		g.Receive(now, now, 7, beat("a", 0))
		g.Receive(now, now, 7, beat("c", 0))
	}
	verdict := func(now Instant) Verdict { alive(now); return of(g.Verdicts(now), "b") }
	g.Receive(100*second, 100*second, 7, beat("b", 0))
	if v := verdict(105 * second); v.State != Alive {
		t.Errorf("verdict 5 s after a heartbeat: %+v, want Alive", v)
	}
	g.blind(106*second, "a", "b")
	if v := verdict(106 * second); v.State != Silent || !strings.Contains(v.Why, "nobody else has looked") {
		t.Errorf("verdict with one witness: %+v", v)
	}
	g.RecordReports(106*second, "c", []PathReport{{"b", "1", false}, {"b", "2", true}})
	if v := verdict(107 * second); v.State != Silent || len(v.Witnesses) != 2 || !strings.Contains(v.Why, "node3 can") {
		t.Errorf("verdict with one of two witnesses reaching the node: %+v", v)
	}
	g.blind(108*second, "c", "b")
	v := verdict(109 * second)
	if v.State != Suspect || v.LeaseEndsBy != 110*second || v.FencedBy != 125*second || v.Term != 7 || v.Since != 109*second {
		t.Errorf("verdict with two blind witnesses: %+v", v)
	}
	// Opinions expire.
	if v := verdict(126 * second); v.State != Silent {
		t.Errorf("verdict with expired opinions: %+v, want Silent", v)
	}
	g.blind(126*second, "a", "b")
	g.blind(126*second, "b", "b") // a node is not a witness for itself
	if v := verdict(126 * second); v.State != Silent {
		t.Errorf("verdict with the node itself as a witness: %+v, want Silent", v)
	}
	g.blind(126*second, "c", "b")
	if v := verdict(126 * second); v.State != Fenced {
		t.Errorf("verdict with two blind witnesses after 25 s: %+v, want Fenced", v)
	}
	// A Fenced verdict is final for the epoch.
	if a := g.Receive(127*second, 127*second, 7, beat("b", 0)); a.Granted {
		t.Error("lease granted after a Fenced verdict")
	}
	g.RecordReports(127*second, "c", []PathReport{{"b", "1", true}})
	if v := verdict(128 * second); v.State != Fenced {
		t.Errorf("verdict after a witness reaches the node: %+v, want Fenced", v)
	}
	// A new term starts over and waits for 25 s.
	g.Elected(130*second, 9, three)
	if v := verdict(131 * second); v.State != Alive || v.FencedBy != 155*second {
		t.Errorf("verdict after another election: %+v", v)
	}
}

// TestGrantCountsFromArrival checks that a heartbeat that waited long for Verify
// counts from its arrival.
func TestGrantCountsFromArrival(t *testing.T) {
	g := elected(three...)
	g.Receive(120*second, 105*second, 7, beat("b", 0))
	if v := of(g.Verdicts(120*second), "b"); v.LastHeartbeat != 105*second || v.LeaseEndsBy != 115*second {
		t.Errorf("verdict after a late heartbeat: %+v", v)
	}
	g.Receive(121*second, 104*second, 7, beat("b", 0)) // sent earlier, arrives later
	if v := of(g.Verdicts(121*second), "b"); v.LeaseEndsBy != 115*second {
		t.Errorf("verdict after a reordered heartbeat: %+v", v)
	}
}

func TestTwoNodesWaitForAPerson(t *testing.T) {
	g := elected(three[:2]...)
	g.Receive(101*second, 101*second, 7, beat("b", 0))
	for now := 101 * second; now < 1000*second; now += second {
		g.Receive(now, now, 7, beat("a", 0))
		g.blind(now, "a", "b")
		if v := of(g.Verdicts(now), "b"); v.State > Silent || v.State == Silent && !strings.Contains(v.Why, "basalt node remove node2") {
			t.Fatalf("verdict in a cluster of two nodes: %+v", v)
		}
	}
	// An operator confirms that the node is off. The lease may still be valid until
	// its end.
	if g.Receive(1000*second, 1000*second, 7, beat("b", 0)); !g.Revoke("b") || g.Revoke("x") {
		t.Fatal("Revoke got the wrong results")
	}
	if a := g.Receive(1001*second, 1001*second, 7, beat("b", 0)); a.Granted {
		t.Error("lease granted after Revoke")
	}
	if v := of(g.Verdicts(1024*second), "b"); v.State != Suspect || !strings.Contains(v.Why, "operator") {
		t.Errorf("verdict before the end of the 25 s: %+v, want Suspect", v)
	}
	if v := of(g.Verdicts(1025*second), "b"); v.State != Fenced {
		t.Errorf("verdict after Revoke and 25 s: %+v, want Fenced", v)
	}
}

func TestOneNodeGrantsItself(t *testing.T) {
	g := elected(three[:1]...)
	if a := g.Receive(101*second, 101*second, 7, beat("a", 0)); !a.Granted {
		t.Errorf("a single node got %+v, want granted", a)
	}
}

func TestHolder(t *testing.T) {
	h := NewHolder(2)
	q := h.Sent(10 * second)
	grant := Answer{Granted: true, TTL: TTL}
	if h.Valid(10*second, 0) || !h.Answered(q, grant) || !h.Valid(20*second-1, 0) || h.Valid(20*second, 0) || h.Valid(19*second, time.Second) {
		t.Error("a grant does not count from before the heartbeat was sent")
	}
	if h.Answered(SentHeartbeat{Sent: 5 * second, Epoch: 2}, grant) || h.Until() != 20*second {
		t.Error("a late answer shortened the lease")
	}
	if h.Answered(SentHeartbeat{Sent: 15 * second, Epoch: 1}, grant) || h.Answered(h.Sent(15*second), Answer{Reason: "no"}) {
		t.Error("the grant of another epoch, or an answer without a grant, changed the lease")
	}
	if !h.Answered(h.Sent(12*second), Answer{Granted: true, TTL: time.Hour}) || h.Until() != 22*second {
		t.Error("a grant with a long TTL was not limited to the constant")
	}
	if !h.Answered(h.Sent(13*second), Answer{Refused: 4}) || h.Valid(13*second, 0) || h.Refused() != 4 {
		t.Error("a refusal did not end the lease")
	}
	if h.Answered(h.Sent(14*second), grant) {
		t.Error("a grant for the refused epoch was accepted")
	}
	h.Adopt(3)
	if h.Refused() != 4 {
		t.Error("adopting an older epoch ended the refusal")
	}
	h.Adopt(4)
	if h.Refused() != 0 || h.Epoch() != 4 || h.Answered(q, grant) || !h.Answered(h.Sent(15*second), grant) {
		t.Error("adopting the epoch did not end the refusal")
	}
}

func TestPathOpinions(t *testing.T) {
	var o PathOpinions
	up := func(now Instant) (string, bool) {
		s := o.Reports(now)
		if len(s) != 1 {
			return "unknown", false
		}
		return s[0].Path, s[0].Up
	}
	miss := func(at Instant) { o.Probed(at, "b", "p", false) }
	miss(1 * second)
	miss(2 * second)
	if s, _ := up(2 * second); s != "unknown" {
		t.Error("two misses produced an opinion")
	}
	miss(3 * second)
	if s, ok := up(3 * second); s != "p" || ok || o.Reaches("b") {
		t.Error("path not down after three misses")
	}
	o.Probed(4*second, "b", "p", true)
	miss(5 * second)
	miss(6 * second)
	if _, ok := up(6 * second); !ok || !o.Reaches("b") {
		t.Error("path down after a success and two misses")
	}
	if s, _ := up(12 * second); s != "unknown" {
		t.Error("expired opinion returned")
	}
	o.Retain(func(api.NodeID, string) bool { return false })
	if o.Reaches("b") {
		t.Error("path still known after Retain")
	}
}

func TestManyOpinionsFitAHeartbeat(t *testing.T) {
	var o PathOpinions
	for i := range 2 * maxReports {
		o.Probed(second, api.NodeID(strings.Repeat("n", 1+i/100)), strings.Repeat("p", 1+i%100), true)
	}
	for range ProbeDown {
		o.Probed(second, "dead", "p", false)
	}
	if s := o.Reports(second); len(s) != 1 || s[0].Node != "dead" {
		t.Errorf("got %d reports, want only the one of the dead node", len(s))
	}
}

// TestLateReadings checks that a list of members that omits a node, followed by one
// that contains it again, reverts neither a verdict nor an epoch.
func TestLateReadings(t *testing.T) {
	g := elected(three...)
	g.blind(126*second, "a", "b")
	g.blind(126*second, "c", "b")
	if v := of(g.Verdicts(126*second), "b"); v.State != Fenced {
		t.Fatalf("verdict: %+v, want Fenced", v)
	}
	g.Members(126*second, nil)
	g.Members(127*second, three)
	if a := g.Receive(128*second, 128*second, 7, beat("b", 0)); a.Granted {
		t.Error("lease granted after the verdict")
	}
	g.Members(129*second, []Member{three[0], {ID: "b", Name: "node2", Epoch: 1, Lost: true}, three[2]})
	g.Members(129*second, nil)
	g.Members(130*second, three)
	if a := g.Receive(131*second, 131*second, 7, beat("b", 0)); a.Granted || a.Refused != 1 {
		t.Errorf("heartbeat of an older epoch: got %+v, want refused with epoch 1", a)
	}
}
