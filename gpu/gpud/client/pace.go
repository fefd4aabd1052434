package client

import "time"

// pace is what part of its time a session had the card while it wanted it. While
// gpud is away nobody says whose turn it is: each session then takes the part
// that it had, so that together they go on as before.
type pace struct {
	used, waited time.Duration // of about the last paceWindow
	owes         time.Duration // of waiting, for what was used without gpud
}

const (
	paceWindow = 4 * time.Second
	// paceWait is the most of one wait that counts: a session whose memory was
	// out waits long, once.
	paceWait = 400 * time.Millisecond
	// paceStep: shorter waits are put together, as a sleep costs more than they
	// take.
	paceStep = 2 * time.Millisecond
)

// wait counts time in which the session wanted the card and did not have it.
func (p *pace) wait(d time.Duration) { p.waited += min(max(d, 0), paceWait); p.forget() }

// use counts time in which it had it.
func (p *pace) use(d time.Duration) { p.used += max(d, 0); p.forget() }

func (p *pace) forget() {
	for p.used+p.waited > paceWindow {
		p.used /= 2
		p.waited /= 2
	}
}

// useOffline counts time in which it had the card without gpud.
func (p *pace) useOffline(d time.Duration) {
	if p.used > 0 { // else it has no part to keep to
		p.owes += time.Duration(float64(max(d, 0)) * float64(p.waited) / float64(p.used))
	}
	p.owes = min(p.owes, paceWait)
}

// due returns how long to wait before the next lease without gpud, and takes it
// as done.
func (p *pace) due() (d time.Duration) {
	if p.owes < paceStep {
		return 0
	}
	d, p.owes = p.owes, 0
	return d
}
