package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Remote reads from other nodes' agents (their ExportImage).
type Remote interface {
	FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error)
}

// export opens an image for another node to read, whichever pool it is stored in.
func (rec *imageReconciler) export(ctx context.Context, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	_, pool, err := rec.find(ctx, id)
	if err != nil {
		return nil, sds.Image{}, err
	}
	content, img, err := pool.ExportImage(ctx, id)
	return content, img, wrap(err, "open image %s for another node", id)
}

// find returns the image and its pool on this node.
func (rec *imageReconciler) find(ctx context.Context, id api.ImageID) (sds.Image, sds.Driver, error) {
	for name, p := range rec.pools.inOrder() {
		img, err := p.Image(ctx, id)
		if err == nil {
			return img, p, nil
		}
		if api.CodeOf(err) != api.CodeNotFound {
			return sds.Image{}, nil, fmt.Errorf("find image %s in pool %s: %w", id, name, err)
		}
	}
	return sds.Image{}, nil, api.Errorf(api.CodeNotFound, "image %s does not exist on this node", id)
}

const copyEvery = 5 * time.Minute

// copyToVoter fetches a ready image to this node if the node is a voter.
func (rec *imageReconciler) copyToVoter(ctx context.Context, img api.Image) (time.Duration, error) {
	n, ok := rec.cache.self()
	if !ok || !n.Assignment.Voter || rec.o.Remote == nil {
		return 0, nil
	}
	if _, _, err := rec.find(ctx, api.ImageID(img.Meta.ID)); api.CodeOf(err) != api.CodeNotFound {
		return copyEvery, err
	}
	_, err := rec.need(ctx, rec.pools.home(), img, key(api.KindImage, img.Meta.ID))
	return time.Second, err
}

// need reports whether the image is in the pool. If it is not, need starts to fetch
// it, and the key is triggered when it is there.
func (rec *imageReconciler) need(ctx context.Context, pool string, img api.Image, key string) (bool, error) {
	id := api.ImageID(img.Meta.ID)
	p, err := rec.pools.driver(pool)
	if err != nil {
		return false, err
	}
	if _, err := p.Image(ctx, id); api.CodeOf(err) != api.CodeNotFound {
		return err == nil, wrap(err, "find image %s in pool %s", id, cmp.Or(pool, api.PoolLocal))
	}
	if img.Status.Phase != api.ImageReady {
		return false, nil
	}
	return false, rec.jobs.start(ctx, "fetch "+pool+" "+img.Meta.ID, key, func(ctx context.Context) error {
		return rec.fetch(ctx, pool, p, img)
	})
}

// fetch copies an image into the pool, from another pool of this node or from
// another node.
func (rec *imageReconciler) fetch(ctx context.Context, name string, into sds.Driver, img api.Image) error {
	id := api.ImageID(img.Meta.ID)
	var errs []error
	try := func(from string, content io.ReadCloser, have sds.Image, err error) bool {
		if err == nil {
			_, err = into.ImportImage(ctx, sds.ImageImport{ID: id, Format: have.Format, SHA256: cmp.Or(img.Status.Sha256, have.SHA256),
				Content: content, SizeBytes: have.SizeBytes})
			_ = content.Close() // the reader has nothing to flush
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("copy image %s from %s: %w", id, from, err))
		}
		return err == nil
	}
	for other, p := range rec.pools.inOrder() {
		if other == cmp.Or(name, api.PoolLocal) {
			continue
		}
		content, have, err := p.ExportImage(ctx, id)
		if api.CodeOf(err) == api.CodeNotFound {
			continue
		}
		if try("pool "+other, content, have, err) {
			return nil
		}
	}
	for _, n := range all(rec.cache, rec.cache.nodes) {
		from := api.NodeID(n.Meta.ID)
		if from == rec.o.NodeID || rec.members.away(from) || !slices.Contains(n.Status.Images, id) || rec.o.Remote == nil {
			continue
		}
		if content, have, err := rec.o.Remote.FetchImage(ctx, from, id); try("node "+string(from), content, have, err) {
			rec.log.Info("fetched image", "id", id, "from", from)
			return rec.reporter.reportNode(ctx) // others may fetch it from here
		}
	}
	if len(errs) == 0 {
		return api.Errorf(api.CodeUnavailable, "no reachable node has image %s", img.Meta.Name)
	}
	return errors.Join(errs...)
}
