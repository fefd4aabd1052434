package client

import "time"

// pace measures the part of its time that a session held the card while it wanted
// it. Without gpud no one decides whose turn it is: each session then takes the
// part that it had, so that together they continue as before.
type pace struct {
	used, waited time.Duration // in about the last paceWindow
	owes         time.Duration // time to wait for what was used without gpud
}

const (
	paceWindow = 4 * time.Second
	// paceWait is the most that counts of a single wait: a session whose memory
	// was out waits long, once.
	paceWait = 400 * time.Millisecond
	// paceStep is the shortest wait: shorter ones are accumulated, because a
	// sleep costs more than they take.
	paceStep = 2 * time.Millisecond
)

// wait adds time in which the session wanted the card and did not have it.
func (p *pace) wait(d time.Duration) { p.waited += min(max(d, 0), paceWait); p.forget() }

// use adds time in which the session held the card.
func (p *pace) use(d time.Duration) { p.used += max(d, 0); p.forget() }

func (p *pace) forget() {
	for p.used+p.waited > paceWindow {
		p.used /= 2
		p.waited /= 2
	}
}

// useOffline adds time in which the session held the card without gpud.
func (p *pace) useOffline(d time.Duration) {
	if p.used > 0 { // otherwise there is no part to keep to
		p.owes += time.Duration(float64(max(d, 0)) * float64(p.waited) / float64(p.used))
	}
	p.owes = min(p.owes, paceWait)
}

// due returns how long to wait before the next lease without gpud, and counts it
// as waited.
func (p *pace) due() (d time.Duration) {
	if p.owes < paceStep {
		return 0
	}
	d, p.owes = p.owes, 0
	return d
}
