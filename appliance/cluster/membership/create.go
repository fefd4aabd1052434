package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// Self describes this node.
type Self struct {
	Node          api.NodeID
	Name          string
	Version       string
	PeerAddresses []string // HOST:PORT, one per path
	APIAddress    string
}

// Spec returns the spec of the node's object.
func (s Self) Spec() api.NodeSpec {
	return api.NodeSpec{PeerAddresses: s.PeerAddresses, APIAddress: s.APIAddress}
}

// identity returns the contents of the certificate of a node with this name and
// spec.
func identity(cluster string, id api.NodeID, name string, spec api.NodeSpec) pki.NodeIdentity {
	out := pki.NodeIdentity{Cluster: cluster, Node: id, Name: name}
	seen := map[string]bool{name: true}
	for _, a := range append([]string{spec.APIAddress}, spec.PeerAddresses...) {
		host, _, err := net.SplitHostPort(a)
		if err != nil || seen[host] {
			continue
		}
		seen[host] = true
		if ip, err := netip.ParseAddr(host); err == nil {
			out.IPs = append(out.IPs, ip)
		} else {
			out.DNS = append(out.DNS, host)
		}
	}
	return out
}

// caFile returns the file that holds a new cluster's CA until it is in the store.
func caFile(dir string) string { return filepath.Join(dir, "ca-key.json") }

// Create creates a new cluster with this node as the only member. ca is the CA to
// continue with, from a backup, or nil for a new one.
func Create(dir, cluster string, self Self, ca *pki.CA, now time.Time) error {
	if err := pki.CheckClusterName(cluster); err != nil {
		return fmt.Errorf("create cluster %s: %w", cluster, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if ca == nil {
		fresh, err := pki.NewCA(cluster, now)
		if err != nil {
			return fmt.Errorf("create the CA of cluster %s: %w", cluster, err)
		}
		ca = &fresh
	}
	raw, err := json.Marshal(ca)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(caFile(dir), raw, 0o600); err != nil {
		return err
	}
	key, csr, err := pki.NewRequest()
	if err != nil {
		return fmt.Errorf("create the key of node %s: %w", self.Name, err)
	}
	cert, err := ca.Sign(csr, identity(cluster, self.Node, self.Name, self.Spec()), now, 0)
	if err != nil {
		return fmt.Errorf("sign the certificate of node %s: %w", self.Name, err)
	}
	if _, err := pki.Create(dir, ca.CertPEM, cert, key); err != nil {
		return fmt.Errorf("write the certificate of node %s: %w", self.Name, err)
	}
	if err := store.NewWatermark(WatermarkFile(dir), string(self.Node), ""); err != nil {
		return fmt.Errorf("create the watermark of node %s: %w", self.Name, err)
	}
	return Record{State: api.SetupMember, Cluster: cluster, Node: self.Node, Founder: true}.Save(dir)
}

// Bootstrapping reports whether the cluster that this node has created is not in its
// store yet. The store may then be new.
func Bootstrapping(dir string) bool {
	_, err := os.Stat(caFile(dir))
	return err == nil
}

// Store is the part of the cluster's store that membership uses.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
}

// WriteFirstObjects writes what a founder's store must contain: the CA and the node itself.
// It is called at every start of a founder; the CA is written once.
func WriteFirstObjects(ctx context.Context, s Store, dir string, r Record, self Self) error {
	raw, err := os.ReadFile(caFile(dir))
	if err == nil {
		var ca pki.CA
		if err := json.Unmarshal(raw, &ca); err != nil {
			return fmt.Errorf("decode %s: %w", caFile(dir), err)
		}
		cmd := api.Command{Op: api.OpPutSpec, Kind: api.KindClusterCA, ID: caID, Name: "cluster", Data: api.Encode(authority{Cluster: r.Cluster, CA: ca})}
		if _, err := s.Apply(ctx, api.Batch{Commands: []api.Command{cmd}}); err != nil && api.CodeOf(err) != api.CodeExists && api.CodeOf(err) != api.CodeConflict {
			return fmt.Errorf("write the cluster CA: %w", err)
		}
		if err := os.Remove(caFile(dir)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return PublishSelf(ctx, s, self)
}

// PublishSelf writes this node's object, because its addresses may have changed since
// the last start.
func PublishSelf(ctx context.Context, s Store, self Self) error {
	for {
		cmd := api.Command{Op: api.OpPutSpec, Kind: api.KindNode, ID: string(self.Node), Name: self.Name}
		spec := self.Spec()
		o, err := s.Get(ctx, api.KindNode, string(self.Node))
		switch {
		case err == nil:
			n, err := api.Decode[api.Node](o)
			if err != nil {
				return err
			}
			spec.Unschedulable, spec.Drain = n.Spec.Unschedulable, n.Spec.Drain
			cmd.Expect, cmd.Name, cmd.Labels = o.Meta.Revision, o.Meta.Name, o.Meta.Labels
		case api.CodeOf(err) != api.CodeNotFound:
			return fmt.Errorf("read node %s: %w", self.Name, err)
		}
		cmd.Data = api.Encode(spec)
		if _, err := s.Apply(ctx, api.Batch{Commands: []api.Command{cmd}}); err == nil {
			return nil
		} else if api.CodeOf(err) != api.CodeConflict {
			return fmt.Errorf("write node %s: %w", self.Name, err)
		}
	}
}
