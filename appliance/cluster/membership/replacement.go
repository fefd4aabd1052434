package membership

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// A replacement of the cluster's CA has two phases, which the ClusterCA stores, so that it
// continues after any crash. Each ends when every node has reported that it is done:
//
//	trust:  nodes trust the old and the new CA; the old one signs. The operator confirms that this
//	        phase may end, since clients of the API have to be given the new CA by then
//	renew:  the new one signs, and nodes renew their certificates
//
// Then only the new one is trusted. In every phase a node accepts the certificates of all
// others, whether they are in this phase already or not: until the last node trusts both, all
// certificates are signed by the old CA, and until the last one has renewed, both are trusted.

// Trust is what a node reports about its identity.
type Trust struct {
	Issuer string   `json:"issuer"` // fingerprint of the CA that signed its certificate
	CAs    []string `json:"cas"`    // fingerprints of those that it trusts
}

// TrustOf returns what this node reports.
func TrustOf(k *pki.CertificateStore) Trust { return Trust{Issuer: k.Issuer(), CAs: k.Fingerprints()} }

// Replace creates a new CA that is to replace the old one, unless there is one already. With
// renew, nodes renew their certificates as soon as all of them trust it.
func Replace(ctx context.Context, s Store, renew bool, now time.Time) error {
	a, revision, err := readAuthority(ctx, s)
	if err != nil {
		return err
	}
	if a.Next != nil && (a.Proceed || !renew) {
		return api.Errorf(api.CodeState, "the cluster's CA is already being replaced").WithHint("basalt cluster ca get shows the phase and the nodes that it waits for")
	}
	if a.Next == nil {
		next, err := pki.NewCA(a.Cluster, now)
		if err != nil {
			return fmt.Errorf("create the next CA of cluster %s: %w", a.Cluster, err)
		}
		a.Next = &next
	}
	a.Proceed = renew
	return a.write(ctx, s, revision)
}

// CancelReplacement keeps the old CA. It is possible until the new one signs.
func CancelReplacement(ctx context.Context, s Store) error {
	a, revision, err := readAuthority(ctx, s)
	switch {
	case err != nil:
		return err
	case a.Next == nil:
		return api.Errorf(api.CodeState, "the cluster's CA is not being replaced")
	case a.Renewing:
		return api.Errorf(api.CodeState, "the new CA already signs certificates").WithHint("wait until the replacement is complete, then start another one")
	}
	a.Next, a.Proceed = nil, false
	return a.write(ctx, s, revision)
}

// Replacement describes the CA and its replacement; ask returns what a node reports. Nodes
// that do not answer are waited for.
func Replacement(ctx context.Context, s Store, ask func(context.Context, api.NodeID) (Trust, error)) (api.CertificateAuthority, error) {
	a, _, err := readAuthority(ctx, s)
	if err != nil {
		return api.CertificateAuthority{}, err
	}
	print, ends, err := a.CA.Describe()
	if err != nil {
		return api.CertificateAuthority{}, fmt.Errorf("describe the cluster CA: %w", err)
	}
	bundle, err := a.bundle()
	out := api.CertificateAuthority{Fingerprint: print, ExpiresAt: ends, Bundle: string(bundle)}
	if err != nil || a.Next == nil {
		return out, err
	}
	if out.NextFingerprint, _, err = a.Next.Describe(); err != nil {
		return out, fmt.Errorf("describe the next CA: %w", err)
	}
	switch out.Phase = api.CATrust; {
	case a.Renewing:
		out.Phase = api.CARenew
	case !a.Proceed:
		out.Held = true
	}
	waiting, err := a.waiting(ctx, s, ask)
	for _, n := range waiting {
		out.WaitingFor = append(out.WaitingFor, n.Meta.Name)
	}
	return out, err
}

// waiting returns the nodes that are not done with the present phase.
func (a authority) waiting(ctx context.Context, s Store, ask func(context.Context, api.NodeID) (Trust, error)) (late []api.Node, err error) {
	print, err := a.Next.Fingerprint()
	if err != nil {
		return nil, fmt.Errorf("compute the fingerprint of the next CA: %w", err)
	}
	nodes, err := listNodes(ctx, s)
	done := make([]bool, len(nodes))
	var asked sync.WaitGroup
	for i, n := range nodes {
		asked.Go(func() {
			t, err := ask(ctx, api.NodeID(n.Meta.ID))
			done[i] = err == nil && slices.Contains(t.CAs, print) && (!a.Renewing || t.Issuer == print)
		})
	}
	asked.Wait()
	for i, n := range nodes {
		if !done[i] {
			late = append(late, n)
		}
	}
	return late, err
}

// Advance begins the next phase of a replacement if all nodes are done with the present one.
// It runs on the leader. A change by another leader in between is reported as a conflict.
func Advance(ctx context.Context, s Store, ask func(context.Context, api.NodeID) (Trust, error), log *slog.Logger) error {
	a, revision, err := readAuthority(ctx, s)
	if err != nil || !a.Proceed {
		return err
	}
	late, err := a.waiting(ctx, s, ask)
	if err != nil || len(late) > 0 {
		return err
	}
	if a.Renewing {
		a = authority{Cluster: a.Cluster, CA: *a.Next}
	} else {
		a.Renewing = true
	}
	if err := a.write(ctx, s, revision); err != nil {
		return err
	}
	log.Info("replacement of the cluster's CA continues", "complete", a.Next == nil, "renewing", a.Renewing)
	return nil
}

// Follow returns the part of CertificateStore.Run that gives this node the certificate and the bundle of
// the ClusterCA when they change. sign requests a certificate.
//
// The node's own copy of the store only shows that something may have changed: it may be old,
// and a CA that all nodes must trust would be removed again because of it.
func Follow(s Store, k *pki.CertificateStore, sign pki.Signer) func(context.Context) error {
	return func(ctx context.Context) error {
		if do, err := step(store.Stale(ctx), s, k, sign); do == nil {
			return err
		}
		do, err := step(ctx, s, k, sign)
		if do == nil {
			return err
		}
		return do(ctx)
	}
}

// step returns what the node has to do; nil: nothing.
func step(ctx context.Context, s Store, k *pki.CertificateStore, sign pki.Signer) (func(context.Context) error, error) {
	a, _, err := readAuthority(ctx, s)
	if api.CodeOf(err) == api.CodeNotFound { // a founder has not written it yet
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bundle, err := a.bundle()
	if err != nil {
		return nil, err
	}
	signer, err := a.signer().Fingerprint()
	switch {
	case err != nil:
		return nil, fmt.Errorf("compute the fingerprint of the cluster CA: %w", err)
	case k.Issuer() != signer:
		return func(ctx context.Context) error { return k.Renew(ctx, sign) }, nil
	case !bytes.Equal(k.Bundle(), bundle):
		return func(context.Context) error { return k.ReplaceBundle(bundle) }, nil
	}
	return nil, nil
}
