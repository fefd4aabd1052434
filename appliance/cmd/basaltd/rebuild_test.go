package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// process is a basaltd of a cluster of several, with a fake hypervisor.
type process struct {
	name, dir string
	command   []string
	cmd       *exec.Cmd
	done      chan struct{}
}

func (p *process) data(name string) string { return filepath.Join(p.dir, "data", name) }

// api returns a client of the node's own socket.
func (p *process) api(t *testing.T, key string) *client.API {
	t.Helper()
	a, err := client.New(client.Options{Server: "unix:" + filepath.Join(p.dir, "run/api.sock"), Token: key, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (p *process) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd, p.done = exec.Command(p.command[0], p.command[1:]...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(p.cmd, p.done)
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.done
		p.cmd = nil
	}
}

// processes creates a cluster of three voters and returns its operator's key.
func processes(t *testing.T) (all []*process, key string) {
	t.Helper()
	bin := built.Program(t, "appliance/cmd/basaltd", "basalt_fake")
	return processesOf(t, runs(t, bin))
}

// runs returns a function that starts the program with the arguments of a process.
func runs(t *testing.T, bin string) func(*process) {
	return func(p *process) {
		p.command = append([]string{bin}, p.command...)
		p.start(t)
		t.Cleanup(p.kill)
	}
}

// alertOf waits for an alert whose message contains all of the words.
func alertOf(t *testing.T, p *process, key string, code api.AlertCode, words ...string) {
	t.Helper()
	seen := ""
	defer func() {
		if t.Failed() {
			t.Log("last message of the alert: ", seen)
		}
	}()
	until(t, fmt.Sprintf("alert %s contains %q", code, words), func() bool {
		for a, err := range p.api(t, key).Alerts(t.Context()) {
			if err == nil && a.Code == code {
				seen = a.Message
				return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(a.Message, w) })
			}
		}
		return false
	})
}

// status returns the output of "basalt cluster status" on the node.
func status(t *testing.T, p *process) string {
	t.Helper()
	cmd := exec.Command(built.Program(t, "appliance/cmd/basalt"), "--server", "unix:"+filepath.Join(p.dir, "run/api.sock"), "cluster", "status")
	cmd.Env = []string{"HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("basalt cluster status: %v", err)
	}
	return string(out)
}

// processesOf creates a cluster of three nodes, which start starts.
func processesOf(t *testing.T, start func(*process)) (all []*process, key string) {
	t.Helper()
	return several(t, 3, start)
}

// several creates a cluster of some nodes, of which an odd number are voters.
func several(t *testing.T, nodes int, start func(*process)) (all []*process, key string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the setup calls need root")
	}
	for i := range nodes {
		dir, err := os.MkdirTemp("/tmp", "basaltd") // the length of socket paths is limited
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		p := &process{name: fmt.Sprint("n", i+1), dir: dir, command: []string{"--data", filepath.Join(dir, "data"), "--run", filepath.Join(dir, "run"),
			"--node-name", fmt.Sprint("n", i+1), "--listen", port.Address(t), "--peer-listen", port.Address(t), "--libvirt", "fake:", "--fence", "none", "--compare-every", "1s", "--log-level", "debug"}}
		failed.Keep(t, func(f failed.Folder) { f.Files(filepath.Join(dir, "log")) })
		start(p)
		all = append(all, p)
	}
	until(t, "n1 creates a cluster", func() bool { _, err := all[0].api(t, "").SetupInit(t.Context(), "test"); return err == nil })
	until(t, "it has an operator", func() bool {
		raw, err := os.ReadFile(all[0].data("operator.key"))
		key = strings.TrimSpace(string(raw))
		return err == nil
	})
	for _, p := range all[1:] {
		until(t, p.name+" joins", func() bool {
			at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
			token, err := client.Of[api.JoinToken](all[0].api(t, key)).Create(t.Context(), api.JoinToken{Spec: api.JoinTokenSpec{ExpiresAt: &at}})
			if err != nil {
				return false
			}
			_, err = p.api(t, "").SetupJoin(t.Context(), token.Token)
			return err == nil
		})
	}
	vote(t, all, key)
	for _, p := range all {
		has(t, p, key, "small")
	}
	return all, key
}

// has waits until the node returns a flavor.
func has(t *testing.T, p *process, key, flavor string) {
	t.Helper()
	until(t, p.name+" has "+flavor, func() bool {
		_, err := client.Of[api.Flavor](p.api(t, key)).Get(t.Context(), flavor, client.Query{})
		return err == nil
	})
}

// vote waits until every node reports all of them as voters, so that any one may fail.
func vote(t *testing.T, all []*process, key string) {
	t.Helper()
	for _, p := range all {
		until(t, p.name+" knows that all vote", func() bool {
			c, err := p.api(t, key).Cluster(t.Context())
			return err == nil && c.Voters == int64((len(all)-1)|1)
		})
	}
}

// TestRebuild: a voter whose store is missing does not vote. It reports that and keeps its
// lease, and one command rebuilds its store from the others'.
func TestRebuild(t *testing.T) {
	all, key := processes(t)
	p := all[1]
	write := func(on *process, name string) {
		t.Helper()
		until(t, "writes "+name, func() bool {
			_, err := client.Of[api.Flavor](on.api(t, key)).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: name}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 30}})
			return err == nil || api.CodeOf(err) == api.CodeExists
		})
	}
	write(all[0], "before")
	p.kill()
	if err := os.Rename(p.data("store"), p.data("store.gone")); err != nil {
		t.Fatal(err)
	}
	write(all[0], "meanwhile")
	p.start(t)
	var s api.Setup
	until(t, "it reports the damage", func() bool {
		var err error
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil
	})
	if s.State != api.SetupDamaged || !strings.Contains(s.Message, "log.db: it is missing, but this node has written to it") {
		t.Errorf("setup of a node without its store = %s: %s, want %s with the missing file", s.State, s.Message, api.SetupDamaged)
	}
	if want := "run on this node: basalt node rebuild"; !strings.Contains(s.Message, want) || !strings.Contains(status(t, p), want) {
		t.Errorf("message of a node without its store = %q, want it and the status to contain %q:\n%s", s.Message, want, status(t, p))
	}
	if raw, err := os.ReadFile(filepath.Join(p.dir, "log")); err != nil || !strings.Contains(string(raw), "run on this node: basalt node rebuild") {
		t.Errorf("log of a node without its store does not contain the command to rebuild it (error %v)", err)
	}
	if _, err := os.Stat(p.data("store/log.db")); err == nil {
		t.Error("node without its store has created a new log.db, want none")
	}
	if _, err := p.api(t, "").SetupLeave(t.Context()); api.CodeOf(err) != api.CodeState {
		t.Errorf("leave of a node without its store: error %v, want State", err)
	}
	until(t, "all three nodes are alive", func() bool { c, err := all[0].api(t, key).Cluster(t.Context()); return err == nil && c.Alive == 3 })
	alerted := func() (message string) {
		for a, err := range all[0].api(t, key).Alerts(t.Context()) {
			if err == nil && a.Code == api.AlertNodeStore {
				message = a.Message
			}
		}
		return message
	}
	alertOf(t, all[0], key, api.AlertNodeStore, "node n2 has no copy of the cluster's state", "log.db: it is missing", "run on this node: basalt node rebuild")
	if _, err := p.api(t, "").SetupRebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	until(t, "the alert ends", func() bool { return alerted() == "" })
	// Its vote counts: without another node it is half of the majority.
	vote(t, all, key)
	all[2].kill()
	write(p, "after")
	for _, name := range []string{"before", "meanwhile", "after"} {
		has(t, p, key, name)
	}
}

// TestFounderWithoutStore: the founder of a cluster never creates it a second time.
func TestFounderWithoutStore(t *testing.T) {
	all, key := processes(t)
	p := all[0]
	p.kill()
	if err := os.RemoveAll(p.data("store")); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	until(t, "it reports the damage", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupDamaged
	})
	raw, err := os.ReadFile(p.data("operator.key"))
	if err != nil || strings.TrimSpace(string(raw)) != key {
		t.Errorf("operator's key = %q (error %v), want it unchanged", raw, err)
	}
	p.kill() // while it is damaged
	p.start(t)
	until(t, "the rebuild is ordered", func() bool { _, err := p.api(t, "").SetupRebuild(t.Context()); return err == nil })
	p.kill()
	p.start(t)
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")
}

// change inserts a digit before a flavor's vCPUs in the tables of a stopped node, as a bad disk
// may.
func change(t *testing.T, p *process, digit string) {
	t.Helper()
	db, err := bbolt.Open(p.data("store/tables.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("objects"))
		c := b.Cursor()
		k, v := c.Seek([]byte("Flavor"))
		changed := bytes.Replace(v, []byte(`"vcpus":`), []byte(`"vcpus":`+digit), 1)
		if bytes.Equal(v, changed) {
			return fmt.Errorf("object %s = %s, want a flavor with vcpus", k, v)
		}
		return b.Put(bytes.Clone(k), changed)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNoTwoNodesAgree: if each of three nodes has a different copy, there is no majority. An
// alert names the nodes. It ends when two have the same copy again, because then the third is
// found to differ.
func TestNoTwoNodesAgree(t *testing.T) {
	all, key := processes(t)
	for i, p := range all[1:] {
		p.kill()
		change(t, p, fmt.Sprint(i+1))
	}
	for _, p := range all[1:] {
		p.start(t)
	}
	alertOf(t, all[0], key, api.AlertAgreement, "no majority has the same copy: n1 differs from n2 differs from n3", "at entry")
	for _, p := range all {
		if s, err := p.api(t, "").Setup(t.Context()); err != nil || s.State != api.SetupMember {
			t.Errorf("setup of %s = %s (error %v), want %s", p.name, s.State, err, api.SetupMember)
		}
	}
	// The operator decides: one copy is rebuilt from another.
	until(t, "the rebuild of n2 is ordered", func() bool { _, err := all[1].api(t, "").SetupRebuild(t.Context()); return err == nil })
	until(t, "one of three is found to differ", func() bool {
		damaged := 0
		for _, p := range all {
			if s, err := p.api(t, "").Setup(t.Context()); err == nil && s.State == api.SetupDamaged {
				damaged++
			}
		}
		return damaged == 1
	})
	until(t, "the alert ends", func() bool {
		for _, p := range all {
			n, over := 0, true
			for a, err := range p.api(t, key).Alerts(t.Context()) {
				n, over = n+1, over && err == nil && a.Code != api.AlertAgreement
			}
			if n > 0 && over {
				return true
			}
		}
		return false
	})
}

// TestRebuildWithoutMajority: without a majority of voters the store cannot be rebuilt. The
// node reports that and names the command to recover.
func TestRebuildWithoutMajority(t *testing.T) {
	all, _ := several(t, 2, runs(t, built.Program(t, "appliance/cmd/basaltd", "basalt_fake")))
	p := all[0] // the only voter
	p.kill()
	if err := os.RemoveAll(p.data("store")); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	says := func(words string) {
		t.Helper()
		last := ""
		until(t, "its message contains "+words, func() bool {
			s, err := p.api(t, "").Setup(t.Context())
			if err == nil && s.Message != last {
				last = s.Message
				t.Log(last)
			}
			return err == nil && s.State == api.SetupDamaged && strings.Contains(s.Message, words)
		})
	}
	says("run on this node: basalt node rebuild")
	if _, err := p.api(t, "").SetupRebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("0 of the cluster's 1 voters have a store and answer, and 1 must")
	says("run on a node that still has its store (n2): basalt cluster recover --i-am n2")
	if got := status(t, p); !strings.Contains(got, "basalt cluster recover --i-am n2") {
		t.Errorf("status = %q, want it to contain the command to recover", got)
	}
}

// TestDamagedAlone: a node without a cluster whose store is damaged, at its start or while it
// runs, ends with the damage as its error and with the exit status after which systemd does not
// start it again.
func TestDamagedAlone(t *testing.T) {
	unit, err := os.ReadFile("../../../installer/deb/basalt/root/usr/lib/systemd/system/basaltd.service")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^RestartPreventExitStatus=(\d+)$`).FindSubmatch(unit)
	if found == nil {
		t.Fatal("the unit has no RestartPreventExitStatus")
	}
	bin := built.Program(t, "appliance/cmd/basaltd", "basalt_fake")
	stop := func(p *process) { p.kill() }
	for name, c := range map[string]struct {
		before func(*process)
		change func(store string) error
		file   string
	}{
		"log gone":   {stop, func(s string) error { return os.Remove(s + "/log.db") }, "log.db: "},
		"tables cut": {stop, func(s string) error { return os.Truncate(s+"/tables.db", 8192) }, "tables.db: "},
		"no folder of snapshots": {stop, func(s string) error {
			return errors.Join(os.RemoveAll(s+"/snapshots"), os.WriteFile(s+"/snapshots", nil, 0o600))
		}, "snapshots: "},
		"tables cut while it runs": {func(*process) {}, func(s string) error { return os.Truncate(s+"/tables.db", 8192) }, "tables.db: "},
		"log cut while it runs":    {func(*process) {}, func(s string) error { return os.Truncate(s+"/log.db", 8192) }, "log.db: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "basaltd")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			failed.Keep(t, func(f failed.Folder) { f.Files(filepath.Join(dir, "log")) })
			p := &process{name: "n1", dir: dir, command: []string{bin, "--data", filepath.Join(dir, "data"), "--run", filepath.Join(dir, "run"),
				"--node-name", "n1", "--listen", port.Address(t), "--libvirt", "fake:", "--fence", "none"}}
			p.start(t)
			t.Cleanup(p.kill)
			until(t, "basaltd is running", func() bool {
				raw, err := os.ReadFile(filepath.Join(dir, "log"))
				return err == nil && strings.Contains(string(raw), "basaltd is up")
			})
			c.before(p)
			if err := c.change(p.data("store")); err != nil {
				t.Fatal(err)
			}
			if p.cmd == nil {
				p.start(t)
			}
			cmd := p.cmd
			select {
			case <-p.done:
			case <-time.After(2 * time.Minute):
				t.Fatal("basaltd with a damaged store still runs after 2 minutes, want it to end")
			}
			if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != string(found[1]) {
				t.Errorf("exit status = %s, want RestartPreventExitStatus %s of the unit", got, found[1])
			}
			raw, err := os.ReadFile(filepath.Join(dir, "log"))
			lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
			if last := lines[len(lines)-1]; err != nil || !strings.HasPrefix(last, "basaltd: ") || !strings.Contains(last, c.file) || !strings.Contains(last, "put back a copy") || !strings.Contains(last, "systemctl start basaltd") {
				t.Errorf("last line of the log = %q (error %v), want the damaged file and what to do", last, err)
			}
			if bytes.Contains(raw, []byte("panic")) || bytes.Contains(raw, []byte("SIGBUS")) {
				t.Error("log contains a panic or SIGBUS, want an error")
			}
		})
	}
}

// TestNodeThatDiffers: a node whose disk has altered its tables is detected by the others,
// stops serving them, and is rebuilt.
func TestNodeThatDiffers(t *testing.T) {
	all, key := processes(t)
	p := all[2]
	p.kill()
	change(t, p, "1")
	p.start(t)
	var s api.Setup
	until(t, "it is found to differ", func() bool {
		var err error
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupDamaged
	})
	if !strings.Contains(s.Message, "differs from that of most nodes") || !strings.Contains(s.Message, "basalt node rebuild") {
		t.Errorf("message of a node that differs = %q, want the difference and the command to rebuild", s.Message)
	}
	alertOf(t, all[0], key, api.AlertNodeStore, "node n3 has no copy of the cluster's state", "differs from that of most nodes", "basalt node rebuild")
	until(t, "the rebuild is ordered", func() bool { _, err := p.api(t, "").SetupRebuild(t.Context()); return err == nil })
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")

	// A healthy node can be rebuilt too, and is not a member until the rebuild is complete.
	s, err := p.api(t, "").SetupRebuild(t.Context())
	if err != nil || s.Quorum || !strings.Contains(s.Message, "gets that of the other nodes") {
		t.Errorf("answer to the rebuild = %+v, %v, want no quorum and a message with the reason", s, err)
	}
	until(t, "it is a member once more", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")
}

// TestReadOnlyDisk: a member whose disk accepts no writes does not vote either. It keeps its
// lease, and is a member again when the disk is writable.
func TestReadOnlyDisk(t *testing.T) {
	all, key := processes(t)
	p := all[1]
	p.kill()
	command := p.command
	p.command = append([]string{"unshare", "--mount", "sh", "-ec", `mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"`, filepath.Join(p.dir, "data")}, command...)
	p.start(t)
	var s api.Setup
	until(t, "it reports the damage", func() bool {
		var err error
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil
	})
	if s.State != api.SetupDamaged || !strings.Contains(s.Message, "read-only file system") {
		t.Errorf("setup with a read-only disk = %s: %s, want %s with that reason", s.State, s.Message, api.SetupDamaged)
	}
	until(t, "all three nodes are alive", func() bool { c, err := all[0].api(t, key).Cluster(t.Context()); return err == nil && c.Alive == 3 })
	if _, err := p.api(t, "").SetupRebuild(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("rebuild on a read-only disk: error %v, want read-only file system", err)
	}
	p.kill()
	p.command = command
	p.start(t)
	until(t, "it is a member", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
}
