package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
)

// children are the programs that this test binary runs as when a test starts it.
var children = map[string]func(dir string) error{
	"write":        childWrites,
	"write-alone":  childWritesAlone,
	"full":         childFillsTables,
	"full-log":     childFillsLog,
	"full-restart": childRestartsFull,
	"hold-open":    childHolds,
	"node":         childNode,
	"restore":      childRestores,
	"cut":          childCuts,
	"recover":      childRecovers,
}

func TestMain(m *testing.M) {
	if mode := os.Getenv("BASALT_STORE_TEST_CHILD"); mode != "" {
		if err := children[mode](os.Getenv("BASALT_STORE_TEST_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(memory.Main(m))
}

func child(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BASALT_STORE_TEST_CHILD="+mode, "BASALT_STORE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// crashUsed returns how many records of a client there are, and the total of its sums.
func crashUsed(s *Store, client int) (records int, sum int64, err error) {
	ctx := context.Background()
	for q := (api.RecordQuery{Organization: statetest.Org(client), Limit: 1000}); ; {
		page, err := s.Records(ctx, q)
		if err != nil {
			return 0, 0, err
		}
		records += len(page.Items)
		if q.After = page.Next; !page.More {
			break
		}
	}
	use, err := s.Use(ctx, api.UseQuery{Organization: statetest.Org(client), Limit: api.MaxUse})
	for _, u := range use.Items {
		sum += u.Quantity
	}
	return records, sum, err
}

func crashNumber(s *Store, half string, client int) (n int, revision int64, err error) {
	o, err := s.Get(context.Background(), api.KindFlavor, fmt.Sprintf("flv-%s%d", half, client))
	if api.CodeOf(err) == api.CodeNotFound {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(string(o.Spec), `{"n":%d`, &n)
	return n, o.Meta.Revision, err
}

// childWrites writes until it is killed, and prints what was acknowledged: client,
// number, revision.
func childWrites(dir string) error {
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1, SnapshotEvery: 50})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for client := range statetest.Clients {
		n, _, err := crashNumber(s, "a", client)
		if err != nil {
			return err
		}
		go func() {
			for k := n + 1; ; k++ {
				out, err := s.Apply(context.Background(), statetest.Batch(client, k))
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("%d %d %d\n", client, k, out[1].Meta.Revision)
			}
		}()
	}
	return <-failed
}

// After being killed at any moment, the store has every acknowledged write, complete
// batches only, and nothing else.
func TestKill(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 3
	}
	seed := rand.Uint64()
	if v := os.Getenv("BASALT_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("BASALT_SEED=%d repeats the moments", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	acked := make([][2]int64, statetest.Clients) // number and revision of the last
	for round := range rounds {
		killOnce(t, dir, time.Duration(random.IntN(400))*time.Millisecond, round%2 == 1, acked)
		checkAfterKill(t, round, dir, acked)
		if t.Failed() {
			return
		}
	}
	if acked[0][0] == 0 {
		t.Error("no write was acknowledged in any round, want some")
	}
}

// killOnce kills the child the given time after its start, or after its first answer:
// otherwise it might never answer on a busy machine.
func killOnce(t *testing.T, dir string, after time.Duration, answered bool, acked [][2]int64) {
	t.Helper()
	cmd := child(t, "write", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	begin := func() { timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) }
	if !answered {
		begin()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if timer == nil {
			begin()
		}
		var client int
		var n, revision int64
		if _, err := fmt.Sscan(lines.Text(), &client, &n, &revision); err != nil {
			continue // the last line may be incomplete
		}
		if revision <= acked[client][1] {
			t.Errorf("client %d: acknowledged revision %d after %d, want a later one", client, revision, acked[client][1])
		}
		acked[client] = [2]int64{n, revision}
	}
	if timer != nil {
		timer.Stop()
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child exited before it was killed: %v", err)
	}
}

func checkAfterKill(t *testing.T, round int, dir string, acked [][2]int64) {
	t.Helper()
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
	if err != nil {
		t.Fatalf("round %d: open after the kill: %v", round, err)
	}
	defer s.Close()
	total := int64(0)
	for client := range statetest.Clients {
		a, _, errA := crashNumber(s, "a", client)
		b, revision, errB := crashNumber(s, "b", client)
		if errA != nil || errB != nil {
			t.Fatalf("round %d, client %d: read after the kill: %v, %v", round, client, errA, errB)
		}
		last := int(acked[client][0])
		if a != b {
			t.Errorf("round %d, client %d: numbers of the two halves = %d and %d, want them equal", round, client, a, b)
		}
		if a != last && a != last+1 {
			t.Errorf("round %d, client %d: number = %d, want %d, which was acknowledged, or the next", round, client, a, last)
		}
		if a == last && revision != acked[client][1] {
			t.Errorf("round %d, client %d: revision = %d, want %d, which was acknowledged", round, client, revision, acked[client][1])
		}
		used := func(what string) {
			if records, sum, err := crashUsed(s, client); records != a || sum != int64(a)*int64(a+1)/2 || err != nil {
				t.Errorf("round %d, client %d%s: %d records with a sum of %d, %v; want %d with %d", round, client, what, records, sum, err, a, int64(a)*int64(a+1)/2)
			}
		}
		used("")
		total += 2 * int64(a)
		if a > 0 { // as a client that got no answer would
			before := s.Revision()
			if _, err := s.Apply(context.Background(), statetest.Batch(client, a)); err != nil || s.Revision() != before {
				t.Errorf("round %d, client %d: repeated batch: %v, revision %d then %d; want it unchanged", round, client, err, before, s.Revision())
			}
			if _, err := s.Apply(context.Background(), api.Batch{Commands: []api.Command{statetest.Record(client, a)}}); err != nil {
				t.Errorf("round %d, client %d: repeated record: %v", round, client, err)
			}
			used(", the record again")
		}
		acked[client] = [2]int64{int64(a), revision}
	}
	if s.Revision() != total {
		t.Errorf("round %d: revision = %d, want %d for the stored batches", round, s.Revision(), total)
	}
}

// A store that was killed while its cluster was created is created the next time: Raft
// had written its first term, but not its log. A store that has voted or reached a
// later term is refused, as its log must have been lost.
func TestKilledWhileBootstrapping(t *testing.T) {
	for name, c := range map[string]struct {
		keys map[string]uint64
		good bool
	}{
		"killed after the term": {map[string]uint64{"CurrentTerm": 1}, true},
		"it has voted":          {map[string]uint64{"CurrentTerm": 1, "LastVoteTerm": 1}, false},
		"a later term":          {map[string]uint64{"CurrentTerm": 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			votes, err := openStable(filepath.Join(dir, "vote"))
			if err != nil {
				t.Fatal(err)
			}
			for key, n := range c.keys {
				if err := votes.SetUint64([]byte(key), n); err != nil {
					t.Fatal(err)
				}
			}
			if err := votes.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
			if (err == nil) != c.good {
				t.Fatalf("open: %v, want success %v", err, c.good)
			}
			if err != nil {
				return
			}
			defer s.Close()
			if _, err := s.Apply(t.Context(), statetest.Batch(0, 1)); err != nil {
				t.Errorf("apply to the store: %v", err)
			}
		})
	}
}

// childHolds keeps the store open until its stdin ends.
func childHolds(dir string) error {
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
	return err
}

// Two processes using one directory would destroy it.
func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold-open", dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("first line of the child: %q, %v", line, err)
	}
	if s, err := Open(Options{Dir: dir, NodeID: "node-a"}); err == nil {
		s.Close()
		t.Error("a second process opened the directory, want an error")
	}
}
