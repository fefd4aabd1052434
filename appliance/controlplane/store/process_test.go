package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/histtest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// processes are nodes that run as processes, to be killed. They use Raft and HTTP over
// loopback.
type processes struct {
	Raft, HTTP map[string]string // addresses by node
	Bootstrap  string

	dir  string
	mu   sync.Mutex // guards the fields below
	cmds map[string]*exec.Cmd
}

// request and response are the messages between nodes and clients.
type request struct {
	Op    string // apply, local, revision, get, list, voter
	Batch api.Batch
	Kind  api.Kind
	ID    string
	List  api.ListQuery
}

type response struct {
	Objects   []api.Object
	Page      api.ListPage
	Index     uint64
	Error     *api.Error
	NotLeader bool
}

// ask sends one request. After an error that is not the store's it is unknown what was
// done, except that ErrNotSent means that nothing was.
func ask(ctx context.Context, addr string, q request) (response, error) {
	var a response
	raw, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, bytes.NewReader(raw))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return a, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	switch {
	case a.NotLeader:
		return a, ErrNotLeader
	case a.Error != nil:
		return a, a.Error
	}
	return a, nil
}

// httpRemote is Remote for childNode.
type httpRemote struct{ p *processes }

func (r httpRemote) Apply(ctx context.Context, leader string, b api.Batch) ([]api.Object, error) {
	a, err := ask(ctx, r.p.HTTP[leader], request{Op: "local", Batch: b})
	return a.Objects, err
}

func (r httpRemote) ReadIndex(ctx context.Context, leader string) (uint64, error) {
	a, err := ask(ctx, r.p.HTTP[leader], request{Op: "index"})
	return a.Index, err
}

// httpTarget is a node as clients access it.
type httpTarget string

func (h httpTarget) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	a, err := ask(ctx, string(h), request{Op: "apply", Batch: b})
	return a.Objects, err
}

func (h httpTarget) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	a, err := ask(ctx, string(h), request{Op: "get", Kind: kind, ID: id})
	if err != nil {
		return api.Object{}, err
	}
	return a.Objects[0], nil
}

func (h httpTarget) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	a, err := ask(ctx, string(h), request{Op: "list", List: q})
	return a.Page, err
}

func serve(ctx context.Context, s *Store, q request) (a response) {
	var err error
	switch q.Op {
	case "apply":
		a.Objects, err = s.Apply(ctx, q.Batch)
	case "local":
		a.Objects, err = s.ApplyLocal(ctx, q.Batch)
	case "index":
		a.Index, err = s.ReadIndex(ctx)
	case "list":
		a.Page, err = s.List(ctx, q.List)
	case "voter":
		err = s.AddVoter(ctx, q.ID)
	case "get":
		var o api.Object
		o, err = s.Get(ctx, q.Kind, q.ID)
		a.Objects = []api.Object{o}
	}
	if a.NotLeader = errors.Is(err, ErrNotLeader); err != nil && !errors.As(err, &a.Error) {
		a.Error = api.Errorf(api.CodeInternal, "%v", err)
	}
	return a
}

// byID resolves node IDs for Raft.
type byID map[string]string

func (b byID) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(b[string(id)]), nil
}

// childNode runs one node; its directory's name is its ID.
func childNode(dir string) error {
	var p processes
	if err := json.Unmarshal([]byte(os.Getenv("BASALT_STORE_TEST_NODES")), &p); err != nil {
		return err
	}
	id := dir[strings.LastIndexByte(dir, '/')+1:]
	trans, err := raft.NewTCPTransportWithConfig(p.Raft[id], nil, &raft.NetworkTransportConfig{
		ServerAddressProvider: byID(p.Raft), MaxPool: 3, Timeout: time.Second})
	if err != nil {
		return err
	}
	o := Options{Dir: dir, NodeID: id, Reserve: 1, SnapshotEvery: 60, Transport: trans,
		Bootstrap: id == p.Bootstrap, Remote: httpRemote{&p}, LeaderWait: 2 * time.Second}
	if _, err := os.Stat(o.watermarkPath()); os.IsNotExist(err) { // it joins
		if err := NewWatermark(o.watermarkPath(), id, ""); err != nil {
			return err
		}
	}
	s, err := Open(o)
	if err != nil {
		return err
	}
	return http.ListenAndServe(p.HTTP[id], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			return
		}
		_ = json.NewEncoder(w).Encode(serve(r.Context(), s, q))
	}))
}

func (p *processes) start(t *testing.T, id string) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "node", p.dir+"/"+id)
	cmd.Env = append(cmd.Env, "BASALT_STORE_TEST_NODES="+string(raw))
	cmd.Stderr = io.Discard // Raft's transport logs every node that is down
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmds[id] = cmd
}

func (p *processes) kill(id string) {
	p.mu.Lock()
	cmd := p.cmds[id]
	delete(p.cmds, id)
	p.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func startProcesses(t *testing.T, n int) *processes {
	t.Helper()
	p := &processes{Raft: map[string]string{}, HTTP: map[string]string{}, Bootstrap: "node-0", dir: t.TempDir(), cmds: map[string]*exec.Cmd{}}
	for i := range n {
		id := fmt.Sprintf("node-%d", i)
		p.Raft[id], p.HTTP[id] = port.Address(t), port.Address(t)
	}
	for i := range n {
		id := fmt.Sprintf("node-%d", i)
		p.start(t, id)
		t.Cleanup(func() { p.kill(id) })
		eventually(t, id+" becomes a voter", func() bool {
			_, err := ask(t.Context(), p.HTTP["node-0"], request{Op: "voter", ID: id})
			return err == nil
		})
	}
	return p
}

// When real processes are killed and stopped, no acknowledged write is lost, and no
// read returns outdated values.
func TestLinearizableKills(t *testing.T) {
	if testing.Short() {
		t.Skip("three processes and their elections take seconds")
	}
	faults := 6
	if layer.Long() {
		faults = 170
	}
	n := seed(t)
	random := rand.New(rand.NewPCG(n, 3))
	p := startProcesses(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := histtest.New()
	r.Drawings = p.dir
	failed.Keep(t, func(f failed.Folder) { f.Files(p.dir+"/*.html", p.dir+"/*/*") })
	var mu sync.Mutex
	choose := rand.New(rand.NewPCG(n, 4))
	w := histtest.Workload{Seed: n, Clients: 8, Objects: 4, Kind: api.KindFlavor, Timeout: 4 * time.Second, Targets: func() histtest.Target {
		mu.Lock()
		defer mu.Unlock()
		return httpTarget(p.HTTP[fmt.Sprintf("node-%d", choose.IntN(3))])
	}}
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx, r) })
	for range faults {
		id := fmt.Sprintf("node-%d", random.IntN(3))
		pause := time.Duration(100+random.IntN(1500)) * time.Millisecond
		if random.IntN(3) == 0 {
			p.mu.Lock()
			process := p.cmds[id].Process
			p.mu.Unlock()
			_ = process.Signal(stop)
			sleep(ctx, 2*pause)
			_ = process.Signal(resume)
		} else {
			p.kill(id)
			sleep(ctx, pause)
			p.start(t, id)
		}
		sleep(ctx, time.Duration(random.IntN(1500))*time.Millisecond)
	}
	enough(t, r, 100)
	cancel()
	running.Wait()
	r.Check(t)
	done, refused, open := r.Counts()
	t.Logf("%d faults; %d operations done, %d refused, %d with unknown outcome", faults, done, refused, open)
}
