package network

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/installer/answers"
)

var errOtherCluster = errors.New("it does not show the cluster's certificate")

// Reach tries the members that a join token names. One that answers with the right
// certificate is sufficient.
func Reach(ctx context.Context, t answers.Token, now time.Time) []Check {
	var checks []Check
	if t.Expired(now) {
		checks = append(checks, Check{Warning, "the join token has expired at " + t.Expires.UTC().Format("2006-01-02 15:04 UTC"),
			"make a new one with `basalt node token create`, if this machine's clock is right"})
	}
	reached := false
	for _, p := range t.Peers {
		switch err := greet(ctx, p, t.CA); {
		case err == nil:
			reached = true
			checks = append(checks, Check{OK, p + " is a member of the cluster", ""})
		case errors.Is(err, errOtherCluster):
			checks = append(checks, Check{Warning, p + " answers, but is not a member of this cluster", "check that the token is of the right cluster"})
		default:
			checks = append(checks, Check{Warning, fmt.Sprintf("%s cannot be reached: %s", p, short(err)), "check the network and any firewall between"})
		}
	}
	if !reached {
		checks = append(checks, Check{Failure, "no member of the cluster can be reached", "check the network; the node could not join"})
	}
	return checks
}

// greet connects to a member like a joining node, sends nothing, and checks the
// certificates that it presents: one must be the CA of the token.
func greet(ctx context.Context, peer, ca string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	pinned := func(raw [][]byte, _ [][]*x509.Certificate) error {
		for _, der := range raw {
			if sum := sha256.Sum256(der); hex.EncodeToString(sum[:]) == strings.ToLower(ca) {
				return nil
			}
		}
		return errOtherCluster
	}
	d := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"basalt-join/1"},
		InsecureSkipVerify: true, VerifyPeerCertificate: pinned, // the pinned CA replaces the check of names
	}}
	conn, err := d.DialContext(ctx, "tcp", peer)
	if err != nil {
		return err
	}
	return conn.Close()
}

func short(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}
