package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

const (
	basaltd = "appliance/cmd/basaltd"
	// quietFor is the longest time without an accepted write: an election, or several when the
	// leader is killed, on a machine that does other work too.
	quietFor = 15 * time.Second
)

// load writes continuously through all nodes, and records the acknowledged writes.
type load struct {
	stop func()

	mu    sync.Mutex // guards what is below
	acked []string
	worst time.Duration // longest time between two acknowledged writes, as measured by package patience
	wall  time.Duration // the same on the wall clock
}

func newLoad(t *testing.T, all []*kept, key string) *load {
	t.Helper()
	var apis []*client.API
	for _, k := range all {
		apis = append(apis, k.api(t, key))
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		last, at := patience.Start(), time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("w%d", i)
			if !tryWrite(ctx, apis[i%len(apis)], name) {
				continue // the next write uses another node
			}
			l.mu.Lock()
			l.acked, l.worst = append(l.acked, name), max(l.worst, last.Given())
			l.wall = max(l.wall, time.Since(at))
			l.mu.Unlock()
			last, at = patience.Start(), time.Now()
			sleep(ctx, 20*time.Millisecond)
		}
	}()
	l.stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(l.stop)
	return l
}

// tryWrite writes a flavor and reports whether the write was acknowledged.
func tryWrite(ctx context.Context, a *client.API, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := client.Of[api.Flavor](a).Create(ctx, api.Flavor{Meta: api.Meta{Name: name}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 30}})
	if err != nil {
		sleep(ctx, 20*time.Millisecond)
	}
	return err == nil
}

// check checks that every node has all acknowledged writes, and that the pauses between them
// were short.
func (l *load) check(t *testing.T, all []*kept, key string) {
	t.Helper()
	l.stop()
	t.Logf("%d writes were acknowledged; the longest time without one: %s (%s on the wall clock)", len(l.acked), l.worst.Round(time.Millisecond), l.wall.Round(time.Millisecond))
	if l.worst > quietFor {
		t.Errorf("longest time without an acknowledged write = %s, want at most %s", l.worst, quietFor)
	}
	if len(l.acked) == 0 {
		t.Fatal("no write was acknowledged")
	}
	for _, k := range all {
		has := map[string]bool{}
		for o, err := range client.Of[api.Flavor](k.api(t, key)).All(t.Context(), client.Query{}) {
			if err != nil {
				t.Fatalf("list flavors on %s: %v", k.name, err)
			}
			has[o.Meta.Name] = true
		}
		for _, name := range l.acked {
			if !has[name] {
				t.Fatalf("node %s does not have flavor %s, which was acknowledged", k.name, name)
			}
		}
	}
}

// asMember waits until the node reports itself as a member with the version.
func asMember(t *testing.T, k *kept, version string) {
	t.Helper()
	until(t, k.name+" is a member with version "+version, func() bool {
		s, err := k.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum && s.Version == version
	})
}

func leaderOf(t *testing.T, all []*kept) *kept {
	t.Helper()
	var leader string
	until(t, "there is a leader", func() bool {
		for _, k := range all {
			if s, err := k.api(t, "").Setup(t.Context()); err == nil && s.Quorum && s.Leader != "" {
				leader = s.Leader
			}
		}
		return leader != ""
	})
	return all[slices.IndexFunc(all, func(k *kept) bool { return k.name == leader })]
}

var wholeCompare = regexp.MustCompile(`a part of the nodes' tables was compared" entry=\d+ nodes=3 different=(\d) all=true`)

// sameTables waits until all tables of all three nodes have been compared from now on, and
// checks that none ever differed.
func sameTables(t *testing.T, all []*kept) {
	t.Helper()
	read := func() (logs []byte) {
		for _, k := range all {
			raw, err := os.ReadFile(filepath.Join(k.dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, raw...)
		}
		return logs
	}
	before := len(wholeCompare.FindAll(read(), -1))
	until(t, "all tables are compared", func() bool { return len(wholeCompare.FindAll(read(), -1)) > before })
	for _, m := range wholeCompare.FindAllSubmatch(read(), -1) {
		if string(m[1]) != "0" {
			t.Errorf("log of a comparison = %q, want different=0", m[0])
		}
	}
	if bytes.Contains(read(), []byte("tables are not what most nodes have")) {
		t.Error("log reports tables that differ from most nodes, want none")
	}
}

// haveLevel waits until the tables of all nodes have the level.
func haveLevel(t *testing.T, all []*kept, want uint64) {
	t.Helper()
	level := func(k *kept) (n uint64) {
		copied := filepath.Join(t.TempDir(), "tables.db") // a copy, because the file is open
		if err := replace(k.data("store/tables.db"), copied); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(copied, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return 0 // inconsistent, because it was copied during a write
		}
		defer db.Close()
		_ = db.View(func(tx *bbolt.Tx) error {
			if raw := tx.Bucket([]byte("meta")).Get([]byte("level")); len(raw) == 8 {
				n = binary.BigEndian.Uint64(raw)
			}
			return nil
		})
		return n
	}
	for _, k := range all {
		until(t, fmt.Sprintf("%s has level %d", k.name, want), func() bool { return level(k) == want })
	}
}

// TestUpgradeFromPreviousRelease: three nodes of the previous release are upgraded to this
// tree's, one after the other, under load, and the leader is killed in between. The cluster
// upgrades itself if that release supports it; otherwise the nodes are upgraded by hand.
func TestUpgradeFromPreviousRelease(t *testing.T) {
	raw, err := os.ReadFile("testdata/previous-release")
	if err != nil {
		t.Fatal(err)
	}
	before := built.Previous(t, strings.TrimSpace(string(raw)), "1.0", basaltd, "basalt_fake")
	after := built.Release(t, "2.0", basaltd, "basalt_fake")
	qemuPretended(t)
	help, err := exec.Command(before, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%s --help: %v\n%s", before, err, help)
	}
	able := bytes.Contains(help, []byte("--upgrade-program"))
	var all []*kept
	_, key := processesOf(t, func(p *process) {
		var flags []string
		if able {
			flags = []string{"--upgrade-program", programOf(t, p.dir)}
		}
		all = append(all, keep(t, p, before, flags...))
	})
	l := newLoad(t, all, key)
	if able {
		upgradeTo(t, all, key, "2.0", after)
	} else {
		byHand(t, all, after)
	}
	for _, k := range all {
		asMember(t, k, "2.0")
	}
	l.check(t, all, key)
	sameTables(t, all)
	haveLevel(t, all, state.Level)
}

// qemuPretended puts a QEMU first in PATH which reports at once that guests run. Releases up to
// that of 2026-11-24 probe it even with a fake hypervisor, and for three nodes the real one
// takes 17 s of a processor.
func qemuPretended(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	const booted = "#!/bin/sh\nexit 85\n" // the exit status with which hypervisor/capability's guest ends QEMU
	if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte(booted), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// byHand replaces the program as an operator does, on one node after the other.
func byHand(t *testing.T, all []*kept, program string) {
	t.Helper()
	for i, k := range all {
		k.install(t, program)
		k.signal(syscall.SIGTERM)
		asMember(t, k, "2.0")
		if i == 1 {
			leader := leaderOf(t, all)
			t.Logf("leader %s is killed", leader.name)
			leader.signal(syscall.SIGKILL)
			until(t, "the killed node is a member again", func() bool {
				s, err := leader.api(t, "").Setup(t.Context())
				return err == nil && s.State == api.SetupMember && s.Quorum
			})
		}
	}
}

// begin creates an upgrade whose package is a program.
func begin(t *testing.T, k *kept, key, version, program string) api.Upgrade {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	p := api.UpgradePackage{Name: "basalt", SizeBytes: int64(len(content)), Sha256: hex.EncodeToString(sum[:])}
	if err := k.api(t, key).PutUpgradePackage(t.Context(), p.Sha256, bytes.NewReader(content), p.SizeBytes); err != nil {
		t.Fatal(err)
	}
	var u api.Upgrade
	until(t, "the upgrade is created", func() bool {
		u, err = client.Of[api.Upgrade](k.api(t, key)).Create(t.Context(), api.Upgrade{Meta: api.Meta{Name: api.UpgradeName},
			Spec: api.UpgradeSpec{Version: version, Packages: []api.UpgradePackage{p}}})
		return err == nil
	})
	return u
}

// upgradeOf returns the upgrade according to any node.
func upgradeOf(t *testing.T, all []*kept, key string) (u api.Upgrade, ok bool) {
	t.Helper()
	for _, k := range all {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		u, err := client.Of[api.Upgrade](k.api(t, key)).Get(ctx, api.UpgradeName, client.Query{})
		cancel()
		if err == nil {
			return u, true
		}
	}
	return u, false
}

// upgradeTo upgrades the cluster and waits until it is done. The leader is killed when the
// first node has the new release; in the long layer after every change, several times.
func upgradeTo(t *testing.T, all []*kept, key, version, program string) {
	t.Helper()
	begin(t, all[0], key, version, program)
	kills, logged := 1, ""
	if layer.Long() {
		kills = 6
	}
	until(t, "the upgrade to "+version+" is done", func() bool {
		u, ok := upgradeOf(t, all, key)
		if !ok {
			return false
		}
		now, half, done := phasesOf(u)
		if now != logged {
			logged = now
			t.Log(now)
			if kills > 0 && (done > 0 || layer.Long() && u.Status.Phase == api.UpgradeRunning) {
				kills--
				leader := leaderOf(t, all)
				t.Logf("leader %s is killed", leader.name)
				leader.signal(syscall.SIGKILL)
			}
		}
		if half > 1 {
			t.Errorf("%d nodes are being upgraded at a time, want at most 1: %s", half, now)
		}
		if u.Status.Phase == api.UpgradePaused {
			t.Fatalf("upgrade to %s is paused, want it done: %s", version, u.Status.Reason)
		}
		return u.Status.Phase == api.UpgradeDone
	})
	if kills > 0 {
		t.Errorf("%d of the kills were not done before the upgrade ended, want 0", kills)
	}
}

// phasesOf returns the phases of an upgrade and its nodes as text, and how many nodes are being
// upgraded and how many are done.
func phasesOf(u api.Upgrade) (text string, half, done int) {
	text = fmt.Sprintf("%s (%s):", u.Status.Phase, u.Status.Reason)
	for _, n := range u.Status.Nodes {
		text += " " + string(n.Phase)
		if n.Phase.InProgress() {
			half++
		}
		if n.Phase == api.UpgradeNodeDone {
			done++
		}
	}
	return text, half, done
}

// TestClusterUpgrade: a release that does not start is rolled back, and the cluster continues.
// The next release is installed on every node, under load, and the leader is killed in between.
func TestClusterUpgrade(t *testing.T) {
	before := built.Program(t, basaltd, "basalt_fake")
	after := built.Release(t, "2.0", basaltd, "basalt_fake")
	var all []*kept
	_, key := processesOf(t, func(p *process) { all = append(all, keep(t, p, before, "--upgrade-program", programOf(t, p.dir))) })
	l := newLoad(t, all, key)

	broken := filepath.Join(t.TempDir(), "basaltd")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho this release does not start\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	begin(t, all[1], key, "1.1", broken)
	var u api.Upgrade
	until(t, "the upgrade pauses", func() bool {
		var ok bool
		u, ok = upgradeOf(t, all, key)
		return ok && u.Status.Phase == api.UpgradePaused
	})
	back := 0
	for _, n := range u.Status.Nodes {
		switch n.Phase {
		case api.UpgradeNodeRolledBack:
			back++
		case api.UpgradeNodeWaiting:
		default:
			t.Errorf("node is %s, want RolledBack or Waiting: %s", n.Phase, n.Message)
		}
	}
	if back != 1 {
		t.Errorf("%d nodes are rolled back, want 1: %+v", back, u.Status)
	}
	until(t, "an alert reports it", func() bool {
		for a, err := range all[0].api(t, key).Alerts(t.Context()) {
			if err == nil && a.Code == api.AlertUpgradePaused && strings.Contains(a.Message, "was rolled back to dev") {
				return true
			}
		}
		return false
	})
	for _, k := range all {
		asMember(t, k, "dev")
	}
	until(t, "no node is in maintenance", func() bool {
		page, err := client.Of[api.Node](all[0].api(t, key)).Page(t.Context(), client.Query{})
		return err == nil && !slices.ContainsFunc(page.Items, func(n api.Node) bool { return n.Spec.Drain })
	})
	until(t, "the upgrade is deleted", func() bool {
		_, err := client.Of[api.Upgrade](all[0].api(t, key)).Delete(t.Context(), u.Meta.ID)
		return err == nil
	})

	upgradeTo(t, all, key, "2.0", after)
	for _, k := range all {
		asMember(t, k, "2.0")
	}
	l.check(t, all, key)
	sameTables(t, all)
	haveLevel(t, all, state.Level)
}
