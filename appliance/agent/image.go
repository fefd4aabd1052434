package agent

import (
	"context"
	"io"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// reconcileImage fetches an image that has a URL; one without waits for its
// bytes to be sent (PutImage).
func (a *Agent) reconcileImage(ctx context.Context, id string) (time.Duration, error) {
	img, ok := get(a.cache, a.cache.images, id)
	if !ok {
		return 0, nil
	}
	if img.Meta.DeletedAt != nil {
		if err := a.o.Volumes.DeleteImage(ctx, api.ImageID(id)); err != nil && api.CodeOf(err) != api.CodeNotFound {
			return 0, err
		}
		return 0, a.forget(ctx, api.KindImage, id)
	}
	if img.Status.Phase == api.ImageReady || img.Status.Phase == api.ImageFailed && img.Spec.URL == "" {
		return 0, nil
	}
	if have, err := a.o.Volumes.Image(ctx, api.ImageID(id)); err == nil {
		return 0, a.sayImage(ctx, img, ready(have, a.o.NodeID))
	}
	if img.Spec.URL == "" {
		if a.importing(id) {
			return 0, nil
		}
		// Also after a restart in the middle of an upload: the bytes must come again.
		return 0, a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImagePending})
	}
	err := a.importImage(ctx, img, sds.ImageImport{URL: img.Spec.URL})
	if err != nil && api.CodeOf(err) != api.CodeUnavailable && api.CodeOf(err) != api.CodeInternal {
		return 0, nil // trying again gives the same answer; the status says which
	}
	return 0, err
}

// PutImage takes an image's bytes from a client.
func (a *Agent) PutImage(ctx context.Context, id api.ImageID, content io.Reader) error {
	o, err := a.o.Store.Get(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	img, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	if img.Status.Phase == api.ImageReady {
		return api.Errorf(api.CodeState, "image %s has its content already", img.Meta.Name).WithHint("import it under another name")
	}
	return a.importImage(ctx, img, sds.ImageImport{Content: content})
}

func (a *Agent) importing(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running[id]
}

func (a *Agent) importImage(ctx context.Context, img api.Image, in sds.ImageImport) error {
	id := img.Meta.ID
	a.mu.Lock()
	if a.running[id] {
		a.mu.Unlock()
		return api.Errorf(api.CodeState, "image %s is being imported already", img.Meta.Name)
	}
	a.running[id] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.running, id)
		a.mu.Unlock()
	}()

	if err := a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: a.o.NodeID}); err != nil {
		return err
	}
	last := a.o.Now()
	in.ID, in.Format, in.SHA256 = api.ImageID(id), sds.Format(img.Spec.Format), img.Spec.Sha256
	in.Progress = func(n int64) {
		if now := a.o.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			if err := a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: a.o.NodeID, ProgressBytes: n}); err != nil {
				a.log.Warn("report", "id", id, "error", err)
			}
		}
	}
	have, err := a.o.Volumes.ImportImage(ctx, in)
	if err != nil {
		// The caller may be gone; the status must still tell the truth.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if said := a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImageFailed, Node: a.o.NodeID, LastError: err.Error()}); said != nil {
			a.log.Warn("report", "id", id, "error", said)
		}
		return err
	}
	return a.sayImage(ctx, img, ready(have, a.o.NodeID))
}

func ready(have sds.Image, node api.NodeID) api.ImageStatus {
	return api.ImageStatus{Phase: api.ImageReady, Node: node, Sha256: have.SHA256, SizeBytes: have.SizeBytes,
		VirtualBytes: have.VirtualBytes, ProgressBytes: have.SizeBytes}
}

func (a *Agent) sayImage(ctx context.Context, img api.Image, st api.ImageStatus) error {
	if now, ok := get(a.cache, a.cache.images, img.Meta.ID); ok && reflect.DeepEqual(now.Status, st) {
		return nil
	}
	return a.report(ctx, api.KindImage, img.Meta.ID, st)
}
