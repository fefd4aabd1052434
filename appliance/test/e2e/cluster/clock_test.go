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

// skewed builds the daemons with a standard library whose time.Now is off by
// BASALT_E2E_SKEW seconds. No namespace has a wall clock of its own, and
// nothing preloaded reaches a Go program's; the product's code stays as it is.
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
		c.t.Fatalf("%s is not as this test knows it: where does time.Now read the clock?", file)
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
	c.t.Logf("built with another time.Now in %v", time.Since(began).Round(time.Second))
	return bin
}

// clockOff: a node's wall clock is an hour off, either way, also while it leads
// and has to judge whether another is dead.
func clockOff(c *cluster) {
	const victim = 2
	bin := skewed(c)
	defer func() {
		if c.t.Failed() {
			c.kill(victim) // mend starts it as it was
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
		c.until(time.Minute, "its clock is seen to be off", func() bool {
			n, err := client.Of[api.Node](c.op()).Get(c.ctx, string(c.ids[victim]), client.Query{})
			return err == nil && (time.Since(n.Status.SeenAt)+off).Abs() < 10*time.Minute
		})
		c.lead(victim)
		for _, id := range ids {
			c.runs(id, failoverLimit) // the victim may have been given one of them
		}
		before, epochs := c.qemus(ids), c.epochs()
		h := c.record("clock" + strconv.Itoa(int(off.Hours())+1))
		on := c.create(want{name: "skewed", on: victim, pool: "shared", vram: gib})
		c.watchFor(15*time.Second, func() { c.undisturbed(h, ids, before, epochs) }) // longer than a lease
		if off > 0 {
			began := time.Now()
			c.kill(1)
			c.until(failoverLimit, "elsewhere", func() bool { at := c.place(ids["clock1"]); return at != 1 && at != 0 })
			c.runs(ids["clock1"], failoverLimit)
			c.t.Logf("with a leader an hour ahead: elsewhere after %v", time.Since(began).Round(10*time.Millisecond))
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
