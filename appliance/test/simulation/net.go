package simulation

import "time"

const paths = 2 // number of independent paths between two nodes

// network carries messages, which may be delayed or lost. A cut affects one path in one
// direction.
type network struct {
	w    *world
	cut  map[link]bool
	loss float64
	slow time.Duration // more delay for everything
}

type link struct{ from, to, path int }

// open reports whether a message can pass now.
func (n *network) open(from, to *machine, path int) bool {
	return from == to || from.power && to.power && !n.cut[link{from.n, to.n, path}]
}

// way returns a path that works in both directions, as a connection needs, or -1 if there is
// none.
func (n *network) way(a, b *machine) int {
	for p := range paths {
		if n.open(a, b, p) && n.open(b, a, p) {
			return p
		}
	}
	return -1
}

// reaches reports whether a message can go one way on some path.
func (n *network) reaches(a, b *machine) bool {
	for p := range paths {
		if n.open(a, b, p) {
			return true
		}
	}
	return false
}

func (n *network) delay() time.Duration {
	d := n.w.between(200*time.Microsecond, 5*time.Millisecond) + n.slow
	if n.w.chance(0.02) {
		d += n.w.between(0, 400*time.Millisecond) // a retransmission
	}
	return d
}

func (n *network) lost() bool { return n.loss > 0 && n.w.chance(n.loss) }

// heal removes all network faults.
func (n *network) heal() { n.cut, n.loss, n.slow = map[link]bool{}, 0, 0 }
