package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Waiting for an answer. Guests without KVM are slow.
const (
	answerTime = 3 * time.Second
	dialTime   = 4 * time.Second
)

// wire is the card as it is.
type wire struct{ fd int }

func open(card string) (*wire, error) {
	link, err := net.InterfaceByName(card)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in the network's order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all)
	if err != nil {
		return nil, fmt.Errorf("a packet socket: %w", err)
	}
	return &wire{fd}, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index})
}

func (w *wire) send(frames [][]byte) error {
	for _, f := range frames {
		for {
			_, err := unix.Write(w.fd, f)
			if !errors.Is(err, unix.ENOBUFS) { // the card is slower than we
				if err != nil {
					return err
				}
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// probe asks everything and listens for a while.
func (w *wire) probe(all []probe) []Result {
	results := make([]Result, len(all))
	for i, p := range all {
		results[i] = Result{Attack: p.name, Allowed: p.allowed}
		if err := w.send(p.ask); err != nil {
			results[i].Answer = err.Error()
		}
	}
	again := time.Now().Add(answerTime / 2)
	buf := make([]byte, 65536)
	for end := time.Now().Add(answerTime); time.Now().Before(end); {
		if !again.IsZero() && time.Now().After(again) {
			again = time.Time{}
			for _, p := range all {
				_ = w.send(p.ask) // it went out once
			}
		}
		_ = unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
		n, from, err := unix.Recvfrom(w.fd, buf, 0)
		if l, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || l.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		for i, p := range all {
			if results[i].Answer == "" && p.answers(buf[:n]) {
				results[i].Answer = fmt.Sprintf("%x", buf[:min(n, 64)])
			}
		}
	}
	return results
}

// dials are ordinary connections, all at once.
func dials(c Config) []Result {
	type target struct {
		address string
		allowed bool
	}
	targets := []target{{"169.254.169.254:80", true}}
	to := func(a netip.Addr, ports ...uint16) {
		for _, p := range ports {
			targets = append(targets, target{net.JoinHostPort(a.String(), strconv.Itoa(int(p))), false})
		}
	}
	for _, h := range c.Hosts {
		if !h.IsLoopback() { // the guest's own
			to(h, append(c.Ports, 22, 6641, 6642, 16509, 7480)...)
		}
	}
	for _, f := range c.Foreign {
		to(f.Six, 22, 80)
		if f.Four.IsValid() {
			to(f.Four, 22, 80)
		}
	}
	results := make([]Result, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			results[i] = Result{Attack: "connect to " + t.address, Allowed: t.allowed}
			ctx, cancel := context.WithTimeout(context.Background(), dialTime)
			defer cancel()
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
			switch {
			case err == nil:
				results[i].Answer = "connected"
				_ = conn.Close()
			case errors.Is(err, syscall.ECONNREFUSED):
				results[i].Answer = "refused"
			}
		})
	}
	wg.Wait()
	return results
}
