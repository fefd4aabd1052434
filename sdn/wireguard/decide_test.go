package wireguard

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// end is the end of the tunnels of a node that has any.
var end = netip.MustParseAddr("192.0.2.1")

// TestDecide follows the stages of two nodes.
func TestDecide(t *testing.T) {
	on := Wanted{On: true}
	bare := Report{}
	keyed := func(connected ...string) Report { return Report{Keys: []Key{{Generation: 1, Connected: connected}}} }
	sending := func(r Report, enforced bool) Report { r.Send, r.Enforced = 1, enforced; return r }
	broken := keyed("a")
	broken.Problem = "no module"
	keys := State{Generation: 1, Keys: []int{1}}
	send := State{Generation: 1, Keys: []int{1}, Send: 1}
	enforced := State{Generation: 1, Keys: []int{1}, Send: 1, Enforced: true}
	for _, c := range []struct {
		name string
		s    State
		w    Wanted
		a, b Report
		want State
		// waits is set if all nodes must have carried the state out.
		waits bool
	}{
		{"off stays off", State{}, Wanted{}, bare, bare, State{}, false},
		{"begins without reports", State{}, on, bare, bare, keys, false},
		{"waits for a key", keys, on, keyed(), bare, keys, false},
		{"waits for packets from one to the other", keys, on, keyed("b"), keyed(), keys, false},
		{"waits for a node with a problem", keys, on, keyed("b"), broken, keys, false},
		{"sends", keys, on, keyed("b"), keyed("a"), send, false},
		{"waits for senders", send, on, sending(keyed("b"), false), keyed("a"), send, true},
		{"enforces", send, on, sending(keyed("b"), false), sending(keyed("a"), false), enforced, true},
		{"stays", enforced, on, bare, bare, enforced, false},
		{"rotates", enforced, Wanted{On: true, Rotation: 3}, bare, bare, State{Generation: 2, Rotation: 3, Keys: []int{1, 2}, Send: 1, Enforced: true}, false},
		{"does not send without all", State{Generation: 2, Keys: []int{1, 2}, Send: 1, Enforced: true}, on, keyed("b"), keyed("a"), State{Generation: 2, Keys: []int{1, 2}, Send: 1, Enforced: true}, false},
		{"keeps the old keys while used", State{Generation: 2, Keys: []int{1, 2}, Send: 2, Enforced: true}, on, sending(bare, true), Report{Send: 2}, State{Generation: 2, Keys: []int{1, 2}, Send: 2, Enforced: true}, true},
		{"removes the old keys", State{Generation: 2, Keys: []int{1, 2}, Send: 2, Enforced: true}, on, Report{Send: 2}, Report{Send: 2}, State{Generation: 2, Keys: []int{2}, Send: 2, Enforced: true}, true},
		{"accepts plain first", enforced, Wanted{}, bare, bare, send, false},
		{"does not send plain while it is dropped", send, Wanted{}, sending(bare, true), bare, send, true},
		{"sends plain", send, Wanted{}, sending(bare, false), bare, keys, true},
		{"keeps interfaces while they are used", keys, Wanted{}, sending(bare, false), bare, keys, true},
		{"a node does not know", keys, Wanted{}, Report{Send: unknown}, bare, keys, true},
		{"ends, and never repeats a generation", keys, Wanted{}, bare, bare, State{Generation: 1}, true},
		{"begins again", State{Generation: 1}, on, bare, bare, State{Generation: 2, Keys: []int{2}}, false},
	} {
		c.s.Serial, c.want.Serial, c.a.Serial, c.b.Serial = 7, 7, 7, 7
		c.a.Address, c.b.Address = end, end
		if !reflect.DeepEqual(c.s, c.want) {
			c.want.Serial = 8
		}
		if got := Decide(c.s, c.w, map[string]Report{"a": c.a, "b": c.b}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: Decide = %+v, want %+v", c.name, got, c.want)
		}
		late := c.b
		late.Serial = 6
		if got := Decide(c.s, c.w, map[string]Report{"a": c.a, "b": late}); c.waits && !reflect.DeepEqual(got, c.s) {
			t.Errorf("%s: Decide with a report about an earlier state = %+v, want %+v", c.name, got, c.s)
		}
	}
}

// model is a cluster in which decisions and reports arrive late.
type model struct {
	r      *rand.Rand
	state  State
	wanted Wanted
	nodes  map[string]*modelNode
}

// modelNode is a node: what it has carried out, and the reports of the others that it
// has read.
type modelNode struct {
	applied State
	report  Report            // as the store has it
	seen    map[string]Report // by node
	lost    bool
}

// hears reports whether packets of a that are encrypted with the generation are accepted
// by b, and b's answers by a: each has the other's key.
func (m *model) hears(a, b string, generation int) bool {
	knows := func(x, y *modelNode, id string) bool {
		k, ok := x.seen[id].Key(generation)
		return ok && slices.Contains(x.applied.Keys, generation) && slices.Contains(y.applied.Keys, generation) && k.Public == public(id, generation)
	}
	return knows(m.nodes[a], m.nodes[b], b) && knows(m.nodes[b], m.nodes[a], a)
}

func public(id string, generation int) string { return fmt.Sprint(id, generation) }

// delivers reports whether a tunnel's packet of a arrives at b.
func (m *model) delivers(a, b string) bool {
	if g := m.nodes[a].applied.Send; g != 0 {
		return m.hears(a, b, g)
	}
	return !m.nodes[b].applied.Enforced
}

// step lets a node read the state and some reports, or write its own.
func (m *model) step(id string) {
	n := m.nodes[id]
	if n.lost {
		return
	}
	switch m.r.IntN(3) {
	case 0:
		n.applied = m.state
	case 1:
		for other, o := range m.nodes {
			if m.r.IntN(2) == 0 {
				n.seen[other] = o.report
			}
		}
	case 2:
		r := Report{Address: end, Serial: n.applied.Serial, Send: n.applied.Send, Enforced: n.applied.Enforced}
		for _, g := range n.applied.Keys {
			k := Key{Generation: g, Public: public(id, g)}
			for other, o := range m.nodes {
				if other != id && !o.lost && m.hears(id, other, g) {
					k.Connected = append(k.Connected, other)
				}
			}
			r.Keys = append(r.Keys, k)
		}
		n.report = r
	}
}

func (m *model) decide() State {
	live := map[string]Report{}
	for id, n := range m.nodes {
		if !n.lost {
			live[id] = n.report
		}
	}
	return Decide(m.state, m.wanted, live)
}

// settle runs without changes until nothing happens any more.
func (m *model) settle() {
	for range 400 {
		for id := range m.nodes {
			m.step(id)
		}
		m.state = m.decide()
	}
}

// checkDelivery checks that no packet between nodes that are up is lost.
func (m *model) checkDelivery(t *testing.T, seed uint64, when string) {
	t.Helper()
	for a, x := range m.nodes {
		for b, y := range m.nodes {
			if a != b && !x.lost && !y.lost && !m.delivers(a, b) {
				t.Fatalf("seed %d, %s: packet from %s (%+v) to %s (%+v) is lost; state %+v", seed, when, a, x.applied, b, y.applied, m.state)
			}
		}
	}
}

// TestDecideProperties checks in random runs, in which nodes carry out decisions and read
// reports late and in any order, that tunnels lose nothing when the encryption is turned
// on and off and keys are rotated, that the wanted state is reached, and that a node that
// was lost meanwhile takes part again.
func TestDecideProperties(t *testing.T) {
	for seed := range uint64(300) {
		m := &model{r: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*modelNode{}}
		for i := range 2 + m.r.IntN(4) {
			m.nodes[fmt.Sprint("n", i)] = &modelNode{seen: map[string]Report{}}
		}
		for range 12 {
			m.change()
			for range 30 {
				for id := range m.nodes {
					m.step(id)
				}
				if m.r.IntN(3) == 0 {
					m.state = m.decide()
				}
				if len(m.state.Keys) > 2 {
					t.Fatalf("seed %d: state %+v has more than two generations", seed, m.state)
				}
				m.checkDelivery(t, seed, "while it changes")
			}
		}
		m.settle()
		m.checkWanted(t, seed)
		m.loseOne(t, seed)
	}
}

// change changes what is wanted.
func (m *model) change() {
	switch m.r.IntN(3) {
	case 0:
		m.wanted.On = !m.wanted.On
	case 1:
		m.wanted.Rotation++
	}
}

func (m *model) checkWanted(t *testing.T, seed uint64) {
	t.Helper()
	want := "off"
	if m.wanted.On {
		want = "encrypted"
	}
	if got := m.state.Stage(); got != want || m.wanted.On && m.state.Rotation != m.wanted.Rotation {
		t.Fatalf("seed %d: stage %s, state %+v; want %s, rotation %d", seed, got, m.state, want, m.wanted.Rotation)
	}
	m.checkDelivery(t, seed, "settled")
}

// loseOne changes what is wanted while a node is lost, which then returns.
func (m *model) loseOne(t *testing.T, seed uint64) {
	t.Helper()
	lost := m.nodes["n0"]
	lost.lost = true
	m.change()
	m.settle()
	m.checkWanted(t, seed)
	lost.lost = false
	m.settle()
	m.checkWanted(t, seed)
}
