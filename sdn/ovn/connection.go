package ovn

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// Time limits for a database. A member that has lost its disk, or its
// majority, answers slowly or not at all.
const (
	connectTimeout = 5 * time.Second
	silence        = 10 * time.Second // before an echo request is sent
	retryAtLeast   = 100 * time.Millisecond
	retryAtMost    = 2 * time.Second
)

// connection is a connection to one database. It is opened at its first use
// and then maintained by the library, to whichever member is the leader.
type connection struct {
	name      string // for messages
	endpoints []string
	tls       *tls.Config
	leader    bool
	database  func() (model.ClientDBModel, error)
	monitor   func(client.Client) *client.Monitor

	// mu guards the following fields.
	mu      sync.Mutex
	client  client.Client
	changed chan struct{} // closed at the next change of a monitored row
}

// open returns the connected client.
func (c *connection) open(ctx context.Context) (client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	m, err := c.database()
	if err != nil {
		return nil, err
	}
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(retryAtLeast), backoff.WithMaxInterval(retryAtMost), backoff.WithMaxElapsedTime(0))
	quiet := logr.Discard()
	options := []client.Option{client.WithLeaderOnly(c.leader), client.WithInactivityCheck(silence, connectTimeout, wait), client.WithLogger(&quiet)}
	if c.tls != nil {
		options = append(options, client.WithTLSConfig(c.tls))
	}
	for _, e := range c.endpoints {
		options = append(options, client.WithEndpoint(e))
	}
	db, err := client.NewOVSDBClient(m, options...)
	if err != nil {
		return nil, err
	}
	dial, cancel := context.WithTimeout(ctx, connectTimeout*time.Duration(max(1, len(c.endpoints))))
	defer cancel()
	if err := db.Connect(dial); err != nil {
		db.Close()
		return nil, c.unavailable(err)
	}
	db.Cache().AddEventHandler(onChange(c.broadcast))
	if _, err := db.Monitor(dial, c.monitor(db)); err != nil {
		db.Close()
		return nil, c.unavailable(err)
	}
	c.client, c.changed = db, make(chan struct{})
	return db, nil
}

// broadcast wakes all waiters for a change.
func (c *connection) broadcast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// until waits until done returns true, calling it at each change of the cache.
func (c *connection) until(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return api.Errorf(api.CodeUnavailable, "%s: %s: %v", c.name, what, context.Cause(ctx))
		}
	}
}

func (c *connection) unavailable(err error) error {
	return api.Errorf(api.CodeUnavailable, "%s is not reachable: %v", c.name, err)
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.Close()
		c.client = nil
	}
}

// onChange is an event handler that is called at every change.
type onChange func()

func (f onChange) OnAdd(string, model.Model)                 { f() }
func (f onChange) OnUpdate(string, model.Model, model.Model) { f() }
func (f onChange) OnDelete(string, model.Model)              { f() }
