package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// churn: instances are created and deleted, several at a time, and more than the node has
// capacity for. Every other one is deleted before it can have started. Nothing may be left of
// them, neither on the node nor in OVN.
func churn(t *testing.T, w *world) {
	at, rounds := 10, 3
	if layer.Long() {
		at, rounds = 20, 5
	}
	boot, err := os.ReadFile("../../../../hypervisor/drivertest/guest.bin") // powers off on request
	if err != nil {
		t.Fatal(err)
	}
	if img, err := w.upload(t, "button", api.ImageSpec{Format: "raw"}, append(boot, make([]byte, mib-len(boot))...)); err != nil {
		t.Fatalf("upload image button: %v, status %+v", err, img.Status)
	}
	began := time.Now()
	seen := w.watchInstances(t)
	var all sync.WaitGroup
	for n := range at {
		all.Go(func() {
			for r := range rounds {
				if err := w.once(seen, fmt.Sprintf("churn-%d-%d", n, r), (n+r)%2 == 0); err != nil {
					t.Errorf("instance churn-%d-%d: %v", n, r, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d instances created and deleted in %v", at*rounds, time.Since(began).Round(time.Second))
	// A root volume is deleted after its instance.
	patience.Until(t, 2*time.Minute, "the last volume is deleted", func() bool {
		for v, err := range client.Of[api.Volume](w.operator).All(w.ctx, client.Query{}) {
			if err != nil || v.Meta.DeletedAt != nil {
				return false
			}
		}
		return true
	})
	w.nothingLeft(t)

	// doctor leaks would have found a row in OVN that is left of a deleted object.
	w.nbctl(t, "ls-add", "left", "--", "set", "Logical_Switch", "left", "external_ids:basalt=basalt", "external_ids:basalt-of=net-000000000000")
	out, err := w.cli(operatorToken(t, w), "doctor", "leaks")
	if err == nil || !strings.Contains(out, "net-000000000000") || !strings.Contains(out, "Logical_Switch left") {
		t.Errorf("doctor leaks with a leaked row in OVN: error %v, want it to list Logical_Switch left of net-000000000000:\n%s", err, out)
	}
	w.nbctl(t, "--if-exists", "ls-del", "left")
	w.nothingLeft(t)
}

// observed is the set of instances that a watch has reported.
type observed struct {
	mu   sync.Mutex // guards all below
	ran  map[string]bool
	gone map[string]bool
	more chan struct{} // closed and replaced after each event
}

// watchInstances watches the instances until the test ends.
func (w *world) watchInstances(t *testing.T) *observed {
	t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	s := &observed{ran: map[string]bool{}, gone: map[string]bool{}, more: make(chan struct{})}
	var listening sync.WaitGroup
	listening.Go(func() {
		for e, err := range client.Of[api.Instance](w.operator).Watch(ctx, 0) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("watch instances: %v", err)
				}
				return
			}
			s.add(e)
		}
	})
	t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	return s
}

func (s *observed) add(e client.Change[api.Instance]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Object.Status.Phase == api.InstanceRunning {
		s.ran[e.Object.Meta.ID] = true
	}
	if e.Type == api.EventRemove {
		s.gone[e.Object.Meta.ID] = true
	}
	close(s.more)
	s.more = make(chan struct{})
}

// wait waits until the instance is in the set that which returns, and reports whether it is; it
// stops when over is closed.
func (s *observed) wait(id string, which func() map[string]bool, over <-chan struct{}) bool {
	for {
		s.mu.Lock()
		ok, more := which()[id], s.more
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-more:
		case <-over:
			return false
		}
	}
}

// once creates an instance, waits until it runs if run is true, deletes it, and waits until it
// no longer exists.
func (w *world) once(seen *observed, name string, run bool) error {
	in, err := client.Of[api.Instance](w.tenant).Create(w.ctx, api.Instance{Meta: api.Meta{Name: name, Project: "one"}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "button"}})
	if err != nil {
		return err
	}
	wait := func(what string, which func() map[string]bool) error {
		if !seen.wait(in.Meta.ID, which, patience.After(4*time.Minute)) {
			now, err := client.Of[api.Instance](w.tenant).Get(w.ctx, in.Meta.ID, client.Query{})
			if now.Status.Phase == api.InstanceRunning && run || api.CodeOf(err) == api.CodeNotFound && err != nil {
				err = errors.Join(err, errors.New("the watch has not reported it"))
			}
			return errors.Join(fmt.Errorf("%s is not %s: assignment %+v, status %+v", name, what, now.Assignment, now.Status), err)
		}
		return nil
	}
	if run {
		if err := wait("running", func() map[string]bool { return seen.ran }); err != nil {
			return err
		}
	}
	if _, err := client.Of[api.Instance](w.tenant).Delete(w.ctx, in.Meta.ID); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return wait("gone", func() map[string]bool { return seen.gone })
}

// nothingLeft checks that "doctor leaks" finds nothing, as an operator would.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	var out string
	for watch := patience.Start(); ; time.Sleep(time.Second) {
		var err error
		if out, err = w.cli(operatorToken(t, w), "doctor", "leaks"); err == nil {
			break
		}
		if watch.Over(2 * time.Minute) {
			t.Fatalf("doctor leaks fails after 2 minutes: %v\n%s", err, out)
		}
	}
	if !strings.Contains(out, "no orphaned resources found") {
		t.Errorf("output of doctor leaks, want \"no orphaned resources found\":\n%s", out)
	}
}
