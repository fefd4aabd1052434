package agent

import (
	"context"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// reconcileImage brings an image into the cluster, if that is this node's to
// do: one with a URL is fetched by the node that it is assigned to, one without
// waits for its bytes to be sent to any node (PutImage). Then voters fetch a
// copy each, so that no dead node takes the only one with it; other nodes fetch
// what their volumes need (fetch.go).
//
//	Pending ─► Importing ─► Ready ─► deleted: every node its own copy; the one
//	               │          ▲     that brought it in takes the finalizer off,
//	               ▼          │     or when it is lost the one on duty
//	             Failed ──────┘ tried again (retry.go)
func (a *Agent) reconcileImage(ctx context.Context, id string) (time.Duration, error) {
	img, ok := get(a.cache, a.cache.images, id)
	if !ok {
		return 0, nil
	}
	if img.Meta.DeletedAt != nil {
		return a.endImage(ctx, img)
	}
	if img.Status.Phase == api.ImageReady {
		return a.copyImage(ctx, img)
	}
	mine := img.Assignment.Node == a.o.NodeID || img.Assignment.Node == "" && a.members.alone()
	if img.Spec.URL == "" {
		return 0, a.awaitUpload(ctx, img)
	}
	if !mine {
		return 0, nil
	}
	if have, _, err := a.findImage(ctx, api.ImageID(id)); err == nil {
		return 0, a.sayImage(ctx, img, ready(have, a.o.NodeID))
	}
	if wait, held := a.hold(img.Status.Retry, a.triedImport(img), retryThere); held {
		return wait, nil
	}
	err := a.jobs.startImport(ctx, img.Meta.Organization, "import "+id, key(api.KindImage, id), func(ctx context.Context) error {
		err := a.importImage(ctx, img, sds.ImageImport{URL: img.Spec.URL})
		var f *importFailed
		if errors.As(err, &f) { // the status says it, and when it is tried again
			a.log.Warn("import image failed", "id", id, "error", err)
			return nil
		}
		return err
	})
	return time.Second, err
}

// importFailed is an import's failure that the image's status says.
type importFailed struct{ error }

func (f *importFailed) Unwrap() error { return f.error }

// failedImport is the status after an import has failed. What failed at a URL is
// tried again, unless it would give the same answer.
func (a *Agent) failedImport(img api.Image, err error) api.ImageStatus {
	st := api.ImageStatus{Phase: api.ImageFailed, Node: a.o.NodeID, LastError: err.Error()}
	of := a.triedImport(img)
	switch code := api.CodeOf(err); {
	case img.Spec.URL == "": // the bytes have to be sent again
	case code == api.CodeUnavailable || code == api.CodeInternal:
		st.Retry = img.Status.Retry.After(img.Meta.ID, of, a.o.Now(), retryThere)
	default:
		st.Retry = img.Status.Retry.Last(of)
	}
	return st
}

// triedImport is what a try of the import is of. A node that is alone begins before
// the planner says that it is to: that is the same try.
func (a *Agent) triedImport(img api.Image) string {
	as := img.Assignment
	if as.Node == "" {
		as.Node = a.o.NodeID
	}
	return api.Tried(img.Meta, as)
}

// awaitUpload says what became of an upload that a restart has ended, or of one
// whose node is lost: the bytes must come again.
func (a *Agent) awaitUpload(ctx context.Context, img api.Image) error {
	id := api.ImageID(img.Meta.ID)
	st := img.Status
	began := st.Phase == api.ImageImporting
	switch {
	case began && st.Node == a.o.NodeID:
		if a.importing(img.Meta.ID) {
			return nil
		}
		if have, _, err := a.findImage(ctx, id); err == nil {
			return a.sayImage(ctx, img, ready(have, a.o.NodeID))
		}
	case began && a.members.away(st.Node), st.Phase == "":
		if !a.members.onDuty() {
			return nil
		}
	default:
		return nil
	}
	// Of the image as it was seen, and not once more (sayImage): meanwhile another
	// node may have been sent the bytes.
	return a.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, api.ImageStatus{Phase: api.ImagePending})
}

// endImage deletes this node's copies.
func (a *Agent) endImage(ctx context.Context, img api.Image) (time.Duration, error) {
	id := api.ImageID(img.Meta.ID)
	if a.jobs.stop("import " + img.Meta.ID) {
		return time.Second, nil
	}
	for _, p := range a.pools.inOrder() {
		err := p.DeleteImage(ctx, id)
		if api.CodeOf(err) == api.CodeInUse { // volumes of it are being deleted
			return time.Second, nil
		}
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return 0, err
		}
	}
	if img.Status.Node != "" && !a.members.away(img.Status.Node) {
		if img.Status.Node != a.o.NodeID {
			return 0, nil
		}
	} else if !a.members.onDuty() {
		return 0, nil
	}
	return 0, a.forget(ctx, api.KindImage, img.Meta.ID)
}

// PutImage takes an image's bytes from a client.
func (a *Agent) PutImage(ctx context.Context, id api.ImageID, content io.Reader) error {
	o, err := a.o.Store.Get(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	a.takeObject(o)
	img, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	switch {
	case img.Status.Phase == api.ImageReady:
		return api.Errorf(api.CodeState, "image %s has its content already", img.Meta.Name).WithHint("import it under another name")
	case img.Status.Phase == api.ImageImporting && img.Status.Node != a.o.NodeID && !a.members.away(img.Status.Node):
		return api.Errorf(api.CodeState, "image %s is being sent to another node", img.Meta.Name)
	}
	err = a.importImage(ctx, img, sds.ImageImport{Content: content})
	var f *importFailed
	if errors.As(err, &f) {
		return f.error
	}
	return err
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

	again := img.Spec.URL != "" && img.Status.Retry.Stands(a.triedImport(img)) // it stays Failed until it is there
	if !again {
		if err := a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: a.o.NodeID}); err != nil {
			return err
		}
	}
	last := a.o.Now()
	in.ID, in.Format, in.SHA256 = api.ImageID(id), sds.Format(img.Spec.Format), img.Spec.Sha256
	in.Progress = func(n int64) {
		if now := a.o.Now(); !again && now.Sub(last) >= 2*time.Second {
			last = now
			if err := a.sayImage(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: a.o.NodeID, ProgressBytes: n}); err != nil {
				a.log.Warn("report", "id", id, "error", err)
			}
		}
	}
	pool, err := a.pools.driver(a.pools.home())
	if err != nil {
		return err
	}
	have, err := pool.ImportImage(ctx, in)
	if err != nil {
		// The caller may be gone; the status must still tell the truth.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if said := a.sayImage(ctx, img, a.failedImport(img, err)); said != nil {
			a.log.Warn("report", "id", id, "error", said)
			return err
		}
		return &importFailed{err}
	}
	return a.sayImage(ctx, img, ready(have, a.o.NodeID))
}

func ready(have sds.Image, node api.NodeID) api.ImageStatus {
	return api.ImageStatus{Phase: api.ImageReady, Node: node, Sha256: have.SHA256, SizeBytes: have.SizeBytes,
		VirtualBytes: have.VirtualBytes, ProgressBytes: have.SizeBytes}
}

// sayImage reports a status for whoever brings an image in: a conflict is a
// change of something else, or another's word that it waits for its bytes: once
// more.
func (a *Agent) sayImage(ctx context.Context, img api.Image, st api.ImageStatus) error {
	var err error
	for range 3 {
		if now, ok := get(a.cache, a.cache.images, img.Meta.ID); ok {
			img = now
		}
		if reflect.DeepEqual(img.Status, st) {
			return nil
		}
		if err = a.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, st); !errors.Is(err, errStale) {
			return err
		}
	}
	return err
}
