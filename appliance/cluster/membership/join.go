package membership

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Request is the request of a node to join: POST /join on a member's peer port.
type Request struct {
	Token  string `json:"token"` // ID of the JoinToken
	Secret string `json:"secret"`
	Format int    `json:"format"` // store.Level of the joiner

	Node          api.NodeID `json:"node"`
	Name          string     `json:"name"`
	Version       string     `json:"version"`
	PeerAddresses []string   `json:"peerAddresses"`
	APIAddress    string     `json:"apiAddress"`
	CSR           []byte     `json:"csr"` // DER
}

// JoinResponse is the answer to a Request.
type JoinResponse struct {
	CertPEM   []byte                  `json:"certPem"`
	BundlePEM []byte                  `json:"bundlePem"`
	Peers     map[api.NodeID][]string `json:"peers"`
	ID        string                  `json:"id,omitempty"` // of the cluster
}

// Join makes this node a member by means of a token.
func Join(ctx context.Context, dir, token string, self Self) error {
	t, err := pki.ParseToken(token)
	if err != nil {
		return fmt.Errorf("parse the join token: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, csr, err := pki.NewRequest()
	if err != nil {
		return fmt.Errorf("create the key of node %s: %w", self.Name, err)
	}
	var w JoinResponse
	err = transport.Join(ctx, t, Request{Token: t.ID, Secret: t.Secret, Format: state.Level,
		Node: self.Node, Name: self.Name, Version: self.Version,
		PeerAddresses: self.PeerAddresses, APIAddress: self.APIAddress, CSR: csr}, &w)
	if err != nil {
		return fmt.Errorf("join node %s to the cluster: %w", self.Name, err)
	}
	if _, err := pki.Create(dir, w.BundlePEM, w.CertPEM, key); err != nil {
		return fmt.Errorf("write the certificate of node %s: %w", self.Name, err)
	}
	if err := store.NewWatermark(WatermarkFile(dir), string(self.Node), w.ID); err != nil {
		return fmt.Errorf("create the watermark of node %s: %w", self.Name, err)
	}
	return Record{State: api.SetupMember, Cluster: t.Cluster, Node: self.Node, Peers: w.Peers}.Save(dir)
}

// Cluster is what Admit checks a new node against and sends to it.
type Cluster struct {
	Level int    // store.Level of all members
	ID    string // empty if it has none yet
}

// Admit admits a node. Any member can do it; the store decides. The token is marked
// as used and the node's object is created in one batch, so a token admits one
// node. The same node may repeat the request when the answer was lost.
func Admit(ctx context.Context, s Store, c Cluster, r Request, now time.Time) (JoinResponse, error) {
	if r.Format < c.Level {
		return JoinResponse{}, api.Errorf(api.CodeState, "node %s runs Basalt %s, which supports feature levels up to %d; the cluster has %d", r.Name, r.Version, r.Format, c.Level).
			WithHint("install the cluster's version on the node")
	}
	spec := api.NodeSpec{PeerAddresses: r.PeerAddresses, APIAddress: r.APIAddress}
	if err := api.ValidateNode(spec); err != nil {
		return JoinResponse{}, err
	}
	if err := api.ValidateName(r.Name); err != nil {
		return JoinResponse{}, err
	}
	if len(r.PeerAddresses) == 0 || !api.LooksLikeID(string(r.Node)) {
		return JoinResponse{}, api.Errorf(api.CodeInvalid, "a node must have an ID and a peer address")
	}
	token, err := redeemable(ctx, s, r, now)
	if err != nil {
		return JoinResponse{}, err
	}
	a, _, err := readAuthority(ctx, s)
	if err != nil {
		return JoinResponse{}, err
	}
	issued, err := a.issue(r.CSR, identity(a.Cluster, r.Node, r.Name, spec), now)
	if err != nil {
		return JoinResponse{}, api.Errorf(api.CodeInvalid, "certificate request of the node: %v", err)
	}
	if err := redeem(ctx, s, token, r, spec, now); err != nil {
		return JoinResponse{}, err
	}
	w := JoinResponse{CertPEM: issued.CertPEM, BundlePEM: issued.BundlePEM, Peers: map[api.NodeID][]string{}, ID: c.ID}
	nodes, err := listNodes(ctx, s)
	for _, n := range nodes {
		w.Peers[api.NodeID(n.Meta.ID)] = n.Spec.PeerAddresses
	}
	return w, err
}

// redeemable returns the token if the request may use it. An unknown token and a
// wrong secret produce the same error, so that it reveals nothing.
func redeemable(ctx context.Context, s Store, r Request, now time.Time) (api.JoinToken, error) {
	wrong := api.Errorf(api.CodeForbidden, "the join token is not valid").
		WithHint("it may have been used or deleted; create another with: basalt node token create")
	o, err := s.Get(ctx, api.KindJoinToken, r.Token)
	if api.CodeOf(err) == api.CodeNotFound {
		return api.JoinToken{}, wrong
	}
	if err != nil {
		return api.JoinToken{}, fmt.Errorf("read join token %s: %w", r.Token, err)
	}
	t, err := api.Decode[api.JoinToken](o)
	switch {
	case err != nil:
		return t, err
	case !pki.SecretMatches(t.Spec.Hash, r.Secret):
		return t, wrong
	case t.Spec.ExpiresAt != nil && now.After(*t.Spec.ExpiresAt):
		return t, api.Errorf(api.CodeForbidden, "the join token expired at %s", t.Spec.ExpiresAt.UTC().Format(time.RFC3339)).
			WithHint("create another with: basalt node token create")
	case t.Status.UsedBy != "" && t.Status.UsedBy != r.Node:
		return t, api.Errorf(api.CodeForbidden, "the join token was already used by node %s", t.Status.UsedBy).
			WithHint("a token admits one node; create another with: basalt node token create")
	}
	return t, nil
}

func redeem(ctx context.Context, s Store, t api.JoinToken, r Request, spec api.NodeSpec, now time.Time) error {
	put := api.Command{Op: api.OpPutSpec, Kind: api.KindNode, ID: string(r.Node), Name: r.Name, Data: api.Encode(spec)}
	o, err := s.Get(ctx, api.KindNode, string(r.Node))
	switch {
	case err == nil && t.Status.UsedBy == r.Node:
		put.Expect = o.Meta.Revision
	case err == nil:
		return api.Errorf(api.CodeExists, "a node with ID %s already exists", r.Node)
	case api.CodeOf(err) != api.CodeNotFound:
		return fmt.Errorf("read node %s: %w", r.Node, err)
	}
	at := now.UTC().Truncate(time.Second)
	_, err = s.Apply(ctx, api.Batch{Commands: []api.Command{
		{Op: api.OpReport, Kind: api.KindJoinToken, ID: t.Meta.ID, Expect: t.Meta.Revision, Data: api.Encode(api.JoinTokenStatus{UsedBy: r.Node, UsedAt: &at})},
		put,
	}})
	switch api.CodeOf(err) {
	case api.CodeExists:
		return api.Errorf(api.CodeExists, "a node named %s already exists", r.Name).
			WithHint("choose another name, or remove the old node: basalt node remove %s", r.Name)
	case api.CodeConflict:
		return api.Errorf(api.CodeForbidden, "the join token was used at the same moment by another node").
			WithHint("create another with: basalt node token create")
	}
	if err != nil {
		return fmt.Errorf("add node %s: %w", r.Name, err)
	}
	return nil
}

func listNodes(ctx context.Context, s Store) ([]api.Node, error) {
	var nodes []api.Node
	q := api.ListQuery{Kind: api.KindNode, Limit: 1000}
	for {
		page, err := s.List(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for _, o := range page.Items {
			n, err := api.Decode[api.Node](o)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
		if page.Continue == "" {
			return nodes, nil
		}
		q.Continue = page.Continue
	}
}

// NewToken creates a token for a new node. hash is stored in the cluster.
func NewToken(ctx context.Context, s Store, id api.JoinTokenID) (text, hash string, err error) {
	a, _, err := readAuthority(ctx, s)
	if err != nil {
		return "", "", err
	}
	print, err := a.signer().Fingerprint()
	if err != nil {
		return "", "", fmt.Errorf("compute the fingerprint of the cluster CA: %w", err)
	}
	nodes, err := listNodes(ctx, s)
	if err != nil {
		return "", "", err
	}
	var peers []string
	for _, n := range nodes {
		if n.Assignment.State != api.NodeLost && len(peers) < maxTokenPeers {
			peers = append(peers, n.Spec.PeerAddresses...)
		}
	}
	if len(peers) == 0 { // a new cluster's first node has not registered its addresses yet
		return "", "", api.Errorf(api.CodeUnavailable, "no member has registered the addresses yet that a join token contains").WithHint("try again in a few seconds")
	}
	t, err := pki.NewToken(a.Cluster, print, peers, string(id))
	return t.String(), t.Hash(), err
}

// maxTokenPeers keeps a token short enough to be pasted.
const maxTokenPeers = 6

// Sign renews a member's certificate.
func Sign(ctx context.Context, s Store, node api.NodeID, csr []byte, now time.Time) (pki.Issued, error) {
	o, err := s.Get(ctx, api.KindNode, string(node))
	if err != nil {
		return pki.Issued{}, fmt.Errorf("read node %s: %w", node, err)
	}
	n, err := api.Decode[api.Node](o)
	if err != nil {
		return pki.Issued{}, err
	}
	a, _, err := readAuthority(ctx, s)
	if err != nil {
		return pki.Issued{}, err
	}
	return a.issue(csr, identity(a.Cluster, node, n.Meta.Name, n.Spec), now)
}
