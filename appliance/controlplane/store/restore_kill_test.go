package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	stop   = syscall.SIGSTOP
	resume = syscall.SIGCONT
)

// childRestores restores dir/backup into one new directory after the other.
func childRestores(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "backup"))
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if _, err := RestoreInto(filepath.Join(dir, fmt.Sprint(n)), "node-a", bytes.NewReader(raw)); err != nil {
			return err
		}
	}
}

// A restore that is killed at any moment leaves a complete store, or none and files
// that the next one removes.
func TestKillRestore(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	s := open(t, Options{})
	writeSome(t, s, 1, 20)
	want, raw := everything(t, s), backupOf(t, s)
	random := rand.New(rand.NewPCG(seed(t), 0))
	whole, half := 0, 0
	for range rounds {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "backup"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := child(t, "restore", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+random.IntN(150)) * time.Millisecond) // the moment of the kill
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the child exited before it was killed: %v", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			switch filepath.Ext(name) {
			case ".restoring":
				half++
				name = name[:len(name)-len(".restoring")]
				if _, err := RestoreInto(name, "node-a", bytes.NewReader(raw)); err != nil {
					t.Fatal(err)
				}
			case "":
				whole++
			}
			if e.Name() == "backup" || e.Name() != "0" && filepath.Ext(e.Name()) == "" {
				continue // one complete store is enough
			}
			r, err := Open(Options{Dir: name, NodeID: "node-a", Reserve: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := everything(t, r); got != want {
				t.Errorf("restored content:\n%s\nwant\n%s", got, want)
			}
			if err := r.Close(); err != nil {
				t.Errorf("close the restored store: %v", err)
			}
		}
	}
	t.Logf("%d complete, %d interrupted", whole-rounds, half)
}

// childRecovers recovers the store repeatedly.
func childRecovers(dir string) error {
	for {
		if err := Recover(dir, "", "node-a"); err != nil {
			return err
		}
	}
}

// A recovery that is killed at any moment loses nothing and can be repeated.
func TestKillRecover(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	dir := t.TempDir()
	for round := range rounds {
		s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1, SnapshotEvery: 30})
		if err != nil {
			t.Fatal(err)
		}
		writeSome(t, s, 1+20*round, 20+20*round)
		want := dump(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if round%3 == 1 { // the snapshot and the log after it must suffice
			if err := os.Remove(s.tables.path); err != nil {
				t.Fatal(err)
			}
		}
		cmd := child(t, "recover", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(10+random.IntN(150)) * time.Millisecond) // the moment of the kill
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the child exited before it was killed: %v", err)
		}
		if s, err = Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1}); err != nil {
			t.Fatal(err)
		}
		if got := dump(t, s); got != want {
			t.Errorf("round %d: recovered content:\n%s\nwant\n%s", round, got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
