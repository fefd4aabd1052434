package cluster_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// last of the stories.
const last = "QuorumLost"

// TestCluster is one cluster's life. Its stories share the three nodes, and
// each leaves them well: what it broke is mended before the next begins.
func TestCluster(t *testing.T) {
	c := up(t)
	c.furnish()
	for _, s := range []struct {
		name string
		run  func(*cluster)
	}{
		{"LeaderKilledAgainAndAgain", leaderKilled},
		{"PowerLost", powerLost},
		{"NodeFrozen", nodeFrozen},
		{"DaemonFrozen", daemonFrozen},
		{"Partition", partition},
		{"OneOfTwoPaths", oneOfTwoPaths},
		{"OneWay", oneWay},
		{"PacketLoss", packetLoss},
		{"DiskFull", diskFull},
		{"ClockOff", clockOff},
		{"Moves", moves},
		{"RandomFaults", randomFaults},
		{"Joining", joining},
		{"BackedUp", backedUp},
		{last, quorumLost},
	} {
		if only := os.Getenv("BASALT_E2E_STORY"); only != "" && !strings.Contains(only, s.name) {
			continue // one story, while it is being written
		}
		began := time.Now()
		t.Run(s.name, func(t *testing.T) {
			was := c.t
			c.t = t
			defer func() { c.t = was }()
			defer func() {
				c.watch.check(t)
				c.ledger.check(t)
			}()
			s.run(c)
		})
		t.Logf("%s: %v", s.name, time.Since(began).Round(100*time.Millisecond))
		if s.name == last {
			return // nothing mends what it broke
		}
		if t.Failed() {
			c.sweep()
		}
		c.mend()
		c.agreed()
	}
}
