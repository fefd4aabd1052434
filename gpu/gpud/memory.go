package gpud

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// read stores what a card's sensors report, and which vGPUs had work in the second that
// they cover: work that was reported, or a lease, since a long kernel is reported when it
// ends.
func (c *core) read(id sched.GPUID, s sensors, at sched.Time) {
	card := c.cards[id]
	card.sensors, card.worked = s, nil
	holder, _ := card.leases.Holder()
	for _, v := range c.vgpus {
		holds := slices.ContainsFunc(v.running(), func(s *session) bool { return s.key() == holder })
		if v.on() == id && (holds || v.gauge.percent(at, v.usage.Work.GPUNanos) > 0) {
			card.worked = append(card.worked, v.id)
		}
	}
}

// memoryOf returns a vGPU's part of the utilization of a card's memory. It is known if no
// other vGPU had work at that time, or if this one had none: a division among several would
// be a guess, and would tell one tenant what another does. c may be nil.
func (c *card) memoryOf(id sched.VGPUID) (percent uint32, known bool) {
	switch {
	case c == nil || c.sensors.memory == nil:
		return 0, false
	case !slices.Contains(c.worked, id):
		return 0, true
	case len(c.worked) > 1:
		return 0, false
	}
	return min(100, *c.sensors.memory), true
}
