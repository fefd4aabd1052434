package exec

import "testing"

// TestRests checks after how many iterations a group rests, given what it does in each
// iteration of a loop.
func TestRests(t *testing.T) {
	all := []uint32{^uint32(0)}
	at := func(f func(lane uint64) uint64) (addrs []uint64) {
		for lane := range uint64(32) {
			addrs = append(addrs, f(lane))
		}
		return addrs
	}
	word := at(func(uint64) uint64 { return 0x1000 })
	for _, c := range []struct {
		name      string
		iteration func(m *machine, i uint64)
		after     int
	}{
		{"reads one word", func(m *machine, _ uint64) { m.read(word, all) }, idleTurns},
		{"reads two words", func(m *machine, _ uint64) { m.read(word, all); m.read(at(func(uint64) uint64 { return 8 }), all) }, idleTurns},
		{"reads a word of each lane", func(m *machine, _ uint64) { m.read(at(func(l uint64) uint64 { return 4 * l }), all) }, idleTurns},
		{"walks", func(m *machine, i uint64) { m.read(at(func(l uint64) uint64 { return 4*l + 128*i }), all) }, 0},
		{"walks in strides of the lane", func(m *machine, i uint64) { m.read(at(func(l uint64) uint64 { return 4 * l * i }), all) }, 0},
		{"changes memory", func(m *machine, _ uint64) { m.read(word, all); m.did |= didChange }, 0},
		{"computes", func(*machine, uint64) {}, 0},
		{"sleeps", func(m *machine, _ uint64) { m.did |= didSleep }, 1},
	} {
		g := &group{}
		m := &machine{groups: []*group{g}}
		rested := 0
		for i := range 100 {
			c.iteration(m, uint64(i))
			if m.rests(g, true) {
				rested = i + 1
				break
			}
		}
		// The first iteration cannot be compared with an earlier one.
		if c.after > 1 {
			c.after++
		}
		if rested != c.after {
			t.Errorf("a loop that %s rests after %d iterations, want %d (0: never)", c.name, rested, c.after)
		}
	}
}

// TestRestsDouble checks that rests double up to a limit while a group has no effect,
// and start again at the first length after it has.
func TestRestsDouble(t *testing.T) {
	g := &group{}
	m := &machine{groups: []*group{g, {}}}
	var last uint64
	for i := range 20 {
		m.did |= didSleep
		m.rests(g, false)
		if want := uint64(firstRest) << min(i, maxRests); g.until-m.clock != want {
			t.Fatalf("length of rest %d = %d basic blocks, want %d", i, g.until-m.clock, want)
		}
		last = g.until
	}
	if _, awake := m.pick(); !awake { // the other group
		t.Error("pick returned no awake group while one of two rests, want the other one")
	}
	m.clock = last
	m.did |= didChange | didSleep
	m.rests(g, false)
	if g.until-m.clock != firstRest {
		t.Errorf("length of the rest after a change = %d basic blocks, want %d", g.until-m.clock, firstRest)
	}
}
