package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Times to wait for an answer. Guests without KVM are slow, and their node may
// be busy: a required answer is requested again and awaited for longer.
const (
	answerTime = 3 * time.Second
	againAfter = answerTime / 2
	mustCome   = 30 * time.Second
)

// wire is a packet socket on the card.
type wire struct{ fd int }

func open(card string) (*wire, error) {
	link, err := net.InterfaceByName(card)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all)
	if err != nil {
		return nil, fmt.Errorf("a packet socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		return nil, err
	}
	return &wire{fd}, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index})
}

func (w *wire) send(frames [][]byte) error {
	for _, f := range frames {
		for {
			_, err := unix.Write(w.fd, f)
			if !errors.Is(err, unix.ENOBUFS) { // the card's queue is full
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

// probe sends all requests, repeats them, and collects the answers.
func (w *wire) probe(all []probe) []Result {
	results := make([]Result, len(all))
	for i, p := range all {
		results[i] = Result{Attack: p.name, Allowed: p.allowed}
	}
	w.discard()
	var asked time.Time
	buf := make([]byte, 65536)
	for began := time.Now(); listening(results, time.Since(began)); {
		if time.Since(asked) > againAfter {
			asked = time.Now()
			for i, p := range all {
				if err := w.send(p.ask); err != nil {
					results[i].Answer = err.Error()
				}
			}
		}
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

// listening reports whether to continue to receive: for answerTime, and longer
// while a required answer is missing.
func listening(results []Result, since time.Duration) bool {
	return since < answerTime || since < mustCome &&
		slices.ContainsFunc(results, func(r Result) bool { return r.Allowed && r.Answer == "" })
}

// discard discards what the socket has received so far, including the frames
// sent by this program: they would fill its buffer.
func (w *wire) discard() {
	for buf := make([]byte, 1); ; {
		if _, _, err := unix.Recvfrom(w.fd, buf, unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}

// dials makes ordinary connections, all at once.
func dials(c Config) []Result {
	type target struct {
		address string
		allowed bool
	}
	targets := []target{{"169.254.169.254:80", !c.Unserved}}
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
			limit := answerTime
			if t.allowed {
				limit = mustCome
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
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
