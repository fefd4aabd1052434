package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

// caID is the ID of the cluster's only ClusterCA.
const caID = "ca-cluster"

// authority is the spec of the ClusterCA.
type authority struct {
	Cluster string `json:"cluster"`
	CA      pki.CA `json:"ca"`
	// Next replaces CA: see replacement.go. Nil unless a replacement is in progress.
	Next *pki.CA `json:"next,omitempty"`
	// Proceed is set when the operator wants that certificates are renewed.
	Proceed bool `json:"proceed,omitempty"`
	// Renewing is set once all nodes trust Next, which signs from then on.
	Renewing bool `json:"renewing,omitempty"`
}

// readAuthority also returns the object's revision.
func readAuthority(ctx context.Context, s Store) (a authority, revision int64, err error) {
	o, err := s.Get(ctx, api.KindClusterCA, caID)
	if err != nil {
		return a, 0, fmt.Errorf("read the cluster CA: %w", err)
	}
	if err := json.Unmarshal(o.Spec, &a); err != nil {
		return a, 0, fmt.Errorf("decode CA of the cluster: %w", err)
	}
	return a, o.Meta.Revision, nil
}

// write stores the authority, unless it was changed since the revision.
func (a authority) write(ctx context.Context, s Store, revision int64) error {
	_, err := s.Apply(ctx, api.Batch{Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindClusterCA, ID: caID, Name: "cluster", Expect: revision, Data: api.Encode(a)}}})
	if err != nil {
		return fmt.Errorf("write the cluster CA: %w", err)
	}
	return nil
}

// signer returns the CA that signs at present.
func (a authority) signer() pki.CA {
	if a.Renewing {
		return *a.Next
	}
	return a.CA
}

// bundle returns the PEM of the CAs that nodes trust at present.
func (a authority) bundle() ([]byte, error) {
	if a.Next == nil {
		return a.CA.CertPEM, nil
	}
	bundle, err := pki.AddToBundle(a.CA.CertPEM, a.Next.CertPEM)
	if err != nil {
		return nil, fmt.Errorf("add the next CA to the bundle: %w", err)
	}
	return bundle, nil
}

// issue signs a node's certificate request.
func (a authority) issue(csr []byte, id pki.NodeIdentity, now time.Time) (pki.Issued, error) {
	cert, err := a.signer().Sign(csr, id, now, 0)
	if err != nil {
		return pki.Issued{}, fmt.Errorf("sign the certificate of node %s: %w", id.Name, err)
	}
	bundle, err := a.bundle()
	return pki.Issued{CertPEM: cert, BundlePEM: bundle}, err
}

// Authority returns the cluster's CA, including its secret key, for backups.
func Authority(ctx context.Context, s Store) (pki.CA, error) {
	a, _, err := readAuthority(ctx, s)
	return a.CA, err
}
