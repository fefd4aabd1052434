package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
)

// applicant is a node without a cluster: it serves the setup calls on its own socket until one
// of them, or its setup file, has made it a member.
type applicant struct {
	c    config
	log  *slog.Logger
	done chan struct{} // closed when the node is a member

	mu      sync.Mutex // one attempt at a time; guards what is below
	state   api.SetupState
	message string
}

// apply waits until the node is a member of a cluster.
func apply(ctx context.Context, c config, rec membership.Record, log *slog.Logger) error {
	a := &applicant{c: c, log: log, done: make(chan struct{}), state: rec.State}
	l, err := listenLocal(filepath.Join(c.run, "api.sock"))
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: membership.Handler(a), ConnContext: membership.WithPeer, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if c.setup != "" && rec.State == api.SetupUnconfigured {
		go a.followFile(ctx)
	}
	log.Info("this node is not part of a cluster yet", "state", rec.State, "hint", "basalt cluster init, or basalt node join TOKEN")
	select {
	case <-ctx.Done():
	case <-a.done:
	case err := <-served:
		return err
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = srv.Shutdown(end) // let the call that made it a member receive its answer
	return ctx.Err()
}

// setupFile is the file that an installer leaves.
type setupFile struct {
	Cluster string `json:"cluster"` // init or join
	Name    string `json:"name,omitempty"`
	Token   string `json:"token,omitempty"`
}

// followFile applies the setup file, and retries until it succeeds: the members of the cluster
// may not be running yet.
func (a *applicant) followFile(ctx context.Context) {
	raw, err := os.ReadFile(a.c.setup)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var f setupFile
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &f)
	}
	if err == nil && f.Cluster != "init" && f.Cluster != "join" {
		err = fmt.Errorf("cluster: want init or join")
	}
	if err != nil {
		a.setMessage(fmt.Sprintf("%s: %v", a.c.setup, err))
		return
	}
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		if f.Cluster == "init" {
			err = a.Init(ctx, f.Name)
		} else {
			err = a.Join(ctx, f.Token)
		}
		if err == nil || a.isDone() {
			break
		}
		a.log.Warn("apply setup file failed, retrying", "file", a.c.setup, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	if f.Token != "" && a.isDone() {
		f.Token = ""
		if raw, err := yaml.Marshal(f); err == nil {
			if err := atomicfile.WriteFile(a.c.setup, raw, 0o600); err != nil {
				a.log.Warn("remove used token from setup file failed", "error", err)
			}
		}
	}
}

func (a *applicant) isDone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (a *applicant) setMessage(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.message = message
	a.log.Warn(message)
}

// Setup implements membership.Node: it returns the state of the node.
func (a *applicant) Setup(context.Context) api.Setup {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := api.Setup{State: a.state, Message: a.message, Node: a.c.nodeName, PeerAddresses: a.c.peerListen, Version: version}
	if id, err := nodeID(filepath.Join(a.c.data, "node-id")); err == nil {
		s.NodeID = id
		if self, err := selfOf(a.c, id); err == nil {
			s.Addresses = []string{self.APIAddress}
		}
	}
	return s
}

// become makes one attempt to become a member. A node that has left a cluster gets a new
// identity before.
func (a *applicant) become(what string, f func(dir string, self membership.Self) error) error {
	if !a.mu.TryLock() {
		return api.Errorf(api.CodeState, "another setup request is in progress").WithHint("basalt cluster status shows the progress")
	}
	defer a.mu.Unlock()
	if a.isDone() {
		return api.Errorf(api.CodeState, "the node is already a member").WithHint("basalt cluster status")
	}
	if a.state == api.SetupLeft {
		if err := newIdentity(a.c); err != nil {
			return err
		}
		a.state = api.SetupUnconfigured
	}
	id, err := nodeID(filepath.Join(a.c.data, "node-id"))
	if err != nil {
		return err
	}
	self, err := selfOf(a.c, id)
	if err == nil {
		err = f(membership.Dir(a.c.data), self)
	}
	if err != nil {
		a.message = what + ": " + err.Error()
		return err
	}
	a.state, a.message = api.SetupMember, ""
	close(a.done)
	return nil
}

// Init creates a new cluster.
func (a *applicant) Init(_ context.Context, cluster string) error {
	return a.become("making the cluster", func(dir string, self membership.Self) error {
		return membership.Create(dir, cluster, self, nil, time.Now())
	})
}

// Join makes the node a member of a cluster.
func (a *applicant) Join(ctx context.Context, token string) error {
	return a.become("joining", func(dir string, self membership.Self) error {
		if entries, err := os.ReadDir(filepath.Join(a.c.data, "store")); err == nil && len(entries) > 0 {
			return api.Errorf(api.CodeState, "this node already has a state").
				WithHint("move %s away: its content is not taken into the cluster", filepath.Join(a.c.data, "store"))
		}
		return membership.Join(ctx, dir, token, self)
	})
}

// Recover fails: it is for members.
func (a *applicant) Recover(context.Context, string) error { return notMember() }

// Rebuild fails: it is for members.
func (a *applicant) Rebuild(context.Context) error { return notMember() }

// Leave fails: it is for members.
func (a *applicant) Leave(context.Context) error { return notMember() }

func notMember() error {
	return api.Errorf(api.CodeState, "this node is not part of a cluster").WithHint("basalt cluster init, or basalt node join TOKEN")
}

// Restore creates a new cluster with the content of a backup.
func (a *applicant) Restore(_ context.Context, backup io.Reader) error {
	return a.become("restoring", func(dir string, self membership.Self) error {
		return restore(a.c, dir, self, backup)
	})
}
