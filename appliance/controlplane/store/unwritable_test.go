package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// stopWrites makes writes to files of this process fail from now on, as on a disk that
// has become read-only: open descriptors are replaced by ones that cannot be written
// to.
func stopWrites(t *testing.T, paths ...string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range open {
			name, err := os.Readlink("/proc/self/fd/" + e.Name())
			fd, notNumber := strconv.Atoi(e.Name())
			if err != nil || notNumber != nil || name != path || fd == int(f.Fd()) {
				continue
			}
			if err := unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			found = true
		}
		if err := f.Close(); err != nil || !found {
			t.Fatalf("%s: an open descriptor was replaced: %v, want true; %v", path, found, err)
		}
	}
}

// If the disk no longer accepts writes, the store stops with an error that names the
// file; nothing is acknowledged meanwhile, and what was acknowledged is kept.
func TestUnwritable(t *testing.T) {
	all := []string{"log.db", "tables.db", "vote"}
	for name, files := range map[string][]string{"all": all, "log.db": {"log.db"}, "tables.db": {"tables.db"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			broken := make(chan error, 1)
			o := Options{Dir: dir, NodeID: "node-a", Reserve: 1, Broken: func(why error) { broken <- why }}
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			writeRange(t, s, 1, 3)
			var paths []string
			for _, f := range append(files, "../"+filepath.Base(dir)+".promise") {
				paths = append(paths, filepath.Join(dir, f))
			}
			stopWrites(t, paths...)
			answer := make(chan error, 1)
			go func() {
				_, err := s.Apply(context.Background(), statetest.Batch(0, 4))
				answer <- err
			}()
			var d *Damaged
			if why := <-broken; !errors.As(why, &d) || !strings.Contains(why.Error(), files[0]+": write failed: ") {
				t.Errorf("the store stopped with %v, want Damaged of %s", why, files[0])
			}
			if err := s.Close(); err != nil && !errors.Is(err, unix.EBADF) {
				t.Errorf("close the stopped store: %v", err)
			}
			if err := <-answer; err == nil || api.CodeOf(err) == api.CodeDiskFull {
				t.Errorf("apply on a disk without writes: %v, want an error other than a full disk", err)
			}
			if name != "all" { // the damage was recorded, since the vote file could be written
				refused(t, o, files[0]+": write failed: ")
				return
			}
			s = open(t, o)
			if n, _, err := crashNumber(s, "a", 0); n != 3 || err != nil {
				t.Errorf("when the disk works again: last batch %d, %v; want 3", n, err)
			}
			writeRange(t, s, 4, 4)
		})
	}
}

// The other nodes continue without a node whose disk accepts no writes, whether it
// leads or not.
func TestUnwritableAmongOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	for _, leads := range []bool{true, false} {
		broken := make(chan error, 3)
		c := newCluster(t, 3, Options{Broken: func(why error) { broken <- why }})
		writeRange(t, c.store(c.leader()), 1, 3)
		victim := c.leader()
		for _, id := range c.ids() {
			if !leads && id != c.leader() {
				victim = id
			}
		}
		dir := filepath.Join(c.options.Dir, victim)
		// The vote first: otherwise a write that fails meanwhile would be recorded there,
		// and the store refused.
		stopWrites(t, filepath.Join(dir, "vote"), filepath.Join(dir, "log.db"), filepath.Join(dir, "tables.db"), dir+".promise")
		eventually(t, "the other nodes accept writes", func() bool {
			for _, id := range c.ids() {
				if id != victim {
					_, err := c.store(id).Apply(t.Context(), statetest.Batch(0, 4))
					return err == nil
				}
			}
			return false
		})
		var d *Damaged
		if why := <-broken; !errors.As(why, &d) || filepath.Dir(d.File) != dir || !strings.Contains(why.Error(), ": write failed: ") {
			t.Errorf("the store of %s stopped with %v, want Damaged of a file there", victim, why)
		}
		c.mu.Lock()
		s := c.nodes[victim].store
		c.nodes[victim].store = nil
		c.mu.Unlock()
		if err := s.Close(); err != nil && !errors.Is(err, unix.EBADF) {
			t.Errorf("close the stopped store: %v", err)
		}
		c.start(victim, false) // its disk works again
		eventually(t, victim+" catches up", func() bool {
			n, _, err := crashNumber(c.store(victim), "a", 0)
			return n == 4 && err == nil
		})
	}
}
