package cluster_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// story is a test of the cluster.
type story struct {
	name string
	run  func(*cluster)
	// relative is the test of "make test" that finds the common mistakes if only "make
	// test-long" runs the story; empty: "make test" runs it too.
	relative string
}

// stories lists the stories in order. docs/robustness.md describes the purpose of each.
var stories = []story{
	{"LeaderKilledAgainAndAgain", leaderKilled, ""},
	{"PowerLost", powerLost, ""},
	{"Moves", moves, ""},
	{"NodeFrozen", nodeFrozen, "appliance/test/simulation TestStories/NodeFrozen"},
	{"DaemonFrozen", daemonFrozen, "appliance/test/simulation TestStories/DaemonFrozen"},
	{"Partition", partition, "appliance/test/simulation TestStories/Partition, appliance/controlplane/store TestMinority"},
	{"OneOfTwoPaths", oneOfTwoPaths, "appliance/test/simulation TestStories/OneOfTwoPaths"},
	{"OneWay", oneWay, "appliance/test/simulation TestStories/OneWay"},
	{"PacketLoss", packetLoss, "appliance/test/simulation TestStories/PacketLoss"},
	{"DiskFull", diskFull, "appliance/controlplane/store TestDiskFull"},
	{"StoreLost", storeLost, "appliance/cmd/basaltd TestRebuild"},
	{"ClockOff", clockOff, "appliance/test/simulation TestStories/ClockOff"},
	{"Drain", drain, "appliance/test/simulation TestStories/Drain"},
	{"RandomFaults", randomFaults, "appliance/test/simulation TestSeeds"},
	{"Joining", joining, "appliance/cluster/membership TestAdmit, appliance/cluster/transport TestRemovedNodeIsCutOff"},
	{"BackedUp", backedUp, "appliance/controlplane/store TestRestoreInto"},
	{last, quorumLost, "appliance/controlplane/store TestRecover"},
}

// last is the name of the last story.
const last = "QuorumLost"

// TestCluster runs the stories on one cluster of three nodes. Each story leaves it healthy:
// faults are ended before the next story begins. BASALT_STORY, a regular expression, selects
// stories by name, whichever layer they belong to.
func TestCluster(t *testing.T) {
	only, err := regexp.Compile(os.Getenv("BASALT_STORY"))
	if err != nil {
		t.Fatalf("BASALT_STORY: %v", err)
	}
	named := only.String() != ""
	c := up(t)
	c.furnish()
	for _, s := range stories {
		if named && !only.MatchString(s.name) {
			continue
		}
		began := time.Now()
		ok := t.Run(s.name, func(t *testing.T) {
			if s.relative != "" && !named {
				layer.NeedLong(t, s.relative)
			}
			c.runStory(t, s)
		})
		if s.name == last {
			return // it leaves a broken cluster
		}
		if s.relative != "" && !named && !layer.Long() {
			continue
		}
		t.Logf("%s: %v", s.name, time.Since(began).Round(100*time.Millisecond))
		if !ok {
			c.sweep()
		}
		c.mend()
		c.agreed()
	}
}

// runStory runs a story as a test of its own.
func (c *cluster) runStory(t *testing.T, s story) {
	was := c.t
	c.t = t
	failed.Keep(t, c.keep)
	defer func() { c.t = was }()
	defer func() {
		c.watch.check(t)
		c.ledger.check(t)
	}()
	s.run(c)
}
