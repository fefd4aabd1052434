package cluster_test

import (
	"testing"
	"time"
)

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
	} {
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
		if t.Failed() {
			c.sweep()
		}
		c.mend()
		c.agreed()
	}
}
