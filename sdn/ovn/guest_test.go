package ovn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn"
)

// guest is a namespace with one card, eth0. The test holds its other end,
// passes frames to and from the tap that Plug created, as QEMU does, and can
// inspect them and send its own.
type guest struct {
	w    *world
	port sdn.Port
	node *node
	ns   string

	inner, outer *os.File // the guest's card; the chassis' tap

	// mu guards the following fields.
	mu   sync.Mutex
	seen [][]byte // received frames, the newest last
	news chan struct{}
}

const remembered = 4096 // frames

func (w *world) boot(t testing.TB, n *node, p sdn.Port) *guest {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), patient)
	defer cancel()
	tap, err := n.chassis.Plug(ctx, sdn.Plug{Port: p.ID, MAC: p.MAC})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := p.ID.Instance()
	g := &guest{w: w, port: p, node: n, ns: w.namespace("g" + string(id)), news: make(chan struct{})}
	open := func(ns, name string) *os.File {
		var fd int
		if err := netns.Do(ns, func() (err error) { fd, err = ovn.OpenTap(name, false); return err }); err != nil {
			t.Fatalf("%s in %s: %v", name, ns, err)
		}
		return os.NewFile(uintptr(fd), name)
	}
	g.inner, g.outer = open(g.ns, "eth0"), open(n.ns, tap.Name)
	ip := func(args ...string) { t.Helper(); w.must(append([]string{"ip", "-n", g.ns}, args...)...) }
	ip("link", "set", "eth0", "address", p.MAC, "mtu", fmt.Sprint(tap.MTU), "up")
	var pumps sync.WaitGroup
	pumps.Go(func() { carry(g.outer, g.inner, nil) })
	pumps.Go(func() { carry(g.inner, g.outer, g.note) })
	t.Cleanup(func() {
		g.inner.Close()
		g.outer.Close()
		pumps.Wait()
		ctx, cancel := patience.Context(context.Background(), patient)
		defer cancel()
		if err := n.chassis.Unplug(ctx, p.ID); err != nil {
			t.Errorf("Unplug of %s: %v", p.ID, err)
		}
	})
	return g
}

// address configures the card's addresses statically.
func (g *guest) address(t testing.TB, n sdn.Network) *guest {
	t.Helper()
	ip := func(args ...string) { t.Helper(); g.w.must(append([]string{"ip", "-n", g.ns}, args...)...) }
	if g.port.Address4.IsValid() {
		ip("addr", "add", netip.PrefixFrom(g.port.Address4, n.CIDR4.Bits()).String(), "dev", "eth0")
		ip("route", "add", "default", "via", n.Gateway4.String())
	}
	if g.port.Address6.IsValid() {
		ip("addr", "add", netip.PrefixFrom(g.port.Address6, n.CIDR6.Bits()).String(), "dev", "eth0", "nodad")
	}
	return g
}

func carry(to io.Writer, from io.Reader, note func([]byte)) {
	buf := make([]byte, 65536)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if note != nil {
			note(bytes.Clone(buf[:n]))
		}
		_, _ = to.Write(buf[:n])
	}
}

func (g *guest) note(frame []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen[max(0, len(g.seen)-remembered):], frame)
	close(g.news)
	g.news = make(chan struct{})
}

// send sends a frame that the guest's kernel need not be able to produce.
func (g *guest) send(t testing.TB, frame []byte) {
	t.Helper()
	if _, err := g.outer.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// saw reports whether a received frame contains the mark.
func (g *guest) saw(mark []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.seen {
		if bytes.Contains(f, mark) {
			return true
		}
	}
	return false
}

// sees waits for a frame with the mark and reports whether it arrived in time.
func (g *guest) sees(mark []byte, within time.Duration) bool {
	limit := patience.After(within)
	for {
		g.mu.Lock()
		news := g.news
		g.mu.Unlock()
		if g.saw(mark) {
			return true
		}
		select {
		case <-news:
		case <-limit:
			return false
		}
	}
}

// serve sends the guest's name to every client.
func (g *guest) serve(t testing.TB, port int) net.Listener {
	return serve(t, g.ns, fmt.Sprintf(":%d", port), g.name())
}

func (g *guest) name() string { id, _ := g.port.ID.Instance(); return string(id) }

func serve(t testing.TB, ns, address, word string) net.Listener {
	t.Helper()
	var l net.Listener
	if err := netns.Do(ns, func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "%s %s", word, c.RemoteAddr())
			c.Close()
		}
	}()
	return l
}

// dial connects from the namespace and returns what the server sends.
func dial(ns, address string, within time.Duration) (answer string, err error) {
	err = netns.Do(ns, func() error {
		c, err := net.DialTimeout("tcp", address, within)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(within))
		raw, err := io.ReadAll(c)
		answer = string(raw)
		if err == nil && answer == "" {
			err = errors.New("no answer")
		}
		return err
	})
	return answer, err
}

// reach waits until a connection succeeds and returns the answer, which must
// start with want.
func reach(t testing.TB, w *world, ns, address, want string) string {
	t.Helper()
	var answer string
	limit := 500 * time.Millisecond // short at first: packets are lost during neighbor discovery
	w.until(ns+" to "+address, func() (err error) {
		answer, err = dial(ns, address, limit)
		limit = min(2*limit, 4*time.Second)
		if err == nil && !strings.HasPrefix(answer, want) {
			err = fmt.Errorf("answer = %q, want prefix %q", answer, want)
		}
		return err
	})
	return answer
}

// dead checks that no connection succeeds, within the time of one repeated
// SYN.
func dead(t testing.TB, ns string, addresses ...string) {
	t.Helper()
	var all sync.WaitGroup
	for _, address := range addresses {
		all.Go(func() {
			if answer, err := dial(ns, address, 1500*time.Millisecond); err == nil {
				t.Errorf("connection from %s to %s succeeded with answer %q, want none", ns, address, answer)
			}
		})
	}
	all.Wait()
}

// allDead is dead from several namespaces concurrently.
func allDead(t testing.TB, from map[string][]string) {
	t.Helper()
	var all sync.WaitGroup
	for ns, addresses := range from {
		all.Go(func() { dead(t, ns, addresses...) })
	}
	all.Wait()
}
