package hardware

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Offsets of this clock from the leader's that are reported.
const (
	offsetWarning = 2 * time.Second // the leader's time has a resolution of one second
	offsetFailed  = time.Minute
)

func clock(f Facts) api.HardwareCheck {
	const id, advice = api.HardwareClock, "See timedatectl and the servers in /etc/systemd/timesyncd.conf.d; on the other nodes too."
	c := f.Clock
	offset := c.Offset.Round(time.Second).Abs()
	off := fmt.Sprintf("%s %s the leader's", offset, map[bool]string{true: "behind", false: "ahead of"}[c.Offset < 0])
	switch {
	case c.OffsetKnown && offset >= offsetFailed:
		return failed(id, off, "Certificates, one-time codes and usage records are wrong, and the cluster may hold the node for silent.", advice)
	case c.OffsetKnown && offset >= offsetWarning:
		return warning(id, off, "Usage and events of this node have wrong times.", advice)
	case !c.Known:
		return unknown(id, "the kernel does not say whether the clock is synchronized", advice)
	case !c.Synchronized:
		return warning(id, "not synchronized with a time server", "The clock drifts: some seconds a day, until certificates and records are wrong.", advice)
	}
	return ok(id, "synchronized")
}
