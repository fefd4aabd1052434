package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Node is the node that the screen shows.
type Node struct {
	Socket  string // basaltd's
	Version string
}

const maxAnswer = 64 << 10

// Observe observes the node. It never fails: State contains what is unknown and why.
func (n Node) Observe(ctx context.Context) State {
	s := State{At: time.Now(), Version: n.Version, Addresses: addresses(), Up: uptime()}
	s.Host, _ = os.Hostname() // empty is shown as nothing
	_, err := os.Stat(OperatorKey)
	s.Key = err == nil
	setup, err := ask(ctx, n.Socket)
	var wrapped *url.Error
	switch {
	case errors.As(err, &wrapped): // without the placeholder URL
		s.Err = wrapped.Err.Error()
	case err != nil:
		s.Err = err.Error()
	default:
		s.Setup = setup
	}
	return s
}

// ask requests the node's setup from basaltd.
func ask(ctx context.Context, socket string) (*api.Setup, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://basaltd/v1/setup", nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return parse(resp.StatusCode, data)
}

// parse parses basaltd's response.
func parse(status int, data []byte) (*api.Setup, error) {
	if status != http.StatusOK {
		return nil, fmt.Errorf("it answers %d", status)
	}
	var s api.Setup
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("it answers what this screen does not understand: %w", err)
	}
	if s.State == "" {
		return nil, fmt.Errorf("it answers without a state")
	}
	return &s, nil
}

// addresses returns the addresses of this machine that others can reach, without those
// of guest networks.
func addresses() (all []string) {
	cards, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, c := range cards {
		if c.Flags&net.FlagLoopback != 0 || c.Flags&net.FlagUp == 0 || strings.HasPrefix(c.Name, "virbr") || strings.HasPrefix(c.Name, "vnet") || strings.HasPrefix(c.Name, "tap") {
			continue
		}
		list, _ := c.Addrs() // none if the card was just removed
		for _, a := range list {
			ip, _, err := net.ParseCIDR(a.String())
			if err == nil && !ip.IsLinkLocalUnicast() && len(all) < 4 {
				all = append(all, ip.String()+" ("+c.Name+")")
			}
		}
	}
	return all
}

// uptime returns the uptime of this machine; 0 if it is unknown.
func uptime() time.Duration {
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	seconds, _ := strconv.ParseFloat(first, 64) // 0 means unknown
	return time.Duration(seconds * float64(time.Second))
}
