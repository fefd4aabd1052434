package fence

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	quick = time.Second     // timeout of calls for lease and status
	slow  = 5 * time.Second // timeout of calls that wait for the disk
)

// Client calls basalt-fence. It connects when needed, and reconnects when
// basalt-fence was restarted. It may be used concurrently.
type Client struct {
	// There are two connections, so that calls that wait for the disk do not delay
	// leases.
	fast, disk lane
	covered    atomic.Int64 // the deadline that basalt-fence has; 0 if none
}

// lane is one connection, with one call at a time.
type lane struct {
	path string

	mu   sync.Mutex // guards the following fields; held during a call
	conn net.Conn
	in   *bufio.Scanner
}

// Dial returns a client of the socket; it connects at the first call.
func Dial(path string) *Client { return &Client{fast: lane{path: path}, disk: lane{path: path}} }

// Close closes the connections.
func (c *Client) Close() error { return errors.Join(c.fast.close(), c.disk.close()) }

// SetLease sends the deadline. After the first one basalt-fence kills instances
// that are not kept when the deadline passes; a deadline in the past ends the lease
// now.
func (c *Client) SetLease(l Lease) error {
	c.covered.Store(min(c.covered.Load(), int64(l.Until))) // a shorter lease counts even if the call fails
	_, err := c.fast.call(quick, Request{Lease: &l})
	if err == nil {
		c.covered.Store(int64(l.Until))
	}
	return err
}

// Covers reports whether basalt-fence has a deadline that is further away than
// margin: it will kill at that deadline, so a movable instance may start.
func (c *Client) Covers(margin time.Duration) bool {
	return boottime()+margin < time.Duration(c.covered.Load())
}

// Keep sets the list of all instances that may run without a lease. When it returns
// nil the list is on the disk and outlives basalt-fence, so it is called before
// such an instance starts.
func (c *Client) Keep(ids []string) error {
	if ids == nil {
		ids = []string{}
	}
	_, err := c.disk.call(slow, Request{Keep: &ids})
	return err
}

// Status returns the status of basalt-fence.
func (c *Client) Status() (Status, error) {
	r, err := c.fast.call(quick, Request{Status: &struct{}{}})
	if err == nil && r.Status == nil {
		err = errors.New("basalt-fence: reply has no status")
	}
	if err != nil {
		return Status{}, err
	}
	return *r.Status, nil
}

// Disarm ends fencing until the next lease, because the node has left the
// cluster or leases are not used. Nothing is killed, and the watchdog is disarmed.
func (c *Client) Disarm() error {
	c.covered.Store(0)
	_, err := c.disk.call(slow, Request{Disarm: &struct{}{}})
	return err
}

func (c *lane) call(limit time.Duration, r Request) (Reply, error) {
	r.V = version
	b, err := json.Marshal(r)
	if err != nil {
		return Reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := time.Now().Add(limit)
	fresh := c.conn == nil
	reply, err := c.exchange(deadline, b)
	var refused *replyError
	if err != nil && !fresh && !errors.As(err, &refused) && time.Now().Before(deadline) {
		// The connection was to a basalt-fence that has ended. Every request is
		// complete and idempotent, so it can be sent again.
		reply, err = c.exchange(deadline, b)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("basalt-fence: %w", err)
	}
	return reply, nil
}

// replyError is an error in basalt-fence's reply.
type replyError struct{ text string }

func (e *replyError) Error() string { return e.text }

func (c *lane) exchange(deadline time.Time, line []byte) (r Reply, err error) {
	defer func() {
		var refused *replyError
		if err != nil && !errors.As(err, &refused) {
			_ = c.drop()
		}
	}()
	if c.conn == nil {
		conn, err := (&net.Dialer{Deadline: deadline}).Dial("unix", c.path)
		if err != nil {
			return r, err
		}
		c.conn, c.in = conn, bufio.NewScanner(conn)
		c.in.Buffer(make([]byte, 4096), maxLine)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return r, err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return r, err
	}
	if !c.in.Scan() {
		return r, errors.Join(errors.New("no reply"), c.in.Err())
	}
	if err := json.Unmarshal(c.in.Bytes(), &r); err != nil {
		return r, fmt.Errorf("decode reply of basalt-fence: %w", err)
	}
	if r.Error != "" {
		return r, &replyError{r.Error}
	}
	return r, nil
}

func (c *lane) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop()
}

func (c *lane) drop() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn, c.in = nil, nil
	return err
}
