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
	quick = time.Second     // lease, status
	slow  = 5 * time.Second // what waits for the disk
)

// Client speaks to basalt-fence. It connects when it needs to, and again when
// basalt-fence was restarted. Its methods may be called from anywhere.
type Client struct {
	// Two connections: what waits for the disk holds up no lease.
	fast, disk lane
	covered    atomic.Int64 // the deadline that basalt-fence has; 0: none
}

// lane is one connection, with one call at a time.
type lane struct {
	path string

	mu   sync.Mutex // guards what follows; held during a call
	conn net.Conn
	in   *bufio.Scanner
}

// Dial makes a client of the socket; it connects with the first call.
func Dial(path string) *Client { return &Client{fast: lane{path: path}, disk: lane{path: path}} }

// Close the connections.
func (c *Client) Close() error { return errors.Join(c.fast.close(), c.disk.close()) }

// SetLease hands over the deadline. From the first one on basalt-fence kills
// instances that are not kept when it passes; one that lies in the past ends
// the lease now.
func (c *Client) SetLease(l Lease) error {
	c.covered.Store(min(c.covered.Load(), int64(l.Until))) // what is over is over, heard or not
	_, err := c.fast.call(quick, Request{Lease: &l})
	if err == nil {
		c.covered.Store(int64(l.Until))
	}
	return err
}

// Covers reports whether basalt-fence has taken a deadline that is further away
// than margin: it will kill at that deadline, so a movable instance may start.
func (c *Client) Covers(margin time.Duration) bool {
	return boottime()+margin < time.Duration(c.covered.Load())
}

// Keep names all instances that may run without a lease. It returns when that
// will outlive basalt-fence, so it is called before such an instance starts.
func (c *Client) Keep(ids []string) error {
	if ids == nil {
		ids = []string{}
	}
	_, err := c.disk.call(slow, Request{Keep: &ids})
	return err
}

// Status asks how things are.
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

// StandDown ends fencing until the next lease: the node has left the cluster,
// or leases are not used. Nothing is killed, and the watchdog is disarmed.
func (c *Client) StandDown() error {
	c.covered.Store(0)
	_, err := c.disk.call(slow, Request{StandDown: &struct{}{}})
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
		// The connection was of a basalt-fence that is gone. Every request
		// says all of what it is about, so that twice is as good as once.
		reply, err = c.exchange(deadline, b)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("basalt-fence: %w", err)
	}
	return reply, nil
}

// replyError is basalt-fence's own.
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
