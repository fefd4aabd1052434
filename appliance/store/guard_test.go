package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// use reads and writes, as far as that goes, until the store is broken.
func use(s *Store, broken <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for client := range 2 {
			_, _, _ = crashNumber(s, "a", client)
			_, _, _ = crashUsed(s, client)
		}
		_, _ = s.List(ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 100})
		for k := 100; k < 110; k++ {
			_, _ = s.Apply(ctx, crashBatch(0, k))
		}
		_ = s.Backup(ctx, &bytes.Buffer{}, nil)
	}()
	select {
	case <-done:
	case <-broken:
	}
	cancel()
	_ = s.Close()
	<-done
}

// Whatever a page of the files has become: the store says which file is damaged,
// or works on. It neither panics nor hangs, and once it has seen the damage, it
// does not open any more.
func TestDamagedPages(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	random := rand.New(rand.NewPCG(11, 0))
	_, good := oneBatch(t)
	seen := map[string]int{}
	for _, name := range []string{"tables.db", "log.db"} {
		for what, damage := range map[string]func(page []byte){
			"zeros": func(p []byte) { clear(p) },
			"noise": func(p []byte) {
				for i := range p {
					p[i] = byte(random.Uint32())
				}
			},
			"header": func(p []byte) { p[8+random.IntN(8)] ^= 0xff },
			"bit":    func(p []byte) { p[random.IntN(len(p))] ^= 1 << random.IntN(8) },
		} {
			for range rounds {
				f := clone(good)
				raw := bytes.Clone(f[name])
				page := 2 + random.IntN(len(raw)/pageBytes-2)
				damage(raw[page*pageBytes:][:pageBytes])
				f[name] = raw
				seen[tryDamaged(t, fmt.Sprintf("%s of page %d of %s", what, page, name), f)]++
			}
		}
	}
	t.Log(seen)
	if seen["refused"] == 0 { // where it shows in objects only, the other nodes see it: TestCompare
		t.Error("no damage was seen")
	}
}

func tryDamaged(t *testing.T, what string, f files) string {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	f.write(t, dir)
	broken := make(chan error, 1)
	o := Options{Dir: dir, NodeID: "node-a", Reserve: 1, LeaderWait: time.Second, Broken: func(why error) { broken <- why; close(broken) }}
	s, err := Open(o)
	if err != nil {
		var d *Damaged
		if !errors.As(err, &d) && !strings.Contains(err.Error(), ".db") {
			t.Errorf("%s: refused with %v", what, err)
		}
		return "refused"
	}
	watch := patience.Start()
	use(s, broken)
	if watch.Over(time.Minute) {
		t.Errorf("%s: it hangs", what)
	}
	select {
	case why := <-broken:
		if why == nil {
			return "broken" // told before
		}
		refused(t, Options{Dir: dir, NodeID: "node-a", Reserve: 1}, ".db: ")
		return "broken"
	default:
		return "unseen"
	}
}

// A file that is cut while the store uses it is a fault of memory. A read says so;
// a write may end the process, as bbolt then looks for free pages in a goroutine
// of its own. Either way the next start says what is wrong.
func TestCutWhileOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, name := range []string{"tables.db", "log.db"} {
		dir := filepath.Join(t.TempDir(), "store")
		out, _ := child(t, "cut", dir+" "+name).Output() // it ends somehow
		if !strings.Contains(string(out), "cut\n") {
			t.Fatalf("%s: it did not get that far: %s", name, out)
		}
		refused(t, Options{Dir: dir, NodeID: "node-a", Reserve: 1}, name+": ")
	}
}

// childCuts cuts a file of its store and goes on.
func childCuts(arg string) error {
	dir, name, _ := strings.Cut(arg, " ")
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1, Broken: func(error) { os.Exit(1) }})
	if err != nil {
		return err
	}
	for k := 1; k <= 20; k++ {
		if _, err := s.Apply(context.Background(), crashBatch(0, k)); err != nil {
			return err
		}
	}
	if err := os.Truncate(filepath.Join(dir, name), 2*pageBytes); err != nil {
		return err
	}
	fmt.Println("cut")
	_, _ = s.List(context.Background(), api.ListQuery{Kind: api.KindFlavor, Limit: 100})
	_, _ = s.Apply(context.Background(), crashBatch(0, 21))
	return s.Close()
}

// A byte of an entry that has changed since it was written is neither applied nor
// sent to others: the store says which file it is in.
func TestChangedEntry(t *testing.T) {
	_, good := oneBatch(t)
	f := clone(good)
	f["log.db"] = bytes.ReplaceAll(good["log.db"], []byte("c0-45"), []byte("c0-44"))
	if bytes.Equal(f["log.db"], good["log.db"]) {
		t.Fatal("the log has no such entry")
	}
	if seen := tryDamaged(t, "another byte in an entry", f); seen == "unseen" {
		t.Error("an entry with another byte is used")
	}
}
