package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Keys opens the keys of encrypted OSDs; secrets.KeyStore implements it.
type Keys interface {
	OpenOSDKey(ctx context.Context, osd, sealed string) (key string, err error)
}

// keysOf opens the keys of this node's encrypted OSDs. One that does not open is not
// available; the others are used.
func (n *Node) keysOf(ctx context.Context, f storage.Bootstrap) (map[string]deploy.Encryption, error) {
	all := map[string]deploy.Encryption{}
	var errs []error
	for _, o := range f.OSDs {
		if o.Node != n.Self || o.Key == "" {
			continue
		}
		key, err := n.Keys.OpenOSDKey(ctx, o.UUID, o.Key)
		if err != nil {
			all[o.UUID] = deploy.Encryption{Lacks: storage.Reason(err.Error())}
			errs = append(errs, fmt.Errorf("open the key of the encrypted disk %s: %w", o.Disk, err))
			continue
		}
		all[o.UUID] = deploy.Encryption{Key: deploy.NewSecret(key)}
	}
	return all, errors.Join(errs...)
}
