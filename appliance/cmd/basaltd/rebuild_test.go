package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/installer/dev/built"
	"github.com/basalt-gpu/basalt/installer/dev/failed"
)

// process is a basaltd of several, with machines in memory.
type process struct {
	name, dir string
	command   []string
	cmd       *exec.Cmd
	done      chan struct{}
}

func (p *process) data(name string) string { return filepath.Join(p.dir, "data", name) }

// api is the node's own socket.
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

// processes makes a cluster of three voters and answers its operator's key.
func processes(t *testing.T) (all []*process, key string) {
	t.Helper()
	bin := built.Program(t, "appliance/cmd/basaltd", "basalt_fake")
	return processesOf(t, func(p *process) {
		p.command = append([]string{bin}, p.command...)
		p.start(t)
		t.Cleanup(p.kill)
	})
}

// processesOf starts them with the arguments that are their commands.
func processesOf(t *testing.T, start func(*process)) (all []*process, key string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the setup calls are for root")
	}
	for i := range 3 {
		dir, err := os.MkdirTemp("/tmp", "basaltd") // sockets have short paths
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		p := &process{name: fmt.Sprint("n", i+1), dir: dir, command: []string{"--data", filepath.Join(dir, "data"), "--run", filepath.Join(dir, "run"),
			"--node-name", fmt.Sprint("n", i+1), "--listen", address(t), "--peer-listen", address(t), "--libvirt", "fake:", "--fence", "none", "--compare-every", "1s", "--log-level", "debug"}}
		failed.Keep(t, func(f failed.Folder) { f.Files(filepath.Join(dir, "log")) })
		start(p)
		all = append(all, p)
	}
	until(t, "n1 makes a cluster", func() bool { _, err := all[0].api(t, "").SetupInit(t.Context(), "test"); return err == nil })
	until(t, "it has an operator", func() bool {
		raw, err := os.ReadFile(all[0].data("operator.key"))
		key = strings.TrimSpace(string(raw))
		return err == nil
	})
	for _, p := range all[1:] {
		until(t, p.name+" joins", func() bool {
			at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
			token, err := all[0].api(t, key).JoinTokens().Create(t.Context(), api.JoinToken{Spec: api.JoinTokenSpec{ExpiresAt: &at}})
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

// has waits until the node shows a flavor.
func has(t *testing.T, p *process, key, flavor string) {
	t.Helper()
	until(t, p.name+" has "+flavor, func() bool {
		_, err := p.api(t, key).Flavors().Get(t.Context(), flavor, client.Query{})
		return err == nil
	})
}

func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// vote waits until all of them vote and know of it, so that any one may fail.
func vote(t *testing.T, all []*process, key string) {
	t.Helper()
	for _, p := range all {
		until(t, p.name+" knows that all vote", func() bool {
			c, err := p.api(t, key).Cluster(t.Context())
			return err == nil && c.Voters == int64(len(all))
		})
	}
}

// A voter whose store has gone is no voter: it says so and keeps its lease, and
// one command makes its store anew of the others'.
func TestRebuild(t *testing.T) {
	all, key := processes(t)
	p := all[1]
	write := func(on *process, name string) {
		t.Helper()
		until(t, "writes "+name, func() bool {
			_, err := on.api(t, key).Flavors().Create(t.Context(), api.Flavor{Meta: api.Meta{Name: name}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 30}})
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
	until(t, "it says what is wrong", func() bool {
		var err error
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil
	})
	if s.State != api.SetupDamaged || !strings.Contains(s.Message, "log.db: it is missing, though this node has written to it") {
		t.Errorf("it says %s: %s", s.State, s.Message)
	}
	if _, err := os.Stat(p.data("store/log.db")); err == nil {
		t.Error("it has made itself a new store")
	}
	if _, err := p.api(t, "").SetupLeave(t.Context()); api.CodeOf(err) != api.CodeState {
		t.Errorf("it leaves: %v", err)
	}
	until(t, "it is heard", func() bool { c, err := all[0].api(t, key).Cluster(t.Context()); return err == nil && c.Alive == 3 })
	alerted := func() (message string) {
		for a, err := range all[0].api(t, key).Alerts(t.Context()) {
			if err == nil && a.Code == api.AlertNodeStore {
				message = a.Message
			}
		}
		return message
	}
	until(t, "the operator is told", func() bool { return strings.Contains(alerted(), "node n2 has no copy of the cluster's state") })
	if _, err := p.api(t, "").SetupRebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	until(t, "nothing is wrong any more", func() bool { return alerted() == "" })
	// It counts: with another one gone it is half of the majority.
	vote(t, all, key)
	all[2].kill()
	write(p, "after")
	for _, name := range []string{"before", "meanwhile", "after"} {
		has(t, p, key, name)
	}
}

// Who has made the cluster makes it once.
func TestFounderWithoutStore(t *testing.T) {
	all, key := processes(t)
	p := all[0]
	p.kill()
	if err := os.RemoveAll(p.data("store")); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	until(t, "it says what is wrong", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupDamaged
	})
	raw, err := os.ReadFile(p.data("operator.key"))
	if err != nil || strings.TrimSpace(string(raw)) != key {
		t.Errorf("the operator's key has changed, %v", err)
	}
	p.kill() // in the middle of it
	p.start(t)
	until(t, "it rebuilds", func() bool { _, err := p.api(t, "").SetupRebuild(t.Context()); return err == nil })
	p.kill()
	p.start(t)
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")
}

// A node whose disk has changed what it was given is found by the others, stops
// showing it, and is made anew.
func TestNodeThatDiffers(t *testing.T) {
	all, key := processes(t)
	p := all[2]
	p.kill()
	db, err := bbolt.Open(p.data("store/tables.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("objects"))
		c := b.Cursor()
		k, v := c.Seek([]byte("Flavor"))
		changed := bytes.Replace(v, []byte(`"vcpus":`), []byte(`"vcpus":1`), 1)
		if bytes.Equal(v, changed) {
			return fmt.Errorf("%s is %s", k, v)
		}
		return b.Put(bytes.Clone(k), changed)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	var s api.Setup
	until(t, "it is found", func() bool {
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupDamaged
	})
	if !strings.Contains(s.Message, "is not what most nodes have") {
		t.Error(s.Message)
	}
	until(t, "it rebuilds", func() bool { _, err := p.api(t, "").SetupRebuild(t.Context()); return err == nil })
	until(t, "it is a member again", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")

	// One that is well can be rebuilt too, and is no member until it has been.
	s, err = p.api(t, "").SetupRebuild(t.Context())
	if err != nil || s.Quorum || !strings.Contains(s.Message, "gets that of the other nodes") {
		t.Errorf("answer to the rebuild = %+v, %v, want a node without a majority that says why", s, err)
	}
	until(t, "it is a member once more", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
	has(t, p, key, "small")
}

// A member whose disk takes no writes has no say either; its machines go on, and it
// takes part again when the disk is well.
func TestReadOnlyDisk(t *testing.T) {
	all, key := processes(t)
	p := all[1]
	p.kill()
	command := p.command
	p.command = append([]string{"unshare", "--mount", "sh", "-ec", `mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"`, filepath.Join(p.dir, "data")}, command...)
	p.start(t)
	var s api.Setup
	until(t, "it says what is wrong", func() bool {
		var err error
		s, err = p.api(t, "").Setup(t.Context())
		return err == nil
	})
	if s.State != api.SetupDamaged || !strings.Contains(s.Message, "read-only file system") {
		t.Errorf("it says %s: %s", s.State, s.Message)
	}
	until(t, "it is heard", func() bool { c, err := all[0].api(t, key).Cluster(t.Context()); return err == nil && c.Alive == 3 })
	if _, err := p.api(t, "").SetupRebuild(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("its store is made anew: %v", err)
	}
	p.kill()
	p.command = command
	p.start(t)
	until(t, "it is a member", func() bool {
		s, err := p.api(t, "").Setup(t.Context())
		return err == nil && s.State == api.SetupMember && s.Quorum
	})
}
