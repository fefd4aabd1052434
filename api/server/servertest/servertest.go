// Package servertest runs the API server over a memory store and a pretended
// node, for tests of what speaks to it.
package servertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/storetest"
)

// Env is a running server.
type Env struct {
	URL, Token string // of an operator
	Store      *storetest.Memory
	Server     *server.Server
	Node       *Node
}

// Start runs a server until the test ends. now is its clock; nil: the real one.
func Start(t testing.TB, now func() time.Time) *Env {
	t.Helper()
	return StartWith(t, func(o *server.Options) { o.Now = now })
}

// StartWith is Start with other options.
func StartWith(t testing.TB, change func(*server.Options)) *Env {
	t.Helper()
	store := storetest.NewMemory()
	node := &Node{store: store, images: map[api.ImageID][]byte{}}
	o := server.Options{Store: store, Runtime: node, Billing: Bill{}, Version: "test", KeyRate: 1e6}
	change(&o)
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	http := httptest.NewServer(s)
	t.Cleanup(func() {
		http.CloseClientConnections()
		http.Close()
	})
	e := &Env{URL: http.URL, Store: store, Server: s, Node: node}
	e.Token = e.Key(t, api.Meta{Name: "operator"}, api.RoleOperator)
	return e
}

// Key stores an API key and answers its token.
func (e *Env) Key(t testing.TB, m api.Meta, role api.Role) string {
	t.Helper()
	cmd, token := server.NewAPIKey(m, api.APIKeySpec{Role: role})
	e.Apply(t, cmd)
	return token
}

// Apply writes to the store past the API.
func (e *Env) Apply(t testing.TB, cmds ...api.Command) []api.Object {
	t.Helper()
	out, err := e.Store.Apply(context.Background(), api.Batch{At: time.Now(), Commands: cmds})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Node is a pretended node: it keeps images, echoes on consoles, and, once
// Play runs, does what instances ask for.
type Node struct {
	store *storetest.Memory

	mu       sync.Mutex // guards images, consoles
	images   map[api.ImageID][]byte
	consoles []net.Conn
}

// ConsoleLog implements server.Runtime.
func (n *Node) ConsoleLog(_ context.Context, id api.InstanceID, tail int64) ([]byte, error) {
	log := []byte(fmt.Sprintf("boot of %s\r\nlogin: ", id))
	return log[max(0, int64(len(log))-tail):], nil
}

// HangUp ends all consoles, as when instances stop.
func (n *Node) HangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.consoles {
		_ = c.Close()
	}
	n.consoles = nil
}

// Console echoes.
func (n *Node) Console(context.Context, api.InstanceID) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	n.mu.Lock()
	n.consoles = append(n.consoles, far)
	n.mu.Unlock()
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// Exec prints the arguments; "false" fails.
func (n *Node) Exec(_ context.Context, _ api.InstanceID, req api.ExecRequest) (api.ExecResult, error) {
	if req.Argv[0] == "false" {
		return api.ExecResult{ExitCode: 1, Stderr: []byte("no\n")}, nil
	}
	return api.ExecResult{Stdout: append(fmt.Appendf(nil, "%q\n", req.Argv), req.Stdin...)}, nil
}

// Leaks is one volume.
func (n *Node) Leaks(context.Context, api.NodeID) ([]api.Leak, error) {
	return []api.Leak{{Kind: string(api.KindVolume), ID: "vol-left", What: "in pool local"}}, nil
}

// PutImage keeps the bytes and reports the image ready, or failed when its
// checksum is wrong.
func (n *Node) PutImage(ctx context.Context, id api.ImageID, r io.Reader, _ int64) error {
	data, err := io.ReadAll(io.LimitReader(r, 64<<20))
	if err != nil {
		return err
	}
	o, err := n.store.Get(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	image, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	if image.Spec.Sha256 != "" && image.Spec.Sha256 != sum {
		return api.Errorf(api.CodeInvalid, "the image's checksum is %s", sum).At("spec.sha256")
	}
	n.mu.Lock()
	n.images[id] = data
	n.mu.Unlock()
	return n.report(ctx, api.KindImage, string(id), api.ImageStatus{Phase: api.ImageReady, Node: "node-1",
		SizeBytes: int64(len(data)), VirtualBytes: 1 << 30, Sha256: sum})
}

// Image is the bytes that were put.
func (n *Node) Image(id string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.images[api.ImageID(id)]
}

func (n *Node) report(ctx context.Context, kind api.Kind, id string, status any) error {
	_, err := n.store.Apply(ctx, api.Batch{At: time.Now(), Commands: []api.Command{{
		Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)}}})
	return err
}

// Play makes instances run, stop and go, and fetches images, until ctx ends.
func (n *Node) Play(ctx context.Context) error {
	events, err := n.store.Watch(ctx, 0)
	if err != nil {
		return err
	}
	for e := range events {
		if e.Type != api.EventPut {
			continue
		}
		if err := n.play(ctx, e.Object); err != nil && api.CodeOf(err) != api.CodeNotFound {
			return err
		}
	}
	return nil
}

func (n *Node) play(ctx context.Context, o api.Object) error {
	if o.Meta.DeletedAt != nil {
		for _, f := range o.Meta.Finalizers {
			if _, err := n.store.Apply(ctx, api.Batch{At: time.Now(), Commands: []api.Command{{
				Op: api.OpForget, Kind: o.Kind, ID: o.Meta.ID, Expect: api.AnyRevision, Finalizer: f}}}); err != nil {
				return err
			}
		}
		return nil
	}
	switch o.Kind {
	case api.KindImage:
		image, err := api.Decode[api.Image](o)
		if err != nil || image.Spec.URL == "" || image.Status.Phase != "" {
			return err
		}
		return n.report(ctx, o.Kind, o.Meta.ID, api.ImageStatus{Phase: api.ImageReady, Node: "node-1", VirtualBytes: 1 << 30})
	case api.KindVolume:
		v, err := api.Decode[api.Volume](o)
		if err != nil {
			return err
		}
		return n.report(ctx, o.Kind, o.Meta.ID, api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: v.Spec.SizeBytes, ObservedGeneration: o.Meta.Generation})
	case api.KindInstance:
		in, err := api.Decode[api.Instance](o)
		if err != nil {
			return err
		}
		st := api.InstanceStatus{Phase: api.InstanceRunning, Restarts: in.Spec.Restarts, ObservedGeneration: o.Meta.Generation}
		if in.Spec.Power == api.PowerStopped {
			st.Phase = api.InstanceStopped
		}
		return n.report(ctx, o.Kind, o.Meta.ID, st)
	}
	return nil
}

// Bill is a billing with one line.
type Bill struct{}

// InvoicePreview implements server.Billing.
func (Bill) InvoicePreview(_ context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error) {
	line := api.InvoiceLine{Meter: api.MeterVCPU, Resource: "ins-000000000001", ResourceName: "demo",
		Quantity: 7200, Per: 3600, PriceMicros: 10000, Unit: "vCPU hour", AmountMicros: 20000}
	return api.InvoicePreview{Organization: org, Currency: "EUR", From: from, To: to, Lines: []api.InvoiceLine{line}, TotalMicros: 20000}, nil
}

// Sum is the SHA-256 of data in hex.
func Sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
