package cluster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// skewed builds the daemons with a standard library whose time.Now is off by BASALT_E2E_SKEW
// seconds. Namespaces do not have a wall clock of their own, and preloaded libraries do not
// affect Go programs. The product's code is unchanged.
func skewed(c *cluster) string {
	c.t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(c, err)
	file := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	raw, err := os.ReadFile(file)
	must(c, err)
	const at = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	text := string(raw)
	if strings.Count(text, at) != 1 || strings.Count(text, "\nimport (\n") != 1 {
		c.t.Fatalf("%s does not have the expected source of time.Now: adapt this test to where it reads the clock", file)
	}
	text = strings.Replace(text, at, at+"\tsec += skew\n", 1)
	text = strings.Replace(text, "\nimport (\n", "\nimport (\n\t\"syscall\"\n", 1)
	text += `
var skew = readSkew()

func readSkew() (sec int64) {
	s, _ := syscall.Getenv("BASALT_E2E_SKEW")
	sign := int64(1)
	for i := 0; i < len(s); i++ {
		if s[i] == '-' {
			sign = -1
		} else {
			sec = 10*sec + int64(s[i]-'0')
		}
	}
	return sign * sec
}
`
	dir := c.t.TempDir()
	patched, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	must(c, os.WriteFile(patched, []byte(text), 0o600))
	rules, err := json.Marshal(map[string]any{"Replace": map[string]string{file: patched}})
	must(c, err)
	must(c, os.WriteFile(overlay, rules, 0o600))
	began := time.Now()
	bin := built.Overlaid(c.t, overlay, daemons...)
	c.t.Logf("built with a modified time.Now in %v", time.Since(began).Round(time.Second))
	return bin
}

// clockOff: the wall clock of a node is wrong by an hour in either direction, also while it is
// the leader and has to judge whether another node is dead.
func clockOff(c *cluster) {
	const victim = 2
	bin := skewed(c)
	defer func() {
		if c.t.Failed() {
			c.kill(victim) // mend starts it without the modification
		}
	}()
	ids := c.create(want{name: "clock1", on: 1, pool: "shared"}, want{name: "clock3", on: 3, pool: "shared"})
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		c.kill(victim)
		c.extra = []string{"BASALT_BIN=" + bin, "BASALT_E2E_SKEW=" + strconv.Itoa(int(off.Seconds()))}
		c.start(victim)
		c.extra = nil
		c.ask(1, 2, 3)
		c.settled()
		c.until(time.Minute, "the node's status shows the clock's offset", func() bool {
			n, err := client.Of[api.Node](c.op()).Get(c.ctx, string(c.ids[victim]), client.Query{})
			return err == nil && (time.Since(n.Status.SeenAt)+off).Abs() < 10*time.Minute
		})
		c.lead(victim)
		for _, id := range ids {
			c.runs(id, failoverLimit) // one of them may be on the victim
		}
		before, epochs := c.qemus(ids), c.epochs()
		h := c.record("clock" + strconv.Itoa(int(off.Hours())+1))
		on := c.create(want{name: "skewed", on: victim, pool: "shared", vram: gib})
		c.watchFor(15*time.Second, func() { c.undisturbed(h, ids, before, epochs) }) // longer than a lease
		if off > 0 {
			began := time.Now()
			c.kill(1)
			c.until(failoverLimit, "clock1 is placed on another node", func() bool { at := c.place(ids["clock1"]); return at != 1 && at != 0 })
			c.runs(ids["clock1"], failoverLimit)
			c.t.Logf("with a leader an hour ahead: placed on another node after %v", time.Since(began).Round(10*time.Millisecond))
			c.start(1)
			c.ask(1, 2, 3)
			c.settled()
		}
		h.check(c.t)
		c.agreed()
		c.remove(on)
	}
	c.kill(victim)
	c.start(victim)
	c.ask(1, 2, 3)
	c.settled()
	c.remove(ids)
}
